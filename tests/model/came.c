// SPDX-License-Identifier: BSD-2-Clause
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "came.h"

static int compare_u64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

int came__compare(const void *left, const void *right)
{
	const struct came *a = left, *b = right;

	if (a->stamp_ns != b->stamp_ns)
		return compare_u64(a->stamp_ns, b->stamp_ns);
	if (a->source != b->source)
		return compare_u64(a->source, b->source);
	return compare_u64(a->seq, b->seq);
}

void came__feed(const char *records, void (*put)(void *ctx, uint32_t source, uint64_t stamp_ns),
		void *ctx)
{
	const char *at = records;
	unsigned long long stamp;
	unsigned int source;
	int used;

	while (sscanf(at, " %llu#%u%n", &stamp, &source, &used) == 2) {
		put(ctx, source, stamp);
		at += used;
	}
	assert_string_equal(at, "");
}

static void render(FILE *to, const struct came *came)
{
	static const char *const bounds[] = {"*", "*<=", "*?"};

	if (came->kind == WEIR_KIND_GAP)
		fprintf(to, "(%" PRIu64 ",%" PRIu64 "]#%d%s%" PRIu64, came->gap.from_ns,
			came->gap.to_ns, (int)came->source, bounds[came->gap.bound],
			came->gap.lost);
	else
		fprintf(to, "%" PRIu64 "#%d", came->stamp_ns, (int)came->source);
	if (came->mark & WEIR_MARK_LATE)
		fputc('!', to);
	if (came->mark & WEIR_MARK_AHEAD)
		fputc('^', to);
}

void came__expect(const struct came *came, uint64_t count, uint64_t *rendered, const char *events)
{
	char *text = NULL;
	size_t len;
	FILE *to = open_memstream(&text, &len);
	uint64_t first = *rendered;

	if (!to)
		abort();
	for (; *rendered < count; ++*rendered) {
		if (*rendered > first)
			fputc(' ', to);
		render(to, &came[*rendered]);
	}
	fclose(to);
	assert_string_equal(text, events);
	free(text);
}

void *grow(void *array, uint64_t have, uint64_t *cap, size_t size)
{
	if (have < *cap)
		return array;
	*cap = *cap ? *cap * 2 : 16;
	array = realloc(array, *cap * size);
	if (!array)
		abort();
	return array;
}
