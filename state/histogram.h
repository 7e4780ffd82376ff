/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * histogram.h - how long things took: counts in 1/16 octave steps, for quantiles at most 6.25 % too
 * high, over all of 64 bits and in memory that does not grow.
 */
#ifndef WEIR_STATE_HISTOGRAM_H
#define WEIR_STATE_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_SUB	  16u /* steps an octave */
#define HISTOGRAM_BUCKETS (61 * HISTOGRAM_SUB)

struct histogram {
	uint64_t bucket[HISTOGRAM_BUCKETS];
	uint64_t count, total_ns, max_ns;
};

void histogram__add(struct histogram *histogram, uint64_t ns);

/* What `per_mille` of all did not exceed; 0 when there were none. */
uint64_t histogram__quantile_ns(const struct histogram *histogram, unsigned int per_mille);

#endif /* WEIR_STATE_HISTOGRAM_H */
