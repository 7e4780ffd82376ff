/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * weir_lane.bpf.h - write records of one size where nothing can interrupt the writer.
 *
 * For hooks that run on each CPU in one context only, with interrupts off: sched_switch is the one
 * that pays. A lane costs less than a BPF ring buffer, for it needs no lock, and it may not be used
 * where an interrupt, or another program on another hook, could write into the same lane meanwhile.
 *
 *	__u32 cpu = bpf_get_smp_processor_id();
 *	struct weir_lane *lane = bpf_map_lookup_elem(&weir_lanes, &cpu);
 *	struct weir_record *rec = lane ? weir_lane_reserve(lane, cpu, type) : NULL;
 *
 *	if (!rec)
 *		return 0;
 *	... fill in what follows ...
 *	weir_lane_publish(lane);
 *
 * User space sets weir_lane_records, the size of `weir_lanes` and `weir_lane_rings` (1 + the highest
 * possible CPU id), and an inner map of weir_lane_records values of one record each
 * (bpf_map__set_inner_map_fd), loads the object, and hands both maps to weir_lanes__new().
 *
 * The promise to the reader is that of weir.bpf.h: count, then stamp, then fill, then publish. The
 * atomic is a full barrier, so whoever sees `attempts` without this record's number has read it
 * before the record was stamped.
 */
#ifndef WEIR_LANE_BPF_H
#define WEIR_LANE_BPF_H

#ifndef __VMLINUX_H__
#include <linux/bpf.h>
#endif
#include <bpf/bpf_helpers.h>

#include <weir/record.h>

/* Set before load: a power of two. */
const volatile __u64 weir_lane_records __weak = 1;

/* By CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct weir_lane);
} weir_lanes __weak SEC(".maps");

/*
 * By CPU, so that only those that are online need memory. What is inner here is to be replaced.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(
		values, struct {
			__uint(type, BPF_MAP_TYPE_ARRAY);
			__uint(map_flags, BPF_F_MMAPABLE);
			__uint(max_entries, 1);
			__uint(key_size, sizeof(__u32));
			__uint(value_size, sizeof(struct weir_record));
		});
} weir_lane_rings __weak SEC(".maps");

/*
 * A place in the lane of this CPU, with stamp, type and seq; NULL: the loss is counted. Pairs with the
 * reader's store of the tail, which it does when it has read what stands before: a place that looks
 * free is free, and what is stored into it depends on that look.
 */
static __always_inline void *weir_lane_reserve(struct weir_lane *lane, __u32 cpu, __u16 type)
{
	__u32 seq = __sync_fetch_and_add(&lane->attempts, 1), index;
	__u64 head = lane->head;
	struct weir_record *rec;
	void *ring;

	if (head - *(volatile __u64 *)&lane->tail >= weir_lane_records)
		goto none;
	ring = bpf_map_lookup_elem(&weir_lane_rings, &cpu);
	if (!ring)
		goto none;
	index = head & (weir_lane_records - 1);
	rec = bpf_map_lookup_elem(ring, &index);
	if (!rec)
		goto none;
	rec->stamp = bpf_ktime_get_ns();
	rec->type = type;
	rec->seq = seq;
	return rec;
none:
	*(volatile __u64 *)&lane->failed = lane->failed + 1;
	return NULL;
}

/*
 * Hand the record over. What was filled in has to be visible before the head is. x86 keeps stores in order; elsewhere an
 * exchange does, since BPF had no store with release before 6.15.
 */
static __always_inline void weir_lane_publish(struct weir_lane *lane)
{
	__u64 head = lane->head + 1;

#if defined(__TARGET_ARCH_x86)
	__asm__ volatile("" ::: "memory");
	*(volatile __u64 *)&lane->head = head;
#else
	__sync_lock_test_and_set(&lane->head, head);
#endif
}

/*
 * Behind weir_lane_publish(): is an eighth of the lane full? Once for each tail, so that a reader
 * that sleeps until then is woken once. The look at the tail may be an old one, for the reader moves
 * it meanwhile; the next record looks again, long before anything is lost.
 */
static __always_inline _Bool weir_lane_fills_up(struct weir_lane *lane)
{
	__u64 tail = *(volatile __u64 *)&lane->tail;

	if (lane->head - tail < weir_lane_records / 8 || lane->rung == tail + 1)
		return 0;
	lane->rung = tail + 1;
	return 1;
}

#endif /* WEIR_LANE_BPF_H */
