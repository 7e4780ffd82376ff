// SPDX-License-Identifier: BSD-2-Clause
/*
 * Streams over what weir has not written: tracepoints through perf rings, somebody's perf event array,
 * somebody's ring buffer, and overwritable rings that are looked at while they are written.
 *
 * The load is a child with a thread on each CPU that makes a system call which does not exist, with
 * numbers and a checksum for arguments: each record can be told from all others, and from half of two.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <weir/weir.h>

#include "others.h"
#include "others.skel.h"
#include "source/cpus.h"

#define NO_CALL	   4095
#define FILTER	   "id == 4095"
#define LOOPS_MAX  64
#define POLL_MS	   20
#define BURST	   100 /* calls a millisecond and thread: 200,000 a second on two CPUs */
#define TP_FIELDS  8   /* bytes that all tracepoints begin with */
#define MAGIC	   0x9e3779b97f4a7c15ull
#define PATIENCE_S 60

/* ---- the load ----------------------------------------------------------------------------------- */

struct loop {
	uint32_t cpu;
	uint64_t made;
	int done;
};

struct told {
	int go, stop;
	uint64_t calls; /* of each loop; 0: until it is stopped */
	unsigned burst; /* a millisecond; 0: without a pause */
	unsigned loops;
	struct loop loop[LOOPS_MAX];
};

static struct told *told;
static struct cpus online;
static uint32_t first_cpu, last_cpu;

static uint64_t checksum(uint64_t loop, uint64_t n)
{
	return ((loop << 48 ^ n) * MAGIC) ^ (n * MAGIC << 1);
}

static void pin(uint32_t cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		_exit(111);
}

static void call(uint64_t loop, uint64_t n)
{
	syscall(NO_CALL, loop, n, checksum(loop, n), ~n, n * 3, loop ^ n);
}

static void *make_calls(void *arg)
{
	struct loop *loop = arg;
	const struct timespec pause = {0, 1000000};
	uint64_t number = (uint64_t)(loop - told->loop);

	pin(loop->cpu);
	while (!__atomic_load_n(&told->go, __ATOMIC_ACQUIRE))
		nanosleep(&pause, NULL);
	while (!__atomic_load_n(&told->stop, __ATOMIC_RELAXED) &&
	       (!told->calls || loop->made < told->calls)) {
		call(number, loop->made++);
		if (told->burst && loop->made % told->burst == 0)
			nanosleep(&pause, NULL);
	}
	__atomic_store_n(&loop->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void run_load(void)
{
	pthread_t threads[LOOPS_MAX];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (unsigned i = 0; i < told->loops; i++)
		if (pthread_create(&threads[i], NULL, make_calls, &told->loop[i]))
			_exit(111);
	for (unsigned i = 0; i < told->loops; i++)
		pthread_join(threads[i], NULL);
	_exit(0);
}

/* A loop on each CPU, which waits for let_go(). */
static pid_t start_load(uint64_t calls, unsigned burst)
{
	pid_t pid;

	memset(told, 0, sizeof(*told));
	told->calls = calls;
	told->burst = burst;
	for (uint32_t cpu = 0; cpu < CPUS_MAX && told->loops < LOOPS_MAX; cpu++)
		if (cpus__has(&online, cpu))
			told->loop[told->loops++].cpu = cpu;
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		run_load();
	return pid;
}

static void let_go(void)
{
	__atomic_store_n(&told->go, 1, __ATOMIC_RELEASE);
}

static bool has_ended(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, WNOHANG) != pid)
		return false;
	assert_int_equal(status, 0);
	return true;
}

static void end_load(pid_t pid)
{
	int status;

	__atomic_store_n(&told->stop, 1, __ATOMIC_RELAXED);
	let_go();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static uint64_t calls_made(void)
{
	uint64_t made = 0;

	for (unsigned i = 0; i < told->loops; i++)
		made += told->loop[i].made;
	return made;
}

/* ---- what came ---------------------------------------------------------------------------------- */

struct seen {
	struct weir_stream *stream;
	uint64_t records, steps_back, behind_watermark, corrupt, twice, foreign;
	uint64_t by_event[2], by_source[8];
	uint64_t last_ns, watermark_ns;
	uint64_t next[LOOPS_MAX]; /* by loop: the least number that has not come */
	uint64_t gaps[WEIR_LOST_CAUSES], lost[WEIR_LOST_CAUSES];
	struct weir_gap gap; /* the last one */
	enum weir_order order;
	bool check_calls; /* records are sys_enter of our call, in the order of their numbers */
	struct others_event payload;
	uint32_t len;
};

static void take_call(struct seen *seen, const struct weir_event *event)
{
	struct weir_perf_sample sample;
	uint64_t fields[7]; /* id, args */

	if (weir_stream__parse_perf(seen->stream, event, &sample) ||
	    sample.raw_len < TP_FIELDS + sizeof(fields) || sample.event > 1) {
		seen->corrupt++;
		return;
	}
	seen->by_event[sample.event]++;
	memcpy(fields, (const uint8_t *)sample.raw + TP_FIELDS, sizeof(fields));
	if (!seen->check_calls)
		return;
	if (fields[0] != NO_CALL || fields[1] >= LOOPS_MAX ||
	    fields[3] != checksum(fields[1], fields[2]) || fields[4] != ~fields[2] ||
	    fields[6] != (fields[1] ^ fields[2]) || event->stamp_ns != sample.time_ns) {
		seen->corrupt++;
		return;
	}
	seen->twice += fields[2] < seen->next[fields[1]];
	seen->next[fields[1]] = fields[2] + 1;
}

static int on_event(void *ctx, const struct weir_event *event)
{
	struct seen *seen = ctx;
	struct weir_source_info info;

	seen->behind_watermark += event->stamp_ns <= seen->watermark_ns;
	seen->steps_back += event->stamp_ns < seen->last_ns;
	seen->last_ns = event->stamp_ns;
	if (event->kind == WEIR_KIND_GAP) {
		seen->gap = *(const struct weir_gap *)event->data;
		seen->gaps[seen->gap.cause]++;
		seen->lost[seen->gap.cause] += seen->gap.lost;
	}
	if (event->kind != WEIR_KIND_RECORD)
		return 0;
	seen->records++;
	if (event->source < 8)
		seen->by_source[event->source]++;
	assert_int_equal(weir_stream__source(seen->stream, event->source, &info), 0);
	if (strncmp(info.name, "tp", 2) == 0) {
		take_call(seen, event);
		return 0;
	}
	seen->len = event->len;
	memcpy(&seen->payload, event->data, sizeof(seen->payload));
	seen->foreign += seen->payload.magic == OTHERS_MAGIC;
	return 0;
}

static void on_watermark(void *ctx, uint64_t watermark_ns, enum weir_order order)
{
	struct seen *seen = ctx;

	assert_true(watermark_ns > seen->watermark_ns);
	seen->watermark_ns = watermark_ns;
	seen->order = order;
}

static char why[512];

static struct weir_stream *new_stream(struct seen *seen)
{
	struct weir_stream_opts opts = {
		.sz = sizeof(opts),
		.on_event = on_event,
		.on_watermark = on_watermark,
		.ctx = seen,
	};

	memset(seen, 0, sizeof(*seen));
	seen->stream = weir_stream__new(&opts);
	assert_non_null(seen->stream);
	return seen->stream;
}

static struct weir_perf_event calls = {.tracepoint = "raw_syscalls:sys_enter", .filter = FILTER};

static void add_calls(struct weir_stream *stream, size_t ring_bytes, bool overwrite)
{
	struct weir_perf_opts opts = {
		.sz = sizeof(opts),
		.name = "tp",
		.events = &calls,
		.nr_events = 1,
		.ring_bytes = ring_bytes,
		.overwrite = overwrite,
		.err = why,
		.err_len = sizeof(why),
	};

	if (weir_stream__add_perf(stream, &opts))
		fail_msg("%s", why);
}

static void poll_to_the_end(struct weir_stream *stream, pid_t load)
{
	while (!has_ended(load))
		assert_true(weir_stream__poll(stream, POLL_MS) >= 0);
}

/* The end of every test: the account closes, nothing is late (G1, G2, G4). */
static struct weir_ledger close_stream(struct seen *seen)
{
	struct weir_ledger ledger = {.sz = sizeof(ledger)};

	assert_int_equal(weir_stream__close(seen->stream), 0);
	assert_int_equal(weir_stream__ledger(seen->stream, &ledger), 0);
	assert_int_equal(seen->steps_back, 0);
	assert_int_equal(seen->behind_watermark, 0);
	assert_int_equal(seen->corrupt, 0);
	assert_int_equal(seen->twice, 0);
	assert_int_equal(ledger.total.late, 0);
	assert_int_equal(ledger.total.ahead, 0);
	assert_int_equal(ledger.total.pending, 0);
	assert_int_equal(ledger.total.lost[WEIR_LOST_BROKEN], 0);
	assert_int_equal(weir_account__difference(&ledger.total), 0);
	assert_int_equal(ledger.total.delivered, seen->records);
	weir_stream__free(seen->stream);
	return ledger;
}

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
	assert_int_equal(seen.records + seen.lost[WEIR_LOST_RESERVE_FAILED], calls_made());
	weir_fence__stop(weir_stream__fence(stream));
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_null(result);
	close_stream(&seen);
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
	assert_int_equal(seen.foreign + seen.lost[WEIR_LOST_RESERVE_FAILED], calls_made());
	assert_int_equal(seen.records, seen.foreign);
	/* Without the padding, which the kernel counts. */
	assert_int_equal(seen.len, sizeof(struct others_event));
	if (stamp_offset >= 0)
		assert_int_equal(seen.payload.stamp, seen.last_ns);
	else
		assert_true(seen.payload.stamp <= seen.last_ns);
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
	assert_int_equal(seen.by_event[0] + seen.foreign + seen.lost[WEIR_LOST_RESERVE_FAILED],
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

static bool set_online(uint32_t cpu, bool on)
{
	char path[64];
	int fd;
	bool done;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/online", cpu);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	done = fd >= 0 && write(fd, on ? "1" : "0", 1) == 1;
	if (fd >= 0)
		close(fd);
	return done;
}

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
	ledger = close_stream(&seen);
	/* One for each of its two sources and turn. */
	assert_int_equal(seen.gaps[WEIR_LOST_DEAD_EVENT], 6);
	assert_int_equal(ledger.total.bound[WEIR_LOST_DEAD_EVENT], WEIR_BOUND_UNKNOWN);
	assert_int_equal(ledger.total.lost[WEIR_LOST_RESERVE_FAILED], 0);
	assert_true(seen.by_event[0] >= 300 && seen.foreign >= 300);
	others__destroy(others);
}

/* ---- overwritable rings ------------------------------------------------------------------------- */

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
	add_calls(stream, 4u << 20, true);
	let_go();
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (int i = 0; i < 20; i++) {
		int count = weir_stream__snapshot(stream, WEIR_SNAPSHOT_RUNNING, &snapshot);

		assert_true(count >= 0);

		assert_true(seen.watermark_ns <= snapshot.to_ns);
		records += snapshot.records;
		usleep(20000);
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	end_load(load);
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

static void no_ring_to_look_at(void **state)
{
	struct seen seen;
	struct weir_stream *stream = new_stream(&seen);

	assert_int_equal(weir_stream__snapshot(stream, WEIR_SNAPSHOT_RUNNING, NULL), -ENOENT);
	add_calls(stream, 0, false);
	assert_int_equal(weir_stream__snapshot(stream, WEIR_SNAPSHOT_RUNNING, NULL), -ENOENT);
	close_stream(&seen);
}

static int set_up(void **state)
{
	if (cpus__online(&online, NULL))
		return -1;
	first_cpu = CPUS_MAX;
	for (uint32_t cpu = 0; cpu < CPUS_MAX; cpu++) {
		if (!cpus__has(&online, cpu))
			continue;
		if (first_cpu == CPUS_MAX)
			first_cpu = cpu;
		last_cpu = cpu;
	}
	told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return told == MAP_FAILED;
}

/* Tests that bind themselves to a CPU do it for themselves. */
static int unbind(void **state)
{
	cpu_set_t all;

	memset(&all, 0xff, sizeof(all));
	return sched_setaffinity(0, sizeof(all), &all);
}

#define CASE(fn) cmocka_unit_test_setup(fn, unbind)

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
		CASE(snapshots_of_running_writers),
		CASE(snapshot_of_a_quiet_ring),
		CASE(snapshot_with_a_pause),
		CASE(no_ring_to_look_at),
	};
	int r = cmocka_run_group_tests_name("perf_stream", tests, set_up, NULL);

	return r ? 1 : 0;
}
