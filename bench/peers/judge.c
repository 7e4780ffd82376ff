/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * judge - what a tool's lines are worth: how many there are, how many step back in time and by how much,
 * and, of numbered calls, how many are missing or there twice.
 *
 *	judge STAMP [-n CALLS CPUS] [-m TEXT] [-s SLACK_NS]	< lines
 *
 * STAMP says where a line has its time: `first` ns as its first word, `seconds` as its first word, `json`
 * in "ts", `colon` seconds in the first word that ends with a colon, `second` seconds in its second word,
 * `bracket` seconds in [], `span` ms as its first word and behind it in () how long it took: what is
 * printed at its end is judged by its end. -m: only lines with that text count. SLACK_NS: steps back by so
 * much are no more than the rounding of what is printed.
 *
 * Prints: lines, steps back, the longest of them in ns, missing, twice (both 0 without -n).
 */
#include "bench/peers/work.h"

#include <err.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct judge {
	bool (*stamp)(const char *line, double *ns);
	const char *must_have;
	double slack_ns;
	uint64_t calls, cpus; /* 0: not numbered */
	uint8_t *seen;	      /* by CPU and number */

	uint64_t lines, back, there, twice;
	double last_ns, most_back_ns;
};

static bool number_at(const char *text, double unit_ns, double *ns)
{
	char *end;
	double value = strtod(text, &end);

	*ns = value * unit_ns;
	return end != text;
}

static bool first_ns(const char *line, double *ns)
{
	return number_at(line, 1, ns);
}

static bool first_seconds(const char *line, double *ns)
{
	return number_at(line, 1e9, ns);
}

static bool second_seconds(const char *line, double *ns)
{
	line += strspn(line, " ");
	line += strcspn(line, " ");
	return number_at(line, 1e9, ns);
}

static bool json_ts(const char *line, double *ns)
{
	const char *at = strstr(line, "\"ts\":\"");

	return at && number_at(at + 6, 1, ns);
}

static bool bracket_seconds(const char *line, double *ns)
{
	return *line == '[' && number_at(line + 1, 1e9, ns);
}

/* "12345.678901234:" */
static bool colon_seconds(const char *line, double *ns)
{
	for (const char *at = line; (at = strchr(at, ':')); at++) {
		const char *begin = at;

		while (begin > line && strchr("0123456789.", begin[-1]))
			begin--;
		if (at - begin > 6 && memchr(begin, '.', (size_t)(at - begin)))
			return number_at(begin, 1e9, ns);
	}
	return false;
}

static bool span_ms(const char *line, double *ns)
{
	const char *open = strchr(line, '(');
	double took_ns = 0;

	if (!number_at(line, 1e6, ns))
		return false;
	if (open && number_at(open + 1 + strspn(open + 1, " "), 1e6, &took_ns))
		*ns += took_ns;
	return true;
}

static const struct {
	const char *name;
	bool (*stamp)(const char *line, double *ns);
} stamps[] = {
	{"first", first_ns},	      {"seconds", first_seconds},
	{"second", second_seconds},   {"json", json_ts},
	{"colon", colon_seconds},     {"span", span_ms},
	{"bracket", bracket_seconds},
};

/* The call that a line is about; false: none. */
static bool call_of(const struct judge *judge, const char *line, uint64_t *index)
{
	const char *at = strstr(line, UNAME_DIGITS);
	uint64_t value, cpu, count;
	char *end;

	if (!at)
		return false;
	value = strtoull(at, &end, 16);
	if (end - at != 16)
		return false;
	cpu = value >> UNAME_CPU_SHIFT & (UNAME_CPUS - 1);
	count = value & ((1ull << UNAME_CPU_SHIFT) - 1);
	if (cpu >= judge->cpus || count >= judge->calls)
		return false;
	*index = cpu * judge->calls + count;
	return true;
}

static void judge_line(struct judge *judge, const char *line)
{
	uint64_t index;
	double ns;

	if (judge->must_have && !strstr(line, judge->must_have))
		return;
	if (judge->calls && !call_of(judge, line, &index))
		return;
	if (!judge->stamp(line, &ns))
		return;
	if (judge->calls) {
		judge->there += !judge->seen[index];
		judge->twice += judge->seen[index];
		judge->seen[index] = 1;
	}
	judge->lines++;
	if (ns + judge->slack_ns < judge->last_ns) {
		judge->back++;
		judge->most_back_ns = fmax(judge->most_back_ns, judge->last_ns - ns);
	}
	/* How far behind the latest that was already printed, not merely behind the line before. */
	judge->last_ns = fmax(judge->last_ns, ns);
}

static void usage(void)
{
	errx(2, "usage: judge first|seconds|second|json|colon|span|bracket [-n CALLS CPUS] "
		"[-m TEXT] [-s NS]");
}

static void parse(struct judge *judge, int argc, char **argv)
{
	int opt;

	if (argc < 2)
		usage();
	for (size_t i = 0; i < sizeof(stamps) / sizeof(stamps[0]); i++)
		if (!strcmp(argv[1], stamps[i].name))
			judge->stamp = stamps[i].stamp;
	if (!judge->stamp)
		usage();
	argc--;
	argv++;
	while ((opt = getopt(argc, argv, "n:m:s:")) != -1) {
		if (opt == 'n' && optind < argc) {
			judge->calls = strtoull(optarg, NULL, 10);
			judge->cpus = strtoull(argv[optind++], NULL, 10);
		} else if (opt == 'm') {
			judge->must_have = optarg;
		} else if (opt == 's') {
			judge->slack_ns = strtod(optarg, NULL);
		} else {
			usage();
		}
	}
}

int main(int argc, char **argv)
{
	struct judge judge = {0};
	char *line = NULL;
	size_t size = 0;

	parse(&judge, argc, argv);
	if (judge.calls) {
		judge.seen = calloc(judge.cpus, judge.calls);
		if (!judge.seen)
			err(1, "%" PRIu64 " calls", judge.calls);
	}
	while (getline(&line, &size, stdin) > 0)
		judge_line(&judge, line);
	printf("%" PRIu64 " %" PRIu64 " %.0f %" PRIu64 " %" PRIu64 "\n", judge.lines, judge.back,
	       judge.most_back_ns, judge.calls * judge.cpus - judge.there, judge.twice);
	free(line);
	free(judge.seen);
	return 0;
}
