/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * live.h - the live kernel as a command sees it: a selection, its probes, a stream, the process
 * table, and a COMMAND to run. What is done with the events is the command's affair.
 *
 * Functions that return bool have said why on false.
 */
#ifndef WEIR_CLI_LIVE_H
#define WEIR_CLI_LIVE_H

#include <limits.h>

#include "cli/buffers.h"
#include "cli/command.h"
#include "cli/filter.h"
#include "cli/options.h"
#include "cli/selection.h"
#include "probes/probes.h"
#include "state/cgroupfs.h"
#include "state/tasks.h"

#include <weir/stream.h>

/* What to look at, how much of it, and for how long. */
struct live_options {
	struct option_list events, pids;
	uint64_t duration_ns, buffer, string_limit;
	bool children, no_follow, no_wait, verbose;
};

/* Of struct live_options: which processes, and the rest; -e is the command's. */
extern const struct option_def live__process_options[], live__options[];

struct live {
	/* The command's, before anything is called. */
	const struct command_def *def;
	struct live_options *opts;
	const struct filter *filter; /* checked; NULL: none */
	bool has_command;
	/* Each thread that ran before, behind the table's own look at it. NULL: nobody asks. */
	void (*seeded)(void *ctx, const struct weir_seed *seed);
	void *ctx;

	struct probes_selection selection;
	uint32_t pids[SELECTION_PIDS_MAX + 1];
	struct command command;
	const char *name; /* COMMAND, as it was given */
	char program[PATH_MAX];
	bool command_began, said_waiting;
	struct buffers buffers;
	uint64_t end_ns; /* of -d; UINT64_MAX: there is none */

	struct weir_stream *stream;
	struct probes *probes;
	struct cgroupfs *cgroupfs;
	struct tasks *tasks;
};

/* Without -e: `process`, and with -p or COMMAND `process,signal,sys`. */
const char *live__default_events(const struct live *live);

/* otherwise: what is selected where -e selects nothing, or takes away; NULL: nothing. */
bool live__check(struct live *live, const char *otherwise);

/* COMMAND, whose words end with NULL: an exit status, EXIT_OK when there is such a program. */
int live__find_program(struct live *live, const char *name);

/* Forks COMMAND, if there is one, which waits. */
bool live__fork_command(struct live *live, char **argv);

/* The stream, with on_event and on_watermark, and the process table. */
bool live__open(struct live *live, struct weir_stream_opts *opts);

/* The probes, attached; the process table is seeded. */
bool live__attach(struct live *live);

/* All is attached: rights that are no longer needed are given up. */
bool live__settle(struct live *live);

/* With -v: whatever it is, it is being done now. */
void live__say_ready(const struct live *live, const char *doing);

/* Lets COMMAND go; -d begins. false: it could not be run, or a signal has ended weir before. */
bool live__start(struct live *live);

/* Is this event of COMMAND's process, from before its exec? It is weir's own then. In stream order. */
bool live__is_before_command(struct live *live, const struct weir_event *event);

/* A signal has come, the time of -d is over, or the processes that were asked for are gone. */
bool live__is_over(struct live *live);

/* What has come, or what comes before long. 0 or -errno. */
int live__poll(struct live *live);

/* Detach; deliver all that was published. 0 or -errno. */
int live__close(struct live *live);

/* That COMMAND still runs, if it does: nobody ends it for us, and its parent is gone. */
void live__say_running(struct live *live);

/* What COMMAND would have returned to its shell. */
int live__command_status(struct live *live);

void live__free(struct live *live);

#endif /* WEIR_CLI_LIVE_H */
