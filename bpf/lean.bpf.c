// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * lean.bpf.c - one short record for each switch, and nothing else.
 *
 * The hottest hook of all. No hash map, one stamp, no wake-up: what a record means is user space's to
 * find out. sched_switch runs with interrupts off and the seed in an interrupt or with preemption off,
 * so that a CPU's lane has one writer at a time.
 */
#include "weir_lane.bpf.h"
#include <bpf/bpf_tracing.h>

#include "lean.bpf.h"

/* Set before load. */
const volatile bool weir_lean_counts = false; /* records are struct weir_lean_counted */

/* Goes up with each CPU that comes or goes. */
__u64 weir_lean_hotplugs = 0;

/* Holds nothing that is read: what is put into it wakes the reader. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} weir_lean_bell SEC(".maps");

#define COUNTER(name)                                        \
	struct {                                             \
		__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY); \
		__uint(max_entries, 1);                      \
		__uint(key_size, sizeof(__u32));             \
		__uint(value_size, sizeof(__u32));           \
	} name SEC(".maps")

COUNTER(weir_lean_cycles);
COUNTER(weir_lean_instructions);
COUNTER(weir_lean_misses);

static __always_inline __u64 count_of(void *counter)
{
	struct bpf_perf_event_value value;

	if (bpf_perf_event_read_value(counter, BPF_F_CURRENT_CPU, &value, sizeof(value)))
		return WEIR_LEAN_NO_COUNT;
	return value.counter;
}

static __always_inline void add_counts(struct weir_lean *lean)
{
	struct weir_lean_counted *counted = (struct weir_lean_counted *)lean;

	counted->count[WEIR_LEAN_CYCLES] = count_of(&weir_lean_cycles);
	counted->count[WEIR_LEAN_INSTRUCTIONS] = count_of(&weir_lean_instructions);
	counted->count[WEIR_LEAN_CACHE_MISSES] = count_of(&weir_lean_misses);
}

static __always_inline int record_switch(bool preempt, const struct task_struct *prev,
					 const struct task_struct *next, __u32 state,
					 const bool raw)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct weir_lane *lane = bpf_map_lookup_elem(&weir_lanes, &cpu);
	struct weir_lean *lean;
	__u16 flags;

	if (!lane || !lane->note[NOTE_TASK])
		return 0;
	lean = weir_lane_reserve(lane, cpu, WEIR_T_LEAN_SWITCH);
	flags = compare_prev(lane->note, prev, raw);
	if (lane->away) {
		flags |= WEIR_LEAN_AWAY;
		lane->away = 0;
	}
	note_next(lane->note, next, raw);
	if (!lean)
		return 0;
	put_switch(lean, lane->note, preempt, prev, next, state, flags, raw);
	if (weir_lean_counts)
		add_counts(lean);
	weir_lane_publish(lane);
	if (weir_lane_fills_up(lane))
		bpf_ringbuf_output(&weir_lean_bell, &cpu, sizeof(cpu), BPF_RB_FORCE_WAKEUP);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	__u32 state = weir_switch_has_state ? (__u32)ctx[3] : prev->__state;

	return record_switch(preempt, prev, next, state, false);
}

SEC("raw_tp/sched_switch")
int BPF_PROG(on_switch_raw, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	__u32 state = weir_switch_has_state ? (__u32)ctx[3] : BPF_CORE_READ(prev, __state);

	return record_switch(preempt, prev, next, state, true);
}

/*
 * Run by user space on each CPU after the switches are attached; those before it are not recorded, so
 * that this is a lane's first.
 */
SEC("raw_tp")
int seed_cpu(void *ctx)
{
	const struct task_struct *task = (void *)bpf_get_current_task();
	__u32 cpu = bpf_get_smp_processor_id();
	struct weir_lane *lane = bpf_map_lookup_elem(&weir_lanes, &cpu);
	struct weir_lean *lean;

	if (!lane || lane->note[NOTE_TASK])
		return 0;
	lean = weir_lane_reserve(lane, cpu, WEIR_T_LEAN_SEED);
	note_next(lane->note, task, true);
	if (!lean)
		return 0;
	put_next(lean, lane->note, task, true);
	lean->prev_totals = 0;
	lean->flags = 0;
	if (weir_lean_counts)
		add_counts(lean);
	weir_lane_publish(lane);
	return 0;
}

/*
 * A CPU that goes offline can't say so itself. The one that has taken it down does, when it is dead
 * for certain; then nothing runs there until it comes back.
 */
SEC("raw_tp/cpuhp_exit")
int BPF_PROG(on_hotplug, __u32 cpu, int state, int step, int result)
{
	struct weir_lane *lane;

	__sync_fetch_and_add(&weir_lean_hotplugs, 1);
	if (step != (int)bpf_core_enum_value(enum cpuhp_state, CPUHP_TEARDOWN_CPU) || result)
		return 0;
	lane = bpf_map_lookup_elem(&weir_lanes, &cpu);
	if (lane)
		lane->away = 1;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
