// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * control.bpf.c - the same events as weir's own probe sends, by the road that everybody takes: a stamp,
 * and bpf_perf_event_output() into this CPU's buffer.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* Set before load. */
const volatile __s64 control_nr = -1;

/* The process whose calls are sent; no process has 0. */
__u32 control_tgid = 0;

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} control_events SEC(".maps");

static __always_inline int send(void *ctx)
{
	__u64 stamp;

	if (bpf_get_current_pid_tgid() >> 32 != control_tgid)
		return 0;
	stamp = bpf_ktime_get_ns();
	bpf_perf_event_output(ctx, &control_events, BPF_F_CURRENT_CPU, &stamp, sizeof(stamp));
	return 0;
}

SEC("raw_tp/sys_enter")
int control_enter(struct bpf_raw_tracepoint_args *ctx)
{
	return (__s64)ctx->args[1] == control_nr ? send(ctx) : 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
