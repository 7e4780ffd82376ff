// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * probe.bpf.c - programs on one hook, of which one at a time is attached: what each adds to `empty` is
 * what it costs to send a record that way.
 *
 * The record is that of a system call's entry: its number and six arguments.
 */
#include "bpf/weir.bpf.h"

#include <bpf/bpf_tracing.h>
#include <stdbool.h>

#define STRING_CLASS_SMALL 32
#define STRING_CLASS_LARGE 64
#define STRING_MAX	   4096
#define FLOOD_TIMES_MAX	   16

struct enter {
	__u64 nr, args[6];
};

struct enter_record {
	struct weir_record rec;
	struct enter enter;
};

/*
 * Where a probe makes a record with a string: how long it is, is known at run time only. User space
 * has put one in, so that reading it is no part of the measurement.
 */
struct scratch {
	__u64 len;
	struct enter enter;
	char string[STRING_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratch SEC(".maps");

/* A ring of the kernel's with nothing around it. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} bare SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} perf_rings SEC(".maps");

__u64 last_stamp; /* so that the stamp is not left out */

static __always_inline void fill(struct enter *enter, long nr)
{
	enter->nr = (__u64)nr;
	for (int i = 0; i < 6; i++)
		enter->args[i] = (__u64)i;
}

static __always_inline struct scratch *scratch_here(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&scratch, &zero);
}

/* Only this thread's calls do anything: those of the rest of the machine cost what `empty` does. */
__u32 load_tid;

static __always_inline bool is_load(void)
{
	return (__u32)bpf_get_current_pid_tgid() == load_tid;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(empty, struct pt_regs *regs, long nr)
{
	return is_load();
}

SEC("tp_btf/sys_enter")
int BPF_PROG(stamp, struct pt_regs *regs, long nr)
{
	if (is_load())
		last_stamp = bpf_ktime_get_ns();
	return 0;
}

static __always_inline int send_bare(long nr, __u64 flags)
{
	struct enter_record *record = bpf_ringbuf_reserve(&bare, sizeof(*record), 0);

	if (!record)
		return 0;
	record->rec = (struct weir_record){.stamp = bpf_ktime_get_ns()};
	fill(&record->enter, nr);
	bpf_ringbuf_submit(record, flags);
	return 0;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(ring, struct pt_regs *regs, long nr)
{
	return is_load() ? send_bare(nr, BPF_RB_NO_WAKEUP) : 0;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(ring_wakes, struct pt_regs *regs, long nr)
{
	return is_load() ? send_bare(nr, BPF_RB_FORCE_WAKEUP) : 0;
}

/* As most programs do it: the kernel wakes a reader that has read all there was. */
SEC("tp_btf/sys_enter")
int BPF_PROG(ring_asks, struct pt_regs *regs, long nr)
{
	return is_load() ? send_bare(nr, 0) : 0;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(record, struct pt_regs *regs, long nr)
{
	struct weir_ticket t;
	struct enter_record *record;

	if (!is_load())
		return 0;
	record = weir_reserve(&t, 0, WEIR_TYPE_USER, sizeof(*record));
	if (!record)
		return 0;
	fill(&record->enter, nr);
	weir_submit(&t, record);
	return 0;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(record_dynptr, struct pt_regs *regs, long nr)
{
	struct enter enter;

	if (!is_load())
		return 0;
	fill(&enter, nr);
	weir_emit(0, WEIR_TYPE_USER, &enter, sizeof(enter));
	return 0;
}

/* The string goes into the next larger of the sizes that can be reserved. */
static __always_inline int send_class(const struct scratch *from, long nr, const __u32 size)
{
	struct weir_ticket t;
	struct enter_record *record = weir_reserve(&t, 0, WEIR_TYPE_USER, sizeof(*record) + size);

	if (!record)
		return 0;
	fill(&record->enter, nr);
	bpf_probe_read_kernel(record + 1, size, from->string);
	weir_submit(&t, record);
	return 0;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(string_class, struct pt_regs *regs, long nr)
{
	const struct scratch *from = scratch_here();

	if (!from || !is_load())
		return 0;
	return from->len <= STRING_CLASS_SMALL ? send_class(from, nr, STRING_CLASS_SMALL)
					       : send_class(from, nr, STRING_CLASS_LARGE);
}

/* Fixed part and string stand in one piece, and exactly so much is sent. */
SEC("tp_btf/sys_enter")
int BPF_PROG(string_dynptr, struct pt_regs *regs, long nr)
{
	struct scratch *from = scratch_here();

	if (!from || !is_load() || from->len > STRING_MAX)
		return 0;
	fill(&from->enter, nr);
	weir_emit(0, WEIR_TYPE_USER, &from->enter, sizeof(from->enter) + from->len);
	return 0;
}

/* The perf buffer; how often it wakes its reader is set where it is opened. */
SEC("tp_btf/sys_enter")
int BPF_PROG(perf_output, struct pt_regs *regs, long nr)
{
	struct enter_record record = {};

	if (!is_load())
		return 0;
	record.rec.stamp = bpf_ktime_get_ns();
	fill(&record.enter, nr);
	bpf_perf_event_output(ctx, &perf_rings, BPF_F_CURRENT_CPU, &record, sizeof(record));
	return 0;
}

/*
 * More than one thread's calls, of one number, so that nothing but the load is sent; and each call so
 * often: no loop of calls is as fast as several records in one.
 */
__u32 flood_tgid, flood_nr, flood_bytes, flood_times;

static __always_inline bool is_flood(long nr)
{
	return nr == flood_nr && bpf_get_current_pid_tgid() >> 32 == flood_tgid;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(flood, struct pt_regs *regs, long nr)
{
	struct scratch *from;

	if (!is_flood(nr) || !(from = scratch_here()))
		return 0;
	for (__u32 i = 0; i < FLOOD_TIMES_MAX && i < flood_times; i++) {
		__u32 bytes = flood_bytes;

		if (bytes > STRING_MAX)
			return 0;
		weir_emit(0, WEIR_TYPE_USER, &from->enter, bytes);
	}
	return 0;
}

/* The same through one ring of the kernel's for all CPUs, its loss counted here. */
__u64 flood_lost;

SEC("tp_btf/sys_enter")
int BPF_PROG(flood_bare, struct pt_regs *regs, long nr)
{
	struct scratch *from;

	if (!is_flood(nr) || !(from = scratch_here()))
		return 0;
	for (__u32 i = 0; i < FLOOD_TIMES_MAX && i < flood_times; i++) {
		__u32 bytes = flood_bytes;

		if (bytes > STRING_MAX)
			return 0;
		from->len = bpf_ktime_get_ns();
		if (bpf_ringbuf_output(&bare, from, bytes + 16, 0))
			__sync_fetch_and_add(&flood_lost, 1);
	}
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
