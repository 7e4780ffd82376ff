/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * events.h - lifecycle events made by hand and fed to a task table, and looks at it. Include after cmocka.h, whose heap
 * it takes: so a read behind a record is seen, and the heap of the table is the table's alone.
 */
#ifndef TESTS_STATE_EVENTS_H
#define TESTS_STATE_EVENTS_H

#include <string.h>

#include <weir/event.h>
#include <weir/probes.h>

#include "state/tasks.h"

#define LINGER_NS UINT64_C(1000000000)

static inline int feed_marked(struct tasks *tasks, uint16_t type, uint64_t stamp_ns,
			      const void *data, size_t len, uint8_t mark)
{
	struct weir_event event = {
		.stamp_ns = stamp_ns,
		.data = data,
		.len = (uint32_t)len,
		.type = type,
		.kind = WEIR_KIND_RECORD,
		.mark = mark,
	};

	return tasks__apply(tasks, &event);
}

static inline int feed(struct tasks *tasks, uint16_t type, uint64_t stamp_ns, const void *data,
		       size_t len)
{
	return feed_marked(tasks, type, stamp_ns, data, len, 0);
}

static inline void put_comm(char out[WEIR_COMM_LEN], const char *comm)
{
	memset(out, 0, WEIR_COMM_LEN);
	memcpy(out, comm, strnlen(comm, WEIR_COMM_LEN));
}

struct fork_args {
	uint32_t ppid, ptid, pid, tid; /* 0: ptid = ppid, tid = pid */
	uint64_t start_ns, cgroup;
	const char *comm;
	uint8_t mark;
};

static inline int feed_fork_args(struct tasks *tasks, uint64_t stamp_ns, struct fork_args a)
{
	struct weir_fork fork = {
		.parent = {a.ppid, a.ptid ? a.ptid : a.ppid},
		.child = {a.pid, a.tid ? a.tid : a.pid},
		.child_start_ns = a.start_ns,
		.child_cgroup = a.cgroup,
	};

	put_comm(fork.comm, a.comm ? a.comm : "sh");
	return feed_marked(tasks, WEIR_T_FORK, stamp_ns, &fork, sizeof(fork), a.mark);
}
#define feed_fork(tasks, stamp_ns, ...) \
	feed_fork_args(tasks, stamp_ns, (struct fork_args){__VA_ARGS__})

struct exec_args {
	uint32_t pid, old_tid, ppid, uid; /* old_tid 0: the leader */
	uint64_t start_ns, cgroup;
	const char *path, *comm;
	uint8_t mark;
};

static inline int feed_exec_args(struct tasks *tasks, uint64_t stamp_ns, struct exec_args a)
{
	static const char argv[] = "a\0b";
	size_t path_len = a.path ? strlen(a.path) : 0;
	size_t len = sizeof(struct weir_exec) + path_len + sizeof(argv);
	struct weir_exec *exec = test_calloc(1, len);
	int err;

	exec->id = (struct weir_task_id){a.pid, a.pid};
	exec->old_tid = a.old_tid ? a.old_tid : a.pid;
	exec->ppid = a.ppid;
	exec->uid = a.uid;
	exec->start_ns = a.start_ns;
	exec->cgroup = a.cgroup;
	put_comm(exec->comm, a.comm ? a.comm : "prog");
	exec->path_len = (uint16_t)path_len;
	exec->argv_len = sizeof(argv);
	memcpy(exec + 1, a.path ? a.path : "", path_len);
	memcpy((char *)(exec + 1) + path_len, argv, sizeof(argv));
	err = feed_marked(tasks, WEIR_T_EXEC, stamp_ns, exec, len, a.mark);
	test_free(exec);
	return err;
}
#define feed_exec(tasks, stamp_ns, ...) \
	feed_exec_args(tasks, stamp_ns, (struct exec_args){__VA_ARGS__})

struct exit_args {
	uint32_t pid, tid; /* tid 0: the leader */
	uint64_t start_ns;
	bool process;
	uint32_t ppid;
	const char *comm;
	uint8_t mark;
};

static inline int feed_exit_args(struct tasks *tasks, uint64_t stamp_ns, struct exit_args a)
{
	struct weir_exit exited = {
		.id = {a.pid, a.tid ? a.tid : a.pid},
		.start_ns = a.start_ns,
		.flags = a.process ? WEIR_EXIT_PROCESS : 0,
		.ppid = a.ppid,
	};

	put_comm(exited.comm, a.comm ? a.comm : "dying");
	return feed_marked(tasks, WEIR_T_EXIT, stamp_ns, &exited, sizeof(exited), a.mark);
}
#define feed_exit(tasks, stamp_ns, ...) \
	feed_exit_args(tasks, stamp_ns, (struct exit_args){__VA_ARGS__})

static inline int feed_rename(struct tasks *tasks, uint64_t stamp_ns, uint32_t pid, uint32_t tid,
			      uint64_t start_ns, const char *comm, uint8_t mark)
{
	struct weir_rename rename = {.id = {pid, tid}, .start_ns = start_ns};

	put_comm(rename.comm, comm);
	return feed_marked(tasks, WEIR_T_RENAME, stamp_ns, &rename, sizeof(rename), mark);
}

static inline int feed_mkdir(struct tasks *tasks, uint64_t stamp_ns, uint32_t hierarchy, bool is_v2,
			     uint64_t cgroup, const char *path)
{
	size_t len = sizeof(struct weir_cgroup_mkdir) + strlen(path);
	struct weir_cgroup_mkdir *mkdir = test_calloc(1, len);
	int err;

	mkdir->cgroup = cgroup;
	mkdir->hierarchy = hierarchy;
	mkdir->is_v2 = is_v2;
	mkdir->path_len = (uint16_t)strlen(path);
	memcpy(mkdir + 1, path, strlen(path));
	err = feed(tasks, WEIR_T_CGROUP_MKDIR, stamp_ns, mkdir, len);
	test_free(mkdir);
	return err;
}

struct attach_args {
	uint32_t pid, tid; /* tid 0: the leader */
	uint64_t start_ns, cgroup;
	uint32_t hierarchy;
	bool is_v2, thread; /* thread: this one alone */
	const char *path;
	uint8_t mark;
};

static inline int feed_attach_args(struct tasks *tasks, uint64_t stamp_ns, struct attach_args a)
{
	size_t path_len = a.path ? strlen(a.path) : 0;
	size_t len = sizeof(struct weir_cgroup_attach) + path_len;
	struct weir_cgroup_attach *attach = test_calloc(1, len);
	int err;

	attach->id = (struct weir_task_id){a.pid, a.tid ? a.tid : a.pid};
	attach->start_ns = a.start_ns;
	attach->cgroup = a.cgroup;
	attach->hierarchy = a.hierarchy;
	attach->is_v2 = a.is_v2;
	attach->process = !a.thread;
	attach->path_len = (uint16_t)path_len;
	memcpy(attach + 1, a.path ? a.path : "", path_len);
	err = feed_marked(tasks, WEIR_T_CGROUP_ATTACH, stamp_ns, attach, len, a.mark);
	test_free(attach);
	return err;
}
#define feed_attach(tasks, stamp_ns, ...) \
	feed_attach_args(tasks, stamp_ns, (struct attach_args){__VA_ARGS__})

struct seed_args {
	uint32_t pid, tid, ppid, uid; /* tid 0: the leader */
	uint64_t start_ns, cgroup;
	const char *comm, *exe, *cgroups;
};

static inline int feed_seed_args(struct tasks *tasks, struct seed_args a)
{
	struct weir_seed seed = {
		.id = {a.pid, a.tid ? a.tid : a.pid},
		.start_ns = a.start_ns,
		.cgroup = a.cgroup,
		.ppid = a.ppid,
		.uid = a.uid,
	};

	put_comm(seed.comm, a.comm ? a.comm : "seeded");
	return tasks__seed(tasks, &seed, a.exe, a.cgroups);
}
#define feed_seed(tasks, ...) feed_seed_args(tasks, (struct seed_args){__VA_ARGS__})

static inline int new_table(void **state)
{
	*state = tasks__new(0);
	return *state ? 0 : -1;
}

static inline int free_table(void **state)
{
	tasks__free(*state);
	return 0;
}

static inline struct task_view find(struct tasks *tasks, uint32_t tid, uint64_t stamp_ns)
{
	struct task_view view;

	if (!tasks__find(tasks, tid, stamp_ns, &view))
		fail_msg("nobody has tid %u at %llu", tid, (unsigned long long)stamp_ns);
	return view;
}

static inline void assert_nobody(struct tasks *tasks, uint32_t tid, uint64_t stamp_ns)
{
	struct task_view view;

	assert_false(tasks__find(tasks, tid, stamp_ns, &view));
}

static inline struct tasks_stats stats_of(struct tasks *tasks)
{
	struct tasks_stats stats;

	tasks__stats(tasks, &stats);
	return stats;
}

#define TABLE_TEST(name) cmocka_unit_test_setup_teardown(name, new_table, free_table)

#endif /* TESTS_STATE_EVENTS_H */
