/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * merge.h - the fronts of many queues -> sorted runs.
 *
 * A run is a range of time, cut so that its keys fit the cache, and sorted by digits: its cost
 * depends on how many records there are and hardly on how many rings, where a merge by comparisons
 * pays for each ring (docs/performance.md has the measurements).
 *
 * What is sorted is 8 bytes a record, its key: its time in the high bits, the number of its queue below,
 * and in the low ones an index, under which its position is noted. Records get it queue by queue, and
 * queues are numbered in the order of their sources, so equal stamps come out as (source, sequence)
 * (G7). Pure: no I/O, no clock; allocates only in merge__init().
 */
#ifndef WEIR_ORDER_MERGE_H
#define WEIR_ORDER_MERGE_H

#include "order/queue.h"

/*
 * Keys a run: two arrays of the small one fit a first-level cache, of the large one a second-level
 * cache, beside the records. Many queues need the large one, or each would give a few keys only.
 */
#define MERGE_RUN_MIN	 2048u
#define MERGE_INDEX_BITS 14u
#define MERGE_RUN_MAX	 (1u << MERGE_INDEX_BITS)

struct merge {
	uint64_t *keys, *spare, *at; /* MERGE_RUN_MAX each */
};

/* What of a queue is to be merged. */
struct merge_front {
	struct queue *queue;
	const struct entry *next, *end;
	size_t taken;	 /* into the last run */
	uint64_t origin; /* what the caller wants added to its positions */
};

/* What is to be merged: all that is stamped <= limit_ns. */
struct merge_due {
	struct merge_front *fronts; /* of queues that have something due, by source */
	size_t count;		    /* fronts */
	size_t total;		    /* entries */
	uint64_t limit_ns;
	uint64_t high_ns; /* the greatest stamp that is due */
};

struct merge_run {
	const uint64_t *key;
	const uint64_t *at; /* by index: position, from its front's origin */
	size_t count;
	size_t number_mask; /* of a key, without its index: its front */
	unsigned time_shift;
	uint64_t base_ns;
};

static inline size_t merge_key__index(uint64_t key)
{
	return key & (MERGE_RUN_MAX - 1);
}

static inline size_t merge_key__number(uint64_t key, size_t number_mask)
{
	return key >> MERGE_INDEX_BITS & number_mask;
}

static inline uint64_t merge_run__stamp_ns(const struct merge_run *run, size_t i)
{
	return run->base_ns + (run->key[i] >> run->time_shift);
}

static inline size_t merge_run__number(const struct merge_run *run, size_t i)
{
	return merge_key__number(run->key[i], run->number_mask);
}

static inline uint64_t merge_run__at(const struct merge_run *run, size_t i)
{
	return run->at[merge_key__index(run->key[i])];
}

int merge__init(struct merge *merge);
void merge__free(struct merge *merge);

/* Enter a queue, if it has something due. There must be room in due->fronts. */
void merge_due__add(struct merge_due *due, struct queue *queue);

/* Sort the first of what is due into one run. Asked twice, it says the same: nothing is taken yet. */
struct merge_run merge__next(struct merge *merge, struct merge_due *due);

/* Leave all but the first `count` of the run where they are. */
void merge_run__cut(struct merge_run *run, const struct merge_due *due, size_t count);

/* Take what the run has of this front, off its queue too. */
static inline void merge_front__take(struct merge_front *front)
{
	front->next += front->taken;
	front->queue->first += front->taken;
	front->taken = 0;
}

#endif /* WEIR_ORDER_MERGE_H */
