/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hold.c - records that have to wait while the watermark is held.
 *
 * Waiting must never cause loss as long as there is memory: when what waits fills half a ring, its
 * bytes are copied out and the ring is freed. Positions stay what they were, so that the queue needs
 * no change. When the memory bound is reached, the oldest records leave as a gap of cause `held`
 * (G5): counted, with bounds, and never by not being there.
 */
#include "stream/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define EXACT_SCAN_MAX 1024 /* so few entries are looked through at the end of each poll */

const struct held *ring__held(const struct ring *ring, uint64_t pos)
{
	const struct held *held = ring->held;

	while (held && pos - held->begin >= held->end - held->begin)
		held = held->next;
	return held;
}

/* Release what nobody needs any more, so that producers have room again. */
static void ring__release(struct ring *ring, bool exact)
{
	const struct queue *q = &ring->queue;
	size_t waiting = queue__count(q);
	uint64_t least = ring->rb.pos;

	/*
	 * The queue goes by stamp and the ring by position, so all that waits has to be looked at:
	 * only when at least as much went out since the last time, or when there is little.
	 */
	if (!exact && waiting > EXACT_SCAN_MAX &&
	    waiting > ring->delivered - ring->delivered_at_scan)
		return;
	ring->delivered_at_scan = ring->delivered;
	for (size_t i = q->first; i < q->end; i++)
		if ((int64_t)(q->e[i].pos - least) < 0)
			least = q->e[i].pos;
	/* What is held was freed before: the tail never goes back. */
	if ((int64_t)(least - ring->tail) > 0) {
		ring->tail = least;
		/*
		 * Pairs with the kernel's smp_load_acquire() of the consumer position in
		 * __bpf_ringbuf_reserve(): all our reads of these bytes come before their reuse.
		 */
		if (ring->size)
			__atomic_store_n(ring->consumer, least - ring->base, __ATOMIC_RELEASE);
	}
	while (ring->held && (int64_t)(least - ring->held->end) >= 0)
		ring__drop_oldest_held(ring);
}

void stream__release(struct weir_stream *s)
{
	for (size_t i = 0; i < s->nr_rings; i++)
		if (s->rings[i]->held ||
		    (s->rings[i]->size && s->rings[i]->tail != s->rings[i]->rb.pos))
			ring__release(s->rings[i], false);
}

/* What waiting has cost: beyond the index that a ring needs for what it can hold itself. */
static size_t memory_used(const struct weir_stream *s)
{
	size_t used = s->held_bytes + s->cap_notices * sizeof(*s->notices);

	for (size_t i = 0; i < s->nr_rings; i++)
		used += (s->rings[i]->queue.cap - ring__entries(s->rings[i])) *
			sizeof(struct entry);
	return used;
}

/* With the entries that the ring will need, once it has room again, beside those that wait. */
static size_t cost_of_holding(const struct ring *ring, uint64_t bytes)
{
	return bytes + bytes / ring->kind->min_record * sizeof(struct entry);
}

bool stream__can_hold(const struct weir_stream *s, const struct ring *ring, uint64_t bytes)
{
	return memory_used(s) + cost_of_holding(ring, bytes) <= s->memory_max;
}

void ring__drop_oldest_held(struct ring *ring)
{
	struct held *held = ring->held;

	ring->held = held->next;
	if (!ring->held)
		ring->held_last = &ring->held;
	*ring->held_bytes -= held->end - held->begin;
	free(held->bytes);
	free(held);
}

/* In two pieces where the ring ends in between: not every ring is mapped twice. */
static void copy_bytes(uint8_t *to, const struct ring *ring, uint64_t pos, uint64_t bytes)
{
	uint64_t first = ring->size - (pos & ring->rb.mask);

	if (first > bytes)
		first = bytes;
	memcpy(to, bpf_ringbuf__at(ring->rb.data, ring->rb.mask, pos), first);
	memcpy(to + first, ring->rb.data, bytes - first);
}

int stream__hold_block(struct weir_stream *s, struct ring *ring, uint8_t *bytes, uint64_t begin,
		       uint64_t len)
{
	struct held *held = calloc(1, sizeof(*held));

	if (!held)
		return -ENOMEM;
	held->bytes = bytes;
	held->begin = begin;
	held->end = begin + len;
	*ring->held_last = held;
	ring->held_last = &held->next;
	s->held_bytes += len;
	if (s->held_bytes > s->held_bytes_peak)
		s->held_bytes_peak = s->held_bytes;
	return 0;
}

static int copy_out(struct weir_stream *s, struct ring *ring)
{
	uint64_t bytes = ring->rb.pos - ring->tail;
	uint8_t *copy = malloc(bytes);

	if (!copy || stream__hold_block(s, ring, copy, ring->tail, bytes)) {
		free(copy);
		return -ENOMEM;
	}
	copy_bytes(copy, ring, ring->tail, bytes);
	ring->tail = ring->rb.pos;
	/* As in ring__release(): the copy is done before the producer may write there again. */
	__atomic_store_n(ring->consumer, ring->tail - ring->base, __ATOMIC_RELEASE);
	return 0;
}

/*
 * The bytes that leave when memory ends: the oldest quarter of what is held, so that going through
 * the queue is paid for by what leaves it; without copies, the older half of the ring.
 */
static uint64_t evict_until(const struct ring *ring)
{
	const struct held *held = ring->held;
	uint64_t quarter;

	if (!held)
		return ring->tail + (ring->rb.pos - ring->tail) / 2;
	quarter = held->begin + (ring->rb.pos - held->begin) / 4;
	while (held->next && (int64_t)(held->end - quarter) < 0)
		held = held->next;
	return held->end;
}

/* Give up the records that stand before a position. */
static void evict(struct weir_stream *s, struct ring *ring, uint64_t until)
{
	struct queue *q = &ring->queue;
	struct weir_gap gap = {.from_ns = UINT64_MAX, .cause = WEIR_LOST_HELD};
	uint64_t first_seq = UINT64_MAX;
	size_t kept = q->first;

	for (size_t i = q->first; i < q->end; i++) {
		struct entry e = q->e[i];
		uint64_t seq;

		if ((int64_t)(e.pos - until) >= 0) {
			q->e[kept++] = e;
			continue;
		}
		seq = ring->kind->seq(ring, e.pos);
		if (seq < first_seq)
			first_seq = seq;
		if (seq >= gap.seq_end)
			gap.seq_end = seq + 1;
		if (e.stamp_ns < gap.from_ns)
			gap.from_ns = e.stamp_ns;
		if (e.stamp_ns > gap.to_ns)
			gap.to_ns = e.stamp_ns;
		gap.lost++;
	}
	q->end = kept;
	ring->lost[WEIR_LOST_HELD] += gap.lost;
	/* (from, to] has to hold the first one, too. */
	if (gap.from_ns)
		gap.from_ns--;
	if (gap.lost)
		stream__add_gap(s, ring, first_seq, &gap);
	ring__release(ring, true);
}

static bool half_full(const struct ring *ring)
{
	return ring->rb.pos - ring->tail > ring->size / 2;
}

static void hold_ring(struct weir_stream *s, struct ring *ring)
{
	if (!ring->size || !half_full(ring))
		return;
	/* Where copies are held, what came behind them waits like they do. */
	if (!ring->held)
		ring__release(ring, true);
	while (half_full(ring)) {
		uint64_t bytes = ring->rb.pos - ring->tail;

		if (stream__can_hold(s, ring, bytes) && !copy_out(s, ring))
			continue;
		evict(s, ring, evict_until(ring));
	}
}

/*
 * The ring's memory goes away: what waits is copied out, or leaves as held where there is no memory for
 * it. From here on it has no ring.
 */
void stream__unbind(struct weir_stream *s, struct ring *ring)
{
	uint64_t bytes = ring->rb.pos - ring->tail;

	if (ring->size && bytes && (!stream__can_hold(s, ring, bytes) || copy_out(s, ring)))
		evict(s, ring, ring->rb.pos);
	ring->tail = ring->latest.pos = ring->rb.pos;
	ring->fifo.count = 0;
	ring->size = 0;
	ring->rb.data = NULL;
	ring->producer = NULL;
	ring->consumer = NULL;
	ring->outside.overwritable.data = NULL;
	ring->outside.dead = true;
	/* What was stopped died so: the hole that its death leaves begins there. */
	if (ring->outside.throttled && ring->outside.throttled_ns < ring->outside.last_ns)
		ring->outside.last_ns = ring->outside.throttled_ns;
	ring->outside.throttled = 0;
}

/* New memory, whose positions begin at 0; the ring's own go on. Its index is there since it was bound. */
void stream__rebind(struct ring *ring, const void *data, size_t size, const uint64_t *producer,
		    uint64_t *consumer)
{
	ring->base = (ring->rb.pos + size - 1) & ~(uint64_t)(size - 1);
	ring->rb.pos = ring->tail = ring->latest.pos = ring->base;
	ring->rb.data = data;
	ring->rb.mask = size - 1;
	ring->size = size;
	ring->producer = producer;
	ring->consumer = consumer;
	ring->outside.dead = false;
}

void stream__hold(struct weir_stream *s)
{
	for (size_t i = 0; i < s->nr_rings; i++)
		hold_ring(s, s->rings[i]);
}
