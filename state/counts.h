/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counts.h - what is counted for whoever can have a CPU, and an account of it: since the beginning, and
 * as of the last interval's end.
 */
#ifndef WEIR_STATE_COUNTS_H
#define WEIR_STATE_COUNTS_H

#include <weir/lean.h>

#include "state/delays.h"

/*
 * Words of 64 bits and nothing else. Differences of two of these are taken word by word, modulo 2^64;
 * time can fall, by what was billed and then turned out to be another's.
 */
struct usage_counts {
	int64_t time_ns;
	uint64_t voluntary, involuntary; /* switches away */
	uint64_t migrations;
	uint64_t wait_ns; /* runnable, and without a CPU */
	uint64_t
		waits_unknown; /* of these, those that are in no histogram: losses hide how many they were */
	uint64_t counter[WEIR_LEAN_COUNTERS];
	uint64_t uncounted; /* slices of which a counter that this machine has could not be read */
};

static inline void counts__add(struct usage_counts *to, const struct usage_counts *from)
{
	uint64_t *t = (uint64_t *)to;
	const uint64_t *f = (const uint64_t *)from;

	for (unsigned int i = 0; i < sizeof(*to) / sizeof(*t); i++)
		t[i] += f[i];
}

static inline void counts__subtract(struct usage_counts *from, const struct usage_counts *what)
{
	uint64_t *f = (uint64_t *)from;
	const uint64_t *w = (const uint64_t *)what;

	for (unsigned int i = 0; i < sizeof(*from) / sizeof(*f); i++)
		f[i] -= w[i];
}

struct account {
	struct usage_counts total, seen; /* seen: as the last snapshot told it */
	struct delays *delays;		 /* of this interval; NULL: none yet */
};

/* A wait of known length. Without memory it counts as one that is in no histogram. */
static inline void account__wait(struct account *account, struct delays_pool *pool, uint64_t ns)
{
	account->total.wait_ns += ns;
	if (!account->delays)
		account->delays = delays__get(pool);
	if (account->delays)
		delays__add(account->delays, ns);
	else
		account->total.waits_unknown++;
}

/* `from` is over: what it has, `into` has from now on. */
static inline void account__fold(struct account *into, struct account *from,
				 struct delays_pool *pool)
{
	counts__add(&into->total, &from->total);
	counts__add(&into->seen, &from->seen);
	if (!into->delays) {
		into->delays = from->delays;
	} else if (from->delays) {
		delays__merge(into->delays, from->delays);
		delays__put(pool, from->delays);
	}
	*from = (struct account){0};
}

#endif /* WEIR_STATE_COUNTS_H */
