/* SPDX-License-Identifier: BSD-2-Clause */
#include "ledger/seqs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int seqs__init(struct seqs *seqs)
{
	memset(seqs, 0, sizeof(*seqs));
	/* One more than the most: splitting a hole needs room before two others are joined. */
	seqs->holes = calloc(SEQS_HOLES_MAX + 1, sizeof(*seqs->holes));
	return seqs->holes ? 0 : -ENOMEM;
}

void seqs__start(struct seqs *seqs, uint64_t first)
{
	seqs->start = seqs->expect = seqs->settled = first;
}

void seqs__free(struct seqs *seqs)
{
	free(seqs->holes);
	memset(seqs, 0, sizeof(*seqs));
}

static void remove_hole(struct seqs *seqs, size_t i)
{
	memmove(&seqs->holes[i], &seqs->holes[i + 1], (--seqs->count - i) * sizeof(*seqs->holes));
}

static void join(struct hole *into, const struct hole *next)
{
	into->end = next->end;
	into->missing += next->missing;
	if (next->to_ns > into->to_ns)
		into->to_ns = next->to_ns;
	if (next->from_ns < into->from_ns)
		into->from_ns = next->from_ns;
}

/*
 * Bound the list. Every other pair is joined at once, so that a flood of single losses pays for it
 * once in thousands and not each time.
 */
static void keep_bounded(struct seqs *seqs)
{
	size_t kept = 0;

	if (seqs->count <= SEQS_HOLES_MAX)
		return;
	for (size_t i = 0; i < seqs->count; i += 2) {
		seqs->holes[kept] = seqs->holes[i];
		if (i + 1 < seqs->count)
			join(&seqs->holes[kept], &seqs->holes[i + 1]);
		kept++;
	}
	seqs->count = kept;
}

static void append_hole(struct seqs *seqs, uint64_t end, uint64_t to_ns)
{
	seqs->holes[seqs->count++] = (struct hole){
		.first = seqs->expect,
		.end = end,
		.missing = end - seqs->expect,
		.from_ns = seqs->last_ns,
		.to_ns = to_ns,
	};
	keep_bounded(seqs);
}

/* The hole that has `seq`; late numbers are young, so look from the end. */
static struct hole *find(struct seqs *seqs, uint64_t seq)
{
	size_t low = 0, high = seqs->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (seqs->holes[mid].end <= seq)
			low = mid + 1;
		else
			high = mid;
	}
	return low < seqs->count && seqs->holes[low].first <= seq ? &seqs->holes[low] : NULL;
}

static void split(struct seqs *seqs, struct hole *hole, uint64_t seq, uint64_t stamp_ns)
{
	size_t i = (size_t)(hole - seqs->holes);
	struct hole rest = *hole;

	rest.first = seq + 1;
	rest.missing = rest.end - rest.first;
	rest.from_ns = stamp_ns;
	hole->end = seq;
	hole->missing = seq - hole->first;
	hole->to_ns = stamp_ns;
	memmove(hole + 2, hole + 1, (seqs->count - i - 1) * sizeof(*hole));
	hole[1] = rest;
	seqs->count++;
	keep_bounded(seqs);
}

/* `seq` of this hole came after all. */
static void fill(struct seqs *seqs, struct hole *hole, uint64_t seq, uint64_t stamp_ns)
{
	bool whole = hole->missing == hole->end - hole->first;

	if (--hole->missing == 0) {
		remove_hole(seqs, (size_t)(hole - seqs->holes));
	} else if (!whole) {
		/* Joined holes no longer know which of their numbers are missing: only how many. */
	} else if (seq == hole->first) {
		hole->first++;
		hole->from_ns = stamp_ns;
	} else if (seq == hole->end - 1) {
		hole->end--;
		hole->to_ns = stamp_ns;
	} else {
		split(seqs, hole, seq, stamp_ns);
	}
}

bool seqs__see_slow(struct seqs *seqs, uint64_t seq, uint64_t stamp_ns)
{
	struct hole *hole;

	if ((int64_t)(seq - seqs->expect) >= 0) {
		if (seq != seqs->expect)
			append_hole(seqs, seq, stamp_ns);
		seqs->expect = seq + 1;
		seqs->last_ns = stamp_ns;
		seqs->seen++;
		return true;
	}
	hole = find(seqs, seq);
	if (!hole)
		return false;
	fill(seqs, hole, seq, stamp_ns);
	seqs->seen++;
	return true;
}

/*
 * A hole's bounds in time, never empty or reversed. The sure ones: the last snapshot did not count
 * it, so it was tried after that T; this one did, so it was tried before the clock was read again.
 * The neighbours' stamps narrow that where they lie inside. Where not, they are hostile, or stamps
 * and numbers crossed (nested producers).
 */
static struct hole bounded(const struct seqs *seqs, struct hole hole, uint64_t bound_ns)
{
	/* A hole that had to wait, see below, has its sure bound already. */
	bool waited = (int64_t)(seqs->settled - hole.first) > 0;
	uint64_t floor_ns = waited ? hole.from_ns : seqs->floor_ns;

	if (hole.to_ns <= floor_ns || hole.to_ns > bound_ns)
		hole.to_ns = bound_ns;
	if (hole.from_ns < floor_ns || hole.from_ns >= hole.to_ns)
		hole.from_ns = floor_ns;
	/* A clock that stands still. */
	if (hole.from_ns >= hole.to_ns)
		hole.from_ns = hole.to_ns ? hole.to_ns - 1 : 0;
	return hole;
}

void seqs__settle(struct seqs *seqs, uint64_t t_ns, uint64_t bound_ns, uint64_t attempts,
		  void (*lost)(void *ctx, const struct hole *hole), void *ctx)
{
	size_t done = 0;

	if ((int64_t)(attempts - seqs->expect) > 0) {
		append_hole(seqs, attempts, bound_ns);
		seqs->expect = attempts;
		/* What follows was tried after S was read, which may be before bound_ns. */
		seqs->last_ns = t_ns;
	}
	while (done < seqs->count && (int64_t)(attempts - seqs->holes[done].first) > 0) {
		struct hole *hole = &seqs->holes[done];
		struct hole gone = *hole;

		if ((int64_t)(gone.end - attempts) > 0) {
			/* Its tail was not counted yet: that may still come. */
			if (gone.missing != gone.end - gone.first) {
				/*
				 * Joined: wait until all of it is below S. A part of it is by now, so
				 * this T will not be a bound of it.
				 */
				*hole = bounded(seqs, gone, UINT64_MAX);
				break;
			}
			gone.end = attempts;
			gone.missing = attempts - gone.first;
			hole->first = attempts;
			hole->missing = hole->end - attempts;
		} else {
			done++;
		}
		gone = bounded(seqs, gone, bound_ns);
		seqs->lost += gone.missing;
		lost(ctx, &gone);
		if (hole->first == attempts)
			break;
	}
	if (done) {
		seqs->count -= done;
		memmove(seqs->holes, seqs->holes + done, seqs->count * sizeof(*seqs->holes));
	}
	seqs->settled = attempts;
	seqs->floor_ns = t_ns;
}
