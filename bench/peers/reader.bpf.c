// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * reader.bpf.c - what programs on libbpf mostly do: stamp, fill in, and send through the one ring buffer
 * or the perf buffers.
 */
#include <linux/bpf.h>

#include "bpf/kernel_types.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bench/peers/reader.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24);
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} perf SEC(".maps");

const volatile _Bool use_perf;
const volatile __s64 only_nr = -1; /* -1: all calls */
/* Threads of that name alone; what is not of interest costs each of these tools something, too. */
const volatile char comm[16];

__u64 ring_lost;

static __always_inline __u64 first_argument(const struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_arm64)
	return regs->regs[0];
#else
	return regs->di;
#endif
}

static __always_inline void send(void *ctx, __u64 what, __u64 a, __u64 b)
{
	struct peer_event event = {
		.stamp = bpf_ktime_get_ns(),
		.pid_tgid = bpf_get_current_pid_tgid(),
		.what = what,
		.a = a,
		.b = b,
		.cpu = bpf_get_smp_processor_id(),
	};

	bpf_get_current_comm(event.comm, sizeof(event.comm));
	for (int i = 0; i < (int)sizeof(comm) && comm[i]; i++)
		if (event.comm[i] != comm[i])
			return;
	if (use_perf)
		bpf_perf_event_output(ctx, &perf, BPF_F_CURRENT_CPU, &event, sizeof(event));
	else if (bpf_ringbuf_output(&ring, &event, sizeof(event), 0))
		__sync_fetch_and_add(&ring_lost, 1);
}

SEC("tp_btf/sys_enter")
int BPF_PROG(enter, struct pt_regs *regs, long nr)
{
	if (only_nr < 0 || nr == only_nr)
		send(ctx, PEER_ENTER, (__u64)nr, first_argument(regs));
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(leave, struct pt_regs *regs, long ret)
{
	if (only_nr < 0)
		send(ctx, PEER_EXIT, 0, (__u64)ret);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(switched, _Bool preempt, struct task_struct *prev, struct task_struct *next)
{
	send(ctx, PEER_SWITCH, (__u64)prev->pid, (__u64)next->pid);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
