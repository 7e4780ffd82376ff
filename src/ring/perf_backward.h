/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_backward.h - a copy of a backward (overwritable) perf ring -> records, oldest first.
 *
 * Pure: a copy of the ring's bytes and the heads at which it was taken go in, records come out. No
 * system call, no clock, no allocation. Promises that no byte outside the copy is read (G8), that no
 * record comes out twice, and that each byte of the window is accounted for.
 *
 * What there is to know of such a ring:
 * - It is mapped read-only; mapped writable the kernel heeds data_tail, which makes no sense here.
 *   There is no tail: the writer overwrites what is oldest.
 * - head goes *down* from 0, that is from 2^64: three records of 24 bytes leave it at 2^64 - 72. Only
 *   differences mean anything; `pos < end` is wrong in the whole first generation.
 * - From head upwards the records stand newest first, each from its header on. What is valid reaches to
 *   the head of the snapshot before (older records came out then), or as far as nothing was
 *   overwritten, whichever is nearer. The record at that edge is mostly half overwritten.
 * - While the copy is made the writer goes on. What it has overwritten by then is told by a second look
 *   at the head, after a fence, and for what nests in an unfinished writer, which is not in head yet,
 *   after a grace period; or by a guard below the second head.
 * - A record larger than the ring overwrites its own header, and is counted nowhere.
 * - LOST, after a pause (PAUSE_OUTPUT): the kernel reserves it together with the sample that comes next
 *   and puts it in front of that one in memory, so that reading newest first turns the two around:
 *   s2, LOST, s1 in memory is LOST, s1, s2 in time.
 */
#ifndef WEIR_RING_PERF_BACKWARD_H
#define WEIR_RING_PERF_BACKWARD_H

#include "ring/perf_forward.h"

struct perf_backward {
	const uint8_t *base;
	uint64_t mask;	 /* size - 1 */
	uint64_t head;	 /* where the newest record stands */
	uint64_t valid;	 /* bytes from head on that are whole and new */
	uint64_t hole;	 /* bytes that were written and overwritten between the two snapshots */
	uint32_t *index; /* the caller's: each record's distance from head / 8, oldest first */
	uint32_t count;	 /* records in it */
	uint32_t done;	 /* of these, handed out */
	/* Of the window, what is no record: */
	uint32_t torn;	    /* records at the old end, half overwritten */
	uint32_t oversized; /* records larger than the ring, with all that stood behind them */
	uint32_t broken;    /* places where the bytes make no sense */
	uint64_t skipped;   /* bytes of all of these */
};

/* One look at a ring. */
struct perf_snapshot {
	const uint8_t *bytes; /* the copy, aligned to 8 */
	uint64_t size;	      /* of the ring, and so of the copy: a power of two, at least 8 */
	uint64_t head;	      /* data_head before the copy was made */
	uint64_t prev;	      /* `head` of the snapshot before; 0 for a ring's first */
	uint64_t
		limit; /* data_head after the copy, less a guard: down to it bytes may be overwritten */
};

/* As many entries the index must have room for. */
static inline uint64_t perf_backward__room(const struct perf_layout *layout, uint64_t size)
{
	return size / perf_layout__min_record(layout);
}

/*
 * Find the window of a snapshot and all records in it. index: room for perf_backward__room() entries,
 * kept until the last step.
 */
void perf_backward__init(struct perf_backward *b, const struct perf_layout *layout,
			 const struct perf_snapshot *snapshot, uint32_t *index);

/*
 * The next record, older ones first: RECORD or END, since what is broken was found before. Bytes:
 * perf_forward__body(b->base, b->mask, out->pos, ...).
 */
enum perf_next perf_backward__next(struct perf_backward *b, const struct perf_layout *layout,
				   struct perf_record *out);

#endif /* WEIR_RING_PERF_BACKWARD_H */
