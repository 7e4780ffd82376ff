// SPDX-License-Identifier: BSD-2-Clause
/*
 * null.c - the sink that writes nothing: for the account alone, and to measure what the rest costs.
 */
#include "sinks/table.h"

const struct sink_ops sink_none = {.name = "none"};
