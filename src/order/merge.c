/* SPDX-License-Identifier: BSD-2-Clause */
#include "order/merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Two digits of 512 values: their counters take little of a first-level cache, and so do the 512
 * places that a pass writes to by turns. Where records are spread evenly over the run, the topmost
 * two digits of the time tell nearly all of them apart, however long the run is.
 */
#define DIGIT_BITS   9u
#define DIGIT_VALUES (1u << DIGIT_BITS)
#define DIGIT_MASK   (DIGIT_VALUES - 1)

#define SMALL_COUNT 64u /* up to here an insertion sort is cheaper than counting */
#define QUEUE_KEYS  32u /* so many of each queue, on average, when a run is too small for all */

typedef uint16_t place_t;
_Static_assert(MERGE_RUN_MAX <= UINT16_MAX, "a place is a number of 16 bits");

int merge__init(struct merge *merge)
{
	merge->keys = malloc(MERGE_RUN_MAX * sizeof(*merge->keys));
	merge->spare = malloc(MERGE_RUN_MAX * sizeof(*merge->spare));
	if (merge->keys && merge->spare)
		return 0;
	merge__free(merge);
	return -ENOMEM;
}

void merge__free(struct merge *merge)
{
	free(merge->keys);
	free(merge->spare);
	memset(merge, 0, sizeof(*merge));
}

void merge_due__add(struct merge_due *due, struct queue *queue)
{
	size_t count = queue__until(queue, due->limit_ns);

	if (!count)
		return;
	if (queue->e[queue->first + count - 1].stamp_ns > due->high_ns)
		due->high_ns = queue->e[queue->first + count - 1].stamp_ns;
	due->total += count;
	due->queues[due->count++] = queue;
}

/* Counts -> the place of the first key with each digit. */
static void sum_up(place_t *count)
{
	place_t sum = 0;

	for (size_t i = 0; i < DIGIT_VALUES; i++) {
		place_t here = count[i];

		count[i] = sum;
		sum = (place_t)(sum + here);
	}
}

/* Sort by the two digits that begin at bit `low`; the lower one first, and each pass is stable. */
static inline __attribute__((always_inline)) void sort_by_digits(uint64_t *keys, uint64_t *spare,
								 size_t n, const unsigned low)
{
	const unsigned high = low + DIGIT_BITS;
	place_t low_place[DIGIT_VALUES] = {0}, high_place[DIGIT_VALUES] = {0};

	for (size_t i = 0; i < n; i++) {
		low_place[keys[i] >> low & DIGIT_MASK]++;
		high_place[keys[i] >> high & DIGIT_MASK]++;
	}
	sum_up(low_place);
	sum_up(high_place);
	for (size_t i = 0; i < n; i++)
		spare[low_place[keys[i] >> low & DIGIT_MASK]++] = keys[i];
	for (size_t i = 0; i < n; i++)
		keys[high_place[spare[i] >> high & DIGIT_MASK]++] = spare[i];
}

/* Cheap for what is nearly sorted; gives up after max_moves. */
static bool insertion_sort(uint64_t *keys, size_t n, size_t max_moves)
{
	uint64_t last = 0;
	size_t moves = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t take = keys[i];
		size_t j = i;

		if (__builtin_expect(take >= last, 1)) {
			last = take;
			continue;
		}
		for (; j && keys[j - 1] > take; j--)
			keys[j] = keys[j - 1];
		keys[j] = take;
		moves += i - j;
		if (moves > max_moves)
			return false;
	}
	return true;
}

static void sort(uint64_t *keys, uint64_t *spare, size_t n)
{
	if (n <= SMALL_COUNT) {
		insertion_sort(keys, n, SIZE_MAX);
		return;
	}
	sort_by_digits(keys, spare, n, 64 - 2 * DIGIT_BITS);
	if (insertion_sort(keys, n, 2 * n))
		return;
	/* They crowd in a small part of the run: then all digits count, from the lowest on. */
	sort_by_digits(keys, spare, n, 0);
	for (unsigned low = 64 % (2 * DIGIT_BITS); low < 64; low += 2 * DIGIT_BITS)
		sort_by_digits(keys, spare, n, low);
}

/* The least stamp of all. */
static uint64_t least_front(const struct merge_due *due)
{
	uint64_t least_ns = UINT64_MAX;

	for (size_t i = 0; i < due->count; i++) {
		const struct queue *q = due->queues[i];

		if (queue__count(q) && q->e[q->first].stamp_ns < least_ns)
			least_ns = q->e[q->first].stamp_ns;
	}
	return least_ns;
}

static size_t run_max(const struct merge_due *due)
{
	size_t max = due->count * QUEUE_KEYS;

	if (max < MERGE_RUN_MIN)
		return MERGE_RUN_MIN;
	return max < MERGE_RUN_MAX ? max : MERGE_RUN_MAX;
}

struct gathered {
	size_t count;
	bool sorted; /* as it was gathered */
	bool full;   /* there was more */
};

/* A key for each entry <= limit_ns off the fronts, queue by queue. */
static struct gathered gather(uint64_t *keys, size_t max, const struct merge_due *due,
			      uint64_t base_ns, uint64_t width_ns)
{
	const uint64_t limit_ns = base_ns + width_ns, scale = 1ull << __builtin_clzll(width_ns | 1);
	struct gathered g = {.sorted = true};
	uint64_t *key = keys, *full = keys + max;

	for (size_t i = 0; i < due->count && !g.full; i++) {
		const struct queue *q = due->queues[i];
		const struct entry *e = q->e + q->first, *end = q->e + q->end;
		uint64_t *first = key;

		for (; e != end && e->stamp_ns <= limit_ns && key != full; e++)
			*key++ = (e->stamp_ns - base_ns) * scale | i;
		g.full = e != end && e->stamp_ns <= limit_ns;
		g.sorted &= first == key || first == keys || first[-1] < first[0];
	}
	g.count = (size_t)(key - keys);
	return g;
}

struct merge_run merge__next(struct merge *merge, const struct merge_due *due)
{
	struct merge_run run = {.key = merge->keys, .base_ns = least_front(due)};
	size_t max = run_max(due);
	uint64_t width_ns = due->high_ns - run.base_ns;
	uint64_t numbers = due->count - 1;
	struct gathered g;

	/*
	 * Too many for one run: cut by time, as if records were spread evenly, a little short of full.
	 */
	if (due->total > max)
		width_ns = (uint64_t)((double)width_ns * (0.9 * (double)max / (double)due->total));
	/* The number has to fit below. */
	if (numbers && width_ns > UINT64_MAX >> (64 - __builtin_clzll(numbers)))
		width_ns = UINT64_MAX >> (64 - __builtin_clzll(numbers));
	/*
	 * Where they are not, halve until it fits. A width of 0 leaves one stamp, and gathering goes by
	 * (source, sequence): that is its order, so the front of it may go even when not all of it fits.
	 */
	for (;; width_ns /= 2) {
		g = gather(merge->keys, max, due, run.base_ns, width_ns);
		if (!g.full || !width_ns)
			break;
	}
	if (!g.sorted)
		sort(merge->keys, merge->spare, g.count);
	run.count = g.count;
	run.time_shift = (unsigned)__builtin_clzll(width_ns | 1);
	run.number_mask = (1ull << run.time_shift) - 1;
	return run;
}
