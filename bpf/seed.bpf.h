/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * seed.bpf.h - what was there before the trace: each thread that runs, and who the reader is.
 */
#ifndef WEIR_SEED_BPF_H
#define WEIR_SEED_BPF_H

#include "weir.bpf.h"
#include <bpf/bpf_tracing.h>

#include "select.bpf.h"
#include "task.bpf.h"

/* One struct weir_seed a thread. Processes that only wait to be reaped have had their exit. */
SEC("iter/task")
int seed_tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct weir_seed seed = {};

	if (!task || task->signal->live.counter == 0)
		return 0;
	seed.id = task_id(task);
	seed.start_ns = task->start_time;
	seed.cgroup = task_cgroup(task);
	seed.ppid = task->real_parent->tgid;
	seed.uid = task->cred->euid.val;
	seed.kthread = !!(task->flags & PF_KTHREAD);
	copy_comm(seed.comm, task);
	bpf_seq_write(ctx->meta->seq, &seed, sizeof(seed));
	return 0;
}

/* When learn_self ran, by the clock of the stamps. */
__u64 weir_self_ns = 0;

/* Run once by the reader itself: its own number and clock, in whatever namespaces it is. */
SEC("raw_tp")
int learn_self(void *ctx)
{
	weir_self_tgid = bpf_get_current_pid_tgid() >> 32;
	weir_self_ns = bpf_ktime_get_ns();
	return 0;
}

#endif /* WEIR_SEED_BPF_H */
