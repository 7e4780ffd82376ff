/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * notices.c - what the stream itself has to say, gaps and clock steps, until its place has come.
 *
 * Promises that to tell of a loss needs no memory that could be refused (G4, G5): when as many wait
 * as have room, those of one source and cause are joined. Counts stay exact, bounds widen.
 */
#include "stream/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NOTICES_MAX 16384

static void drop_delivered_notices(struct weir_stream *s)
{
	s->nr_notices -= s->first_notice;
	memmove(s->notices, s->notices + s->first_notice, s->nr_notices * sizeof(*s->notices));
	s->first_notice = 0;
}

/*
 * All that may ever wait: so many of their own, and beyond that at least one for each source and
 * cause to be joined to. So telling of a loss never needs memory.
 */
int stream__room_for_notices(struct weir_stream *s, size_t rings)
{
	size_t most = s->memory_max / 8 / sizeof(*s->notices);
	size_t max = most < NOTICES_MAX ? most : NOTICES_MAX;
	size_t cap = max + (rings + 1) * WEIR_LOST_CAUSES;
	struct notice *grown = realloc(s->notices, cap * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	s->notices = grown;
	s->cap_notices = cap;
	s->max_notices = max;
	return 0;
}

int stream__add_notice(struct weir_stream *s, const struct notice *notice)
{
	if (s->nr_notices == s->cap_notices && s->first_notice)
		drop_delivered_notices(s);
	if (s->nr_notices == s->cap_notices)
		return -ENOMEM;
	s->notices[s->nr_notices++] = *notice;
	s->notices_unsorted = true;
	return 0;
}

/* Widen the newest waiting gap of this source and cause by another. */
static bool join_gap(struct weir_stream *s, uint32_t source, uint64_t seq,
		     const struct weir_gap *gap)
{
	for (size_t i = s->nr_notices; i-- > s->first_notice;) {
		struct notice *notice = &s->notices[i];

		if (notice->kind != WEIR_KIND_GAP || notice->source != source ||
		    notice->gap.cause != gap->cause)
			continue;
		notice->gap.lost += gap->lost;
		if (gap->bound > notice->gap.bound)
			notice->gap.bound = gap->bound;
		if (seq < notice->seq)
			notice->seq = seq;
		if (gap->seq_end > notice->gap.seq_end)
			notice->gap.seq_end = gap->seq_end;
		if (gap->from_ns < notice->gap.from_ns)
			notice->gap.from_ns = gap->from_ns;
		if (gap->to_ns > notice->gap.to_ns)
			notice->gap.to_ns = notice->stamp_ns = gap->to_ns;
		s->notices_unsorted = true;
		return true;
	}
	return false;
}

int stream__add_gap(struct weir_stream *s, const struct ring *ring, uint64_t seq,
		    const struct weir_gap *gap)
{
	uint32_t source = ring ? ring->source : WEIR_SOURCE_NONE;
	struct notice notice = {
		.stamp_ns = gap->to_ns,
		.seq = seq,
		.source = source,
		.cpu = ring ? ring->cpu : -1,
		.kind = WEIR_KIND_GAP,
		.gap = *gap,
	};

	/* Losses that wait must not grow without bound either: counts stay, bounds widen. */
	if (s->nr_notices - s->first_notice >= s->max_notices && join_gap(s, source, seq, gap))
		return 0;
	return stream__add_notice(s, &notice);
}

static int compare_notices(const void *a, const void *b)
{
	const struct notice *x = a, *y = b;

	if (x->stamp_ns != y->stamp_ns)
		return x->stamp_ns < y->stamp_ns ? -1 : 1;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return (x->seq > y->seq) - (x->seq < y->seq);
}

void stream__sort_notices(struct weir_stream *s)
{
	if (!s->notices_unsorted)
		return;
	drop_delivered_notices(s);
	qsort(s->notices, s->nr_notices, sizeof(*s->notices), compare_notices);
	s->notices_unsorted = false;
}

const struct notice *stream__next_notice(const struct weir_stream *s)
{
	return s->first_notice < s->nr_notices ? &s->notices[s->first_notice] : NULL;
}

/* The stamp from which on records have to be compared with the next notice. */
uint64_t stream__notice_from_ns(const struct weir_stream *s)
{
	const struct notice *notice = stream__next_notice(s);

	return notice ? notice->stamp_ns : UINT64_MAX;
}
