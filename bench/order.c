/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * order - what it costs to put the records of many rings into the order of time.
 *
 * ns a record from the bytes in the rings to a callback that reads one field of the payload: the
 * library beside an unsorted loop of libbpf's kind, a heap, and sorting everything; on the same
 * bytes, in turns within one run, so that what else the machine does falls on all alike. Each reader
 * is checked first: every record once, in order where it promises order.
 */
#include "measure/readers.h"
#include "measure/sample.h"

#include <err.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WEIR, UNSORTED, HEAP, SORT, READERS };

static const struct reader *const readers[READERS] = {
	[WEIR] = &reader__weir,
	[UNSORTED] = &reader__unsorted,
	[HEAP] = &reader__heap,
	[SORT] = &reader__sort,
};

#define TARGET_SMALL_NS 9.0 /* for polls of up to SMALL_RECORDS */
#define TARGET_LARGE_NS 15.0
#define SMALL_RECORDS	16384u

struct list {
	unsigned count, value[16];
};

struct options {
	struct list records, bursts, rings;
	unsigned step_ns;
	bool mixed;
	unsigned polls; /* 0: by the size of a poll */
	const char *only;
};

static bool chosen(const struct options *o, size_t reader)
{
	return !o->only || !strcmp(o->only, readers[reader]->name);
}

static void print_head(const struct options *o)
{
	printf("%8s %6s %6s", "records", "rings", "burst");
	for (size_t i = 0; i < READERS; i++)
		if (chosen(o, i))
			printf("  %16s", readers[i]->name);
	if (!o->only)
		printf("  %9s  %9s  %9s", "weir/uns.", "weir-uns.", "heap/weir");
	printf("  target\n");
}

static void print_row(const struct options *o, const struct shape *shape, struct sample *samples)
{
	double target = shape->records <= SMALL_RECORDS ? TARGET_SMALL_NS : TARGET_LARGE_NS;
	double weir = sample__min(&samples[WEIR]), unsorted = sample__min(&samples[UNSORTED]);

	printf("%8u %6u %6u", shape->records, shape->rings, shape->burst);
	for (size_t i = 0; i < READERS; i++)
		if (chosen(o, i))
			printf("  %7.2f (%6.2f)", sample__min(&samples[i]),
			       sample__median(&samples[i]));
	if (!o->only)
		printf("  %9.2f  %9.2f  %9.2f", weir / unsorted, weir - unsorted,
		       sample__min(&samples[HEAP]) / weir);
	printf("  %4.1f %s\n", target, weir <= target ? "met" : "MISSED");
	fflush(stdout);
}

static void measure(const struct options *o, const struct shape *shape)
{
	unsigned polls = o->polls ? o->polls : shape->records > SMALL_RECORDS ? 9 : 101;
	const struct reader *taken[READERS] = {0};
	struct sample samples[READERS] = {0};

	for (size_t i = 0; i < READERS; i++)
		taken[i] = chosen(o, i) ? readers[i] : NULL;
	readers__measure(taken, READERS, shape, polls, samples);
	print_row(o, shape, samples);
	for (size_t i = 0; i < READERS; i++)
		sample__free(&samples[i]);
}

static unsigned number(const char *text)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || *end || end == text || !value || value > 1u << 24)
		errx(2, "%s: a number from 1 to %u is needed", text, 1u << 24);
	return (unsigned)value;
}

static struct list numbers(char *text)
{
	struct list list = {0};

	for (char *one = strtok(text, ","); one; one = strtok(NULL, ",")) {
		if (list.count == sizeof(list.value) / sizeof(list.value[0]))
			errx(2, "too many numbers");
		list.value[list.count++] = number(one);
	}
	return list;
}

static void usage(void)
{
	errx(2, "usage: order [-c CPU] [-n RECORDS,...] [-r RINGS,...] [-b BURST,...] [-s STEP_NS] "
		"[-m] [-p POLLS] [-o READER]");
}

static struct options parse(int argc, char **argv)
{
	struct options o = {
		.records = {2, {16384, 1048576}},
		.bursts = {2, {1, 20}},
		.rings = {6, {2, 8, 32, 128, 512, 1024}},
		.step_ns = 100,
	};
	int opt;

	while ((opt = getopt(argc, argv, "c:n:r:b:s:mp:o:")) != -1) {
		if (opt == 'c')
			sample__pin(atoi(optarg));
		else if (opt == 'n')
			o.records = numbers(optarg);
		else if (opt == 'r')
			o.rings = numbers(optarg);
		else if (opt == 'b')
			o.bursts = numbers(optarg);
		else if (opt == 's')
			o.step_ns = number(optarg);
		else if (opt == 'm')
			o.mixed = true;
		else if (opt == 'p')
			o.polls = number(optarg);
		else if (opt == 'o')
			o.only = optarg;
		else
			usage();
	}
	if (optind != argc)
		usage();
	return o;
}

int main(int argc, char **argv)
{
	struct options o = parse(argc, argv);

	print_head(&o);
	for (unsigned n = 0; n < o.records.count; n++) {
		for (unsigned b = 0; b < o.bursts.count; b++) {
			for (unsigned r = 0; r < o.rings.count; r++) {
				struct shape shape = {
					.rings = o.rings.value[r],
					.burst = o.bursts.value[b],
					.records = o.records.value[n],
					.step_ns = o.step_ns,
					.mixed = o.mixed,
				};

				measure(&o, &shape);
			}
		}
	}
	return 0;
}
