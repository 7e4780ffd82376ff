/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * task.bpf.h - what the probes read of a task. Plain loads: in a tp_btf program the verifier knows
 * the types, and a pointer that is gone reads as 0.
 */
#ifndef WEIR_TASK_BPF_H
#define WEIR_TASK_BPF_H

#include <weir/probes.h>

#include "kernel_types.h"

/* A comm is 16 bytes at an aligned place, in the kernel and in the records: two loads. */
typedef __u64 __attribute__((may_alias)) comm_half;

static __always_inline void copy_comm(char *to, const struct task_struct *task)
{
	((comm_half *)to)[0] = ((const comm_half *)task->comm)[0];
	((comm_half *)to)[1] = ((const comm_half *)task->comm)[1];
}

static __always_inline struct weir_task_id task_id(const struct task_struct *task)
{
	return (struct weir_task_id){.pid = task->tgid, .tid = task->pid};
}

static __always_inline struct weir_task_id current_id(void)
{
	__u64 both = bpf_get_current_pid_tgid();

	return (struct weir_task_id){.pid = both >> 32, .tid = (__u32)both};
}

/* Of the cgroup in the default hierarchy (v2); its root's when only v1 is used. */
static __always_inline __u64 task_cgroup(const struct task_struct *task)
{
	return task->cgroups->dfl_cgrp->kn->id;
}

#endif /* WEIR_TASK_BPF_H */
