/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * foreign_ringbuf.h - a BPF ring buffer that another project writes -> records, oldest first.
 *
 * The ring is as in bpf_ringbuf.h; of the payload nothing is known but where its stamp stands, u64 in
 * ns at a declared offset, which need not be a multiple of anything. Records have no number, so what
 * the ring had no room for is known from a counter of the project's own, or not at all.
 */
#ifndef WEIR_RING_FOREIGN_RINGBUF_H
#define WEIR_RING_FOREIGN_RINGBUF_H

#include "ring/bpf_ringbuf.h"

#include <string.h>

struct foreign_record {
	uint64_t pos; /* of its header */
	uint64_t stamp_ns;
	const void *data; /* the payload, from its first byte on */
	uint32_t len;
};

/*
 * Take one step, as bpf_ringbuf__next() does. out->pos is set in each but BUSY and END, the rest in
 * RECORD alone: what was discarded may never have been filled. A record that ends before its stamp
 * does is BROKEN.
 */
static inline enum bpf_ringbuf_step foreign_ringbuf__next(struct bpf_ringbuf *rb,
							  uint32_t stamp_offset, uint64_t head,
							  struct foreign_record *out)
{
	enum bpf_ringbuf_step step = bpf_ringbuf__take(rb, head, &out->pos, &out->data, &out->len);

	if (step != BPF_RINGBUF_RECORD)
		return step;
	if (__builtin_expect((uint64_t)stamp_offset + sizeof(out->stamp_ns) > out->len, 0))
		return BPF_RINGBUF_BROKEN;
	memcpy(&out->stamp_ns, (const uint8_t *)out->data + stamp_offset, sizeof(out->stamp_ns));
	return BPF_RINGBUF_RECORD;
}

/* The payload and its length, of a record that has passed foreign_ringbuf__next() before. */
static inline const void *foreign_ringbuf__body(const uint8_t *data, uint64_t mask, uint64_t pos,
						uint32_t *len)
{
	const uint8_t *at = (const uint8_t *)bpf_ringbuf__at(data, mask, pos);

	*len = *(const uint32_t *)at & ~(BPF_RINGBUF_BUSY | BPF_RINGBUF_DISCARD);
	return at + BPF_RINGBUF_HDR;
}

#endif /* WEIR_RING_FOREIGN_RINGBUF_H */
