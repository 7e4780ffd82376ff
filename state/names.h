/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * names.h - each string once, however many hold it. Paths repeat a lot: a thousand shells, one
 * "/bin/sh".
 */
#ifndef WEIR_STATE_NAMES_H
#define WEIR_STATE_NAMES_H

#include <stdint.h>

#include "state/hash.h"

struct name {
	struct hash_node node;
	uint32_t refs;
	uint32_t len;
	char text[]; /* NUL-terminated */
};

struct names {
	struct hash hash;
	uint64_t seed;
};

int names__init(struct names *names, struct budget *budget);
void names__free(struct names *names);

/* The name of `len` bytes, with a reference for the caller. NULL: no memory. */
struct name *names__get(struct names *names, const char *text, size_t len);

/* NULL is allowed, in both. */
struct name *name__ref(struct name *name);
void names__put(struct names *names, struct name *name);

static inline const char *name__text(const struct name *name)
{
	return name ? name->text : NULL;
}

#endif /* WEIR_STATE_NAMES_H */
