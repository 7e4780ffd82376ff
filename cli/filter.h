/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * filter.h - what of the selected events is worth a line: asked once names and results are known.
 *
 * What could be decided in the kernel was decided there; this is the rest.
 */
#ifndef WEIR_CLI_FILTER_H
#define WEIR_CLI_FILTER_H

#include "cli/options.h"
#include "sinks/sink.h"
#include "state/tasks.h"

/* As the options have them; all of them have to hold. */
struct filter {
	struct option_list comms; /* globs: one of them */
	struct option_list paths; /* one of them is an argument of the call */
	const char *container;	  /* id, or how it begins */
	const char *cgroup;	  /* path; what is below it counts */
	const char *user;	  /* name or number */
	const char *errno_name;
	uint64_t min_duration_ns;
	bool failed;

	uint32_t uid; /* filter__check() fills these */
	int error;
};

/* Resolve names. false: one means nothing, and that was said. */
bool filter__check(struct filter *filter, const struct command_def *command);

/* Does it turn anything away at all? */
bool filter__is_set(const struct filter *filter);

/* Does it ask for something that only a whole call has? */
bool filter__needs_calls(const struct filter *filter);

/* task NULL: unknown. call NULL: the event is no system call put together. */
bool filter__wants(const struct filter *filter, const struct sink_event *item,
		   const struct task_view *task, const struct weir_call *call);

#endif /* WEIR_CLI_FILTER_H */
