/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * signal.bpf.h - signals sent, and signals that a thread takes.
 */
#ifndef WEIR_SIGNAL_BPF_H
#define WEIR_SIGNAL_BPF_H

#include "weir.bpf.h"
#include <bpf/bpf_tracing.h>

#include "select.bpf.h"
#include "task.bpf.h"

#define SEND_SIG_NOINFO 0 /* not an address: a program sent it */
#define SEND_SIG_PRIV	1 /* not an address: the kernel did */
#define SI_USER		0
#define SI_KERNEL	0x80

struct signal_record {
	struct weir_record rec;
	struct weir_signal sig;
};

/* `info` may be a number instead of an address: probe_read can't fault, a plain load could. */
static __always_inline void set_info(struct weir_signal *sig, struct kernel_siginfo *info)
{
	sig->err = 0;
	sig->code = SI_USER;
	if ((unsigned long)info == SEND_SIG_PRIV)
		sig->code = SI_KERNEL;
	if ((unsigned long)info <= SEND_SIG_PRIV)
		return;
	sig->code = BPF_CORE_READ(info, si_code);
	sig->err = BPF_CORE_READ(info, si_errno);
}

SEC("tp_btf/signal_generate")
int BPF_PROG(on_signal_generate, int sig, struct kernel_siginfo *info, struct task_struct *task,
	     int group, int result)
{
	struct weir_task_id sender = current_id();
	__u32 target = task->tgid;
	struct signal_record *r;
	struct weir_ticket t;

	if (!selected_pair(CLASS_CPU, target == weir_self_tgid, target, sender.pid))
		return 0;
	r = weir_reserve(&t, CLASS_CPU, WEIR_T_SIGNAL_GENERATE, sizeof(*r));
	if (!r)
		return 0;
	r->sig.id = sender;
	r->sig.target = task_id(task);
	r->sig.sig = sig;
	set_info(&r->sig, info);
	r->sig.result = result;
	r->sig.group = group;
	r->sig.sa_flags = 0;
	r->sig.handler = 0;
	copy_comm(r->sig.target_comm, task);
	weir_submit(&t, r);
	return 0;
}

SEC("tp_btf/signal_deliver")
int BPF_PROG(on_signal_deliver, int sig, struct kernel_siginfo *info, struct k_sigaction *ka)
{
	struct weir_task_id id = current_id();
	struct signal_record *r;
	struct weir_ticket t;

	if (!selected_process(CLASS_CPU, id.pid))
		return 0;
	r = weir_reserve(&t, CLASS_CPU, WEIR_T_SIGNAL_DELIVER, sizeof(*r));
	if (!r)
		return 0;
	r->sig.id = id;
	r->sig.target = id;
	r->sig.sig = sig;
	set_info(&r->sig, info);
	r->sig.result = 0;
	r->sig.group = 0;
	r->sig.sa_flags = ka->sa.sa_flags;
	r->sig.handler = (unsigned long)ka->sa.sa_handler;
	copy_comm(r->sig.target_comm, (struct task_struct *)bpf_get_current_task_btf());
	weir_submit(&t, r);
	return 0;
}

#endif /* WEIR_SIGNAL_BPF_H */
