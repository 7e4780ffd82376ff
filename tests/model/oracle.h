/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * oracle.h - is what comes out of a stream what the simulator put in?
 *
 * Told of every call, event and watermark, it compares them with the simulator's log and keeps the
 * first broken promise as a sentence that begins with the promise's number (G1 to G8).
 */
#ifndef MODEL_ORACLE_H
#define MODEL_ORACLE_H

#include <weir/stream.h>

#include "came.h"
#include "sim.h"

/* A head that some poll has seen, and the time at which it had looked. */
struct oracle_snapshot {
	uint64_t t_ns;
	uint64_t producer;
};

/* A reader's FIFO may merge entries when it is full; up to this many it has to keep them apart. */
#define ORACLE_FIFO 8

/* What is known of one ring. "entry" is the moment at which the current call began. */
struct oracle_ring {
	uint64_t open;	/* records below this number are settled, one way or another */
	uint64_t limit; /* records from this number up were reserved after the snapshot */
	uint64_t head;	/* of the ring at the first look at the clock, */
	uint64_t end;	/* and at the last: the snapshot's is one of them, or between */
	uint64_t busy;	/* position of the oldest unfinished record at the first, or `head` */
	struct oracle_snapshot fifo[ORACLE_FIFO];
	uint32_t nfifo;
	uint32_t unreached; /* snapshots since the ring was last drained to its head */
	uint64_t reached_ns;
	uint64_t busy_since_ns, busy_since_position;
	uint64_t consumer;
	uint64_t boundary; /* the newest number whose position the tail has passed */

	uint64_t missing, missing_seq; /* stamped up to W and not delivered, when W was announced */
	uint64_t held;		       /* lost by that cause, as the ledger has it */
	uint64_t delivered, late, ahead;
	uint64_t told[WEIR_LOST_CAUSES]; /* in gaps so far */
	uint64_t moved_filtered, moved_lost[WEIR_LOST_CAUSES];

	struct weir_counters entry_counters;
	uint64_t entry_failed, entry_broken, entry_discarded;
};

/* Runs that were skipped at some moment, not told of yet. */
struct oracle_skip {
	uint64_t at_ns;
	uint64_t count;
};

enum oracle_call {
	ORACLE_IDLE = 0,
	ORACLE_POLL,
	ORACLE_FLUSH,
	ORACLE_CLOSE,
	ORACLE_CLOSED,
};

struct oracle {
	struct sim *sim;
	uint64_t guard_ns;
	size_t memory_bytes;
	struct oracle_ring *rings;
	uint32_t nrings;

	struct came *out;
	uint64_t nout, out_cap;
	bool ordered; /* some event came unmarked: `last` is set */
	struct came last;
	uint64_t announced_ns;

	enum oracle_call call;
	uint64_t calls;	  /* callbacks in this call */
	uint64_t first_t; /* what the clock said first in this call */
	bool timed, delivering;
	bool was_busy; /* something was unfinished when it began */

	struct oracle_skip *skips;
	uint64_t nskips, skips_cap, skipped, told_skipped;
	uint64_t offline_gaps, clock_steps; /* how many came; tests expect them */
	struct weir_clock_step step;	    /* the newest */
	bool may_fail; /* memory is refused: a call may say -ENOMEM, and has to be repeatable */
	bool blind;    /* judge nothing: a test spoils bytes at random and has checks of its own */
	char fault[512]; /* empty: every promise held so far */
};

void oracle__init(struct oracle *oracle, struct sim *sim, uint64_t guard_ns, size_t memory_bytes);
void oracle__destroy(struct oracle *oracle);

/* A ring was added to the simulator. */
void oracle__ring_added(struct oracle *oracle);

void oracle__call_begins(struct oracle *oracle, enum oracle_call call);
void oracle__clock_read(struct oracle *oracle, uint64_t t_ns);
void oracle__event(struct oracle *oracle, const struct weir_event *event);
void oracle__watermark(struct oracle *oracle, uint64_t watermark_ns, enum weir_order order);

/* rc: what the call returned; stopped: the error with which a callback ended it, or 0. */
void oracle__call_ends(struct oracle *oracle, const struct weir_stream *stream, int rc,
		       int stopped);

/* Runs of a program were skipped now. */
void oracle__skipped(struct oracle *oracle, uint64_t count);

/* The consumer moved `count` delivered records to filtered, or to lost. */
void oracle__moved_filtered(struct oracle *oracle, uint32_t source, uint64_t count);
void oracle__moved_lost(struct oracle *oracle, uint32_t source, uint64_t count,
			enum weir_cause cause);

/* Note a broken promise, unless one is known already. */
void oracle__fault(struct oracle *oracle, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif /* MODEL_ORACLE_H */
