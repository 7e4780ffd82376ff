// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * others.bpf.c - a program as other people write them: it takes a stamp, fills in what it knows, and
 * sends it into a perf event array or a ring buffer. It has never heard of weir.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "others.h"

/* Set before load. */
const volatile __s64 others_nr = -1;

/* The process whose calls are sent; no process has 0. */
__u32 others_tgid = 0;
__u32 others_into_ring = 0;

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} others_events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, OTHERS_RING_BYTES);
} others_ring SEC(".maps");

/* What the ring had no room for, behind something that is nobody's business. */
struct lost {
	__u32 other;
	__u32 pad;
	__u64 count;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct lost);
} others_lost SEC(".maps");

static __always_inline void count_lost(void)
{
	__u32 key = 1;
	struct lost *lost = bpf_map_lookup_elem(&others_lost, &key);

	if (lost)
		__sync_fetch_and_add(&lost->count, 1);
}

SEC("raw_tp/sys_enter")
int others_enter(struct bpf_raw_tracepoint_args *ctx)
{
	struct others_event event = {.magic = OTHERS_MAGIC};

	if ((__s64)ctx->args[1] != others_nr || bpf_get_current_pid_tgid() >> 32 != others_tgid)
		return 0;
	event.cpu = bpf_get_smp_processor_id();
	event.stamp = bpf_ktime_get_ns();
	if (!others_into_ring)
		bpf_perf_event_output(ctx, &others_events, BPF_F_CURRENT_CPU, &event,
				      sizeof(event));
	else if (bpf_ringbuf_output(&others_ring, &event, sizeof(event), BPF_RB_NO_WAKEUP))
		count_lost();
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
