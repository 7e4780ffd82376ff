/* SPDX-License-Identifier: BSD-2-Clause */
/* probe - what it costs the traced program to send a record (measure/ways.h): least and median. */
#include "measure/ways.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct options {
	int cpu;
	unsigned rounds, round_ms;
};

static void print_table(struct way_cost cost[WAYS])
{
	printf("%-14s %16s %10s\n", "way", "program, ns", "call, ns");
	for (int i = 0; i < WAYS; i++)
		printf("%-14s %7.1f (%6.1f) %10.1f  %s\n", cost[i].name,
		       sample__min(&cost[i].run_ns), sample__median(&cost[i].run_ns),
		       sample__median(&cost[i].call_ns), cost[i].what);
}

static void usage(void)
{
	errx(2, "usage: probe [-c CPU] [-r ROUNDS] [-t MS]");
}

static void parse(struct options *o, int argc, char **argv)
{
	int opt;

	while ((opt = getopt(argc, argv, "c:r:t:")) != -1) {
		if (opt == 'c')
			o->cpu = atoi(optarg);
		else if (opt == 'r')
			o->rounds = (unsigned)atoi(optarg);
		else if (opt == 't')
			o->round_ms = (unsigned)atoi(optarg);
		else
			usage();
	}
	if (optind != argc || !o->rounds || !o->round_ms)
		usage();
}

int main(int argc, char **argv)
{
	struct options o = {.rounds = 7, .round_ms = 60};
	struct way_cost cost[WAYS];

	parse(&o, argc, argv);
	ways__measure(cost, o.cpu, o.rounds, o.round_ms);
	print_table(cost);
	return 0;
}
