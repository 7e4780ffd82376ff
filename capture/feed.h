/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * feed.h - a capture -> a stream: its packets, one after the other, as sources "life0", "cpu0", ...
 *
 * Memory is a packet for each CPU, two at most, however long the capture is. What can't be read is told as a gap
 * at its place. Prints nothing, starts no thread.
 */
#ifndef WEIR_CAPTURE_FEED_H
#define WEIR_CAPTURE_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/probes.h>
#include <weir/stream.h>

#include "capture/reader.h"

struct feed;

typedef void (*feed_task_fn)(void *ctx, const struct weir_seed *seed, const char *exe,
			     const char *cgroups);

struct feed_opts {
	/*
	 * Only what happened in [from_ns, to_ns]; 0 and UINT64_MAX are all. Before from_ns come only
	 * records that change the process table; they are as many as there are since the part began.
	 */
	uint64_t from_ns, to_ns;
};

/* The stream is a new one, and no source of another kind may come to it. Errors: ENOMEM. */
struct feed *feed__new(struct reader *reader, struct weir_stream *stream,
		       const struct feed_opts *opts);
/* Before weir_stream__free(). */
void feed__free(struct feed *feed);

/* Threads that there were when what is fed begins; exe and cgroups NULL: unknown. 0 or -errno. */
int feed__tasks(struct feed *feed, feed_task_fn fn, void *ctx);

/*
 * Deliver some more. 1: there is more; 0: all is delivered, and the account is final; -errno: the
 * callback's, or ENOMEM.
 */
int feed__step(struct feed *feed);

/* How far that has come, of how much. */
void feed__progress(const struct feed *feed, uint64_t *done_bytes, uint64_t *all_bytes);

/* What the notes say of the end; asked when all is delivered. */
struct feed_end {
	bool closed; /* the capture was ended in order */
	uint64_t
		complete_ns; /* nothing up to there is missing but what is told as a gap; 0: unknown */
};
struct feed_end feed__end(const struct feed *feed);

#endif /* WEIR_CAPTURE_FEED_H */
