/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * printer.h - an event on its way from the stream to a sink: decoded, and told who it is of.
 */
#ifndef WEIR_CLI_PRINTER_H
#define WEIR_CLI_PRINTER_H

#include "cli/counts.h"
#include "cli/fdnames.h"
#include "cli/filter.h"
#include "sinks/out.h"
#include "sinks/sink.h"
#include "state/tasks.h"

#include <weir/stream.h>

struct printer {
	const struct sink_ops *sink;
	struct out *out;
	const struct weir_stream *stream;
	struct tasks *tasks;
	const struct filter *filter; /* NULL: everything */
	struct counts *counts;	     /* NULL: calls are not counted */
	struct fdnames *fdnames;     /* NULL: nobody has to know what descriptors are */
	bool shows_fds;
	const char **source_names; /* by source; filled as they are met */
	uint32_t nr_sources;
};

#define PRINTER_FILTERED 1

/*
 * A record. 0: printed, PRINTER_FILTERED: the filter turned it away. -EBADMSG: its payload makes no sense and nothing was printed. The sink's errors are in
 * out__error().
 */
int printer__record(struct printer *printer, const struct weir_event *event);

/* The same of one that somebody else has decoded. */
int printer__decoded(struct printer *printer, const struct weir_event *event,
		     const struct weir_decoded *decoded);

/* A system call with both its halves. Returns as above. */
int printer__call(struct printer *printer, const struct weir_call *call);

/* A gap or a clock step. */
void printer__notice(struct printer *printer, const struct weir_event *event);

void printer__watermark(struct printer *printer, uint64_t watermark_ns, enum weir_order order);

void printer__free(struct printer *printer);

#endif /* WEIR_CLI_PRINTER_H */
