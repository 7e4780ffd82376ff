/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * load.h - how a load and its test talk (live.py, class Load).
 *
 * A load says "ready", waits for a byte, does its work, and prints what it has done: that is the truth
 * to which a trace is held. It dies with its test.
 */
#ifndef LOAD_H
#define LOAD_H

#include <err.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static inline void load__wait_for_go(void)
{
	char go;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	puts("ready");
	fflush(stdout);
	if (read(STDIN_FILENO, &go, 1) != 1)
		exit(1);
}

/* The calling thread runs there from now on. */
static inline void load__pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		err(1, "CPU %d", cpu);
}

static inline uint64_t load__now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Not at all, where that time has passed. */
static inline void load__sleep_until(uint64_t at_ns)
{
	struct timespec at = {(time_t)(at_ns / 1000000000), (long)(at_ns % 1000000000)};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

#endif /* LOAD_H */
