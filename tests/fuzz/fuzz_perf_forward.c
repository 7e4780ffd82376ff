// SPDX-License-Identifier: BSD-2-Clause
/*
 * fuzz_perf_forward.c - a forward perf ring full of any bytes, at any position, under any heads (G8).
 *
 * Promises checked: each pass ends, every byte up to head is a record's or was skipped, each record is
 * where it was said to be, whole, and nothing outside the ring is read.
 */
#include "perf_input.h"
#include "ring/perf_forward.h"

static uint8_t scratch[65536] __attribute__((aligned(8)));

static void pass(struct perf_forward *r, const struct perf_layout *layout, uint64_t head)
{
	uint64_t at = r->pos, end = head & ~7ull, steps = 0;
	bool empty = (int64_t)(end - at) <= 0;
	struct perf_record record;
	enum perf_next next;
	uint32_t len;

	while ((next = perf_forward__next(r, layout, head, &record)) != PERF_NEXT_END) {
		const void *body;

		HOLDS(++steps <= r->mask / 8 + 1);
		HOLDS(record.pos == at && r->pos - at >= 8);
		at = r->pos;
		if (next == PERF_NEXT_BROKEN)
			continue;
		HOLDS(record.size == at - record.pos);
		body = perf_forward__body(r->base, r->mask, record.pos, &len, scratch);
		HOLDS(body && len == record.size);
		check_record(layout, body, len);
	}
	HOLDS(r->pos == at);
	HOLDS(empty || at == end);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct input in = {bytes, size};
	struct perf_layout layout;
	struct perf_forward r;
	struct {
		uint64_t pos;
		uint16_t more[3]; /* from head to head */
		uint8_t far;	  /* the last head is where no ring reaches */
		uint8_t order;	  /* of the ring's size */
	} how;
	size_t ring_size;
	uint8_t *ring;
	unsigned i;

	if (!input__layout(&in, &layout))
		return 0;
	input__take(&in, &how, sizeof(how));
	ring_size = 8u << how.order % 10;
	ring = malloc(ring_size);
	input__take(&in, ring, ring_size);
	r = (struct perf_forward){ring, ring_size - 1, how.pos & ~7ull};
	for (i = 0; i < 3; i++)
		pass(&r, &layout, r.pos + how.more[i] % (ring_size + 16) - 8);
	pass(&r, &layout, r.pos + ((uint64_t)how.far << 57));
	free(ring);
	return 0;
}
