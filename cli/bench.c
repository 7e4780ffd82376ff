/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench.c - `weir bench`: what weir costs on this machine.
 *
 * Each part is measured in a child. So a part that this kernel refuses takes nothing else with it, what it
 * pins and starts is gone with it, and so are its programs in the kernel when it is ended in the middle.
 */
#include "cli/bench.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/stop.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

struct bench_options {
	bool json, quick;
};

static const struct option_def bench_options[] = {
	{0, "quick", OPTION_FLAG, OPTION_AT(struct bench_options, quick), NULL,
	 "a third of the time, for a first look"},
	{0, "json", OPTION_FLAG, OPTION_AT(struct bench_options, json), NULL,
	 "one JSON object at the end instead of tables"},
	{0},
};

static const struct command_def bench_command = {
	.name = "bench",
	.synopsis = "[OPTION]... [PART]...",
	.about =
		"Measures what weir costs on this machine. Parts, all unless some are named:\n\n"
		"  probe       ns that a record costs the traced program, by each way to send it,\n"
		"              and ns that the accounting probe adds to a switch of tasks\n"
		"  order       ns to put a record into order, by the number of rings\n"
		"  latency     from a record's stamp to its delivery, by what proves the order\n"
		"  throughput  the most events a second of which none is lost\n\n"
		"All but order need root. It takes three quarters of a minute, and nothing else\n"
		"should run meanwhile. Least values are what a thing costs; medians far above them\n"
		"tell of other work.",
	.after = "Ctrl-C ends it; what was measured until then is printed.\n\n"
		 "Exit status: 0 all parts were measured, 1 some were not, 2 wrong usage.",
	.options = bench_options,
};

#define SAY(...) say(&bench_command, __VA_ARGS__)

static int part_named(const char *name)
{
	for (int part = 0; part < BENCH_PARTS; part++)
		if (!strcmp(name, bench__parts[part].name))
			return part;
	return -1;
}

/* Which parts are wanted: bits. 0: one that there is not, and it was said. */
static unsigned wanted(int argc, char **argv)
{
	unsigned parts = 0;

	for (int i = 0; i < argc; i++) {
		int part = part_named(argv[i]);

		if (part < 0) {
			SAY("there is no part '%s': probe, order, latency, throughput", argv[i]);
			return 0;
		}
		parts |= 1u << part;
	}
	return parts ? parts : (1u << BENCH_PARTS) - 1;
}

static void look_at_machine(struct bench_machine *machine)
{
	struct utsname name;

	uname(&name);
	*machine = (struct bench_machine){.cpus = sysconf(_SC_NPROCESSORS_ONLN)};
	snprintf(machine->kernel, sizeof(machine->kernel), "%s", name.release);
	snprintf(machine->machine, sizeof(machine->machine), "%s", name.machine);
	if (getloadavg(&machine->load, 1) != 1)
		machine->load = 0;
}

/* The parent's end is the child's, too: it would go on loading the machine. */
__attribute__((noreturn)) static void be_child(pid_t parent, enum bench_part part,
					       const struct bench_plan *plan,
					       struct bench_results *results)
{
	stop__restore();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	bench__parts[part].measure(plan, results);
	_exit(0);
}

/* How long the parts from this one on take. */
static unsigned seconds_from(int part, unsigned parts, bool quick)
{
	unsigned seconds = 0;

	for (; part < BENCH_PARTS; part++)
		if (parts & 1u << part && (!bench__parts[part].live || !geteuid()))
			seconds += quick ? bench__parts[part].quick_seconds
					 : bench__parts[part].seconds;
	return seconds;
}

/* In a line of the terminal that is empty again when there is something to be said. */
static void show(int part, unsigned parts, bool quick)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\rmeasuring: %s; some %u s left\033[K\r", bench__parts[part].name,
			seconds_from(part, parts, quick));
}

static void wipe(void)
{
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
}

static enum bench_state measure(enum bench_part part, const struct bench_plan *plan,
				struct bench_results *results)
{
	pid_t parent = getpid(), child;
	int status = -1;

	/* What stands in the buffer the child would print once more, should it end with a message. */
	fflush(stdout);
	child = fork();
	if (child < 0) {
		SAY("%s: no process: %s", bench__parts[part].name, strerror(errno));
		return BENCH_FAILED;
	}
	if (!child)
		be_child(parent, part, plan, results);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		if (stop__requested)
			kill(child, SIGKILL);
	wipe();
	if (stop__requested)
		return BENCH_STOPPED;
	if (status) {
		SAY("%s could not be measured", bench__parts[part].name);
		return BENCH_FAILED;
	}
	return BENCH_DONE;
}

static void run(unsigned parts, const struct bench_options *opts, struct bench_results *results)
{
	/* The first CPUs get more interrupts than the last. */
	const struct bench_plan plan = {
		.quick = opts->quick,
		.cpu = (int)sysconf(_SC_NPROCESSORS_ONLN) - 1,
	};

	for (int part = 0; part < BENCH_PARTS; part++) {
		enum bench_state *state = &results->state[part];

		if (!(parts & 1u << part))
			continue;
		if (bench__parts[part].live && geteuid()) {
			*state = BENCH_NO_RIGHTS;
			SAY("%s needs root", bench__parts[part].name);
			continue;
		}
		show(part, parts, opts->quick);
		*state = stop__requested ? BENCH_STOPPED
					 : measure((enum bench_part)part, &plan, results);
		if (*state == BENCH_DONE && !opts->json)
			bench__print_part((enum bench_part)part, results);
	}
}

static int exit_status(unsigned parts, const struct bench_results *results)
{
	for (int part = 0; part < BENCH_PARTS; part++)
		if (parts & 1u << part && results->state[part] != BENCH_DONE)
			return EXIT_FAILED;
	return EXIT_OK;
}

int cmd_bench(int argc, char **argv)
{
	struct bench_options opts = {0};
	struct bench_results *results;
	struct bench_machine machine;
	int status, first = options__parse(&bench_command, argc, argv, &opts, &status);
	unsigned parts;

	if (first < 0)
		return status;
	parts = wanted(argc - first, argv + first);
	if (!parts)
		return EXIT_USAGE;
	results = mmap(NULL, sizeof(*results), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	if (results == MAP_FAILED) {
		SAY("no memory: %s", strerror(errno));
		return EXIT_FAILED;
	}
	look_at_machine(&machine);
	stop__install(0);
	if (!opts.json)
		bench__print_machine(&machine, seconds_from(0, parts, opts.quick));
	run(parts, &opts, results);
	if (stop__requested)
		SAY("stopped");
	if (opts.json && !bench__print_json(&machine, results, opts.quick)) {
		SAY("no memory");
		return EXIT_FAILED;
	}
	return fflush(stdout) || ferror(stdout) ? EXIT_FAILED : exit_status(parts, results);
}
