/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trap.h - memory that somebody else writes to at the moment in which the reader looks.
 *
 * Two views of the same pages: writers use the one, the reader has the other, where the first look at a
 * page is a fault, and a hook runs before it goes on. So what happens between two loads of the reader's can be
 * told, and in which order it does them. Where a sanitizer wants all faults for itself (trap__works()
 * is false) the hook runs once, when the trap is set.
 */
#ifndef MODEL_TRAP_H
#define MODEL_TRAP_H

#include <stdbool.h>
#include <stddef.h>

struct trap {
	void *writers, *readers; /* the two views */
	size_t size;		 /* whole pages */
	void (*hook)(void *ctx);
	void *ctx;
	struct trap *next;
};

/* writers: pages of an anonymous mapping, which are replaced, or NULL. Fails the test without memory. */
void trap__init(struct trap *trap, void *writers, size_t size);
/* Only the reader's view: the other one is its caller's to unmap, unless it was made here. */
void trap__destroy(struct trap *trap);

bool trap__works(void);
/* From now on, each page once. */
void trap__set(struct trap *trap, void (*hook)(void *ctx), void *ctx);

#endif /* MODEL_TRAP_H */
