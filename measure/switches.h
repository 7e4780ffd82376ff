/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * switches.h - what the accounting probe costs: a switch where it is attached, a record where it is read.
 *
 * Two threads on one CPU hand a byte to and fro. ns beyond an empty program on the same hook, by the
 * kernel's own count of how long BPF programs ran; beside it the reader's CPU time a record, with a
 * consumer that looks at each. All ways take turns, and each is checked to have sent all switches.
 */
#ifndef WEIR_MEASURE_SWITCHES_H
#define WEIR_MEASURE_SWITCHES_H

#include "measure/sample.h"

enum switch_way {
	SWITCH_EMPTY,
	SWITCH_STAMP,
	SWITCH_LANE,
	SWITCH_LANE_RAW,
	SWITCH_RING,
	SWITCH_WAYS
};

struct switch_cost {
	const char *name, *what;
	struct sample run_ns, read_ns; /* a value a round */
};

/* Pins the caller. Exits with a message on failure. */
void switches__measure(struct switch_cost cost[SWITCH_WAYS], int cpu, unsigned rounds,
		       unsigned batches);

#endif /* WEIR_MEASURE_SWITCHES_H */
