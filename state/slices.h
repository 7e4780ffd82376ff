/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * slices.h - one CPU's time, cut into slices that are billed to whoever had it.
 *
 * Invariant: each nanosecond from begin_ns to billed_ns stands in exactly one account, so
 *
 *	tasks + idle + gap = billed_ns - begin_ns
 *
 * A slice that is open is billed up to a watermark, and from there on later. Where it turns out to
 * have ended before, billing goes back to that moment: the account loses what it had too much.
 */
#ifndef WEIR_STATE_SLICES_H
#define WEIR_STATE_SLICES_H

#include <stdbool.h>

#include "state/counts.h"

enum slice_of {
	SLICE_GAP = 0, /* nobody knows */
	SLICE_IDLE,
	SLICE_TASK,
};

struct slices {
	uint32_t cpu;
	enum slice_of of;
	struct account *owner; /* of a task's slice; borrowed */
	uint64_t begin_ns;
	uint64_t since_ns; /* of the open slice, which can be older than the accounts */
	uint64_t billed_ns;
	struct account tasks, idle, gap; /* tasks: all that owners were billed for on this CPU */
};

void slices__begin(struct slices *slices, uint32_t cpu, uint64_t begin_ns);

/* Bill the open slice up to to_ns, which is not before since_ns. */
void slices__bill(struct slices *slices, uint64_t to_ns);

/* It ends here, with the stamp of a switch, and the next one begins. */
void slices__switch(struct slices *slices, uint64_t stamp_ns, enum slice_of of,
		    struct account *owner);

/* From here on, but not from before it began, nobody knows who had this CPU. */
void slices__lose(struct slices *slices, uint64_t from_ns);

/* The rest of the open slice is another's: its task has got another name. */
void slices__hand_over(struct slices *slices, struct account *owner);

/* tasks + idle + gap - elapsed: 0, or the accounts are wrong. */
int64_t slices__difference_ns(const struct slices *slices);

#endif /* WEIR_STATE_SLICES_H */
