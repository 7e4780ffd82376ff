/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * merge.h - the fronts of many queues -> one sorted slice.
 *
 * A slice is a range of time, cut so that its entries fit the cache, and sorted by a stable radix
 * sort: its cost depends on how many records there are and not on how many rings, where a merge by
 * comparisons pays for each ring (docs/performance.md has the measurements). Stable, and gathered in
 * the order of the queues: equal stamps come out as (source, sequence), every time (G7).
 * Pure: no I/O, no clock; allocates only in merge__init().
 */
#ifndef WEIR_ORDER_MERGE_H
#define WEIR_ORDER_MERGE_H

#include "order/queue.h"

/* Entries a slice; twice 16 bytes each have to fit a core's second-level cache. */
#define MERGE_SLICE 16384u

struct merge {
	struct entry *a, *b; /* MERGE_SLICE entries each */
};

int merge__init(struct merge *merge);
void merge__free(struct merge *merge);

/*
 * Sort the first entries of all queues, stamped <= limit_ns, into one run: *sorted points at it.
 * Returns how many; 0 when there are none. The queues stay as they are: the caller takes from each
 * what it has used. `total` is how many entries <= limit_ns there are (it only shapes the slice).
 */
size_t merge__slice(struct merge *merge, struct queue *const *queues, size_t n, uint64_t limit_ns,
		    size_t total, const struct entry **sorted);

#endif /* WEIR_ORDER_MERGE_H */
