// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * three.bpf.c - forks through a plain BPF ring buffer, as anybody's program would send them, and exits
 * through weir.bpf.h. Execs come from the kernel's own tracepoint, without a program.
 */
#include <weir/weir.bpf.h>

#include <bpf/bpf_tracing.h>

#include "three.h"

struct task_struct {
	int pid, tgid;
} __attribute__((preserve_access_index));

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
} forks SEC(".maps");

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	struct fork fork = {.ns = bpf_ktime_get_ns()};

	/* Stamped first, published later: what comes between is why its reader needs a fence. */
	fork.parent = parent->tgid;
	fork.child = child->pid;
	bpf_ringbuf_output(&forks, &fork, sizeof(fork), 0);
	return 0;
}

struct exit_record {
	struct weir_record rec;
	struct exit exit;
};

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	struct weir_ticket ticket;
	struct exit_record *r = weir_reserve(&ticket, 0, WEIR_TYPE_USER, sizeof(*r));

	if (!r)
		return 0;
	r->exit.pid = task->tgid;
	r->exit.tid = task->pid;
	weir_submit(&ticket, r);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
