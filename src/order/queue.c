/* SPDX-License-Identifier: BSD-2-Clause */
#include "order/queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Interrupts nest a few deep: 164 records back is the farthest that was seen. */
#define INSERT_MAX 1024u

#define ROOM_STEP 1024

int queue__room(struct queue *q, size_t extra)
{
	size_t count = queue__count(q), cap;
	struct entry *grown;

	/* Empty: back to the front, which is in the cache from the last time. */
	if (!count)
		q->first = q->end = 0;
	if (q->first && q->end + extra > q->cap) {
		memmove(q->e, q->e + q->first, count * sizeof(*q->e));
		q->first = 0;
		q->end = count;
	}
	if (q->end + extra <= q->cap)
		return 0;
	/* Not twice as much: what grows here is what has to wait, and that is bounded. */
	cap = (count + extra + ROOM_STEP - 1) / ROOM_STEP * ROOM_STEP;
	grown = realloc(q->e, cap * sizeof(*q->e));
	if (!grown)
		return -ENOMEM;
	q->e = grown;
	q->cap = cap;
	return 0;
}

void queue__free(struct queue *q)
{
	free(q->e);
	memset(q, 0, sizeof(*q));
}

static bool in_order(const struct entry *a, const struct entry *b, queue_tie_fn tie, void *ctx)
{
	if (a->stamp_ns != b->stamp_ns)
		return a->stamp_ns < b->stamp_ns;
	return tie(ctx, a->pos, b->pos) <= 0;
}

void queue__insert(struct queue *q, struct entry e, queue_tie_fn tie, void *ctx)
{
	size_t i = q->end++;

	if (!q->unsorted && i - q->first > INSERT_MAX)
		q->unsorted = !in_order(&q->e[i - INSERT_MAX], &e, tie, ctx);
	for (; !q->unsorted && i > q->first && !in_order(&q->e[i - 1], &e, tie, ctx); i--)
		q->e[i] = q->e[i - 1];
	q->e[i] = e;
}

/* Let entry i sink to its place below, where the last of each three is on top. */
static void sink(struct entry *e, size_t n, size_t i, queue_tie_fn tie, void *ctx)
{
	struct entry take = e[i];

	for (size_t child = 2 * i + 1; child < n; child = 2 * i + 1) {
		if (child + 1 < n && in_order(&e[child], &e[child + 1], tie, ctx))
			child++;
		if (in_order(&e[child], &take, tie, ctx))
			break;
		e[i] = e[child];
		i = child;
	}
	e[i] = take;
}

void queue__sort(struct queue *q, queue_tie_fn tie, void *ctx)
{
	struct entry *e;
	size_t n = queue__count(q);

	if (!q->unsorted)
		return;
	e = q->e + q->first;
	/* By a heap: in place, and n log n whatever the stamps are. */
	for (size_t i = n / 2; i-- > 0;)
		sink(e, n, i, tie, ctx);
	while (n-- > 1) {
		struct entry last = e[0];

		e[0] = e[n];
		e[n] = last;
		sink(e, n, 0, tie, ctx);
	}
	q->unsorted = false;
}

size_t queue__until(const struct queue *q, uint64_t limit_ns)
{
	size_t low = q->first, high = q->end;

	/* Nearly always all of them: look at the last one before searching. */
	if (low == high || q->e[high - 1].stamp_ns <= limit_ns)
		return high - low;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (q->e[mid].stamp_ns <= limit_ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low - q->first;
}
