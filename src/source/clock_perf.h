/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * clock_perf.h - perf's own clock (sched_clock), read from user space.
 *
 * The kernel's page of any perf event tells how to make it out of the TSC (perf_event.h:
 * cap_user_time_zero). Only x86-64 with a TSC that the kernel takes for stable.
 */
#ifndef WEIR_SOURCE_CLOCK_PERF_H
#define WEIR_SOURCE_CLOCK_PERF_H

#include "source/clock.h"

int clock_perf__open(struct weir_clock *out);
/* Does nothing to other clocks. */
void clock_perf__close(struct weir_clock *clock);

#endif /* WEIR_SOURCE_CLOCK_PERF_H */
