/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tracecmd - what libtracecmd takes to read a trace.dat: each of its events in the order of time, counted.
 *
 *	tracecmd FILE
 *
 * Prints how many there are. Those of instances count, too, one after the other.
 */
#include <err.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <trace-cmd.h>

static int count(struct tracecmd_input *input, struct tep_record *record, int cpu, void *ctx)
{
	(*(uint64_t *)ctx)++;
	return 0;
}

static void read_all(struct tracecmd_input *input, uint64_t *events)
{
	if (!input || tracecmd_iterate_events(input, NULL, 0, count, events))
		errx(1, "the events cannot be read");
}

int main(int argc, char **argv)
{
	struct tracecmd_input *input;
	uint64_t events = 0;

	if (argc != 2)
		errx(2, "usage: tracecmd FILE");
	input = tracecmd_open(argv[1], 0);
	if (!input)
		errx(1, "%s cannot be opened", argv[1]);
	read_all(input, &events);
	for (int i = 0; i < tracecmd_buffer_instances(input); i++)
		read_all(tracecmd_buffer_instance_handle(input, i), &events);
	tracecmd_close(input);
	printf("%" PRIu64 "\n", events);
	return 0;
}
