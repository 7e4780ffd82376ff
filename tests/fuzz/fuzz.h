/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz.h - what the fuzz targets share: an input that is taken apart from the front, and claims that
 * end the run where they do not hold.
 */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#define HOLDS(claim)             \
	do {                     \
		if (!(claim))    \
			abort(); \
	} while (0)

struct input {
	const uint8_t *at;
	size_t left;
};

/* The next bytes; zeros behind the end. */
static inline void input__take(struct input *in, void *to, size_t len)
{
	size_t have = len < in->left ? len : in->left;

	memset(to, 0, len);
	if (have)
		memcpy(to, in->at, have);
	in->at += have;
	in->left -= have;
}

#endif /* FUZZ_FUZZ_H */
