/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rng.h - the random numbers of the model: splitmix64, the same on every machine for one seed.
 */
#ifndef MODEL_RNG_H
#define MODEL_RNG_H

#include <stdbool.h>
#include <stdint.h>

struct rng {
	uint64_t state;
};

static inline uint64_t rng__mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

static inline uint64_t rng__next(struct rng *rng)
{
	rng->state += 0x9e3779b97f4a7c15ull;
	return rng__mix(rng->state);
}

/* 0 <= result < limit. The bias of the remainder does not matter here. */
static inline uint64_t rng__below(struct rng *rng, uint64_t limit)
{
	return rng__next(rng) % limit;
}

static inline uint64_t rng__range(struct rng *rng, uint64_t low, uint64_t high)
{
	return low + rng__below(rng, high - low + 1);
}

/* True in `per_mille` of 1,000 cases. */
static inline bool rng__chance(struct rng *rng, uint32_t per_mille)
{
	return rng__below(rng, 1000) < per_mille;
}

#endif /* MODEL_RNG_H */
