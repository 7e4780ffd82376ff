/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lean.bpf.h - what a record of the accounting probe says of two tasks, in whatever ring it goes.
 */
#ifndef WEIR_LEAN_BPF_H
#define WEIR_LEAN_BPF_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include <weir/lean.h>

#include "kernel_types.h"

/* Set before load: since 5.18 the tracepoint's last argument is the state that prev leaves in. */
const volatile bool weir_switch_has_state = false;

/* The last that came to this CPU. NOTE_TASK 0: it has not been seeded yet. */
enum { NOTE_TASK, NOTE_START, NOTE_PID, NOTES };

#define TASK_NOLOAD 0x400

/*
 * In a tp_btf program the verifier knows what `task` is, and a load is a load; in a raw one, `raw`, it
 * is a number, and the kernel has to be asked to read there.
 */
#define READ(task, member) (raw ? BPF_CORE_READ(task, member) : (task)->member)

static __always_inline void note_next(__u64 *note, const struct task_struct *next, const bool raw)
{
	note[NOTE_TASK] = (__u64)next;
	note[NOTE_START] = READ(next, start_time);
	note[NOTE_PID] = (__u32)READ(next, tgid);
}

/* What `next` is; note_next() comes before. */
static __always_inline void put_next(struct weir_lean *lean, const __u64 *note,
				     const struct task_struct *next, const bool raw)
{
	lean->next_pid = note[NOTE_PID];
	lean->next_tid = READ(next, pid);
	lean->next_start_ns = lean->next_pid ? note[NOTE_START] : 0;
}

/* Is the task that leaves the last that came? A thread that execs takes its leader's start time. */
static __always_inline __u16 compare_prev(const __u64 *note, const struct task_struct *prev,
					  const bool raw)
{
	bool same = note[NOTE_TASK] == (__u64)prev;

	if (same && note[NOTE_START] == READ(prev, start_time))
		return 0;
	if (same && note[NOTE_PID] == (__u32)READ(prev, tgid))
		return WEIR_LEAN_RENAMED;
	return WEIR_LEAN_UNSEEN;
}

static __always_inline __u16 how_it_leaves(__u32 state, bool preempt)
{
	__u16 flags = (state & 0xff) << WEIR_LEAN_STATE_SHIFT;

	if (preempt)
		flags |= WEIR_LEAN_PREEMPT;
	if (state & TASK_NOLOAD)
		flags |= WEIR_LEAN_NOLOAD;
	return flags;
}

static __always_inline __u16 put_totals(struct weir_lean *lean, const struct task_struct *prev,
					const bool raw)
{
	__u64 delay, moves;

	if (!bpf_core_field_exists(prev->sched_info.run_delay)) {
		lean->prev_totals = 0;
		return WEIR_LEAN_NO_TOTALS;
	}
	delay = READ(prev, sched_info.run_delay);
	moves = READ(prev, se.nr_migrations);
	lean->prev_totals = (delay & ((1ULL << WEIR_LEAN_DELAY_BITS) - 1)) |
			    moves << WEIR_LEAN_DELAY_BITS;
	return 0;
}

/* All of `lean` but its stamp and seq; `flags` are those that compare_prev() gave. */
static __always_inline void put_switch(struct weir_lean *lean, const __u64 *note, bool preempt,
				       const struct task_struct *prev,
				       const struct task_struct *next, __u32 state, __u16 flags,
				       const bool raw)
{
	put_next(lean, note, next, raw);
	flags |= how_it_leaves(state, preempt);
	flags |= put_totals(lean, prev, raw);
	lean->flags = flags;
}

#endif /* WEIR_LEAN_BPF_H */
