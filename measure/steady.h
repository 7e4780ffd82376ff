/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * steady.h - loads of a known rate: a thread on one CPU that makes system calls, each an event; and threads
 * that take every CPU and make none.
 */
#ifndef WEIR_MEASURE_STEADY_H
#define WEIR_MEASURE_STEADY_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct steady {
	pthread_t thread;
	int tid;
	unsigned rate; /* calls a second; 0: none */
	int cpu;       /* where it runs */
	bool stop;
	uint64_t calls;
};

/* Exits with a message on failure; its tid is known when this returns. */
void steady__start(struct steady *load, unsigned rate, int cpu);
void steady__stop(struct steady *load);

void steady__sleep_until(uint64_t due_ns);

/* Every CPU of the machine is taken until that stops; ordinary tasks, whatever the caller is. */
struct busy {
	pthread_t *thread;
	unsigned count;
	bool stop;
};

void busy__start(struct busy *busy);
void busy__stop(struct busy *busy);

#endif /* WEIR_MEASURE_STEADY_H */
