/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cpus.h - sets of CPU ids as the kernel names them ("0-11,16-27"): sparse, never a count, never the
 * reader's own affinity.
 */
#ifndef WEIR_SOURCE_CPUS_H
#define WEIR_SOURCE_CPUS_H

#include <stdbool.h>
#include <stdint.h>

#define CPUS_MAX 8192 /* the kernel's largest NR_CPUS */

struct cpus {
	uint64_t bits[CPUS_MAX / 64];
};

static inline bool cpus__has(const struct cpus *cpus, unsigned cpu)
{
	return cpu < CPUS_MAX && cpus->bits[cpu / 64] >> (cpu % 64) & 1;
}

/* Parse a list. -EINVAL: not a list, or an id of CPUS_MAX or more. An empty list is an empty set. */
int cpus__parse(struct cpus *cpus, const char *list);

/* The CPUs that are online now, from `sysfs` (NULL: /sys). -errno when that can't be read. */
int cpus__online(struct cpus *cpus, const char *sysfs);

/* 1 + the highest possible id: how many slots a map by CPU id needs. Negative: -errno. */
int cpus__possible_slots(const char *sysfs);

unsigned cpus__count(const struct cpus *cpus);

#endif /* WEIR_SOURCE_CPUS_H */
