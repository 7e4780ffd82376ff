// SPDX-License-Identifier: BSD-2-Clause
/*
 * waits.c, delays.c: how long tasks waited for a CPU, by wake-ups (O18) and by the kernel's totals, in
 * whatever order CPUs are read.
 */
#include "tests/unit/state/usage_cases.h"

/* ---- waiting ---------------------------------------------------------------------------------- */

static void wake(int cpu, uint64_t stamp_ns, uint32_t tid)
{
	struct weir_wakeup wakeup = {.target = {feed__pid(&feed, tid), tid}};

	feed__event(&feed, cpu, stamp_ns, WEIR_T_WAKEUP, &wakeup, sizeof(wakeup), 0);
}

/* O18: sorted by the stream, as they are here. */
static void test_o18_latency(void **state)
{
	const struct usage_snapshot *snapshot;
	const struct usage_row *row;

	(void)state;
	wake(1, 1494663860125, 7);
	sw(0, 1494663899990, 0, 7);
	snapshot = take(1494663899999);
	row = thread(snapshot, 7);
	assert_int_equal(row->delays->max_ns, 39865);
	assert_int_equal(delays__quantile_ns(row->delays, 500), 39865);
	assert_int_equal(row->now.wait_ns, 39865);
	sw(0, 1494663928373, 7, 8);
	wake(1, 1504098252756, 7);
	sw(0, 1504100353302, 8, 7);
	row = thread(take(1504100353302), 7);
	assert_int_equal(row->delays->count, 1);
	assert_int_equal(row->delays->max_ns, 2100546);
	assert_int_equal(row->total.wait_ns, 39865 + 2100546);
}

static void test_preempted_waits(void **state)
{
	const struct usage_row *row;

	(void)state;
	sw(1, 10, 0, 7);
	feed__switch(&feed, 1, 20, 7, 8, 0);
	/* It waits already. */
	wake(0, 25, 7);
	sw(1, 32, 8, 7);
	row = thread(take(40), 7);
	assert_int_equal(row->delays->max_ns, 12);
	assert_int_equal(row->now.waits_unknown, 1); /* the first */
	/* It runs. */
	wake(0, 45, 7);
	sw(1, 50, 7, 8);
	sw(1, 60, 8, 7);
	row = thread(take(70), 7);
	assert_null(row->delays);
	assert_int_equal(row->now.waits_unknown, 1);
}

static void test_loss_hides_waits(void **state)
{
	const struct usage_row *row;

	(void)state;
	sw(0, 5, 0, 8);
	wake(1, 10, 7);
	feed__lost(&feed, 1, 15, 30, 1);
	sw(1, 50, 0, 7);
	row = thread(take(60), 7);
	assert_null(row->delays);
	assert_int_equal(row->now.waits_unknown, 1);
	sw(1, 70, 7, 0);
	wake(1, 80, 7);
	sw(1, 85, 0, 7);
	assert_int_equal(thread(take(90), 7)->delays->max_ns, 5);
}

/* ---- waiting, by the kernel's totals ---------------------------------------------------------- */

static void leaves(int cpu, uint64_t stamp_ns, uint32_t next, uint64_t moves, uint64_t waited_ns)
{
	struct weir_lean_counted one = {
		.lean = feed__lean(&feed, cpu, stamp_ns, next, FEED_SLEEPS)};

	one.lean.flags &= (uint16_t)~WEIR_LEAN_NO_TOTALS;
	one.lean.prev_totals = moves << WEIR_LEAN_DELAY_BITS | waited_ns;
	feed__record(&feed, cpu, &one, sizeof(one.lean));
}

static void test_totals(void **state)
{
	const struct usage_row *row;

	(void)state;
	usage__begin(feed.usage, 1);
	feed.start_ns[7] = 5;
	leaves(1, 10, 7, 0, 0);
	leaves(1, 20, 0, 0, 3);
	leaves(1, 30, 7, 0, 0);
	leaves(1, 40, 0, 0, 10);
	row = thread(take(50), 7);
	/* It began after the accounts did: so did its totals. */
	assert_int_equal(row->now.wait_ns, 10);
	assert_int_equal(row->delays->count, 2);
	assert_int_equal(row->delays->max_ns, 7);
	assert_int_equal(row->now.migrations, 0);
	assert_int_equal(row->now.waits_unknown, 0);
}

static void test_totals_of_before(void **state)
{
	const struct usage_row *row;

	(void)state;
	usage__begin(feed.usage, 9);
	leaves(1, 10, 7, 0, 0);
	leaves(1, 20, 0, 0, 1000000);
	leaves(1, 30, 7, 0, 0);
	leaves(1, 40, 0, 0, 1000004);
	row = thread(take(50), 7);
	assert_int_equal(row->now.wait_ns, 4);
	assert_int_equal(row->delays->count, 1);
	assert_int_equal(row->now.waits_unknown, 1);
}

/* From CPU 0 to 1, 0, 1 and 0, and CPU 0 is read first. */
static void test_totals_of_two_cpus(void **state)
{
	const struct usage_snapshot *snapshot;
	const struct usage_row *row;

	(void)state;
	usage__begin(feed.usage, 1);
	feed.start_ns[7] = 5;
	leaves(0, 10, 7, 0, 0);
	leaves(0, 12, 0, 0, 1);
	leaves(0, 30, 7, 0, 0);
	leaves(0, 32, 0, 2, 7); /* 1, 2, 4 */
	leaves(0, 33, 7, 0, 0);
	leaves(0, 34, 0, 2, 15);
	leaves(0, 50, 7, 0, 0);
	leaves(0, 52, 0, 4, 63);
	leaves(1, 20, 7, 0, 0);
	leaves(1, 22, 0, 1, 3);
	leaves(1, 40, 7, 0, 0);
	leaves(1, 42, 0, 3, 31);
	snapshot = take(60);
	row = thread(snapshot, 7);
	assert_int_equal(row->now.wait_ns, 63);
	assert_int_equal(row->now.migrations, 4);
	/* A move is that of the CPU to which it was. */
	assert_int_equal(snapshot->cpus[0].now.migrations, 2);
	assert_int_equal(snapshot->cpus[1].now.migrations, 2);
	assert_int_equal(row->delays->count, 6);
	assert_int_equal(row->delays->max_ns, 32);
	assert_int_equal(row->now.waits_unknown, 0);
}

/* What is beyond the watermark of a CPU waits for the next round. */
static void test_totals_settle_later(void **state)
{
	const struct usage_row *row;

	(void)state;
	usage__begin(feed.usage, 1);
	feed.start_ns[7] = 5;
	usage__cpu(feed.usage, 1);
	leaves(0, 10, 7, 0, 0);
	leaves(0, 12, 0, 0, 1);
	leaves(0, 30, 7, 0, 0);
	leaves(0, 32, 0, 2, 7);
	row = thread(take(15), 7);
	assert_int_equal(row->now.wait_ns, 1);
	leaves(1, 20, 7, 0, 0);
	leaves(1, 22, 0, 1, 3);
	row = thread(take(60), 7);
	assert_int_equal(row->total.wait_ns, 7);
	assert_int_equal(row->delays->count, 2);
	assert_int_equal(row->delays->max_ns, 4);
}

/* The sum is right whatever was lost; how many waits it was nobody knows. */
static void test_totals_over_a_gap(void **state)
{
	const struct usage_row *row;

	(void)state;
	usage__begin(feed.usage, 1);
	feed.start_ns[7] = 5;
	leaves(1, 10, 7, 0, 0);
	leaves(1, 20, 0, 0, 3);
	feed__lost(&feed, 1, 20, 30, 2);
	leaves(1, 30, 7, 0, 0);
	leaves(1, 40, 0, 0, 1000);
	row = thread(take(50), 7);
	assert_int_equal(row->now.wait_ns, 1000);
	assert_int_equal(row->delays->count, 1);
	assert_int_equal(row->delays->max_ns, 3);
	assert_int_equal(row->now.waits_unknown, 1);
}

/* A CPU that is away switches to nobody: what others wait meanwhile is known. */
static void test_away_hides_nothing(void **state)
{
	const struct usage_row *row;

	(void)state;
	usage__begin(feed.usage, 1);
	feed.start_ns[7] = 5;
	feed__seed(&feed, 0, 1, 0);
	feed__seed(&feed, 1, 1, 0);
	leaves(1, 10, 7, 0, 0);
	leaves(1, 20, 0, 0, 3);
	usage__watermark(feed.usage, 0, 15, true);
	usage__watermark(feed.usage, 0, 25, true);
	leaves(1, 30, 7, 0, 0);
	leaves(1, 40, 0, 0, 10);
	row = thread(take(50), 7);
	assert_int_equal(row->now.waits_unknown, 0);
	assert_int_equal(row->delays->count, 2);
	feed__switch(&feed, 0, 60, 0, 9, FEED_AWAY);
	leaves(1, 65, 7, 0, 0);
	leaves(1, 70, 0, 0, 30);
	row = thread(take(80), 7);
	assert_int_equal(row->now.waits_unknown, 0);
	assert_int_equal(row->delays->max_ns, 20);
}

static void test_totals_wrap(void **state)
{
	const uint64_t most = (UINT64_C(1) << WEIR_LEAN_DELAY_BITS) - 1;
	const struct usage_row *row;

	(void)state;
	usage__begin(feed.usage, 9);
	leaves(1, 10, 7, 0, 0);
	leaves(1, 20, 0, 0xffff, most);
	leaves(1, 30, 7, 0, 0);
	leaves(1, 40, 0, 0, 4);
	row = thread(take(50), 7);
	assert_int_equal(row->now.wait_ns, 5);
	assert_int_equal(row->now.migrations, 1);
}

/* The totals are the thread's, under whichever name. */
static void test_totals_renamed(void **state)
{
	struct weir_lean_counted renamed;
	const struct usage_row *row;

	(void)state;
	usage__begin(feed.usage, 1);
	forked(5, 70, 70, 5, "old");
	forked(6, 70, 72, 6, "old");
	leaves(1, 10, 72, 0, 0);
	leaves(1, 20, 0, 0, 100);
	leaves(1, 30, 72, 0, 0);
	renamed.lean = feed__lean(&feed, 1, 40, 0, FEED_SLEEPS | FEED_RENAMED);
	renamed.lean.flags &= (uint16_t)~WEIR_LEAN_NO_TOTALS;
	renamed.lean.prev_totals = 103;
	feed__record(&feed, 1, &renamed, sizeof(renamed.lean));
	leaves(1, 50, 70, 0, 0);
	leaves(1, 60, 0, 0, 110);
	row = thread(take(90), 70);
	assert_int_equal(row->now.wait_ns, 10);
	assert_int_equal(row->delays->count, 2);
	assert_int_equal(row->delays->max_ns, 7);
	assert_int_equal(row->now.waits_unknown, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STREAM("O18 latency", test_o18_latency),
		STREAM("preempted", test_preempted_waits),
		STREAM("loss hides waits", test_loss_hides_waits),
		LEAN("totals", test_totals),
		LEAN("totals from before", test_totals_of_before),
		LEAN("totals of two CPUs", test_totals_of_two_cpus),
		LEAN("totals settle later", test_totals_settle_later),
		LEAN("totals over a gap", test_totals_over_a_gap),
		LEAN("a CPU that is away hides nothing", test_away_hides_nothing),
		LEAN("totals wrap", test_totals_wrap),
		LEAN("totals under another name", test_totals_renamed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
