/* SPDX-License-Identifier: BSD-2-Clause */
#include "measure/most.h"

#define FIRST_RATE 50000u
#define HALVINGS   4
#define GROWS	   1.1
/* A load that is at its end makes no more at twice the rate, nor at four times. */
#define STALLS	   2

struct search {
	most_run_fn run;
	void *ctx;
	double best;
};

/* false: something was lost. */
static bool try_rate(struct search *search, uint64_t rate, double *delivered)
{
	struct most_run run = search->run(search->ctx, rate);

	*delivered = run.delivered;
	if (run.lost)
		return false;
	if (run.delivered > search->best)
		search->best = run.delivered;
	return true;
}

double most__find(most_run_fn run, void *ctx, bool *limit)
{
	struct search search = {.run = run, .ctx = ctx};
	double before = 0, delivered;
	uint64_t good = 0, bad = FIRST_RATE;
	unsigned stalls = 0;

	while (stalls < STALLS && try_rate(&search, bad, &delivered)) {
		stalls = delivered < GROWS * before ? stalls + 1 : 0;
		before = search.best;
		good = bad;
		bad *= 2;
	}
	*limit = stalls == STALLS;
	for (int i = 0; i < HALVINGS && !*limit; i++) {
		uint64_t rate = good + (bad - good) / 2;

		if (try_rate(&search, rate, &delivered))
			good = rate;
		else
			bad = rate;
	}
	return search.best;
}
