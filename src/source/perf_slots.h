/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_slots.h - the slots of a PERF_EVENT_ARRAY that somebody's BPF program writes to: which of
 * them are taken, and by whom.
 *
 * An update of a slot replaces what is in it and says nothing: the reader that was there just hears
 * no more. And a slot cannot be looked up from user space. A BPF program can look: so a small one is
 * loaded for it.
 */
#ifndef WEIR_SOURCE_PERF_SLOTS_H
#define WEIR_SOURCE_PERF_SLOTS_H

#include "source/reason.h"

#include <stdint.h>

struct perf_slots {
	int map_fd, prog_fd; /* -1: none */
	uint32_t count;
	uint32_t map_id;
};

/* The map is duplicated. Errors: EINVAL when it is no such map, bpf(2)'s. */
int perf_slots__open(struct perf_slots *slots, int map_fd, const struct reason *reason);
void perf_slots__close(struct perf_slots *slots);

/*
 * Put the event into its CPU's slot. -EBUSY: another one is there. Between the look and the update
 * somebody may still slip in: the kernel has no exchange on condition.
 */
int perf_slots__put(const struct perf_slots *slots, uint32_t cpu, int event_fd,
		    const struct reason *reason);

/* Empty the slot, if this event is in it or its CPU is offline. The event is disabled by that. */
void perf_slots__take(const struct perf_slots *slots, uint32_t cpu, int event_fd);

#endif /* WEIR_SOURCE_PERF_SLOTS_H */
