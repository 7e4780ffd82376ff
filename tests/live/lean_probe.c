// SPDX-License-Identifier: BSD-2-Clause
/*
 * The accounting probe on the running kernel: seeds, switches, renames, loss, CPUs that go and come,
 * and counters (A3, A13, A17, A18).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "online.h"
#include "probes/lean.h"
#include "source/cpus.h"

#define POLL_MS	     20
#define THREAD_EXECS 300
#define TRUE_PATH    "/bin/true"
#define CPUS	     64

struct lane_told {
	struct weir_lean_counted *records; /* without counts where there are none */
	size_t count, cap;
	uint64_t gap_lost, gaps, known_ns, away;
};

static struct test {
	struct lean *lean;
	struct cpus online;
	int taken; /* a CPU that has to come back; 0: none */
	struct lane_told lanes[CPUS];
	char err[512];
} t;

/* ---- what is told ---- */

static void on_records(void *ctx, int cpu, const struct weir_record *first, size_t stride,
		       size_t count)
{
	struct lane_told *told = &t.lanes[cpu];

	if (told->count + count > told->cap) {
		told->cap = 2 * (told->count + count);
		told->records = realloc(told->records, told->cap * sizeof(*told->records));
		assert_non_null(told->records);
	}
	for (size_t i = 0; i < count; i++)
		memcpy(&told->records[told->count++], (const char *)first + i * stride, stride);
	told->known_ns = told->records[told->count - 1].lean.stamp;
}

/* Nothing is told twice, and nothing that is behind what was told. */
static void on_gap(void *ctx, int cpu, uint64_t from_ns, uint64_t to_ns, uint64_t lost)
{
	struct lane_told *told = &t.lanes[cpu];

	assert_true(told->known_ns <= from_ns && from_ns <= to_ns);
	told->known_ns = to_ns;
	told->gap_lost += lost;
	told->gaps++;
}

static void on_watermark(void *ctx, int cpu, uint64_t watermark_ns, bool away)
{
	struct lane_told *told = &t.lanes[cpu];

	assert_true(told->known_ns <= watermark_ns);
	told->known_ns = watermark_ns;
	told->away += away;
}

static const struct weir_lanes_reader reader = {on_records, on_gap, on_watermark};

/* ---- one test ---- */

static int set_up(void **state)
{
	memset(&t, 0, sizeof(t));
	assert_int_equal(cpus__online(&t.online, NULL), 0);
	return 0;
}

/* The last one; skips the test where that can't be. */
static void take_cpu(int cpu)
{
	if (cpu == 0 || !set_online(cpu, false))
		skip();
	t.taken = cpu;
}

static void give_cpu_back(void)
{
	assert_true(set_online(t.taken, true));
	t.taken = 0;
}

static int tear_down(void **state)
{
	if (t.taken)
		give_cpu_back();
	lean__free(t.lean);
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		free(t.lanes[cpu].records);
	return 0;
}

static void open_lean(const struct lean_opts *opts)
{
	t.lean = lean__open(opts, t.err, sizeof(t.err));
	if (!t.lean)
		fail_msg("%s", t.err);
	if (lean__attach(t.lean, t.err, sizeof(t.err)))
		fail_msg("%s", t.err);
}

static struct weir_lane_account account_of(unsigned cpu)
{
	struct weir_lane_account account;

	assert_int_equal(lean__account(t.lean, (int)cpu, &account), 0);
	return account;
}

/* After it nothing is pending, and what the writer counted is what the reader was told. */
static void close_lean(void)
{
	assert_true(lean__detach(t.lean, &reader, NULL) >= 0);
	for (unsigned cpu = 0; cpu < CPUS; cpu++) {
		struct weir_lane_account account;

		if (lean__account(t.lean, (int)cpu, &account))
			continue;
		assert_int_equal(account.pending, 0);
		assert_int_equal(account.produced, account.delivered + account.lost);
		assert_int_equal(account.lost, account.failed);
		assert_int_equal(account.delivered, t.lanes[cpu].count);
		assert_int_equal(account.lost, t.lanes[cpu].gap_lost);
	}
}

static void poll_once(void)
{
	assert_true(lean__poll(t.lean, &reader, NULL) >= 0);
}

static bool ended(pid_t pid, struct rusage *usage)
{
	int status;
	pid_t got = wait4(pid, &status, WNOHANG, usage);

	assert_true(got == 0 || got == pid);
	if (got == pid)
		assert_int_equal(status, 0);
	return got == pid;
}

/* Read until the child has ended, well. */
static struct rusage read_until_end(pid_t pid)
{
	struct rusage usage;

	while (!ended(pid, &usage)) {
		usleep(POLL_MS * 1000);
		poll_once();
	}
	return usage;
}

/* ---- what a child does ---- */

static pid_t start(void (*act)(void))
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		act();
		_exit(0);
	}
	return pid;
}

static void must(bool good)
{
	if (!good)
		_exit(1);
}

static void stay_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	must(!sched_setaffinity(0, sizeof(set), &set));
}

static int last_cpu(void)
{
	int last = -1;

	for (int cpu = 0; cpu < CPUS; cpu++)
		if (cpus__has(&t.online, (unsigned)cpu))
			last = cpu;
	return last;
}

static void hand_over(int in, int out, unsigned times)
{
	char byte = 0;

	while (times--) {
		must(write(out, &byte, 1) == 1);
		must(read(in, &byte, 1) == 1);
	}
}

/* Two processes on the last CPU hand a byte to and fro: two switches each time, at least. */
static void ping_pong(unsigned times)
{
	int to[2], fro[2], status;
	pid_t pid;

	stay_on(last_cpu());
	must(!pipe(to) && !pipe(fro));
	pid = fork();
	must(pid >= 0);
	if (!pid) {
		char byte;

		for (unsigned i = 0; i < times; i++)
			must(read(to[0], &byte, 1) == 1 && write(fro[1], &byte, 1) == 1);
		_exit(0);
	}
	hand_over(fro[0], to[1], times);
	must(waitpid(pid, &status, 0) == pid && !status);
}

static void ping_pong_1000(void)
{
	ping_pong(1000);
}

static void ping_pong_20000(void)
{
	ping_pong(20000);
}

/* ---- seeds and switches ---- */

static const struct weir_lean *record_at(unsigned cpu, size_t i)
{
	return &t.lanes[cpu].records[i].lean;
}

static void each_lane_begins_with_its_seed(void **state)
{
	const struct lean_opts opts = {0};

	open_lean(&opts);
	poll_once();
	close_lean();
	for (unsigned cpu = 0; cpu < CPUS; cpu++) {
		size_t seeds = 0;

		if (!cpus__has(&t.online, cpu))
			continue;
		assert_true(t.lanes[cpu].count > 0);
		assert_int_equal(record_at(cpu, 0)->type, WEIR_T_LEAN_SEED);
		assert_int_equal(record_at(cpu, 0)->seq, 0);
		for (size_t i = 0; i < t.lanes[cpu].count; i++)
			seeds += record_at(cpu, i)->type == WEIR_T_LEAN_SEED;
		assert_int_equal(seeds, 1);
	}
}

/* A3: who asks is who runs, there at least. */
static void the_seed_says_who_runs(void **state)
{
	const struct lean_opts opts = {0};
	const struct weir_lean *seed;
	cpu_set_t before, one;
	int cpu = last_cpu();

	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	open_lean(&opts);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	close_lean();
	seed = record_at((unsigned)cpu, 0);
	assert_int_equal(seed->next_tid, getpid());
	assert_int_equal(seed->next_pid, getpid());
	assert_true(seed->next_start_ns > 0 && seed->next_start_ns < seed->stamp);
}

/* Who leaves with record i: the one that came with the record before. */
static bool leaves(unsigned cpu, size_t i, pid_t tid)
{
	const struct weir_lean *lean = record_at(cpu, i);

	return lean->type == WEIR_T_LEAN_SWITCH && !(lean->flags & WEIR_LEAN_UNSEEN) &&
	       record_at(cpu, i - 1)->next_tid == (uint32_t)tid;
}

struct switches {
	uint64_t all, voluntary;
	uint64_t last_ns, last_totals;
	bool died;
};

static struct switches switches_of(pid_t tid)
{
	struct switches sum = {0};

	for (unsigned cpu = 0; cpu < CPUS; cpu++) {
		for (size_t i = 1; i < t.lanes[cpu].count; i++) {
			const struct weir_lean *lean = record_at(cpu, i);

			if (!leaves(cpu, i, tid))
				continue;
			sum.all++;
			sum.voluntary += weir_lean__state(lean->flags) &&
					 !(lean->flags & WEIR_LEAN_PREEMPT);
			sum.died |= weir_lean__state(lean->flags) == 0x80;
			if (lean->stamp < sum.last_ns)
				continue;
			sum.last_ns = lean->stamp;
			sum.last_totals = lean->prev_totals;
		}
	}
	return sum;
}

static void check_order(void)
{
	for (unsigned cpu = 0; cpu < CPUS; cpu++) {
		assert_int_equal(t.lanes[cpu].gaps, 0);
		for (size_t i = 1; i < t.lanes[cpu].count; i++) {
			assert_int_equal(record_at(cpu, i)->seq, i);
			assert_true(record_at(cpu, i)->stamp >= record_at(cpu, i - 1)->stamp);
		}
	}
}

/*
 * The kernel's own count of a process's switches, to the last one: that in which it dies comes after
 * its parent has been told, perhaps.
 */
static void check_switches(const struct lean_opts *opts)
{
	struct switches switches;
	struct rusage usage;
	uint64_t counted;
	pid_t pid;

	open_lean(opts);
	pid = start(ping_pong_1000);
	usage = read_until_end(pid);
	close_lean();
	check_order();
	switches = switches_of(pid);
	counted = (uint64_t)(usage.ru_nvcsw + usage.ru_nivcsw);
	assert_true(switches.died);
	assert_true(switches.all >= 1000);
	/* The child that it has waited for is in its usage: its own are 1,000 and more of it. */
	assert_true(switches.all <= counted + 1);
}

static void switches_are_whole(void **state)
{
	const struct lean_opts opts = {0};

	check_switches(&opts);
}

static void raw_tracepoints_say_the_same(void **state)
{
	const struct lean_opts opts = {.raw = true};

	check_switches(&opts);
}

#define SLEEPS	       200
/* Where a CPU is stolen, a sleep may be over before anybody else has it. */
#define SWITCHES_LEAST 20

static void sleep_often(void)
{
	for (int i = 0; i < SLEEPS; i++)
		usleep(100);
}

/* Switches that a virtual machine's kernel has not shown to BPF: of whom, nobody knows. */
static uint64_t hidden(void)
{
	uint64_t sum = 0;

	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		for (size_t i = 1; i < t.lanes[cpu].count; i++)
			sum += !!(record_at(cpu, i)->flags & WEIR_LEAN_UNSEEN);
	return sum;
}

/* A13, for one process alone: exactly what the kernel has counted. */
static void switches_are_what_the_kernel_counts(void **state)
{
	const struct lean_opts opts = {0};
	struct switches switches;
	struct rusage usage;
	uint64_t counted;
	pid_t pid;

	open_lean(&opts);
	pid = start(sleep_often);
	usage = read_until_end(pid);
	close_lean();
	switches = switches_of(pid);
	counted = (uint64_t)(usage.ru_nvcsw + usage.ru_nivcsw);
	assert_true(switches.died || hidden());
	assert_true(counted >= SWITCHES_LEAST);
	assert_in_range(switches.all, counted - hidden(), counted + 1);
	assert_in_range(switches.voluntary, (uint64_t)usage.ru_nvcsw - hidden(),
			usage.ru_nvcsw + 1);
}

/* ---- totals ---- */

static void stop_in_the_middle(void)
{
	stay_on(last_cpu());
	sleep_often();
	raise(SIGSTOP);
}

static uint64_t waited_ns(pid_t pid)
{
	unsigned long long ran, waited;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", pid);
	file = fopen(path, "re");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%llu %llu", &ran, &waited), 2);
	fclose(file);
	return waited;
}

/* How long it has waited for its CPU: /proc/PID/schedstat has the same, to the nanosecond. */
static void totals_are_the_kernel_s(void **state)
{
	const struct lean_opts opts = {0};
	struct switches switches;
	uint64_t waited;
	int status;
	pid_t pid;

	open_lean(&opts);
	pid = start(stop_in_the_middle);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	/* The parent is told before the last switch is done. */
	usleep(100000);
	waited = waited_ns(pid);
	poll_once();
	switches = switches_of(pid);
	assert_int_equal(kill(pid, SIGCONT), 0);
	read_until_end(pid);
	close_lean();
	assert_true(switches.all >= SWITCHES_LEAST);
	assert_int_equal(weir_lean__delay_ns(switches.last_totals, 0), waited);
}

/* ---- renames (A17) ---- */

static void *exec_true(void *ctx)
{
	execl(TRUE_PATH, "true", NULL);
	_exit(1);
}

/* A thread that is not the leader execs, and takes the leader's number while it runs. */
static void exec_by_thread(void)
{
	pthread_t thread;

	must(!pthread_create(&thread, NULL, exec_true, NULL));
	for (;;)
		pause();
}

struct exec {
	uint32_t pid;
	uint64_t from_ns;
	unsigned renames, unseen;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void note_switch(struct exec *exec, unsigned cpu, size_t i)
{
	const struct weir_lean *lean = record_at(cpu, i), *before = record_at(cpu, i - 1);

	if (lean->flags & WEIR_LEAN_UNSEEN)
		exec->unseen++;
	if (!(lean->flags & WEIR_LEAN_RENAMED) || before->next_pid != exec->pid)
		return;
	/* Only a thread that is not the leader can be renamed. */
	assert_int_not_equal(before->next_tid, exec->pid);
	exec->renames++;
}

/* All that was told since it began; the newest stand at the end. */
static void judge_exec(struct exec *exec)
{
	exec->renames = exec->unseen = 0;
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		for (size_t i = t.lanes[cpu].count;
		     i-- > 1 && record_at(cpu, i)->stamp > exec->from_ns;)
			note_switch(exec, cpu, i);
}

/* The switch in which it is found out may be its last, after its parent was told that it has ended. */
static struct exec run_exec(void)
{
	struct exec exec = {.from_ns = now_ns()};
	int status;

	exec.pid = (uint32_t)start(exec_by_thread);
	assert_int_equal(waitpid((pid_t)exec.pid, &status, 0), exec.pid);
	assert_int_equal(status, 0);
	for (int i = 0; i < 5000 && !exec.renames && !exec.unseen; i++) {
		if (i)
			usleep(1000);
		poll_once();
		judge_exec(&exec);
	}
	return exec;
}

/*
 * A task whose switches never reach the probe may run just before the thread does, which then comes
 * unseen: whether it was renamed can't be told. Those don't count; of the others each one does.
 */
static void check_renames(const struct lean_opts *opts)
{
	unsigned clear = 0, hidden = 0;

	open_lean(opts);
	while (clear < THREAD_EXECS) {
		struct exec exec = run_exec();

		if (!exec.unseen)
			assert_int_equal(exec.renames, 1);
		clear += !exec.unseen;
		hidden += exec.unseen > 0;
		assert_in_range(hidden, 0, 10 * THREAD_EXECS);
	}
	close_lean();
	check_order();
}

/* Nobody reads while a thread execs: however long that takes, there is room. */
#define ROOM (1u << 18)

static void thread_execs_are_renames(void **state)
{
	const struct lean_opts opts = {.ring_records = ROOM};

	check_renames(&opts);
}

static void raw_thread_execs_are_renames(void **state)
{
	const struct lean_opts opts = {.ring_records = ROOM, .raw = true};

	check_renames(&opts);
}

/* ---- loss ---- */

/* Rings that are much too small, and nobody reads until it is over: close_lean() has the sums. */
static void loss_is_counted_exactly(void **state)
{
	const struct lean_opts opts = {.ring_records = 64};
	unsigned cpu = (unsigned)last_cpu();
	int status;
	pid_t pid;

	open_lean(&opts);
	pid = start(ping_pong_1000);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	poll_once();
	/* 64 were kept, of all that came. */
	assert_int_equal(t.lanes[cpu].records[63].lean.seq, 63);
	assert_true(account_of(cpu).lost >= 2000 - 64);
	assert_int_equal(account_of(cpu).max_fill, 64);
	/* And now it goes on. */
	pid = start(ping_pong_1000);
	read_until_end(pid);
	close_lean();
	assert_true(t.lanes[cpu].gaps >= 2);
}

/* A reader that looks every 20 ms loses nothing of the fastest switching there is. */
static void the_default_ring_is_large_enough(void **state)
{
	const struct lean_opts opts = {0};
	pid_t pid;

	open_lean(&opts);
	pid = start(ping_pong_20000);
	read_until_end(pid);
	close_lean();
	check_order();
	assert_true(t.lanes[last_cpu()].count >= 40000);
}

/* ---- CPUs that go and come ---- */

static size_t count_away(unsigned cpu)
{
	size_t away = 0;

	for (size_t i = 0; i < t.lanes[cpu].count; i++)
		away += !!(record_at(cpu, i)->flags & WEIR_LEAN_AWAY);
	return away;
}

static void stay_a_moment(void)
{
	stay_on(last_cpu());
}

static void a_cpu_that_goes_is_away(void **state)
{
	const struct lean_opts opts = {0};
	int cpu = last_cpu();
	pid_t pid;

	open_lean(&opts);
	poll_once();
	take_cpu(cpu);
	poll_once();
	usleep(1000);
	poll_once();
	assert_true(t.lanes[cpu].away > 0);
	give_cpu_back();
	pid = start(stay_a_moment);
	read_until_end(pid);
	close_lean();
	assert_int_equal(count_away((unsigned)cpu), 1);
	assert_int_equal(t.lanes[cpu].gaps, 0);
}

static void a_cpu_that_comes_gets_a_lane(void **state)
{
	const struct lean_opts opts = {0};
	int cpu = last_cpu();
	struct weir_lane_account account;
	pid_t pid;

	take_cpu(cpu);
	open_lean(&opts);
	assert_int_equal(lean__account(t.lean, cpu, &account), -ENOENT);
	give_cpu_back();
	poll_once();
	pid = start(stay_a_moment);
	read_until_end(pid);
	close_lean();
	assert_true(t.lanes[cpu].count > 1);
	assert_int_equal(record_at((unsigned)cpu, 0)->type, WEIR_T_LEAN_SEED);
	assert_int_equal(t.lanes[cpu].gaps, 0);
}

/* ---- counters ---- */

/* Events that every kernel has: the CPU's own count of its switches goes up by one with each. */
static void counters_are_read_at_each_switch(void **state)
{
	static const struct lean_event events[WEIR_LEAN_COUNTERS] = {
		[WEIR_LEAN_CYCLES] = {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
		[WEIR_LEAN_INSTRUCTIONS] = {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
		[WEIR_LEAN_CACHE_MISSES] = {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
	};
	const struct lean_opts opts = {.counters = true, .events = events};
	const struct lane_told *told = &t.lanes[last_cpu()];
	size_t steps = 0;
	pid_t pid;

	open_lean(&opts);
	pid = start(ping_pong_1000);
	read_until_end(pid);
	close_lean();
	for (size_t i = 1; i < told->count; i++) {
		const struct weir_lean_counted *before = &told->records[i - 1];
		const struct weir_lean_counted *now = &told->records[i];

		for (int c = 0; c < WEIR_LEAN_COUNTERS; c++) {
			assert_true(now->count[c] != WEIR_LEAN_NO_COUNT);
			assert_true(now->count[c] >= before->count[c]);
		}
		steps += now->count[WEIR_LEAN_INSTRUCTIONS] ==
			 before->count[WEIR_LEAN_INSTRUCTIONS] + 1;
	}
	assert_true(steps >= 2000);
	/* All but those of whom the probe has not seen everything, and the first. */
	assert_true(steps + told->count / 10 >= told->count);
}

/* Such as cache misses on a virtual machine. Without any it is the machine that has none. */
static void a_counter_that_is_not_there_leaves_the_others(void **state)
{
	static const struct lean_event no_such = {PERF_TYPE_SOFTWARE, UINT32_MAX};
	static struct lean_event events[WEIR_LEAN_COUNTERS] = {
		[WEIR_LEAN_CYCLES] = {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
		[WEIR_LEAN_INSTRUCTIONS] = {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
	};
	const struct lean_opts opts = {.counters = true, .events = events};
	const struct lane_told *told = &t.lanes[last_cpu()];
	pid_t pid;

	events[WEIR_LEAN_CACHE_MISSES] = no_such;
	open_lean(&opts);
	pid = start(ping_pong_1000);
	read_until_end(pid);
	close_lean();
	assert_true(told->count > 1000);
	for (size_t i = 0; i < told->count; i++) {
		assert_true(told->records[i].count[WEIR_LEAN_CYCLES] != WEIR_LEAN_NO_COUNT);
		assert_true(told->records[i].count[WEIR_LEAN_CACHE_MISSES] == WEIR_LEAN_NO_COUNT);
	}
	lean__free(t.lean);
	events[WEIR_LEAN_CYCLES] = events[WEIR_LEAN_INSTRUCTIONS] = no_such;
	t.lean = lean__open(&opts, t.err, sizeof(t.err));
	assert_null(t.lean);
	assert_int_equal(errno, ENODEV);
}

/* Whoever sleeps on it is woken once an eighth of the ring is full, and again after each poll. */
static void a_ring_that_fills_up_wakes(void **state)
{
	const struct lean_opts opts = {.ring_records = 4096};
	const struct lane_told *told = &t.lanes[last_cpu()];
	struct pollfd bell = {.events = POLLIN};

	open_lean(&opts);
	bell.fd = lean__wake_fd(t.lean);
	for (int i = 0; i < 2; i++) {
		size_t before = told->count;
		pid_t pid = start(ping_pong_1000);
		struct rusage usage;

		assert_int_equal(poll(&bell, 1, -1), 1);
		while (!ended(pid, &usage))
			usleep(1000);
		poll_once();
		assert_true(told->count - before >= opts.ring_records / 8);
		while (poll(&bell, 1, 0))
			poll_once();
	}
	close_lean();
}

/* Where there are no counters that is said; where there are, they count. */
static void hardware_counts_or_is_missed(void **state)
{
	const struct lean_opts opts = {.counters = true};
	const struct lane_told *told = &t.lanes[last_cpu()];
	pid_t pid;

	t.lean = lean__open(&opts, t.err, sizeof(t.err));
	if (!t.lean) {
		assert_int_equal(errno, ENODEV);
		assert_non_null(strstr(t.err, "no hardware counters"));
		return;
	}
	assert_int_equal(lean__attach(t.lean, t.err, sizeof(t.err)), 0);
	pid = start(ping_pong_1000);
	read_until_end(pid);
	close_lean();
	assert_true(told->records[told->count - 1].count[WEIR_LEAN_CYCLES] >
		    told->records[0].count[WEIR_LEAN_CYCLES]);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(each_lane_begins_with_its_seed),
		CASE(the_seed_says_who_runs),
		CASE(switches_are_whole),
		CASE(raw_tracepoints_say_the_same),
		CASE(switches_are_what_the_kernel_counts),
		CASE(totals_are_the_kernel_s),
		CASE(thread_execs_are_renames),
		CASE(raw_thread_execs_are_renames),
		CASE(loss_is_counted_exactly),
		CASE(the_default_ring_is_large_enough),
		CASE(a_ring_that_fills_up_wakes),
		CASE(a_cpu_that_goes_is_away),
		CASE(a_cpu_that_comes_gets_a_lane),
		CASE(counters_are_read_at_each_switch),
		CASE(hardware_counts_or_is_missed),
		CASE(a_counter_that_is_not_there_leaves_the_others),
	};
	int r = cmocka_run_group_tests_name("lean", tests, NULL, NULL);

	return r ? 1 : 0;
}
