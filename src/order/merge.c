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
#define TOP_DIGITS   (64 - 2 * DIGIT_BITS)

#define SMALL_COUNT 32u /* up to here an insertion sort is cheaper than counting */
#define QUEUE_KEYS  16u /* so many of each queue, on average, when a run is too small for all */

#define PREFETCH_AHEAD 3u /* queues */

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

/* For each value of two digits: how many keys have it, later where the next of them goes. */
struct digits {
	place_t low[DIGIT_VALUES], high[DIGIT_VALUES];
};

static inline void count_digits(struct digits *digits, uint64_t key, unsigned shift)
{
	digits->low[key >> shift & DIGIT_MASK]++;
	digits->high[key >> (shift + DIGIT_BITS) & DIGIT_MASK]++;
}

static void sum_up(struct digits *digits)
{
	place_t low = 0, high = 0;

	for (size_t i = 0; i < DIGIT_VALUES; i++) {
		place_t low_here = digits->low[i], high_here = digits->high[i];

		digits->low[i] = low;
		digits->high[i] = high;
		low = (place_t)(low + low_here);
		high = (place_t)(high + high_here);
	}
}

/* Sort by two digits that are counted: the lower one first, and each pass is stable. */
static inline void sort_by_digits(uint64_t *keys, uint64_t *spare, size_t n, struct digits *digits,
				  unsigned shift)
{
	const unsigned low = shift, high = shift + DIGIT_BITS;

	sum_up(digits);
#pragma GCC unroll 4
	for (size_t i = 0; i < n; i++)
		spare[digits->low[keys[i] >> low & DIGIT_MASK]++] = keys[i];
#pragma GCC unroll 4
	for (size_t i = 0; i < n; i++)
		keys[digits->high[spare[i] >> high & DIGIT_MASK]++] = spare[i];
}

/* Sort by all digits, from the lowest on. */
static void sort_crowded(uint64_t *keys, uint64_t *spare, size_t n)
{
	for (unsigned shift = 0; shift <= TOP_DIGITS;
	     shift += shift ? 2 * DIGIT_BITS : TOP_DIGITS % (2 * DIGIT_BITS)) {
		struct digits digits = {0};

		for (size_t i = 0; i < n; i++)
			count_digits(&digits, keys[i], shift);
		sort_by_digits(keys, spare, n, &digits, shift);
	}
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

/* `digits`: the topmost two, counted. */
static void sort(uint64_t *keys, uint64_t *spare, size_t n, struct digits *digits,
		 unsigned time_shift)
{
	if (n <= SMALL_COUNT) {
		insertion_sort(keys, n, SIZE_MAX);
		return;
	}
	sort_by_digits(keys, spare, n, digits, TOP_DIGITS);
	/* Sorted if two digits hold the whole time; else nearly, unless times crowd somewhere. */
	if (time_shift < TOP_DIGITS && !insertion_sort(keys, n, 2 * n))
		sort_crowded(keys, spare, n);
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
	struct digits digits; /* the topmost two */
	size_t count;
	bool sorted; /* as it was gathered */
	bool full;   /* there was more */
};

/*
 * With many queues, each front is in no cache: ask for those that come a little later. (Inlined, or
 * the compiler takes it for a call without effect.)
 */
static inline __attribute__((always_inline)) void prefetch_front(const struct merge_due *due,
								 size_t i)
{
	const struct entry *front;

	if (i >= due->count)
		return;
	front = due->queues[i]->e + due->queues[i]->first;
	for (size_t k = 0; k < QUEUE_KEYS; k += 4)
		__builtin_prefetch(front + k);
}

/* A key for each entry <= limit_ns off the fronts, queue by queue. */
static void gather(struct gathered *g, const struct merge_due *due, uint64_t *keys, size_t max,
		   uint64_t base_ns, uint64_t width_ns, unsigned time_shift)
{
	const uint64_t limit_ns = base_ns + width_ns, scale = 1ull << time_shift;
	uint64_t *key = keys, *full = keys + max;

	*g = (struct gathered){.sorted = true};
	for (size_t i = 0; i < due->count && !g->full; i++) {
		const struct queue *q = due->queues[i];
		const struct entry *e = q->e + q->first, *end = q->e + q->end;
		uint64_t *first = key;

		prefetch_front(due, i + PREFETCH_AHEAD);
		if (end - e > full - key)
			end = e + (full - key);
		for (; e != end && e->stamp_ns <= limit_ns; e++) {
			*key = (e->stamp_ns - base_ns) * scale | i;
			count_digits(&g->digits, *key++, TOP_DIGITS);
		}
		g->full = e != q->e + q->end && e->stamp_ns <= limit_ns;
		g->sorted &= first == key || first == keys || first[-1] < first[0];
	}
	g->count = (size_t)(key - keys);
}

/* The time that the next run is tried with. */
static uint64_t first_width(const struct merge_due *due, uint64_t base_ns, size_t max)
{
	uint64_t width_ns = due->high_ns - base_ns, numbers = due->count - 1,
		 widest_ns = UINT64_MAX;

	/* Too many for one run: cut, as if records were spread evenly, a little short of full. */
	if (due->total > max)
		width_ns = (uint64_t)((double)width_ns * (0.9 * (double)max / (double)due->total));
	/* The number of the queue has to fit below. */
	if (numbers)
		widest_ns >>= 64 - __builtin_clzll(numbers);
	return width_ns < widest_ns ? width_ns : widest_ns;
}

struct merge_run merge__next(struct merge *merge, const struct merge_due *due)
{
	struct merge_run run = {.key = merge->keys, .base_ns = least_front(due)};
	size_t max = run_max(due);
	uint64_t width_ns = first_width(due, run.base_ns, max);
	struct gathered g;

	/*
	 * Where records are not spread evenly, halve until it fits. A width of 0 leaves one stamp, and
	 * gathering goes by (source, sequence): that is its order, so the front of it may go even when
	 * not all of it fits.
	 */
	for (;; width_ns /= 2) {
		run.time_shift = (unsigned)__builtin_clzll(width_ns | 1);
		gather(&g, due, merge->keys, max, run.base_ns, width_ns, run.time_shift);
		if (!g.full || !width_ns)
			break;
	}
	run.number_mask = (1ull << run.time_shift) - 1;
	run.count = g.count;
	if (!g.sorted)
		sort(merge->keys, merge->spare, g.count, &g.digits, run.time_shift);
	return run;
}
