// SPDX-License-Identifier: BSD-2-Clause
/*
 * hash.c - owns the slot arrays; the nodes belong to others.
 */
#include <errno.h>

#include "state/hash.h"

static size_t slots_size(unsigned int bits)
{
	return sizeof(struct hash_node *) << bits;
}

int hash__init(struct hash *hash, struct budget *budget, unsigned int bits)
{
	hash->slots = budget__alloc(budget, slots_size(bits));
	if (!hash->slots)
		return -ENOMEM;
	hash->bits = bits;
	hash->count = 0;
	hash->budget = budget;
	return 0;
}

void hash__free(struct hash *hash)
{
	if (hash->slots)
		budget__free(hash->budget, hash->slots);
	hash->slots = NULL;
}

/*
 * Slot i becomes 2i and 2i + 1; each keeps its order. Both ends are carried along, because a chain
 * can be long where one tid was used again and again.
 */
static void split(struct hash *hash, size_t i, struct hash_node *node)
{
	struct hash_node **ends[2] = {&hash->slots[2 * i], &hash->slots[2 * i + 1]};

	while (node) {
		struct hash_node *next = node->next;
		size_t half = (size_t)(hash__slot(hash, node->key) - hash->slots) & 1;

		hash__insert_at(hash, ends[half], node);
		ends[half] = &node->next;
		node = next;
	}
}

void hash__grow(struct hash *hash)
{
	unsigned int bits = hash->bits;
	struct hash_node **old = hash->slots;
	struct hash_node **slots;

	if (hash->count <= (size_t)1 << bits)
		return;
	slots = budget__alloc(hash->budget, slots_size(bits + 1));
	if (!slots)
		return;
	hash->slots = slots;
	hash->bits = bits + 1;
	hash->count = 0;
	for (size_t i = 0; i < (size_t)1 << bits; i++)
		split(hash, i, old[i]);
	budget__free(hash->budget, old);
}
