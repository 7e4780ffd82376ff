// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * probes.bpf.c - weir's own probes, one object: they share rings, counters and the selection.
 *
 * Each part is a header that defines programs, to be included here and nowhere else. Parts compiled
 * apart could not be linked by bpftool before version 8: it fails on a kfunc that two of them call.
 */
#include "life.bpf.h"
#include "sched.bpf.h"
#include "seed.bpf.h"
#include "signal.bpf.h"
#include "syscalls.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
