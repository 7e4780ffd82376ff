/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * seeds.h - which rounds a test takes that has everything at random, from a seed.
 *
 * Each prints its seed beforehand: a crash or a hang prints nothing more. WEIR_SEED=n runs that round
 * alone, WEIR_TRACE=1 prints its steps, WEIR_ROUNDS=n takes so many random seeds.
 */
#ifndef MODEL_SEEDS_H
#define MODEL_SEEDS_H

#include <stddef.h>
#include <stdint.h>

/* label: "WEIR_SEED=n". */
typedef void (*seeds_round)(uint64_t seed, const char *label);

/* Those that have found something, and the first `count`: the same each time. */
void seeds__fixed(const uint64_t *found, size_t nfound, uint64_t count, seeds_round round);

/* `count` that nobody has seen yet; or the one that is asked for. */
void seeds__random(uint64_t count, seeds_round round);

#endif /* MODEL_SEEDS_H */
