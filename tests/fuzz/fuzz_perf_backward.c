// SPDX-License-Identifier: BSD-2-Clause
/*
 * fuzz_perf_backward.c - a copy of an overwritable perf ring, of any bytes, between any heads (G8).
 *
 * Promises checked: records and what was skipped are the window, to the byte; no two records overlap;
 * the index keeps to its room; nothing outside the copy is read.
 */
#include "perf_input.h"
#include "ring/perf_backward.h"

static uint8_t scratch[65536] __attribute__((aligned(8)));

static void drain(struct perf_backward *b, const struct perf_layout *layout)
{
	uint8_t taken[4096 / 8] = {0};
	struct perf_record record;
	uint64_t bytes = 0;
	uint32_t len, i;

	while (perf_backward__next(b, layout, &record) == PERF_NEXT_RECORD) {
		const void *body = perf_forward__body(b->base, b->mask, record.pos, &len, scratch);

		HOLDS(body && len == record.size);
		HOLDS(record.pos - b->head + len <= b->valid);
		for (i = 0; i < len / 8; i++)
			HOLDS(!taken[(record.pos - b->head) / 8 + i]++);
		check_record(layout, body, len);
		bytes += len;
	}
	HOLDS(b->done == b->count);
	HOLDS(b->head & 7 || bytes + b->skipped == b->valid);
	HOLDS(!b->skipped == !(b->torn + b->oversized + b->broken));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct input in = {bytes, size};
	struct perf_layout layout;
	struct perf_backward b;
	struct perf_snapshot s;
	struct {
		uint64_t head;
		uint16_t fresh, overwritten;
		uint8_t wrong; /* heads that went the wrong way */
		uint8_t order; /* of the ring's size */
		uint16_t pad;
	} how;
	uint32_t *index;
	uint8_t *ring;

	if (!input__layout(&in, &layout))
		return 0;
	input__take(&in, &how, sizeof(how));
	s.size = 8u << how.order % 10;
	s.head = how.head;
	s.prev = how.wrong & 1 ? s.head - how.fresh : s.head + how.fresh;
	s.limit = how.wrong & 2 ? s.head + how.overwritten : s.head - how.overwritten;
	ring = malloc(s.size);
	input__take(&in, ring, s.size);
	s.bytes = ring;
	index = malloc(perf_backward__room(&layout, s.size) * sizeof(*index));
	perf_backward__init(&b, &layout, &s, index);
	HOLDS(b.valid <= s.size);
	drain(&b, &layout);
	free(index);
	free(ring);
	return 0;
}
