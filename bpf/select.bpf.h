/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * select.bpf.h - which events the user wants: asked before anything is reserved, and counted.
 */
#ifndef WEIR_SELECT_BPF_H
#define WEIR_SELECT_BPF_H

#include "kernel_types.h"
#include "weir.bpf.h"

/* Classes of rings: what carries state, and everything else. */
#define CLASS_LIFE 0
#define CLASS_CPU  1

/* Set before load. */
const volatile bool weir_has_pids __weak = false;
const volatile bool weir_follows __weak = true; /* what they fork is selected, too */
const volatile bool weir_has_left_out __weak = false;

/* The reader's own process; no process has the first value. See learn_self. */
__u32 weir_self_tgid __weak = ~0u;

/* Entries in weir_pids, for a reader that stops when all are gone. */
__u64 weir_alive __weak = 0;

/* The selected processes and their descendants: tgids. Unused without weir_has_pids. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u8);
} weir_pids __weak SEC(".maps");

/* Processes that are left out: those whose output the trace becomes. Unused with weir_has_pids. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u8);
} weir_left_out __weak SEC(".maps");

static __always_inline bool tracked(__u32 tgid)
{
	if (weir_has_pids)
		return bpf_map_lookup_elem(&weir_pids, &tgid);
	return !weir_has_left_out || !bpf_map_lookup_elem(&weir_left_out, &tgid);
}

/* An event of two processes: the selection of either is enough. self: it is the reader's own. */
static __always_inline bool selected_pair(__u32 class, bool self, __u32 a, __u32 b)
{
	if (self) {
		weir_count_self(class);
		return false;
	}
	if (!tracked(a) && !tracked(b)) {
		weir_count_filtered(class);
		return false;
	}
	return true;
}

static __always_inline bool selected_process(__u32 class, __u32 tgid)
{
	if (tgid == weir_self_tgid) {
		weir_count_self(class);
		return false;
	}
	if (!tracked(tgid)) {
		weir_count_filtered(class);
		return false;
	}
	return true;
}

#endif /* WEIR_SELECT_BPF_H */
