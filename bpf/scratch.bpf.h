/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * scratch.bpf.h - memory in which a program makes a record whose length it does not know yet.
 *
 * One on each CPU for each program: programs may interrupt each other, but the kernel never runs a
 * program that is already running on that CPU, not even where it can be preempted.
 */
#ifndef WEIR_SCRATCH_BPF_H
#define WEIR_SCRATCH_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define SCRATCH(map, type_)                              \
	struct {                                         \
		__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); \
		__uint(max_entries, 1);                  \
		__type(key, __u32);                      \
		__type(value, type_);                    \
	} map SEC(".maps")

#endif /* WEIR_SCRATCH_BPF_H */
