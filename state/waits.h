/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * waits.h - how long threads waited for a CPU, from the kernel's own totals at their switches away.
 *
 * What lies between the totals of two switches away that follow each other is the wait before the
 * slice that the second ended. CPUs are read one after the other, so the two may be told in the wrong
 * order, if the thread has moved between them; the totals count its moves, too, and so tell that.
 * Those without a move between them are settled at once, a *chain*. Where a chain begins, the one
 * before it is known as soon as every CPU has been read up to there: then the chains of a thread stand
 * in order.
 */
#ifndef WEIR_STATE_WAITS_H
#define WEIR_STATE_WAITS_H

#include "state/runners.h"

/* Switches away of a thread from one CPU, without a move or a loss between them. */
struct chain {
	struct runner *runner;
	uint64_t first_ns, last_ns; /* stamps of its first and last */
	uint64_t first, last;	    /* totals at these */
	uint32_t losses;	    /* of the CPU, when it began */
	uint32_t cpu;
	uint32_t next; /* of the same runner, later: index + 1; 0: none */
};

struct waits {
	struct budget *budget;
	struct delays_pool *pool;
	struct chain *chains;
	uint32_t count, room;
	/* Switches are missing somewhere: up to there, and since the last settlement between these. */
	uint64_t lost_ns, new_from_ns, new_to_ns;
};

void waits__init(struct waits *waits, struct runners *runners);
void waits__free(struct waits *waits);

/*
 * The thread leaves a CPU with these totals. `on`: the account of that CPU. losses: how often
 * something was lost there so far.
 */
void waits__left(struct waits *waits, struct runner *runner, uint32_t cpu, struct account *on,
		 uint32_t losses, uint64_t stamp_ns, uint64_t totals);

/* Its totals are not told here, or are no use: the next wait is not known. */
void waits__unknown(struct runner *runner);

/* Something was lost: who was switched away before and after may have been in between. */
void waits__lost(struct waits *waits, uint64_t from_ns, uint64_t to_ns);

/* Can nothing be said of a wait between these? */
bool waits__is_hidden(const struct waits *waits, uint64_t from_ns, uint64_t to_ns);

/* All CPUs have been read up to there. account_of: that of a CPU. */
void waits__settle(struct waits *waits, uint64_t watermark_ns,
		   struct account *(*account_of)(void *ctx, uint32_t cpu), void *ctx);

/* `to` goes on with what `from` was until now: it has taken another's name by exec. */
void waits__rename(struct waits *waits, struct runner *from, struct runner *to);

#endif /* WEIR_STATE_WAITS_H */
