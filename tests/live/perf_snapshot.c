// SPDX-License-Identifier: BSD-2-Clause
/*
 * Overwritable perf rings, looked at while they are written.
 */
#include "calls.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

/* A CPU's ring when all of them together are to have so many: a power of two. */
static size_t bytes_each(size_t all)
{
	for (long cpus = sysconf(_SC_NPROCESSORS_ONLN), half = 1; half < cpus; half *= 2)
		all /= 2;
	return all;
}

/*
 * V10: both CPUs write as fast as they can, nobody pauses them; each record of each snapshot is whole,
 * none comes twice, and they are in order.
 */
static void snapshots_of_running_writers(void **state)
{
	struct weir_snapshot snapshot = {.sz = sizeof(snapshot)};
	struct seen seen;
	struct weir_stream *stream = new_stream(&seen);
	pid_t load = start_load(0, 0);
	struct timespec start, end;
	struct weir_ledger ledger;
	uint64_t records = 0;

	seen.check_calls = true;
	add_calls(stream, bytes_each(8u << 20), true);
	let_go();
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (int i = 1; i <= 20; i++) {
		int count;

		usleep(20000);
		/* Where a grace period takes longer than a ring goes round, only this one has something in it. */
		if (i == 20)
			end_load(load);
		count = weir_stream__snapshot(stream, WEIR_SNAPSHOT_RUNNING, &snapshot);
		assert_in_range(count, 0, INT32_MAX);
		assert_true(seen.watermark_ns <= snapshot.to_ns);
		records += snapshot.records;
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	print_message("%llu of %llu calls in %llu ms are in 20 snapshots\n",
		      (unsigned long long)records, (unsigned long long)calls_made(),
		      (unsigned long long)((end.tv_sec - start.tv_sec) * 1000 +
					   (end.tv_nsec - start.tv_nsec) / 1000000));
	ledger = close_stream(&seen);
	assert_true(seen.records > 1000);
	assert_int_equal(seen.records, records);
	assert_int_equal(ledger.total.bound[WEIR_LOST_OVERWRITTEN],
			 seen.gaps[WEIR_LOST_OVERWRITTEN] ? WEIR_BOUND_UNKNOWN : WEIR_BOUND_EXACT);
}

/* The newest are kept, none is lost that would have fit, and an idle ring says nothing twice. */
static void snapshot_of_a_quiet_ring(void **state)
{
	struct weir_snapshot snapshot = {.sz = sizeof(snapshot)};
	struct seen seen;
	struct weir_stream *stream = new_stream(&seen);

	seen.check_calls = true;
	add_calls(stream, 65536, true);
	pin(first_cpu);
	for (uint64_t n = 0; n < 100; n++)
		call(0, n);
	/* Farther from the clock than its guard. */
	usleep(1000);
	assert_int_equal(weir_stream__snapshot(stream, WEIR_SNAPSHOT_RUNNING, &snapshot), 100);
	assert_int_equal(seen.records, 100);
	assert_int_equal(snapshot.from_ns, 0);
	assert_int_equal(weir_stream__snapshot(stream, WEIR_SNAPSHOT_RUNNING, NULL), 0);
	/* More than the ring holds: a gap before what is left of them. */
	for (uint64_t n = 100; n < 10100; n++)
		call(0, n);
	usleep(1000);
	assert_true(weir_stream__snapshot(stream, WEIR_SNAPSHOT_RUNNING, &snapshot) > 300);
	assert_int_equal(seen.gaps[WEIR_LOST_OVERWRITTEN], 1);
	assert_int_equal(seen.next[0], 10100);
	assert_true(snapshot.from_ns > 0);
	assert_in_range(seen.records, 400, 10100);
	close_stream(&seen);
}

/* L7: what would have been written meanwhile is lost for a cause of its own, with its number. */
static void snapshot_with_a_pause(void **state)
{
	struct seen seen;
	struct weir_stream *stream = new_stream(&seen);
	pid_t load = start_load(0, 0);
	struct weir_ledger ledger;

	seen.check_calls = true;
	add_calls(stream, 1u << 20, true);
	let_go();
	for (int i = 0; i < 5; i++) {
		usleep(20000);
		assert_true(weir_stream__snapshot(stream, WEIR_SNAPSHOT_PAUSED, NULL) >= 0);
	}
	end_load(load);
	ledger = close_stream(&seen);
	assert_true(seen.records > 1000);
	assert_true(seen.lost[WEIR_LOST_PAUSED] > 0);
	assert_int_equal(seen.lost[WEIR_LOST_PAUSED], ledger.total.lost[WEIR_LOST_PAUSED]);
	assert_int_equal(seen.lost[WEIR_LOST_RESERVE_FAILED], 0);
}

/*
 * Without grace periods: a guard at the old end, and nothing is said to be final before its time. So all
 * snapshots wait in memory for their end, and have to have room there.
 */
static void snapshots_by_a_guard(void **state)
{
	const struct weir_perf_opts opts = {
		.sz = sizeof(opts),
		.name = "tp",
		.events = &calls,
		.nr_events = 1,
		.fence = WEIR_FENCE_GRACE,
		.grace_ns = 60000000000,
		.ring_bytes = bytes_each(2u << 20),
		.overwrite = true,
		.err = why,
		.err_len = sizeof(why),
	};
	struct weir_snapshot snapshot = {.sz = sizeof(snapshot)};
	struct seen seen;
	struct weir_stream *stream = new_stream(&seen);
	pid_t load = start_load(0, 0);
	uint64_t records = 0;
	struct weir_ledger ledger;

	seen.check_calls = true;
	if (weir_stream__add_perf(stream, &opts))
		fail_msg("%s", why);
	let_go();
	for (int i = 0; i < 10; i++) {
		usleep(10000);
		assert_in_range(
			weir_stream__snapshot(stream,
					      i % 2 ? WEIR_SNAPSHOT_PAUSED : WEIR_SNAPSHOT_RUNNING,
					      &snapshot),
			0, INT32_MAX);
		records += snapshot.records;
	}
	end_load(load);
	ledger = close_stream(&seen);
	assert_true(seen.records > 1000);
	/* In a look with a pause there can be a LOST as well. */
	assert_in_range(records - seen.records, 0, 10 * LOOPS_MAX);
	assert_int_equal(ledger.order, WEIR_ORDER_ESTIMATED);
	assert_null(ledger.fence.door);
}

static void no_ring_to_look_at(void **state)
{
	struct seen seen;
	struct weir_stream *stream = new_stream(&seen);

	assert_int_equal(weir_stream__snapshot(stream, WEIR_SNAPSHOT_RUNNING, NULL), -ENOENT);
	add_calls(stream, 0, false);
	assert_int_equal(weir_stream__snapshot(stream, WEIR_SNAPSHOT_RUNNING, NULL), -ENOENT);
	close_stream(&seen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(snapshots_of_running_writers), CASE(snapshot_of_a_quiet_ring),
		CASE(snapshot_with_a_pause),	    CASE(snapshots_by_a_guard),
		CASE(no_ring_to_look_at),
	};
	int r = cmocka_run_group_tests_name("perf_snapshot", tests, set_up, NULL);

	return r ? 1 : 0;
}
