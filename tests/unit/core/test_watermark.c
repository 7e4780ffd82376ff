/* SPDX-License-Identifier: BSD-2-Clause */
/* order/watermark: G2's "newest T whose P is drained", G3, O16, O17. */
#include "unit.h"

#include "order/watermark.h"

static struct wm_snapshot snapshot(uint64_t t_ns, uint64_t pos)
{
	return (struct wm_snapshot){
		.t_ns = t_ns,
		.bound_ns = t_ns + 3,
		.attempts = 1000 + t_ns,
		.pos = pos,
	};
}

static void push(struct wm_fifo *fifo, uint64_t t_ns, uint64_t pos)
{
	struct wm_snapshot s = snapshot(t_ns, pos);

	wm_fifo__push(fifo, &s);
}

static void expect_reached(struct wm_fifo *fifo, uint64_t pos, uint64_t t_ns, uint64_t snapshot_pos)
{
	struct wm_snapshot out;

	assert_true(wm_fifo__reach(fifo, pos, &out));
	assert_true(out.t_ns == t_ns);
	assert_true(out.pos == snapshot_pos);
}

static void expect_nothing(struct wm_fifo *fifo, uint64_t pos)
{
	struct wm_snapshot out;

	assert_false(wm_fifo__reach(fifo, pos, &out));
}

static void test_newest_that_is_reached(void **state)
{
	struct wm_fifo fifo = {0};

	expect_nothing(&fifo, 0);
	push(&fifo, 10, 100);
	push(&fifo, 11, 100);
	push(&fifo, 12, 164);
	push(&fifo, 13, 200);
	expect_nothing(&fifo, 99);
	expect_reached(&fifo, 100, 11, 100);
	expect_nothing(&fifo, 163);
	expect_reached(&fifo, 199, 12, 164);
	expect_reached(&fifo, 1000, 13, 200);
	expect_nothing(&fifo, 1000);
}

/* An idle ring, or one that is offline (W1, W4): its P stands, its T moves. */
static void test_idle_ring(void **state)
{
	struct wm_fifo fifo = {0};

	for (uint64_t t_ns = 1; t_ns < 100; t_ns++) {
		push(&fifo, t_ns, 0);
		expect_reached(&fifo, 0, t_ns, 0);
	}
}

static void test_positions_wrap(void **state)
{
	const uint64_t start = 0ull - 64;
	struct wm_fifo fifo = {0};

	push(&fifo, 10, start);
	push(&fifo, 11, start + 56);
	push(&fifo, 12, start + 64); /* 0 */
	push(&fifo, 13, start + 128);
	expect_nothing(&fifo, start - 8);
	expect_reached(&fifo, start, 10, start);
	expect_reached(&fifo, start + 64, 12, 0);
	expect_nothing(&fifo, start + 120);
	expect_reached(&fifo, start + 128, 13, 64);
}

/* Full: what has come since is known by the last of it. */
static void test_full(void **state)
{
	struct wm_fifo fifo = {0};

	for (uint64_t t_ns = 1; t_ns <= 100; t_ns++)
		push(&fifo, t_ns, 8 * t_ns);
	for (uint64_t t_ns = 1; t_ns < WM_FIFO_LEN; t_ns++)
		expect_reached(&fifo, 8 * t_ns + 7, t_ns, 8 * t_ns);
	expect_nothing(&fifo, 8 * 100 - 1);
	expect_reached(&fifo, 8 * 100, 100, 8 * 100);
}

/* O16: held by one record for 3 s of polls, then free: complete up to this poll's T, not to an old one. */
static void test_held_and_then_free(void **state)
{
	struct wm_fifo fifo = {0};

	for (uint64_t t_ns = 1; t_ns <= 3000; t_ns++) {
		push(&fifo, t_ns, 8 * t_ns);
		expect_nothing(&fifo, 0);
	}
	expect_reached(&fifo, 8 * 3000, 3000, 8 * 3000);
	/* And as new again after it. */
	push(&fifo, 3001, 8 * 3001);
	expect_nothing(&fifo, 8 * 3000);
	expect_reached(&fifo, 8 * 3001, 3001, 8 * 3001);
}

/* O17: a reader that is always the same number of polls behind still moves T. */
static void test_always_behind(void **state)
{
	for (uint64_t behind = 1; behind < 5 * WM_FIFO_LEN; behind++) {
		struct wm_snapshot out = {0};
		struct wm_fifo fifo = {0};
		uint64_t reached_ns = 0;

		for (uint64_t t_ns = 1; t_ns <= 1000; t_ns++) {
			push(&fifo, t_ns, 64 * t_ns);
			if (t_ns > behind && wm_fifo__reach(&fifo, 64 * (t_ns - behind), &out))
				reached_ns = out.t_ns;
		}
		assert_in_range(reached_ns, 1000 - 3 * behind - WM_FIFO_LEN, 1000 - behind);
	}
}

/* The truth: every snapshot ever pushed. */
struct all {
	struct wm_snapshot entry[2000];
	size_t count;
};

/* Is `out` a true statement, given that the ring is drained to `pos`? */
static void expect_true_statement(const struct all *all, uint64_t pos,
				  const struct wm_snapshot *out)
{
	for (size_t i = 0; i < all->count; i++) {
		const struct wm_snapshot *s = &all->entry[i];

		if (s->pos != out->pos || s->attempts != out->attempts ||
		    s->bound_ns != out->bound_ns)
			continue;
		assert_true((int64_t)(pos - s->pos) >= 0);
		assert_true(out->t_ns == s->t_ns);
		return;
	}
	fail_msg("no snapshot has this S and P");
}

/* As long as none had to make room, nothing newer can be known than what is said. */
static void expect_newest(const struct all *all, uint64_t pos, uint64_t t_ns)
{
	for (size_t i = 0; i < all->count; i++)
		if ((int64_t)(pos - all->entry[i].pos) >= 0)
			assert_true(all->entry[i].t_ns <= t_ns);
}

static void run_at_random(struct rng *rng, uint64_t drain_chance)
{
	uint64_t pos = rng__next(rng) & ~7ull, head = pos, t_ns = 1, reached_ns = 0;
	struct wm_fifo fifo = {0};
	struct all all = {0};
	bool replaced = false;

	while (all.count < ARRAY_SIZE(all.entry)) {
		struct wm_snapshot s, out;

		t_ns += rng__range(rng, 1, 50);
		head += 8 * rng__below(rng, 4);
		s = snapshot(t_ns, head);
		all.entry[all.count++] = s;
		replaced |= fifo.count == WM_FIFO_LEN;
		wm_fifo__push(&fifo, &s);
		assert_true(fifo.count <= WM_FIFO_LEN);
		if (rng__chance(rng, (uint32_t)drain_chance))
			pos += rng__below(rng, head - pos + 1) & ~7ull;
		if (!wm_fifo__reach(&fifo, pos, &out))
			continue;
		expect_true_statement(&all, pos, &out);
		/* Inside one ring T never goes back. */
		assert_true(out.t_ns > reached_ns);
		reached_ns = out.t_ns;
		replaced &= fifo.count != 0;
		if (!replaced)
			expect_newest(&all, pos, out.t_ns);
	}
}

static void test_at_random(void **state)
{
	struct rng rng = {7};

	for (int run = 0; run < 20; run++)
		run_at_random(&rng, 50 + 45 * (uint64_t)run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_newest_that_is_reached),
		cmocka_unit_test(test_idle_ring),
		cmocka_unit_test(test_positions_wrap),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_held_and_then_free),
		cmocka_unit_test(test_always_behind),
		cmocka_unit_test(test_at_random),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	return r ? 1 : 0;
}
