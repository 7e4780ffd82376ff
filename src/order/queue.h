/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * queue.h - one ring's records that are drained and not delivered yet, in stream order.
 *
 * An index of 16 bytes a record; the bytes themselves stay in the ring. A ring's own order is nearly
 * stream order (interrupts nest between reserve and stamp), so a record is put in from the tail.
 * Pure: no I/O, no clock. Allocates only in queue__room(), once a poll and not once a record.
 */
#ifndef WEIR_ORDER_QUEUE_H
#define WEIR_ORDER_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct entry {
	uint64_t stamp_ns;
	uint64_t ref; /* source << 44 | low 44 bits of (position / 8) */
};

#define ENTRY_POS_BITS 44
#define ENTRY_SOURCES  (1u << (64 - ENTRY_POS_BITS))

static inline uint64_t entry__ref(uint32_t source, uint64_t pos)
{
	return (uint64_t)source << ENTRY_POS_BITS | ((pos >> 3) & ((1ull << ENTRY_POS_BITS) - 1));
}

static inline uint32_t entry__source(uint64_t ref)
{
	return (uint32_t)(ref >> ENTRY_POS_BITS);
}

/*
 * The whole position, given one that is at or before it and less than 2^47 bytes away. Rings and
 * what is held of them are far smaller.
 */
static inline uint64_t entry__pos(uint64_t ref, uint64_t base)
{
	return base + (((ref << 3) - base) & ((1ull << (ENTRY_POS_BITS + 3)) - 1));
}

struct queue {
	struct entry *e;
	size_t first, end, cap;
};

static inline size_t queue__count(const struct queue *q)
{
	return q->end - q->first;
}

/* Make room for `extra` more entries. -ENOMEM: nothing changed. */
int queue__room(struct queue *q, size_t extra);
void queue__free(struct queue *q);

/*
 * Which of two records with equal stamps comes first: < 0, 0, > 0. Asked only when records of one
 * ring are out of order or tie, which is rare.
 */
typedef int (*queue_tie_fn)(void *ctx, uint64_t ref_a, uint64_t ref_b);

void queue__insert(struct queue *q, struct entry e, queue_tie_fn tie, void *ctx);

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
