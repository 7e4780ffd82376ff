// SPDX-License-Identifier: BSD-2-Clause
/*
 * The task table against a kernel of arrays: random forks, execs (by leaders and by other threads),
 * exits, renames and moves between cgroups, over so few pids that all of them are reused all the
 * time. Everything is told, and the table knows the whole truth; or some of it is lost and late, and
 * the table may know less, but nothing that is another task's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "tests/unit/state/events.h"

#define PIDS	  48 /* tids are 1 to PIDS */
#define MAX_TASKS 20000
#define MAX_EXECS 20000
#define MAX_COMMS 64 /* names that one task has in its life */
#define STEPS	  1500
#define NEVER	  UINT64_MAX
#define V1	  4 /* the one v1 hierarchy */
#define SCOPE_A	  "/system.slice/docker-" ID_A ".scope"
#define ID_A	  "0d1fe44cdd4ce0e9c2a7f3b5d8e6a1b4c7f0e3d6b9a2c5f8e1d4b7a0c3f6e9d2"

/* A cgroup's id is its index + 1, in both hierarchies. */
static const struct {
	const char *path, *container;
	int weight; /* container, unit, something, root */
} places[] = {
	{"/", NULL, 1},
	{"/user.slice", NULL, 2},
	{"/system.slice/cron.service", NULL, 3},
	{SCOPE_A, ID_A, 4},
	{"/lxc/web", "web", 4},
	{"/lxc.payload.db/system.slice/sql.service", "db", 4},
};
#define PLACES (sizeof(places) / sizeof(places[0]))

struct sim_proc {
	int parent; /* of its first thread, an index into tasks; -1: none */
	uint32_t pid, ppid, uid;
	unsigned int exe;
	uint64_t end_ns;
};

/* A thread from start to end: what the table calls an identity. */
struct sim_task {
	int proc;
	uint32_t tid;
	uint64_t start_ns, exit_ns;
	unsigned int comms[MAX_COMMS], nr_comms; /* the last is the current one */
	unsigned int v2, v1;			 /* indexes into places */
};

struct loss {
	unsigned int per_mille[WEIR_T_LIFE_MAX + 1]; /* lost of each type */
	unsigned int late_per_mille[WEIR_T_LIFE_MAX + 1];
	bool lossless;
};

#define MAX_HELD 16

struct sim {
	uint64_t seed, now_ns, watermark_ns;
	struct tasks *tasks;
	const struct loss *loss;
	struct sim_proc *procs;
	struct sim_task *all;
	int nr_procs, nr_tasks;
	int by_tid[PIDS + 1]; /* who has the tid; -1: nobody */
	uint32_t last_tid;
	int exe_owner[MAX_EXECS]; /* who exec'ed it, an index into procs */
	unsigned int nr_exes, nr_comms;
	struct held {
		uint16_t type;
		uint64_t stamp_ns;
		size_t len;
		char data[512] __attribute__((aligned(8)));
	} held[MAX_HELD]; /* to be told late */
	unsigned int nr_held;
};

static uint64_t rnd(struct sim *sim, uint64_t below)
{
	sim->seed ^= sim->seed << 13;
	sim->seed ^= sim->seed >> 7;
	sim->seed ^= sim->seed << 17;
	return (sim->seed >> 11) % below;
}

static bool chance(struct sim *sim, unsigned int per_mille)
{
	return rnd(sim, 1000) < per_mille;
}

static void tell(struct sim *sim, uint16_t type, const void *data, size_t len)
{
	if (chance(sim, sim->loss->per_mille[type]))
		return;
	if (sim->nr_held < MAX_HELD && chance(sim, sim->loss->late_per_mille[type])) {
		struct held *held = &sim->held[sim->nr_held++];

		assert_true(len <= sizeof(held->data));
		held->type = type;
		held->stamp_ns = sim->now_ns;
		held->len = len;
		memcpy(held->data, data, len);
		return;
	}
	assert_int_equal(feed(sim->tasks, type, sim->now_ns, data, len), 0);
}

static void tell_late_ones(struct sim *sim)
{
	while (sim->nr_held && chance(sim, 300)) {
		unsigned int at = (unsigned int)rnd(sim, sim->nr_held);
		struct held held = sim->held[at];

		sim->held[at] = sim->held[--sim->nr_held];
		assert_int_equal(feed_marked(sim->tasks, held.type, held.stamp_ns, held.data,
					     held.len, WEIR_MARK_LATE),
				 0);
	}
}

static struct weir_task_id id_of(const struct sim *sim, const struct sim_task *task)
{
	return (struct weir_task_id){sim->procs[task->proc].pid, task->tid};
}

static bool leads(const struct sim *sim, const struct sim_task *task)
{
	return sim->procs[task->proc].pid == task->tid;
}

static void comm_text(unsigned int comm, char out[WEIR_COMM_LEN])
{
	memset(out, 0, WEIR_COMM_LEN);
	snprintf(out, WEIR_COMM_LEN, "c%u", comm);
}

static void exe_text(unsigned int exe, char out[64])
{
	snprintf(out, 64, "/usr/bin/prog-%u", exe);
}

static unsigned int comm_of(const struct sim_task *task)
{
	return task->comms[task->nr_comms - 1];
}

static void set_comm(struct sim_task *task, unsigned int comm)
{
	if (task->nr_comms < MAX_COMMS)
		task->comms[task->nr_comms++] = comm;
	else
		task->comms[MAX_COMMS - 1] = comm;
}

static uint32_t free_tid(struct sim *sim)
{
	for (int i = 0; i < PIDS; i++) {
		sim->last_tid = sim->last_tid % PIDS + 1;
		if (sim->by_tid[sim->last_tid] < 0)
			return sim->last_tid;
	}
	return 0;
}

/* Some task that runs; -1: nobody does. */
static int some_task(struct sim *sim)
{
	uint32_t tid = (uint32_t)rnd(sim, PIDS) + 1;

	for (int i = 0; i < PIDS; i++, tid = tid % PIDS + 1) {
		int at = sim->by_tid[tid];

		if (at >= 0 && sim->all[at].exit_ns == NEVER)
			return at;
	}
	return -1;
}

static int new_proc(struct sim *sim, int parent, uint32_t pid, uint32_t ppid)
{
	int at = sim->nr_procs++;

	sim->procs[at] =
		(struct sim_proc){.parent = parent, .pid = pid, .ppid = ppid, .end_ns = NEVER};
	return at;
}

static int new_task(struct sim *sim, int proc, uint32_t tid)
{
	int at = sim->nr_tasks++;

	assert_true(at < MAX_TASKS);
	sim->all[at] = (struct sim_task){
		.proc = proc, .tid = tid, .start_ns = sim->now_ns, .exit_ns = NEVER};
	sim->by_tid[tid] = at;
	return at;
}

static unsigned int new_exe(struct sim *sim, int proc)
{
	assert_true(sim->nr_exes < MAX_EXECS);
	sim->exe_owner[sim->nr_exes] = proc;
	return sim->nr_exes++;
}

static void do_fork(struct sim *sim, bool thread)
{
	int at = some_task(sim), child_at;
	struct sim_task *parent, *child;
	struct weir_fork fork = {0};
	uint32_t tid = free_tid(sim);
	int proc;

	if (at < 0 || !tid)
		return;
	parent = &sim->all[at];
	proc = parent->proc;
	if (!thread) {
		proc = new_proc(sim, at, tid, sim->procs[parent->proc].pid);
		sim->procs[proc].exe = sim->procs[parent->proc].exe;
		sim->procs[proc].uid = sim->procs[parent->proc].uid;
	}
	child_at = new_task(sim, proc, tid);
	child = &sim->all[child_at];
	child->v2 = !thread && chance(sim, 100) ? (unsigned int)rnd(sim, PLACES) : parent->v2;
	child->v1 = parent->v1;
	set_comm(child, comm_of(parent));
	sim->now_ns += rnd(sim, 3); /* its start is a little before the event */
	fork.parent = id_of(sim, parent);
	fork.child = id_of(sim, child);
	fork.child_start_ns = child->start_ns;
	fork.child_cgroup = child->v2 + 1;
	comm_text(comm_of(parent), fork.comm);
	tell(sim, WEIR_T_FORK, &fork, sizeof(fork));
}

static void tell_exit(struct sim *sim, const struct sim_task *task, bool process)
{
	struct weir_exit exited = {
		.id = id_of(sim, task),
		.start_ns = task->start_ns,
		.flags = process ? WEIR_EXIT_PROCESS : 0,
		.ppid = sim->procs[task->proc].ppid,
	};

	comm_text(comm_of(task), exited.comm);
	tell(sim, WEIR_T_EXIT, &exited, sizeof(exited));
}

static unsigned int running_threads(const struct sim *sim, int proc)
{
	unsigned int n = 0;

	for (uint32_t tid = 1; tid <= PIDS; tid++) {
		int at = sim->by_tid[tid];

		n += at >= 0 && sim->all[at].proc == proc && sim->all[at].exit_ns == NEVER;
	}
	return n;
}

/* Its tid is free at once; a leader's when the process is gone. */
static void exit_one(struct sim *sim, int at)
{
	struct sim_task *task = &sim->all[at];
	struct sim_proc *proc = &sim->procs[task->proc];
	bool last = running_threads(sim, task->proc) == 1;

	task->exit_ns = sim->now_ns;
	if (!leads(sim, task))
		sim->by_tid[task->tid] = -1;
	if (last) {
		proc->end_ns = sim->now_ns;
		sim->by_tid[proc->pid] = -1;
	}
	tell_exit(sim, task, last);
	sim->now_ns += rnd(sim, 3);
}

static void do_exit(struct sim *sim, bool group)
{
	int at = some_task(sim);
	int proc;

	if (at < 0)
		return;
	proc = sim->all[at].proc;
	exit_one(sim, at);
	for (uint32_t tid = 1; group && tid <= PIDS; tid++) {
		int other = sim->by_tid[tid];

		if (other >= 0 && sim->all[other].proc == proc && sim->all[other].exit_ns == NEVER)
			exit_one(sim, other);
	}
}

/* All other threads die; then the caller becomes the leader. Returns who it is now. */
static int take_over(struct sim *sim, int at)
{
	struct sim_task *caller = &sim->all[at];
	int proc = caller->proc;
	int leader = sim->by_tid[sim->procs[proc].pid];

	for (uint32_t tid = 1; tid <= PIDS; tid++) {
		int other = sim->by_tid[tid];

		if (other >= 0 && other != at && sim->all[other].proc == proc &&
		    sim->all[other].exit_ns == NEVER)
			exit_one(sim, other);
	}
	if (leader == at)
		return at;
	sim->all[leader].exit_ns = NEVER;
	sim->all[leader].v2 = caller->v2;
	sim->all[leader].v1 = caller->v1;
	caller->exit_ns = sim->now_ns;
	sim->by_tid[caller->tid] = -1;
	return leader;
}

static void do_exec(struct sim *sim)
{
	int at = some_task(sim);
	struct {
		struct weir_exec exec;
		char path[64];
	} record = {0};
	struct sim_proc *proc;
	struct sim_task *task;

	if (at < 0)
		return;
	record.exec.old_tid = sim->all[at].tid;
	task = &sim->all[take_over(sim, at)];
	proc = &sim->procs[task->proc];
	proc->exe = new_exe(sim, task->proc);
	proc->uid = (uint32_t)rnd(sim, 5);
	proc->ppid = (uint32_t)rnd(sim, PIDS) + 1;
	set_comm(task, ++sim->nr_comms);
	record.exec.id = id_of(sim, task);
	record.exec.ppid = proc->ppid;
	record.exec.uid = proc->uid;
	record.exec.start_ns = task->start_ns;
	record.exec.cgroup = task->v2 + 1;
	comm_text(comm_of(task), record.exec.comm);
	exe_text(proc->exe, record.path);
	record.exec.path_len = (uint16_t)strlen(record.path);
	tell(sim, WEIR_T_EXEC, &record, sizeof(record.exec) + record.exec.path_len);
}

static void do_rename(struct sim *sim)
{
	int at = some_task(sim);
	struct weir_rename rename = {0};

	if (at < 0)
		return;
	set_comm(&sim->all[at], ++sim->nr_comms);
	rename.id = id_of(sim, &sim->all[at]);
	rename.start_ns = sim->all[at].start_ns;
	comm_text(comm_of(&sim->all[at]), rename.comm);
	tell(sim, WEIR_T_RENAME, &rename, sizeof(rename));
}

static void do_attach(struct sim *sim, bool is_v2, bool process)
{
	int at = some_task(sim);
	unsigned int place = (unsigned int)rnd(sim, PLACES);
	struct {
		struct weir_cgroup_attach attach;
		char path[128];
	} record = {0};

	if (at < 0)
		return;
	for (uint32_t tid = 1; tid <= PIDS; tid++) {
		int other = sim->by_tid[tid];

		if (other < 0 ||
		    !(other == at || (process && sim->all[other].proc == sim->all[at].proc)))
			continue;
		if (is_v2)
			sim->all[other].v2 = place;
		else
			sim->all[other].v1 = place;
	}
	record.attach.id = id_of(sim, &sim->all[at]);
	record.attach.start_ns = sim->all[at].start_ns;
	record.attach.cgroup = place + 1;
	record.attach.hierarchy = is_v2 ? 1 : V1;
	record.attach.is_v2 = is_v2;
	record.attach.process = process;
	record.attach.path_len = (uint16_t)strlen(places[place].path);
	memcpy(record.path, places[place].path, record.attach.path_len);
	tell(sim, WEIR_T_CGROUP_ATTACH, &record, sizeof(record.attach) + record.attach.path_len);
}

static void step(struct sim *sim)
{
	/* A few of these make a linger, so that entries retire while others wait. */
	sim->now_ns += chance(sim, 30) ? rnd(sim, LINGER_NS) : 1 + rnd(sim, 1000);
	switch (rnd(sim, 12)) {
	case 0 ... 2:
		do_fork(sim, false);
		break;
	case 3 ... 4:
		do_fork(sim, true);
		break;
	case 5 ... 6:
		do_exec(sim);
		break;
	case 7:
		do_exit(sim, false);
		break;
	case 8:
		do_exit(sim, true);
		break;
	case 9:
		do_rename(sim);
		break;
	default:
		do_attach(sim, chance(sim, 500), chance(sim, 700));
	}
	tell_late_ones(sim);
	if (chance(sim, 200)) {
		uint64_t lag = rnd(sim, LINGER_NS / 2);

		if (sim->now_ns - lag > sim->watermark_ns)
			sim->watermark_ns = sim->now_ns - lag;
		tasks__retire(sim->tasks, sim->watermark_ns);
	}
}

/* The truth by a walk over everybody who ever lived. -1: nobody. */
static int who_was(const struct sim *sim, uint32_t tid, uint64_t stamp_ns)
{
	int best = -1;

	for (int at = 0; at < sim->nr_tasks; at++) {
		const struct sim_task *task = &sim->all[at];

		if (task->tid == tid && task->start_ns <= stamp_ns &&
		    (best < 0 || task->start_ns > sim->all[best].start_ns))
			best = at;
	}
	return best;
}

static uint64_t gone_ns(const struct sim *sim, const struct sim_task *task)
{
	uint64_t end_ns = leads(sim, task) ? sim->procs[task->proc].end_ns : task->exit_ns;

	return end_ns == NEVER ? NEVER : end_ns + LINGER_NS;
}

static void check_place(const struct sim_task *task, const struct task_view *view)
{
	unsigned int place = task->v2;

	if (places[task->v1].weight > places[place].weight)
		place = task->v1;
	assert_string_equal(view->cgroup, places[place].path);
	if (places[place].container)
		assert_string_equal(view->container, places[place].container);
	else
		assert_null(view->container);
}

static void check_whole_truth(struct sim *sim, uint32_t tid, uint64_t stamp_ns)
{
	int at = who_was(sim, tid, stamp_ns);
	const struct sim_task *task = &sim->all[at < 0 ? 0 : at];
	const struct sim_proc *proc = &sim->procs[task->proc];
	struct task_view view;
	char text[64];
	bool found = tasks__find(sim->tasks, tid, stamp_ns, &view);

	if (at < 0 || stamp_ns > gone_ns(sim, task) || gone_ns(sim, task) <= sim->watermark_ns) {
		assert_false(found);
		return;
	}
	assert_true(found);
	assert_int_equal(view.start_ns, task->start_ns);
	assert_int_equal(view.pid, proc->pid);
	assert_int_equal(view.exited, task->exit_ns <= stamp_ns);
	comm_text(comm_of(task), text);
	assert_string_equal(view.comm, text);
	exe_text(proc->exe, text);
	assert_string_equal(view.exe, text);
	assert_int_equal(view.uid, proc->uid);
	assert_int_equal(view.ppid, proc->ppid);
	check_place(task, &view);
}

static bool descends_from(const struct sim *sim, int proc, int ancestor)
{
	while (proc != ancestor) {
		int parent = sim->procs[proc].parent;

		if (parent < 0)
			return false;
		proc = sim->all[parent].proc;
	}
	return true;
}

/* With losses: what the table says of a task was true of it, or of an ancestor (a lost exec). */
static void check_nothing_foreign(struct sim *sim, uint32_t tid)
{
	const struct sim_task *task = NULL;
	struct task_view view;
	unsigned int comm, exe;
	bool known = false;

	if (!tasks__find(sim->tasks, tid, sim->now_ns, &view) || !view.start_ns)
		return;
	for (int at = 0; at < sim->nr_tasks && !task; at++) {
		if (sim->all[at].tid == tid && sim->all[at].start_ns == view.start_ns)
			task = &sim->all[at];
	}
	assert_non_null(task);
	assert_int_equal(view.pid, sim->procs[task->proc].pid);
	if (view.comm) {
		assert_int_equal(sscanf(view.comm, "c%u", &comm), 1);
		for (unsigned int i = 0; i < task->nr_comms; i++)
			known |= task->comms[i] == comm;
		assert_true(known || task->nr_comms == MAX_COMMS);
	}
	if (view.exe) {
		assert_int_equal(sscanf(view.exe, "/usr/bin/prog-%u", &exe), 1);
		assert_true(descends_from(sim, task->proc, sim->exe_owner[exe]));
	}
}

static void check(struct sim *sim)
{
	struct tasks_stats stats;

	for (uint32_t tid = 0; tid <= PIDS + 1; tid++) {
		if (!sim->loss->lossless) {
			check_nothing_foreign(sim, tid);
			continue;
		}
		check_whole_truth(sim, tid, sim->now_ns);
		/* Of the past the table keeps who it was; what they were then went by. */
		for (int i = 0; i < 3; i++) {
			uint64_t stamp_ns = sim->now_ns - rnd(sim, 2 * LINGER_NS);
			int at = who_was(sim, tid, stamp_ns);
			struct task_view view;

			if (tasks__find(sim->tasks, tid, stamp_ns, &view))
				assert_int_equal(view.start_ns, sim->all[at].start_ns);
			else
				assert_true(at < 0 || stamp_ns > gone_ns(sim, &sim->all[at]) ||
					    gone_ns(sim, &sim->all[at]) <= sim->watermark_ns);
		}
	}
	tasks__stats(sim->tasks, &stats);
	assert_int_equal(stats.evicted, 0);
}

static void boot(struct sim *sim)
{
	char exe[64];
	int at;

	for (int i = 0; i <= PIDS; i++)
		sim->by_tid[i] = -1;
	sim->now_ns = 10 * LINGER_NS;
	at = new_task(sim, new_proc(sim, -1, 1, 0), 1);
	set_comm(&sim->all[at], 0);
	sim->procs[0].exe = new_exe(sim, 0);
	exe_text(0, exe);
	feed_seed(sim->tasks, .pid = 1, .start_ns = sim->now_ns, .cgroup = 1, .comm = "c0",
		  .exe = exe, .cgroups = "4:memory:/\n0::/\n");
	for (unsigned int i = 0; i < PLACES; i++)
		feed_mkdir(sim->tasks, sim->now_ns, 1, true, i + 1, places[i].path);
}

static void shut_down(struct sim *sim)
{
	struct tasks_stats stats;

	for (int at = some_task(sim); at >= 0; at = some_task(sim))
		exit_one(sim, at);
	tasks__retire(sim->tasks, sim->now_ns + 2 * LINGER_NS);
	tasks__stats(sim->tasks, &stats);
	if (sim->loss->lossless)
		assert_int_equal(stats.entries, 0);
}

static struct sim *running_sim; /* whose seed a failure prints */

static int print_seed(void **state)
{
	if (running_sim)
		print_message("seed %llu\n", (unsigned long long)*(uint64_t *)*state);
	return 0;
}

static void run(const struct loss *loss, uint64_t seed)
{
	struct sim *sim = test_calloc(1, sizeof(*sim));

	running_sim = sim;
	sim->seed = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	sim->loss = loss;
	sim->procs = test_calloc(MAX_TASKS, sizeof(*sim->procs));
	sim->all = test_calloc(MAX_TASKS, sizeof(*sim->all));
	sim->tasks = tasks__new(0);
	assert_non_null(sim->tasks);
	boot(sim);
	for (int i = 0; i < STEPS; i++) {
		step(sim);
		if (i % 4 == 0)
			check(sim);
	}
	shut_down(sim);
	tasks__free(sim->tasks);
	test_free(sim->all);
	test_free(sim->procs);
	test_free(sim);
	running_sim = NULL;
}

static void run_seeds(void **state, const struct loss *loss)
{
	uint64_t *seed = *state;

	for (*seed = 1; *seed <= 20; ++*seed)
		run(loss, *seed);
}

static void test_whole_truth(void **state)
{
	static const struct loss none = {.lossless = true};

	run_seeds(state, &none);
}

/* All exits are told in time, so that nobody is taken for a former user of the tid. */
static void test_forks_lost_and_late(void **state)
{
	static const struct loss loss = {
		.per_mille = {[WEIR_T_FORK] = 200,
			      [WEIR_T_EXEC] = 200,
			      [WEIR_T_RENAME] = 300,
			      [WEIR_T_CGROUP_ATTACH] = 200},
		.late_per_mille = {[WEIR_T_FORK] = 200,
				   [WEIR_T_EXEC] = 200,
				   [WEIR_T_RENAME] = 200,
				   [WEIR_T_CGROUP_ATTACH] = 200},
	};

	run_seeds(state, &loss);
}

/* All forks are told in time. */
static void test_exits_lost_and_late(void **state)
{
	static const struct loss loss = {
		.per_mille = {[WEIR_T_EXIT] = 300, [WEIR_T_EXEC] = 100, [WEIR_T_RENAME] = 100},
		.late_per_mille = {[WEIR_T_EXIT] = 300,
				   [WEIR_T_EXEC] = 200,
				   [WEIR_T_RENAME] = 200,
				   [WEIR_T_CGROUP_ATTACH] = 200},
	};

	run_seeds(state, &loss);
}

int main(void)
{
	static uint64_t seed;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate_setup_teardown(test_whole_truth, NULL, print_seed, &seed),
		cmocka_unit_test_prestate_setup_teardown(test_forks_lost_and_late, NULL, print_seed,
							 &seed),
		cmocka_unit_test_prestate_setup_teardown(test_exits_lost_and_late, NULL, print_seed,
							 &seed),
	};

	return cmocka_run_group_tests_name("tasks against a model", tests, NULL, NULL) ? 1 : 0;
}
