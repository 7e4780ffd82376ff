/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fdnames.h - -y and -P: what the descriptors in a call stand for.
 *
 * Puts /proc and the table of descriptors together. The table has to see every call that opens or
 * closes one, so these are traced with those that were asked for, and not shown.
 */
#ifndef WEIR_CLI_FDNAMES_H
#define WEIR_CLI_FDNAMES_H

#include "probes/probes.h"
#include "sinks/sink.h"

struct fdnames;

/*
 * Adds to the selection what the table needs, where there are calls at all. Not is_live: /proc is of
 * another time, and only what calls open has a name. NULL: ENOMEM.
 */
struct fdnames *fdnames__new(struct probes_selection *selection, bool is_live);
void fdnames__free(struct fdnames *names);

/* Was this call asked for? */
bool fdnames__shows(const struct fdnames *names, const struct weir_call *call);

/* A process that is about to be traced: look at it before it does anything. */
void fdnames__meet(struct fdnames *names, uint32_t pid);

/* Any event, in stream order. */
void fdnames__apply(struct fdnames *names, const struct weir_event *event);

/* The working directory that the last call began in; NULL: not known. */
const char *fdnames__cwd(const struct fdnames *names);

/* A call, shown or not; what its descriptors stand for, until the next one. */
const struct sink_fds *fdnames__call(struct fdnames *names, const struct weir_call *call,
				     const struct weir_decoded *decoded);

#endif /* WEIR_CLI_FDNAMES_H */
