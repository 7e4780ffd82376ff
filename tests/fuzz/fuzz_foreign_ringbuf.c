// SPDX-License-Identifier: BSD-2-Clause
/*
 * fuzz_foreign_ringbuf.c - a BPF ring buffer of any bytes, with a stamp declared anywhere (G8).
 *
 * The ring's bytes stand twice in succession, as in the kernel's mapping, and nothing behind them.
 */
#include "fuzz.h"
#include "ring/foreign_ringbuf.h"

static volatile uint8_t sum;

static void pass(struct bpf_ringbuf *rb, uint32_t stamp_offset, uint64_t head)
{
	uint64_t at = rb->pos, steps = 0;
	bool empty = (int64_t)(head - at) <= 0;
	struct foreign_record record;
	enum bpf_ringbuf_step step;
	uint32_t len, i;

	for (;;) {
		step = foreign_ringbuf__next(rb, stamp_offset, head, &record);
		if (step == BPF_RINGBUF_END || step == BPF_RINGBUF_IS_BUSY)
			break;
		HOLDS(++steps <= rb->mask / 8 + 2);
		HOLDS(record.pos == at && rb->pos - at >= 1);
		at = rb->pos;
		if (step != BPF_RINGBUF_RECORD)
			continue;
		HOLDS(record.data == foreign_ringbuf__body(rb->data, rb->mask, record.pos, &len));
		HOLDS(len == record.len && len <= at - record.pos - 8);
		for (i = 0; i < len; i++)
			sum += ((const uint8_t *)record.data)[i];
	}
	HOLDS(rb->pos == at);
	HOLDS(empty || step == BPF_RINGBUF_IS_BUSY || at == head);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct input in = {bytes, size};
	struct bpf_ringbuf rb = {0};
	struct {
		uint64_t pos;
		uint32_t stamp_offset;
		uint16_t more[2]; /* from head to head */
		uint8_t order;	  /* of the ring's size */
		uint8_t far;	  /* the offset is as it is, not one that a record may have */
		uint16_t pad[3];
	} how;
	size_t ring_size;
	uint8_t *ring;
	unsigned i;

	input__take(&in, &how, sizeof(how));
	if (!(how.far & 1))
		how.stamp_offset %= 64;
	ring_size = 64u << how.order % 7;
	ring = malloc(2 * ring_size);
	input__take(&in, ring, ring_size);
	memcpy(ring + ring_size, ring, ring_size);
	rb.data = ring;
	rb.mask = ring_size - 1;
	rb.pos = how.pos & ~7ull;
	for (i = 0; i < 2; i++)
		pass(&rb, how.stamp_offset, rb.pos + (how.more[i] % (ring_size + 8) & ~7ull));
	free(ring);
	return 0;
}
