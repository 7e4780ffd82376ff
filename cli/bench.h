/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench.h - the parts of `weir bench`, and what they found.
 *
 * Results are plain numbers: a part is measured in a process of its own, which can fail or be ended
 * without anything being left behind, and hands them over in shared memory.
 */
#ifndef WEIR_CLI_BENCH_H
#define WEIR_CLI_BENCH_H

#include "measure/delay.h"
#include "measure/flood.h"
#include "measure/switches.h"
#include "measure/ways.h"

#include <stdbool.h>
#include <stdint.h>

enum bench_part { BENCH_PROBE, BENCH_ORDER, BENCH_LATENCY, BENCH_THROUGHPUT, BENCH_PARTS };

enum bench_state {
	BENCH_UNASKED,
	BENCH_NO_RIGHTS,
	BENCH_FAILED,
	BENCH_STOPPED,
	BENCH_DONE,
};

/* ns; of several rounds */
struct bench_cost {
	const char *name, *what;
	double least_ns, median_ns;
};

#define BENCH_RINGS_MAX 8

struct bench_order_row {
	unsigned rings;
	double weir_ns, unsorted_ns; /* a record; least */
};

struct bench_latency_row {
	const char *fence;
	bool loaded; /* every CPU of the machine was taken */
	uint64_t events, lost;
	double p50_us, p99_us, max_us;
};

struct bench_results {
	enum bench_state state[BENCH_PARTS];
	struct bench_cost way[WAYS], switched[SWITCH_WAYS];
	double switch_read_ns; /* a record, of the accounting probe's reader */
	struct bench_order_row order[BENCH_RINGS_MAX];
	unsigned nr_orders;
	struct bench_latency_row latency[2 * DELAY_FENCES];
	struct flood_result most;
	unsigned flood_cpus;
	bool flood_is_limit; /* the load could not make more */
};

struct bench_plan {
	bool quick;
	int cpu; /* where what is pinned runs */
};

struct bench_part_def {
	const char *name;
	bool live;			 /* needs root */
	unsigned seconds, quick_seconds; /* that it takes when nothing else runs */
	/* Pins, starts threads, exits with a message on failure: for a process of its own. */
	void (*measure)(const struct bench_plan *plan, struct bench_results *results);
};

extern const struct bench_part_def bench__parts[BENCH_PARTS];

/* "done", "failed", ... as in JSON. */
const char *bench__state_name(enum bench_state state);

struct bench_machine {
	long cpus;
	char kernel[65], machine[65];
	double load; /* average of a minute, before anything was measured */
};

void bench__print_machine(const struct bench_machine *machine, unsigned seconds);
/* A part's table, once it is done. */
void bench__print_part(enum bench_part part, const struct bench_results *results);
/* All of it; false: no memory. */
bool bench__print_json(const struct bench_machine *machine, const struct bench_results *results,
		       bool quick);

#endif /* WEIR_CLI_BENCH_H */
