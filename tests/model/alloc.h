/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * alloc.h - what the library allocates: counted, and refused on demand.
 *
 * The linker turns each call of the wrapped functions (meson.build) into one of alloc.c; only what
 * happens while model_in_library is set counts.
 */
#ifndef MODEL_ALLOC_H
#define MODEL_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that the library has taken since alloc__begin(), and the most that it ever had of them. */
void alloc__begin(void);
size_t alloc__live_bytes(void);
size_t alloc__peak_bytes(void);

/* Blocks that it has, in all. */
size_t alloc__live_blocks(void);

/* Attempts since the last call of alloc__refuse(). */
uint64_t alloc__attempts(void);

/* Let attempt number `nth` (from 1) fail, and with `from_there` all after it; 0: none. */
void alloc__refuse(uint64_t nth, bool from_there);

/* Has an attempt been refused since then? */
bool alloc__has_refused(void);

#endif /* MODEL_ALLOC_H */
