/* SPDX-License-Identifier: BSD-2-Clause */
/* nearest.h - which of the words that there are is most like the one that was written. */
#ifndef WEIR_PROBES_NEAREST_H
#define WEIR_PROBES_NEAREST_H

#include <stdbool.h>
#include <stddef.h>

#define NEAREST_LEN_MAX 64 /* longer words are like no other */

struct nearest {
	const char *word;
	size_t distance; /* of the best so far: it has to be less than this */
};

/* So that one letter in three may be wrong: more is a guess. */
struct nearest nearest__to(const char *word);

/* Is it the best so far? */
bool nearest__is(struct nearest *nearest, const char *candidate);

#endif /* WEIR_PROBES_NEAREST_H */
