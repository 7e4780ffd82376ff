/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * writer.h - a stream's events -> a capture (docs/capture.md).
 *
 * Events come in the order in which the stream delivers them; what has to be told of the live system
 * (process table, wall clock, accounts) comes from the caller. Nothing is written that was not asked
 * for by a call, so a kill loses at most what came since the last flush. A little room of the disk is
 * held from the start, so that a full one leaves a capture that says what it lacks.
 */
#ifndef WEIR_CAPTURE_WRITER_H
#define WEIR_CAPTURE_WRITER_H

#include <weir/probes.h>
#include <weir/stream.h>

#include "capture/layout.h"
#include "capture/metadata.h"

struct writer;

struct writer_opts {
	int dir_fd; /* the capture's folder, empty; borrowed */
	const struct metadata
		*metadata;	 /* borrowed during the call; writer__new() makes the uuid */
	uint64_t start_ns;	 /* no event is stamped before it */
	uint64_t max_bytes;	 /* of all files: the oldest part goes; 0: no bound */
	uint64_t max_age_ns;	 /* so far back at least; what is older goes by parts; 0 */
	uint64_t min_free_bytes; /* of the file system */
	bool compress;		 /* the files of closed parts, by a thread of the writer's */
	/* Records that the stream had delivered did not get out. Runs inside the calls below. */
	void (*lost)(void *ctx, uint32_t source, uint64_t records);
	void *ctx;
};

/* Writes the metadata. NULL and errno on failure. */
struct writer *writer__new(const struct writer_opts *opts);
void writer__free(struct writer *writer); /* what was not flushed is gone */

/* Begin the next part. The process table follows, by writer__task(). */
void writer__begin_part(struct writer *writer, int64_t wall_offset_ns);

/* exe, cgroups: as tasks__seed() takes them, NULL when unknown. */
void writer__task(struct writer *writer, const struct weir_seed *seed, const char *exe,
		  const char *cgroups);

/* 0, or -EBADMSG: its bytes make no sense, and nothing was written. */
int writer__record(struct writer *writer, const struct weir_event *event);

/* A gap or a clock step. ring: of its source. */
void writer__notice(struct writer *writer, const struct weir_event *event, enum capture_ring ring);

void writer__account(struct writer *writer, const struct weir_source_info *info,
		     enum capture_ring ring);

/*
 * Write every open packet, then a mark. Everything up to the watermark has come. false: nothing came
 * since the last time, and nothing was written.
 */
bool writer__flush(struct writer *writer, uint64_t watermark_ns, enum weir_order order);

/* Is it time for another part? */
bool writer__part_is_full(const struct writer *writer, uint64_t now_ns);

/*
 * Every record is in a file, or counted as lost, with a gap that says so: what the accounts at the end of
 * a part are to be taken after. closed: it is the last part.
 */
void writer__end_records(struct writer *writer, uint64_t watermark_ns, bool closed);

/* The same, then a mark behind the accounts, and the files are whole. */
void writer__end_part(struct writer *writer, uint64_t watermark_ns, enum weir_order order,
		      bool closed);

struct writer_stats {
	uint64_t bytes;	     /* in files that are still there, the metadata apart */
	uint64_t records;    /* written, weir's own included */
	uint32_t parts;	     /* begun */
	uint32_t first_part; /* the oldest that is still there */
	int error;	     /* the first: -errno */
};
void writer__stats(const struct writer *writer, struct writer_stats *out);

#endif /* WEIR_CAPTURE_WRITER_H */
