/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * queue.h - one ring's records that are drained and not delivered yet, in stream order.
 *
 * An index of 16 bytes a record; the bytes themselves stay in the ring. A ring's own order is nearly
 * stream order (interrupts nest between reserve and stamp), so a record is put in from the tail.
 * Where it is not (two clocks in one ring, bytes that are no stamps), that would take the square of
 * the number of records: what belongs far back waits at the end until all is sorted at once.
 * Pure: no I/O, no clock. Allocates only in queue__room(), once a poll and not once a record.
 */
#ifndef WEIR_ORDER_QUEUE_H
#define WEIR_ORDER_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct entry {
	uint64_t stamp_ns;
	uint64_t pos; /* of the record's header, counted as the ring counts */
};

struct queue {
	struct entry *e;
	size_t first, end, cap;
	bool unsorted; /* until queue__sort() */
};

static inline size_t queue__count(const struct queue *q)
{
	return q->end - q->first;
}

/* The stamp of the last one; 0 when there is none. */
static inline uint64_t queue__last_ns(const struct queue *q)
{
	return q->end != q->first ? q->e[q->end - 1].stamp_ns : 0;
}

/* Make room for `extra` more entries. -ENOMEM: nothing changed. */
int queue__room(struct queue *q, size_t extra);
void queue__free(struct queue *q);

/*
 * Which of two records with equal stamps comes first: < 0, 0, > 0. Asked only when records of one
 * ring are out of order or tie, which is rare.
 */
typedef int (*queue_tie_fn)(void *ctx, uint64_t pos_a, uint64_t pos_b);

void queue__insert(struct queue *q, struct entry e, queue_tie_fn tie, void *ctx);

/* After the last of a round's records was added: the order that all the rest here relies on. */
void queue__sort(struct queue *q, queue_tie_fn tie, void *ctx);

/* Add a record; there must be room. */
static inline void queue__push(struct queue *q, struct entry e, queue_tie_fn tie, void *ctx)
{
	if (__builtin_expect(q->end == q->first || q->e[q->end - 1].stamp_ns < e.stamp_ns, 1))
		q->e[q->end++] = e;
	else
		queue__insert(q, e, tie, ctx);
}

/* How many entries at the front are stamped <= limit_ns. */
size_t queue__until(const struct queue *q, uint64_t limit_ns);

#endif /* WEIR_ORDER_QUEUE_H */
