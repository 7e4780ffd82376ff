// SPDX-License-Identifier: BSD-2-Clause
/*
 * oracle_ledger.c - what is checked of the accounts, at the end of each call.
 *
 * Owns the bounds of every number in the ledger: producers go on while a call runs, so what it may
 * say lies between the counters as the call began and as they are now. Promises that each account
 * closes (G4), that the total is the sum, and that what W has passed and did not come is held.
 * Must not know of single records beyond what oracle_event.c has counted.
 */
#include <inttypes.h>
#include <string.h>

#include "oracle_internal.h"

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

	oracle__check_between(o, ring, "lost, reserve failed",
			      exact ? r->entry_failed : r->told[WEIR_LOST_RESERVE_FAILED], refused,
			      ring->failed);
	oracle__check_between(o, ring, "lost, broken", exact ? r->entry_broken : 0, broken,
			      exact ? ring->broken : ring->broken + ring->failed);
	oracle__check_between(o, ring, "lost, reserve failed or broken",
			      complete ? r->entry_failed + r->entry_broken
				       : r->told[WEIR_LOST_RESERVE_FAILED] +
						 r->told[WEIR_LOST_BROKEN],
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
	oracle__check_between(o, ring, "produced", was->attempts + was->filtered - ring->first_seq,
			      a->produced, is->attempts + is->filtered - ring->first_seq);
	oracle__check_between(o, ring, "delivered", r->delivered - moved, a->delivered,
			      r->delivered - moved);
	oracle__check_between(o, ring, "failed", was->failed, a->failed, is->failed);
	oracle__check_between(o, ring, "stray", 0, a->stray, 0);
	oracle__check_between(o, ring, "late", r->late, a->late, r->late);
	oracle__check_between(o, ring, "ahead", r->ahead, a->ahead, r->ahead);
	oracle__check_between(o, ring, "self", was->self, a->self, is->self);
	oracle__check_between(o, ring, "unread", was->unread, a->unread, is->unread);
	oracle__check_between(o, ring, "filtered",
			      was->filtered + r->moved_filtered +
				      (complete ? r->entry_discarded : 0),
			      a->filtered, is->filtered + r->moved_filtered + ring->discarded);
	check_refused_and_broken(o, ring, r, a, complete);
	for (i = 0; i < WEIR_LOST_CAUSES; i++) {
		if (i == WEIR_LOST_RESERVE_FAILED || i == WEIR_LOST_BROKEN)
			continue;
		if (i == WEIR_LOST_HELD)
			oracle__check_between(o, ring, weir_cause__name(i),
					      r->told[i] + r->moved_lost[i], a->lost[i],
					      is->attempts);
		else
			oracle__check_between(o, ring, weir_cause__name(i), r->moved_lost[i],
					      a->lost[i], r->moved_lost[i]);
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

void oracle__check_ledger(struct oracle *o, const struct weir_stream *stream, bool complete)
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
