/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace_options.h - what `weir trace` can be told, and which of it makes sense together.
 */
#ifndef WEIR_CLI_TRACE_OPTIONS_H
#define WEIR_CLI_TRACE_OPTIONS_H

#include "cli/filter.h"
#include "cli/options.h"

struct trace_options {
	struct option_list events, pids, maps;
	const char *tracepoint_filter;
	const char *output, *format, *ledger, *time, *color;
	uint64_t duration_ns, max_events, buffer, string_limit;
	struct filter filter;
	bool watermarks, strict, verbose, pair, fds, summary, summary_only, no_wait, list, all,
		children, no_follow;
};

extern const struct command_def trace_command;

/* Fill in the defaults. false: they contradict each other or mean nothing, and that was said. */
bool trace_options__check(struct trace_options *opts);

bool trace_options__is_json(const struct trace_options *opts);

/* Are system calls counted, so that there is a table? */
bool trace_options__counts(const struct trace_options *opts);

/* What -e means when there is none; NULL: nothing. */
const char *trace_options__default_events(const struct trace_options *opts, bool has_command);

#endif /* WEIR_CLI_TRACE_OPTIONS_H */
