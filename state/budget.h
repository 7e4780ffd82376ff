/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * budget.h - every byte that a table takes, counted against its cap.
 *
 * Allocations go through here and nowhere else, so that `bytes` is the whole truth: what the heap
 * really gave, its header included. A request that would cross the cap is refused like any other
 * lack of memory: the cap holds even where a caller made too little room.
 */
#ifndef WEIR_STATE_BUDGET_H
#define WEIR_STATE_BUDGET_H

#include <stddef.h>

struct budget {
	size_t bytes;
	size_t cap;
};

/* What the heap took for ptr. */
size_t budget__cost(void *ptr);

/* Zeroed. NULL and ENOMEM when the heap or the cap refuses. */
void *budget__alloc(struct budget *budget, size_t size);
void budget__free(struct budget *budget, void *ptr); /* NULL is allowed */

#endif /* WEIR_STATE_BUDGET_H */
