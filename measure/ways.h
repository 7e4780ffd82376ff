/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ways.h - what it costs the traced program to send a record, by each way there is.
 *
 * ns beyond an empty program on the same hook, by the kernel's own count of how long BPF programs
 * ran, while one thread on one CPU calls getppid(). Beside it what that thread sees, interrupts
 * included: CPU time a call beyond the same with the empty program. All ways take turns; each is
 * checked to have sent what it should.
 */
#ifndef WEIR_MEASURE_WAYS_H
#define WEIR_MEASURE_WAYS_H

#include "measure/sample.h"

#define WAYS 10

struct way_cost {
	const char *name, *what;
	struct sample run_ns, call_ns; /* a value a round; of the first, the empty one, the whole */
};

/* Pins the caller. Exits with a message on failure. */
void ways__measure(struct way_cost cost[WAYS], int cpu, unsigned rounds, unsigned round_ms);

#endif /* WEIR_MEASURE_WAYS_H */
