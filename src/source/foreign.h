/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * foreign.h - a BPF ring buffer that other people's programs write to, and where they count what they
 * lost.
 *
 * Owns descriptors and mappings. Knows nothing of what is in the records.
 */
#ifndef WEIR_SOURCE_FOREIGN_H
#define WEIR_SOURCE_FOREIGN_H

#include "source/reason.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A u64 in a value of an array or per-CPU array. */
struct foreign_counter {
	int fd; /* -1: nobody counts */
	uint32_t key;
	uint32_t offset;
	uint32_t stride; /* bytes from one CPU's value to the next */
	uint32_t values; /* 1, or as many as there are possible CPUs */
	uint8_t *bytes;	 /* scratch: all values */
};

struct source_foreign {
	int fd;
	void *consumer_page;
	const void *producer_page; /* followed by the data, twice */
	const uint8_t *data;
	size_t size;
	struct foreign_counter lost;
};

/*
 * The ring buffer is duplicated and mapped; lost_fd -1: no counter. Errors: EINVAL when a map is of
 * another kind or has no such element, EPERM when its tail may not be written, bpf(2)'s, mmap(2)'s.
 */
int source_foreign__open(struct source_foreign *foreign, int map_fd, int lost_fd, uint32_t lost_key,
			 uint32_t lost_offset, const struct reason *reason);
void source_foreign__close(struct source_foreign *foreign);

/* EOPNOTSUPP: nobody counts. */
int source_foreign__lost(const struct source_foreign *foreign, uint64_t *lost);

#endif /* WEIR_SOURCE_FOREIGN_H */
