// SPDX-License-Identifier: BSD-2-Clause
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "rng.h"
#include "seeds.h"

static void run(uint64_t seed, seeds_round round)
{
	char label[64];

	snprintf(label, sizeof(label), "WEIR_SEED=%" PRIu64, seed);
	print_message("%s\n", label);
	round(seed, label);
}

void seeds__fixed(const uint64_t *found, size_t nfound, uint64_t count, seeds_round round)
{
	if (getenv("WEIR_SEED"))
		return;
	for (size_t i = 0; i < nfound; i++)
		run(found[i], round);
	for (uint64_t seed = 1; seed <= count; seed++)
		run(seed, round);
}

void seeds__random(uint64_t count, seeds_round round)
{
	const char *given = getenv("WEIR_SEED"), *rounds = getenv("WEIR_ROUNDS");
	struct rng rng = {(uint64_t)time(NULL) << 20 ^ (uint64_t)clock()};

	if (given) {
		run(strtoull(given, NULL, 0), round);
		return;
	}
	if (rounds)
		count = strtoull(rounds, NULL, 0);
	while (count--)
		run(rng__next(&rng), round);
}
