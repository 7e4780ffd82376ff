/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * open_calls.h - in which calls a process is when the trace of it begins: nobody saw it enter them,
 * but /proc/TID/syscall tells of those that it waits in.
 */
#ifndef WEIR_CLI_OPEN_CALLS_H
#define WEIR_CLI_OPEN_CALLS_H

#include "probes/probes.h"

/* Hands out an enter for each thread of the process that waits in a selected call. */
void open_calls__find(const struct probes_selection *selection, uint32_t pid,
		      void (*fn)(void *ctx, const struct weir_event *enter), void *ctx);

#endif /* WEIR_CLI_OPEN_CALLS_H */
