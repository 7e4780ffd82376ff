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

#define BLOCK	       8u /* keys whose places are looked up together */
#define PREFETCH_AHEAD 3u /* fronts */

typedef uint16_t place_t;
_Static_assert(MERGE_RUN_MAX <= UINT16_MAX, "a place is a number of 16 bits");

int merge__init(struct merge *merge)
{
	merge->keys = malloc(MERGE_RUN_MAX * sizeof(*merge->keys));
	merge->spare = malloc(MERGE_RUN_MAX * sizeof(*merge->spare));
	merge->at = malloc(MERGE_RUN_MAX * sizeof(*merge->at));
	if (merge->keys && merge->spare && merge->at)
		return 0;
	merge__free(merge);
	return -ENOMEM;
}

void merge__free(struct merge *merge)
{
	free(merge->keys);
	free(merge->spare);
	free(merge->at);
	memset(merge, 0, sizeof(*merge));
}

void merge_due__add(struct merge_due *due, struct queue *queue)
{
	size_t count = queue__until(queue, due->limit_ns);
	const struct entry *next;

	/* It may have no memory yet. */
	if (!count)
		return;
	next = queue->e + queue->first;
	if (next[count - 1].stamp_ns > due->high_ns)
		due->high_ns = next[count - 1].stamp_ns;
	due->total += count;
	due->fronts[due->count++] = (struct merge_front){
		.queue = queue,
		.next = next,
		.end = next + count,
	};
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

/*
 * All places first: a place that is looked up after a key was put somewhere has to wait until the
 * processor knows where.
 */
static inline __attribute__((always_inline)) void put_block(const uint64_t *from, uint64_t *to,
							    size_t n, place_t *places,
							    unsigned shift)
{
	place_t place[BLOCK];

#pragma GCC unroll 8
	for (size_t i = 0; i < n; i++)
		place[i] = places[from[i] >> shift & DIGIT_MASK]++;
#pragma GCC unroll 8
	for (size_t i = 0; i < n; i++)
		to[place[i]] = from[i];
}

/* Sort by one digit, of which it is known where each value goes. */
static inline void sort_by_digit(const uint64_t *from, uint64_t *to, size_t n, place_t *places,
				 unsigned shift)
{
	size_t i = 0;

	for (; i + BLOCK <= n; i += BLOCK)
		put_block(from + i, to, BLOCK, places, shift);
	for (; i < n; i++)
		put_block(from + i, to, 1, places, shift);
}

/* Sort by two digits that are counted: the lower one first, and each pass is stable. */
static inline void sort_by_digits(uint64_t *keys, uint64_t *spare, size_t n, struct digits *digits,
				  unsigned shift)
{
	sum_up(digits);
	sort_by_digit(keys, spare, n, digits->low, shift);
	sort_by_digit(spare, keys, n, digits->high, shift + DIGIT_BITS);
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
		const struct merge_front *front = &due->fronts[i];

		if (front->next != front->end && front->next->stamp_ns < least_ns)
			least_ns = front->next->stamp_ns;
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

/* How a run is cut, and how a stamp becomes the high bits of a key. */
struct cut {
	uint64_t base_ns, limit_ns, scale;
	size_t max; /* keys */
};

struct gathered {
	struct digits digits; /* the topmost two */
	size_t count;
	bool sorted; /* as it was gathered */
	bool full;   /* there was more */
};

/* A key for each entry up to the limit, off the i-th front. */
static inline void gather_front(struct gathered *g, const struct merge *merge,
				struct merge_front *front, uint64_t i, const struct cut *cut)
{
	const struct entry *e = front->next, *end = front->end;
	const uint64_t origin = front->origin, number = i << MERGE_INDEX_BITS;
	uint64_t *keys = merge->keys, *at = merge->at;
	size_t n = g->count;

	if ((size_t)(end - e) > cut->max - n)
		end = e + (cut->max - n);
	for (; e != end && e->stamp_ns <= cut->limit_ns; e++, n++) {
		uint64_t key = (e->stamp_ns - cut->base_ns) * cut->scale | number | n;

		keys[n] = key;
		at[n] = origin + e->pos;
		count_digits(&g->digits, key, TOP_DIGITS);
	}
	front->taken = n - g->count;
	g->full |= e != front->end && e->stamp_ns <= cut->limit_ns;
	g->sorted &= !front->taken || !g->count || keys[g->count - 1] < keys[g->count];
	g->count = n;
}

/*
 * With many queues, each front is in no cache: ask for one whose turn comes a little later. (Inlined, or
 * the compiler takes it for a call without effect.)
 */
static inline __attribute__((always_inline)) void prefetch_front(const struct merge_due *due,
								 size_t i)
{
	if (i >= due->count)
		return;
	for (size_t k = 0; k < QUEUE_KEYS; k += 4)
		__builtin_prefetch(due->fronts[i].next + k);
}

/* A key for each entry up to the limit, front by front. */
static void gather(struct gathered *g, const struct merge *merge, const struct merge_due *due,
		   const struct cut cut)
{
	*g = (struct gathered){.sorted = true};
	for (size_t i = 0; i < due->count; i++) {
		prefetch_front(due, i + PREFETCH_AHEAD);
		gather_front(g, merge, &due->fronts[i], i, &cut);
	}
}

/* The time that the next run is tried with. */
static uint64_t first_width(const struct merge_due *due, uint64_t base_ns, size_t max)
{
	uint64_t width_ns = due->high_ns - base_ns, numbers = due->count - 1,
		 widest_ns = UINT64_MAX;

	/* Too many for one run: cut, as if records were spread evenly, a little short of full. */
	if (due->total > max)
		width_ns = (uint64_t)((double)width_ns * (0.9 * (double)max / (double)due->total));
	/* Index and number have to fit below. */
	widest_ns >>= MERGE_INDEX_BITS;
	if (numbers)
		widest_ns >>= 64 - __builtin_clzll(numbers);
	return width_ns < widest_ns ? width_ns : widest_ns;
}

struct merge_run merge__next(struct merge *merge, struct merge_due *due)
{
	struct merge_run run = {.key = merge->keys, .at = merge->at, .base_ns = least_front(due)};
	struct cut cut = {.base_ns = run.base_ns, .max = run_max(due)};
	uint64_t width_ns = first_width(due, run.base_ns, cut.max);
	struct gathered g;

	/*
	 * Where records are not spread evenly, halve until it fits. A width of 0 leaves one stamp, and
	 * gathering goes by (source, sequence): that is its order, so the front of it may go even when
	 * not all of it fits.
	 */
	for (;; width_ns /= 2) {
		run.time_shift = (unsigned)__builtin_clzll(width_ns | 1);
		cut.limit_ns = run.base_ns + width_ns;
		cut.scale = 1ull << run.time_shift;
		gather(&g, merge, due, cut);
		if (!g.full || !width_ns)
			break;
	}
	run.number_mask = (cut.scale >> MERGE_INDEX_BITS) - 1;
	run.count = g.count;
	if (!g.sorted)
		sort(merge->keys, merge->spare, g.count, &g.digits, run.time_shift);
	return run;
}

void merge_run__cut(struct merge_run *run, const struct merge_due *due, size_t count)
{
	while (run->count > count)
		due->fronts[merge_run__number(run, --run->count)].taken--;
}
