// SPDX-License-Identifier: BSD-2-Clause
/* histogram.c - owns nothing. Values below 16 have buckets of their own, above it each octave has 16. */
#include "state/histogram.h"

static unsigned int bucket_of(uint64_t ns)
{
	unsigned int octave;

	if (ns < HISTOGRAM_SUB)
		return (unsigned int)ns;
	octave = 63 - (unsigned int)__builtin_clzll(ns);
	return (octave - 3) * HISTOGRAM_SUB +
	       (unsigned int)((ns >> (octave - 4)) & (HISTOGRAM_SUB - 1));
}

/* The highest value that a bucket holds. */
static uint64_t top_of(unsigned int bucket)
{
	unsigned int octave = bucket / HISTOGRAM_SUB + 3;

	if (bucket < HISTOGRAM_SUB)
		return bucket;
	return ((uint64_t)(HISTOGRAM_SUB + bucket % HISTOGRAM_SUB) << (octave - 4)) +
	       (((uint64_t)1 << (octave - 4)) - 1);
}

void histogram__add(struct histogram *histogram, uint64_t ns)
{
	histogram->bucket[bucket_of(ns)]++;
	histogram->count++;
	histogram->total_ns += ns;
	if (ns > histogram->max_ns)
		histogram->max_ns = ns;
}

uint64_t histogram__quantile_ns(const struct histogram *histogram, unsigned int per_mille)
{
	uint64_t whole = histogram->count / 1000, rest = histogram->count % 1000;
	uint64_t want = whole * per_mille + (rest * per_mille + 999) / 1000, seen = 0;

	if (!histogram->count)
		return 0;
	for (unsigned int b = 0; b < HISTOGRAM_BUCKETS; b++) {
		seen += histogram->bucket[b];
		if (seen >= want && seen)
			return top_of(b) < histogram->max_ns ? top_of(b) : histogram->max_ns;
	}
	return histogram->max_ns;
}
