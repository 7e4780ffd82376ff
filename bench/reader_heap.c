/* SPDX-License-Identifier: BSD-2-Clause */
/* A binary heap over the heads of the rings: the textbook's merge. */
#include "measure/readers.h"

#include <err.h>
#include <linux/bpf.h>
#include <stdlib.h>

struct node {
	uint64_t stamp_ns;
	uint32_t source;
};

struct state {
	struct synth *synth;
	struct sink *sink;
	sample_fn sample;
	uint64_t *head; /* by source */
	struct node *node;
	unsigned count;
};

static void *open_heap(struct synth *synth, struct sink *sink, bool checking)
{
	struct state *state = malloc(sizeof(*state));

	if (!state)
		err(1, "heap");
	*state = (struct state){
		.synth = synth,
		.sink = sink,
		.sample = sink__sample(checking),
		.head = calloc(synth->shape.rings, sizeof(*state->head)),
		.node = calloc(synth->shape.rings, sizeof(*state->node)),
	};
	if (!state->head || !state->node)
		err(1, "heap");
	return state;
}

static void close_heap(void *ctx)
{
	struct state *state = ctx;

	free(state->head);
	free(state->node);
	free(state);
}

static bool before(const struct node *a, const struct node *b)
{
	return a->stamp_ns != b->stamp_ns ? a->stamp_ns < b->stamp_ns : a->source < b->source;
}

static void sift_down(struct state *state, unsigned i)
{
	struct node take = state->node[i];

	for (;;) {
		unsigned child = 2 * i + 1;

		if (child >= state->count)
			break;
		if (child + 1 < state->count &&
		    before(&state->node[child + 1], &state->node[child]))
			child++;
		if (!before(&state->node[child], &take))
			break;
		state->node[i] = state->node[child];
		i = child;
	}
	state->node[i] = take;
}

static uint8_t *record_at(const struct state *state, const struct synth_ring *ring)
{
	return ring->data + (*ring->consumer & (state->synth->size - 1));
}

/* The stamp of the ring's next record. false: there is none, or it is not finished. */
static bool peek(const struct state *state, uint32_t source, uint64_t *stamp_ns)
{
	const struct synth_ring *ring = &state->synth->ring[source];
	const uint8_t *at = record_at(state, ring);

	if (*ring->consumer == state->head[source] ||
	    __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE) & BPF_RINGBUF_BUSY_BIT)
		return false;
	*stamp_ns = ((const struct weir_record *)(at + BPF_RINGBUF_HDR_SZ))->stamp;
	return true;
}

static void deliver(const struct state *state, uint32_t source)
{
	const struct synth_ring *ring = &state->synth->ring[source];
	uint8_t *at = record_at(state, ring);
	uint32_t len = *(uint32_t *)at & ~BPF_RINGBUF_DISCARD_BIT;

	if (!(*(uint32_t *)at & BPF_RINGBUF_DISCARD_BIT) &&
	    state->sample(state->sink, at + BPF_RINGBUF_HDR_SZ, len))
		errx(1, "heap: the callback failed");
	__atomic_store_n(ring->consumer, *ring->consumer + ((len + BPF_RINGBUF_HDR_SZ + 7) & ~7ull),
			 __ATOMIC_RELEASE);
}

static void build(struct state *state)
{
	state->count = 0;
	for (uint32_t i = 0; i < state->synth->shape.rings; i++) {
		struct node *node = &state->node[state->count];

		state->head[i] = __atomic_load_n(state->synth->ring[i].producer, __ATOMIC_ACQUIRE);
		node->source = i;
		state->count += peek(state, i, &node->stamp_ns);
	}
	for (unsigned i = state->count / 2; i-- > 0;)
		sift_down(state, i);
}

static void read_heap(void *ctx)
{
	struct state *state = ctx;
	struct node *least = state->node;

	build(state);
	while (state->count) {
		deliver(state, least->source);
		if (!peek(state, least->source, &least->stamp_ns))
			*least = state->node[--state->count];
		sift_down(state, 0);
	}
}

const struct reader reader__heap = {
	.name = "heap",
	.sorted = true,
	.open = open_heap,
	.read = read_heap,
	.close = close_heap,
};
