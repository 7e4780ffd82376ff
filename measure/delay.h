/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * delay.h - what a reader costs that sleeps until there is something, and how late it is.
 *
 * One thread on one CPU makes system calls at a steady rate, a program sends a record of each, and a
 * reader does nothing but poll. CPU time of the reader with an empty callback; or, in a run of its own, the
 * time from stamp to callback.
 */
#ifndef WEIR_MEASURE_DELAY_H
#define WEIR_MEASURE_DELAY_H

#include "measure/hook.h"
#include "measure/sample.h"

#include <stdbool.h>

enum delay_fence {
	DELAY_RESERVE, /* weir.bpf.h */
	DELAY_RCU,     /* a ring buffer of somebody else's program */
	DELAY_GRACE,   /* the same, with a waiting time instead of a proof */
	DELAY_FENCES
};

#define DELAY_GRACE_NS 1000000

struct delay {
	struct hook hook;
	struct bpf_link *link;
	int load_cpu;
	bool timing; /* each event's lag goes into the sample */
	uint64_t events;
	struct sample lag_us;
};

struct delay_result {
	double rate, polls; /* a second */
	double cpu_percent; /* of the reader */
	uint64_t lost;
};

/* "reserve", "rcu", "grace". */
const char *delay__name(enum delay_fence fence);

/* These exit with a message on failure. */
void delay__open(struct delay *delay, enum delay_fence fence, int load_cpu);
void delay__close(struct delay *delay);

/* rate: events a second, 0: none. timing: the lags of the run are added to lag_us. */
struct delay_result delay__run(struct delay *delay, unsigned rate, double seconds, bool timing);

#endif /* WEIR_MEASURE_DELAY_H */
