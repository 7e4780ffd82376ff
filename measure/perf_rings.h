/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_rings.h - perf buffers for bpf_perf_event_output(), one a CPU, emptied by forgetting what they
 * hold: the other road that records can take.
 */
#ifndef WEIR_MEASURE_PERF_RINGS_H
#define WEIR_MEASURE_PERF_RINGS_H

#include <stdbool.h>
#include <stddef.h>

struct perf_event_mmap_page;

struct perf_ring {
	int fd;
	struct perf_event_mmap_page *page;
};

struct perf_rings {
	struct perf_ring *ring; /* by CPU; those that are not online have no page */
	int cpus;
	size_t bytes; /* of each mapping */
	int epoll_fd;
};

/*
 * Open them, and put them into the map. wake_each: a wake-up for each record, else for half a
 * buffer. Exits with a message on failure.
 */
void perf_rings__open(struct perf_rings *rings, int map_fd, bool wake_each);
/* Go past all that is in there; how many bytes it was. */
size_t perf_rings__forget(struct perf_rings *rings);
void perf_rings__close(struct perf_rings *rings);

#endif /* WEIR_MEASURE_PERF_RINGS_H */
