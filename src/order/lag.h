/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lag.h - how long things took, records from stamp to callback above all: a histogram with 1/16
 * octave steps.
 */
#ifndef WEIR_ORDER_LAG_H
#define WEIR_ORDER_LAG_H

#include "order/merge.h"

#include <stdint.h>

#define LAG_SUB	    16u /* steps an octave: at most 6.25 % too high */
#define LAG_BUCKETS (64 * LAG_SUB)

struct lag {
	uint64_t bucket[LAG_BUCKETS];
	uint64_t count, max_ns;
};

/*
 * Count a run that is delivered at now_ns, from its `from`-th record on. It is sorted, so this pays for
 * buckets, not for records.
 */
void lag__count(struct lag *lag, uint64_t now_ns, const struct merge_run *run, size_t from);

/* Count one that took ns: how late a record was, how long a fence took. */
void lag__count_one(struct lag *lag, uint64_t ns);

/* The lag that `per_mille` of all did not exceed; 0 when there were none. */
uint64_t lag__quantile_ns(const struct lag *lag, unsigned per_mille);

#endif /* WEIR_ORDER_LAG_H */
