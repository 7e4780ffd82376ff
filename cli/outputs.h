/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * outputs.h - where the trace and its account go: -o and --ledger.
 *
 * A file that can't be made or written is said before any work, and not when what should stand in it
 * is there; and what stood in one before a trace that could not begin is still there.
 */
#ifndef WEIR_CLI_OUTPUTS_H
#define WEIR_CLI_OUTPUTS_H

#include "cli/options.h"

struct outputs {
	const char *trace_path, *ledger_path; /* NULL: not asked for; "-": standard output */
	int trace_fd, ledger_fd;	      /* -1: not open */
};

/* `otherwise`: where the trace goes without -o; `writes`: will it have a line? false: said why not. */
bool outputs__open(const struct command_def *command, struct outputs *outputs, int otherwise,
		   bool writes);

/* The trace begins: what the files held goes. false: said why not. */
bool outputs__empty(const struct command_def *command, const struct outputs *outputs);

void outputs__close(struct outputs *outputs);

#endif /* WEIR_CLI_OUTPUTS_H */
