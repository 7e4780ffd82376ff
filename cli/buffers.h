/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * buffers.h - --buffer: how large the rings are.
 *
 * What matters is a CPU's own ring, since a program that floods runs on one: it has to hold what
 * comes while the reader prints what came before. So the default grows with the CPUs, as far as
 * memory goes.
 */
#ifndef WEIR_CLI_BUFFERS_H
#define WEIR_CLI_BUFFERS_H

#include "cli/options.h"

struct buffers {
	uint64_t total;			/* of all CPUs */
	size_t life_bytes, event_bytes; /* of one CPU's rings */
	size_t outside_bytes;		/* of its ring for what is not weir's; 0: there is none */
};

/* `asked` 0: the default. false: it is too small or too large, and that was said. */
bool buffers__split(const struct command_def *command, uint64_t asked, struct buffers *buffers);

/*
 * Rings for events through perf take half of those for events, or all but little of it where the probes
 * have no events to send.
 */
void buffers__share(struct buffers *buffers, bool probes_have_events);

#endif /* WEIR_CLI_BUFFERS_H */
