// SPDX-License-Identifier: BSD-2-Clause
/*
 * oracle.c - measures a stream by the simulator's log.
 *
 * Owns what was promised by each call, and what the reader can have seen when it began: the heads,
 * the snapshots that it has reached, the tails. Promises that the first violation of G1 to G8 is
 * caught in the call in which it becomes visible (oracle_event.c for what comes out, oracle_ledger.c
 * for the accounts); the rest at the end, against a plain sort (oracle_end.c).
 * Must not know how the reader works: it uses the log, the positions in the rings, and the public
 * interface only.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oracle_internal.h"

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

/* --- what is known of the log --------------------------------------------------------------- */

bool oracle__anything_busy(struct oracle *o)
{
	uint32_t i;

	for (i = 0; i < o->nrings; i++)
		if (sim_ring__busy_position(o->sim->rings[i]) !=
		    sim_ring__producer(o->sim->rings[i]))
			return true;
	return false;
}

void oracle__advance_open(struct oracle_ring *r, const struct sim_ring *ring)
{
	while (r->open < ring->nlog && ring->log[r->open].state != SIM_STATE_RESERVED &&
	       !is_open(&ring->log[r->open]))
		r->open++;
}

void oracle__check_between(struct oracle *o, const struct sim_ring *ring, const char *what,
			   uint64_t low, uint64_t is, uint64_t high)
{
	if (is < low || is > high)
		oracle__fault(o, "G4: %s: %s is %" PRIu64 ", not %" PRIu64 " to %" PRIu64,
			      ring->name, what, is, low, high);
}

/* --- while a call runs ---------------------------------------------------------------------- */

void oracle__call_begins(struct oracle *o, enum oracle_call call)
{
	uint32_t i;

	o->call = call;
	o->calls = 0;
	o->was_busy = oracle__anything_busy(o);
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

/* --- when a call has ended ------------------------------------------------------------------ */

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

	oracle__advance_open(r, ring);
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
	} else if (rc && !o->was_busy && !oracle__anything_busy(o)) {
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
	oracle__check_ledger(o, stream, complete);
	for (i = 0; i < o->nrings; i++) {
		check_tail(o, i, complete);
		if (complete && o->sim->dishonest)
			check_ahead_is_out(o, i);
	}
	if (complete && o->call == ORACLE_FLUSH)
		oracle__check_flushed(o);
	if (complete && o->call == ORACLE_CLOSE && !oracle__anything_busy(o))
		oracle__check_end(o, stream);
	if (o->call != ORACLE_CLOSED)
		o->call = o->call == ORACLE_CLOSE && rc >= 0 ? ORACLE_CLOSED : ORACLE_IDLE;
}
