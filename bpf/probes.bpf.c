// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * probes.bpf.c - weir's own probes, one object: they share rings, counters and the selection.
 *
 * Each part is a header that defines programs, to be included here and nowhere else. Parts that are
 * compiled apart can't be linked: libbpf's linker (1.1) fails on a kfunc that two of them call.
 */
#include "life.bpf.h"
#include "sched.bpf.h"
#include "seed.bpf.h"
#include "signal.bpf.h"
#include "syscalls.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
