// SPDX-License-Identifier: BSD-2-Clause
/*
 * oracle_event.c - what is checked at each event and at each watermark.
 *
 * Owns what has come out: the list of it, and the fate and mark of each record in the log. Promises
 * that an event is judged before the callback returns: its bytes and stamp, its place in the order,
 * its marks, and for a gap that what it tells of was lost, there and then.
 * Must not know of accounts: what the ledger says of the same events is oracle_ledger.c.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "oracle_internal.h"

static void check_order(struct oracle *o, const struct came *out)
{
	int step;

	if (out->mark & WEIR_MARK_LATE) {
		if (out->stamp_ns > o->announced_ns &&
		    (!o->ordered || came__compare(out, &o->last) > 0))
			oracle__fault(o, "G2: stamp %" PRIu64 " flagged late before W %" PRIu64,
				      out->stamp_ns, o->announced_ns);
		return;
	}
	if (out->mark & WEIR_MARK_AHEAD)
		return;
	if (o->announced_ns && out->stamp_ns <= o->announced_ns)
		oracle__fault(o,
			      "G2: stamp %" PRIu64 " of source %u came after W %" PRIu64
			      ", not flagged",
			      out->stamp_ns, out->source, o->announced_ns);
	step = o->ordered ? came__compare(out, &o->last) : 1;
	if (step < 0 ||
	    (step == 0 && out->kind == WEIR_KIND_RECORD && o->last.kind == WEIR_KIND_RECORD))
		oracle__fault(o,
			      "G1: (%" PRIu64 ", %u, %" PRIu64 ") kind %u came after (%" PRIu64
			      ", %u, %" PRIu64 ") kind %u",
			      out->stamp_ns, out->source, out->seq, out->kind, o->last.stamp_ns,
			      o->last.source, o->last.seq, o->last.kind);
	o->last = *out;
	o->ordered = true;
}

static bool payload_is_right(const struct sim_record *rec, uint64_t number,
			     const struct weir_event *e)
{
	uint8_t *want;
	bool same;

	if (e->len != rec->len)
		return false;
	if (!e->len)
		return true;
	want = malloc(e->len);
	if (!want)
		abort();
	sim__payload(want, e->len, e->source, number);
	same = !memcmp(want, e->data, e->len);
	free(want);
	return same;
}

/* Who may be flagged, and who must be: no honest record is late, none is ahead. */
static void check_mark(struct oracle *o, const struct sim_record *rec, const struct weir_event *e)
{
	if ((e->mark & WEIR_MARK_LATE) && !sim_record__is_behind(rec, o->guard_ns))
		oracle__fault(o,
			      "G2: ring %u seq %" PRIu64 " stamp %" PRIu64 " is late (W %" PRIu64
			      "), though its fence covers it",
			      e->source, e->seq, e->stamp_ns, o->announced_ns);
	if ((e->mark & WEIR_MARK_AHEAD) && !sim_record__is_ahead(rec, 0))
		oracle__fault(o,
			      "O15: ring %u seq %" PRIu64 " stamp %" PRIu64
			      " is not beyond the clock, but flagged ahead",
			      e->source, e->seq, e->stamp_ns);
	if (!(e->mark & WEIR_MARK_AHEAD) && e->stamp_ns > o->sim->now_ns &&
	    e->stamp_ns - o->sim->now_ns > o->guard_ns)
		oracle__fault(o,
			      "O15: ring %u seq %" PRIu64 " stamp %" PRIu64
			      " is beyond the clock (%" PRIu64 "), not flagged",
			      e->source, e->seq, e->stamp_ns, o->sim->now_ns);
}

static void check_record(struct oracle *o, const struct weir_event *e)
{
	struct sim_ring *ring;
	struct sim_record *rec;
	struct oracle_ring *r;
	uint64_t number;

	if (e->source >= o->nrings) {
		oracle__fault(o, "G4: a record of source %u, which there is not", e->source);
		return;
	}
	ring = o->sim->rings[e->source];
	r = &o->rings[e->source];
	rec = sim_ring__by_seq(ring, e->seq);
	if (!rec) {
		oracle__fault(o, "G4: ring %u seq %" PRIu64 " was never given out", e->source,
			      e->seq);
		return;
	}
	number = rec - ring->log;
	if (rec->state != SIM_STATE_SUBMITTED)
		oracle__fault(o, "G4: ring %u seq %" PRIu64 " delivered in state %u", e->source,
			      e->seq, rec->state);
	if (rec->fate != SIM_FATE_OPEN)
		oracle__fault(o, "G4: ring %u seq %" PRIu64 " delivered, fate was %u", e->source,
			      e->seq, rec->fate);
	if (rec->stamp_ns != e->stamp_ns)
		oracle__fault(
			o, "G7: ring %u seq %" PRIu64 " stamped %" PRIu64 ", delivered as %" PRIu64,
			e->source, e->seq, rec->stamp_ns, e->stamp_ns);
	if (rec->type != e->type || rec->flags != e->flags || ring->cpu != e->cpu)
		oracle__fault(o, "G4: ring %u seq %" PRIu64 " type, flags or cpu differ", e->source,
			      e->seq);
	if (!payload_is_right(rec, number, e) || (uintptr_t)e->data % 8)
		oracle__fault(o, "G4: ring %u seq %" PRIu64 " len %u: wrong bytes", e->source,
			      e->seq, e->len);
	if (o->call == ORACLE_POLL && number >= r->limit)
		oracle__fault(o, "G5: ring %u seq %" PRIu64 " was reserved after the snapshot",
			      e->source, e->seq);
	check_mark(o, rec, e);
	rec->fate = SIM_FATE_DELIVERED;
	rec->mark = e->mark;
	r->delivered++;
	r->late += !!(e->mark & WEIR_MARK_LATE);
	r->ahead += !!(e->mark & WEIR_MARK_AHEAD);
}

/*
 * A loss was where its attempt was counted. Stamps that were made up bound nothing, and a gap may
 * only be as exact as the two clocks agree.
 */
static void check_bounds(struct oracle *o, const struct weir_gap *gap, uint32_t source,
			 uint64_t seq, uint64_t at_ns)
{
	uint64_t slack = o->sim->skew_ns;

	if (o->sim->dishonest)
		return;
	if (at_ns + slack < gap->from_ns || at_ns > gap->to_ns + slack)
		oracle__fault(o,
			      "G4: ring %u lost seq %" PRIu64 " at %" PRIu64 ", gap (%" PRIu64
			      ", %" PRIu64 "]",
			      source, seq, at_ns, gap->from_ns, gap->to_ns);
}

/* A gap of refused attempts: `lost` of them from its seq up, those that were not refused apart. */
static void settle_refused(struct oracle *o, const struct weir_event *e, const struct weir_gap *gap)
{
	struct sim_ring *ring = o->sim->rings[e->source];
	uint64_t seq = e->seq, left = gap->lost;

	/* A hole may be a refused attempt or a broken record: how many of each is all one can know. */
	if (ring->broken)
		return;
	for (; left; seq++) {
		struct sim_record *rec = sim_ring__by_seq(ring, seq);

		if (!rec || (seq == e->seq && rec->state != SIM_STATE_FAILED)) {
			oracle__fault(o,
				      "G4: ring %u gap of %" PRIu64 " from seq %" PRIu64
				      ": seq %" PRIu64 " was not lost",
				      e->source, gap->lost, e->seq, seq);
			return;
		}
		if (rec->state != SIM_STATE_FAILED || rec->fate != SIM_FATE_OPEN)
			continue;
		rec->fate = SIM_FATE_LOST;
		check_bounds(o, gap, e->source, seq, rec->counted_ns);
		left--;
	}
}

/* Which records a `held` gap stands for is known at the end; that there are enough, now. */
static void check_held(struct oracle *o, const struct weir_event *e, const struct weir_gap *gap)
{
	struct sim_ring *ring = o->sim->rings[e->source];
	uint64_t i, within = 0;

	for (i = o->rings[e->source].open; i < ring->nlog; i++)
		within += ring->log[i].state == SIM_STATE_SUBMITTED &&
			  ring->log[i].fate == SIM_FATE_OPEN &&
			  ring->log[i].stamp_ns >= gap->from_ns &&
			  ring->log[i].stamp_ns <= gap->to_ns;
	if (within < gap->lost)
		oracle__fault(o,
			      "G4: ring %u gap of %" PRIu64 " held in (%" PRIu64 ", %" PRIu64
			      "], where %" PRIu64 " are missing",
			      e->source, gap->lost, gap->from_ns, gap->to_ns, within);
}

static void settle_skipped(struct oracle *o, const struct weir_event *e, const struct weir_gap *gap)
{
	uint64_t left = gap->lost, i;

	o->told_skipped += gap->lost;
	if (e->source != WEIR_SOURCE_NONE || e->cpu != -1 || gap->bound != WEIR_BOUND_AT_MOST)
		oracle__fault(o, "L9: a skipped gap has source %u, cpu %d, bound %u", e->source,
			      e->cpu, gap->bound);
	for (i = 0; i < o->nskips && left; i++) {
		uint64_t n = o->skips[i].count < left ? o->skips[i].count : left;

		if (n)
			check_bounds(o, gap, e->source, 0, o->skips[i].at_ns);
		o->skips[i].count -= n;
		left -= n;
	}
	if (left)
		oracle__fault(o, "L9: %" PRIu64 " more told as skipped than were", left);
}

static void check_gap(struct oracle *o, const struct weir_event *e)
{
	const struct weir_gap *gap = e->data;

	if (e->len != sizeof(*gap) || gap->cause >= WEIR_LOST_CAUSES || e->stamp_ns != gap->to_ns ||
	    gap->from_ns > gap->to_ns) {
		oracle__fault(o,
			      "G4: malformed gap: len %u cause %u stamp %" PRIu64 " (%" PRIu64
			      ", %" PRIu64 "]",
			      e->len, gap->cause, e->stamp_ns, gap->from_ns, gap->to_ns);
		return;
	}
	if (!(e->mark & WEIR_MARK_AHEAD) && gap->to_ns > o->sim->now_ns)
		oracle__fault(o, "G4: a gap ends at %" PRIu64 ", the clock is at %" PRIu64,
			      gap->to_ns, o->sim->now_ns);
	if ((e->mark & WEIR_MARK_LATE) && !o->sim->dishonest)
		oracle__fault(o, "G2: a gap of source %u is late, and no stamp was made up",
			      e->source);
	if (gap->cause == WEIR_LOST_SKIPPED) {
		settle_skipped(o, e, gap);
		return;
	}
	if (e->source >= o->nrings) {
		oracle__fault(o, "G4: a gap of source %u, which there is not", e->source);
		return;
	}
	o->rings[e->source].told[gap->cause] += gap->lost;
	if (gap->bound != WEIR_BOUND_EXACT && gap->cause != WEIR_LOST_OFFLINE)
		oracle__fault(o, "G4: ring %u cause %u bound %u, which is known exactly", e->source,
			      gap->cause, gap->bound);
	if (gap->cause == WEIR_LOST_RESERVE_FAILED)
		settle_refused(o, e, gap);
	else if (gap->cause == WEIR_LOST_HELD)
		check_held(o, e, gap);
	else if (gap->cause == WEIR_LOST_OFFLINE)
		o->offline_gaps++;
	else if (gap->cause != WEIR_LOST_BROKEN)
		oracle__fault(o, "G4: a gap of cause %u, which nothing here has", gap->cause);
}

static void check_step(struct oracle *o, const struct weir_event *e)
{
	if (e->kind != WEIR_KIND_CLOCK_STEP || e->len != sizeof(o->step) ||
	    e->source != WEIR_SOURCE_NONE || e->cpu != -1) {
		oracle__fault(o, "M3: an event of kind %u, len %u, source %u", e->kind, e->len,
			      e->source);
		return;
	}
	o->step = *(const struct weir_clock_step *)e->data;
	o->clock_steps++;
}

void oracle__event(struct oracle *o, const struct weir_event *e)
{
	struct came out = {.stamp_ns = e->stamp_ns,
			   .seq = e->seq,
			   .source = e->source,
			   .len = e->len,
			   .kind = e->kind,
			   .mark = e->mark};

	if (o->blind)
		return;
	o->calls++;
	o->delivering = true;
	if (o->call == ORACLE_IDLE || o->call == ORACLE_CLOSED)
		oracle__fault(o, "G6: an event after the close, or outside any call");
	if (e->kind == WEIR_KIND_RECORD)
		check_record(o, e);
	else if (e->kind == WEIR_KIND_GAP)
		check_gap(o, e);
	else
		check_step(o, e);
	if (e->kind == WEIR_KIND_GAP && e->len == sizeof(out.gap))
		out.gap = *(const struct weir_gap *)e->data;
	check_order(o, &out);
	o->out = grow(o->out, o->nout, &o->out_cap, sizeof(*o->out));
	o->out[o->nout++] = out;
}

/* G2: how many are stamped up to W and have not come; the ledger must have them as lost then. */
static void note_missing(struct oracle *o, uint32_t index, uint64_t watermark_ns)
{
	struct sim_ring *ring = o->sim->rings[index];
	struct oracle_ring *r = &o->rings[index];
	uint64_t i;

	r->missing = 0;
	oracle__advance_open(r, ring);
	for (i = r->open; i < ring->nlog; i++) {
		const struct sim_record *rec = &ring->log[i];

		if (!is_open(rec) || rec->stamp_ns > watermark_ns ||
		    sim_record__is_behind(rec, o->guard_ns))
			continue;
		r->missing++;
		r->missing_seq = rec->seq;
	}
}

void oracle__watermark(struct oracle *o, uint64_t watermark_ns, enum weir_order order)
{
	uint32_t i;

	if (o->blind)
		return;
	o->delivering = true;
	if (watermark_ns <= o->announced_ns)
		oracle__fault(o, "G2: W %" PRIu64 " announced after %" PRIu64, watermark_ns,
			      o->announced_ns);
	if (order != WEIR_ORDER_EXACT)
		oracle__fault(o, "G2: W is not exact, with rings of the reserve kind only");
	if (o->call != ORACLE_CLOSE && watermark_ns + o->guard_ns >= o->sim->reader_ns)
		oracle__fault(o, "G2: W %" PRIu64 " with T %" PRIu64 " and a guard of %" PRIu64,
			      watermark_ns, o->sim->reader_ns, o->guard_ns);
	for (i = 0; i < o->nrings; i++)
		note_missing(o, i, watermark_ns);
	o->announced_ns = watermark_ns;
}
