/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * merge.h - the fronts of many queues -> sorted runs.
 *
 * A run is a range of time, cut so that its keys fit the cache, and sorted by digits: its cost
 * depends on how many records there are and hardly on how many rings, where a merge by comparisons
 * pays for each ring (docs/performance.md has the measurements).
 *
 * What is sorted is 8 bytes a record: its time in the high bits, the number of its queue in the low
 * ones. That is enough, since each queue is in order: the k-th key of a queue in the run stands for
 * its k-th entry. Queues are numbered in the order of their sources, so equal stamps come out as
 * (source, sequence) (G7). Pure: no I/O, no clock; allocates only in merge__init().
 */
#ifndef WEIR_ORDER_MERGE_H
#define WEIR_ORDER_MERGE_H

#include "order/queue.h"

/*
 * Keys a run: two arrays of the small one fit a first-level cache, of the large one a second-level
 * cache, beside the records. Many queues need the large one, or each would give a few keys only.
 */
#define MERGE_RUN_MIN 2048u
#define MERGE_RUN_MAX 16384u

struct merge {
	uint64_t *keys, *spare; /* MERGE_RUN_MAX each */
};

/* What is to be merged: all that is stamped <= limit_ns. */
struct merge_due {
	struct queue **queues; /* those that have something due, by source */
	size_t count;	       /* queues */
	size_t total;	       /* entries */
	uint64_t limit_ns;
	uint64_t high_ns; /* the greatest stamp that is due */
};

struct merge_run {
	const uint64_t *key;
	size_t count;
	size_t number_mask; /* of a key: its queue */
	unsigned time_shift;
	uint64_t base_ns;
};

static inline uint64_t merge_run__stamp_ns(const struct merge_run *run, size_t i)
{
	return run->base_ns + (run->key[i] >> run->time_shift);
}

int merge__init(struct merge *merge);
void merge__free(struct merge *merge);

/* Enter a queue, if it has something due. There must be room in due->queues. */
void merge_due__add(struct merge_due *due, struct queue *queue);

/*
 * Sort the first of what is due into one run. Queues and `due` stay as they are: the caller takes
 * from them what it has used, and asks again while there is something left.
 */
struct merge_run merge__next(struct merge *merge, const struct merge_due *due);

#endif /* WEIR_ORDER_MERGE_H */
