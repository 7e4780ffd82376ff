/* SPDX-License-Identifier: BSD-2-Clause */
/* ledger/seqs: which numbers are lost, and when (G4, L8, L10). */
#include "unit.h"

#include "ledger/seqs.h"

#include <stdlib.h>
#include <string.h>

#define FAR 1000000000ull /* a bound that is later than every stamp used here */

static struct hole lost[3 * SEQS_HOLES_MAX];
static size_t nr_lost;

static void on_lost(void *ctx, const struct hole *hole)
{
	assert_true(nr_lost < ARRAY_SIZE(lost));
	lost[nr_lost++] = *hole;
}

static void start(struct seqs *seqs, uint64_t first)
{
	nr_lost = 0;
	assert_int_equal(seqs__init(seqs), 0);
	seqs__start(seqs, first);
	seqs->limit = first + (1ull << 40); /* far above all that is seen here */
}

static void see(struct seqs *seqs, uint64_t seq, uint64_t stamp_ns)
{
	assert_true(seqs__see(seqs, (uint32_t)seq, stamp_ns));
}

static void refuse(struct seqs *seqs, uint64_t seq)
{
	uint64_t seen = seqs->seen, expect = seqs->expect;

	assert_false(seqs__see(seqs, (uint32_t)seq, 77));
	assert_true(seqs->seen == seen);
	assert_true(seqs->expect == expect);
}

static void settle(struct seqs *seqs, uint64_t t_ns, uint64_t bound_ns, uint64_t attempts)
{
	seqs__settle(seqs, t_ns, bound_ns, attempts, on_lost, NULL);
}

static void expect_hole(size_t i, uint64_t first, uint64_t end, uint64_t from_ns, uint64_t to_ns)
{
	assert_true(i < nr_lost);
	assert_true(lost[i].first == first);
	assert_true(lost[i].end == end);
	assert_true(lost[i].missing == end - first);
	assert_true(lost[i].from_ns == from_ns);
	assert_true(lost[i].to_ns == to_ns);
}

static void test_none_lost(void **state)
{
	struct seqs seqs;

	start(&seqs, 0);
	settle(&seqs, 1, 2, 0);
	for (uint64_t seq = 0; seq < 1000; seq++)
		see(&seqs, seq, 10 + seq);
	settle(&seqs, 2000, 2001, 1000);
	assert_int_equal(nr_lost, 0);
	assert_int_equal(seqs.seen, 1000);
	assert_int_equal(seqs.lost, 0);
	seqs__free(&seqs);
}

/* L8: A at position 0 takes number 1, B at position 1 takes 0, the snapshot lies between: no gap. */
static void test_crossed_numbers(void **state)
{
	struct seqs seqs;

	start(&seqs, 0);
	see(&seqs, 1, 11);
	settle(&seqs, 5, 6, 0); /* neither was counted yet */
	see(&seqs, 0, 10);
	settle(&seqs, 20, 21, 2);
	assert_int_equal(nr_lost, 0);
	assert_int_equal(seqs.seen, 2);
	seqs__free(&seqs);
}

/* L8: n + 1 is there while n is reserved behind P: pending, not lost. It comes, or it is lost then. */
static void test_pending(void **state)
{
	struct seqs seqs;

	start(&seqs, 0);
	see(&seqs, 0, 10);
	see(&seqs, 2, 12);
	settle(&seqs, 20, 21, 1);
	assert_int_equal(nr_lost, 0);
	see(&seqs, 1, 11);
	see(&seqs, 4, 14);
	settle(&seqs, 30, 31, 3);
	assert_int_equal(nr_lost, 0);
	settle(&seqs, 40, 41, 5);
	assert_int_equal(nr_lost, 1);
	assert_int_equal(lost[0].first, 3);
	assert_int_equal(seqs.lost, 1);
	refuse(&seqs, 3); /* too late: it was given up */
	seqs__free(&seqs);
}

/* L8: two programs nest: 77 numbers step back and none is lost. */
static void test_steps_back(void **state)
{
	struct seqs seqs;
	uint64_t seq = 0;

	start(&seqs, 0);
	for (unsigned i = 0; i < 1000; i++) {
		if (i % 13) {
			see(&seqs, seq, 100 + seq);
			seq++;
		} else {
			see(&seqs, seq + 1, 101 + seq);
			see(&seqs, seq, 100 + seq);
			seq += 2;
		}
	}
	settle(&seqs, 5000, 5001, seq);
	assert_int_equal(nr_lost, 0);
	assert_int_equal(seqs.count, 0);
	assert_int_equal(seqs.seen, seq);
	seqs__free(&seqs);
}

/* L10: S = 1000, 990 seen: those ten, in this poll, and no other. */
static void test_exactly_those(void **state)
{
	const uint64_t missing[] = {0, 1, 17, 500, 501, 502, 700, 997, 998, 999};
	struct seqs seqs;
	size_t next = 0, holes = 0;

	start(&seqs, 0);
	for (uint64_t seq = 0; seq < 1000; seq++) {
		if (next < ARRAY_SIZE(missing) && missing[next] == seq)
			next++;
		else
			see(&seqs, seq, 1000 + 10 * seq);
	}
	settle(&seqs, 20000, 20005, 1000);
	assert_int_equal(seqs.lost, 10);
	assert_int_equal(nr_lost, 5);
	/* Of the last four before a hole, one at least was stamped before it was tried. */
	expect_hole(holes++, 0, 2, 0, 1020);
	expect_hole(holes++, 17, 18, 1000 + 10 * (17 - SEQS_NESTING), 1180);
	expect_hole(holes++, 500, 503, 1000 + 10 * (500 - SEQS_NESTING), 6030);
	expect_hole(holes++, 700, 701, 1000 + 10 * (700 - SEQS_NESTING), 8010);
	/* L4: nothing behind it; the snapshot bounds it. */
	expect_hole(holes++, 997, 1000, 1000 + 10 * (997 - SEQS_NESTING), 20005);
	settle(&seqs, 20010, 20015, 1000);
	assert_int_equal(nr_lost, 5);
	seqs__free(&seqs);
}

/* All lost, for several polls: each loss lies between the snapshots that did not and did count it. */
static void test_nothing_but_losses(void **state)
{
	struct seqs seqs;

	start(&seqs, 50);
	seqs.floor_ns = 90;
	settle(&seqs, 100, 103, 60);
	settle(&seqs, 200, 203, 60);
	settle(&seqs, 300, 303, 61);
	assert_int_equal(nr_lost, 2);
	expect_hole(0, 50, 60, 90, 103);
	expect_hole(1, 60, 61, 200, 303);
	see(&seqs, 61, 310);
	refuse(&seqs, 55);
	refuse(&seqs, 49);
	assert_int_equal(seqs.lost, 11);
	seqs__free(&seqs);
}

/* S stands inside a hole: what is below it is lost now, the rest may still come. */
static void test_settle_inside_a_hole(void **state)
{
	struct seqs seqs;

	start(&seqs, 0);
	see(&seqs, 0, 10);
	see(&seqs, 10, 40);
	settle(&seqs, 20, 25, 6);
	assert_int_equal(nr_lost, 1);
	expect_hole(0, 1, 6, 0, 25);
	refuse(&seqs, 5);
	see(&seqs, 7, 37);
	settle(&seqs, 50, 51, 11);
	assert_int_equal(nr_lost, 3);
	expect_hole(1, 6, 7, 20, 37);
	expect_hole(2, 8, 10, 20, 40);
	assert_int_equal(seqs.seen + seqs.lost, 11);
	seqs__free(&seqs);
}

/* One hole of nine is filled in every order of five of its numbers. */
static void fill_in_order(const unsigned *order, unsigned n)
{
	struct seqs seqs;
	uint64_t missing = 9;
	bool filled[11] = {false};

	start(&seqs, 0);
	see(&seqs, 0, 100);
	see(&seqs, 10, 110);
	for (unsigned i = 0; i < n; i++) {
		see(&seqs, order[i], 100 + order[i]);
		refuse(&seqs, order[i]);
		filled[order[i]] = true;
		missing--;
	}
	settle(&seqs, 200, 201, 11);
	assert_int_equal(seqs.lost, missing);
	for (size_t i = 0; i < nr_lost; i++) {
		assert_true(lost[i].from_ns < 100 + lost[i].first);
		assert_true(lost[i].to_ns == 100 + lost[i].end);
		for (uint64_t seq = lost[i].first; seq < lost[i].end; seq++)
			assert_false(filled[seq]);
		missing -= lost[i].missing;
	}
	assert_int_equal(missing, 0);
	seqs__free(&seqs);
}

static void test_every_order_of_filling(void **state)
{
	for (unsigned code = 0; code < 9 * 9 * 9 * 9 * 9; code++) {
		unsigned order[5], n = 0;

		for (unsigned rest = code; n < 5; n++, rest /= 9) {
			order[n] = rest % 9 + 1;
			for (unsigned i = 0; i < n; i++)
				if (order[i] == order[n])
					goto next;
		}
		fill_in_order(order, n);
	next:;
	}
	for (unsigned mask = 0; mask < 512; mask++) {
		unsigned order[9], n = 0;

		for (unsigned bit = 0; bit < 9; bit++)
			if (mask >> bit & 1)
				order[n++] = bit + 1;
		fill_in_order(order, n);
	}
}

/* The 32 bits of the record wrap: nothing is lost by that, and losses across it are counted. */
static void test_low_half_wraps(void **state)
{
	for (uint64_t half = 1; half <= 3; half++) {
		const uint64_t first = (half << 32) - 5;
		struct seqs seqs;

		start(&seqs, first);
		for (uint64_t seq = first; seq < first + 4; seq++)
			see(&seqs, seq, 10);
		see(&seqs, first + 7, 20); /* 4, 5 and 6 missing: the 5th is (half << 32) */
		refuse(&seqs, first);
		see(&seqs, first + 5, 15);
		settle(&seqs, 30, 31, first + 8);
		assert_int_equal(nr_lost, 2);
		assert_true(lost[0].first == first + 4);
		assert_true(lost[1].first == first + 6);
		assert_true(seqs.expect == first + 8);
		seqs__free(&seqs);
	}
}

/* As far ahead, and as far back, as 32 bits can tell. */
static void test_widen(void **state)
{
	const uint64_t expects[] = {1ull << 31, (1ull << 32) - 1, 1ull << 32, (1ull << 40) + 12345};

	for (size_t i = 0; i < ARRAY_SIZE(expects); i++) {
		struct seqs seqs = {.expect = expects[i]};
		const int64_t offsets[] = {0, 1, -1, 1000, -1000, INT32_MAX, INT32_MIN};

		for (size_t k = 0; k < ARRAY_SIZE(offsets); k++) {
			uint64_t seq = expects[i] + (uint64_t)offsets[k];

			assert_true(seqs__widen(&seqs, (uint32_t)seq) == seq);
		}
	}
}

/* A number before the first one that concerns us, or before 0, is refused; nothing else changes. */
static void test_before_the_start(void **state)
{
	struct seqs seqs;

	start(&seqs, 3);
	for (uint32_t seq = 0; seq < 3; seq++)
		refuse(&seqs, seq);
	refuse(&seqs, 0xffffffff);
	refuse(&seqs, 0x80000003);
	see(&seqs, 3, 10);
	refuse(&seqs, 0xffffffff);
	settle(&seqs, 20, 21, 4);
	assert_int_equal(nr_lost, 0);
	seqs__free(&seqs);
}

/* A number far ahead is a hole like any other: what follows it fills that from below. */
static void test_far_ahead(void **state)
{
	const uint64_t far = 0x7fffffff;
	struct seqs seqs;

	start(&seqs, 0);
	see(&seqs, far, 100);
	refuse(&seqs, far);
	for (uint64_t seq = 0; seq < 100; seq++)
		see(&seqs, seq, 10 + seq);
	refuse(&seqs, 50);
	settle(&seqs, 200, 201, 103);
	assert_int_equal(nr_lost, 1);
	assert_int_equal(lost[0].first, 100);
	assert_int_equal(seqs.lost, 3);
	see(&seqs, 103, 210);
	settle(&seqs, 300, 301, far + 1);
	assert_int_equal(seqs.seen, 102);
	assert_int_equal(seqs.lost, far + 1 - 102);
	seqs__free(&seqs);
}

/* G8: a number that the counter has not given out is nobody's, and moves nothing. */
static void test_never_given_out(void **state)
{
	const uint32_t forged[] = {10, 11, 1000000, 0x7fffffff, 0x80000009, UINT32_MAX};
	struct seqs seqs;

	start(&seqs, 4);
	seqs.limit = 10;
	for (uint64_t seq = 4; seq < 10; seq++) {
		assert_int_equal(seqs__room(&seqs), 10 - seq);
		for (size_t i = 0; i < ARRAY_SIZE(forged); i++)
			refuse(&seqs, forged[i]);
		see(&seqs, seq, 100 + seq);
	}
	assert_int_equal(seqs__room(&seqs), 0);
	refuse(&seqs, 10);
	seqs.limit = 8; /* a counter that went back */
	assert_int_equal(seqs__room(&seqs), 0);
	settle(&seqs, 200, 201, 10);
	assert_int_equal(nr_lost, 0);
	assert_int_equal(seqs.seen, 6);
	seqs__free(&seqs);
}

static bool inside(uint64_t ns, uint64_t from_ns, uint64_t to_ns)
{
	return ns > from_ns && ns < to_ns;
}

/* G8: a loss lies between two snapshots, and no stamp can say otherwise, only more exactly. */
static void test_hostile_stamps(void **state)
{
	const uint64_t stamps[] = {0,	 1,    999,  1000, 1001,	   1500,
				   1999, 2000, 2001, 5000, UINT64_MAX - 1, UINT64_MAX};

	for (size_t a = 0; a < ARRAY_SIZE(stamps); a++) {
		for (size_t b = 0; b < ARRAY_SIZE(stamps); b++) {
			uint64_t to_ns = inside(stamps[b], 1000, 2000) ? stamps[b] : 2000;
			uint64_t from_ns = inside(stamps[a], 1000, to_ns) ? stamps[a] : 1000;
			uint64_t seq = 0;
			struct seqs seqs;

			start(&seqs, 0);
			settle(&seqs, 1000, 1001, 0);
			while (seq < SEQS_NESTING)
				see(&seqs, seq++, stamps[a]);
			see(&seqs, seq + 1, stamps[b]);
			settle(&seqs, 1990, 2000, seq + 2);
			assert_int_equal(nr_lost, 1);
			expect_hole(0, seq, seq + 1, from_ns, to_ns);
			seqs__free(&seqs);
		}
	}
}

/* At the same instant: a clock that stands still gives no empty interval. */
static void test_clock_stands_still(void **state)
{
	struct seqs seqs;

	start(&seqs, 0);
	settle(&seqs, 500, 500, 0);
	settle(&seqs, 500, 500, 2);
	assert_int_equal(nr_lost, 1);
	expect_hole(0, 0, 2, 499, 500);
	seqs__free(&seqs);
}

/*
 * The model: what is true of each number. An attempt reserves, counts and is stamped; others nest
 * between any two of these steps, each of them in a context of its own.
 */
enum { ATTEMPTS = 40000, CONTEXTS_MAX = 100, NUMBERS = ATTEMPTS + CONTEXTS_MAX };

struct truth {
	uint64_t time_ns[NUMBERS]; /* when it was counted */
	uint64_t stamp_ns[NUMBERS];
	bool lost[NUMBERS];
	uint32_t behind[NUMBERS]; /* how many positions were taken when it was counted */
	uint32_t ring[NUMBERS];	  /* the numbers that are not lost, by position */
	uint32_t nr_ring, nr;
	uint64_t now_ns;
	struct rng rng;
	uint32_t per_mille;  /* of attempts that are lost */
	uint32_t nest_mille; /* of steps between which another nests */
	unsigned contexts;   /* how many can nest in one another */
	bool sure;	     /* no more than SEQS_NESTING: then stamps are lower bounds, too */
};

static void attempt(struct truth *truth, unsigned depth);

/* Time passes between two steps, and something may nest. No more of it near the end: all that was
 * begun must find its place. */
static void pass(struct truth *truth, unsigned depth)
{
	truth->now_ns += rng__range(&truth->rng, 2, 40);
	while (depth + 1 < truth->contexts && truth->nr < ATTEMPTS &&
	       rng__chance(&truth->rng, truth->nest_mille))
		attempt(truth, depth + 1);
}

static void attempt(struct truth *truth, unsigned depth)
{
	bool is_lost = rng__chance(&truth->rng, truth->per_mille);
	uint32_t at = truth->nr_ring, seq;

	truth->nr_ring += !is_lost;
	pass(truth, depth);
	seq = truth->nr++;
	truth->time_ns[seq] = truth->now_ns;
	truth->lost[seq] = is_lost;
	truth->behind[seq] = truth->nr_ring;
	if (!is_lost)
		truth->ring[at] = seq;
	pass(truth, depth);
	truth->stamp_ns[seq] = truth->now_ns;
	pass(truth, depth);
}

static void make_truth(struct truth *truth)
{
	truth->now_ns = 1000;
	while (truth->nr < ATTEMPTS) {
		attempt(truth, 0);
		truth->now_ns += rng__below(&truth->rng, 50);
	}
	truth->sure = truth->contexts <= SEQS_NESTING;
}

/* Hold what was reported against the truth. */
static void check_holes(const struct truth *truth, uint64_t floor_ns, uint64_t attempts)
{
	uint64_t end = 0;

	for (size_t i = 0; i < nr_lost; i++) {
		const struct hole *hole = &lost[i];
		uint64_t inside = 0;

		assert_true(hole->first >= end);
		assert_true(hole->first < hole->end);
		end = hole->end;
		assert_true(end <= attempts);
		assert_true(hole->from_ns < hole->to_ns);
		assert_true(hole->from_ns >= floor_ns);
		for (uint64_t seq = hole->first; seq < hole->end; seq++) {
			if (!truth->lost[seq])
				continue;
			inside++;
			assert_true(!truth->sure || truth->time_ns[seq] > hole->from_ns);
			assert_true(truth->time_ns[seq] <= hole->to_ns);
		}
		assert_true(inside == hole->missing);
	}
}

struct reader {
	struct seqs seqs;
	uint32_t at;	   /* position in the ring */
	uint64_t attempts; /* S of the last snapshot */
	uint64_t t_ns;	   /* and its T */
	uint64_t lost;	   /* in truth, below that */
	uint64_t waiting;  /* of these, not reported yet: holes that were joined across an S */
};

/* One poll: S = attempts, P at least what was reserved for these, drained, settled. */
static void poll(struct reader *r, const struct truth *truth, struct rng *rng, uint64_t attempts,
		 uint32_t ahead_max)
{
	uint64_t t_ns = truth->time_ns[attempts - 1] + 1, bound_ns = t_ns + rng__below(rng, 500);
	uint32_t ahead = (uint32_t)rng__below(rng,
					      truth->nr_ring - truth->behind[attempts - 1] + 1);
	uint32_t head = truth->behind[attempts - 1] + (ahead > ahead_max ? ahead_max : ahead);
	/* What had to wait is older than the last snapshot. */
	uint64_t floor_ns = r->waiting ? 0 : r->t_ns;

	nr_lost = 0;
	for (; r->at < head; r->at++) {
		uint32_t seq = truth->ring[r->at];

		see(&r->seqs, seq, truth->stamp_ns[seq]);
		assert_true(r->seqs.count <= SEQS_HOLES_MAX);
	}
	settle(&r->seqs, t_ns, bound_ns, attempts);
	for (; r->attempts < attempts; r->attempts++)
		r->lost += truth->lost[r->attempts];
	check_holes(truth, floor_ns, attempts);
	r->t_ns = t_ns;
	assert_true(r->seqs.lost <= r->lost);
	assert_true(r->seqs.seen == r->at);
	r->waiting = r->lost - r->seqs.lost;
}

struct run {
	uint64_t seed, per_poll;
	uint32_t ahead_max; /* how many positions a P may be ahead of what its S counts */
	uint32_t per_mille, nest_mille;
	unsigned contexts;
};

/* Returns in how many polls a hole had to wait. */
static unsigned run_model(struct run run)
{
	struct truth *truth = calloc(1, sizeof(*truth));
	struct rng rng = {run.seed};
	struct reader r = {.t_ns = 900};
	unsigned waited = 0;

	assert_non_null(truth);
	truth->rng = rng;
	truth->per_mille = run.per_mille;
	truth->nest_mille = run.nest_mille;
	truth->contexts = run.contexts;
	make_truth(truth);
	start(&r.seqs, 0);
	r.seqs.floor_ns = r.t_ns;
	while (r.attempts < truth->nr) {
		uint64_t attempts = r.attempts + rng__range(&rng, 1, run.per_poll);

		poll(&r, truth, &rng, attempts < truth->nr ? attempts : truth->nr, run.ahead_max);
		waited += r.waiting != 0;
	}
	assert_true(r.seqs.seen + r.seqs.lost == truth->nr);
	assert_true(r.seqs.lost == r.lost);
	assert_int_equal(r.seqs.count, 0);
	for (uint32_t seq = 0; seq < truth->nr; seq += 7)
		refuse(&r.seqs, seq);
	seqs__free(&r.seqs);
	free(truth);
	return waited;
}

/* Losses of all densities, nesting of all kinds, polls of all sizes. L10: each in its poll. */
static void every_shape(const unsigned *contexts, size_t n)
{
	const uint32_t densities[] = {0, 1, 50, 300, 500, 800, 990, 1000};
	const uint64_t polls[] = {1, 10, 1000, 5000};
	struct run run = {.ahead_max = 50};

	for (size_t d = 0; d < ARRAY_SIZE(densities); d++)
		for (size_t c = 0; c < n; c++)
			for (size_t p = 0; p < ARRAY_SIZE(polls); p++) {
				run.seed++;
				run.per_poll = polls[p];
				run.per_mille = densities[d];
				run.contexts = contexts[c];
				run.nest_mille = (uint32_t)run.seed * 37 % 300;
				assert_int_equal(run_model(run), 0);
			}
}

/* As contexts nest on a CPU: task, softirq, interrupt, NMI. */
static void test_model(void **state)
{
	const unsigned contexts[] = {1, 2, SEQS_NESTING};

	every_shape(contexts, ARRAY_SIZE(contexts));
}

/* Tasks that preempt each other in the middle nest deeper: counts are exact all the same. */
static void test_model_preempted(void **state)
{
	const unsigned contexts[] = {SEQS_NESTING + 1, CONTEXTS_MAX};

	every_shape(contexts, ARRAY_SIZE(contexts));
}

/* More holes than are remembered: joined, so wider, but each number still inside, and none uncounted. */
static void test_model_too_many_holes(void **state)
{
	unsigned waited = 0;

	for (uint64_t seed = 1; seed <= 40; seed++)
		waited += run_model((struct run){
			.seed = seed,
			.per_poll = seed % 4 ? 9000 + 150 * seed : NUMBERS,
			.ahead_max = 500 * (uint32_t)seed,
			.per_mille = 300 + 10 * (uint32_t)seed,
			.nest_mille = seed % 2 ? 20 : 250,
			.contexts = SEQS_NESTING,
		});
	assert_true(waited > 0); /* this was tried, too */
}

/* A flood of single losses, far more than are remembered: exact in number, in order, and bounded. */
static void test_single_losses(void **state)
{
	const uint64_t n = 20 * SEQS_HOLES_MAX;
	struct seqs seqs;
	uint64_t missing = 0;

	start(&seqs, 0);
	for (uint64_t seq = 1; seq < n; seq += 2) {
		see(&seqs, seq, 10 * seq);
		assert_true(seqs.count <= SEQS_HOLES_MAX);
	}
	/* What arrives late is taken, also into holes that were joined. */
	for (uint64_t seq = 0; seq < n; seq += 64) {
		see(&seqs, seq, 10 * seq);
		missing++;
	}
	missing = n / 2 - missing;
	settle(&seqs, FAR, FAR, n);
	assert_true(seqs.lost == missing);
	assert_true(nr_lost <= SEQS_HOLES_MAX);
	for (size_t i = 0; i < nr_lost; i++) {
		missing -= lost[i].missing;
		assert_true(!i || lost[i - 1].end <= lost[i].first);
		assert_true(!lost[i].first || lost[i].from_ns <= 10 * (lost[i].first - 1));
		assert_true(lost[i].to_ns >= 10 * lost[i].end);
	}
	assert_true(missing == 0);
	seqs__free(&seqs);
}

/* A number that comes twice into a joined hole is taken once too often: the sums close all the same. */
static void test_twice_into_a_joined_hole(void **state)
{
	const uint64_t n = 4 * SEQS_HOLES_MAX;
	struct seqs seqs;
	uint64_t refused = 0;

	start(&seqs, 0);
	for (uint64_t seq = 1; seq < n; seq += 2)
		see(&seqs, seq, 10 * seq);
	for (int again = 0; again < 5; again++)
		for (uint64_t seq = 1; seq < n; seq += 2)
			refused += !seqs__see(&seqs, (uint32_t)seq, 10 * seq);
	settle(&seqs, FAR, FAR, n);
	assert_true(refused > n);
	assert_true(seqs.seen + seqs.lost == n);
	assert_int_equal(seqs.count, 0);
	seqs__free(&seqs);
}

/*
 * The hole that S stands in was joined with others: it waits for the next S, and what it holds is
 * older than this snapshot.
 */
static void test_joined_across_s(void **state)
{
	const uint64_t n = 4 * SEQS_HOLES_MAX;

	for (uint64_t attempts = 1; attempts < n; attempts += 61) {
		struct seqs seqs;
		uint64_t missing = 0;

		start(&seqs, 0);
		for (uint64_t seq = 1; seq < n; seq += 2)
			see(&seqs, seq, 10 * seq);
		settle(&seqs, 10 * attempts - 7, 10 * attempts - 7, attempts);
		settle(&seqs, FAR, FAR, n);
		for (size_t i = 0; i < nr_lost; i++) {
			missing += lost[i].missing;
			for (uint64_t seq = lost[i].first; seq < lost[i].end; seq++) {
				if (seq % 2)
					continue;
				/* Lost at 10 * seq - 5, so to say. */
				assert_true(!seq || 10 * seq - 5 > lost[i].from_ns);
				assert_true(!seq || 10 * seq - 5 <= lost[i].to_ns);
			}
		}
		assert_true(missing == n / 2);
		assert_true(seqs.lost + seqs.seen == n);
		seqs__free(&seqs);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_none_lost),
		cmocka_unit_test(test_crossed_numbers),
		cmocka_unit_test(test_pending),
		cmocka_unit_test(test_steps_back),
		cmocka_unit_test(test_exactly_those),
		cmocka_unit_test(test_nothing_but_losses),
		cmocka_unit_test(test_settle_inside_a_hole),
		cmocka_unit_test(test_every_order_of_filling),
		cmocka_unit_test(test_low_half_wraps),
		cmocka_unit_test(test_widen),
		cmocka_unit_test(test_before_the_start),
		cmocka_unit_test(test_far_ahead),
		cmocka_unit_test(test_never_given_out),
		cmocka_unit_test(test_hostile_stamps),
		cmocka_unit_test(test_clock_stands_still),
		cmocka_unit_test(test_model),
		cmocka_unit_test(test_model_preempted),
		cmocka_unit_test(test_model_too_many_holes),
		cmocka_unit_test(test_single_losses),
		cmocka_unit_test(test_twice_into_a_joined_hole),
		cmocka_unit_test(test_joined_across_s),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	return r ? 1 : 0;
}
