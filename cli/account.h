/* SPDX-License-Identifier: BSD-2-Clause */
/* account.h - a stream's ledger, written out. */
#ifndef WEIR_CLI_ACCOUNT_H
#define WEIR_CLI_ACCOUNT_H

#include "cli/options.h"

#include <stdbool.h>

#include <weir/stream.h>

struct out;

/*
 * What there is so far: two lines for people, or one JSON object; neither ends in a newline. 0 or
 * -ENOMEM.
 */
int account__put(const struct weir_stream *stream, struct out *out, bool json);

enum account_form {
	ACCOUNT_TEXT,
	ACCOUNT_JSON,
	ACCOUNT_EVENT, /* JSON among the lines of a trace: with `event`, as they have */
};

/* One line to a descriptor, or two of text to a terminal. 0 or -errno. */
int account__write(const struct weir_stream *stream, int fd, enum account_form form);

/* On standard error: for people where there is a terminal, and else as the trace is, at trace_fd. */
int account__say(const struct weir_stream *stream, bool json, int trace_fd);

/*
 * --strict: was anything lost? That is said, as what makes the status. reader_gone: the trace's reader
 * went away, and what it did not want is no loss.
 */
bool account__is_loss(const struct command_def *command, const struct weir_stream *stream,
		      bool reader_gone);

#endif /* WEIR_CLI_ACCOUNT_H */
