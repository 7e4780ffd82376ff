/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hash.h - chained hash table whose nodes live in their owners.
 *
 * A lookup is one slot and its chain; the caller compares. Nodes with the same key keep the order
 * in which they were put before or behind each other, also when the table grows: the task table
 * has several identities of one tid in a chain, newest first.
 */
#ifndef WEIR_STATE_HASH_H
#define WEIR_STATE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "state/budget.h"

struct hash_node {
	struct hash_node *next, **pprev; /* pprev: what points here, so that leaving is O(1) */
	uint64_t key;
};

struct hash {
	struct hash_node **slots;
	unsigned int bits;
	size_t count;
	struct budget *budget;
};

int hash__init(struct hash *hash, struct budget *budget, unsigned int bits);
void hash__free(struct hash *hash);

/* Double the slots if there are more nodes than slots. Failing is harmless: chains get longer. */
void hash__grow(struct hash *hash);

/* Fibonacci hashing: keys that follow each other, as tids do, spread over all slots. */
static inline struct hash_node **hash__slot(const struct hash *hash, uint64_t key)
{
	return &hash->slots[(key * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - hash->bits)];
}

static inline struct hash_node *hash__first(const struct hash *hash, uint64_t key)
{
	return *hash__slot(hash, key);
}

/* Put node where *at points: in front of what stands there. */
static inline void hash__insert_at(struct hash *hash, struct hash_node **at, struct hash_node *node)
{
	node->next = *at;
	node->pprev = at;
	if (node->next)
		node->next->pprev = &node->next;
	*at = node;
	hash->count++;
}

static inline void hash__insert(struct hash *hash, struct hash_node *node, uint64_t key)
{
	node->key = key;
	hash__insert_at(hash, hash__slot(hash, key), node);
}

static inline void hash__remove(struct hash *hash, struct hash_node *node)
{
	*node->pprev = node->next;
	if (node->next)
		node->next->pprev = node->pprev;
	hash->count--;
}

#endif /* WEIR_STATE_HASH_H */
