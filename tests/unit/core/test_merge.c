/* SPDX-License-Identifier: BSD-2-Clause */
/* order/merge against a stable sort: G1, G7, O2, O4, O9, O12, O15. */
#include "unit.h"

#include "order/merge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct queues {
	struct queue *q;
	struct merge_front *fronts; /* room for those that have something due */
	size_t n;
};

static int no_tie(void *ctx, uint64_t pos_a, uint64_t pos_b)
{
	return 0; /* as they came */
}

static struct queues queues_new(size_t n)
{
	struct queues queues = {
		.q = calloc(n, sizeof(*queues.q)),
		.fronts = calloc(n, sizeof(*queues.fronts)),
		.n = n,
	};

	assert_non_null(queues.q);
	assert_non_null(queues.fronts);
	return queues;
}

static void queues_free(struct queues *queues)
{
	for (size_t i = 0; i < queues->n; i++)
		queue__free(&queues->q[i]);
	free(queues->q);
	free(queues->fronts);
}

static void put(struct queues *queues, size_t i, uint64_t stamp_ns)
{
	struct queue *q = &queues->q[i];

	assert_int_equal(queue__room(q, 1), 0);
	/* No two have the same position, so that each entry is told from all others. */
	queue__push(q, (struct entry){stamp_ns, (uint64_t)i << 40 | 8 * q->end}, no_tie, NULL);
}

/* A plain merge sort: the order that must come out. */
static void stable_sort(struct entry *e, struct entry *scratch, size_t n)
{
	size_t half = n / 2, a = 0, b = half;

	if (n < 2)
		return;
	stable_sort(e, scratch, half);
	stable_sort(e + half, scratch, n - half);
	memcpy(scratch, e, n * sizeof(*e));
	for (size_t i = 0; i < n; i++)
		e[i] = b == n || (a < half && scratch[a].stamp_ns <= scratch[b].stamp_ns)
			       ? scratch[a++]
			       : scratch[b++];
}

static struct entry *all_sorted(const struct queues *queues, uint64_t limit_ns, size_t *n)
{
	struct entry *e, *scratch;
	size_t total = 0, out = 0;

	for (size_t i = 0; i < queues->n; i++)
		total += queue__count(&queues->q[i]);
	e = calloc(2 * total + 1, sizeof(*e));
	assert_non_null(e);
	scratch = e + total;
	for (size_t i = 0; i < queues->n; i++)
		for (size_t k = queues->q[i].first; k < queues->q[i].end; k++)
			if (queues->q[i].e[k].stamp_ns <= limit_ns)
				e[out++] = queues->q[i].e[k];
	stable_sort(e, scratch, out);
	*n = out;
	return e;
}

static struct merge_due find_due(struct queues *queues, uint64_t limit_ns)
{
	struct merge_due due = {.fronts = queues->fronts, .limit_ns = limit_ns};

	for (size_t i = 0; i < queues->n; i++)
		merge_due__add(&due, &queues->q[i]);
	return due;
}

/* The entries that a run stands for; each queue gives what it has of them from its front. */
static void check_run(const struct merge_due *due, const struct merge_run *run,
		      const struct entry *want)
{
	size_t taken = 0;

	for (size_t i = 0; i < run->count; i++) {
		const struct merge_front *front = &due->fronts[merge_run__number(run, i)];

		assert_true(merge_run__number(run, i) < due->count);
		assert_true(merge_run__at(run, i) == front->origin + want[i].pos);
		assert_true(merge_run__stamp_ns(run, i) == want[i].stamp_ns);
	}
	for (size_t i = 0; i < due->count; i++)
		taken += due->fronts[i].taken;
	assert_int_equal(taken, run->count);
}

static void take_run(struct merge_due *due, const struct merge_run *run)
{
	for (size_t i = 0; i < due->count; i++)
		merge_front__take(&due->fronts[i]);
	due->total -= run->count;
}

/* Take everything <= limit_ns out, run by run, and hold it against the plain sort. */
static void drain(struct queues *queues, uint64_t limit_ns)
{
	size_t total, done = 0;
	struct entry *want = all_sorted(queues, limit_ns, &total);
	struct merge_due due = find_due(queues, limit_ns);
	struct merge merge;

	assert_int_equal(due.total, total);
	for (size_t i = 0; i < due.count; i++)
		due.fronts[i].origin = 0 - i * 1000;
	assert_int_equal(merge__init(&merge), 0);
	while (due.total) {
		struct merge_run run = merge__next(&merge, &due);

		assert_in_range(run.count, 1, MERGE_RUN_MAX);
		assert_true(run.count <= due.total);
		check_run(&due, &run, want + done);
		/* Now and then only a part of it. */
		if (run.count % 3 == 0)
			merge_run__cut(&run, &due, run.count / 2);
		check_run(&due, &run, want + done);
		take_run(&due, &run);
		done += run.count;
	}
	for (size_t i = 0; i < queues->n; i++)
		assert_int_equal(queue__until(&queues->q[i], limit_ns), 0);
	merge__free(&merge);
	free(want);
}

static void test_due(void **state)
{
	struct queues queues = queues_new(4);
	struct merge_due due;

	assert_int_equal(find_due(&queues, UINT64_MAX).count, 0);
	put(&queues, 1, 10);
	put(&queues, 1, 30);
	put(&queues, 3, 20);
	assert_int_equal(find_due(&queues, 9).count, 0);
	due = find_due(&queues, 29);
	assert_int_equal(due.count, 2);
	assert_int_equal(due.total, 2);
	assert_true(due.high_ns == 20);
	assert_ptr_equal(due.fronts[0].queue, &queues.q[1]);
	assert_ptr_equal(due.fronts[1].queue, &queues.q[3]);
	queues_free(&queues);
}

/* A run takes nothing away: asked twice, it says the same. */
static void test_asked_twice(void **state)
{
	struct queues queues = queues_new(2);
	struct merge_due due;
	struct merge merge;

	put(&queues, 0, 11);
	put(&queues, 1, 10);
	due = find_due(&queues, UINT64_MAX);
	assert_int_equal(merge__init(&merge), 0);
	for (int again = 0; again < 2; again++) {
		struct merge_run run = merge__next(&merge, &due);

		assert_int_equal(run.count, 2);
		assert_true(merge_run__stamp_ns(&run, 0) == 10);
		assert_true(merge_run__stamp_ns(&run, 1) == 11);
		assert_int_equal(merge_run__number(&run, 0), 1);
		assert_int_equal(merge_run__number(&run, 1), 0);
	}
	merge__free(&merge);
	queues_free(&queues);
}

static void test_scenarios(void **state)
{
	const struct {
		uint8_t ring;
		uint64_t stamp_ns;
	} in[] = {{0, 2}, {0, 3}, {1, 4}, {1, 5}, {1, 1}, {0, 5}, {0, 7}, {1, 5}}; /* O2, O4, O12 */
	struct queues queues = queues_new(2);

	for (size_t i = 0; i < ARRAY_SIZE(in); i++)
		put(&queues, in[i].ring, in[i].stamp_ns);
	drain(&queues, 3);
	drain(&queues, UINT64_MAX);
	queues_free(&queues);
}

/* How stamps are spread: given a random number and how far along its queue a record is. */
enum shape {
	EVEN,	       /* evenly over a second */
	NARROW,	       /* on few stamps: many ties */
	EQUAL,	       /* O12: on one */
	EXPONENTIAL,   /* each octave as full as the next, up to 2^64 */
	DENSE_LAST,    /* one at 0, all others within 1 us far away */
	ENDS,	       /* O15: 0 and 2^64 - 1 only */
	BURSTS,	       /* 20 at a time */
	BY_QUEUE,      /* each queue after the one before it */
	BY_QUEUE_DOWN, /* each queue before the one before it */
	SHAPES,
};

static uint64_t stamp(enum shape shape, struct rng *rng, size_t queue, size_t i, size_t n)
{
	switch (shape) {
	case EVEN:
		return 1000000000000ull + rng__below(rng, 1000000000);
	case NARROW:
		return 5000 + rng__below(rng, 50);
	case EQUAL:
		return 500;
	case EXPONENTIAL:
		return rng__next(rng) >> rng__below(rng, 64);
	case DENSE_LAST:
		return i ? (1ull << 63) + rng__below(rng, 1000) : queue;
	case ENDS:
		return rng__chance(rng, 500) ? 0 : UINT64_MAX;
	case BURSTS:
		return 1000000 * rng__below(rng, n / 20 + 1) + rng__below(rng, 20);
	case BY_QUEUE:
		return queue * 1000000 + i;
	case BY_QUEUE_DOWN:
		return (2000 - queue) * 1000000 + i;
	case SHAPES:
		break;
	}
	fail_msg("no shape");
	return 0;
}

static int compare_stamps(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* `n` records over `nr` queues. Sorted first: filling queues is not what is tested here. */
static struct queues fill(enum shape shape, struct rng *rng, size_t nr, size_t n)
{
	struct queues queues = queues_new(nr);

	for (size_t i = 0; i < nr; i++) {
		size_t mine = n / nr + (i < n % nr);
		uint64_t *stamps = calloc(mine + 1, sizeof(*stamps));

		assert_non_null(stamps);
		for (size_t k = 0; k < mine; k++)
			stamps[k] = stamp(shape, rng, i, k, mine);
		qsort(stamps, mine, sizeof(*stamps), compare_stamps);
		assert_int_equal(queue__room(&queues.q[i], mine), 0);
		for (size_t k = 0; k < mine; k++)
			put(&queues, i, stamps[k]);
		free(stamps);
	}
	return queues;
}

static const size_t queue_counts[] = {1, 3, 70, 1024};

static void drain_sizes(const size_t *sizes, size_t nr_sizes)
{
	struct rng rng = {19};

	for (size_t s = 0; s < nr_sizes; s++)
		for (size_t c = 0; c < ARRAY_SIZE(queue_counts); c++)
			for (int shape = 0; shape < SHAPES; shape++) {
				struct queues queues = fill(shape, &rng, queue_counts[c], sizes[s]);

				drain(&queues, UINT64_MAX);
				queues_free(&queues);
			}
}

/* Around where one way of sorting hands over to another. */
static void test_small(void **state)
{
	const size_t sizes[] = {0, 1, 2, 3, 47, 48, 49, 63, 64, 65, 66, 1000};

	drain_sizes(sizes, ARRAY_SIZE(sizes));
}

static void test_around_a_run(void **state)
{
	const size_t sizes[] = {MERGE_RUN_MIN, MERGE_RUN_MIN + 1, MERGE_RUN_MAX, MERGE_RUN_MAX + 1};

	drain_sizes(sizes, ARRAY_SIZE(sizes));
}

static void test_many_runs(void **state)
{
	const size_t sizes[] = {2 * MERGE_RUN_MAX + 333};

	drain_sizes(sizes, ARRAY_SIZE(sizes));
}

/* Limits in the middle, on a stamp, and at both ends of the numbers. */
static void test_limits(void **state)
{
	struct rng rng = {23};

	for (int run = 0; run < 200; run++) {
		enum shape shape = (enum shape)rng__below(&rng, SHAPES);
		struct queues queues = fill(shape, &rng, rng__range(&rng, 1, 20),
					    rng__below(&rng, run % 20 ? 200 : 3 * MERGE_RUN_MAX));
		uint64_t limit_ns = 0;

		for (int step = 0; step < 8; step++) {
			drain(&queues, limit_ns);
			limit_ns += rng__below(&rng, UINT64_MAX - limit_ns) >> rng__below(&rng, 64);
		}
		drain(&queues, UINT64_MAX);
		queues_free(&queues);
	}
}

/* Every density differs from the next by orders of magnitude, in some runs by 2^50. */
static void test_densities(void **state)
{
	struct rng rng = {29};

	for (int run = 0; run < 10; run++) {
		struct queues queues = queues_new(4);
		uint64_t stamp_ns = 0;

		for (size_t i = 0; i < 4 * MERGE_RUN_MAX; i++) {
			if (i % 1000 == 0)
				stamp_ns += rng__next(&rng) >> rng__range(&rng, 9, 60);
			stamp_ns += rng__below(&rng, 2);
			put(&queues, rng__below(&rng, 4), stamp_ns);
		}
		drain(&queues, UINT64_MAX);
		queues_free(&queues);
	}
}

/* Each record stands half as far from the end as the one before: 64 gaps, each half the last. */
static void test_converging(void **state)
{
	struct queues queues = queues_new(2);

	for (unsigned bit = 0; bit < 64; bit++)
		put(&queues, bit % 2, 0ull - (1ull << (63 - bit)));
	for (size_t i = 0; i < 3 * MERGE_RUN_MAX; i++)
		put(&queues, i % 2, UINT64_MAX);
	drain(&queues, UINT64_MAX);
	queues_free(&queues);
}

/* O9 */
static void test_one_among_a_million(void **state)
{
	struct queues queues = queues_new(4);

	assert_int_equal(queue__room(&queues.q[0], 1000000), 0);
	for (uint64_t i = 0; i < 1000000; i++)
		put(&queues, 0, i);
	put(&queues, 1, 500000);
	drain(&queues, UINT64_MAX);
	queues_free(&queues);
}

/* O12, G7: more equal stamps than a run holds, from 8 queues: by source, then as each came. */
static void test_ties_over_runs(void **state)
{
	struct queues queues = queues_new(8);

	put(&queues, 7, 499);
	for (size_t i = 0; i < 5 * MERGE_RUN_MAX; i++)
		put(&queues, i % 8, 500);
	put(&queues, 0, 501);
	drain(&queues, 500);
	drain(&queues, UINT64_MAX);
	queues_free(&queues);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_due),
		cmocka_unit_test(test_asked_twice),
		cmocka_unit_test(test_scenarios),
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_around_a_run),
		cmocka_unit_test(test_many_runs),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_densities),
		cmocka_unit_test(test_converging),
		cmocka_unit_test(test_one_among_a_million),
		cmocka_unit_test(test_ties_over_runs),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	return r ? 1 : 0;
}
