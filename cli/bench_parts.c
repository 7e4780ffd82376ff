/* SPDX-License-Identifier: BSD-2-Clause */
/* bench_parts.c - what `weir bench` measures, and for how long. How it is done stands in measure/. */
#include "cli/bench.h"
#include "cli/priority.h"
#include "measure/readers.h"
#include "measure/steady.h"

#include <unistd.h>

#define LATENCY_RATE  1000u
#define ORDER_RECORDS 16384u
#define ORDER_BURST   1u
#define ORDER_STEP_NS 100u
#define FLOOD_BYTES   64u /* and 16 of head: about a system call's entry */

static void keep_cost(struct bench_cost *cost, const char *name, const char *what,
		      struct sample *ns)
{
	*cost = (struct bench_cost){
		.name = name,
		.what = what,
		.least_ns = sample__min(ns),
		.median_ns = sample__median(ns),
	};
}

static void measure_probe(const struct bench_plan *plan, struct bench_results *results)
{
	struct way_cost way[WAYS];
	struct switch_cost switched[SWITCH_WAYS];

	ways__measure(way, plan->cpu, plan->quick ? 3 : 7, plan->quick ? 20 : 60);
	for (int i = 0; i < WAYS; i++)
		keep_cost(&results->way[i], way[i].name, way[i].what, &way[i].run_ns);
	switches__measure(switched, plan->cpu, plan->quick ? 3 : 7, plan->quick ? 1 : 2);
	for (int i = 0; i < SWITCH_WAYS; i++)
		keep_cost(&results->switched[i], switched[i].name, switched[i].what,
			  &switched[i].run_ns);
	results->switch_read_ns = sample__min(&switched[SWITCH_LANE].read_ns);
}

static void measure_order(const struct bench_plan *plan, struct bench_results *results)
{
	static const unsigned rings[BENCH_RINGS_MAX] = {1, 2, 8, 32, 128, 512, 1024};
	const struct reader *const readers[] = {&reader__weir, &reader__unsorted};

	sample__pin(plan->cpu);
	for (unsigned i = 0; i < BENCH_RINGS_MAX && rings[i]; i++) {
		const struct shape shape = {
			.rings = rings[i],
			.burst = ORDER_BURST,
			.records = ORDER_RECORDS,
			.step_ns = ORDER_STEP_NS,
		};
		struct sample ns[2] = {0};

		readers__measure(readers, 2, &shape, plan->quick ? 7 : 51, ns);
		results->order[results->nr_orders++] = (struct bench_order_row){
			.rings = rings[i],
			.weir_ns = sample__min(&ns[0]),
			.unsorted_ns = sample__min(&ns[1]),
		};
		sample__free(&ns[0]);
		sample__free(&ns[1]);
	}
}

static void measure_one_latency(const struct bench_plan *plan, enum delay_fence fence, bool loaded,
				struct bench_latency_row *row)
{
	struct delay_result result;
	struct delay delay;
	struct busy busy;

	delay__open(&delay, fence, plan->cpu);
	if (loaded)
		busy__start(&busy);
	result = delay__run(&delay, LATENCY_RATE, plan->quick ? 0.5 : 2, true);
	if (loaded)
		busy__stop(&busy);
	*row = (struct bench_latency_row){
		.fence = delay__name(fence),
		.loaded = loaded,
		.events = delay.lag_us.count,
		.lost = result.lost,
		.p50_us = sample__median(&delay.lag_us),
		.p99_us = sample__quantile(&delay.lag_us, 0.99),
		.max_us = sample__quantile(&delay.lag_us, 1),
	};
	delay__close(&delay);
}

/* The reader is what weir's is: it asks for the CPU first. */
static void measure_latency(const struct bench_plan *plan, struct bench_results *results)
{
	priority__raise();
	for (int fence = 0; fence < DELAY_FENCES; fence++)
		for (int loaded = 0; loaded < 2; loaded++)
			measure_one_latency(plan, (enum delay_fence)fence, loaded,
					    &results->latency[2 * fence + loaded]);
}

static void measure_throughput(const struct bench_plan *plan, struct bench_results *results)
{
	const struct flood_shape shape = {
		.bytes = FLOOD_BYTES,
		.cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN),
		.times = 1,
	};
	struct flood flood;

	priority__raise();
	flood__open(&flood, FLOOD_WEIR);
	results->flood_cpus = shape.cpus;
	results->most = flood__search(&flood, &shape, plan->quick ? 0.2 : 1,
				      &results->flood_is_limit);
	flood__close(&flood);
}

const struct bench_part_def bench__parts[BENCH_PARTS] = {
	[BENCH_PROBE] = {"probe", true, 14, 5, measure_probe},
	[BENCH_ORDER] = {"order", false, 2, 1, measure_order},
	[BENCH_LATENCY] = {"latency", true, 14, 5, measure_latency},
	[BENCH_THROUGHPUT] = {"throughput", true, 12, 3, measure_throughput},
};
