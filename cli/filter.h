/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * filter.h - what of the selected events is worth a line: asked once names and results are known.
 *
 * What could be decided in the kernel was decided there; this is the rest.
 */
#ifndef WEIR_CLI_FILTER_H
#define WEIR_CLI_FILTER_H

#include "cli/options.h"
#include "cli/paths.h"
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
	/* Each of `paths` as it stands, as seen from here, and where its links lead. */
	char *targets[3 * OPTION_LIST_MAX];
	unsigned nr_targets;
};

extern const struct option_def filter__options[];

/* What the paths of a call are relative to; NULL: not known. */
struct filter_places {
	const struct sink_fds *fds;
	const char *cwd;
};

/* Resolve names. false: one means nothing, and that was said. */
bool filter__check(struct filter *filter, const struct command_def *command);

void filter__free(struct filter *filter);

/* Does it turn anything away at all? */
bool filter__is_set(const struct filter *filter);

/* Does it ask for something that only a whole call has? */
bool filter__needs_calls(const struct filter *filter);

/* The first option that does; NULL: none. */
const char *filter__of_calls(const struct filter *filter);

/* Is this the id or name that --container asks for? NULL: of no container. */
bool filter__is_container(const struct filter *filter, const char *container);

/* Is this the path of the cgroup that --cgroup asks for, or of one below it? NULL: unknown. */
bool filter__is_in_cgroup(const struct filter *filter, const char *path);

/* Does it have to know what descriptors stand for? */
bool filter__needs_fds(const struct filter *filter);

/* task NULL: unknown. call NULL: the event is no system call put together; `places` is of its call. */
bool filter__wants(const struct filter *filter, const struct sink_event *item,
		   const struct task_view *task, const struct weir_call *call,
		   const struct filter_places *places);

#endif /* WEIR_CLI_FILTER_H */
