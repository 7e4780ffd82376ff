/* SPDX-License-Identifier: BSD-2-Clause */
#include "order/merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DIGIT_MAX_BITS 11u /* 2,048 counters of 4 bytes: half of a first-level cache */
#define SMALL_N	       48u /* up to here an insertion sort is cheaper than counting */

int merge__init(struct merge *merge)
{
	merge->a = malloc(MERGE_SLICE * sizeof(*merge->a));
	merge->b = malloc(MERGE_SLICE * sizeof(*merge->b));
	if (merge->a && merge->b)
		return 0;
	merge__free(merge);
	return -ENOMEM;
}

void merge__free(struct merge *merge)
{
	free(merge->a);
	free(merge->b);
	memset(merge, 0, sizeof(*merge));
}

struct span {
	uint64_t low_ns, high_ns; /* least and greatest stamp gathered */
	size_t n;
	bool sorted; /* as it was gathered */
	bool full;   /* there was more */
};

/* Copy what is stamped <= limit_ns off the fronts, queue by queue. */
static struct span gather(struct entry *to, struct queue *const *queues, size_t n,
			  uint64_t limit_ns)
{
	struct span span = {.low_ns = UINT64_MAX, .sorted = true};
	uint64_t last_ns = 0;
	size_t out = 0;

	for (size_t i = 0; i < n; i++) {
		const struct entry *e = queues[i]->e + queues[i]->first;
		const struct entry *end = queues[i]->e + queues[i]->end;

		if (e == end || e->stamp_ns > limit_ns)
			continue;
		if (e->stamp_ns < span.low_ns)
			span.low_ns = e->stamp_ns;
		span.sorted &= e->stamp_ns >= last_ns;
		for (; e != end && e->stamp_ns <= limit_ns; e++) {
			if (out == MERGE_SLICE) {
				span.full = true;
				goto done;
			}
			to[out++] = *e;
		}
		last_ns = to[out - 1].stamp_ns;
		if (last_ns > span.high_ns)
			span.high_ns = last_ns;
	}
done:
	span.n = out;
	return span;
}

static void insertion_sort(struct entry *e, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct entry take = e[i];
		size_t j = i;

		for (; j && e[j - 1].stamp_ns > take.stamp_ns; j--)
			e[j] = e[j - 1];
		e[j] = take;
	}
}

/* One pass of a least-significant-digit radix sort. Stable. */
static void radix_pass(const struct entry *from, struct entry *to, size_t n, uint64_t base_ns,
		       unsigned shift, unsigned bits)
{
	uint32_t place[1u << DIGIT_MAX_BITS] = {0};
	const uint64_t mask = (1ull << bits) - 1;
	uint32_t sum = 0;

	for (size_t i = 0; i < n; i++)
		place[((from[i].stamp_ns - base_ns) >> shift) & mask]++;
	for (size_t d = 0; d <= mask; d++) {
		uint32_t count = place[d];

		place[d] = sum;
		sum += count;
	}
	for (size_t i = 0; i < n; i++)
		to[place[((from[i].stamp_ns - base_ns) >> shift) & mask]++] = from[i];
}

static const struct entry *sort(struct merge *merge, const struct span *span)
{
	uint64_t range = span->high_ns - span->low_ns;
	struct entry *from = merge->a, *to = merge->b;
	unsigned bits, passes, digit;

	if (span->sorted)
		return from;
	if (span->n <= SMALL_N) {
		insertion_sort(from, span->n);
		return from;
	}
	bits = 64 - (unsigned)__builtin_clzll(range | 1);
	passes = (bits + DIGIT_MAX_BITS - 1) / DIGIT_MAX_BITS;
	digit = (bits + passes - 1) / passes;
	for (unsigned pass = 0; pass < passes; pass++) {
		struct entry *swap = from;

		radix_pass(from, to, span->n, span->low_ns, pass * digit, digit);
		from = to;
		to = swap;
	}
	return from;
}

/* Least front and, of all that is <= limit_ns, greatest stamp. */
static void bounds(struct queue *const *queues, size_t n, uint64_t limit_ns, uint64_t *low_ns,
		   uint64_t *high_ns)
{
	*low_ns = UINT64_MAX;
	*high_ns = 0;
	for (size_t i = 0; i < n; i++) {
		const struct queue *q = queues[i];
		size_t count = queue__until(q, limit_ns);

		if (!count)
			continue;
		if (q->e[q->first].stamp_ns < *low_ns)
			*low_ns = q->e[q->first].stamp_ns;
		if (q->e[q->first + count - 1].stamp_ns > *high_ns)
			*high_ns = q->e[q->first + count - 1].stamp_ns;
	}
}

size_t merge__slice(struct merge *merge, struct queue *const *queues, size_t n, uint64_t limit_ns,
		    size_t total, const struct entry **sorted)
{
	uint64_t low_ns = 0, high_ns = 0, width;
	struct span span;

	if (total <= MERGE_SLICE) {
		span = gather(merge->a, queues, n, limit_ns);
		*sorted = sort(merge, &span);
		return span.n;
	}
	/*
	 * Too many for one slice: cut by time, as if records were spread evenly, a little short of
	 * full. Where they are not, halve until it fits.
	 */
	bounds(queues, n, limit_ns, &low_ns, &high_ns);
	width = (uint64_t)((double)(high_ns - low_ns) * (0.9 * MERGE_SLICE / (double)total));
	for (;; width /= 2) {
		span = gather(merge->a, queues, n, low_ns + width);
		/*
		 * A width of 0 leaves one stamp, and gathering goes by (source, sequence): that is
		 * its order, so the front of it may go even when not all of it fits.
		 */
		if (!span.full || !width)
			break;
	}
	*sorted = sort(merge, &span);
	return span.n;
}
