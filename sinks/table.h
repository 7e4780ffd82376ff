/* SPDX-License-Identifier: BSD-2-Clause */
/* table.h - the sinks that there are, for sinks.c. */
#ifndef WEIR_SINKS_TABLE_H
#define WEIR_SINKS_TABLE_H

#include "sinks/sink.h"

extern const struct sink_ops sink_json, sink_text, sink_none;

#endif /* WEIR_SINKS_TABLE_H */
