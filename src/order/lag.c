/* SPDX-License-Identifier: BSD-2-Clause */
#include "order/lag.h"

static unsigned bucket_of(uint64_t ns)
{
	unsigned octave;

	if (ns < LAG_SUB)
		return (unsigned)ns;
	octave = 63 - (unsigned)__builtin_clzll(ns);
	return (octave - 3) * LAG_SUB + (unsigned)((ns >> (octave - 4)) & (LAG_SUB - 1));
}

/* The least value of a bucket. */
static uint64_t floor_of(unsigned bucket)
{
	unsigned octave = bucket / LAG_SUB + 3;

	if (bucket < LAG_SUB)
		return bucket;
	return (uint64_t)(LAG_SUB + bucket % LAG_SUB) << (octave - 4);
}

void lag__count_sorted(struct lag *lag, uint64_t now_ns, const struct entry *e, size_t n)
{
	size_t i = 0;

	while (i < n) {
		uint64_t ns = now_ns > e[i].stamp_ns ? now_ns - e[i].stamp_ns : 0;
		unsigned bucket = bucket_of(ns);
		/* Stamps rise, so lags fall: this bucket ends where the lag drops below its floor. */
		uint64_t last_ns = ns ? now_ns - floor_of(bucket) : UINT64_MAX;
		size_t begin = i;

		while (i < n && e[i].stamp_ns <= last_ns)
			i++;
		lag->bucket[bucket] += i - begin;
		if (ns > lag->max_ns)
			lag->max_ns = ns;
	}
	lag->count += n;
}

uint64_t lag__quantile_ns(const struct lag *lag, unsigned per_mille)
{
	uint64_t want = (lag->count * per_mille + 999) / 1000, seen = 0;

	if (!lag->count)
		return 0;
	for (unsigned b = 0; b < LAG_BUCKETS; b++) {
		uint64_t top;

		seen += lag->bucket[b];
		if (seen < want)
			continue;
		top = b + 1 < LAG_BUCKETS ? floor_of(b + 1) - 1 : UINT64_MAX;
		return top < lag->max_ns ? top : lag->max_ns;
	}
	return lag->max_ns;
}
