// SPDX-License-Identifier: BSD-2-Clause
/* delays.c - owns histograms that are not in use. Does not know whose delays they are. */
#include "state/delays.h"

#include <string.h>

static unsigned int bucket_of(uint64_t ns)
{
	unsigned int octave;

	if (ns < DELAYS_LEAST_NS)
		return 0;
	octave = 63 - (unsigned int)__builtin_clzll(ns);
	if (octave > DELAYS_LAST)
		return DELAYS_BUCKETS - 1;
	return 1 + (octave - DELAYS_FIRST) * DELAYS_SUB +
	       (unsigned int)((ns >> (octave - 3)) & (DELAYS_SUB - 1));
}

/* The highest value that a bucket holds; the last has no end. */
static uint64_t top_of(unsigned int bucket)
{
	unsigned int octave = (bucket - 1) / DELAYS_SUB + DELAYS_FIRST;

	if (!bucket)
		return DELAYS_LEAST_NS - 1;
	if (bucket == DELAYS_BUCKETS - 1)
		return UINT64_MAX;
	return ((uint64_t)(DELAYS_SUB + (bucket - 1) % DELAYS_SUB + 1) << (octave - 3)) - 1;
}

void delays__add(struct delays *delays, uint64_t ns)
{
	delays->bucket[bucket_of(ns)]++;
	delays->count++;
	delays->total_ns += ns;
	if (ns > delays->max_ns)
		delays->max_ns = ns;
}

void delays__merge(struct delays *into, const struct delays *from)
{
	for (unsigned int b = 0; b < DELAYS_BUCKETS; b++)
		into->bucket[b] += from->bucket[b];
	into->count += from->count;
	into->total_ns += from->total_ns;
	if (from->max_ns > into->max_ns)
		into->max_ns = from->max_ns;
}

uint64_t delays__quantile_ns(const struct delays *delays, unsigned int per_mille)
{
	uint64_t whole = delays->count / 1000, rest = delays->count % 1000;
	uint64_t want = whole * per_mille + (rest * per_mille + 999) / 1000, seen = 0;
	unsigned int b = 0;

	if (!delays->count)
		return 0;
	while (b < DELAYS_BUCKETS - 1 && (seen += delays->bucket[b]) < want)
		b++;
	return top_of(b) < delays->max_ns ? top_of(b) : delays->max_ns;
}

struct delays *delays__get(struct delays_pool *pool)
{
	struct delays *delays = pool->unused;

	if (!delays)
		return budget__alloc(pool->budget, sizeof(*delays));
	pool->unused = delays->next;
	memset(delays, 0, sizeof(*delays));
	return delays;
}

void delays__put(struct delays_pool *pool, struct delays *delays)
{
	if (!delays)
		return;
	delays->next = pool->unused;
	pool->unused = delays;
}

void delays__free_pool(struct delays_pool *pool)
{
	struct delays *delays;

	while ((delays = pool->unused)) {
		pool->unused = delays->next;
		budget__free(pool->budget, delays);
	}
}
