// SPDX-License-Identifier: BSD-2-Clause
/*
 * Streams over what weir has not written: tracepoints through perf rings, somebody's perf event array,
 * somebody's ring buffer; also while CPUs come and go.
 */
#include "calls.h"
#include "online.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "others.skel.h"

#define BURST	   100 /* calls a millisecond and thread: 200,000 a second on two CPUs */
#define PATIENCE_S 60

/* ---- perf events -------------------------------------------------------------------------------- */

/* Everything that the load did: here, or lost and counted. */
static struct weir_ledger read_load(struct seen *seen, unsigned ms)
{
	struct weir_ledger ledger;
	pid_t load = start_load((uint64_t)BURST * ms, BURST);

	new_stream(seen);
	seen->check_calls = true;
	add_calls(seen->stream, 0, false);
	let_go();
	poll_to_the_end(seen->stream, load);
	ledger = close_stream(seen);
	print_message("%llu of %llu events, %llu copied out, %llu tickets of at most %llu us\n",
		      (unsigned long long)seen->records, (unsigned long long)calls_made(),
		      (unsigned long long)ledger.held_bytes,
		      (unsigned long long)ledger.fence.tickets,
		      (unsigned long long)ledger.fence.max_ns / 1000);
	assert_int_equal(seen->records + seen->lost[WEIR_LOST_RESERVE_FAILED], calls_made());
	assert_int_equal(ledger.total.lost[WEIR_LOST_RESERVE_FAILED],
			 seen->lost[WEIR_LOST_RESERVE_FAILED]);
	assert_int_equal(ledger.order, WEIR_ORDER_EXACT);
	assert_int_equal(seen->order, WEIR_ORDER_EXACT);
	return ledger;
}

/*
 * 200,000 events a second at the default buffer: all of them, in order. Where something else keeps the
 * reader from running for a fifth of a second it may not be so, hence it has three tries.
 */
static void tracepoint_stream(void **state)
{
	uint64_t lost = 1;

	for (int i = 0; i < 3 && lost; i++) {
		struct seen seen;

		lost = read_load(&seen, 2000).total.lost[WEIR_LOST_RESERVE_FAILED];
	}
	assert_int_equal(lost, 0);
}

static void *serve(void *fence)
{
	return (void *)(intptr_t)weir_fence__run(fence);
}

/* The same, when a thread waits for the grace periods. */
static void tracepoint_stream_with_a_thread(void **state)
{
	struct seen seen;
	struct weir_stream *stream = new_stream(&seen);
	pid_t load = start_load(BURST * 1000, BURST);
	pthread_t thread;
	void *result;

	seen.check_calls = true;
	add_calls(stream, 0, false);
	assert_int_equal(pthread_create(&thread, NULL, serve, weir_stream__fence(stream)), 0);
	let_go();
	poll_to_the_end(stream, load);
	assert_int_equal(weir_stream__flush(stream, 10000), 0);
	weir_fence__stop(weir_stream__fence(stream));
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_null(result);
	/* What is lost after the last record only the end tells. */
	close_stream(&seen);
	assert_int_equal(seen.records + seen.lost[WEIR_LOST_RESERVE_FAILED], calls_made());
}

/* F7: one event, far below the mark at which perf wakes its reader, and nothing behind it. */
static void one_event_does_not_wait(void **state)
{
	struct seen seen;
	struct weir_stream *stream = new_stream(&seen);
	uint64_t number = 0;

	pin(first_cpu);
	add_calls(stream, 0, false);
	for (int i = 0; i < 5; i++) {
		int polls = 0;

		call(0, number++);
		/* Each poll may end before it is proved that nothing older comes, not five of them. */
		while (seen.records < number && polls++ < 5)
			assert_true(weir_stream__poll(stream, 1000) >= 0);
		assert_int_equal(seen.records, number);
	}
	close_stream(&seen);
}

static void two_events_in_one_ring(void **state)
{
	struct weir_perf_event events[] = {
		{.tracepoint = "raw_syscalls:sys_enter", .filter = FILTER},
		{.tracepoint = "raw_syscalls:sys_exit", .filter = FILTER},
	};
	struct weir_perf_opts opts = {
		.sz = sizeof(opts), .name = "tp", .events = events, .nr_events = 2};
	struct seen seen;
	struct weir_stream *stream = new_stream(&seen);

	(void)stream;
	/* A sample of sys_exit is shorter than take_call() wants: only how many there are counts here. */
	assert_int_equal(weir_stream__add_perf(stream, &opts), 0);
	pin(first_cpu);
	for (uint64_t n = 0; n < 50; n++)
		call(0, n);
	assert_int_equal(weir_stream__flush(stream, 10000), 0);
	assert_int_equal(seen.by_event[0], 50);
	assert_int_equal(seen.records, 100);
	assert_int_equal(seen.corrupt, 50);
	seen.corrupt = 0;
	close_stream(&seen);
}

/* L4: what finds no room is told with its number, also when nothing comes behind it. */
static void loss_is_told(void **state)
{
	struct seen seen;
	struct weir_stream *stream = new_stream(&seen);
	struct weir_ledger ledger;

	seen.check_calls = true;
	add_calls(stream, 4096, false);
	pin(first_cpu);
	for (uint64_t n = 0; n < 1000; n++)
		call(0, n);
	/* In the first poll, the second knows, for it asks. */
	assert_true(weir_stream__poll(stream, 0) >= 0);
	assert_int_equal(weir_stream__flush(stream, 10000), 0);
	assert_true(seen.lost[WEIR_LOST_RESERVE_FAILED] > 0);
	assert_int_equal(seen.records + seen.lost[WEIR_LOST_RESERVE_FAILED], 1000);
	/* The record of that loss comes with the next one, and is not told again. */
	for (uint64_t n = 1000; n < 1010; n++)
		call(0, n);
	ledger = close_stream(&seen);
	assert_int_equal(ledger.total.produced, 1010);
	assert_int_equal(seen.records + seen.lost[WEIR_LOST_RESERVE_FAILED], 1010);
	assert_int_equal(ledger.total.bound[WEIR_LOST_RESERVE_FAILED], WEIR_BOUND_EXACT);
}

static void grace_is_estimated(void **state)
{
	struct weir_perf_opts opts = {
		.sz = sizeof(opts),
		.name = "tp",
		.events = &calls,
		.nr_events = 1,
		.fence = WEIR_FENCE_GRACE,
		.grace_ns = 50000000,
	};
	struct seen seen;
	struct weir_stream *stream = new_stream(&seen);
	struct weir_ledger ledger;

	seen.check_calls = true;
	assert_int_equal(weir_stream__add_perf(stream, &opts), 0);
	pin(first_cpu);
	for (uint64_t n = 0; n < 100; n++)
		call(0, n);
	assert_int_equal(weir_stream__flush(stream, 10000), 0);
	assert_int_equal(seen.records, 100);
	ledger = close_stream(&seen);
	assert_int_equal(ledger.order, WEIR_ORDER_ESTIMATED);
	assert_int_equal(seen.order, WEIR_ORDER_ESTIMATED);
}

/* ---- other people's programs -------------------------------------------------------------------- */

static struct others *open_others(pid_t pid, bool into_ring)
{
	struct others *others = others__open();

	assert_non_null(others);
	others->rodata->others_nr = NO_CALL;
	assert_int_equal(others__load(others), 0);
	others->bss->others_into_ring = into_ring;
	others->bss->others_tgid = (uint32_t)pid;
	assert_int_equal(others__attach(others), 0);
	return others;
}

/* From Linux 7.2 on a program is not run while another task stands still in it. */
static uint64_t skipped(const struct others *others)
{
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);

	assert_int_equal(
		bpf_obj_get_info_by_fd(bpf_program__fd(others->progs.others_enter), &info, &len),
		0);
	return info.recursion_misses;
}

static void add_array(struct weir_stream *stream, struct others *others, int32_t stamp_offset)
{
	struct weir_perf_array_opts opts = {
		.sz = sizeof(opts),
		.map_fd = bpf_map__fd(others->maps.others_events),
		.name = "array",
		.payload_len = sizeof(struct others_event),
		.stamp_offset = stamp_offset,
		.err = why,
		.err_len = sizeof(why),
	};

	if (weir_stream__add_perf_array(stream, &opts))
		fail_msg("%s", why);
}

static void add_ringbuf(struct weir_stream *stream, struct others *others, bool counted)
{
	struct weir_ringbuf_opts opts = {
		.sz = sizeof(opts),
		.map_fd = bpf_map__fd(others->maps.others_ring),
		.name = "ring",
		.stamp_offset = offsetof(struct others_event, stamp),
		.lost_fd = counted ? bpf_map__fd(others->maps.others_lost) : -1,
		.lost_key = 1,
		.lost_offset = 8,
		.err = why,
		.err_len = sizeof(why),
	};

	if (weir_stream__add_ringbuf(stream, &opts))
		fail_msg("%s", why);
}

/* By the kernel's stamps, and by the program's own. */
static void read_array(int32_t stamp_offset)
{
	struct seen seen;
	struct weir_stream *stream = new_stream(&seen);
	pid_t load = start_load(BURST * 500, BURST);
	struct others *others = open_others(load, false);

	add_array(stream, others, stamp_offset);
	let_go();
	poll_to_the_end(stream, load);
	close_stream(&seen);
	assert_in_range(seen.foreign + seen.lost[WEIR_LOST_RESERVE_FAILED],
			calls_made() - skipped(others), calls_made());
	assert_int_equal(seen.records, seen.foreign);
	/* Without the padding, which the kernel counts. */
	assert_int_equal(seen.len, sizeof(struct others_event));
	if (stamp_offset >= 0)
		assert_int_equal(seen.payload.stamp, seen.foreign_ns);
	else
		assert_true(seen.payload.stamp <= seen.foreign_ns);
	others__destroy(others);
}

static void array_by_the_kernels_stamp(void **state)
{
	read_array(-1);
}

static void array_by_its_own_stamp(void **state)
{
	read_array(offsetof(struct others_event, stamp));
}

/* L2: a ring of 64 KiB, and nobody reads for a while: counted, all is accounted for. */
static void ringbuf_with_a_counter(void **state)
{
	struct seen seen;
	struct weir_stream *stream = new_stream(&seen);
	struct others *others = open_others(getpid(), true);
	struct weir_ledger ledger;

	/* What it counted before us is not ours. */
	pin(first_cpu);
	for (uint64_t n = 0; n < 3000; n++)
		call(0, n);
	add_ringbuf(stream, others, true);
	for (uint64_t n = 0; n < 3000; n++)
		call(0, n);
	assert_int_equal(weir_stream__flush(stream, 10000), 0);
	for (uint64_t n = 0; n < 100; n++)
		call(0, n);
	ledger = close_stream(&seen);
	assert_true(seen.lost[WEIR_LOST_RESERVE_FAILED] > 0);
	assert_int_equal(ledger.total.bound[WEIR_LOST_RESERVE_FAILED], WEIR_BOUND_EXACT);
	/* It was full of what came before us, so all of the 3,000 were lost. */
	assert_int_equal(seen.lost[WEIR_LOST_RESERVE_FAILED], 3000);
	assert_int_equal(seen.foreign, seen.records);
	assert_true(seen.records > 100);
	others__destroy(others);
}

static void ringbuf_without_a_counter(void **state)
{
	struct seen seen;
	struct weir_stream *stream = new_stream(&seen);
	struct others *others = open_others(getpid(), true);
	struct weir_ledger ledger;

	add_ringbuf(stream, others, false);
	pin(first_cpu);
	for (uint64_t n = 0; n < 100; n++)
		call(0, n);
	ledger = close_stream(&seen);
	assert_int_equal(seen.records, 100);
	assert_int_equal(seen.len, sizeof(struct others_event));
	assert_int_equal(ledger.total.bound[WEIR_LOST_RESERVE_FAILED], WEIR_BOUND_UNKNOWN);
	others__destroy(others);
}

/* A call, seen by perf and by two programs: three records of it, in one order. */
static void three_kinds_in_one_stream(void **state)
{
	struct seen seen;
	struct weir_stream *stream = new_stream(&seen);
	pid_t load = start_load(BURST * 200, BURST);
	struct others *into_array = open_others(load, false), *into_ring = open_others(load, true);

	seen.check_calls = true;
	add_calls(stream, 0, false);
	add_array(stream, into_array, -1);
	add_ringbuf(stream, into_ring, true);
	let_go();
	poll_to_the_end(stream, load);
	close_stream(&seen);
	assert_true(seen.by_event[0] > 0 && seen.foreign > 0);
	assert_in_range(seen.by_event[0] + seen.foreign + seen.lost[WEIR_LOST_RESERVE_FAILED],
			3 * calls_made() - skipped(into_array) - skipped(into_ring),
			3 * calls_made());
	others__destroy(into_array);
	others__destroy(into_ring);
}

/* On error nothing was added, and it is said why. */
static void refused_sources(void **state)
{
	struct seen seen, other;
	struct weir_stream *stream = new_stream(&seen), *his = new_stream(&other);
	struct others *others = open_others(getpid(), false);
	struct weir_perf_array_opts opts = {
		.sz = sizeof(opts),
		.map_fd = bpf_map__fd(others->maps.others_events),
		.name = "array",
		.stamp_offset = -1,
		.err = why,
		.err_len = sizeof(why),
	};
	struct weir_ringbuf_opts ring = {
		.sz = sizeof(ring),
		.map_fd = bpf_map__fd(others->maps.others_ring),
		.name = "ring",
		.clock = WEIR_CLOCK_REALTIME,
		.lost_fd = -1,
		.err = why,
		.err_len = sizeof(why),
	};
	struct weir_ledger ledger = {.sz = sizeof(ledger)};

	add_array(his, others, -1);
	assert_int_equal(weir_stream__add_perf_array(stream, &opts), -EBUSY);
	assert_non_null(strstr(why, "somebody else"));
	opts.stamp_offset = 8;
	opts.payload_len = 12;
	assert_int_equal(weir_stream__add_perf_array(stream, &opts), -EINVAL);
	assert_int_equal(weir_stream__add_ringbuf(stream, &ring), -EINVAL);
	assert_non_null(strstr(why, "realtime"));
	assert_int_equal(weir_stream__ledger(stream, &ledger), 0);
	assert_int_equal(ledger.sources, 0);
	pin(first_cpu);
	call(0, 0);
	assert_int_equal(weir_stream__flush(his, 10000), 0);
	assert_int_equal(other.foreign, 1);
	close_stream(&other);
	/* He has left: now there is room, and the stream that was refused can be used. */
	add_array(stream, others, -1);
	call(0, 1);
	assert_int_equal(weir_stream__flush(stream, 10000), 0);
	assert_int_equal(seen.foreign, 1);
	close_stream(&seen);
	others__destroy(others);
}

/* ---- CPUs that come and go ---------------------------------------------------------------------- */

/* From this CPU's source, behind a gap, until it comes. */
static void call_until_seen(struct weir_stream *stream, struct seen *seen, uint64_t *number)
{
	uint64_t records = seen->records;
	time_t end = time(NULL) + PATIENCE_S;

	while (seen->records == records && time(NULL) < end) {
		pin(last_cpu);
		call(0, (*number)++);
		pin(first_cpu);
		assert_true(weir_stream__poll(stream, POLL_MS) >= 0);
	}
	assert_true(seen->records > records);
}

/* M2: what the CPU wrote before comes out, its time away is a gap of unknown count, and it goes on. */
static void cpu_off_and_on_again(void **state)
{
	struct seen seen;
	struct weir_stream *stream = new_stream(&seen);
	struct others *others;
	struct weir_ledger ledger;
	uint64_t number = 0;

	pin(first_cpu);
	if (first_cpu == last_cpu || !set_online(last_cpu, false)) {
		weir_stream__free(stream);
		skip();
	}
	assert_true(set_online(last_cpu, true));
	others = open_others(getpid(), false);
	add_calls(stream, 0, false);
	add_array(stream, others, -1);
	seen.check_calls = true;
	for (int turn = 0; turn < 3; turn++) {
		pin(last_cpu);
		for (int i = 0; i < 100; i++)
			call(0, number++);
		pin(first_cpu);
		/* Not read by now: the ring is dead when it is. */
		assert_true(set_online(last_cpu, false));
		if (turn)
			assert_true(weir_stream__poll(stream, 0) >= 0);
		assert_true(set_online(last_cpu, true));
		call_until_seen(stream, &seen, &number);
		assert_int_equal(weir_stream__flush(stream, 10000), 0);
		call_until_seen(stream, &seen, &number);
	}
	/* The end comes while it is away. */
	assert_true(set_online(last_cpu, false));
	assert_true(weir_stream__poll(stream, 0) >= 0);
	ledger = close_stream(&seen);
	assert_true(set_online(last_cpu, true));
	/* One for each of its two sources and turn. */
	assert_int_equal(seen.gaps[WEIR_LOST_DEAD_EVENT], 8);
	assert_int_equal(ledger.total.bound[WEIR_LOST_DEAD_EVENT], WEIR_BOUND_UNKNOWN);
	assert_int_equal(ledger.total.lost[WEIR_LOST_RESERVE_FAILED], 0);
	assert_true(seen.by_event[0] >= 300 && seen.foreign >= 300);
	others__destroy(others);
}

/* Where the kernel's messages can't be had, and a look at the list of CPUs comes too late. */
static void cpu_away_and_nobody_told(void **state)
{
	struct seen seen;
	struct weir_stream *stream;
	uint64_t number = 0;

	pin(first_cpu);
	if (first_cpu == last_cpu || !set_online(last_cpu, false))
		skip();
	assert_true(set_online(last_cpu, true));
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	stream = new_stream(&seen);
	add_calls(stream, 0, false);
	seen.check_calls = true;
	call_until_seen(stream, &seen, &number);
	assert_true(set_online(last_cpu, false));
	assert_true(set_online(last_cpu, true));
	call_until_seen(stream, &seen, &number);
	close_stream(&seen);
	assert_int_equal(seen.gaps[WEIR_LOST_DEAD_EVENT], 1);
}

/* Whatever has failed. */
static int bring_back(void **state)
{
	if (first_cpu != last_cpu)
		set_online(last_cpu, true);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(tracepoint_stream),
		CASE(tracepoint_stream_with_a_thread),
		CASE(one_event_does_not_wait),
		CASE(two_events_in_one_ring),
		CASE(loss_is_told),
		CASE(grace_is_estimated),
		CASE(array_by_the_kernels_stamp),
		CASE(array_by_its_own_stamp),
		CASE(ringbuf_with_a_counter),
		CASE(ringbuf_without_a_counter),
		CASE(three_kinds_in_one_stream),
		CASE(refused_sources),
		CASE(cpu_off_and_on_again),
		CASE(cpu_away_and_nobody_told),
	};
	int r = cmocka_run_group_tests_name("perf_stream", tests, set_up, bring_back);

	return r ? 1 : 0;
}
