/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * viewer.h - events that come out of a stream -> lines: which of them are wanted, calls put together.
 *
 * Each record that is delivered is printed, or counted as filtered or lost: so the ledger closes.
 */
#ifndef WEIR_CLI_VIEWER_H
#define WEIR_CLI_VIEWER_H

#include "cli/printer.h"
#include "state/calls.h"

struct viewer {
	struct printer printer; /* stream, tasks, sink and out are the caller's */
	struct weir_stream *stream;
	struct calls *calls; /* NULL: enter and exit are printed apart */
	uint32_t types;	     /* bit 1 << enum weir_type */
	/* More that a record has to be; asked of each, in stream order. NULL: nothing. */
	bool (*wants)(void *ctx, const struct weir_event *event);
	void *ctx;
	uint64_t max_events; /* 0: no end */
	uint64_t printed;
};

/* calls: halves of calls are put together first. false: no memory. */
bool viewer__open(struct viewer *viewer, bool calls);
void viewer__close(struct viewer *viewer);

/* As weir_event_fn. */
int viewer__event(struct viewer *viewer, const struct weir_event *event);

/* The stream ended at stamp_ns: what is still open comes out. */
void viewer__finish(struct viewer *viewer, uint64_t stamp_ns);

bool viewer__has_enough(const struct viewer *viewer);

#endif /* WEIR_CLI_VIEWER_H */
