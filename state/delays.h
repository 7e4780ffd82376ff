/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * delays.h - how long a task waited for a CPU, again and again: a histogram that is small enough for
 * each thread of a machine to have one.
 *
 * From 64 ns to 4.5 minutes in 1/8 octave steps, so a quantile is at most 12.5 % too high; what is
 * beyond stands in the first and the last bucket. Count, sum and maximum are exact.
 */
#ifndef WEIR_STATE_DELAYS_H
#define WEIR_STATE_DELAYS_H

#include <stdint.h>

#include "state/budget.h"

#define DELAYS_SUB	8u
#define DELAYS_FIRST	6u		     /* octaves */
#define DELAYS_LEAST_NS (1u << DELAYS_FIRST) /* below it, values are not told apart */
#define DELAYS_LAST	37u
#define DELAYS_BUCKETS	(1 + (DELAYS_LAST - DELAYS_FIRST + 1) * DELAYS_SUB)

struct delays {
	struct delays *next; /* in the pool */
	uint64_t count, total_ns, max_ns;
	uint32_t bucket[DELAYS_BUCKETS]; /* of one interval: 4 billion waits do not fit into it */
};

void delays__add(struct delays *delays, uint64_t ns);
void delays__merge(struct delays *into, const struct delays *from);

/* What `per_mille` of all did not exceed; 0 when there were none. */
uint64_t delays__quantile_ns(const struct delays *delays, unsigned int per_mille);

/* Those that nobody uses, so that an interval needs no memory that the one before did not. */
struct delays_pool {
	struct budget *budget;
	struct delays *unused;
};

struct delays *delays__get(struct delays_pool *pool);		   /* empty; NULL: no memory */
void delays__put(struct delays_pool *pool, struct delays *delays); /* NULL is allowed */
void delays__free_pool(struct delays_pool *pool);

#endif /* WEIR_STATE_DELAYS_H */
