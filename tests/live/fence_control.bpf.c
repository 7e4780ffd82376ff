// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * fence_control.bpf.c - a program as others write them: it stamps first, then collects what it
 * wants to tell, and then sends it. Between stamp and output a reader may look, and sees nothing.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "fence_control.h"

/* Set before load. */
const volatile __s64 control_nr = -1;

/* The process whose calls are sent; no process has 0. */
__u32 control_tgid = 0;

/* Calls that could not be sent. */
__u64 control_failed = 0;

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} control_events SEC(".maps");

static __always_inline int send(void *ctx)
{
	struct control_sample sample = {.stamp_ns = bpf_ktime_get_ns()};

	bpf_get_current_comm(sample.comm, sizeof(sample.comm));
	bpf_get_stack(ctx, sample.stack, sizeof(sample.stack), 0);
	if (bpf_perf_event_output(ctx, &control_events, BPF_F_CURRENT_CPU, &sample, sizeof(sample)))
		__sync_fetch_and_add(&control_failed, 1);
	return 0;
}

SEC("raw_tp/sys_enter")
int control_enter(struct bpf_raw_tracepoint_args *ctx)
{
	if ((__s64)ctx->args[1] != control_nr || bpf_get_current_pid_tgid() >> 32 != control_tgid)
		return 0;
	return send(ctx);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
