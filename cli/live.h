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
#include "cli/options.h"
#include "cli/selection.h"
#include "probes/probes.h"
#include "state/cgroupfs.h"
#include "state/tasks.h"

#include <weir/stream.h>

/* The words that say what to look at; a command's options point into it. */
struct live_options {
	struct option_list events, pids;
	const char *cgroup, *user;
	uint64_t buffer, string_limit;
	bool children, no_follow, no_wait;
};

struct live {
	const struct command_def *def;
	struct probes_selection selection;
	uint32_t pids[SELECTION_PIDS_MAX + 1];
	const char *cgroup;
	struct command command;
	char program[PATH_MAX];
	bool has_command, no_wait;
	bool command_began;
	struct buffers buffers;

	struct weir_stream *stream;
	struct probes *probes;
	struct cgroupfs *cgroupfs;
	struct tasks *tasks;

	/* Each thread that ran before, behind the table's own look at it. NULL: nobody asks. */
	void (*seeded)(void *ctx, const struct weir_seed *seed);
	void *ctx;
};

/* Without -e: `process`, and with -p or COMMAND `process,signal,sys`. */
bool live__check(struct live *live, const struct live_options *opts);

/* COMMAND, whose words end with NULL: an exit status, EXIT_OK when there is such a program. */
int live__find_program(struct live *live, const char *name);

/* Forks COMMAND, if there is one, which waits. */
bool live__fork_command(struct live *live, char **argv);

/* The stream, with on_event and on_watermark, and the process table. */
bool live__open(struct live *live, struct weir_stream_opts *opts);

/* The probes, attached; the process table is seeded. Rights that are no longer needed are given up. */
bool live__attach(struct live *live);

/* Lets COMMAND go. false: it could not be run, or a signal has ended weir before. */
bool live__start_command(struct live *live, const char *name);

/* Is this event of COMMAND's process, from before its exec? It is weir's own then. In stream order. */
bool live__is_before_command(struct live *live, const struct weir_event *event);

/* The processes that were asked for are gone. */
bool live__all_ended(struct live *live);

/* Detach; deliver all that was published. 0 or -errno. */
int live__close(struct live *live);

/* What COMMAND would have returned to its shell. */
int live__command_status(struct live *live);

void live__free(struct live *live);

#endif /* WEIR_CLI_LIVE_H */
