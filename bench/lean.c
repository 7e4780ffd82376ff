/* SPDX-License-Identifier: BSD-2-Clause */
/* lean - what the accounting probe costs (measure/switches.h): least and median of several rounds. */
#include "measure/switches.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TARGET_NS 80 /* of the accounting probe, a switch */

struct options {
	int cpu;
	unsigned rounds, batches;
};

static void print_table(struct switch_cost cost[SWITCH_WAYS])
{
	printf("%-10s %18s %22s\n", "way", "program, ns", "reader, ns a record");
	for (int id = 0; id < SWITCH_WAYS; id++)
		printf("%-10s %8.1f (%6.1f) %12.1f (%6.1f)  %s\n", cost[id].name,
		       sample__min(&cost[id].run_ns), sample__median(&cost[id].run_ns),
		       sample__min(&cost[id].read_ns), sample__median(&cost[id].read_ns),
		       cost[id].what);
	if (sample__median(&cost[SWITCH_LANE].run_ns) > TARGET_NS)
		printf("MISSED: %d ns a switch for the accounting probe\n", TARGET_NS);
}

static void usage(void)
{
	errx(2, "usage: lean [-c CPU] [-r ROUNDS] [-b BATCHES]");
}

static void parse(struct options *o, int argc, char **argv)
{
	int opt;

	while ((opt = getopt(argc, argv, "c:r:b:")) != -1) {
		if (opt == 'c')
			o->cpu = atoi(optarg);
		else if (opt == 'r')
			o->rounds = (unsigned)atoi(optarg);
		else if (opt == 'b')
			o->batches = (unsigned)atoi(optarg);
		else
			usage();
	}
	if (optind != argc || !o->rounds || !o->batches)
		usage();
}

int main(int argc, char **argv)
{
	struct options o = {.rounds = 9, .batches = 2};
	struct switch_cost cost[SWITCH_WAYS];

	parse(&o, argc, argv);
	switches__measure(cost, o.cpu, o.rounds, o.batches);
	print_table(cost);
	return 0;
}
