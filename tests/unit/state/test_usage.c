// SPDX-License-Identifier: BSD-2-Clause
/*
 * usage.c, slices.c, runners.c, snapshot.c: the scenarios A1 to A18, as far as they do not need a kernel;
 * each snapshot has to add up.
 */
#include "tests/unit/state/usage_cases.h"

#include <errno.h>

/* ---- slices ----------------------------------------------------------------------------------- */

static void test_a1_slices(void **state)
{
	const struct usage_snapshot *snapshot;

	(void)state;
	usage__begin(feed.usage, 10);
	sw(1, 10, 0, 7);
	sw(1, 20, 7, 0);
	sw(1, 100, 0, 7);
	sw(1, 110, 7, 0);
	snapshot = take(110);
	assert_int_equal(time_of(snapshot, 7), 20);
	assert_int_equal(idle_of(snapshot, 1), 80);
	assert_int_equal(gap_of(snapshot, 1), 0);
	assert_int_equal(thread(snapshot, 7)->now.voluntary, 2);
	assert_int_equal(snapshot->switches, 4);
}

/* A2: told as a gap, or by the numbers alone. */
static void a2(bool told)
{
	const struct usage_snapshot *snapshot;

	usage__begin(feed.usage, 10);
	sw(1, 10, 0, 7);
	if (told)
		feed__lost(&feed, 1, 10, 110, 2);
	else
		feed.seq[1] += 2;
	sw(1, 110, 7, 0);
	snapshot = take(130);
	assert_int_equal(time_of(snapshot, 7), 0);
	assert_int_equal(gap_of(snapshot, 1), 100);
	assert_int_equal(idle_of(snapshot, 1), 20);
}

static void test_a2_hole_is_told(void **state)
{
	(void)state;
	a2(true);
}

static void test_a2_hole_in_numbers(void **state)
{
	(void)state;
	a2(false);
}

static void test_a3_seed(void **state)
{
	const struct usage_snapshot *snapshot;

	(void)state;
	usage__begin(feed.usage, 40);
	feed__seed(&feed, 1, 40, 9);
	sw(1, 50, 9, 7);
	sw(1, 60, 7, 0);
	snapshot = take(60);
	assert_int_equal(time_of(snapshot, 9), 10);
	assert_int_equal(time_of(snapshot, 7), 10);
	assert_int_equal(gap_of(snapshot, 1), 0);
}

static void test_a3_no_seed(void **state)
{
	const struct usage_snapshot *snapshot;

	(void)state;
	sw(1, 50, 9, 7);
	sw(1, 60, 7, 0);
	snapshot = take(60);
	assert_int_equal(gap_of(snapshot, 1), 50);
	assert_int_equal(time_of(snapshot, 7), 10);
	if (feed__row(snapshot, USAGE_THREAD, 9, 0))
		assert_int_equal(time_of(snapshot, 9), 0);
}

static void test_a4_open_slice(void **state)
{
	const struct usage_snapshot *snapshot;

	(void)state;
	usage__begin(feed.usage, 10);
	sw(1, 10, 0, 7);
	snapshot = take(1000);
	assert_int_equal(time_of(snapshot, 7), 990);
	assert_int_equal(thread(snapshot, 7)->state, USAGE_RUNNING);
	/* Once. */
	assert_int_equal(time_of(take(1000), 7), 0);
	sw(1, 1500, 7, 0);
	snapshot = take(1500);
	assert_int_equal(time_of(snapshot, 7), 500);
	assert_int_equal(thread(snapshot, 7)->total.time_ns, 1490);
}

static void test_a5_reports(void **state)
{
	const uint64_t s = 1000000000;

	(void)state;
	sw(0, 0, 5, 0);
	sw(0, 1 * s, 0, 42);
	assert_int_equal(time_of(take(3 * s), 42), 2 * s);
	assert_int_equal(time_of(take(5 * s), 42), 2 * s);
	sw(0, 6 * s, 42, 0);
	assert_int_equal(time_of(take(7 * s), 42), 1 * s);
}

static void test_pinned_for_3_seconds(void **state)
{
	const uint64_t s = 1000000000;

	(void)state;
	sw(0, 0, 5, 42);
	for (uint64_t at = s; at <= 3 * s; at += s)
		assert_int_equal(time_of(take(at), 42), s);
}

/* What was billed and was another's comes back. */
static void test_late_stamp(void **state)
{
	const struct usage_snapshot *snapshot;

	(void)state;
	usage__begin(feed.usage, 10);
	sw(1, 10, 0, 7);
	assert_int_equal(time_of(take(1000), 7), 990);
	sw(1, 900, 7, 8);
	snapshot = take(1100);
	assert_int_equal(time_of(snapshot, 7), -100);
	assert_int_equal(thread(snapshot, 7)->total.time_ns, 890);
	assert_int_equal(time_of(snapshot, 8), 200);
}

/* A gap that begins before what was billed. */
static void test_late_gap(void **state)
{
	const struct usage_snapshot *snapshot;

	(void)state;
	usage__begin(feed.usage, 10);
	sw(1, 10, 0, 7);
	assert_int_equal(time_of(take(1000), 7), 990);
	feed__lost(&feed, 1, 990, 1200, 1);
	sw(1, 1200, 8, 0);
	snapshot = take(1300);
	assert_int_equal(thread(snapshot, 7)->total.time_ns, 980);
	assert_int_equal(gap_of(snapshot, 1), 210);
	assert_int_equal(idle_of(snapshot, 1), 100);
}

/* Its bounds are as narrow as could be proved, and may lie before a switch that was seen. */
static void test_wide_gap(void **state)
{
	const struct usage_snapshot *snapshot;

	(void)state;
	usage__begin(feed.usage, 10);
	sw(1, 10, 0, 7);
	sw(1, 30, 7, 8);
	feed__lost(&feed, 1, 20, 50, 1);
	sw(1, 50, 9, 0);
	snapshot = take(60);
	assert_int_equal(time_of(snapshot, 7), 20);
	assert_int_equal(gap_of(snapshot, 1), 20);
	assert_int_equal(idle_of(snapshot, 1), 10);
}

static void test_slice_from_before(void **state)
{
	const struct usage_snapshot *snapshot;

	(void)state;
	usage__begin(feed.usage, 40);
	feed__seed(&feed, 1, 30, 9);
	sw(1, 35, 9, 8);
	sw(1, 50, 8, 0);
	snapshot = take(60);
	assert_int_equal(time_of(snapshot, 9), 0);
	assert_int_equal(time_of(snapshot, 8), 10);
	assert_int_equal(gap_of(snapshot, 1), 0);
}

static void test_gap_goes_on(void **state)
{
	(void)state;
	usage__begin(feed.usage, 10);
	sw(1, 10, 0, 7);
	feed__lost(&feed, 1, 20, 50, 3);
	assert_int_equal(gap_of(take(50), 1), 30);
	/* Who came meanwhile is not known until somebody goes. */
	assert_int_equal(gap_of(take(80), 1), 30);
	feed__lost(&feed, 1, 50, 90, 0);
	sw(1, 90, 3, 0);
	assert_int_equal(gap_of(take(100), 1), 10);
}

/* ---- identity --------------------------------------------------------------------------------- */

static void test_a8_pid_reuse(void **state)
{
	const struct usage_row *first, *second;
	const struct usage_snapshot *snapshot;

	(void)state;
	forked(5, 7, 7, 5, "first");
	sw(1, 10, 0, 7);
	exited(19, 7, 7, 5, true);
	feed__switch(&feed, 1, 20, 7, 0, FEED_DIES);
	forked(25, 7, 7, 25, "second");
	sw(1, 30, 0, 7);
	sw(1, 50, 7, 0);
	snapshot = take(60);
	first = feed__row(snapshot, USAGE_THREAD, 7, 5);
	second = feed__row(snapshot, USAGE_THREAD, 7, 25);
	assert_non_null(first);
	assert_non_null(second);
	assert_int_equal(first->now.time_ns, 10);
	assert_int_equal(first->state, USAGE_EXITED);
	assert_int_equal(second->now.time_ns, 20);
	assert_int_equal(second->state, USAGE_SLEEPING);
	assert_string_equal(second->comm, "second");
}

static void test_a16_last_switch_after_exit(void **state)
{
	const struct usage_snapshot *snapshot;

	(void)state;
	forked(5, 7, 7, 5, "mortal");
	sw(1, 10, 0, 7);
	exited(20, 7, 7, 5, true);
	/* Its pid is another's before it has left. */
	forked(25, 7, 7, 25, "heir");
	feed__switch(&feed, 1, 30, 7, 0, FEED_DIES);
	snapshot = take(40);
	assert_int_equal(feed__row(snapshot, USAGE_THREAD, 7, 5)->now.time_ns, 20);
	assert_int_equal(feed__row(snapshot, USAGE_THREAD, 7, 25)->now.time_ns, 0);
	assert_int_equal(feed__row(snapshot, USAGE_THREAD, 7, 25)->state, USAGE_SLEEPING);
}

/* A17: thread 72 of 70 execs while it runs. Its exec event comes, or its new name is all there is. */
static void test_a17_rename(void **state)
{
	struct weir_exec exec = {.id = {70, 70}, .old_tid = 72, .start_ns = 5, .comm = "new"};
	const struct usage_snapshot *snapshot;
	int64_t together = 0;

	(void)state;
	forked(5, 70, 70, 5, "old");
	forked(6, 70, 72, 6, "old");
	sw(1, 10, 0, 72);
	exited(12, 70, 70, 5, false);
	if (!feed.lean)
		feed__event(&feed, 1, 20, WEIR_T_EXEC, &exec, sizeof(exec), 0);
	feed__switch(&feed, 1, 30, 70, 0, FEED_SLEEPS | FEED_RENAMED);
	sw(1, 50, 0, 70);
	sw(1, 60, 70, 0);
	snapshot = take(70);
	assert_int_equal(gap_of(snapshot, 1), 10);
	assert_int_equal(snapshot->trouble.unseen, 0);
	for (size_t i = 0; i < snapshot->nr_rows; i++)
		if (snapshot->rows[i].pid == 70)
			together += snapshot->rows[i].now.time_ns;
	assert_int_equal(together, 30);
	assert_int_equal(time_of(snapshot, 70), feed.lean ? 30 : 20);
	assert_int_equal(thread(snapshot, 70)->state, USAGE_SLEEPING);
	assert_int_equal(thread(snapshot, 72)->state, USAGE_EXITED);
	/* That the old leader has ended is told later than who has taken its place. */
	exited(13, 70, 70, 5, false);
	snapshot = take(3000000000);
	assert_int_equal(thread(snapshot, 70)->state, USAGE_SLEEPING);
	assert_null(feed__row(snapshot, USAGE_THREAD, 72, 0));
}

static void test_a18_unseen(void **state)
{
	const struct usage_snapshot *snapshot;

	(void)state;
	usage__begin(feed.usage, 10);
	sw(1, 10, 0, 7);
	feed__switch(&feed, 1, 40, 8, 9, FEED_SLEEPS | FEED_UNSEEN);
	sw(1, 50, 9, 0);
	snapshot = take(50);
	assert_int_equal(time_of(snapshot, 7), 0);
	assert_int_equal(gap_of(snapshot, 1), 30);
	assert_int_equal(time_of(snapshot, 9), 10);
	assert_int_equal(snapshot->trouble.unseen, 1);
}

/* Also what was billed of the slice: nobody knows when it ended. */
static void test_unseen_after_a_report(void **state)
{
	const struct usage_snapshot *snapshot;

	(void)state;
	usage__begin(feed.usage, 10);
	sw(1, 10, 0, 7);
	assert_int_equal(time_of(take(100), 7), 90);
	feed__switch(&feed, 1, 140, 8, 0, FEED_SLEEPS | FEED_UNSEEN);
	snapshot = take(150);
	assert_int_equal(thread(snapshot, 7)->total.time_ns, 0);
	assert_int_equal(gap_of(snapshot, 1), 130);
}

/* ---- faults ----------------------------------------------------------------------------------- */

static void test_a11_stamp_steps_back(void **state)
{
	const struct usage_snapshot *snapshot;

	(void)state;
	usage__begin(feed.usage, 10);
	sw(1, 10, 0, 7);
	sw(1, 100, 7, 8);
	sw(1, 50, 8, 9);
	sw(1, 150, 9, 0);
	snapshot = take(200);
	assert_int_equal(snapshot->trouble.steps_back, 1);
	assert_int_equal(time_of(snapshot, 7), 90);
	assert_int_equal(gap_of(snapshot, 1), 50);
	assert_int_equal(idle_of(snapshot, 1), 50);
	if (feed__row(snapshot, USAGE_THREAD, 8, 0))
		assert_int_equal(time_of(snapshot, 8), 0);
}

static void test_cpu_goes_away(void **state)
{
	const struct usage_snapshot *snapshot;

	(void)state;
	usage__begin(feed.usage, 10);
	sw(0, 10, 5, 0);
	sw(1, 10, 0, 7);
	sw(1, 30, 7, 0);
	if (feed.lean)
		usage__watermark(feed.usage, 1, 100, true);
	snapshot = take(100);
	if (feed.lean) {
		assert_int_equal(gap_of(snapshot, 1), 70);
		assert_true(snapshot->cpus[1].away);
	} else {
		feed__lost(&feed, 1, 30, 200, 0);
	}
	feed__switch(&feed, 1, 200, 0, 8, FEED_AWAY);
	if (feed.lean)
		usage__watermark(feed.usage, 1, 250, false);
	snapshot = take(250);
	assert_int_equal(feed__row(snapshot, USAGE_GAP, 1, 0)->total.time_ns, 170);
	assert_int_equal(idle_of(snapshot, 0), 150);
	assert_int_equal(time_of(snapshot, 8), 50);
	assert_false(snapshot->cpus[1].away);
}

/* A CPU that nobody has heard of until now was not there: that is a gap, and no hole in the sum. */
static void test_cpu_comes_later(void **state)
{
	const struct usage_snapshot *snapshot;

	(void)state;
	usage__begin(feed.usage, 10);
	sw(0, 10, 5, 0);
	take(100);
	feed__seed(&feed, 3, 150, 9);
	snapshot = take(200);
	assert_int_equal(snapshot->nr_cpus, 2);
	assert_int_equal(gap_of(snapshot, 3), 50);
	assert_int_equal(time_of(snapshot, 9), 50);
	assert_int_equal(feed__row(snapshot, USAGE_GAP, 3, 0)->total.time_ns, 140);
}

static void test_broken_records(void **state)
{
	struct weir_lean_counted bad = {.lean = {.type = 99}};
	struct weir_switch sw_record = {.next = {1, 1}};
	struct weir_event event = {
		.type = WEIR_T_SWITCH, .data = &sw_record, .len = sizeof(sw_record) - 1};

	(void)state;
	record(1, &bad);
	usage__records(feed.usage, 1, &(struct weir_record){.type = WEIR_T_LEAN_SWITCH},
		       sizeof(struct weir_record), 1);
	usage__records(feed.usage, -1, (const struct weir_record *)&bad, sizeof(bad), 1);
	usage__records(feed.usage, USAGE_CPUS_MAX, (const struct weir_record *)&bad, sizeof(bad),
		       1);
	assert_int_equal(usage__sched(feed.usage, &event), -EBADMSG);
	assert_int_equal(take(10)->trouble.broken, 3);
}

/* One whose every switch the kernel has hidden is told of all the same, once. */
static void test_ended_unseen(void **state)
{
	(void)state;
	forked(5, 20, 20, 5, "short");
	exited(8, 20, 20, 5, true);
	sw(1, 10, 0, 7);
	assert_true(thread(take(10), 20)->ended);
	assert_false(thread(take(20), 20)->ended);
}

/* ---- what is counted -------------------------------------------------------------------------- */

static struct weir_lean_counted counted(uint64_t stamp_ns, uint32_t next, uint64_t cycles)
{
	struct weir_lean_counted record = {
		.lean = feed__lean(&feed, 1, stamp_ns, next, FEED_SLEEPS),
		.count = {cycles, 2 * cycles, WEIR_LEAN_NO_COUNT},
	};

	return record;
}

static void switch_counted(uint64_t stamp_ns, uint32_t next, uint64_t cycles)
{
	struct weir_lean_counted one = counted(stamp_ns, next, cycles);

	record(1, &one);
}

static void test_a12_counters(void **state)
{
	const struct usage_snapshot *snapshot;
	const struct usage_row *row;

	(void)state;
	switch_counted(10, 7, 10);
	switch_counted(20, 0, 21);
	switch_counted(30, 7, 30);
	switch_counted(40, 0, 42);
	snapshot = take(40);
	row = thread(snapshot, 7);
	assert_int_equal(row->now.counter[WEIR_LEAN_CYCLES], 23);
	assert_int_equal(row->now.counter[WEIR_LEAN_INSTRUCTIONS], 46);
	assert_int_equal(row->now.uncounted, 0);
	assert_int_equal(snapshot->cpus[0].now.counter[WEIR_LEAN_CYCLES], 23);
	/* One that no record has is none of this machine's. */
	assert_int_equal(snapshot->counters, 1u << WEIR_LEAN_CYCLES | 1u << WEIR_LEAN_INSTRUCTIONS);
}

/* A counter that there is says nothing where it could not be read, not even 0; the others count on. */
static void test_a12_unread(void **state)
{
	struct weir_lean_counted one;
	const struct usage_row *row;

	(void)state;
	one = counted(10, 7, 10);
	one.count[WEIR_LEAN_CACHE_MISSES] = 100;
	record(1, &one);
	switch_counted(20, 0, 21);
	switch_counted(30, 7, 30);
	one = counted(40, 0, 42);
	one.count[WEIR_LEAN_CACHE_MISSES] = 110;
	record(1, &one);
	row = thread(take(40), 7);
	assert_int_equal(row->now.counter[WEIR_LEAN_CYCLES], 23);
	assert_int_equal(row->now.counter[WEIR_LEAN_CACHE_MISSES], 0);
	assert_int_equal(row->now.uncounted, 2);
}

/* CPUs of another kind have no such counter, or it was taken: what ran there is not counted, and said so. */
static void test_a12_another_cpu(void **state)
{
	struct weir_lean_counted one;
	const struct usage_row *row;

	(void)state;
	switch_counted(10, 7, 10);
	switch_counted(20, 0, 21);
	for (int i = 0; i < 2; i++) {
		one = (struct weir_lean_counted){
			.lean = feed__lean(&feed, 2, 30 + 10 * (uint64_t)i, i ? 0 : 7, FEED_SLEEPS),
			.count = {WEIR_LEAN_NO_COUNT, WEIR_LEAN_NO_COUNT, WEIR_LEAN_NO_COUNT},
		};
		record(2, &one);
	}
	row = thread(take(40), 7);
	assert_int_equal(row->now.time_ns, 20);
	assert_int_equal(row->now.counter[WEIR_LEAN_CYCLES], 11);
	assert_int_equal(row->now.uncounted, 1);
}

static void test_a12_wraps(void **state)
{
	const struct usage_row *row;

	(void)state;
	switch_counted(10, 7, (UINT64_C(1) << 48) - 5);
	switch_counted(20, 0, 6);
	row = thread(take(40), 7);
	assert_int_equal(row->now.counter[WEIR_LEAN_CYCLES], 11);
	assert_int_equal(row->now.counter[WEIR_LEAN_INSTRUCTIONS], 22);
	assert_int_equal(row->now.uncounted, 0);
}

/* Opened anew, since a CPU has come or gone: no wrap could be as much. From there on it counts. */
static void test_a12_begins_anew(void **state)
{
	const struct usage_row *row;

	(void)state;
	switch_counted(10, 7, UINT64_C(5000000000000));
	switch_counted(20, 8, 3);
	switch_counted(30, 7, 13);
	switch_counted(40, 0, 20);
	row = thread(take(40), 7);
	assert_int_equal(row->now.counter[WEIR_LEAN_CYCLES], 7);
	assert_int_equal(row->now.uncounted, 1);
}

/* What is counted while switches are missing is nobody's. */
static void test_a12_gap(void **state)
{
	const struct usage_row *row;

	(void)state;
	switch_counted(10, 7, 10);
	usage__gap(feed.usage, 1, 15, 25, 3);
	switch_counted(30, 7, 1000);
	switch_counted(40, 0, 1007);
	row = thread(take(40), 7);
	assert_int_equal(row->now.counter[WEIR_LEAN_CYCLES], 7);
}

static void test_a12_no_start(void **state)
{
	struct weir_lean_counted one;
	const struct usage_row *row;

	(void)state;
	one = counted(10, 7, WEIR_LEAN_NO_COUNT);
	record(1, &one);
	switch_counted(20, 0, 21);
	row = thread(take(40), 7);
	assert_int_equal(row->now.counter[WEIR_LEAN_CYCLES], 0);
	assert_int_equal(row->now.uncounted, 1);
}

static void test_switches_away(void **state)
{
	const struct usage_row *row;

	(void)state;
	sw(1, 10, 0, 7);
	feed__switch(&feed, 1, 20, 7, 8, 0);
	feed__switch(&feed, 1, 30, 8, 7, FEED_SLEEPS);
	feed__switch(&feed, 1, 40, 7, 0, FEED_SLEEPS);
	row = thread(take(40), 7);
	assert_int_equal(row->now.involuntary, 1);
	assert_int_equal(row->now.voluntary, 1);
	assert_int_equal(thread(take(50), 7)->now.voluntary, 0);
}

/* ---- who is gone ------------------------------------------------------------------------------ */

static int64_t total_of_all(const struct usage_snapshot *snapshot)
{
	int64_t total_ns = 0;

	for (size_t i = 0; i < snapshot->nr_rows; i++)
		if (snapshot->rows[i].kind != USAGE_IDLE && snapshot->rows[i].kind != USAGE_GAP)
			total_ns += snapshot->rows[i].total.time_ns;
	return total_ns;
}

static void test_gone_stays_in_the_sums(void **state)
{
	const struct usage_snapshot *snapshot;
	const uint64_t s = 1000000000;

	(void)state;
	usage__begin(feed.usage, 5);
	forked(5, 7, 7, 5, "mortal");
	sw(1, 10, 0, 7);
	exited(20, 7, 7, 5, true);
	feed__switch(&feed, 1, 30, 7, 0, FEED_DIES);
	snapshot = take(1 * s);
	assert_int_equal(time_of(snapshot, 7), 20);
	assert_int_equal(thread(snapshot, 7)->state, USAGE_EXITED);
	snapshot = take(3 * s);
	assert_null(feed__row(snapshot, USAGE_THREAD, 7, 0));
	assert_int_equal(total_of_all(snapshot), 20);
	assert_int_equal(total_of_all(take(4 * s)), 20);
}

/* However long nobody looks. */
static void test_exited_waits_for_its_snapshot(void **state)
{
	const uint64_t s = 1000000000;

	(void)state;
	forked(5, 7, 7, 5, "mortal");
	sw(1, 10, 0, 7);
	exited(20, 7, 7, 5, true);
	feed__switch(&feed, 1, 30, 7, 0, FEED_DIES);
	tasks__retire(tasks, 3600 * s);
	assert_string_equal(thread(take(3600 * s), 7)->comm, "gone");
}

/* W7's sort of load: memory is flat, and the sums hold. */
static void test_memory_cap(void **state)
{
	const size_t cap = 512 << 10;
	const struct usage_snapshot *snapshot;
	uint64_t at = 10;

	(void)state;
	usage__free(feed.usage);
	feed.usage = usage__new(NULL, cap);
	usage__begin(feed.usage, 10);
	sw(1, 10, 5, 0);
	/* It runs all the time, and is not let go of for want of memory. */
	sw(0, 10, 5, 6);
	for (uint32_t round = 0; round < 20; round++) {
		for (uint32_t tid = 10; tid < 4000; tid++) {
			feed.start_ns[tid] = at + 1;
			sw(1, at + 1, 0, tid);
			/* One in ten is never seen to die. */
			feed__switch(&feed, 1, at + 3, tid, 0, tid % 10 ? FEED_DIES : FEED_SLEEPS);
			at += 3;
		}
		snapshot = take(at);
		assert_true(snapshot->bytes <= cap);
		assert_int_equal(total_of_all(snapshot),
				 (round + 1) * 3990 * 2 + (int64_t)(at - 10));
		assert_int_equal(thread(snapshot, 6)->total.time_ns, at - 10);
	}
	assert_true(snapshot->evicted > 0);
}

/*
 * So many run at once that there is no memory: who has just left is the only one to let go of, and has
 * its last slice all the same.
 */
static void others_run(uint32_t cpus)
{
	const struct usage_snapshot *snapshot;
	uint64_t at = 10;

	usage__free(feed.usage);
	memset(feed.seq, 0, sizeof(feed.seq));
	feed.usage = usage__new(NULL, 256 << 10);
	usage__begin(feed.usage, 10);
	for (uint32_t cpu = 0; cpu < cpus; cpu++)
		feed__switch(&feed, (int)cpu, ++at, 1, 0, FEED_SLEEPS);
	/* Its rows take most of the memory. */
	take(at);
	for (uint32_t tid = 1; tid <= 5 * cpus; tid++)
		feed__switch(&feed, (int)(tid % cpus), ++at, 0, tid, FEED_SLEEPS);
	for (uint32_t cpu = 0; cpu < cpus; cpu++)
		feed__switch(&feed, (int)cpu, ++at, 1, 0, FEED_SLEEPS);
	snapshot = take(at);
	assert_true(snapshot->evicted > 2 * cpus);
	assert_int_equal(total_of_all(snapshot), 5 * cpus * cpus);
}

/* At some of these numbers all that there is memory for run. */
static void test_all_others_run(void **state)
{
	(void)state;
	for (uint32_t cpus = 115; cpus <= 140; cpus++)
		others_run(cpus);
}

/* No memory at all: the time is somebody's, of whom there is no row. */
static void test_too_little_memory(void **state)
{
	(void)state;
	usage__free(feed.usage);
	errno = 0;
	feed.usage = usage__new(NULL, 1000);
	assert_null(feed.usage);
	assert_int_equal(errno, EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH("A1 slices", test_a1_slices),
		BOTH("A2 a hole that is told", test_a2_hole_is_told),
		LEAN("A2 a hole in the numbers", test_a2_hole_in_numbers),
		BOTH("A3 a seed", test_a3_seed),
		BOTH("A3 no seed", test_a3_no_seed),
		BOTH("A4 an open slice", test_a4_open_slice),
		BOTH("A5 three reports", test_a5_reports),
		BOTH("pinned for three seconds", test_pinned_for_3_seconds),
		BOTH("a late stamp", test_late_stamp),
		BOTH("a late gap", test_late_gap),
		BOTH("a gap with wide bounds", test_wide_gap),
		BOTH("a slice from before the beginning", test_slice_from_before),
		BOTH("a gap goes on", test_gap_goes_on),
		BOTH("A8 a pid is used again", test_a8_pid_reuse),
		BOTH("A16 the last switch after the exit", test_a16_last_switch_after_exit),
		BOTH("A17 an exec of another thread", test_a17_rename),
		BOTH("A18 an unseen switch", test_a18_unseen),
		BOTH("unseen after a report", test_unseen_after_a_report),
		BOTH("A11 a stamp steps back", test_a11_stamp_steps_back),
		BOTH("a CPU goes away", test_cpu_goes_away),
		BOTH("a CPU comes later", test_cpu_comes_later),
		LEAN("broken records", test_broken_records),
		LEAN("a process whose switches are hidden", test_ended_unseen),
		LEAN("A12 counters", test_a12_counters),
		LEAN("A12 a counter cannot be read", test_a12_unread),
		LEAN("A12 another CPU", test_a12_another_cpu),
		LEAN("A12 a counter wraps", test_a12_wraps),
		LEAN("A12 a counter begins anew", test_a12_begins_anew),
		LEAN("A12 a gap", test_a12_gap),
		LEAN("A12 a stop without a start", test_a12_no_start),
		BOTH("switches away", test_switches_away),
		BOTH("the gone stay in the sums", test_gone_stays_in_the_sums),
		BOTH("who exited waits for its snapshot", test_exited_waits_for_its_snapshot),
		BOTH("memory cap", test_memory_cap),
		LEAN("all others run", test_all_others_run),
		STREAM("too little memory", test_too_little_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
