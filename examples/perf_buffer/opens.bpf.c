// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * opens.bpf.c - a program as there are many: it stamps, and sends its events through a perf event array.
 * It stays as it is when its reader moves to weir.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "opens.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} events SEC(".maps");

SEC("tracepoint/syscalls/sys_enter_openat")
int on_open(void *ctx)
{
	struct open open = {
		.ns = bpf_ktime_get_ns(),
		.pid = bpf_get_current_pid_tgid() >> 32,
		.cpu = bpf_get_smp_processor_id(),
	};

	bpf_get_current_comm(open.comm, sizeof(open.comm));
	bpf_perf_event_output(ctx, &events, BPF_F_CURRENT_CPU, &open, sizeof(open));
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
