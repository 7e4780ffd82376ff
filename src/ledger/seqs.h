/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * seqs.h - which sequence numbers of a ring were seen, and which are lost.
 *
 * The order of the ring, of the numbers and of the stamps are three orders: an interrupt may nest
 * between reserve, count and stamp. So a hole between neighbours of the ring proves nothing. What
 * does: once the ring is drained up to the P of a snapshot, every number below its S that was not
 * seen is lost, and no other; because a record's space is reserved before its number is taken.
 *
 * Pure. Promises exact counts; the number of holes remembered is bounded, and when it is reached
 * neighbours are joined: their bounds in time become wider, never their count. What a joined hole
 * can't tell any more is a number that comes twice, which no ring of the kernel's has: it is taken
 * for one of the missing, and the sums close all the same.
 */
#ifndef WEIR_LEDGER_SEQS_H
#define WEIR_LEDGER_SEQS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEQS_HOLES_MAX 4096u

/*
 * How many records of one ring can be open at once, counted and not stamped yet: one in each context
 * that can nest (task, softirq, interrupt, NMI), and the one whose turn it is.
 */
#define SEQS_NESTING 4u

/* Numbers in [first, end), `missing` of which were not seen, all lost in (from_ns, to_ns]. */
struct hole {
	uint64_t first, end, missing;
	uint64_t from_ns, to_ns;
};

struct seqs {
	uint64_t start;	 /* the first number that concerns us */
	uint64_t expect; /* the least number above all that were seen */
	uint64_t limit;	 /* numbers that the counter has given out: none is seen at or above it */
	uint64_t recent_ns[SEQS_NESTING]; /* stamps of the last that were seen */
	uint64_t seen;			  /* how many numbers were seen */
	uint64_t lost;			  /* how many were given up */
	uint64_t settled;		  /* S of the last settled snapshot */
	uint64_t floor_ns;  /* T of that snapshot: what it did not count happened later */
	struct hole *holes; /* by number, all of them below expect */
	size_t count, cap;
};

int seqs__init(struct seqs *seqs);
/* Begin at a number other than 0. */
void seqs__start(struct seqs *seqs, uint64_t first);
void seqs__free(struct seqs *seqs);

/* The number of which `low` is the low half: the nearest to what is expected. */
static inline uint64_t seqs__widen(const struct seqs *seqs, uint32_t low)
{
	return seqs->expect + (uint64_t)(int64_t)(int32_t)(low - (uint32_t)seqs->expect);
}

/*
 * A record came. false: its number was seen before, given up as lost, or never given out (limit); it
 * must not count.
 */
bool seqs__see(struct seqs *seqs, uint32_t low, uint64_t stamp_ns);

/* How many numbers on from `expect` may be seen: the counter has given them out. */
static inline uint64_t seqs__room(const struct seqs *seqs)
{
	return (int64_t)(seqs->limit - seqs->expect) > 0 ? seqs->limit - seqs->expect : 0;
}

static inline void seqs__note_stamp(struct seqs *seqs, uint64_t stamp_ns)
{
	seqs->recent_ns[seqs->seen++ % SEQS_NESTING] = stamp_ns;
}

/*
 * The ring is drained up to the P of the snapshot (t_ns, bound_ns, attempts): call lost() for each
 * hole below `attempts`, and forget it.
 */
void seqs__settle(struct seqs *seqs, uint64_t t_ns, uint64_t bound_ns, uint64_t attempts,
		  void (*lost)(void *ctx, const struct hole *hole), void *ctx);

#endif /* WEIR_LEDGER_SEQS_H */
