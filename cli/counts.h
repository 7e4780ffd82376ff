/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counts.h - -c: calls counted instead of shown, as a table at the end, or all the time on a terminal.
 */
#ifndef WEIR_CLI_COUNTS_H
#define WEIR_CLI_COUNTS_H

#include "sinks/out.h"
#include "sinks/sink.h"

#include <weir/stream.h>

struct counts;

struct counts *counts__new(void); /* NULL: ENOMEM */
void counts__free(struct counts *counts);

/* A call that was asked for. */
void counts__add(struct counts *counts, const struct weir_call *call,
		 const struct sink_event *item);

/* What is no call, and asked for all the same: it has a row by its nr, and no time. */
void counts__add_event(struct counts *counts, const struct sink_event *item);

/* All of it, and the account beside it: as text, or as one JSON object. */
void counts__print(struct counts *counts, const struct weir_stream *stream, struct out *out,
		   bool json);

/* As much as fits on the terminal `fd`, in the place of what was there. */
void counts__draw(struct counts *counts, const struct weir_stream *stream, struct out *out, int fd);

/* Wipe what counts__draw() has drawn. */
void counts__wipe(struct out *out);

#endif /* WEIR_CLI_COUNTS_H */
