/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rings.c - the rings of a stream, whatever their kind: the list that each poll goes through, and
 * everything that is sized by it.
 *
 * A ring that is listed is polled; its index and its room for gaps are there by then, so that reading
 * it needs no memory that could be refused.
 */
#include "stream/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int stream__grow(void *array_ptr, size_t count, size_t size)
{
	void **array = array_ptr;
	void *grown = realloc(*array, count * size);

	if (!grown)
		return -ENOMEM;
	*array = grown;
	return 0;
}

/* Room for sources up to and with `source`, and for one more ring. */
int stream__room_for(struct weir_stream *s, uint32_t source)
{
	uint32_t slots = source + 1 > s->nr_sources ? source + 1 : s->nr_sources;

	if (source >= SOURCES_MAX)
		return -E2BIG;
	if (stream__grow(&s->by_source, slots, sizeof(*s->by_source)) ||
	    stream__grow(&s->rings, s->nr_rings + 1, sizeof(*s->rings)) ||
	    stream__grow(&s->fronts, s->nr_rings + 1, sizeof(*s->fronts)) ||
	    stream__grow(&s->lanes, s->nr_rings + 1, sizeof(*s->lanes)) ||
	    stream__room_for_notices(s, s->nr_rings + 1))
		return -ENOMEM;
	while (s->nr_sources < slots)
		s->by_source[s->nr_sources++] = NULL;
	return 0;
}

/* What is true of a stream by the rings that are in it. */
static void count_kind(struct weir_stream *s, const struct ring *ring)
{
	s->all_numbered &= ring->kind == &ring_kind__numbered;
	s->estimated |= ring->proof == PROOF_GRACE || ring->proof == PROOF_GUARD;
	s->nr_on_demand += ring__is_on_demand(ring);
	s->nr_rcu += ring->proof == PROOF_RCU;
	/*
	 * perf wakes at a mark in its ring, other people's programs when they like: what stands there
	 * without a wake-up would wait for ever (F7).
	 */
	s->nr_quiet += ring->kind != &ring_kind__numbered && !ring__is_on_demand(ring);
}

/* Put a ring into the poll list, which goes by source: that is the order of ties. */
void stream__list_ring(struct weir_stream *s, struct ring *ring)
{
	size_t i = s->nr_rings++;

	for (; i && s->rings[i - 1]->source > ring->source; i--)
		s->rings[i] = s->rings[i - 1];
	s->rings[i] = ring;
	s->by_source[ring->source] = ring;
	count_kind(s, ring);
}

void ring__free(struct ring *ring)
{
	if (!ring)
		return;
	while (ring->held)
		ring__drop_oldest_held(ring);
	queue__free(&ring->queue);
	seqs__free(&ring->seqs);
	free(ring);
}

struct ring *stream__new_ring(struct weir_stream *s, const struct ring_kind *kind, uint32_t source,
			      const char *name, int cpu)
{
	struct ring *ring = calloc(1, sizeof(*ring));

	if (!ring)
		return NULL;
	ring->source = source;
	ring->cpu = cpu;
	ring->kind = kind;
	ring->held_last = &ring->held;
	ring->held_bytes = &s->held_bytes;
	ring->online = true;
	/* Nothing of it is known to be complete before the watermark that was announced without it. */
	ring->reached_ns = s->watermark_ns;
	snprintf(ring->name, sizeof(ring->name), "%s", name);
	return ring;
}

/* -ENOMEM: nothing is bound. The index is there from now on: to read the ring needs no memory. */
int ring__bind(struct ring *ring, const void *data, size_t size, const uint64_t *producer,
	       uint64_t *consumer)
{
	int err = queue__room(&ring->queue, size / ring->kind->min_record);

	if (err)
		return err;
	ring->rb.data = data;
	ring->rb.mask = size - 1;
	ring->rb.pos = ring->tail = __atomic_load_n(consumer, __ATOMIC_RELAXED);
	ring->latest.pos = ring->rb.pos;
	ring->size = size;
	ring->producer = producer;
	ring->consumer = consumer;
	return 0;
}

int ring__tie(void *ctx, uint64_t pos_a, uint64_t pos_b)
{
	const struct ring *ring = ctx;
	uint64_t a = ring->kind->seq(ring, pos_a), b = ring->kind->seq(ring, pos_b);

	return (a > b) - (a < b);
}

/* Take back what a failed add has made: everything from this source on. */
void stream__forget_from(struct weir_stream *s, uint32_t source)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->nr_rings; i++) {
		if (s->rings[i]->source < source)
			s->rings[kept++] = s->rings[i];
		else
			ring__free(s->rings[i]);
	}
	s->nr_rings = kept;
	s->nr_sources = source;
	s->nr_quiet = s->nr_on_demand = s->nr_rcu = 0;
	s->all_numbered = true;
	s->estimated = false;
	for (size_t i = 0; i < kept; i++)
		count_kind(s, s->rings[i]);
}
