// SPDX-License-Identifier: BSD-2-Clause
/*
 * programs.c - the BPF programs, as a table: a new one is one line.
 */
#include "probes/loaded.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <unistd.h>

#define T(type) (1u << WEIR_T_##type)

const struct program programs__table[PROGRAMS] = {
	{"learn_self", NULL, 0, PHASE_NONE, false},
	{"seed_tasks", NULL, 0, PHASE_NONE, false},
	{"on_fork", "sched_process_fork", 0, PHASE_LIFE, false},
	{"on_exec", "sched_process_exec", 0, PHASE_LIFE, false},
	{"on_exit", "sched_process_exit", 0, PHASE_LIFE, false},
	{"on_rename", "task_rename", 0, PHASE_LIFE, false},
	{"on_cgroup_mkdir", "cgroup_mkdir", 0, PHASE_LIFE, true},
	{"on_cgroup_attach", "cgroup_attach_task", 0, PHASE_LIFE, true},
	/* What remembers a call (sys_enter) comes after what reads and forgets it. */
	{"keep_exec", "sched_process_exec", T(SYS_ENTER), PHASE_EVENTS, false},
	{"drop_exit", "sched_process_exit", T(SYS_ENTER), PHASE_EVENTS, false},
	{"on_sys_exit", "sys_exit", T(SYS_EXIT), PHASE_EVENTS, false, WAY_DIRECT},
	{"perf_exit", "sys_exit", T(SYS_EXIT), PHASE_EVENTS, false, WAY_PERF},
	{"on_sys_enter", "sys_enter", T(SYS_ENTER), PHASE_EVENTS, false, WAY_DIRECT},
	{"perf_enter", "sys_enter", T(SYS_ENTER), PHASE_EVENTS, false, WAY_PERF},
	{"on_switch", "sched_switch", T(SWITCH), PHASE_EVENTS, false},
	{"on_wakeup", "sched_wakeup", T(WAKEUP), PHASE_EVENTS, false},
	{"on_wakeup_new", "sched_wakeup_new", T(WAKEUP), PHASE_EVENTS, false},
	{"on_migrate", "sched_migrate_task", T(MIGRATE), PHASE_EVENTS, false},
	{"on_signal_generate", "signal_generate", T(SIGNAL_GENERATE), PHASE_EVENTS, false},
	{"on_signal_deliver", "signal_deliver", T(SIGNAL_DELIVER), PHASE_EVENTS, false},
};

/* Arguments of the tracepoint whose type this is: typedef of a pointer to a function. */
static unsigned int count_args(const struct btf *btf, const struct btf_type *type)
{
	type = btf__type_by_id(btf, type->type);
	if (!type || !btf_is_ptr(type))
		return 0;
	type = btf__type_by_id(btf, type->type);
	if (!type || !btf_is_func_proto(type) || !btf_vlen(type))
		return 0;
	return btf_vlen(type) - 1; /* the first is the probe's own */
}

static void note(struct tracepoints *tracepoints, const char *name, unsigned int args)
{
	for (int i = 0; i < PROGRAMS; i++) {
		const char *tracepoint = programs__table[i].tracepoint;

		if (tracepoint && !strcmp(tracepoint, name))
			tracepoints->there[i] = true;
	}
	if (!strcmp(name, "sched_process_exit"))
		tracepoints->exit_tells_last = args >= 2;
	if (!strcmp(name, "sched_switch"))
		tracepoints->switch_has_state = args >= 4;
}

int programs__look(struct tracepoints *tracepoints)
{
	static const char prefix[] = "btf_trace_";
	struct btf *btf = btf__load_vmlinux_btf();

	memset(tracepoints, 0, sizeof(*tracepoints));
	if (!btf)
		return -errno;
	for (__u32 id = 1; id < btf__type_cnt(btf); id++) {
		const struct btf_type *type = btf__type_by_id(btf, id);
		const char *name;

		if (!btf_is_typedef(type))
			continue;
		name = btf__name_by_offset(btf, type->name_off);
		if (!strncmp(name, prefix, sizeof(prefix) - 1))
			note(tracepoints, name + sizeof(prefix) - 1, count_args(btf, type));
	}
	btf__free(btf);
	return 0;
}

/*
 * Can programs at the tracepoints of system calls be preempted? Then the kernel skips them for all
 * threads that call meanwhile on the same CPU: up to half of all calls, where more threads run than
 * CPUs. Kernels that do so let programs sleep there, which can't be where preemption is off, so one
 * that may sleep is offered. (7.1 takes it and keeps preemption off for others: no harm done.)
 */
bool probes__calls_preempt(void)
{
	const struct bpf_insn nothing[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K}, /* r0 = 0 */
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_TRACE_RAW_TP,
		    .prog_flags = BPF_F_SLEEPABLE);
	struct btf *btf = btf__load_vmlinux_btf();
	int id, fd;

	if (!btf)
		return false;
	id = btf__find_by_name_kind(btf, "btf_trace_sys_enter", BTF_KIND_TYPEDEF);
	btf__free(btf);
	if (id < 0)
		return false;
	opts.attach_btf_id = (__u32)id;
	fd = bpf_prog_load(BPF_PROG_TYPE_TRACING, "may_sleep", "GPL", nothing,
			   sizeof(nothing) / sizeof(nothing[0]), &opts);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Perf finds its tracepoints by numbers, which stand in tracefs. */
bool probes__calls_by_perf(void)
{
	return !access("/sys/kernel/tracing/events/raw_syscalls/sys_enter/id", R_OK) ||
	       !access("/sys/kernel/debug/tracing/events/raw_syscalls/sys_enter/id", R_OK);
}

enum way programs__calls_way(void)
{
	return probes__calls_preempt() && probes__calls_by_perf() ? WAY_PERF : WAY_DIRECT;
}
