/* SPDX-License-Identifier: BSD-2-Clause */
/* most.h - the highest rate at which nothing is lost, by trying. Pure: what a try is, is the caller's. */
#ifndef WEIR_MEASURE_MOST_H
#define WEIR_MEASURE_MOST_H

#include <stdbool.h>
#include <stdint.h>

struct most_run {
	double delivered; /* a second */
	uint64_t lost;
};

/* Makes so many a second, or as many as it can. */
typedef struct most_run (*most_run_fn)(void *ctx, uint64_t rate);

/*
 * Returns the most that was delivered a second with nothing lost; 0: something was lost in each try.
 * *limit: the load could not make more, and nothing was lost at any rate.
 */
double most__find(most_run_fn run, void *ctx, bool *limit);

#endif /* WEIR_MEASURE_MOST_H */
