// SPDX-License-Identifier: BSD-2-Clause
/*
 * oracle.c - measures a stream by the simulator's log.
 *
 * Owns what has come out and what was promised by it. Promises that the first violation of G1 to G8
 * is caught in the call in which it becomes visible; the rest at the end, against a plain sort.
 * Must not know how the reader works: it uses the log, the positions in the rings, and the public
 * interface only.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oracle.h"

void oracle__fault(struct oracle *o, const char *format, ...)
{
	va_list args;

	if (o->fault[0])
		return;
	va_start(args, format);
	vsnprintf(o->fault, sizeof(o->fault), format, args);
	va_end(args);
}

void oracle__init(struct oracle *o, struct sim *sim, uint64_t guard_ns, size_t memory_bytes)
{
	*o = (struct oracle){.sim = sim, .guard_ns = guard_ns, .memory_bytes = memory_bytes};
}

void oracle__destroy(struct oracle *o)
{
	free(o->rings);
	free(o->out);
	free(o->skips);
	*o = (struct oracle){0};
}

static void *grow(void *array, uint64_t have, uint64_t *cap, size_t size)
{
	if (have < *cap)
		return array;
	*cap = *cap ? *cap * 2 : 64;
	array = realloc(array, *cap * size);
	if (!array)
		abort();
	return array;
}

void oracle__ring_added(struct oracle *o)
{
	struct sim_ring *ring = o->sim->rings[o->nrings];

	o->rings = realloc(o->rings, (o->nrings + 1) * sizeof(*o->rings));
	if (!o->rings)
		abort();
	o->rings[o->nrings++] = (struct oracle_ring){.consumer = sim_ring__consumer(ring)};
}

void oracle__skipped(struct oracle *o, uint64_t count)
{
	o->skips = grow(o->skips, o->nskips, &o->skips_cap, sizeof(*o->skips));
	o->skips[o->nskips++] = (struct oracle_skip){sim__kernel_ns(o->sim), count};
	o->skipped += count;
}

void oracle__moved_filtered(struct oracle *o, uint32_t source, uint64_t count)
{
	o->rings[source].moved_filtered += count;
}

void oracle__moved_lost(struct oracle *o, uint32_t source, uint64_t count, enum weir_cause cause)
{
	o->rings[source].moved_lost[cause] += count;
}

/* --- while a call runs ---------------------------------------------------------------------- */

/* A record is unfinished somewhere: then a flush may time out, and a close can't be complete. */
static bool anything_busy(struct oracle *o)
{
	uint32_t i;

	for (i = 0; i < o->nrings; i++)
		if (sim_ring__busy_position(o->sim->rings[i]) !=
		    sim_ring__producer(o->sim->rings[i]))
			return true;
	return false;
}

void oracle__call_begins(struct oracle *o, enum oracle_call call)
{
	uint32_t i;

	o->call = call;
	o->calls = 0;
	o->was_busy = anything_busy(o);
	o->timed = false;
	o->delivering = false;
	for (i = 0; i < o->nrings; i++) {
		struct oracle_ring *r = &o->rings[i];
		struct sim_ring *ring = o->sim->rings[i];

		r->entry_counters = ring->buffer.shared->counters;
		r->entry_failed = ring->failed;
		r->entry_broken = ring->broken;
		r->entry_discarded = ring->discarded;
		r->limit = ring->nlog;
		r->head = r->end = sim_ring__producer(ring);
		r->busy = sim_ring__busy_position(ring);
	}
}

/*
 * The reader's snapshot follows one of its looks at the clock, before it delivers anything; which
 * one is its own affair. So what it can't have seen is what came after the last look, and what it
 * must know is no newer than the first.
 */
void oracle__clock_read(struct oracle *o, uint64_t t_ns)
{
	uint32_t i;

	if (o->call == ORACLE_IDLE || o->delivering)
		return;
	for (i = 0; i < o->nrings; i++) {
		struct sim_ring *ring = o->sim->rings[i];
		struct oracle_ring *r = &o->rings[i];

		r->limit = ring->nlog;
		r->end = sim_ring__producer(ring);
		if (o->timed)
			continue;
		r->head = r->end;
		r->busy = sim_ring__busy_position(ring);
	}
	if (!o->timed)
		o->first_t = t_ns;
	o->timed = true;
}

static int compare_u64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_keys(const void *left, const void *right)
{
	const struct oracle_out *a = left, *b = right;
	int by_stamp = compare_u64(a->stamp_ns, b->stamp_ns);

	if (by_stamp)
		return by_stamp;
	if (a->source != b->source)
		return a->source < b->source ? -1 : 1;
	return compare_u64(a->seq, b->seq);
}

static void check_order(struct oracle *o, const struct oracle_out *out)
{
	int step;

	if (out->mark & WEIR_MARK_LATE) {
		if (out->stamp_ns > o->announced_ns &&
		    (!o->ordered || compare_keys(out, &o->last) > 0))
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
	step = o->ordered ? compare_keys(out, &o->last) : 1;
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
	struct oracle_out out = {.stamp_ns = e->stamp_ns,
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

static bool is_open(const struct sim_record *rec)
{
	return rec->state == SIM_STATE_SUBMITTED && rec->fate == SIM_FATE_OPEN;
}

/* The oldest record that may still be delivered, as the place where every scan begins. */
static void advance_open(struct oracle_ring *r, const struct sim_ring *ring)
{
	while (r->open < ring->nlog && ring->log[r->open].state != SIM_STATE_RESERVED &&
	       !is_open(&ring->log[r->open]))
		r->open++;
}

/* G2: how many are stamped up to W and have not come; the ledger must have them as lost then. */
static void note_missing(struct oracle *o, uint32_t index, uint64_t watermark_ns)
{
	struct sim_ring *ring = o->sim->rings[index];
	struct oracle_ring *r = &o->rings[index];
	uint64_t i;

	r->missing = 0;
	advance_open(r, ring);
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

/* --- when a call has ended ------------------------------------------------------------------ */

/* Whatever the reader's snapshot was, nothing in it was unfinished. */
static bool is_drained(const struct oracle_ring *r)
{
	return r->busy == r->end;
}

static void note_snapshot(struct oracle *o, struct oracle_ring *r)
{
	uint32_t n = 0;

	if (r->nfifo == ORACLE_FIFO)
		r->unreached++;
	else
		r->fifo[r->nfifo++] = (struct oracle_snapshot){o->first_t, r->end};
	while (n < r->nfifo && (int64_t)(r->busy - r->fifo[n].producer) >= 0)
		r->reached_ns = r->fifo[n++].t_ns;
	r->nfifo -= n;
	memmove(r->fifo, r->fifo + n, r->nfifo * sizeof(*r->fifo));
	if (is_drained(r)) {
		r->nfifo = r->unreached = 0;
		r->reached_ns = o->first_t;
	}
}

/* G3: W is at least what the newest reached snapshots of all rings allow. */
static void check_liveness(struct oracle *o)
{
	uint64_t floor_ns = UINT64_MAX;
	uint32_t i;

	for (i = 0; i < o->nrings; i++) {
		struct oracle_ring *r = &o->rings[i];

		note_snapshot(o, r);
		if (r->unreached)
			floor_ns = 0;
		else if (r->reached_ns < floor_ns)
			floor_ns = r->reached_ns;
	}
	if (o->nrings && floor_ns > o->guard_ns + 1 && o->announced_ns < floor_ns - 1 - o->guard_ns)
		oracle__fault(o,
			      "G3: W stays at %" PRIu64
			      ", every ring has reached the snapshot of %" PRIu64,
			      o->announced_ns, floor_ns);
}

/* O15: what is stamped beyond the clock is delivered by the poll that sees it. */
static void check_ahead_is_out(struct oracle *o, uint32_t index)
{
	struct sim_ring *ring = o->sim->rings[index];
	struct oracle_ring *r = &o->rings[index];
	uint64_t i;

	for (i = r->open; i < r->limit && i < ring->nlog; i++) {
		const struct sim_record *rec = &ring->log[i];

		if (is_open(rec) && (int64_t)(rec->position - r->busy) < 0 &&
		    rec->stamp_ns > o->sim->now_ns && rec->stamp_ns - o->sim->now_ns > o->guard_ns)
			oracle__fault(o,
				      "O15: ring %u seq %" PRIu64 " stamp %" PRIu64
				      " is beyond the clock and waits",
				      index, rec->seq, rec->stamp_ns);
	}
}

/* Position of the oldest record that was in the snapshot and is not delivered, or its end. */
static uint64_t oldest_kept(struct oracle_ring *r, struct sim_ring *ring)
{
	uint64_t i;

	advance_open(r, ring);
	for (i = r->open; i < ring->nlog && (int64_t)(ring->log[i].position - r->busy) < 0; i++)
		if (is_open(&ring->log[i]))
			return ring->log[i].position;
	return r->busy;
}

/* The tail: at a record's start, never past what is busy, never back; room is made in time. */
static void check_tail(struct oracle *o, uint32_t index, bool complete)
{
	struct sim_ring *ring = o->sim->rings[index];
	struct oracle_ring *r = &o->rings[index];
	uint64_t tail = sim_ring__consumer(ring);

	if (tail - r->consumer > ring->buffer.size ||
	    (int64_t)(tail - sim_ring__busy_position(ring)) > 0)
		oracle__fault(o, "G5: ring %u tail %" PRIu64 " was %" PRIu64 ", busy at %" PRIu64,
			      index, tail, r->consumer, sim_ring__busy_position(ring));
	r->consumer = tail;
	if (ring->buffer.broken)
		return;
	while (r->boundary < ring->nlog && (int64_t)(ring->log[r->boundary].position - tail) < 0)
		r->boundary++;
	if (r->boundary < ring->nlog ? ring->log[r->boundary].position != tail
				     : sim_ring__producer(ring) != tail)
		oracle__fault(o, "G5: ring %u tail %" PRIu64 " is inside a record", index, tail);
	if (!complete)
		return;
	if ((int64_t)(tail - oldest_kept(r, ring)) < 0 && !r->held)
		oracle__fault(o,
			      "G5: ring %u tail %" PRIu64 ", nothing before %" PRIu64 " is needed",
			      index, tail, oldest_kept(r, ring));
	if (r->busy - tail > ring->buffer.size / 2 && (int64_t)(r->busy - tail) > 0)
		oracle__fault(o, "G5: ring %u keeps %" PRIu64 " bytes in a ring of %zu", index,
			      r->busy - tail, ring->buffer.size);
}

static uint64_t all_lost(const struct weir_account *a)
{
	uint64_t sum = 0;
	int i;

	for (i = 0; i < WEIR_LOST_CAUSES; i++)
		if (a->bound[i] != WEIR_BOUND_UNKNOWN)
			sum += a->lost[i];
	return sum;
}

static void check_closes(struct oracle *o, const char *what, const struct weir_account *a)
{
	uint64_t right = a->delivered + a->filtered + a->pending + all_lost(a);

	if (right != a->produced || weir_account__difference(a))
		oracle__fault(o,
			      "G4: %s: produced %" PRIu64 ", delivered %" PRIu64
			      " + filtered %" PRIu64 " + pending %" PRIu64 " + lost %" PRIu64
			      "; difference %" PRId64,
			      what, a->produced, a->delivered, a->filtered, a->pending, all_lost(a),
			      weir_account__difference(a));
}

static void check_between(struct oracle *o, const struct sim_ring *ring, const char *what,
			  uint64_t low, uint64_t is, uint64_t high)
{
	if (is < low || is > high)
		oracle__fault(o, "G4: %s: %s is %" PRIu64 ", not %" PRIu64 " to %" PRIu64,
			      ring->name, what, is, low, high);
}

static uint64_t sum_of(const uint64_t *counts, int n)
{
	uint64_t sum = 0;

	while (n--)
		sum += counts[n];
	return sum;
}

/* Nothing was tried since the call began, and no producer stands between attempt and failure. */
static bool is_settled(const struct sim_ring *ring, const struct oracle_ring *r)
{
	const struct weir_counters *is = &ring->buffer.shared->counters;

	return r->entry_counters.attempts == is->attempts &&
	       r->entry_counters.failed == ring->failed;
}

/*
 * Holes without a cause of their own. The producers' count of failures is what tells refused attempts
 * from broken records, and it runs behind the attempts: which of the two is known when all is settled,
 * that they are one of them always.
 */
static void check_refused_and_broken(struct oracle *o, const struct sim_ring *ring,
				     const struct oracle_ring *r, const struct weir_account *a,
				     bool complete)
{
	uint64_t refused = a->lost[WEIR_LOST_RESERVE_FAILED];
	uint64_t broken = a->lost[WEIR_LOST_BROKEN] - r->moved_lost[WEIR_LOST_BROKEN];
	bool exact = complete && (!ring->broken || is_settled(ring, r));

	check_between(o, ring, "lost, reserve failed",
		      exact ? r->entry_failed : r->told[WEIR_LOST_RESERVE_FAILED], refused,
		      ring->failed);
	check_between(o, ring, "lost, broken", exact ? r->entry_broken : 0, broken,
		      exact ? ring->broken : ring->broken + ring->failed);
	check_between(o, ring, "lost, reserve failed or broken",
		      complete ? r->entry_failed + r->entry_broken
			       : r->told[WEIR_LOST_RESERVE_FAILED] + r->told[WEIR_LOST_BROKEN],
		      refused + broken, ring->failed + ring->broken);
}

/*
 * One ring's account. The right side is bounded by what the log says; with the sum closed, pending
 * is bounded too. `complete`: the call drained the ring to the head that it found.
 */
static void check_account(struct oracle *o, uint32_t index, const struct weir_account *a,
			  bool complete)
{
	struct sim_ring *ring = o->sim->rings[index];
	struct oracle_ring *r = &o->rings[index];
	const struct weir_counters *was = &r->entry_counters;
	const struct weir_counters *is = &ring->buffer.shared->counters;
	uint64_t moved = r->moved_filtered + sum_of(r->moved_lost, WEIR_LOST_CAUSES);
	int i;

	r->held = a->lost[WEIR_LOST_HELD];
	if (r->missing > r->held)
		oracle__fault(o,
			      "G2: W %" PRIu64 " announced, ring %u has %" PRIu64
			      " not delivered up to it, %" PRIu64 " held, one is seq %" PRIu64,
			      o->announced_ns, index, r->missing, r->held, r->missing_seq);
	check_closes(o, ring->name, a);
	check_between(o, ring, "produced", was->attempts + was->filtered - ring->first_seq,
		      a->produced, is->attempts + is->filtered - ring->first_seq);
	check_between(o, ring, "delivered", r->delivered - moved, a->delivered,
		      r->delivered - moved);
	check_between(o, ring, "failed", was->failed, a->failed, is->failed);
	check_between(o, ring, "stray", 0, a->stray, 0);
	check_between(o, ring, "late", r->late, a->late, r->late);
	check_between(o, ring, "ahead", r->ahead, a->ahead, r->ahead);
	check_between(o, ring, "self", was->self, a->self, is->self);
	check_between(o, ring, "unread", was->unread, a->unread, is->unread);
	check_between(o, ring, "filtered",
		      was->filtered + r->moved_filtered + (complete ? r->entry_discarded : 0),
		      a->filtered, is->filtered + r->moved_filtered + ring->discarded);
	check_refused_and_broken(o, ring, r, a, complete);
	for (i = 0; i < WEIR_LOST_CAUSES; i++) {
		if (i == WEIR_LOST_RESERVE_FAILED || i == WEIR_LOST_BROKEN)
			continue;
		if (i == WEIR_LOST_HELD)
			check_between(o, ring, weir_cause__name(i), r->told[i] + r->moved_lost[i],
				      a->lost[i], is->attempts);
		else
			check_between(o, ring, weir_cause__name(i), r->moved_lost[i], a->lost[i],
				      r->moved_lost[i]);
		if (a->lost[i] && a->bound[i] != WEIR_BOUND_EXACT)
			oracle__fault(o, "G4: %s: %s has bound %u", ring->name, weir_cause__name(i),
				      a->bound[i]);
	}
}

/* O16: who holds the watermark, and since when: steady while it is the same record. */
static void check_busy(struct oracle *o, uint32_t index, uint64_t since_ns)
{
	struct oracle_ring *r = &o->rings[index];

	if (is_drained(r)) {
		if (since_ns)
			oracle__fault(o, "O16: ring %u busy since %" PRIu64 ", and nothing is",
				      index, since_ns);
		r->busy_since_ns = 0;
		return;
	}
	if (r->busy == r->head || sim_ring__busy_position(o->sim->rings[index]) != r->busy)
		return;
	if (!since_ns || since_ns > o->sim->now_ns)
		oracle__fault(o, "O16: ring %u is busy, since %" PRIu64, index, since_ns);
	if (r->busy_since_ns && r->busy_since_position == r->busy && r->busy_since_ns != since_ns)
		oracle__fault(o, "O16: ring %u busy since %" PRIu64 ", then since %" PRIu64, index,
			      r->busy_since_ns, since_ns);
	r->busy_since_ns = since_ns;
	r->busy_since_position = r->busy;
}

static void add_account(struct weir_account *sum, const struct weir_account *a)
{
	int i;

	sum->produced += a->produced;
	sum->delivered += a->delivered;
	sum->filtered += a->filtered;
	sum->pending += a->pending;
	sum->late += a->late;
	sum->ahead += a->ahead;
	sum->self += a->self;
	sum->unread += a->unread;
	for (i = 0; i < WEIR_LOST_CAUSES; i++)
		sum->lost[i] += a->lost[i];
}

/* The total is the sources' sum, and what belongs to no source: runs that the kernel skipped. */
static void check_total(struct oracle *o, const struct weir_account *total,
			const struct weir_account *sum)
{
	uint64_t skipped = total->lost[WEIR_LOST_SKIPPED];
	int i;

	check_closes(o, "total", total);
	if (skipped < o->told_skipped || skipped > o->skipped)
		oracle__fault(o, "L9: %" PRIu64 " skipped in all, told %" PRIu64 " of %" PRIu64,
			      skipped, o->told_skipped, o->skipped);
	if (skipped && total->bound[WEIR_LOST_SKIPPED] != WEIR_BOUND_AT_MOST)
		oracle__fault(o, "L9: skipped has bound %u", total->bound[WEIR_LOST_SKIPPED]);
	for (i = 0; i < WEIR_LOST_CAUSES; i++)
		if (i != WEIR_LOST_SKIPPED && total->lost[i] != sum->lost[i])
			oracle__fault(o, "G4: %s in all %" PRIu64 ", the sources say %" PRIu64,
				      weir_cause__name(i), total->lost[i], sum->lost[i]);
	if (total->produced != sum->produced + skipped || total->delivered != sum->delivered ||
	    total->filtered != sum->filtered || total->pending != sum->pending ||
	    total->late != sum->late || total->ahead != sum->ahead || total->self != sum->self ||
	    total->unread != sum->unread)
		oracle__fault(o, "G4: the total is not the sum of the sources");
}

static void check_ledger(struct oracle *o, const struct weir_stream *stream, bool complete)
{
	struct weir_ledger ledger = {.sz = sizeof(ledger)};
	struct weir_account sum = {0};
	uint32_t i;

	if (weir_stream__ledger(stream, &ledger) || ledger.sources != o->nrings) {
		oracle__fault(o, "G4: no ledger, or of %u sources", ledger.sources);
		return;
	}
	for (i = 0; i < o->nrings; i++) {
		struct sim_ring *ring = o->sim->rings[i];
		struct weir_source_info info;

		if (weir_stream__source(stream, i, &info)) {
			oracle__fault(o, "G4: source %u is not known", i);
			return;
		}
		if (strcmp(info.name, ring->name) || info.cpu != ring->cpu ||
		    info.size_bytes != ring->buffer.size ||
		    info.max_fill_bytes > ring->buffer.size || info.watermark_ns < o->announced_ns)
			oracle__fault(o,
				      "G4: source %u: \"%s\" cpu %d size %" PRIu64 " fill %" PRIu64
				      " W %" PRIu64,
				      i, info.name, info.cpu, info.size_bytes, info.max_fill_bytes,
				      info.watermark_ns);
		check_account(o, i, &info.account, complete && is_drained(&o->rings[i]));
		if (complete)
			check_busy(o, i, info.busy_since_ns);
		add_account(&sum, &info.account);
	}
	check_total(o, &ledger.total, &sum);
	if (ledger.watermark_ns != o->announced_ns || ledger.order != WEIR_ORDER_EXACT ||
	    ledger.guard_ns != o->guard_ns)
		oracle__fault(o,
			      "G2: the ledger has W %" PRIu64 " (announced %" PRIu64
			      "), order %u, guard %" PRIu64,
			      ledger.watermark_ns, o->announced_ns, ledger.order, ledger.guard_ns);
	if (ledger.held_bytes > o->memory_bytes)
		oracle__fault(o, "G5: %" PRIu64 " bytes held, the bound is %zu", ledger.held_bytes,
			      o->memory_bytes);
	if (ledger.lag.p50_ns > ledger.lag.p99_ns || ledger.lag.p99_ns > ledger.lag.max_ns)
		oracle__fault(o, "ledger: lag p50 %" PRIu64 " p99 %" PRIu64 " max %" PRIu64,
			      ledger.lag.p50_ns, ledger.lag.p99_ns, ledger.lag.max_ns);
}

/* G6: what was published before the call is out. */
static void check_flushed(struct oracle *o)
{
	uint32_t i;

	for (i = 0; i < o->nrings; i++) {
		struct sim_ring *ring = o->sim->rings[i];
		struct oracle_ring *r = &o->rings[i];
		uint64_t n, missing = 0;

		advance_open(r, ring);
		for (n = r->open; n < r->limit; n++)
			missing += is_open(&ring->log[n]);
		if (missing > r->held)
			oracle__fault(o, "G6: ring %u: %" PRIu64 " not delivered by the flush", i,
				      missing);
	}
}

/* --- the end -------------------------------------------------------------------------------- */

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
	check_between(o, ring, "told as refused", ring->broken ? 0 : refused,
		      told[WEIR_LOST_RESERVE_FAILED], refused);
	check_between(o, ring, "told as refused or broken", refused + ring->broken,
		      told[WEIR_LOST_RESERVE_FAILED] + told[WEIR_LOST_BROKEN],
		      refused + ring->broken);
	check_between(o, ring, "pending at the end", 0, info.account.pending, 0);
	check_between(o, ring, "refused at the end", refused,
		      info.account.lost[WEIR_LOST_RESERVE_FAILED], refused);
	check_between(o, ring, "broken at the end", ring->broken,
		      info.account.lost[WEIR_LOST_BROKEN], ring->broken);
	check_between(o, ring, "held at the end", told[WEIR_LOST_HELD],
		      info.account.lost[WEIR_LOST_HELD], told[WEIR_LOST_HELD]);
	check_between(o, ring, "filtered at the end",
		      ring->discarded + ring->buffer.shared->counters.filtered + r->moved_filtered,
		      info.account.filtered,
		      ring->discarded + ring->buffer.shared->counters.filtered + r->moved_filtered);
}

static uint64_t count_unmarked(const struct sim_ring *ring, struct oracle_out *keys)
{
	uint64_t i, n = 0;

	for (i = 0; i < ring->nlog; i++) {
		const struct sim_record *rec = &ring->log[i];

		if (rec->fate != SIM_FATE_DELIVERED || rec->mark)
			continue;
		if (keys)
			keys[n] = (struct oracle_out){
				.stamp_ns = rec->stamp_ns, .source = ring->index, .seq = rec->seq};
		n++;
	}
	return n;
}

/* O19: the records as they came, those that are flagged apart, equal a plain sort of the log. */
static void check_sorted(struct oracle *o)
{
	struct oracle_out *keys;
	uint64_t total = 0, at = 0, i;
	uint32_t ring;

	for (ring = 0; ring < o->nrings; ring++)
		total += count_unmarked(o->sim->rings[ring], NULL);
	keys = malloc((total + 1) * sizeof(*keys));
	if (!keys)
		abort();
	for (ring = 0; ring < o->nrings; ring++)
		at += count_unmarked(o->sim->rings[ring], keys + at);
	qsort(keys, total, sizeof(*keys), compare_keys);
	for (i = 0, at = 0; i < o->nout; i++) {
		if (o->out[i].kind != WEIR_KIND_RECORD || o->out[i].mark)
			continue;
		if (at == total || compare_keys(&keys[at++], &o->out[i])) {
			oracle__fault(o, "O19: delivery %" PRIu64 " differs from the sort", i);
			break;
		}
	}
	if (at != total)
		oracle__fault(o, "O19: %" PRIu64 " delivered, the sort has %" PRIu64, at, total);
	free(keys);
}

static void check_end(struct oracle *o, const struct weir_stream *stream)
{
	uint32_t i;

	check_flushed(o);
	for (i = 0; i < o->nrings; i++)
		check_fates(o, stream, i);
	if (o->told_skipped != o->skipped)
		oracle__fault(o, "L9: %" PRIu64 " runs skipped, told %" PRIu64, o->skipped,
			      o->told_skipped);
	check_sorted(o);
}

static void check_rc(struct oracle *o, int rc, int stopped)
{
	if (o->may_fail && rc == -ENOMEM)
		return;
	if (stopped) {
		if (rc != stopped)
			oracle__fault(o, "poll returned %d, the callback %d", rc, stopped);
		return;
	}
	if (o->call == ORACLE_POLL || o->call == ORACLE_CLOSED) {
		if (rc < 0 || (uint64_t)rc != o->calls)
			oracle__fault(o, "poll returned %d, delivered %" PRIu64, rc, o->calls);
	} else if (rc && !o->was_busy && !anything_busy(o)) {
		oracle__fault(o, "G6: flush or close returned %d, and nothing is unfinished", rc);
	}
}

/* Flush and close take as many snapshots as they like: nothing is known of the rings' FIFOs. */
static void forget_snapshots(struct oracle *o)
{
	uint32_t i;

	for (i = 0; i < o->nrings; i++) {
		o->rings[i].nfifo = 0;
		o->rings[i].unreached = !is_drained(&o->rings[i]);
	}
}

void oracle__call_ends(struct oracle *o, const struct weir_stream *stream, int rc, int stopped)
{
	/* A poll that found no memory may have gone as far as it could. */
	bool complete = !stopped && rc >= 0 && o->call != ORACLE_CLOSED &&
			!(o->may_fail && o->call == ORACLE_POLL);
	uint32_t i;

	if (o->blind)
		return;
	check_rc(o, rc, stopped);
	if (weir_stream__watermark(stream) != o->announced_ns)
		oracle__fault(o, "G2: the watermark is %" PRIu64 ", announced was %" PRIu64,
			      weir_stream__watermark(stream), o->announced_ns);
	if (complete && o->call == ORACLE_POLL)
		check_liveness(o);
	else
		forget_snapshots(o);
	check_ledger(o, stream, complete);
	for (i = 0; i < o->nrings; i++) {
		check_tail(o, i, complete);
		if (complete && o->sim->dishonest)
			check_ahead_is_out(o, i);
	}
	if (complete && o->call == ORACLE_FLUSH)
		check_flushed(o);
	if (complete && o->call == ORACLE_CLOSE && !anything_busy(o))
		check_end(o, stream);
	if (o->call != ORACLE_CLOSED)
		o->call = o->call == ORACLE_CLOSE && rc >= 0 ? ORACLE_CLOSED : ORACLE_IDLE;
}
