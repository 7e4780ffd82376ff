/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * kernel_types.h - the few kernel types that the probes look into, with the few members they read.
 *
 * Offsets are found when a program is loaded (CO-RE), so neither order nor size means anything here,
 * only names and types. A name that ends in ___something is another version of that type.
 */
#ifndef WEIR_KERNEL_TYPES_H
#define WEIR_KERNEL_TYPES_H

#include <stdbool.h>

#include <linux/types.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

typedef struct {
	__u32 val;
} kuid_t;

struct thread_info {
	unsigned long flags;
	__u32 cpu;
};

/* x86: where the mark of a 32-bit call is */
struct thread_info___x86 {
	__u32 status;
};

struct cred {
	kuid_t euid;
};

struct mm_struct {
	unsigned long arg_start;
	unsigned long arg_end;
	unsigned long env_end;
};

struct signal_struct {
	atomic_t live;
	unsigned int flags;
	int group_exit_code;
};

struct kernfs_node {
	__u64 id;
};

struct cgroup_root {
	int hierarchy_id;
};

struct cgroup {
	struct kernfs_node *kn;
	struct cgroup_root *root;
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

/* run_delay: ns that a task has waited for a CPU in all, without the wait that goes on */
struct sched_info {
	unsigned long long run_delay;
};

struct sched_entity {
	__u64 nr_migrations;
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	unsigned int flags;
	int prio;
	struct sched_entity se;
	struct sched_info sched_info;
	int exit_code;
	__u64 start_time;
	int pid;
	int tgid;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	const struct cred *cred;
	char comm[16];
	struct mm_struct *mm;
	struct signal_struct *signal;
	struct css_set *cgroups;
};

/* before 5.14 */
struct task_struct___state {
	long state;
};

enum cpuhp_state {
	CPUHP_TEARDOWN_CPU = 1, /* the value is the running kernel's */
};

struct linux_binprm {
	const char *filename; /* as the caller gave it */
	const char *interp;   /* the same, unless it is a script */
};

struct kernel_siginfo {
	int si_errno;
	int si_code;
};

struct sigaction {
	void (*sa_handler)(int);
	unsigned long sa_flags;
};

struct k_sigaction {
	struct sigaction sa;
};

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long bp, bx, r10, r9, r8, ax, cx, dx, si, di, orig_ax;
};
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs {
	__u64 regs[31];
	int syscallno;
};
#else
#error "system calls of this machine are not known yet"
#endif

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute pop

#define PF_KTHREAD	  0x00200000
#define SIGNAL_GROUP_EXIT 0x00000004

#endif /* WEIR_KERNEL_TYPES_H */
