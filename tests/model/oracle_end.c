// SPDX-License-Identifier: BSD-2-Clause
/*
 * oracle_end.c - what is checked when all has been told: after a flush, and after the close.
 *
 * Owns the checks over the whole log. Promises that a flush leaves nothing behind that was published
 * before it, and that at the end every attempt has one fate, the gaps have told of every loss, and
 * the order is that of a plain sort.
 * Must not know when anything came: that is judged event by event, in oracle_event.c.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "oracle_internal.h"

void oracle__check_flushed(struct oracle *o)
{
	uint32_t i;

	for (i = 0; i < o->nrings; i++) {
		struct sim_ring *ring = o->sim->rings[i];
		struct oracle_ring *r = &o->rings[i];
		uint64_t n, missing = 0;

		oracle__advance_open(r, ring);
		for (n = r->open; n < r->limit; n++)
			missing += is_open(&ring->log[n]);
		if (missing > r->held)
			oracle__fault(o, "G6: ring %u: %" PRIu64 " not delivered by the flush", i,
				      missing);
	}
}

/* Is there a `held` gap of this ring that reaches over the stamp? */
static bool in_held_gap(const struct weir_gap *gaps, uint64_t ngaps, uint64_t stamp_ns)
{
	while (ngaps--)
		if (gaps[ngaps].from_ns <= stamp_ns && gaps[ngaps].to_ns >= stamp_ns)
			return true;
	return false;
}

static struct weir_gap *held_gaps_of(const struct oracle *o, uint32_t index, uint64_t *n)
{
	struct weir_gap *gaps = NULL;
	uint64_t cap = 0, i;

	for (*n = i = 0; i < o->nout; i++) {
		if (o->out[i].kind != WEIR_KIND_GAP || o->out[i].source != index ||
		    o->out[i].gap.cause != WEIR_LOST_HELD)
			continue;
		gaps = grow(gaps, *n, &cap, sizeof(*gaps));
		gaps[(*n)++] = o->out[i].gap;
	}
	return gaps;
}

/* Every record that is missing was told of by a `held` gap that reaches over its stamp. */
static void check_missing(struct oracle *o, uint32_t index)
{
	struct sim_ring *ring = o->sim->rings[index];
	uint64_t missing = 0, ngaps, i;
	struct weir_gap *gaps = held_gaps_of(o, index, &ngaps);

	for (i = 0; i < ring->nlog; i++) {
		if (!is_open(&ring->log[i]))
			continue;
		missing++;
		if (!in_held_gap(gaps, ngaps, ring->log[i].stamp_ns))
			oracle__fault(o, "G4: ring %u seq %" PRIu64 " vanished", index,
				      ring->log[i].seq);
	}
	free(gaps);
	if (missing != o->rings[index].told[WEIR_LOST_HELD])
		oracle__fault(o, "G4: ring %u: %" PRIu64 " missing, %" PRIu64 " told as held",
			      index, missing, o->rings[index].told[WEIR_LOST_HELD]);
}

/*
 * At the end every attempt has exactly one fate, and the gaps have told of every loss. Where
 * lengths were spoiled, which record a seq was is not known, but how many are lost still is.
 */
static void check_fates(struct oracle *o, const struct weir_stream *stream, uint32_t index)
{
	struct sim_ring *ring = o->sim->rings[index];
	struct oracle_ring *r = &o->rings[index];
	const uint64_t *told = r->told;
	uint64_t refused = ring->failed;
	struct weir_source_info info;

	check_missing(o, index);
	if (weir_stream__source(stream, index, &info))
		return;
	/*
	 * Where bytes are broken, a producer that stands between its attempt and its failure can pass
	 * for one whose record was: the gap has that cause then, though the account will not.
	 */
	oracle__check_between(o, ring, "told as refused", ring->broken ? 0 : refused,
			      told[WEIR_LOST_RESERVE_FAILED], refused);
	oracle__check_between(o, ring, "told as refused or broken", refused + ring->broken,
			      told[WEIR_LOST_RESERVE_FAILED] + told[WEIR_LOST_BROKEN],
			      refused + ring->broken);
	oracle__check_between(o, ring, "pending at the end", 0, info.account.pending, 0);
	oracle__check_between(o, ring, "refused at the end", refused,
			      info.account.lost[WEIR_LOST_RESERVE_FAILED], refused);
	oracle__check_between(o, ring, "broken at the end", ring->broken,
			      info.account.lost[WEIR_LOST_BROKEN], ring->broken);
	oracle__check_between(o, ring, "held at the end", told[WEIR_LOST_HELD],
			      info.account.lost[WEIR_LOST_HELD], told[WEIR_LOST_HELD]);
	oracle__check_between(
		o, ring, "filtered at the end",
		ring->discarded + ring->buffer.shared->counters.filtered + r->moved_filtered,
		info.account.filtered,
		ring->discarded + ring->buffer.shared->counters.filtered + r->moved_filtered);
}

static uint64_t count_unmarked(const struct sim_ring *ring, struct came *keys)
{
	uint64_t i, n = 0;

	for (i = 0; i < ring->nlog; i++) {
		const struct sim_record *rec = &ring->log[i];

		if (rec->fate != SIM_FATE_DELIVERED || rec->mark)
			continue;
		if (keys)
			keys[n] = (struct came){
				.stamp_ns = rec->stamp_ns, .source = ring->index, .seq = rec->seq};
		n++;
	}
	return n;
}

/* O19: the records as they came, those that are flagged apart, equal a plain sort of the log. */
static void check_sorted(struct oracle *o)
{
	struct came *keys;
	uint64_t total = 0, at = 0, i;
	uint32_t ring;

	for (ring = 0; ring < o->nrings; ring++)
		total += count_unmarked(o->sim->rings[ring], NULL);
	keys = malloc((total + 1) * sizeof(*keys));
	if (!keys)
		abort();
	for (ring = 0; ring < o->nrings; ring++)
		at += count_unmarked(o->sim->rings[ring], keys + at);
	qsort(keys, total, sizeof(*keys), came__compare);
	for (i = 0, at = 0; i < o->nout; i++) {
		if (o->out[i].kind != WEIR_KIND_RECORD || o->out[i].mark)
			continue;
		if (at == total || came__compare(&keys[at++], &o->out[i])) {
			oracle__fault(o, "O19: delivery %" PRIu64 " differs from the sort", i);
			break;
		}
	}
	if (at != total)
		oracle__fault(o, "O19: %" PRIu64 " delivered, the sort has %" PRIu64, at, total);
	free(keys);
}

void oracle__check_end(struct oracle *o, const struct weir_stream *stream)
{
	uint32_t i;

	oracle__check_flushed(o);
	for (i = 0; i < o->nrings; i++)
		check_fates(o, stream, i);
	if (o->told_skipped != o->skipped)
		oracle__fault(o, "L9: %" PRIu64 " runs skipped, told %" PRIu64, o->skipped,
			      o->told_skipped);
	check_sorted(o);
}
