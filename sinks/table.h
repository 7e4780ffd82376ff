/* SPDX-License-Identifier: BSD-2-Clause */
/* table.h - the sinks that there are, for sinks.c. */
#ifndef WEIR_SINKS_TABLE_H
#define WEIR_SINKS_TABLE_H

#include "sinks/sink.h"

/* Ends the line of a call: two records, maybe of two sources, written together or lost together. */
void sink__end_call(struct out *out, const struct weir_call *call);

extern const struct sink_ops sink_json, sink_text, sink_none;

#endif /* WEIR_SINKS_TABLE_H */
