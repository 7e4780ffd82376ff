// SPDX-License-Identifier: BSD-2-Clause
#include "calls.h"

#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TP_FIELDS 8 /* bytes that all tracepoints begin with */
#define MAGIC	  0x9e3779b97f4a7c15ull

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
struct cpus online;
uint32_t first_cpu, last_cpu;

static uint64_t checksum(uint64_t loop, uint64_t n)
{
	return ((loop << 48 ^ n) * MAGIC) ^ (n * MAGIC << 1);
}

void pin(uint32_t cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		_exit(111);
}

void call(uint64_t loop, uint64_t n)
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
pid_t start_load(uint64_t each, unsigned burst)
{
	pid_t pid;

	memset(told, 0, sizeof(*told));
	told->calls = each;
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

void let_go(void)
{
	__atomic_store_n(&told->go, 1, __ATOMIC_RELEASE);
}

bool has_ended(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, WNOHANG) != pid)
		return false;
	assert_int_equal(status, 0);
	return true;
}

void end_load(pid_t pid)
{
	int status;

	__atomic_store_n(&told->stop, 1, __ATOMIC_RELAXED);
	let_go();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

uint64_t calls_made(void)
{
	uint64_t made = 0;

	for (unsigned i = 0; i < told->loops; i++)
		made += told->loop[i].made;
	return made;
}

/* ---- what came ---------------------------------------------------------------------------------- */

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
		const struct weir_gap *gap = event->data;

		seen->gaps[gap->cause]++;
		seen->lost[gap->cause] += gap->lost;
	}
	if (event->kind != WEIR_KIND_RECORD)
		return 0;
	seen->records++;
	assert_int_equal(weir_stream__source(seen->stream, event->source, &info), 0);
	if (strncmp(info.name, "tp", 2) == 0) {
		take_call(seen, event);
		return 0;
	}
	seen->len = event->len;
	seen->foreign_ns = event->stamp_ns;
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

char why[512];

struct weir_stream *new_stream(struct seen *seen)
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

const struct weir_perf_event calls = {.tracepoint = "raw_syscalls:sys_enter", .filter = FILTER};

void add_calls(struct weir_stream *stream, size_t ring_bytes, bool overwrite)
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

void poll_to_the_end(struct weir_stream *stream, pid_t load)
{
	while (!has_ended(load))
		assert_true(weir_stream__poll(stream, POLL_MS) >= 0);
}

/* The end of every test: the account closes, nothing is late (G1, G2, G4). */
struct weir_ledger close_stream(struct seen *seen)
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

int set_up(void **state)
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
int unbind(void **state)
{
	cpu_set_t all;

	memset(&all, 0xff, sizeof(all));
	return sched_setaffinity(0, sizeof(all), &all);
}
