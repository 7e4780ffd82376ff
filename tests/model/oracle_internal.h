/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * oracle_internal.h - what the parts of the oracle share.
 */
#ifndef MODEL_ORACLE_INTERNAL_H
#define MODEL_ORACLE_INTERNAL_H

#include "oracle.h"

/* A record is unfinished somewhere: then a flush may time out, and a close can't be complete. */
bool oracle__anything_busy(struct oracle *oracle);

/* Published, and neither delivered nor lost. */
static inline bool is_open(const struct sim_record *rec)
{
	return rec->state == SIM_STATE_SUBMITTED && rec->fate == SIM_FATE_OPEN;
}

/* The oldest record that may still be delivered, as the place where every scan begins. */
void oracle__advance_open(struct oracle_ring *r, const struct sim_ring *ring);

/* Whatever the reader's snapshot was, nothing in it was unfinished. */
static inline bool is_drained(const struct oracle_ring *r)
{
	return r->busy == r->end;
}

/* G4: a number of this ring's account is what the log allows. */
void oracle__check_between(struct oracle *oracle, const struct sim_ring *ring, const char *what,
			   uint64_t low, uint64_t is, uint64_t high);

/* The ledger as it is now. `complete`: the call went as far as it could. */
void oracle__check_ledger(struct oracle *oracle, const struct weir_stream *stream, bool complete);

/* G6: what was published before the call is out. */
void oracle__check_flushed(struct oracle *oracle);

/* The stream is closed, and nothing was left unfinished. */
void oracle__check_end(struct oracle *oracle, const struct weir_stream *stream);

#endif /* MODEL_ORACLE_INTERNAL_H */
