/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * told.h - sources of a stream that somebody else reads: each item comes with its place, and what was
 * lost is told, not found.
 *
 * The reader of a file knows what a ring's reader has to find out: up to which time it has given
 * everything. So it tells items, then says up to when that was all; the stream does the rest, order,
 * watermark and account, as it does for rings. Items are borrowed until they are delivered.
 */
#ifndef WEIR_STREAM_TOLD_H
#define WEIR_STREAM_TOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/record.h>
#include <weir/stream.h>

struct told;

/* Takes the stream's clock over: every source of it has to be a told one. NULL: ENOMEM. */
struct told *told__new(struct weir_stream *stream);
/* Before weir_stream__free(), which is all that may be done with the stream after it. */
void told__free(struct told *told);

/*
 * One more source, behind those before it (ties, G7), that up to `items` at once can wait in. name NULL:
 * what it tells is the whole machine's. Returns its index among the told ones, or -errno.
 */
int told__add_source(struct told *told, const char *name, int cpu, size_t items);

/* Room for so many items. */
size_t told__room(const struct told *told, int source);

/*
 * A record at a place in the stream; there has to be room. place_ns never steps back within a source.
 * The record's own stamp counts where it is not marked, and true_ns where it is late or ahead.
 */
struct told_record {
	uint64_t place_ns, true_ns;
	uint64_t seq; /* all 64 bits */
	const void *data;
	uint32_t len;
	uint16_t type, flags;
	uint8_t mark;
};
void told__record(struct told *told, int source, const struct told_record *record);

/*
 * A loss; late where its place is behind its end. Where there is no memory to tell of it, it is in the
 * account alone.
 */
void told__gap(struct told *told, int source, uint64_t place_ns, uint64_t seq,
	       const struct weir_gap *gap, uint8_t mark);

/* Of the whole machine: an event, and from there on the wall clock's. */
void told__clock_step(struct told *told, int source, uint64_t place_ns,
		      const struct weir_clock_step *step);

/* The offset of the wall clock that is in force from the start on. */
void told__wall_offset(struct told *told, int64_t offset_ns);

/* For the account only: what is in no item. */
struct told_counts {
	uint64_t filtered, self, unread, failed, stray;
	uint64_t lost[WEIR_LOST_CAUSES];
	bool exact[WEIR_LOST_CAUSES]; /* what was unknown of this cause is in lost now */
};
void told__counts(struct told *told, int source, const struct told_counts *counts);
/* An unknown number was lost, beside what is told. */
void told__unknown(struct told *told, int source, enum weir_cause cause);

/* From now on nobody vouches for it that this is all. */
void told__estimated(struct told *told);

/* Records told, gaps and the like apart. */
uint64_t told__records(const struct told *told, int source);

/*
 * All that has a place <= until_ns has been told: deliver that, and announce it. Returns the number of
 * events, or the callback's error.
 */
int told__until(struct told *told, uint64_t until_ns);

#endif /* WEIR_STREAM_TOLD_H */
