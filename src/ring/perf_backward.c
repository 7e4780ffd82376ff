// SPDX-License-Identifier: BSD-2-Clause
/*
 * perf_backward.c - the valid window of an overwritable ring, and its records turned around.
 *
 * Owns the window's arithmetic, which is by difference throughout. Promises that count, torn,
 * oversized and broken explain every byte of the window, and that the index stays within
 * perf_backward__room(). Must not know how the copy was made or when.
 */
#include "ring/perf_backward.h"

/* a - b, where a head that went the wrong way counts as one that did not move. */
static uint64_t distance(uint64_t a, uint64_t b)
{
	return (int64_t)(a - b) > 0 ? a - b : 0;
}

/* [head, min(prev, limit + size)), as a length: no end of it needs to be compared. */
static void find_window(struct perf_backward *b, const struct perf_snapshot *s)
{
	uint64_t fresh = distance(s->prev, s->head);
	uint64_t overwritten = distance(s->head, s->limit);
	uint64_t intact = overwritten < s->size ? s->size - overwritten : 0;

	b->valid = (fresh < intact ? fresh : intact) & ~7ull;
	b->hole = fresh - b->valid;
	/* No writer leaves such a head, and headers would go round the ring's end. */
	if (s->head & 7) {
		b->broken += b->valid != 0;
		b->skipped += b->valid;
		b->valid = 0;
	}
}

/*
 * A length that leads out of the window, or can't be. Where nothing was overwritten it is plain nonsense.
 * Else the record at the old end may be torn; and only a record larger than the ring can have written
 * over the header of a newer one, its own.
 */
static void give_up(struct perf_backward *b, uint64_t at, uint16_t size)
{
	if (!b->hole)
		b->broken++;
	else if (size < PERF_RECORD_HDR || size & 7 || size > b->mask + 1)
		b->oversized++;
	else
		b->torn++;
	b->skipped += b->valid - at;
}

static const struct perf_event_header *header_at(const struct perf_backward *b, uint64_t at)
{
	return perf_ring__at(b->base, b->mask, b->head + at);
}

static int stamp_at(const struct perf_backward *b, const struct perf_layout *layout, uint64_t at,
		    struct perf_record *out)
{
	return perf_record__stamp(layout, b->base, b->mask, b->head + at, b->valid - at,
				  &out->has_stamp, &out->stamp_ns);
}

/* Walk from the newest to the oldest, as lengths lead. */
static void walk(struct perf_backward *b, const struct perf_layout *layout)
{
	struct perf_record record;
	uint64_t at = 0;

	while (at < b->valid) {
		uint16_t size = header_at(b, at)->size;

		if (size < PERF_RECORD_HDR || size & 7 || size > b->valid - at) {
			give_up(b, at, size);
			return;
		}
		if (stamp_at(b, layout, at, &record)) {
			b->broken++;
			b->skipped += size;
		} else {
			b->index[b->count++] = (uint32_t)(at / 8);
		}
		at += size;
	}
}

/*
 * Turn the index around, and each LOST to before the record with which it was reserved: the one that
 * follows it in memory. That one may be missing from the window, or have been skipped.
 */
static void turn_around(struct perf_backward *b)
{
	uint32_t i, j, swap;

	for (i = 0, j = b->count; i + 1 < j; i++) {
		swap = b->index[--j];
		b->index[j] = b->index[i];
		b->index[i] = swap;
	}
	for (i = 1; i < b->count; i++) {
		const struct perf_event_header *header = header_at(b, b->index[i] * 8ull);

		if (header->type != PERF_RECORD_LOST ||
		    b->index[i - 1] != b->index[i] + header->size / 8u)
			continue;
		swap = b->index[i - 1];
		b->index[i - 1] = b->index[i];
		b->index[i] = swap;
	}
}

void perf_backward__init(struct perf_backward *b, const struct perf_layout *layout,
			 const struct perf_snapshot *snapshot, uint32_t *index)
{
	*b = (struct perf_backward){
		.base = snapshot->bytes,
		.mask = snapshot->size - 1,
		.head = snapshot->head,
		.index = index,
	};
	find_window(b, snapshot);
	walk(b, layout);
	turn_around(b);
}

enum perf_next perf_backward__next(struct perf_backward *b, const struct perf_layout *layout,
				   struct perf_record *out)
{
	const struct perf_event_header *header;
	uint64_t at;

	if (b->done == b->count)
		return PERF_NEXT_END;
	at = b->index[b->done++] * 8ull;
	header = header_at(b, at);
	out->pos = b->head + at;
	out->type = header->type;
	out->misc = header->misc;
	out->size = header->size;
	return stamp_at(b, layout, at, out) ? PERF_NEXT_BROKEN : PERF_NEXT_RECORD;
}
