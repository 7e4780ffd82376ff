// SPDX-License-Identifier: BSD-2-Clause
/*
 * The task table against /proc: processes that forked, made threads, exec'ed (from threads that do not
 * lead, too), took other names and moved between cgroups while others came and went stand still, and
 * what the table says of each of their threads is what the kernel says. Then they go, and the table
 * forgets them. Needs root.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <weir/weir.h>

#include "probes/probes.h"
#include "state/cgroupfs.h"
#include "state/tasks.h"

#define LIFE_BYTES  (1u << 20)
#define EVENT_BYTES (1u << 16)
#define ID	    "0d1fe44cdd4ce0e9c2a7f3b5d8e6a1b4c7f0e3d6b9a2c5f8e1d4b7a0c3f6e9d2"

static char self_path[256]; /* this program, for those that exec */

/* How the processes that are looked at live. Each ends in standing still. */

static void stand_still(void)
{
	for (;;)
		pause();
}

static void *named_thread(void *name)
{
	prctl(PR_SET_NAME, name);
	stand_still();
	return NULL;
}

static void start_thread(void *(*run)(void *), void *arg)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, arg))
		_exit(1);
}

static void have_threads(void)
{
	static char names[3][16] = {"one", "two", "three"};

	for (int i = 0; i < 3; i++)
		start_thread(named_thread, names[i]);
}

static void exec_self(void)
{
	execl(self_path, self_path, "still", (char *)NULL);
	_exit(1);
}

static void *exec_thread(void *arg)
{
	exec_self();
	return NULL;
}

/* The others are killed, and the thread becomes the leader. */
static void exec_from_thread(void)
{
	have_threads();
	start_thread(exec_thread, NULL);
}

static void leave_threads_alone(void)
{
	have_threads();
	pthread_exit(NULL);
}

static void become_orphan(void)
{
	if (fork())
		_exit(0);
}

static void enter(const char *dir)
{
	char path[300];
	int fd;

	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "0", 1) != 1)
		_exit(1);
	close(fd);
}

static char cgroup_dir[256]; /* empty: v2 is mounted nowhere */

static void move_to_container(void)
{
	if (!cgroup_dir[0])
		return;
	enter(cgroup_dir);
	/* The child is born there; its parent's move is told by attach alone. */
	fork();
	have_threads();
}

static void nothing(void)
{
}

static void (*const lives[])(void) = {
	nothing,       have_threads,	  exec_self, exec_from_thread, leave_threads_alone,
	become_orphan, move_to_container,
};
#define NR_LIVES (sizeof(lives) / sizeof(lives[0]))

/*
 * In a session of its own, which tells those that are looked at from the rest of the machine. Goes to
 * work when the reader reads; the reader's own events, its forks among them, are left out.
 */
static void run_nursery(int go)
{
	char byte;

	setsid();
	if (read(go, &byte, 1) != 1)
		_exit(1);
	for (size_t i = 0; i < 3 * NR_LIVES; i++) {
		if (!fork()) {
			lives[i % NR_LIVES]();
			stand_still();
		}
		/* Others that come and go, so that pids and entries do. */
		for (int j = 0; j < 20; j++) {
			pid_t pid = fork();

			if (!pid) {
				if (j % 4 == 0)
					execl("/bin/true", "true", (char *)NULL);
				_exit(0);
			}
			waitpid(pid, NULL, 0);
		}
	}
	/* No zombies: they are in /proc for as long as they like. */
	while (wait(NULL) > 0)
		;
}

/* The reader. */

struct reader {
	struct weir_stream *stream;
	struct probes *probes;
	struct tasks *tasks;
	struct cgroupfs *cgroupfs;
};

static int on_event(void *ctx, const struct weir_event *event)
{
	struct reader *reader = ctx;

	return tasks__apply(reader->tasks, event);
}

static void on_watermark(void *ctx, uint64_t watermark_ns, enum weir_order order)
{
	struct reader *reader = ctx;

	tasks__retire(reader->tasks, watermark_ns);
}

static void on_seed(void *ctx, const struct weir_seed *seed, const char *exe, const char *cgroups)
{
	struct reader *reader = ctx;

	assert_int_equal(tasks__seed(reader->tasks, seed, exe, cgroups), 0);
}

static void start(struct reader *reader)
{
	struct weir_stream_opts opts = {.sz = sizeof(opts),
					.on_event = on_event,
					.on_watermark = on_watermark,
					.ctx = reader};
	struct probes_selection selection = {0};
	char err[512];

	reader->tasks = tasks__new(0);
	reader->stream = weir_stream__new(&opts);
	assert_non_null(reader->stream);
	reader->cgroupfs = cgroupfs__open(NULL);
	if (reader->cgroupfs)
		tasks__set_cgroup_resolver(reader->tasks, cgroupfs__resolve, reader->cgroupfs);
	assert_int_equal(probes__select(&selection, "process", NULL, err, sizeof(err)), 0);
	reader->probes = probes__open(&selection, err, sizeof(err));
	if (!reader->probes ||
	    probes__connect(reader->probes, reader->stream, LIFE_BYTES, EVENT_BYTES, err,
			    sizeof(err)) ||
	    probes__attach(reader->probes, on_seed, reader, err, sizeof(err)))
		fail_msg("%s", err);
}

static void stop(struct reader *reader)
{
	probes__detach(reader->probes);
	assert_int_equal(weir_stream__close(reader->stream), 0);
	probes__free(reader->probes);
	weir_stream__free(reader->stream);
	tasks__free(reader->tasks);
	cgroupfs__close(reader->cgroupfs);
}

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void read_for(struct reader *reader, uint64_t ns)
{
	uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + ns;

	while (clock_ns(CLOCK_MONOTONIC) < end_ns)
		assert_true(weir_stream__poll(reader->stream, 10) >= 0);
}

/* What /proc says. */

struct proc_task {
	uint32_t pid, tid, ppid, session;
	uint64_t start_ns; /* in steps of 10 ms, on the clock of stamps */
	char state, comm[64], exe[256], cgroups[4096];
};

static bool read_text(char *buf, size_t size, const char *format, uint32_t pid, uint32_t tid)
{
	char path[128];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), format, pid, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	len = read(fd, buf, size - 1);
	close(fd);
	buf[len < 0 ? 0 : len] = '\0';
	return len > 0;
}

static bool read_task(struct proc_task *task, uint32_t pid, uint32_t tid)
{
	unsigned long long ticks;
	char stat[1024], path[64];
	const char *rest;
	ssize_t len;

	memset(task, 0, sizeof(*task));
	task->pid = pid;
	task->tid = tid;
	if (!read_text(stat, sizeof(stat), "/proc/%u/task/%u/stat", pid, tid) ||
	    !read_text(task->comm, sizeof(task->comm), "/proc/%u/task/%u/comm", pid, tid) ||
	    !read_text(task->cgroups, sizeof(task->cgroups), "/proc/%u/task/%u/cgroup", pid, tid))
		return false;
	task->comm[strcspn(task->comm, "\n")] = '\0';
	rest = strrchr(stat, ')');
	if (!rest || sscanf(rest,
			    ") %c %u %*d %u %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
			    "%*d %*d %*d %llu",
			    &task->state, &task->ppid, &task->session, &ticks) != 4)
		return false;
	/* Ticks count through a suspend, stamps do not. */
	task->start_ns = ticks * 10000000 - (clock_ns(CLOCK_BOOTTIME) - clock_ns(CLOCK_MONOTONIC));
	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	len = readlink(path, task->exe, sizeof(task->exe) - 1);
	task->exe[len < 0 ? 0 : len] = '\0';
	return true;
}

#define MAX_TASKS 512

/* All threads of a session. */
static size_t read_session(struct proc_task *tasks, uint32_t session)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	size_t n = 0;

	while ((entry = readdir(proc))) {
		uint32_t pid = (uint32_t)atoi(entry->d_name);
		char path[64];
		DIR *threads;

		snprintf(path, sizeof(path), "/proc/%u/task", pid);
		threads = pid ? opendir(path) : NULL;
		while (threads && (entry = readdir(threads)) && n < MAX_TASKS) {
			uint32_t tid = (uint32_t)atoi(entry->d_name);

			if (tid && read_task(&tasks[n], pid, tid) && tasks[n].session == session)
				n++;
		}
		if (threads)
			closedir(threads);
	}
	closedir(proc);
	return n;
}

/* Returns the start, to the nanosecond. */
static uint64_t compare(struct reader *reader, const struct proc_task *task)
{
	struct task_view view;
	int64_t early_ns;

	if (!tasks__find(reader->tasks, task->tid, clock_ns(CLOCK_MONOTONIC), &view))
		fail_msg("%s (%u of %u) is not known", task->comm, task->tid, task->pid);
	assert_int_equal(view.pid, task->pid);
	assert_string_equal(view.comm, task->comm);
	assert_int_equal(view.exited, task->state == 'Z');
	early_ns = (int64_t)(view.start_ns - task->start_ns);
	assert_true(early_ns > -20000000 && early_ns < 20000000);
	if (task->exe[0])
		assert_string_equal(view.exe, task->exe);
	/* That an orphan came to us is no event. */
	if (task->ppid != (uint32_t)getpid() || task->pid == task->session)
		assert_int_equal(view.ppid, task->ppid);
	if (strstr(task->cgroups, ID))
		assert_string_equal(view.container, ID);
	else
		assert_null(view.container);
	assert_non_null(view.cgroup);
	return view.start_ns;
}

/* Where processes can go: a directory of v2 that is called like docker's. */
static void make_cgroup(void)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	char line[1024], mount[128], *type;

	while (file && fgets(line, sizeof(line), file)) {
		type = strstr(line, " - cgroup2 ");
		if (!type || sscanf(line, "%*d %*d %*s / %127s", mount) != 1)
			continue;
		snprintf(cgroup_dir, sizeof(cgroup_dir), "%s/docker-" ID ".scope", mount);
		if (mkdir(cgroup_dir, 0755) && errno != EEXIST)
			cgroup_dir[0] = '\0';
		break;
	}
	if (file)
		fclose(file);
}

static pid_t nursery;

static void kill_all(void)
{
	struct proc_task *tasks = test_calloc(MAX_TASKS, sizeof(*tasks));
	size_t n = read_session(tasks, (uint32_t)nursery);

	for (size_t i = 0; i < n; i++) {
		if (tasks[i].pid == tasks[i].tid)
			kill((pid_t)tasks[i].pid, SIGKILL);
	}
	while (waitpid(-1, NULL, 0) > 0)
		;
	nursery = 0;
	test_free(tasks);
}

/* Reads until all are there, and look the same twice. Returns how many they are. */
static size_t settle(struct reader *reader, struct proc_task *tasks, size_t expected)
{
	struct proc_task *before = test_calloc(MAX_TASKS, sizeof(*before));
	size_t n = 0;
	bool same;

	for (int i = 0; i < 100; i++) {
		memcpy(before, tasks, MAX_TASKS * sizeof(*before));
		read_for(reader, 200000000);
		n = read_session(tasks, (uint32_t)nursery);
		same = true;
		for (size_t j = 0; j < n; j++)
			same &= before[j].tid == tasks[j].tid &&
				before[j].state == tasks[j].state &&
				!strcmp(before[j].comm, tasks[j].comm);
		if (n == expected && same)
			break;
	}
	test_free(before);
	return n;
}

static int setup(void **state)
{
	/* Those who lose their parent come to us, and not to an init that may not reap. */
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	make_cgroup();
	return 0;
}

static int teardown(void **state)
{
	if (nursery)
		kill_all();
	if (cgroup_dir[0])
		rmdir(cgroup_dir);
	return 0;
}

static void test_against_proc(void **state)
{
	struct proc_task *tasks = test_calloc(MAX_TASKS, sizeof(*tasks));
	uint64_t *starts_ns = test_calloc(MAX_TASKS, sizeof(*starts_ns));
	size_t n, containers = 0, moved = cgroup_dir[0] ? 8 : 1;
	struct reader reader = {0};
	struct task_view view;
	int go[2];

	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	nursery = fork();
	if (!nursery)
		run_nursery(go[0]);
	start(&reader);
	assert_int_equal(write(go[1], "", 1), 1);
	/* One, four, one, one, four, one; and itself. */
	n = settle(&reader, tasks, 3 * (12 + moved) + 1);
	assert_int_equal(n, 3 * (12 + moved) + 1);
	assert_int_equal(weir_stream__flush(reader.stream, 1000), 0);
	for (size_t i = 0; i < n; i++) {
		starts_ns[i] = compare(&reader, &tasks[i]);
		containers += strstr(tasks[i].cgroups, ID) != NULL;
	}
	assert_int_equal(containers, cgroup_dir[0] ? 3 * moved : 0);

	/* Nothing happens to them any more: the watermark alone has to bring the linger to its end. */
	kill_all();
	read_for(&reader, 1800000000);
	for (size_t i = 0; i < n; i++)
		assert_false(
			tasks__find(reader.tasks, tasks[i].tid, clock_ns(CLOCK_MONOTONIC), &view) &&
			view.start_ns == starts_ns[i]);
	stop(&reader);
	close(go[0]);
	close(go[1]);
	test_free(starts_ns);
	test_free(tasks);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_against_proc, setup, teardown)};

	if (argc > 1)
		stand_still();
	if (geteuid()) {
		fprintf(stderr, "needs root\n");
		return 77;
	}
	if (readlink("/proc/self/exe", self_path, sizeof(self_path) - 1) < 0)
		return 1;
	return cmocka_run_group_tests_name("tasks, live", tests, NULL, NULL) ? 1 : 0;
}
