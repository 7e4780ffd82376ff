/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * weir.bpf.h - write records that a weir stream can put into exact time order.
 *
 * For any BPF program, weir's own probes among them:
 *
 *	struct hit { struct weir_record rec; __u64 what; };
 *
 *	struct weir_ticket t;
 *	struct hit *hit = weir_reserve(&t, 0, WEIR_TYPE_USER, sizeof(*hit));
 *	if (!hit)
 *		return 0;
 *	hit->what = 42;
 *	weir_submit(&t, hit);
 *
 * or, when the length is only known at run time, weir_emit(0, WEIR_TYPE_USER, bytes, len).
 *
 * User space sets `weir_nr_cpus` (1 + the highest possible CPU id), the size of the map `weir_rings`
 * (classes * weir_nr_cpus) and of `weir_counters` (one more), loads the object, and hands both maps
 * to weir_stream__add_rings(), which makes the rings. A class is a set of rings, one a CPU, for
 * records that must not be pushed out by a flood of others; most programs need only class 0.
 *
 * The order of the steps is the promise that the reader builds on:
 *
 *	1. reserve	the record has its place: a reader that does not see it in the ring by now
 *			has taken its snapshot before,
 *	2. count	and the atomic is a full barrier, so that the place is visible
 *	3. stamp	before the clock is read: what was not in the snapshot is stamped after it.
 *
 * A stamp that is taken before the reserve, as bpf_ringbuf_output() does it, breaks this. So does a
 * count that is not fetched: it would be unordered on arm64.
 *
 * Attach with tp_btf or raw_tp. SEC("tp") programs of a CPU share one recursion guard, and lose
 * events in it that nobody counts.
 *
 * Needs clang -mcpu=v3, Linux 5.19, and a GPL-compatible license (the clock's helper asks for one).
 * Costs 100 to 110 ns beyond an empty program where reading the clock costs 58.
 */
#ifndef WEIR_BPF_H
#define WEIR_BPF_H

#ifndef __VMLINUX_H__
#include <linux/bpf.h>
#endif
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include <weir/record.h>

/* Set before load: 1 + the highest possible CPU id, not the number of CPUs: ids have holes. */
const volatile __u32 weir_nr_cpus __weak = 1;

/* slot = class * weir_nr_cpus + cpu. The reader makes the rings; a slot without one is allowed. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(
		values, struct {
			__uint(type, BPF_MAP_TYPE_RINGBUF);
			__uint(max_entries, 4096);
		});
} weir_rings __weak SEC(".maps");

/* Element 0 is struct weir_control, element 1 + slot belongs to that slot's ring. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct weir_counters);
} weir_counters __weak SEC(".maps");

/* Between reserve and submit: where the record is, and what the submit has to know. */
struct weir_ticket {
	void *ring;
	struct weir_counters *counters;
	__u32 seq;
	__u32 size;
};

/*
 * From Linux 7.2 on a program can be preempted. Between reserve and submit that would hold the
 * watermark of the whole machine for as long as the task waits for a CPU. The kernel's own list of
 * special kfuncs tells whether this one is there (6.10); where it is not, the verifier cuts the call
 * away. A weak symbol's address would tell too, but loaders before libbpf 1.2 can't resolve one.
 *
 * WEIR_NO_PREEMPT_GUARD leaves both out, for loaders that know no kfuncs at all.
 */
#ifndef WEIR_NO_PREEMPT_GUARD
enum special_kfunc_type___weir { KF_bpf_preempt_disable___weir = 1 };
extern void bpf_preempt_disable(void) __ksym __weak;
extern void bpf_preempt_enable(void) __ksym __weak;

static __always_inline void weir_preempt_disable(void)
{
	if (bpf_core_enum_value_exists(enum special_kfunc_type___weir,
				       KF_bpf_preempt_disable___weir))
		bpf_preempt_disable();
}

static __always_inline void weir_preempt_enable(void)
{
	if (bpf_core_enum_value_exists(enum special_kfunc_type___weir,
				       KF_bpf_preempt_disable___weir))
		bpf_preempt_enable();
}
#else
static __always_inline void weir_preempt_disable(void)
{
}

static __always_inline void weir_preempt_enable(void)
{
}
#endif

/* The counters of this CPU's ring in a class, and its slot; NULL: weir_counters is too small. */
static __always_inline struct weir_counters *weir_counters_here(__u32 class, __u32 *slot)
{
	__u32 element;

	*slot = class * weir_nr_cpus + bpf_get_smp_processor_id();
	element = *slot + 1;
	return bpf_map_lookup_elem(&weir_counters, &element);
}

/* Events that are left out before reserve have no seq, but they are part of the account. */
static __always_inline void weir_count_filtered(__u32 class)
{
	__u32 slot;
	struct weir_counters *c = weir_counters_here(class, &slot);

	if (c)
		__sync_fetch_and_add(&c->filtered, 1);
}

/* The same for events that the reader itself caused: outside of all sums. */
static __always_inline void weir_count_self(__u32 class)
{
	__u32 slot;
	struct weir_counters *c = weir_counters_here(class, &slot);

	if (c)
		__sync_fetch_and_add(&c->self, 1);
}

/* Strings of records that were written could not be read. */
static __always_inline void weir_count_unread(__u32 class, __u64 strings)
{
	__u32 slot;
	struct weir_counters *c = weir_counters_here(class, &slot);

	if (c)
		__sync_fetch_and_add(&c->unread, strings);
}

/*
 * A ring that fills up wakes even a reader that sleeps by its own clock: once, and again only after
 * it was seen less than half full. Looking costs two calls, so small records look at each eighth
 * only; eight of them and half of the smallest ring are still less than that ring.
 */
static __always_inline _Bool weir_fills_up(const struct weir_ticket *t)
{
	__u64 half_full;

	if (t->size <= 128 && (t->seq & 7))
		return 0;
	half_full = bpf_ringbuf_query(t->ring, BPF_RB_AVAIL_DATA) * 2 >=
		    bpf_ringbuf_query(t->ring, BPF_RB_RING_SIZE);
	if (half_full == t->counters->half_full)
		return 0;
	t->counters->half_full = half_full;
	return half_full;
}

/*
 * Flags for submit. The reader stores `wanted`, then looks at the rings, then sleeps; the count in
 * weir_reserve() is a full barrier between the place in the ring and this load. So either the reader
 * sees the place (a record that is not finished counts as one), or `wanted` is seen here. The
 * exchange makes it one wake-up, however many producers see it.
 */
static __always_inline __u64 weir_wakeup(const struct weir_ticket *t)
{
	__u32 zero = 0;
	struct weir_control *control = bpf_map_lookup_elem(&weir_counters, &zero);

	if (control && *(volatile __u32 *)&control->wanted &&
	    __sync_lock_test_and_set(&control->wanted, 0))
		return BPF_RB_FORCE_WAKEUP;
	return weir_fills_up(t) ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

/*
 * Reserve a record of `size` bytes (a constant; struct weir_record, which comes first, included) in
 * this CPU's ring of a class. Returns it with its head filled in, to be ended by weir_submit() or
 * weir_discard(), or NULL: the loss is counted, there is nothing more to do.
 */
static __always_inline void *weir_reserve(struct weir_ticket *t, __u32 class, __u16 type,
					  __u64 size)
{
	struct weir_record *rec = NULL;
	__u32 slot;

	weir_preempt_disable();
	t->size = size;
	t->counters = weir_counters_here(class, &slot);
	if (!t->counters)
		goto none;
	t->ring = bpf_map_lookup_elem(&weir_rings, &slot);
	if (t->ring)
		rec = bpf_ringbuf_reserve(t->ring, size, 0);
	t->seq = __sync_fetch_and_add(&t->counters->attempts, 1);
	if (!rec) {
		__sync_fetch_and_add(&t->counters->failed, 1);
		goto none;
	}
	rec->stamp = bpf_ktime_get_ns();
	rec->type = type;
	rec->flags = 0;
	rec->seq = t->seq;
	return rec;
none:
	weir_preempt_enable();
	return NULL;
}

/* The record is whole: show it to the reader, and wake him if he asked for it. */
static __always_inline void weir_submit(const struct weir_ticket *t, void *rec)
{
	bpf_ringbuf_submit(rec, weir_wakeup(t));
	weir_preempt_enable();
}

/* Give it back: the reader skips it, and the account has it as filtered. */
static __always_inline void weir_discard(const struct weir_ticket *t, void *rec)
{
	__sync_fetch_and_add(&t->counters->discarded, 1);
	bpf_ringbuf_discard(rec, BPF_RB_NO_WAKEUP);
	weir_preempt_enable();
}

/*
 * Write a record whose payload of `len` bytes (bounded, as the verifier wants it) is made elsewhere,
 * in a map's value or on the stack: for strings. The same steps in the same order, and the exact
 * length. Costs some 60 ns more than a constant size. 0, or a negative errno: the loss is counted.
 */
static __always_inline int weir_emit(__u32 class, __u16 type, const void *payload, __u32 len)
{
	struct weir_record rec = {.type = type};
	struct weir_ticket t = {.size = sizeof(rec) + len};
	struct bpf_dynptr place;
	int err = -28; /* ENOSPC */
	__u32 slot;

	weir_preempt_disable();
	t.counters = weir_counters_here(class, &slot);
	if (!t.counters)
		goto none;
	t.ring = bpf_map_lookup_elem(&weir_rings, &slot);
	if (!t.ring) {
		__sync_fetch_and_add(&t.counters->attempts, 1);
		__sync_fetch_and_add(&t.counters->failed, 1);
		goto none;
	}
	err = bpf_ringbuf_reserve_dynptr(t.ring, t.size, 0, &place);
	t.seq = __sync_fetch_and_add(&t.counters->attempts, 1);
	if (err) {
		__sync_fetch_and_add(&t.counters->failed, 1);
		/* It holds nothing, but the verifier wants to see it given back. */
		bpf_ringbuf_discard_dynptr(&place, BPF_RB_NO_WAKEUP);
		goto none;
	}
	rec.stamp = bpf_ktime_get_ns();
	rec.seq = t.seq;
	bpf_dynptr_write(&place, 0, &rec, sizeof(rec), 0);
	bpf_dynptr_write(&place, sizeof(rec), (void *)payload, len, 0);
	bpf_ringbuf_submit_dynptr(&place, weir_wakeup(&t));
none:
	weir_preempt_enable();
	return err;
}

#endif /* WEIR_BPF_H */
