/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * single_writer.h - a ring of equal records with one writer (weir_lane.bpf.h) -> runs and holes.
 *
 * Pure: no system call, no clock, no allocation. Nothing interrupts the writer, so the order of the
 * places is that of the numbers and of the stamps, and a hole between neighbours is a loss. Promises
 * that no byte outside [pos, head) is read, whatever the bytes say (G8), and that every step but END
 * moves the position or the number that is expected.
 */
#ifndef WEIR_RING_SINGLE_WRITER_H
#define WEIR_RING_SINGLE_WRITER_H

#include <weir/record.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct single_writer {
	const uint8_t *data;
	uint64_t mask;	 /* records - 1 */
	size_t stride;	 /* bytes from one record to the next, struct weir_record at least */
	uint64_t pos;	 /* next record to read, counted from the first there ever was */
	uint64_t expect; /* its number, if none was lost */
};

enum single_writer_step {
	SINGLE_WRITER_RECORDS, /* `count` from `first` on, one behind the other in memory too */
	SINGLE_WRITER_HOLE,    /* `count` numbers are missing before the record at pos */
	SINGLE_WRITER_BROKEN,  /* `count` records skipped, whose numbers make no sense */
	SINGLE_WRITER_END,
};

/*
 * So many that they are still in the nearest cache when they are used: their numbers are looked at
 * before.
 */
#define SINGLE_WRITER_RUN 256u

static inline const struct weir_record *single_writer__at(const struct single_writer *ring,
							  uint64_t pos)
{
	return (const struct weir_record *)(ring->data + (pos & ring->mask) * ring->stride);
}

/* Records from pos on, up to `most`, whose numbers follow each other. */
static inline uint64_t single_writer__run(const struct single_writer *ring, uint64_t most)
{
	const uint8_t *at = (const uint8_t *)single_writer__at(ring, ring->pos);
	uint64_t n = 0;

	while (n < most && ((const struct weir_record *)at)->seq == (uint32_t)(ring->expect + n)) {
		at += ring->stride;
		n++;
	}
	return n;
}

/*
 * Take one step. `head` was loaded with acquire, from where the writer publishes it. `limit`: numbers
 * that it had given out by then; none is missing that is not below it.
 */
static inline enum single_writer_step single_writer__next(struct single_writer *ring, uint64_t head,
							  uint64_t limit,
							  const struct weir_record **first,
							  uint64_t *count)
{
	uint64_t left = head - ring->pos, straight = ring->mask + 1 - (ring->pos & ring->mask);
	uint64_t given = limit - ring->expect, missing;

	if ((int64_t)left <= 0)
		return SINGLE_WRITER_END;
	if (left > ring->mask + 1) {
		*count = left;
		ring->pos = head;
		return SINGLE_WRITER_BROKEN;
	}
	if (left > straight)
		left = straight;
	if (left > SINGLE_WRITER_RUN)
		left = SINGLE_WRITER_RUN;
	if ((int64_t)given < 0)
		given = 0;
	*first = single_writer__at(ring, ring->pos);
	*count = single_writer__run(ring, left < given ? left : given);
	if (*count) {
		ring->pos += *count;
		ring->expect += *count;
		return SINGLE_WRITER_RECORDS;
	}
	missing = (uint32_t)((*first)->seq - (uint32_t)ring->expect);
	if (missing >= given) {
		ring->pos++;
		*count = 1;
		return SINGLE_WRITER_BROKEN;
	}
	ring->expect += missing;
	*count = missing;
	return SINGLE_WRITER_HOLE;
}

#endif /* WEIR_RING_SINGLE_WRITER_H */
