/* SPDX-License-Identifier: BSD-2-Clause */
/* progress.h - how a recording goes, in one line of the terminal that is written over each second. */
#ifndef WEIR_CLI_PROGRESS_H
#define WEIR_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/stream.h>

struct writer;

struct progress {
	bool shown, drawn;
	uint64_t last_ns, last_events;
};

/* shown: there is a terminal to show it on. */
void progress__init(struct progress *progress, bool shown);

/* If the last time was a second ago. */
void progress__draw(struct progress *progress, const struct weir_stream *stream,
		    const struct writer *writer, uint64_t now_ns);

/* The line is empty again, for what is to be said. */
void progress__wipe(struct progress *progress);

#endif /* WEIR_CLI_PROGRESS_H */
