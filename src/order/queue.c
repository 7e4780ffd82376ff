/* SPDX-License-Identifier: BSD-2-Clause */
#include "order/queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
	cap = count + extra;
	if (cap < q->cap * 2)
		cap = q->cap * 2;
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

void queue__insert(struct queue *q, struct entry e, queue_tie_fn tie, void *ctx)
{
	size_t i = q->end++;

	while (i > q->first) {
		const struct entry *before = &q->e[i - 1];

		if (before->stamp_ns < e.stamp_ns)
			break;
		if (before->stamp_ns == e.stamp_ns && tie(ctx, before->pos, e.pos) <= 0)
			break;
		q->e[i] = *before;
		i--;
	}
	q->e[i] = e;
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
