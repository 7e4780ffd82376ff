// SPDX-License-Identifier: BSD-2-Clause
/*
 * The probes on the running kernel: what a child does is what the records say, byte for byte.
 *
 * The acts are done by a child, since the test is the reader, whose own events are left out. They
 * tell what they know (process numbers) through shared memory.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <weir/weir.h>

#include "probes/loaded.h"
#include "probes.skel.h"

#define LIFE_BYTES    (1u << 18)
#define EVENT_BYTES   (1u << 20)
#define RECORDS_MAX   65536
#define CALL_LIMIT_MS 10000
#define NOWHERE	      ((const char *)8)
#define TRUE_PATH     "/bin/true"

struct record {
	uint64_t stamp;
	uint16_t type;
	uint32_t len;
	void *payload;
};

/* What the acting child writes and the test reads. */
struct told {
	pid_t actor, child, other;
	int ready, go;
	char script[32];
};

static struct {
	struct weir_stream *stream;
	struct probes *probes;
	struct record *records;
	size_t n, seeds;
	struct weir_seed own_seed;
	char own_exe[256];
	struct told *told;
	char err[512];
} t;

static int keep(void *ctx, const struct weir_event *event)
{
	struct record *r = &t.records[t.n];

	if (event->kind != WEIR_KIND_RECORD || t.n == RECORDS_MAX)
		return 0;
	*r = (struct record){event->stamp_ns, event->type, event->len, malloc(event->len)};
	memcpy(r->payload, event->data, event->len);
	t.n++;
	return 0;
}

static void seed(void *ctx, const struct weir_seed *s, const char *exe, const char *cgroups)
{
	t.seeds++;
	if (s->id.tid != (uint32_t)getpid())
		return;
	t.own_seed = *s;
	snprintf(t.own_exe, sizeof(t.own_exe), "%s", exe ? exe : "");
	assert_non_null(cgroups);
	assert_non_null(strchr(cgroups, '/'));
}

static void open_all(const char *const *what, const uint32_t *pid, size_t event_bytes)
{
	struct probes_selection sel = {.string_limit = 64, .pids = pid, .nr_pids = pid ? 1 : 0};
	struct weir_stream_opts opts = {.sz = sizeof(opts), .on_event = keep};

	for (; *what; what += 2)
		assert_int_equal(probes__select(&sel, what[0], what[1], t.err, sizeof(t.err)), 0);
	t.stream = weir_stream__new(&opts);
	assert_non_null(t.stream);
	t.probes = probes__open(&sel, t.err, sizeof(t.err));
	if (!t.probes)
		fail_msg("%s", t.err);
	if (probes__connect(t.probes, t.stream, LIFE_BYTES, event_bytes, t.err, sizeof(t.err)) ||
	    probes__attach(t.probes, seed, NULL, t.err, sizeof(t.err)))
		fail_msg("%s", t.err);
}

/* What to trace, as pairs of group and name. */
#define OPEN(pid, ...) open_all((const char *const[]){__VA_ARGS__, NULL}, pid, EVENT_BYTES)

/* The end of every test: after detach, nothing is missing and nothing is left (G4). */
static void close_all(void)
{
	struct weir_ledger ledger = {.sz = sizeof(ledger)};

	probes__detach(t.probes);
	assert_int_equal(weir_stream__close(t.stream), 0);
	assert_int_equal(weir_stream__ledger(t.stream, &ledger), 0);
	assert_int_equal(ledger.total.pending, 0);
	assert_int_equal(weir_account__difference(&ledger.total), 0);
	assert_int_equal(ledger.total.late, 0);
	assert_int_equal(ledger.total.failed, ledger.total.lost[WEIR_LOST_RESERVE_FAILED]);
}

static struct weir_account account(void)
{
	struct weir_ledger ledger = {.sz = sizeof(ledger)};

	assert_int_equal(weir_stream__ledger(t.stream, &ledger), 0);
	return ledger.total;
}

/* Events of ours that were left out of one class of rings. */
static uint64_t own_events(const char *class)
{
	struct weir_source_info info;
	uint64_t own = 0;

	for (uint32_t i = 0; weir_stream__source(t.stream, i, &info) == 0; i++) {
		if (!strncmp(info.name, class, strlen(class)))
			own += info.account.self;
	}
	return own;
}

static int set_up(void **state)
{
	memset(&t, 0, sizeof(t));
	t.records = calloc(RECORDS_MAX, sizeof(*t.records));
	t.told = mmap(NULL, sizeof(*t.told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	return !t.records || t.told == MAP_FAILED;
}

static int tear_down(void **state)
{
	if (t.probes)
		probes__free(t.probes);
	weir_stream__free(t.stream);
	while (t.n)
		free(t.records[--t.n].payload);
	free(t.records);
	munmap(t.told, sizeof(*t.told));
	return 0;
}

/* Start a child that does `act` and ends. */
static pid_t start(void (*act)(void))
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid) {
		t.told->actor = pid;
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	act();
	_exit(0);
}

static void finish(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(weir_stream__flush(t.stream, CALL_LIMIT_MS), 0);
}

static void run(void (*act)(void))
{
	finish(start(act));
}

/* In the child: an act of its own that has to work out. */
static void must(bool good)
{
	if (!good)
		_exit(111);
}

/* In the child: a child of its own; run_child() to its end. */
static pid_t fork_child(void (*act)(void))
{
	pid_t pid = fork();

	must(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	act();
	_exit(0);
}

static pid_t run_child(void (*act)(void))
{
	pid_t pid = fork_child(act);

	must(waitpid(pid, NULL, 0) == pid);
	return pid;
}

static void wait_for(volatile int *flag)
{
	while (!*flag)
		usleep(1000);
}

/* Payloads begin with who it is about, but for FORK, where that is the second. */
static const struct weir_task_id *who(const struct record *r)
{
	return (const struct weir_task_id *)r->payload + (r->type == WEIR_T_FORK);
}

/* The first record of a type about a thread, from position `from` on; fails if there is none. */
static const struct record *find_from(size_t from, enum weir_type type, pid_t tid)
{
	for (size_t i = from; i < t.n; i++) {
		if (t.records[i].type == type && who(&t.records[i])->tid == (uint32_t)tid)
			return &t.records[i];
	}
	fail_msg("no record of type %d about %d", type, tid);
	return NULL;
}

static const void *find(enum weir_type type, pid_t tid)
{
	return find_from(0, type, tid)->payload;
}

static size_t count(enum weir_type type, pid_t tid)
{
	size_t n = 0;

	for (size_t i = 0; i < t.n; i++)
		n += t.records[i].type == type && who(&t.records[i])->tid == (uint32_t)tid;
	return n;
}

static const struct weir_sys_enter *find_call(long nr, pid_t tid, const struct weir_sys_exit **exit)
{
	for (size_t i = 0; i < t.n; i++) {
		const struct weir_sys_enter *enter = t.records[i].payload;

		if (t.records[i].type != WEIR_T_SYS_ENTER || enter->nr != nr ||
		    enter->id.tid != (uint32_t)tid)
			continue;
		*exit = find_from(i, WEIR_T_SYS_EXIT, tid)->payload;
		assert_int_equal((*exit)->nr, nr);
		return enter;
	}
	fail_msg("no call %ld by %d", nr, tid);
	return NULL;
}

/* The i-th blob behind a record's fixed part, which ends at `first`. */
static const struct weir_blob *blob(const void *first, int i)
{
	const struct weir_blob *b = first;

	while (i--)
		b = (const struct weir_blob *)((const char *)(b + 1) + ((b->len + 7) & ~7u));
	return b;
}

static void assert_bytes(const struct weir_blob *b, int arg, int kind, const void *bytes,
			 size_t len)
{
	assert_int_equal(b->arg, arg);
	assert_int_equal(b->kind, kind);
	assert_int_equal(b->flags, 0);
	assert_int_equal(b->len, len);
	assert_memory_equal(b + 1, bytes, len);
}

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

/* ---- system calls ---- */

/* Touched by the test before its children are there, so that the page is in their memory too. */
static struct sockaddr_un nobody = {.sun_family = AF_UNIX, .sun_path = "/nowhere/socket"};

static void calls_with_strings(void)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	/* On the stack: a constant's page may not be in memory yet. */
	char one[] = "/nowhere/one", another[] = "/nowhere/another";

	syscall(SYS_renameat2, AT_FDCWD, one, AT_FDCWD, another, 0);
	must(connect(fd, (const struct sockaddr *)&nobody, sizeof(nobody)) < 0);
	must(syscall(SYS_getppid) > 0);
}

static void strings_follow_the_call(void **state)
{
	const struct weir_sys_enter *enter;
	const struct weir_sys_exit *exit;

	nobody.sun_path[sizeof(nobody.sun_path) - 1] = 'x';
	OPEN(NULL, "sys", "renameat2", "sys", "connect", "sys", "getppid");
	run(calls_with_strings);

	enter = find_call(SYS_renameat2, t.told->actor, &exit);
	assert_int_equal(enter->abi, WEIR_ABI_NATIVE);
	assert_int_equal((int)enter->args[0], AT_FDCWD);
	assert_int_equal(enter->blobs, 2);
	assert_bytes(blob(enter + 1, 0), 1, WEIR_BLOB_STR, "/nowhere/one", 12);
	assert_bytes(blob(enter + 1, 1), 3, WEIR_BLOB_STR, "/nowhere/another", 16);
	assert_int_equal(exit->ret, -ENOENT);
	assert_int_equal(exit->blobs, 0);

	enter = find_call(SYS_connect, t.told->actor, &exit);
	assert_bytes(blob(enter + 1, 0), 1, WEIR_BLOB_SOCKADDR, &nobody, sizeof(nobody));
	assert_int_equal(exit->ret, -ENOENT);

	enter = find_call(SYS_getppid, t.told->actor, &exit);
	assert_int_equal(enter->blobs, 0);
	assert_int_equal(exit->ret, getpid());
	/* Calls that were not asked for are counted, once at each end (G4). */
	assert_true(account().filtered > 0);
	close_all();
}

static void open_names_of_each_length(void)
{
	char name[66];

	for (int len = 63; len <= 65; len++) {
		memset(name, 'n', sizeof(name));
		name[len] = '\0';
		syscall(SYS_open, name, O_RDONLY);
	}
}

static void strings_are_cut_at_the_limit(void **state)
{
	static const struct weir_blob want[] = {
		{.len = 63}, {.len = 64}, {.len = 64, .flags = WEIR_BLOB_CUT}};
	size_t seen = 0;

	OPEN(NULL, "sys", "open");
	run(open_names_of_each_length);
	for (size_t i = 0; i < t.n; i++) {
		const struct weir_sys_enter *enter = t.records[i].payload;
		const struct weir_blob *b = blob(enter + 1, 0);

		if (t.records[i].type != WEIR_T_SYS_ENTER ||
		    enter->id.tid != (uint32_t)t.told->actor)
			continue;
		assert_true(seen < 3);
		assert_int_equal(b->len, want[seen].len);
		assert_int_equal(b->flags, want[seen].flags);
		seen++;
	}
	assert_int_equal(seen, 3);
	close_all();
}

/* A page of a file that is in no page table yet: what a program's own constants are at first. */
static char *untouched(const char *bytes, size_t len)
{
	char name[] = "/tmp/weir-probes-XXXXXX";
	int fd = mkstemp(name);
	char *page;

	must(fd >= 0 && unlink(name) == 0);
	must(write(fd, bytes, len) == (ssize_t)len);
	page = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
	must(page != MAP_FAILED);
	return page;
}

static void open_untouched(void)
{
	syscall(SYS_open, untouched("/nowhere/at/all", 16), O_RDONLY);
	syscall(SYS_rmdir, NOWHERE);
}

/* M7, and the count of what can't be read at all. */
static void string_that_is_not_in_memory(void **state)
{
	const struct weir_sys_enter *enter;
	const struct weir_sys_exit *exit;
	const struct weir_blob *b;

	OPEN(NULL, "sys", "open", "sys", "rmdir");
	run(open_untouched);

	enter = find_call(SYS_open, t.told->actor, &exit);
	b = blob(enter + 1, 0);
	assert_int_equal(enter->blobs, 1);
	assert_int_equal(b->flags, WEIR_BLOB_UNREAD);
	assert_int_equal(b->len, 0);
	assert_int_equal(exit->ret, -ENOENT);
	assert_int_equal(exit->blobs, 1);
	assert_bytes(blob(exit + 1, 0), 0, WEIR_BLOB_STR, "/nowhere/at/all", 15);

	enter = find_call(SYS_rmdir, t.told->actor, &exit);
	b = blob(enter + 1, 0);
	assert_int_equal(b->flags, WEIR_BLOB_UNREAD);
	assert_int_equal(exit->ret, -EFAULT);
	assert_int_equal(exit->blobs, 0);
	close_all();
	assert_true(account().unread >= 1);
}

static void exec_untouched_file(const char *path)
{
	char *const argv[] = {untouched("/nowhere/one", 13), untouched("two", 4), NULL};

	syscall(SYS_execve, untouched(path, strlen(path) + 1), argv, NULL);
}

static void exec_nothing(void)
{
	exec_untouched_file("/nowhere");
}

static void exec_a_program(void)
{
	exec_untouched_file(TRUE_PATH);
}

static void exec_a_script(void)
{
	exec_untouched_file(t.told->script);
}

static const struct weir_sys_exit *exec_and_look(void (*act)(void))
{
	const struct weir_sys_enter *enter;
	const struct weir_sys_exit *exit;

	OPEN(NULL, "sys", "execve");
	run(act);
	enter = find_call(SYS_execve, t.told->actor, &exit);
	assert_int_equal(enter->blobs, 2);
	assert_int_equal(blob(enter + 1, 0)->flags, WEIR_BLOB_UNREAD);
	assert_int_equal(blob(enter + 1, 1)->flags, WEIR_BLOB_UNREAD);
	return exit;
}

/* Newer kernels fail before they look at the arguments: these are lost then, and counted. */
static void exec_that_fails(void **state)
{
	const struct weir_sys_exit *exit = exec_and_look(exec_nothing);

	assert_int_equal(exit->ret, -ENOENT);
	assert_bytes(blob(exit + 1, 0), 0, WEIR_BLOB_STR, "/nowhere", 8);
	close_all();
	assert_true(exit->blobs == 2 || (exit->blobs == 1 && account().unread >= 1));
}

/* The caller's memory is gone, the new program's has copies. */
static void exec_that_works(void **state)
{
	static const char argv[] = "/nowhere/one\0two";
	const struct weir_sys_exit *exit = exec_and_look(exec_a_program);

	assert_int_equal(exit->ret, 0);
	assert_int_equal(exit->blobs, 2);
	assert_bytes(blob(exit + 1, 0), 0, WEIR_BLOB_STR, TRUE_PATH, strlen(TRUE_PATH));
	assert_bytes(blob(exit + 1, 1), 1, WEIR_BLOB_STRV, argv, sizeof(argv));
	close_all();
}

/* A script's interpreter gets other arguments than the call had: better none than those. */
static void exec_of_a_script(void **state)
{
	static const char text[] = "#!/bin/true\n";
	const struct weir_sys_exit *exit;
	int fd;

	strcpy(t.told->script, "/tmp/weir-probes-XXXXXX");
	fd = mkstemp(t.told->script);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	fchmod(fd, 0700);
	close(fd);
	exit = exec_and_look(exec_a_script);
	unlink(t.told->script);
	assert_int_equal(exit->ret, 0);
	assert_int_equal(exit->blobs, 1);
	assert_bytes(blob(exit + 1, 0), 0, WEIR_BLOB_STR, t.told->script, strlen(t.told->script));
	close_all();
	assert_true(account().unread >= 1);
}

#ifdef __x86_64__
static void call_by_the_32_bit_door(void)
{
	long ret;

	__asm__ volatile("int $0x80"
			 : "=a"(ret)
			 : "0"(64 /* getppid */), "b"(0x11111111l), "c"(0x22222222l),
			   "d"(0x33333333l), "S"(0x44444444l), "D"(0x55555555l)
			 : "r8", "r9", "r10", "r11", "memory");
	must(ret == getppid());
}

static void calls_of_32_bits(void **state)
{
	static const uint64_t args[] = {0x11111111, 0x22222222, 0x33333333, 0x44444444, 0x55555555};
	const struct weir_sys_enter *enter;
	const struct weir_sys_exit *exit;

	OPEN(NULL, "sys", "getppid");
	run(call_by_the_32_bit_door);
	enter = find_call(64, t.told->actor, &exit);
	assert_int_equal(enter->abi, WEIR_ABI_32);
	assert_int_equal(exit->abi, WEIR_ABI_32);
	assert_memory_equal(enter->args, args, sizeof(args));
	assert_int_equal(exit->ret, getpid());
	close_all();
}
#endif

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

	find_call(SYS_getppid, t.told->child, &exit);
	assert_int_equal(exit->ret, pid);
	find_call(SYS_getppid, t.told->other, &exit);
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

static void start_to_end(void (*act)(void))
{
	pid_t pid = start(act);

	assert_int_equal(waitpid(pid, NULL, 0), pid);
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
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(exec_is_told_whole),
		CASE(long_argv_is_cut),
		CASE(exit_tells_code_and_signal),
		CASE(threads_are_not_processes),
		CASE(exec_by_a_thread),
		CASE(seed_has_those_that_run),
		CASE(strings_follow_the_call),
		CASE(strings_are_cut_at_the_limit),
		CASE(string_that_is_not_in_memory),
		CASE(exec_that_fails),
		CASE(exec_that_works),
		CASE(exec_of_a_script),
#ifdef __x86_64__
		CASE(calls_of_32_bits),
#endif
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
