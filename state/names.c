// SPDX-License-Identifier: BSD-2-Clause
/*
 * names.c - owns the interned strings. Does not know what they name, and never looks inside.
 */
#include <string.h>
#include <sys/auxv.h>

#include "state/names.h"

#define FIRST_BITS 6

/*
 * The programs that are traced choose these strings: with a start value that they cannot know, they
 * cannot choose which ones share a slot. The kernel leaves 16 random bytes for every process.
 */
static uint64_t random_seed(void)
{
	const void *bytes = (const void *)getauxval(AT_RANDOM);
	uint64_t seed = UINT64_C(0xcbf29ce484222325);

	if (bytes)
		memcpy(&seed, bytes, sizeof(seed));
	return seed;
}

/* FNV-1a. */
static uint64_t hash_text(const struct names *names, const char *text, size_t len)
{
	uint64_t h = names->seed;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
	return h;
}

int names__init(struct names *names, struct budget *budget)
{
	names->seed = random_seed();
	return hash__init(&names->hash, budget, FIRST_BITS);
}

void names__free(struct names *names)
{
	hash__free(&names->hash);
}

static struct name *find(const struct names *names, uint64_t key, const char *text, size_t len)
{
	struct hash_node *node;

	for (node = hash__first(&names->hash, key); node; node = node->next) {
		struct name *name = (struct name *)node;

		if (node->key == key && name->len == len && !memcmp(name->text, text, len))
			return name;
	}
	return NULL;
}

struct name *names__get(struct names *names, const char *text, size_t len)
{
	uint64_t key = hash_text(names, text, len);
	struct name *name = find(names, key, text, len);

	if (name)
		return name__ref(name);
	name = budget__alloc(names->hash.budget, sizeof(*name) + len + 1);
	if (!name)
		return NULL;
	name->refs = 1;
	name->len = (uint32_t)len;
	memcpy(name->text, text, len);
	hash__insert(&names->hash, &name->node, key);
	hash__grow(&names->hash);
	return name;
}

struct name *name__ref(struct name *name)
{
	if (name)
		name->refs++;
	return name;
}

void names__put(struct names *names, struct name *name)
{
	if (!name || --name->refs)
		return;
	hash__remove(&names->hash, &name->node);
	budget__free(names->hash.budget, name);
}
