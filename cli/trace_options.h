/* SPDX-License-Identifier: BSD-2-Clause */
/* trace_options.h - what `weir trace` can be told. */
#ifndef WEIR_CLI_TRACE_OPTIONS_H
#define WEIR_CLI_TRACE_OPTIONS_H

#include "cli/live.h"
#include "cli/viewer.h"

struct trace_options {
	struct live_options live;
	struct viewer_options viewer;
	struct option_list maps;
	const char *tracepoint_filter;
	bool watermarks, list, all;
};

extern const struct command_def trace_command;

/* What -e means when there is none; NULL: nothing. */
const char *trace_options__default_events(const struct trace_options *opts,
					  const struct live *live);

#endif /* WEIR_CLI_TRACE_OPTIONS_H */
