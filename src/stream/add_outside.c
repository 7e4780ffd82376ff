/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * add_outside.c - rings of somebody else's become sources.
 *
 * Where they come from - the kernel, plain memory - is no matter here: an address, a size, two positions
 * and what proves that they are complete.
 */
#include "stream/internal.h"

#include <errno.h>
#include <stdlib.h>

#define SCRATCH_BYTES 65536 /* the longest perf record */

static int need_scratch(struct weir_stream *s)
{
	if (!s->scratch)
		s->scratch = malloc(SCRATCH_BYTES);
	return s->scratch ? 0 : -ENOMEM;
}

static int prepare(struct weir_stream *s, const struct ring_spec *spec)
{
	const struct reason nobody = {NULL, 0};
	int err = stream__room_for(s, s->nr_sources);

	if (!err && spec->kind == &ring_kind__perf)
		err = need_scratch(s);
	return err ? err : stream__need_proof(s, spec->proof, &nobody);
}

static void set_up(struct weir_stream *s, struct ring *ring, const struct ring_spec *spec)
{
	ring->proof = spec->proof;
	ring->grace_ns = spec->grace_ns;
	ring->outside = spec->outside;
	ring->outside.last_ns = s->start_ns;
	/* What nobody counts is not nothing. */
	ring->outside.unknown[WEIR_LOST_RESERVE_FAILED] = spec->kind == &ring_kind__ringbuf &&
							  !spec->outside.lost;
}

int stream__add_outside(struct weir_stream *s, const struct ring_spec *spec)
{
	uint32_t source = s->nr_sources;
	int err = prepare(s, spec);
	struct ring *ring = err ? NULL
				: stream__new_ring(s, spec->kind, source, spec->name, spec->cpu);

	if (!err && !ring)
		err = -ENOMEM;
	if (!err && spec->data)
		err = ring__bind(ring, spec->data, spec->size, spec->producer, spec->consumer);
	if (err) {
		ring__free(ring);
		s->nr_sources = source;
		return err;
	}
	set_up(s, ring, spec);
	stream__list_ring(s, ring);
	return (int)source;
}

int stream__judge_clock(const struct weir_stream *s, enum weir_clock_id clock,
			const struct reason *reason)
{
	if (clock == s->clock_id)
		return 0;
	return reason__say(reason, -EINVAL,
			   "its stamps are by the clock '%s' and this stream goes by '%s'; two "
			   "clocks are never merged",
			   weir_clock__name(clock), weir_clock__name(s->clock_id));
}

static bool good_size(const struct weir_memory_outside *m)
{
	return m->size >= 16 && !(m->size & (m->size - 1)) && m->fence <= WEIR_FENCE_GRACE;
}

static int add_memory(struct weir_stream *s, const struct weir_memory_outside *m,
		      struct ring_spec *spec)
{
	static const enum proof proofs[] = {PROOF_RCU, PROOF_GRACE};

	if (!good_size(m) || *m->consumer % 8)
		return -EINVAL;
	spec->name = m->name;
	spec->cpu = m->cpu;
	spec->proof = proofs[m->fence];
	spec->grace_ns = m->grace_ns;
	spec->outside.lost = m->lost;
	spec->outside.lost_ctx = m->ctx;
	spec->data = m->data;
	spec->size = m->size;
	spec->producer = m->producer;
	spec->consumer = m->consumer;
	return stream__add_outside(s, spec);
}

int weir_stream__add_memory_perf(struct weir_stream *s, const struct weir_memory_outside *memory,
				 const struct perf_layout *layout, bool payload)
{
	struct ring_spec spec = {
		.kind = &ring_kind__perf,
		.outside = {.layout = layout, .payload = payload},
	};

	return add_memory(s, memory, &spec);
}

int weir_stream__add_memory_ringbuf(struct weir_stream *s, const struct weir_memory_outside *memory,
				    uint32_t stamp_offset)
{
	struct ring_spec spec = {
		.kind = &ring_kind__ringbuf,
		.outside = {.stamp_offset = stamp_offset},
	};

	return add_memory(s, memory, &spec);
}

int weir_stream__add_memory_overwritable(struct weir_stream *s,
					 const struct weir_memory_outside *memory,
					 const struct perf_layout *layout)
{
	const struct ring_spec spec = {
		.kind = &ring_kind__perf,
		.name = memory->name,
		.cpu = memory->cpu,
		.proof = memory->fence == WEIR_FENCE_RCU ? PROOF_SNAPSHOT : PROOF_GUARD,
		.grace_ns = memory->grace_ns,
		.outside =
			{
				.layout = layout,
				.overwritable = {memory->data, memory->size, memory->producer},
			},
	};

	return good_size(memory) ? stream__add_outside(s, &spec) : -EINVAL;
}

int weir_stream__set_fence(struct weir_stream *s, int (*wait)(void *ctx), void *ctx)
{
	int err = fence__open_custom(&s->fence, wait, ctx, &s->clock);

	s->has_fence = !err;
	return err;
}

void weir_stream__set_ticket(struct weir_stream *s, uint64_t (*ticket_ns)(void *ctx), void *ctx)
{
	s->ticket_ns = ticket_ns;
	s->ticket_ctx = ctx;
}
