/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reason.h - why something was refused: one sentence, with the numbers and the way out.
 *
 * The library prints nothing, and an errno names no limit. So a caller who wants to know hands in
 * room for a sentence.
 */
#ifndef WEIR_SOURCE_REASON_H
#define WEIR_SOURCE_REASON_H

#include <stddef.h>

struct reason {
	char *text; /* NULL: nobody wants to know */
	size_t len;
};

/* Puts the sentence there, cut off at its length, and returns `result`. */
__attribute__((format(printf, 3, 4))) int reason__say(const struct reason *reason, int result,
						      const char *format, ...);

#endif /* WEIR_SOURCE_REASON_H */
