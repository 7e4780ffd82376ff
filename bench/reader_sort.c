/* SPDX-License-Identifier: BSD-2-Clause */
/* Collect a pointer to every record, sort them all, deliver: what is quickly written. */
#include "measure/readers.h"

#include <err.h>
#include <linux/bpf.h>
#include <stdlib.h>

struct item {
	uint64_t stamp_ns;
	uint8_t *at;
	uint32_t order; /* of collection: by ring, then by position */
};

struct state {
	struct synth *synth;
	struct sink *sink;
	sample_fn sample;
	struct item *item;
	size_t count;
};

static void *open_sort(struct synth *synth, struct sink *sink, bool checking)
{
	struct state *state = malloc(sizeof(*state));

	if (!state)
		err(1, "sort");
	*state = (struct state){
		.synth = synth,
		.sink = sink,
		.sample = sink__sample(checking),
		.item = calloc(synth->shape.records, sizeof(*state->item)),
	};
	if (!state->item)
		err(1, "sort");
	return state;
}

static void close_sort(void *ctx)
{
	struct state *state = ctx;

	free(state->item);
	free(state);
}

static void collect_ring(struct state *state, const struct synth_ring *ring)
{
	uint64_t pos = *ring->consumer, head = __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE);

	while (pos != head) {
		uint8_t *at = ring->data + (pos & (state->synth->size - 1));
		uint32_t len = __atomic_load_n((uint32_t *)at, __ATOMIC_ACQUIRE);

		if (len & BPF_RINGBUF_BUSY_BIT)
			break;
		pos += ((len & ~BPF_RINGBUF_DISCARD_BIT) + BPF_RINGBUF_HDR_SZ + 7) & ~7ull;
		if (len & BPF_RINGBUF_DISCARD_BIT)
			continue;
		state->item[state->count] = (struct item){
			.stamp_ns = ((struct weir_record *)(at + BPF_RINGBUF_HDR_SZ))->stamp,
			.at = at,
			.order = (uint32_t)state->count,
		};
		state->count++;
	}
}

static int compare(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->stamp_ns != y->stamp_ns)
		return x->stamp_ns < y->stamp_ns ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

static void deliver(const struct state *state)
{
	for (size_t i = 0; i < state->count; i++) {
		uint8_t *at = state->item[i].at;

		if (state->sample(state->sink, at + BPF_RINGBUF_HDR_SZ, *(uint32_t *)at))
			errx(1, "sort: the callback failed");
	}
}

static void read_sort(void *ctx)
{
	struct state *state = ctx;
	unsigned rings = state->synth->shape.rings;

	state->count = 0;
	for (unsigned i = 0; i < rings; i++)
		collect_ring(state, &state->synth->ring[i]);
	qsort(state->item, state->count, sizeof(*state->item), compare);
	deliver(state);
	for (unsigned i = 0; i < rings; i++)
		__atomic_store_n(state->synth->ring[i].consumer, *state->synth->ring[i].producer,
				 __ATOMIC_RELEASE);
}

const struct reader reader__sort = {
	.name = "sort",
	.sorted = true,
	.open = open_sort,
	.read = read_sort,
	.close = close_sort,
};
