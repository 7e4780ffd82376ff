/* SPDX-License-Identifier: BSD-2-Clause */
/* json.h - what the sinks that write JSON share. */
#ifndef WEIR_SINKS_JSON_H
#define WEIR_SINKS_JSON_H

#include <stddef.h>

struct out;

/*
 * A string of any length and any bytes, with its quotes: valid UTF-8 that can be turned back.
 * A byte that is no UTF-8 becomes \xNN and a backslash is doubled, both before JSON's own escapes.
 */
void json__string(struct out *out, const char *bytes, size_t len);

#endif /* WEIR_SINKS_JSON_H */
