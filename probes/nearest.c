/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/nearest.h"

#include <stdint.h>
#include <string.h>

struct nearest nearest__to(const char *word)
{
	return (struct nearest){.word = word, .distance = strlen(word) / 3 + 1};
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* How many letters to insert, leave out, replace or swap to get from one word to the other. */
static size_t distance(const char *a, const char *b)
{
	size_t rows[3][NEAREST_LEN_MAX + 1], len_a = strlen(a), len_b = strlen(b);

	if (len_a > NEAREST_LEN_MAX || len_b > NEAREST_LEN_MAX)
		return SIZE_MAX;
	for (size_t j = 0; j <= len_b; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= len_a; i++) {
		size_t *row = rows[i % 3], *above = rows[(i - 1) % 3];

		row[0] = i;
		for (size_t j = 1; j <= len_b; j++) {
			row[j] = least(above[j - 1] + (a[i - 1] != b[j - 1]),
				       least(above[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = least(row[j], rows[(i - 2) % 3][j - 2] + 1);
		}
	}
	return rows[len_a % 3][len_b];
}

bool nearest__is(struct nearest *nearest, const char *candidate)
{
	size_t d = distance(nearest->word, candidate);

	if (d >= nearest->distance)
		return false;
	nearest->distance = d;
	return true;
}
