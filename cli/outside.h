/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * outside.h - what comes into a trace through rings that are not weir's: tracepoints (-e tp:...) through
 * perf's, and maps of other people's programs (--map).
 *
 * The kernel does not know weir's selection there, so it is applied here; and their records bear no
 * numbers, so they are counted.
 */
#ifndef WEIR_CLI_OUTSIDE_H
#define WEIR_CLI_OUTSIDE_H

#include "cli/fencing.h"
#include "cli/maps.h"
#include "cli/options.h"
#include "cli/picked.h"
#include "probes/probes.h"
#include "probes/tracepoints.h"
#include "state/tasks.h"

struct outside_source;

struct outside {
	const struct command_def *command;
	struct tracepoints *tracepoints; /* NULL: none */
	const char *filter;		 /* of their fields, as the kernel has it; NULL: none */
	char *words[OPTION_LIST_MAX];	 /* what is left of each word of -e */
	struct maps maps;
	struct fencing fencing;
	struct picked picked; /* processes that are asked for; pids NULL: all */
	uint32_t command_pid; /* COMMAND's, until its exec: it is weir's own then */
	const uint32_t *left_out;
	uint32_t nr_left_out;
	struct weir_stream *stream;
	struct outside_source *sources; /* by index, as they are met */
	uint32_t nr_sources;
};

/* Take the tracepoints out of the words of -e, and open the maps. false: it was said. */
bool outside__choose(struct outside *outside, const struct command_def *command,
		     struct option_list *events, const struct option_list *maps);

/* Print what `operands`, patterns of tracepoints, stand for. An exit status. */
int outside__list(const struct command_def *command, char **operands);

bool outside__has_tracepoints(const struct outside *outside);
/* Is there anything? */
bool outside__is_used(const struct outside *outside);

/* Of which processes: as the probes have it. COMMAND's pid, or 0. false: it was said. */
bool outside__select(struct outside *outside, const struct probes_selection *selection,
		     uint32_t command_pid);
/* ... and what those that are there have forked before. */
void outside__add_children(struct outside *outside, struct tasks *tasks);

/* Rings into the stream; they are written from here on. false: it was said. */
bool outside__connect(struct outside *outside, struct weir_stream *stream, size_t ring_bytes);

/*
 * Is an event of one of these sources? Then it is numbered: *own and *gap are room for it, and stand in
 * its place.
 */
bool outside__owns(struct outside *outside, const struct weir_event *event, struct weir_event *own,
		   struct weir_gap *gap);

/* A lifecycle record, in stream order. */
void outside__follow(struct outside *outside, const struct weir_event *event);

#define OUTSIDE_FILTERED 1

/*
 * A record that is owned; nr is then a number below -1, another for each event that there is. 0, OUTSIDE_FILTERED: of
 * no process that is asked for, or -EBADMSG.
 */
int outside__decode(struct outside *outside, const struct weir_event *event, struct tasks *tasks,
		    struct weir_decoded *out);

/* Before the stream is let go of. */
void outside__stop(struct outside *outside);
void outside__free(struct outside *outside);

#endif /* WEIR_CLI_OUTSIDE_H */
