/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sched.bpf.h - who runs where: switches, wake-ups, migrations.
 *
 * The hottest hooks of all: constant sizes, plain loads. An event passes a selection of processes
 * when either side of it is selected.
 */
#ifndef WEIR_SCHED_BPF_H
#define WEIR_SCHED_BPF_H

#include "weir.bpf.h"
#include <bpf/bpf_tracing.h>

#include "select.bpf.h"
#include "task.bpf.h"

/* Set before load: since 5.18 the tracepoint's last argument is the state that prev leaves in. */
const volatile bool weir_switch_has_state = false;

static __always_inline __u32 state_of(const struct task_struct *task)
{
	if (bpf_core_field_exists(task->__state))
		return task->__state;
	return ((const struct task_struct___state *)task)->state;
}

/*
 * The reader's own only if nobody else takes part: where it pushes another task out, or lets one
 * in, the switch is that task's too.
 */
static __always_inline bool is_own_switch(__u32 prev, __u32 next)
{
	__u32 self = weir_self_tgid;

	if (prev != self && next != self)
		return false;
	return (prev == self || prev == 0) && (next == self || next == 0);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct {
		struct weir_record rec;
		struct weir_switch sw;
	} * r;
	__u32 prev_pid = prev->tgid, next_pid = next->tgid;
	struct weir_ticket t;

	if (!selected_pair(CLASS_CPU, is_own_switch(prev_pid, next_pid), prev_pid, next_pid))
		return 0;
	r = weir_reserve(&t, CLASS_CPU, WEIR_T_SWITCH, sizeof(*r));
	if (!r)
		return 0;
	r->sw.prev.pid = prev_pid;
	r->sw.prev.tid = prev->pid;
	r->sw.next.pid = next_pid;
	r->sw.next.tid = next->pid;
	r->sw.prev_state = weir_switch_has_state ? (__u32)ctx[3] : state_of(prev);
	r->sw.preempt = preempt;
	r->sw.prev_prio = prev->prio;
	r->sw.next_prio = next->prio;
	copy_comm(r->sw.prev_comm, prev);
	copy_comm(r->sw.next_comm, next);
	weir_submit(&t, r);
	return 0;
}

static __always_inline int wakeup(const struct task_struct *task, bool is_new)
{
	struct {
		struct weir_record rec;
		struct weir_wakeup wake;
	} * r;
	struct weir_task_id waker = current_id();
	__u32 target = task->tgid;
	struct weir_ticket t;

	if (!selected_pair(CLASS_CPU, target == weir_self_tgid, target, waker.pid))
		return 0;
	r = weir_reserve(&t, CLASS_CPU, WEIR_T_WAKEUP, sizeof(*r));
	if (!r)
		return 0;
	r->wake.waker = waker;
	r->wake.target.pid = target;
	r->wake.target.tid = task->pid;
	r->wake.target_cpu = task->thread_info.cpu;
	r->wake.prio = task->prio;
	r->wake.is_new = is_new;
	r->wake.pad = 0;
	copy_comm(r->wake.target_comm, task);
	weir_submit(&t, r);
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *task)
{
	return wakeup(task, false);
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(on_wakeup_new, struct task_struct *task)
{
	return wakeup(task, true);
}

/* Fires before the task has moved: its CPU is still the old one. */
SEC("tp_btf/sched_migrate_task")
int BPF_PROG(on_migrate, struct task_struct *task, int dest_cpu)
{
	struct {
		struct weir_record rec;
		struct weir_migrate move;
	} * r;
	struct weir_task_id running = current_id();
	__u32 target = task->tgid;
	struct weir_ticket t;

	if (!selected_pair(CLASS_CPU, target == weir_self_tgid, target, running.pid))
		return 0;
	r = weir_reserve(&t, CLASS_CPU, WEIR_T_MIGRATE, sizeof(*r));
	if (!r)
		return 0;
	r->move.current = running;
	r->move.target.pid = target;
	r->move.target.tid = task->pid;
	r->move.orig_cpu = task->thread_info.cpu;
	r->move.dest_cpu = dest_cpu;
	r->move.prio = task->prio;
	r->move.pad = 0;
	copy_comm(r->move.target_comm, task);
	weir_submit(&t, r);
	return 0;
}

#endif /* WEIR_SCHED_BPF_H */
