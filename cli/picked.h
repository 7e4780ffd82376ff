/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * picked.h - what of a recording is asked for: processes and calls, told by the records alone.
 *
 * In a trace the kernel decides this before it writes a record; here it is done again, by the same
 * rules: a process that a picked one forks is picked, an event of two processes is that of either.
 */
#ifndef WEIR_CLI_PICKED_H
#define WEIR_CLI_PICKED_H

#include "cli/options.h"
#include "probes/probes.h"
#include "state/tasks.h"

#include <weir/event.h>

struct picked {
	uint64_t *pids; /* a bit each; NULL: all processes */
	bool follow;
	const struct probes_selection *calls; /* NULL: all calls */
	uint64_t from_ns;		      /* what is before it only changes tables */
	struct tasks *tasks;		      /* of calls, only those of this user; NULL: any */
	uint32_t uid;
};

/* -p PID[,PID]. false: no number, or no memory, and that was said. */
bool picked__pids(const struct command_def *command, const struct option_list *words,
		  struct picked *picked);
/* The same by number, and no other until more are added. false: no memory. */
bool picked__begin(struct picked *picked, const uint32_t *pids, uint32_t count);
void picked__add(struct picked *picked, uint32_t pid);
bool picked__has(const struct picked *picked, uint32_t pid);
void picked__free(struct picked *picked);

/* Of each record, in stream order. */
bool picked__wants(void *picked, const struct weir_event *event);

#endif /* WEIR_CLI_PICKED_H */
