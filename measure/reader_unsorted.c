/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What libbpf's ring_buffer__consume() does: ring by ring, each record to a callback, the consumer's
 * position stored behind each. No order between rings.
 */
#include "measure/readers.h"

#include <err.h>
#include <linux/bpf.h>
#include <stdlib.h>

struct state {
	struct synth *synth;
	struct sink *sink;
	sample_fn sample;
};

static void *open_unsorted(struct synth *synth, struct sink *sink, bool checking)
{
	struct state *state = malloc(sizeof(*state));

	if (!state)
		err(1, "unsorted");
	*state = (struct state){synth, sink, sink__sample(checking)};
	return state;
}

static int read_ring(const struct state *state, const struct synth_ring *ring)
{
	uint64_t pos = *ring->consumer, head = __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE);
	int err = 0;

	while (pos != head && !err) {
		uint8_t *at = ring->data + (pos & (state->synth->size - 1));
		uint32_t len = __atomic_load_n((uint32_t *)at, __ATOMIC_ACQUIRE);

		if (len & BPF_RINGBUF_BUSY_BIT)
			break;
		pos += ((len & ~BPF_RINGBUF_DISCARD_BIT) + BPF_RINGBUF_HDR_SZ + 7) & ~7ull;
		if (!(len & BPF_RINGBUF_DISCARD_BIT))
			err = state->sample(state->sink, at + BPF_RINGBUF_HDR_SZ, len);
		__atomic_store_n(ring->consumer, pos, __ATOMIC_RELEASE);
	}
	return err;
}

static void read_unsorted(void *ctx)
{
	const struct state *state = ctx;

	for (unsigned i = 0; i < state->synth->shape.rings; i++)
		if (read_ring(state, &state->synth->ring[i]))
			errx(1, "unsorted: the callback failed");
}

const struct reader reader__unsorted = {
	.name = "unsorted",
	.open = open_unsorted,
	.read = read_unsorted,
	.close = free,
};
