/* SPDX-License-Identifier: BSD-2-Clause */
/* order/queue: one ring's own order (O1, O3, O13, O15), ties by number (G7), and room. */
#include "unit.h"

#include "order/queue.h"

#include <stdlib.h>
#include <string.h>

/* Numbers by position: what a tie asks for. */
struct numbers {
	const uint32_t *seq; /* by position / 8 */
	unsigned asked;
};

static int tie(void *ctx, uint64_t pos_a, uint64_t pos_b)
{
	struct numbers *numbers = ctx;

	numbers->asked++;
	return (int32_t)(numbers->seq[pos_a / 8] - numbers->seq[pos_b / 8]);
}

static void put(struct queue *q, struct numbers *numbers, uint64_t stamp_ns, uint32_t position)
{
	assert_int_equal(queue__room(q, 1), 0);
	queue__push(q, (struct entry){stamp_ns, 8ull * position}, tie, numbers);
}

static void expect_stamps(const struct queue *q, const uint64_t *stamps, size_t n)
{
	assert_int_equal(queue__count(q), n);
	for (size_t i = 0; i < n; i++)
		assert_true(q->e[q->first + i].stamp_ns == stamps[i]);
}

static void expect_sorted(const uint64_t *in, const uint64_t *out, size_t n)
{
	struct numbers numbers = {0};
	struct queue q = {0};

	for (size_t i = 0; i < n; i++)
		put(&q, &numbers, in[i], (uint32_t)i);
	expect_stamps(&q, out, n);
	assert_int_equal(numbers.asked, 0); /* no ties, so nobody looks at the records */
	queue__free(&q);
}

static void test_scenarios(void **state)
{
	const uint64_t o1[] = {1, 2, 3}, o3[] = {2, 3, 4, 5, 1}, o3_out[] = {1, 2, 3, 4, 5};
	const uint64_t o13a[] = {100, 90, 110}, o13a_out[] = {90, 100, 110};
	const uint64_t o13b[] = {101, 103, 102}, o13b_out[] = {101, 102, 103};
	const uint64_t o15[] = {5, UINT64_MAX, 0, 6, UINT64_MAX - 1, 1};
	const uint64_t o15_out[] = {0, 1, 5, 6, UINT64_MAX - 1, UINT64_MAX};

	expect_sorted(o1, o1, ARRAY_SIZE(o1));
	expect_sorted(o3, o3_out, ARRAY_SIZE(o3));
	expect_sorted(o13a, o13a_out, ARRAY_SIZE(o13a));
	expect_sorted(o13b, o13b_out, ARRAY_SIZE(o13b));
	expect_sorted(o15, o15_out, ARRAY_SIZE(o15));
}

/* What must come out: by stamp, then by number, then as it came. */
struct want {
	struct entry e;
	uint32_t seq;
	size_t came;
};

static int compare(const void *a, const void *b)
{
	const struct want *x = a, *y = b;

	if (x->e.stamp_ns != y->e.stamp_ns)
		return x->e.stamp_ns < y->e.stamp_ns ? -1 : 1;
	if (x->seq != y->seq)
		return (int32_t)(x->seq - y->seq) < 0 ? -1 : 1;
	return (x->came > y->came) - (x->came < y->came);
}

static void expect_as_sorted(const uint64_t *stamps, const uint32_t *seq, size_t n)
{
	struct numbers numbers = {.seq = seq};
	struct want *want = calloc(n, sizeof(*want));
	struct queue q = {0};

	assert_non_null(want);
	assert_int_equal(queue__room(&q, n), 0);
	for (size_t i = 0; i < n; i++) {
		struct entry e = {stamps[i], 8 * i};

		want[i] = (struct want){e, seq[i], i};
		queue__push(&q, e, tie, &numbers);
	}
	queue__sort(&q, tie, &numbers);
	assert_false(q.unsorted);
	qsort(want, n, sizeof(*want), compare);
	assert_int_equal(queue__count(&q), n);
	for (size_t i = 0; i < n; i++) {
		assert_true(q.e[q.first + i].stamp_ns == want[i].e.stamp_ns);
		assert_true(q.e[q.first + i].pos == want[i].e.pos);
	}
	free(want);
	queue__free(&q);
}

/* G7: equal stamps go by number, whatever the ring's order was, also across the 32-bit wrap. */
static void test_ties(void **state)
{
	const uint64_t stamps[] = {7, 7, 7, 7, 6, 7, 8, 7};
	const uint32_t down[] = {7, 6, 5, 4, 3, 2, 1, 0};
	const uint32_t wrap[] = {0xfffffffe, 1, 0xffffffff, 0, 3, 0xfffffffd, 4, 2};

	expect_as_sorted(stamps, down, ARRAY_SIZE(stamps));
	expect_as_sorted(stamps, wrap, ARRAY_SIZE(stamps));
}

/* O12: a whole ring of one stamp, in order. */
static void test_all_equal(void **state)
{
	static uint64_t stamps[10000];
	static uint32_t seq[10000];

	for (uint32_t i = 0; i < ARRAY_SIZE(seq); i++) {
		stamps[i] = 500;
		seq[i] = i;
	}
	expect_as_sorted(stamps, seq, ARRAY_SIZE(seq));
}

/* O13: 365 inversions in a long ring, the farthest 164 records back. */
static void test_inversions(void **state)
{
	static uint64_t stamps[100000];
	static uint32_t seq[100000];
	struct rng rng = {13};

	for (uint32_t i = 0; i < ARRAY_SIZE(seq); i++) {
		seq[i] = i;
		stamps[i] = 1000000 + 10ull * i;
	}
	for (uint32_t k = 0; k < 365; k++) {
		uint32_t back = k ? (uint32_t)rng__range(&rng, 1, 164) : 164;
		uint32_t at = 200 + k * 270;

		stamps[at] = stamps[at - back] - 5;
	}
	expect_as_sorted(stamps, seq, ARRAY_SIZE(seq));
}

static void test_at_random(void **state)
{
	static uint64_t stamps[600];
	static uint32_t seq[600];
	struct rng rng = {3};

	for (int run = 0; run < 3000; run++) {
		size_t n = rng__below(&rng, ARRAY_SIZE(seq) + 1);
		uint64_t spread = 1ull << rng__below(&rng, 64);
		uint32_t base = (uint32_t)rng__next(&rng);

		for (size_t i = 0; i < n; i++) {
			stamps[i] = rng__next(&rng) % spread;
			seq[i] = base + (uint32_t)rng__below(&rng, 2 * n);
		}
		if (n)
			expect_as_sorted(stamps, seq, n);
	}
}

/*
 * G8: stamps that fall all the way through a large ring, and two clocks in one ring. To put each in
 * from the tail would take minutes: the test's time-out is what fails then.
 */
static void test_hostile_order(void **state)
{
	enum { N = 200000 };
	uint64_t *stamps = calloc(N, sizeof(*stamps));
	uint32_t *seq = calloc(N, sizeof(*seq));
	struct rng rng = {5};

	assert_non_null(stamps);
	assert_non_null(seq);
	for (uint32_t i = 0; i < N; i++) {
		seq[i] = i;
		stamps[i] = 2ull * N - i;
	}
	expect_as_sorted(stamps, seq, N);
	for (uint32_t i = 0; i < N; i++)
		stamps[i] = i % 2 ? 1000000000ull * N + i : i;
	expect_as_sorted(stamps, seq, N);
	for (uint32_t i = 0; i < N; i++) {
		seq[i] = N - i;
		stamps[i] = 500;
	}
	expect_as_sorted(stamps, seq, N);
	for (size_t n = 1; n < N; n = n * 3 / 2 + 1) {
		for (size_t i = 0; i < n; i++)
			stamps[i] = rng__next(&rng) >> n % 64;
		expect_as_sorted(stamps, seq, n);
	}
	free(stamps);
	free(seq);
}

/* Room keeps what waits, and takes the place of what has gone before it takes memory. */
static void test_room(void **state)
{
	struct numbers numbers = {0};
	struct queue q = {0};
	const struct entry *e;
	size_t cap;

	assert_int_equal(queue__room(&q, 0), 0);
	assert_int_equal(queue__count(&q), 0);
	assert_int_equal(queue__room(&q, 100), 0);
	assert_true(q.cap >= 100);
	e = q.e;
	cap = q.cap;
	for (uint32_t i = 0; i < cap; i++)
		queue__push(&q, (struct entry){i, 8ull * i}, tie, &numbers);
	q.first = 60;
	assert_int_equal(queue__room(&q, 60), 0);
	assert_ptr_equal(q.e, e);
	assert_int_equal(q.cap, cap);
	for (uint32_t i = 0; i < 60; i++)
		put(&q, &numbers, cap + i, (uint32_t)cap + i);
	assert_int_equal(queue__room(&q, 1), 0);
	/* G5: by a step, not to twice as much: what waits is bounded, so its index has to be. */
	assert_true(q.cap > cap);
	assert_true(q.cap <= cap + 1024);
	assert_int_equal(queue__count(&q), cap);
	for (size_t i = 0; i < cap; i++) {
		assert_true(q.e[q.first + i].stamp_ns == 60 + i);
		assert_true(q.e[q.first + i].pos == 8 * (60 + i));
	}
	queue__free(&q);
	assert_int_equal(queue__count(&q), 0);
	assert_int_equal(queue__room(&q, 3), 0);
	assert_int_equal(queue__room(&q, 100000), 0);
	assert_true(q.cap < 100000 + 1024);
	queue__free(&q);
}

/* A queue that is filled and emptied for ever keeps its size. */
static void test_no_growth(void **state)
{
	struct numbers numbers = {0};
	struct queue q = {0};
	struct rng rng = {1};
	uint64_t in = 0, out = 0;

	for (int poll = 0; poll < 20000; poll++) {
		size_t n = rng__below(&rng, 50);

		assert_int_equal(queue__room(&q, n), 0);
		assert_true(q.end + n <= q.cap);
		for (size_t i = 0; i < n; i++, in++)
			queue__push(&q, (struct entry){in, 0}, tie, &numbers);
		while (queue__count(&q) > 20)
			assert_true(q.e[q.first++].stamp_ns == out++);
	}
	assert_true(q.cap <= 2048);
	queue__free(&q);
}

static void test_until(void **state)
{
	uint32_t seq[40];
	struct numbers numbers = {.seq = seq};
	struct queue q = {0};
	struct rng rng = {2};

	assert_int_equal(queue__until(&q, 0), 0);
	assert_int_equal(queue__until(&q, UINT64_MAX), 0);
	assert_int_equal(queue__last_ns(&q), 0);
	for (uint32_t i = 0; i < ARRAY_SIZE(seq); i++)
		seq[i] = i;
	for (int run = 0; run < 60; run++) {
		size_t n = rng__below(&rng, 40);

		q.first = q.end = 0;
		for (size_t i = 0; i < n; i++)
			put(&q, &numbers, 2 * rng__below(&rng, 1000) + 2, (uint32_t)i);
		assert_true(queue__last_ns(&q) == (n ? q.e[n - 1].stamp_ns : 0));
		q.first = rng__below(&rng, n + 1);
		for (uint64_t limit = 0; limit < 2004; limit++) {
			size_t count = 0;

			for (size_t i = q.first; i < q.end; i++)
				count += q.e[i].stamp_ns <= limit;
			assert_int_equal(queue__until(&q, limit), count);
		}
		assert_int_equal(queue__until(&q, UINT64_MAX), queue__count(&q));
	}
	queue__free(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scenarios), cmocka_unit_test(test_ties),
		cmocka_unit_test(test_all_equal), cmocka_unit_test(test_inversions),
		cmocka_unit_test(test_at_random), cmocka_unit_test(test_hostile_order),
		cmocka_unit_test(test_room),	  cmocka_unit_test(test_no_growth),
		cmocka_unit_test(test_until),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	return r ? 1 : 0;
}
