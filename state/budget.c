// SPDX-License-Identifier: BSD-2-Clause
/*
 * budget.c - owns the count of bytes of one table. Knows the heap, and nothing of what is stored.
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#include "state/budget.h"

/* The heap's own word in front of each allocation. */
#define HEAP_HEADER sizeof(size_t)

size_t budget__cost(void *ptr)
{
	return malloc_usable_size(ptr) + HEAP_HEADER;
}

void *budget__alloc(struct budget *budget, size_t size)
{
	size_t cost;
	void *ptr;

	/* What cannot fit is not even asked for. */
	if (size > budget->cap - budget->bytes)
		goto refuse;
	ptr = calloc(1, size);
	if (!ptr)
		goto refuse;
	cost = budget__cost(ptr);
	if (cost > budget->cap - budget->bytes) {
		free(ptr);
		goto refuse;
	}
	budget->bytes += cost;
	return ptr;
refuse:
	errno = ENOMEM;
	return NULL;
}

void budget__free(struct budget *budget, void *ptr)
{
	if (!ptr)
		return;
	budget->bytes -= budget__cost(ptr);
	free(ptr);
}
