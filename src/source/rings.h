/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rings.h - the kernel objects behind weir.bpf.h: BPF ring buffers by (class, CPU) and the page of
 * counters that goes with them.
 *
 * Owns map descriptors and mappings. Knows nothing of order: it hands out addresses.
 */
#ifndef WEIR_SOURCE_RINGS_H
#define WEIR_SOURCE_RINGS_H

#include <weir/record.h>

#include <stddef.h>
#include <stdint.h>

struct source_ring {
	int fd; /* the ring buffer map; -1: none yet */
	void *consumer_page;
	const void *producer_page; /* followed by the data, twice */
	size_t size;
};

struct source_class {
	char name[16];
	size_t ring_bytes;
};

struct source_rings {
	int rings_fd, counters_fd;
	uint32_t nr_cpus, nr_classes;
	uint32_t first_source; /* of slot 0, in the stream */
	struct source_class *classes;
	struct source_ring *rings; /* by slot = class * nr_cpus + cpu */
	void *counters;		   /* struct weir_control, then struct weir_counters by slot */
	size_t counters_bytes;
};

/*
 * Check and map what user space was given: the two maps, their shapes. Duplicates the descriptors.
 * Errors: EINVAL when the maps are not what weir.bpf.h declares, ENOMEM, bpf(2)'s, mmap(2)'s.
 */
int source_rings__open(struct source_rings *group, int rings_fd, int counters_fd, uint32_t nr_cpus,
		       uint32_t nr_classes);
void source_rings__close(struct source_rings *group);

static inline uint32_t source_rings__slots(const struct source_rings *group)
{
	return group->nr_cpus * group->nr_classes;
}

static inline struct weir_control *source_rings__control(const struct source_rings *group)
{
	return (struct weir_control *)group->counters;
}

static inline const struct weir_counters *source_rings__counters(const struct source_rings *group,
								 uint32_t slot)
{
	return (const struct weir_counters *)group->counters + 1 + slot;
}

/* Make and map the ring of a slot; the producers don't know it yet. */
int source_rings__make(struct source_rings *group, uint32_t slot);

/*
 * Hand made rings to the producers, in one call: each element's update waits for a grace period, a
 * batch waits once.
 */
int source_rings__publish(struct source_rings *group, const uint32_t *slots, uint32_t n);

/*
 * Wait until every probe that runs now has ended (a grace period: an update of a map-in-map's element
 * waits for one). Blocks for milliseconds.
 */
int source_rings__fence(struct source_rings *group);

#endif /* WEIR_SOURCE_RINGS_H */
