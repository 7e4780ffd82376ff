// SPDX-License-Identifier: BSD-2-Clause
/*
 * Two readers of one load, a loop of uname() on each CPU: libweir, which never steps back, and libbpf's
 * perf_buffer as the control, which does. Without the second the first would prove little.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <weir/weir.h>

#include "control.skel.h"
#include "probes/probes.h"

#define LOAD_SECONDS   5 /* unless the first argument says another number */
#define LIFE_BYTES     (1u << 16)
#define EVENT_BYTES    (8u << 20)
#define CONTROL_PAGES  1024
#define PER_BURST      32 /* calls a millisecond: the control wakes its reader for each of them */
#define CLOSE_LIMIT_MS 10000
#define POLL_MS	       100
#define LOOPS	       2

/* ---- the load: a process with a loop on each of two CPUs ------------------------------------ */

struct told {
	int ready, go, ended;
	uint64_t calls[LOOPS];
};

static struct told *told;
static unsigned int load_seconds = LOAD_SECONDS;

static void die_with_the_test(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void pin(unsigned int loop)
{
	cpu_set_t all, one;
	unsigned int nth = 0;

	CPU_ZERO(&one);
	if (sched_getaffinity(0, sizeof(all), &all))
		_exit(111);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && nth++ == loop % (unsigned int)CPU_COUNT(&all))
			CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		_exit(111);
}

static void *make_calls(void *arg)
{
	unsigned int loop = (unsigned int)(uintptr_t)arg;
	const struct timespec pause = {0, 1000000};
	struct utsname name;
	uint64_t end_ns;

	pin(loop);
	end_ns = now_ns() + load_seconds * 1000000000ull;
	while (now_ns() < end_ns) {
		for (int i = 0; i < PER_BURST; i++)
			syscall(SYS_uname, &name);
		told->calls[loop] += PER_BURST;
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static void run_load(void)
{
	pthread_t loops[LOOPS];

	die_with_the_test();
	__atomic_store_n(&told->ready, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&told->go, __ATOMIC_ACQUIRE))
		usleep(1000);
	for (uintptr_t i = 0; i < LOOPS; i++)
		if (pthread_create(&loops[i], NULL, make_calls, (void *)i))
			_exit(111);
	for (int i = 0; i < LOOPS; i++)
		pthread_join(loops[i], NULL);
}

static pid_t start_load(void)
{
	pid_t pid;

	memset(told, 0, sizeof(*told));
	pid = fork();
	assert_true(pid >= 0);
	if (pid)
		return pid;
	run_load();
	_exit(0);
}

static void let_go(void)
{
	__atomic_store_n(&told->go, 1, __ATOMIC_RELEASE);
}

/* true, once, when it has ended well. */
static bool has_ended(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, WNOHANG) != pid)
		return false;
	assert_int_equal(status, 0);
	return true;
}

static uint64_t calls_made(void)
{
	return told->calls[0] + told->calls[1];
}

static int set_up(void **state)
{
	told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return told == MAP_FAILED;
}

static int tear_down(void **state)
{
	return munmap(told, sizeof(*told));
}

/* ---- what came --------------------------------------------------------------------------------- */

struct seen {
	uint64_t records, steps_back;
	uint64_t calls; /* of the records: of the load's calls, and not of its life */
	uint64_t lost;
	uint64_t last_ns, last_seq;
	uint32_t last_source;
	uint64_t watermark_ns, behind_watermark, watermarks_back;
};

/* G1, G7 */
static bool is_step_back(const struct seen *seen, const struct weir_event *event)
{
	if (event->stamp_ns != seen->last_ns)
		return event->stamp_ns < seen->last_ns;
	if (event->source != seen->last_source)
		return event->source < seen->last_source;
	return event->seq <= seen->last_seq;
}

static int on_event(void *ctx, const struct weir_event *event)
{
	struct seen *seen = ctx;

	/* G2 */
	seen->behind_watermark += event->stamp_ns <= seen->watermark_ns;
	if (event->kind == WEIR_KIND_GAP)
		seen->lost += ((const struct weir_gap *)event->data)->lost;
	if (event->kind != WEIR_KIND_RECORD)
		return 0;
	seen->steps_back += seen->records && is_step_back(seen, event);
	seen->last_ns = event->stamp_ns;
	seen->last_source = event->source;
	seen->last_seq = event->seq;
	seen->records++;
	seen->calls += event->type > WEIR_T_LIFE_MAX;
	return 0;
}

static void on_watermark(void *ctx, uint64_t watermark_ns, enum weir_order order)
{
	struct seen *seen = ctx;

	seen->watermarks_back += watermark_ns <= seen->watermark_ns;
	seen->watermark_ns = watermark_ns;
	assert_int_equal(order, WEIR_ORDER_EXACT);
}

static struct probes *open_probes(struct weir_stream *stream, const uint32_t *pid)
{
	struct probes_selection selection = {.pids = pid, .nr_pids = 1};
	char err[512];
	struct probes *probes;

	assert_int_equal(probes__select(&selection, "sys", "uname", err, sizeof(err)), 0);
	probes = probes__open(&selection, err, sizeof(err));
	if (!probes || probes__connect(probes, stream, LIFE_BYTES, EVENT_BYTES, err, sizeof(err)) ||
	    probes__attach(probes, NULL, NULL, err, sizeof(err)))
		fail_msg("%s", err);
	return probes;
}

/* G1, G2, G4 */
static void libweir_never_steps_back(void **state)
{
	struct seen seen = {0};
	struct weir_stream_opts opts = {
		.sz = sizeof(opts),
		.on_event = on_event,
		.on_watermark = on_watermark,
		.ctx = &seen,
	};
	struct weir_ledger ledger = {.sz = sizeof(ledger)};
	struct weir_stream *stream = weir_stream__new(&opts);
	uint32_t pid = (uint32_t)start_load();
	struct probes *probes;

	assert_non_null(stream);
	probes = open_probes(stream, &pid);
	let_go();
	while (!has_ended((pid_t)pid))
		assert_true(weir_stream__poll(stream, POLL_MS) >= 0);
	probes__detach(probes);
	assert_int_equal(weir_stream__close(stream), 0);
	assert_int_equal(weir_stream__ledger(stream, &ledger), 0);

	print_message("libweir: %llu of %llu records, %llu steps back\n",
		      (unsigned long long)seen.calls, (unsigned long long)calls_made() * 2,
		      (unsigned long long)seen.steps_back);
	assert_int_equal(seen.steps_back, 0);
	assert_int_equal(seen.behind_watermark, 0);
	assert_int_equal(seen.watermarks_back, 0);
	assert_int_equal(ledger.total.late, 0);
	assert_int_equal(ledger.total.ahead, 0);
	assert_int_equal(ledger.total.pending, 0);
	assert_int_equal(weir_account__difference(&ledger.total), 0);
	assert_int_equal(seen.records, ledger.total.delivered);
	assert_int_equal(seen.calls + seen.lost, calls_made() * 2);
	probes__free(probes);
	weir_stream__free(stream);
}

/* ---- the control ------------------------------------------------------------------------------- */

static void on_sample(void *ctx, int cpu, void *data, __u32 size)
{
	struct seen *seen = ctx;
	uint64_t stamp_ns;

	memcpy(&stamp_ns, data, sizeof(stamp_ns));
	seen->steps_back += stamp_ns < seen->last_ns;
	seen->last_ns = stamp_ns;
	seen->records++;
}

static void on_lost(void *ctx, int cpu, __u64 count)
{
	struct seen *seen = ctx;

	seen->lost += count;
}

static struct control *open_control(pid_t pid)
{
	struct control *control = control__open();

	assert_non_null(control);
	control->rodata->control_nr = SYS_uname;
	assert_int_equal(control__load(control), 0);
	control->bss->control_tgid = (uint32_t)pid;
	assert_int_equal(control__attach(control), 0);
	return control;
}

static void perf_buffer_steps_back(void **state)
{
	pid_t pid = start_load();
	struct control *control = open_control(pid);
	struct seen seen = {0};
	struct perf_buffer *buffers = perf_buffer__new(bpf_map__fd(control->maps.control_events),
						       CONTROL_PAGES, on_sample, on_lost, &seen,
						       NULL);

	assert_non_null(buffers);
	let_go();
	while (!has_ended(pid))
		assert_true(perf_buffer__poll(buffers, POLL_MS) >= 0 || errno == EINTR);
	perf_buffer__consume(buffers);

	print_message("perf_buffer: %llu of %llu records, %llu steps back\n",
		      (unsigned long long)seen.records, (unsigned long long)calls_made(),
		      (unsigned long long)seen.steps_back);
	/* It is the same load: all of it came. */
	assert_int_equal(seen.records + seen.lost, calls_made());
	assert_true(seen.steps_back > 0);
	perf_buffer__free(buffers);
	control__destroy(control);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(libweir_never_steps_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(perf_buffer_steps_back, set_up, tear_down),
	};
	int r;

	if (argc > 1)
		load_seconds = (unsigned int)atoi(argv[1]);
	r = cmocka_run_group_tests_name("order_readers", tests, NULL, NULL);

	return r ? 1 : 0;
}
