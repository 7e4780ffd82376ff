// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * lean_ways.bpf.c - what the accounting probe is measured against, on the same hook: nothing, the stamp
 * alone, and the same record through a BPF ring buffer.
 */
#include "bpf/weir.bpf.h"

#include <bpf/bpf_tracing.h>

#include "bpf/lean.bpf.h"

__u64 last_stamp; /* so that the stamp is not left out */

/* What a lane has room for in itself. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64[NOTES]);
} notes SEC(".maps");

SEC("tp_btf/sched_switch")
int BPF_PROG(empty)
{
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(stamp)
{
	last_stamp = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(ring, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	__u32 zero = 0, state = weir_switch_has_state ? (__u32)ctx[3] : prev->__state;
	__u64 *note = bpf_map_lookup_elem(&notes, &zero);
	struct weir_ticket t;
	struct weir_lean *lean;
	__u16 flags;

	if (!note)
		return 0;
	flags = compare_prev(note, prev, false);
	note_next(note, next, false);
	lean = weir_reserve(&t, 0, WEIR_T_LEAN_SWITCH, sizeof(*lean));
	if (!lean)
		return 0;
	put_switch(lean, note, preempt, prev, next, state, flags, false);
	weir_submit(&t, lean);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
