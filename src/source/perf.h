/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf.h - perf events of all CPUs, and the rings that they are written into.
 *
 * Owns descriptors and mappings. Knows nothing of order: it hands out addresses. A ring is made in
 * two steps, so that it is in the poll list before anything is written into it:
 *
 *	make	events opened, filtered, still disabled; the ring mapped
 *	start	events enabled, or put into the map's slot: from here on it is written
 */
#ifndef WEIR_SOURCE_PERF_H
#define WEIR_SOURCE_PERF_H

#include <weir/perf.h>

#include "source/cpus.h"
#include "source/perf_attr.h"
#include "source/perf_slots.h"
#include "source/reason.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct source_perf_ring {
	int *fds;	      /* by event; the first one's is the ring; NULL: not made */
	uint64_t *ids;	      /* by event: what a record says in IDENTIFIER */
	uint64_t *ids_before; /* of the ring that was here before; its records may still wait */
	/*
	 * A forward ring is mapped readable and writable, an overwritable one, which is written
	 * backward, read-only. The two other ways exist in the kernel, and can't be read: see
	 * ring/perf_forward.h and ring/perf_backward.h.
	 */
	struct perf_event_mmap_page *page;
	const uint8_t *data;
	bool in_slot;
};

struct source_perf {
	struct source_perf_event *events;
	uint32_t nr_events;
	uint32_t nr_cpus; /* slots of `rings`: by CPU id */
	size_t ring_bytes;
	bool overwrite;
	bool counts_lost; /* the kernel has PERF_FORMAT_LOST */
	bool has_slots;
	struct perf_slots slots;
	struct source_perf_ring *rings;
};

struct source_perf_opts {
	const struct weir_perf_event *events;
	uint32_t nr_events;
	size_t ring_bytes; /* 0: SOURCE_PERF_RING_BYTES */
	bool overwrite;
	enum weir_clock_id clock;
	int map_fd; /* the PERF_EVENT_ARRAY to put the events into; -1: none */
};

#define SOURCE_PERF_RING_BYTES (2u << 20)
#define SOURCE_PERF_EVENTS_MAX 65535u

/*
 * Complete the events, and see whether there are descriptors and memory for them on all the CPUs that
 * are `online`. Makes no ring. Errors: see weir/perf.h.
 */
int source_perf__open(struct source_perf *group, const struct source_perf_opts *opts,
		      const struct cpus *online, const struct reason *reason);
void source_perf__close(struct source_perf *group);

/* ENODEV, without a sentence: that CPU is offline now. On error nothing is made. */
int source_perf__make(struct source_perf *group, uint32_t cpu, const struct reason *reason);
int source_perf__start(struct source_perf *group, uint32_t cpu, const struct reason *reason);

/* No more is written from here on, but for what is being written now; the ring can still be read. */
void source_perf__stop(struct source_perf *group, uint32_t cpu);

/*
 * Stop, and let the ring go: read it before. What an offline CPU leaves behind is dead for good - to
 * enable it again succeeds, and nothing comes - so it is unmade when the CPU is back, and made anew.
 */
void source_perf__unmake(struct source_perf *group, uint32_t cpu);

/* While it is paused, all that would be written counts as lost. */
int source_perf__pause(struct source_perf *group, uint32_t cpu, bool paused);

/*
 * Records that the ring of this CPU had no room for (or that came while it was paused), since it was
 * made: also those that no LOST record tells of yet, since one is only written with the next record.
 * EOPNOTSUPP: the kernel does not say (before 6.0).
 */
int source_perf__lost(const struct source_perf *group, uint32_t cpu, uint64_t *lost);

/* For how long its events were enabled: this stands still once they are dead. */
int source_perf__enabled_ns(const struct source_perf *group, uint32_t cpu, uint64_t *enabled_ns);

/* The index of the event with this id; -1: none of this ring, nor of the one before it. */
int64_t source_perf__event(const struct source_perf *group, uint32_t cpu, uint64_t id);

static inline bool source_perf__is_made(const struct source_perf *group, uint32_t cpu)
{
	return cpu < group->nr_cpus && group->rings[cpu].fds;
}

/* The descriptor that becomes readable when a quarter of the ring is new. */
static inline int source_perf__fd(const struct source_perf *group, uint32_t cpu)
{
	return group->rings[cpu].fds[0];
}

#endif /* WEIR_SOURCE_PERF_H */
