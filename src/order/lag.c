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

/* The first record after `from` that is stamped later than stamp_ns; `from` itself is not. */
static size_t first_after(const struct merge_run *run, size_t from, uint64_t stamp_ns)
{
	size_t low = from, high = from + 1;

	while (high < run->count && merge_run__stamp_ns(run, high) <= stamp_ns) {
		size_t step = high - from;

		low = high;
		high += step;
	}
	high = high < run->count ? high : run->count;
	while (high - low > 1) {
		size_t mid = low + (high - low) / 2;

		if (merge_run__stamp_ns(run, mid) <= stamp_ns)
			low = mid;
		else
			high = mid;
	}
	return high;
}

void lag__count(struct lag *lag, uint64_t now_ns, const struct merge_run *run, size_t from)
{
	size_t i = from;

	while (i < run->count) {
		uint64_t stamp_ns = merge_run__stamp_ns(run, i);
		uint64_t ns = now_ns > stamp_ns ? now_ns - stamp_ns : 0;
		unsigned bucket = bucket_of(ns);
		/* Stamps rise, so lags fall: this bucket ends where the lag drops below its floor. */
		size_t end = first_after(run, i, ns ? now_ns - floor_of(bucket) : UINT64_MAX);

		lag->bucket[bucket] += end - i;
		if (ns > lag->max_ns)
			lag->max_ns = ns;
		i = end;
	}
	lag->count += run->count - from;
}

void lag__count_one(struct lag *lag, uint64_t ns)
{
	lag->bucket[bucket_of(ns)]++;
	if (ns > lag->max_ns)
		lag->max_ns = ns;
	lag->count++;
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
