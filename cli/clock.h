/* SPDX-License-Identifier: BSD-2-Clause */
/* clock.h - what a clock says, in ns. */
#ifndef WEIR_CLI_CLOCK_H
#define WEIR_CLI_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NSEC_PER_SEC  1000000000ull
#define NSEC_PER_MSEC 1000000ull

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* The clock that stamps are of. */
static inline uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

#endif /* WEIR_CLI_CLOCK_H */
