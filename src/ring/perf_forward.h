/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_forward.h - bytes of a forward perf ring -> records, oldest first.
 *
 * Pure: base, position and head go in, one step comes out. No system call, no clock, no copy, no
 * allocation. Promises that no byte outside the ring is read, whatever its bytes or the head say
 * (G8), and that every step but END moves the position.
 *
 * What the caller has to know of such a ring:
 * - It is mapped readable and writable, once, at a page; only then does the kernel heed data_tail. A
 *   forward ring mapped read-only overwrites what nobody can then find the beginning of.
 * - head is a load-acquire of data_head: it pairs with the barrier before the kernel's store, without
 *   which the records below head could be read from before they were written. It is loaded once a
 *   pass (G5). data_tail is stored with release, after the last read of what it gives back.
 * - The ring holds at most size - 8 bytes; one that is full has no room even for LOST.
 * - data_head can step back for a moment on kernels before 5.2: that is an empty ring, no 2^64 bytes.
 * - poll(2) takes the readiness of a perf descriptor away: drain all of it, or remember.
 */
#ifndef WEIR_RING_PERF_FORWARD_H
#define WEIR_RING_PERF_FORWARD_H

#include "ring/perf_record.h"

#include <stddef.h>
#include <string.h>

struct perf_forward {
	const uint8_t *base;
	uint64_t mask; /* size - 1 */
	uint64_t pos;  /* next byte to read; a multiple of 8 at all times */
};

/*
 * Take one step. RECORD: *out is filled. BROKEN: out->pos up to r->pos was skipped, the record alone
 * or, where its length is no use, all up to head: nothing tells where the next one begins.
 */
static inline enum perf_next perf_forward__next(struct perf_forward *r, const struct perf_layout *l,
						uint64_t head, struct perf_record *out)
{
	/* The kernel's head is a multiple of 8; any other would move headers across the ring's end. */
	uint64_t end = head & ~7ull;
	uint64_t left = end - r->pos;
	const struct perf_event_header *header;
	uint64_t stamp_ns;
	bool has_stamp;

	if ((int64_t)left <= 0)
		return PERF_NEXT_END;
	header = perf_ring__at(r->base, r->mask, r->pos);
	out->pos = r->pos;
	out->type = header->type;
	out->misc = header->misc;
	out->size = header->size;
	/* Also a size below 8, by wrapping; and a head farther away than the ring is long. */
	if (__builtin_expect(out->size - (uint64_t)PERF_RECORD_HDR > left - PERF_RECORD_HDR ||
				     out->size & 7 || left > r->mask + 1,
			     0)) {
		r->pos = end;
		return PERF_NEXT_BROKEN;
	}
	r->pos += out->size;
	if (__builtin_expect(out->type == PERF_RECORD_SAMPLE && out->size >= l->sample_min &&
				     l->payload_stamp == PERF_PAYLOAD_UNSTAMPED,
			     1)) {
		out->has_stamp = true;
		out->stamp_ns = *(const uint64_t *)perf_ring__at(r->base, r->mask,
								 out->pos + l->sample.time);
		return PERF_NEXT_RECORD;
	}
	/* By way of locals: *out may so stay in registers. */
	if (perf_record__stamp(l, r->base, r->mask, out->pos, left, &has_stamp, &stamp_ns))
		return PERF_NEXT_BROKEN;
	out->has_stamp = has_stamp;
	out->stamp_ns = stamp_ns;
	return PERF_NEXT_RECORD;
}

/*
 * The whole record at a position that a step gave, contiguous: where it stands, or put together in
 * `scratch64k` (65,536 bytes, aligned to 8) if it goes round the ring's end. NULL: not a record.
 */
static inline const void *perf_forward__body(const uint8_t *base, uint64_t mask, uint64_t pos,
					     uint32_t *len, void *scratch64k)
{
	const struct perf_event_header *header = perf_ring__at(base, mask, pos);
	uint64_t first = mask + 1 - (pos & mask);
	uint32_t size = header->size;

	*len = size;
	if (__builtin_expect(size < PERF_RECORD_HDR || size > mask + 1, 0))
		return NULL;
	if (__builtin_expect(size <= first, 1))
		return header;
	memcpy(scratch64k, header, first);
	memcpy((uint8_t *)scratch64k + first, base, size - first);
	return scratch64k;
}

#endif /* WEIR_RING_PERF_FORWARD_H */
