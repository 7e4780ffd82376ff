/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * life.bpf.h - processes come, become others, and go: the records that carry state.
 *
 * Low in volume, in rings of their own. Also keeps the set of selected processes: a child of one is
 * one, from its fork on and until after its exit.
 */
#ifndef WEIR_LIFE_BPF_H
#define WEIR_LIFE_BPF_H

#include "weir.bpf.h"
#include <bpf/bpf_tracing.h>

#include "scratch.bpf.h"
#include "select.bpf.h"
#include "task.bpf.h"

#define PATH_BYTES 4096
#define ARGV_BYTES 4096

/* Set before load: since 6.15 the tracepoint tells whether a thread was its process's last. */
const volatile bool weir_exit_tells_last = false;

struct exec_scratch {
	struct weir_exec exec;
	char bytes[PATH_BYTES + ARGV_BYTES];
};

struct mkdir_scratch {
	struct weir_cgroup_mkdir mkdir;
	char path[PATH_BYTES];
};

struct attach_scratch {
	struct weir_cgroup_attach attach;
	char path[PATH_BYTES];
};

SCRATCH(exec_scratch, struct exec_scratch);
SCRATCH(mkdir_scratch, struct mkdir_scratch);
SCRATCH(attach_scratch, struct attach_scratch);

static __always_inline void track(__u32 tgid)
{
	__u8 yes = 1;

	if (bpf_map_update_elem(&weir_pids, &tgid, &yes, BPF_NOEXIST) == 0)
		__sync_fetch_and_add(&weir_alive, 1);
}

static __always_inline void untrack(__u32 tgid)
{
	if (bpf_map_delete_elem(&weir_pids, &tgid) == 0)
		__sync_fetch_and_add(&weir_alive, -1);
}

/* Runs in the parent, before the child does. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	struct {
		struct weir_record rec;
		struct weir_fork fork;
	} * r;
	struct weir_ticket t;

	if (!selected_process(CLASS_LIFE, parent->tgid))
		return 0;
	if (weir_has_pids && weir_follows && child->tgid != parent->tgid)
		track(child->tgid);

	r = weir_reserve(&t, CLASS_LIFE, WEIR_T_FORK, sizeof(*r));
	if (!r)
		return 0;
	r->fork.parent = task_id(parent);
	r->fork.child = task_id(child);
	r->fork.child_start_ns = child->start_time;
	r->fork.child_cgroup = task_cgroup(child);
	copy_comm(r->fork.comm, child);
	weir_submit(&t, r);
	return 0;
}

/* The new program's arguments, from its stack, which the kernel has just written. */
static __always_inline __u32 read_argv(struct weir_exec *exec, char *to, const struct mm_struct *mm)
{
	unsigned long start = mm->arg_start;
	unsigned long len = mm->arg_end - start;

	if (len > ARGV_BYTES) {
		len = ARGV_BYTES;
		exec->flags |= WEIR_EXEC_ARGV_CUT;
	}
	if (bpf_probe_read_user(to, len, (void *)start) < 0) {
		len = 0;
		exec->flags |= WEIR_EXEC_ARGV_UNREAD;
	}
	return len;
}

static __always_inline __u32 read_path(struct weir_exec *exec, char *to, const char *path)
{
	long len = bpf_probe_read_kernel_str(to, PATH_BYTES + 1, path);

	if (len <= 0)
		return 0;
	if (len > PATH_BYTES)
		exec->flags |= WEIR_EXEC_PATH_CUT;
	return len - 1;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_tid, struct linux_binprm *bprm)
{
	struct exec_scratch *s;
	__u32 zero = 0, path, argv;

	if (!selected_process(CLASS_LIFE, task->tgid))
		return 0;
	s = bpf_map_lookup_elem(&exec_scratch, &zero);
	if (!s)
		return 0;

	s->exec.id = task_id(task);
	s->exec.old_tid = old_tid;
	s->exec.ppid = task->real_parent->tgid;
	s->exec.uid = task->cred->euid.val;
	s->exec.flags = 0;
	s->exec.start_ns = task->start_time;
	s->exec.cgroup = task_cgroup(task);
	copy_comm(s->exec.comm, task);
	path = read_path(&s->exec, s->bytes, bprm->filename);
	if (path > PATH_BYTES)
		return 0;
	argv = read_argv(&s->exec, s->bytes + path, task->mm);
	if (argv > ARGV_BYTES)
		return 0;
	s->exec.path_len = path;
	s->exec.argv_len = argv;
	weir_emit(CLASS_LIFE, WEIR_T_EXEC, s, sizeof(s->exec) + path + argv);
	return 0;
}

/* A process, as long as its number may be given to another. */
struct process {
	__u64 start_ns;
	__u64 tgid;
};

/* Processes whose end has been told. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct process);
	__type(value, __u8);
} life_ended SEC(".maps");

/*
 * Without the kernel's word: a thread that finds nobody else alive. Several that leave at the same
 * moment may all find that; the first of them stands for the process.
 */
static __always_inline bool is_last(unsigned long long *ctx, const struct task_struct *task)
{
	struct process process = {.start_ns = task->group_leader->start_time, .tgid = task->tgid};
	__u8 yes = 1;

	if (weir_exit_tells_last)
		return ctx[1];
	if (task->signal->live.counter)
		return false;
	return bpf_map_update_elem(&life_ended, &process, &yes, BPF_NOEXIST) == 0;
}

/* How a thread ended; for a process that ended as a whole (exit_group, a signal), how that did. */
static __always_inline void set_exit_status(struct weir_exit *exit, const struct task_struct *task)
{
	__u32 code = task->exit_code;

	if (task->signal->flags & SIGNAL_GROUP_EXIT)
		code = task->signal->group_exit_code;
	exit->signal = code & 0x7f;
	exit->code = exit->signal ? 0 : (code >> 8) & 0xff;
	if (code & 0x80)
		exit->flags |= WEIR_EXIT_CORE;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	struct {
		struct weir_record rec;
		struct weir_exit exit;
	} * r;
	struct weir_ticket t;
	bool last = is_last(ctx, task);

	if (!selected_process(CLASS_LIFE, task->tgid))
		return 0;
	r = weir_reserve(&t, CLASS_LIFE, WEIR_T_EXIT, sizeof(*r));
	if (r) {
		r->exit.id = task_id(task);
		r->exit.start_ns = task->start_time;
		r->exit.flags = last ? WEIR_EXIT_PROCESS : 0;
		set_exit_status(&r->exit, task);
		r->exit.ppid = task->real_parent->tgid;
		copy_comm(r->exit.comm, task);
		weir_submit(&t, r);
	}
	if (weir_has_pids && last)
		untrack(task->tgid);
	return 0;
}

SEC("tp_btf/task_rename")
int BPF_PROG(on_rename, struct task_struct *task, const char *comm)
{
	struct {
		struct weir_record rec;
		struct weir_rename rename;
	} * r;
	struct weir_ticket t;

	if (!selected_process(CLASS_LIFE, task->tgid))
		return 0;
	r = weir_reserve(&t, CLASS_LIFE, WEIR_T_RENAME, sizeof(*r));
	if (!r)
		return 0;
	r->rename.id = task_id(task);
	r->rename.start_ns = task->start_time;
	__builtin_memset(r->rename.comm, 0, sizeof(r->rename.comm));
	bpf_probe_read_kernel_str(r->rename.comm, sizeof(r->rename.comm), comm);
	weir_submit(&t, r);
	return 0;
}

/* Every task has a place in the default hierarchy (v2), which therefore can be recognized by it. */
static __always_inline bool is_v2(const struct cgroup *cgroup)
{
	return cgroup->root == bpf_get_current_task_btf()->cgroups->dfl_cgrp->root;
}

static __always_inline __u32 read_cgroup_path(char *to, const char *path)
{
	long len = bpf_probe_read_kernel_str(to, PATH_BYTES, path);

	return len > 0 ? len - 1 : 0;
}

/* Not any process's: what the reader knows of cgroups has to be whole under every selection. */
SEC("tp_btf/cgroup_mkdir")
int BPF_PROG(on_cgroup_mkdir, struct cgroup *cgroup, const char *path)
{
	struct mkdir_scratch *s;
	__u32 zero = 0, len;

	s = bpf_map_lookup_elem(&mkdir_scratch, &zero);
	if (!s)
		return 0;
	s->mkdir.cgroup = cgroup->kn->id;
	s->mkdir.hierarchy = cgroup->root->hierarchy_id;
	s->mkdir.is_v2 = is_v2(cgroup);
	len = read_cgroup_path(s->path, path);
	if (len > PATH_BYTES)
		return 0;
	s->mkdir.path_len = len;
	weir_emit(CLASS_LIFE, WEIR_T_CGROUP_MKDIR, s, sizeof(s->mkdir) + len);
	return 0;
}

SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(on_cgroup_attach, struct cgroup *cgroup, const char *path, struct task_struct *task,
	     bool process)
{
	struct attach_scratch *s;
	__u32 zero = 0, len;

	if (!selected_process(CLASS_LIFE, task->tgid))
		return 0;
	s = bpf_map_lookup_elem(&attach_scratch, &zero);
	if (!s)
		return 0;
	s->attach.id = task_id(task);
	s->attach.start_ns = task->start_time;
	s->attach.cgroup = cgroup->kn->id;
	s->attach.hierarchy = cgroup->root->hierarchy_id;
	s->attach.is_v2 = is_v2(cgroup);
	s->attach.process = process;
	len = read_cgroup_path(s->path, path);
	if (len > PATH_BYTES)
		return 0;
	s->attach.path_len = len;
	weir_emit(CLASS_LIFE, WEIR_T_CGROUP_ATTACH, s, sizeof(s->attach) + len);
	return 0;
}

#endif /* WEIR_LIFE_BPF_H */
