// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* agent.bpf.c - who sends which signal to whom. */
#include <weir/weir.bpf.h>

#include <bpf/bpf_tracing.h>

#include "agent.h"

/* Of the kernel's types only what is used; where it stands is found when the program is loaded. */
struct task_struct {
	int pid, tgid;
	char comm[16];
} __attribute__((preserve_access_index));

struct signal_record {
	struct weir_record rec;
	struct signal signal;
};

SEC("tp_btf/signal_generate")
int BPF_PROG(on_signal, int sig, void *info, struct task_struct *target)
{
	struct weir_ticket ticket;
	struct signal_record *r;

	/* Reserve, count, stamp: the order that makes the reader's work exact. */
	r = weir_reserve(&ticket, 0, TYPE_SIGNAL, sizeof(*r));
	if (!r)
		return 0; /* counted: the reader will tell of it as a gap */
	r->signal.sender = bpf_get_current_pid_tgid() >> 32;
	r->signal.target = target->tgid;
	r->signal.sig = sig;
	r->signal.pad = 0;
	bpf_get_current_comm(r->signal.sender_comm, sizeof(r->signal.sender_comm));
	bpf_probe_read_kernel(r->signal.target_comm, sizeof(r->signal.target_comm), target->comm);
	weir_submit(&ticket, r);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
