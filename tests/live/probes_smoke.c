// SPDX-License-Identifier: BSD-2-Clause
/*
 * The probes on the running kernel: processes, scheduling, selection, loss, and waking the reader.
 */
#include "acts.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <bpf/bpf.h>

#include "probes.skel.h"

/* ---- lifecycle ---- */

static void become_true(void)
{
	execl(TRUE_PATH, "true", "", "an argument", NULL);
}

static void fork_and_exec(void)
{
	t.told->child = run_child(become_true);
}

static void exec_is_told_whole(void **state)
{
	static const char argv[] = "true\0\0an argument";
	const struct weir_fork *fork;
	const struct weir_exec *exec;
	const struct weir_exit *exit;

	OPEN(NULL, "process", NULL);
	run(fork_and_exec);
	fork = find(WEIR_T_FORK, t.told->child);
	exec = find(WEIR_T_EXEC, t.told->child);
	exit = find(WEIR_T_EXIT, t.told->child);
	close_all();

	assert_int_equal(fork->parent.pid, t.told->actor);
	assert_int_equal(fork->child.pid, t.told->child);
	assert_int_equal(exec->id.pid, t.told->child);
	assert_int_equal(exec->old_tid, t.told->child);
	assert_int_equal(exec->ppid, t.told->actor);
	assert_int_equal(exec->uid, geteuid());
	assert_int_equal(exec->flags, 0);
	assert_int_equal(exec->start_ns, fork->child_start_ns);
	assert_int_equal(exec->cgroup, fork->child_cgroup);
	assert_string_equal(exec->comm, "true");
	assert_int_equal(exec->path_len, strlen(TRUE_PATH));
	assert_memory_equal(exec + 1, TRUE_PATH, exec->path_len);
	assert_int_equal(exec->argv_len, sizeof(argv));
	assert_memory_equal((const char *)(exec + 1) + exec->path_len, argv, sizeof(argv));
	assert_int_equal(exit->start_ns, fork->child_start_ns);
	assert_int_equal(exit->flags, WEIR_EXIT_PROCESS);
	assert_int_equal(exit->code, 0);
	assert_int_equal(exit->ppid, t.told->actor);
}

static void exec_of_much(void)
{
	static char arg[3000];

	memset(arg, 'x', sizeof(arg) - 1);
	execl(TRUE_PATH, arg, arg, NULL);
}

static void long_argv_is_cut(void **state)
{
	const struct weir_exec *exec;

	OPEN(NULL, "process", NULL);
	run(exec_of_much);
	exec = find(WEIR_T_EXEC, t.told->actor);
	assert_int_equal(exec->flags, WEIR_EXEC_ARGV_CUT);
	assert_int_equal(exec->argv_len, 4096);
	close_all();
}

static void die_of_a_signal(void)
{
	raise(SIGKILL);
}

static void exit_with_a_code(void)
{
	_exit(42);
}

static void die_in_both_ways(void)
{
	t.told->child = run_child(die_of_a_signal);
	t.told->other = run_child(exit_with_a_code);
}

static void exit_tells_code_and_signal(void **state)
{
	const struct weir_exit *exit;
	const struct weir_signal *sig;

	OPEN(NULL, "process", NULL, "signal", NULL);
	run(die_in_both_ways);
	exit = find(WEIR_T_EXIT, t.told->child);
	assert_int_equal(exit->signal, SIGKILL);
	assert_int_equal(exit->code, 0);
	exit = find(WEIR_T_EXIT, t.told->other);
	assert_int_equal(exit->signal, 0);
	assert_int_equal(exit->code, 42);

	sig = find(WEIR_T_SIGNAL_GENERATE, t.told->child);
	assert_int_equal(sig->target.tid, t.told->child);
	assert_int_equal(sig->sig, SIGKILL);
	assert_int_equal(sig->code, SI_TKILL);
	sig = find(WEIR_T_SIGNAL_DELIVER, t.told->child);
	assert_int_equal(sig->sig, SIGKILL);
	assert_int_equal(sig->handler, (uintptr_t)SIG_DFL);
	close_all();
}

static void *be_a_thread(void *arg)
{
	t.told->other = (pid_t)syscall(SYS_gettid);
	prctl(PR_SET_NAME, "a thread");
	return NULL;
}

static void make_a_thread(void)
{
	pthread_t thread;

	must(pthread_create(&thread, NULL, be_a_thread, NULL) == 0);
	must(pthread_join(thread, NULL) == 0);
}

static void threads_are_not_processes(void **state)
{
	const struct weir_fork *fork;
	const struct weir_exit *thread, *exit;
	const struct weir_rename *rename;

	OPEN(NULL, "process", NULL);
	run(make_a_thread);
	fork = find(WEIR_T_FORK, t.told->other);
	assert_int_equal(fork->child.pid, t.told->actor);
	rename = find(WEIR_T_RENAME, t.told->other);
	assert_string_equal(rename->comm, "a thread");
	/* Before 6.15 both may find the other gone: still only one of them is the process's end. */
	thread = find(WEIR_T_EXIT, t.told->other);
	exit = find(WEIR_T_EXIT, t.told->actor);
	assert_int_equal((thread->flags & WEIR_EXIT_PROCESS) + (exit->flags & WEIR_EXIT_PROCESS),
			 WEIR_EXIT_PROCESS);
	close_all();
}

static void *exec_in_thread(void *arg)
{
	t.told->other = (pid_t)syscall(SYS_gettid);
	execl(TRUE_PATH, "true", NULL);
	return NULL;
}

static void exec_beside_the_leader(void)
{
	pthread_t thread;

	must(pthread_create(&thread, NULL, exec_in_thread, NULL) == 0);
	pause();
}

/* A17: the thread takes the leader's number, and the record tells the old one. */
static void exec_by_a_thread(void **state)
{
	const struct weir_exec *exec;

	OPEN(NULL, "process", NULL);
	run(exec_beside_the_leader);
	exec = find(WEIR_T_EXEC, t.told->actor);
	assert_int_equal(exec->id.pid, t.told->actor);
	assert_int_equal(exec->old_tid, t.told->other);
	close_all();
}

static void seed_has_those_that_run(void **state)
{
	char exe[256];
	ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	assert_true(len > 0);
	exe[len] = '\0';
	OPEN(NULL, "process", NULL);
	close_all();
	assert_true(t.seeds > 2);
	assert_int_equal(t.own_seed.id.pid, getpid());
	assert_int_equal(t.own_seed.ppid, getppid());
	assert_int_equal(t.own_seed.uid, geteuid());
	assert_int_equal(t.own_seed.kthread, 0);
	assert_true(t.own_seed.start_ns > 0);
	assert_string_equal(t.own_exe, exe);
}

/* ---- scheduling ---- */

static void sleep_and_move(void)
{
	cpu_set_t set;

	for (int cpu = 0; cpu < 2; cpu++) {
		CPU_ZERO(&set);
		CPU_SET(cpu, &set);
		must(sched_setaffinity(0, sizeof(set), &set) == 0);
		usleep(1000);
	}
}

static bool is_switch(const struct record *r, pid_t prev, pid_t next)
{
	const struct weir_switch *sw = r->payload;

	return r->type == WEIR_T_SWITCH && (!prev || sw->prev.tid == (uint32_t)prev) &&
	       (!next || sw->next.tid == (uint32_t)next);
}

static const struct record *find_switch(size_t from, pid_t prev, pid_t next)
{
	for (size_t i = from; i < t.n; i++) {
		if (is_switch(&t.records[i], prev, next))
			return &t.records[i];
	}
	fail_msg("no switch from %d to %d", prev, next);
	return NULL;
}

static void switches_wakeups_and_moves(void **state)
{
	const struct weir_wakeup *wake = NULL;
	const struct weir_migrate *move = NULL;
	const struct weir_switch *out;

	OPEN(NULL, "sched", NULL);
	run(sleep_and_move);
	for (size_t i = 0; i < t.n; i++) {
		const struct weir_wakeup *w = t.records[i].payload;
		const struct weir_migrate *m = t.records[i].payload;

		if (t.records[i].type == WEIR_T_WAKEUP && w->target.tid == (uint32_t)t.told->actor)
			wake = w;
		if (t.records[i].type == WEIR_T_MIGRATE && m->target.tid == (uint32_t)t.told->actor)
			move = m;
	}
	assert_non_null(wake);
	assert_int_equal(wake->is_new, 0);
	assert_non_null(move);
	assert_int_not_equal(move->orig_cpu, move->dest_cpu);
	out = find_switch(0, t.told->actor, 0)->payload;
	assert_int_equal(out->prev.pid, t.told->actor);
	assert_string_equal(out->prev_comm, "probes_smoke");
	find_switch(0, 0, t.told->actor);
	close_all();
	/* The test's own wake-ups. */
	assert_true(own_events("cpu") > 0);
}

/* ---- selection ---- */

static void nothing(void)
{
}

static void pause_for_ever(void)
{
	pause();
}

/* Born before the probes: in the selection by its parent. */
static void be_born_early(void)
{
	t.told->ready = 1;
	wait_for(&t.told->go);
	syscall(SYS_getppid);
}

static void be_born_late(void)
{
	syscall(SYS_getppid);
}

static void have_two_children(void)
{
	t.told->child = fork_child(be_born_early);
	wait_for(&t.told->go);
	t.told->other = run_child(be_born_late);
	must(waitpid(t.told->child, NULL, 0) == t.told->child);
}

static bool is_family(uint32_t pid)
{
	return pid == (uint32_t)t.told->actor || pid == (uint32_t)t.told->child ||
	       pid == (uint32_t)t.told->other;
}

static void only_the_selected_and_their_children(void **state)
{
	pid_t stranger = start(pause_for_ever), pid = start(have_two_children);
	const struct weir_sys_exit *exit;
	uint32_t selected;

	wait_for(&t.told->ready);
	selected = (uint32_t)pid;
	OPEN(&selected, "sys", "getppid");
	assert_int_equal(probes__alive(t.probes), 2);
	t.told->go = 1;
	finish(pid);
	kill(stranger, SIGKILL);
	waitpid(stranger, NULL, 0);
	assert_int_equal(probes__alive(t.probes), 0);
	close_all();

	exit = find(WEIR_T_SYS_EXIT, t.told->child);
	assert_int_equal(exit->ret, pid);
	exit = find(WEIR_T_SYS_EXIT, t.told->other);
	assert_int_equal(exit->ret, pid);
	for (size_t i = 0; i < t.n; i++)
		assert_true(is_family(who(&t.records[i])->pid));
	assert_int_equal(count(WEIR_T_EXIT, stranger), 0);
	/* The stranger's exit: turned away, and counted. */
	assert_true(account().filtered > 0);
}

static void a_selection_that_is_gone(void **state)
{
	uint32_t selected;
	pid_t pid = start(nothing);

	selected = (uint32_t)pid;
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	OPEN(&selected, "process", NULL);
	assert_int_equal(probes__alive(t.probes), 0);
	close_all();
}

static void own_events_are_left_out(void **state)
{
	OPEN(NULL, "sys", "getppid");
	for (int i = 0; i < 1000; i++)
		syscall(SYS_getppid);
	assert_int_equal(weir_stream__flush(t.stream, CALL_LIMIT_MS), 0);
	close_all();
	assert_int_equal(count(WEIR_T_SYS_ENTER, getpid()), 0);
	assert_true(account().self >= 2000);
}

/* ---- loss ---- */

static void flood(void)
{
	for (int i = 0; i < 100000; i++)
		syscall(SYS_getppid);
}

/* L2, L4: in rings of one page, while the reader looks away. */
static void every_attempt_is_accounted_for(void **state)
{
	pid_t pid;

	open_all((const char *const[]){"sys", "getppid", NULL}, NULL,
		 (size_t)sysconf(_SC_PAGESIZE));
	pid = start(flood);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(weir_stream__flush(t.stream, CALL_LIMIT_MS), 0);
	close_all();
	assert_true(account().lost[WEIR_LOST_RESERVE_FAILED] > 0);
	assert_true(account().produced >= 200000);
}

/* ---- waking the reader ---- */

static struct weir_counters *map_counters(size_t *bytes)
{
	int fd = bpf_map__fd(t.probes->skel->maps.weir_counters);
	void *map;

	*bytes = (1 + 2 * t.probes->nr_cpus) * sizeof(struct weir_counters);
	map = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(map != MAP_FAILED);
	return map;
}

/* Of the rings for events: class 1, and the control element stands before all. */
static uint64_t count_half_full(const struct weir_counters *counters)
{
	uint64_t n = 0;

	for (uint32_t cpu = 0; cpu < t.probes->nr_cpus; cpu++)
		n += counters[1 + t.probes->nr_cpus + cpu].half_full;
	return n;
}

static void call_few(void)
{
	for (int i = 0; i < 8; i++)
		syscall(SYS_getppid);
}

static void call_many(void)
{
	for (int i = 0; i < 1000; i++)
		syscall(SYS_getppid);
}

static void call_when_told(void)
{
	wait_for(&t.told->go);
	syscall(SYS_getppid);
}

/* Unlike poll(), which looks at all of them in the end, epoll tells only of rings that were woken. */
static int sleep_on_rings(void)
{
	int rings = bpf_map__fd(t.probes->skel->maps.weir_rings), epoll = epoll_create1(0);

	for (uint32_t slot = 0; slot < 2 * t.probes->nr_cpus; slot++) {
		struct epoll_event want = {.events = EPOLLIN};
		uint32_t id;

		if (bpf_map_lookup_elem(rings, &slot, &id) == 0)
			epoll_ctl(epoll, EPOLL_CTL_ADD, bpf_map_get_fd_by_id(id), &want);
	}
	return epoll;
}

static void a_sleeping_reader_is_woken(void **state)
{
	struct weir_control *control;
	struct epoll_event event;
	size_t bytes;
	int epoll;
	pid_t pid = start(call_when_told);
	uint32_t selected = (uint32_t)pid;

	OPEN(&selected, "sys", "getppid"); /* so that nobody else's record comes first */
	control = (struct weir_control *)map_counters(&bytes);
	epoll = sleep_on_rings();
	__atomic_store_n(&control->wanted, 1, __ATOMIC_SEQ_CST);
	t.told->go = 1;
	assert_int_equal(epoll_wait(epoll, &event, 1, CALL_LIMIT_MS), 1);
	assert_int_equal(__atomic_load_n(&control->wanted, __ATOMIC_ACQUIRE), 0);
	finish(pid);
	close(epoll);
	munmap(control, bytes);
	close_all();
}

/* Noted when the ring gets there, and taken back by a producer that sees it emptied. */
static void a_ring_that_fills_up_is_noted(void **state)
{
	struct weir_counters *counters;
	size_t bytes;

	open_all((const char *const[]){"sys", "getppid", NULL}, NULL,
		 (size_t)sysconf(_SC_PAGESIZE));
	counters = map_counters(&bytes);
	start_to_end(call_few);
	assert_int_equal(count_half_full(counters), 0);
	start_to_end(call_many);
	assert_true(count_half_full(counters) > 0);
	for (int i = 0; i < 100 && count_half_full(counters); i++) {
		assert_int_equal(weir_stream__flush(t.stream, CALL_LIMIT_MS), 0);
		start_to_end(call_few);
	}
	assert_int_equal(count_half_full(counters), 0);
	munmap(counters, bytes);
	close_all();
}

/* ---- no permission ---- */

static void open_as_nobody(void)
{
	struct probes_selection sel = {0};
	char err[512];

	must(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
	must(!probes__open(&sel, err, sizeof(err)));
	must(errno == EPERM && strstr(err, "CAP_BPF") && strstr(err, "root"));
}

/* M5 */
static void refusal_names_the_way_out(void **state)
{
	int status;
	pid_t pid = start(open_as_nobody);

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(exec_is_told_whole),
		CASE(long_argv_is_cut),
		CASE(exit_tells_code_and_signal),
		CASE(threads_are_not_processes),
		CASE(exec_by_a_thread),
		CASE(seed_has_those_that_run),
		CASE(switches_wakeups_and_moves),
		CASE(only_the_selected_and_their_children),
		CASE(a_selection_that_is_gone),
		CASE(own_events_are_left_out),
		CASE(every_attempt_is_accounted_for),
		CASE(a_sleeping_reader_is_woken),
		CASE(a_ring_that_fills_up_is_noted),
		CASE(refusal_names_the_way_out),
	};
	int r = cmocka_run_group_tests_name("probes", tests, NULL, NULL);

	return r ? 1 : 0;
}
