/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * viewer.h - events that come out of a stream -> lines: which of them are wanted, calls put together,
 * where the lines go, and what is said at the end.
 *
 * Each record that is delivered is printed, or counted as filtered or lost: so the ledger closes.
 * Functions that return bool have said why on false.
 */
#ifndef WEIR_CLI_VIEWER_H
#define WEIR_CLI_VIEWER_H

#include "cli/outputs.h"
#include "cli/printer.h"
#include "probes/probes.h"
#include "sinks/style.h"
#include "state/calls.h"

struct viewer_options {
	struct filter filter;
	const char *output, *format, *ledger, *time, *color;
	uint64_t max_events;
	bool fds, summary, summary_only, pair, strict;
};

/* Of struct viewer_options, but for the filter, and for -o, which the command explains. */
extern const struct option_def viewer__options[];

struct viewer {
	/* The command's, before anything is called. */
	const struct command_def *def;
	struct viewer_options *opts;
	bool is_past; /* it was recorded: nothing that /proc says is of it */
	/* More that a record has to be; asked of each, in stream order. NULL: nothing. */
	bool (*wants)(void *ctx, const struct weir_event *event);
	void *ctx;

	struct printer printer;
	struct outputs outputs;
	struct style style;
	struct weir_stream *stream;
	struct calls *calls; /* NULL: enter and exit are printed apart */
	uint32_t types;	     /* bit 1 << enum weir_type */
	uint64_t printed;
	bool has_news; /* something was printed; for whoever sets it back */
};

/* Fill in the defaults. false: they contradict each other or mean nothing. */
bool viewer__check(struct viewer *viewer);

bool viewer__is_json(const struct viewer *viewer);

/* otherwise: where the trace goes without -o. */
bool viewer__open_outputs(struct viewer *viewer, int otherwise);

/* Of these types, and with what has to be seen for that: the selection grows by it. */
bool viewer__open(struct viewer *viewer, struct weir_stream *stream, struct tasks *tasks,
		  struct probes_selection *selection);

/* As weir_event_fn. */
int viewer__event(struct viewer *viewer, const struct weir_event *event);

/*
 * Of a source that has no part in calls: a gap or the like, and a record that somebody else has decoded,
 * err being what came of it: 0, PRINTER_FILTERED or -EBADMSG.
 */
void viewer__notice(struct viewer *viewer, const struct weir_event *event);
void viewer__decoded(struct viewer *viewer, const struct weir_event *event, int err,
		     const struct weir_decoded *decoded);

/* As many as were asked for are printed, or nobody takes them. */
bool viewer__is_done(const struct viewer *viewer);

/* The account, if SIGUSR1 has asked for it. */
void viewer__answer(const struct viewer *viewer);

/* The stream ended at stamp_ns: what is still open comes out, and the tables. */
void viewer__finish(struct viewer *viewer, uint64_t stamp_ns);

/* What went wrong, and the account. 0 or -errno. */
int viewer__report(struct viewer *viewer);

/* --strict, and something was lost. */
bool viewer__is_loss(const struct viewer *viewer);

void viewer__free(struct viewer *viewer);

#endif /* WEIR_CLI_VIEWER_H */
