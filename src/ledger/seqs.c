/* SPDX-License-Identifier: BSD-2-Clause */
#include "ledger/seqs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HOLES_FIRST 16u

int seqs__init(struct seqs *seqs)
{
	memset(seqs, 0, sizeof(*seqs));
	seqs->cap = HOLES_FIRST;
	seqs->holes = calloc(seqs->cap, sizeof(*seqs->holes));
	return seqs->holes ? 0 : -ENOMEM;
}

void seqs__start(struct seqs *seqs, uint64_t first)
{
	seqs->start = seqs->expect = seqs->settled = seqs->limit = first;
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
 * Join every other pair: all at once, so that a flood of single losses pays for it once in thousands
 * and not each time.
 */
static void join_pairs(struct seqs *seqs)
{
	size_t kept = 0;

	for (size_t i = 0; i < seqs->count; i += 2) {
		seqs->holes[kept] = seqs->holes[i];
		if (i + 1 < seqs->count)
			join(&seqs->holes[kept], &seqs->holes[i + 1]);
		kept++;
	}
	seqs->count = kept;
}

/* Room for one more: by growing while that may be, else by joining, which always works. */
static void make_room(struct seqs *seqs)
{
	struct hole *grown;

	if (seqs->count < seqs->cap)
		return;
	grown = seqs->cap < SEQS_HOLES_MAX
			? realloc(seqs->holes, seqs->cap * 4 * sizeof(*seqs->holes))
			: NULL;
	if (!grown) {
		join_pairs(seqs);
		return;
	}
	seqs->holes = grown;
	seqs->cap *= 4;
}

/*
 * A time before which the next number was not tried. A producer that is interrupted after it has
 * counted is stamped after those that nest in it, so a neighbour's stamp is no bound; but of the last
 * SEQS_NESTING at least one was finished.
 */
static uint64_t tried_after_ns(const struct seqs *seqs)
{
	uint64_t least_ns = UINT64_MAX;

	if (seqs->seen < SEQS_NESTING)
		return 0;
	for (unsigned i = 0; i < SEQS_NESTING; i++)
		if (seqs->recent_ns[i] < least_ns)
			least_ns = seqs->recent_ns[i];
	return least_ns;
}

static void append_hole(struct seqs *seqs, uint64_t end, uint64_t to_ns)
{
	make_room(seqs);
	seqs->holes[seqs->count++] = (struct hole){
		.first = seqs->expect,
		.end = end,
		.missing = end - seqs->expect,
		.from_ns = tried_after_ns(seqs),
		.to_ns = to_ns,
	};
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

static void end_before(struct hole *hole, uint64_t seq, uint64_t stamp_ns)
{
	hole->end = seq;
	hole->missing = seq - hole->first;
	if (stamp_ns < hole->to_ns)
		hole->to_ns = stamp_ns;
}

static void begin_after(struct hole *hole, uint64_t seq)
{
	hole->first = seq + 1;
	hole->missing = hole->end - hole->first;
}

static void split(struct seqs *seqs, uint64_t seq, uint64_t stamp_ns)
{
	struct hole *hole;
	size_t i;

	make_room(seqs);
	hole = find(seqs, seq);
	i = (size_t)(hole - seqs->holes);
	if (hole->missing != hole->end - hole->first) {
		/* It was joined to make room. */
		hole->missing--;
		return;
	}
	memmove(hole + 1, hole, (seqs->count - i) * sizeof(*hole));
	seqs->count++;
	end_before(hole, seq, stamp_ns);
	begin_after(hole + 1, seq);
}

/* `seq` of this hole came after all. */
static void fill(struct seqs *seqs, struct hole *hole, uint64_t seq, uint64_t stamp_ns)
{
	if (hole->missing == 1)
		remove_hole(seqs, (size_t)(hole - seqs->holes));
	else if (hole->missing != hole->end - hole->first)
		hole->missing--; /* joined: no longer known which are missing, only how many */
	else if (seq == hole->first)
		begin_after(hole, seq);
	else if (seq == hole->end - 1)
		end_before(hole, seq, stamp_ns);
	else
		split(seqs, seq, stamp_ns);
}

bool seqs__see(struct seqs *seqs, uint32_t low, uint64_t stamp_ns)
{
	uint64_t seq = seqs__widen(seqs, low);
	struct hole *hole;

	if ((int64_t)(seq - seqs->limit) >= 0)
		return false;
	if ((int64_t)(seq - seqs->expect) >= 0) {
		if (seq != seqs->expect)
			append_hole(seqs, seq, stamp_ns);
		seqs->expect = seq + 1;
	} else {
		hole = find(seqs, seq);
		if (!hole)
			return false;
		fill(seqs, hole, seq, stamp_ns);
	}
	seqs__note_stamp(seqs, stamp_ns);
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
	}
	if (done) {
		seqs->count -= done;
		memmove(seqs->holes, seqs->holes + done, seqs->count * sizeof(*seqs->holes));
	}
	seqs->settled = attempts;
	seqs->floor_ns = t_ns;
}
