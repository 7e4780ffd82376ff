/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lean.h - who runs on a CPU from when on: the record of the accounting probe.
 *
 * One record a switch, 40 bytes, in one ring for each CPU. That ring has a single writer that nothing
 * interrupts, so its records stand in the order of their numbers and of their stamps, and a hole in
 * the numbers is a loss at that place: accounting needs no order between CPUs.
 *
 * A record tells who comes, and how the one that leaves does so; who that is, the record before has
 * told. It also has what the kernel counts for the task that leaves, as totals since it was forked:
 * the difference of two switch-outs is what lies between them, whatever was lost in the meantime.
 *
 * Compiles as BPF C, C99 and C++.
 */
#ifndef WEIR_LEAN_H
#define WEIR_LEAN_H

#include <weir/record.h>

/* weir_record.type, beside those of enum weir_type */
#define WEIR_T_LEAN_SEED   32 /* the first record of a CPU: `next` has been running since before */
#define WEIR_T_LEAN_SWITCH 33

/*
 * weir_record.flags. The high byte of a switch is the low byte of the state in which the task leaves:
 * 0 runnable, 1 interruptible, 2 uninterruptible, 4 stopped, 8 traced, 0x80 dead: its last switch.
 */
#define WEIR_LEAN_PREEMPT   (1u << 0) /* it was still runnable and was pushed out */
#define WEIR_LEAN_NOLOAD    (1u << 1) /* uninterruptible, and idle all the same: a kernel thread */
/*
 * The task that leaves is another one than the last that came. Somebody's switches never reached the
 * probe: from the record before on until this one it is not known who ran. Nothing about the task that
 * leaves can be used.
 */
#define WEIR_LEAN_UNSEEN    (1u << 2)
/*
 * The task that leaves is the last that came, under another number: it is a thread that has called
 * exec, and has taken the tid (= pid) and the start time of its process's leader. No gap.
 */
#define WEIR_LEAN_RENAMED   (1u << 3)
/* This CPU was offline between the record before and this one. */
#define WEIR_LEAN_AWAY	    (1u << 4)
/* The totals of the task that leaves are not there: this kernel does not count them. */
#define WEIR_LEAN_NO_TOTALS (1u << 5)

#define WEIR_LEAN_STATE_SHIFT 8

/* weir_lean.flags -> the low byte of the state in which the task leaves. */
static inline __u8 weir_lean__state(__u16 flags)
{
	return (__u8)(flags >> WEIR_LEAN_STATE_SHIFT);
}

#define WEIR_LEAN_DELAY_BITS 48

/* How long a task has waited for a CPU from one switch-out of its to another, by their prev_totals. */
static inline __u64 weir_lean__delay_ns(__u64 totals, __u64 before)
{
	return (totals - before) & ((1ULL << WEIR_LEAN_DELAY_BITS) - 1);
}

/* How often it was moved to another CPU in between. */
static inline __u32 weir_lean__migrations(__u64 totals, __u64 before)
{
	return (__u16)((totals >> WEIR_LEAN_DELAY_BITS) - (before >> WEIR_LEAN_DELAY_BITS));
}

struct weir_lean {
	__u64 stamp; /* as struct weir_record */
	__u16 type;
	__u16 flags;
	__u32 seq;
	__u64 next_start_ns; /* of the task that comes: with its tid, who it is; 0: an idle task */
	__u32 next_pid;	     /* 0: an idle task */
	__u32 next_tid;
	/*
	 * Totals of the task that leaves: how long it has waited for a CPU while it could run, this
	 * slice's wait included (48 bits, in ns, by the scheduler's clock), and how often it was moved
	 * to another CPU (16 bits). Take differences modulo their width. 0 in a seed.
	 */
	__u64 prev_totals;
};

/* With hardware counters: what this CPU's say at the stamp, since they were opened. */
enum weir_lean_counter {
	WEIR_LEAN_CYCLES = 0,
	WEIR_LEAN_INSTRUCTIONS,
	WEIR_LEAN_CACHE_MISSES,
	WEIR_LEAN_COUNTERS
};
#define WEIR_LEAN_NO_COUNT (~0ULL) /* could not be read here */

struct weir_lean_counted {
	struct weir_lean lean;
	__u64 count[WEIR_LEAN_COUNTERS];
};

#endif /* WEIR_LEAN_H */
