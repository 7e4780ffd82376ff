/* SPDX-License-Identifier: BSD-2-Clause */
/* main.c - `weir COMMAND ...`: finds the command and hands over. A new one is a file and a line. */
#include "cli/commands.h"
#include "cli/options.h"
#include "probes/nearest.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} commands[] = {
	{"trace", cmd_trace, "the kernel's events, in true time order, as they happen"},
	{"record", cmd_record, "the same into a capture: files that other tools read as well"},
	{"replay", cmd_replay, "a capture, as trace would have printed it"},
	{"info", cmd_info, "what a capture is: of what, when, how much, what it lost"},
	{"top", cmd_top, "who has the CPUs, to the nanosecond, and who waits for them"},
	{"verify", cmd_verify, "check a trace in JSON, or a capture: order, gaps, numbers"},
	{"bench", cmd_bench, "what weir costs on this machine"},
	{"doctor", cmd_doctor, "what this kernel and your rights allow, and the way out"},
};

#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void print_usage(FILE *to)
{
	fprintf(to,
		"Usage: weir COMMAND [OPTION]...\n\n"
		"One stream of this machine's kernel events in true time order, with every loss\n"
		"accounted for.\n\nCommands:\n");
	for (size_t i = 0; i < N_COMMANDS; i++)
		fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].help);
	fprintf(to,
		"\n'weir COMMAND --help' explains one. 'weir --version' tells which this is.\n");
}

static int unknown(const char *word)
{
	struct nearest nearest = nearest__to(word);
	const char *name = NULL;

	for (size_t i = 0; i < N_COMMANDS; i++)
		if (nearest__is(&nearest, commands[i].name))
			name = commands[i].name;
	if (name)
		say(NULL, "there is no command '%s'; did you mean '%s'?", word, name);
	else
		say(NULL, "there is no command '%s'", word);
	fprintf(stderr, "Try 'weir --help'.\n");
	return EXIT_USAGE;
}

static int run(int argc, char **argv)
{
	for (size_t i = 0; i < N_COMMANDS; i++)
		if (!strcmp(argv[0], commands[i].name))
			return commands[i].run(argc, argv);
	return unknown(argv[0]);
}

static int help(int argc, char **argv)
{
	char wish[] = "--help", *command_help[] = {argc > 0 ? argv[0] : NULL, wish, NULL};

	if (argc > 0)
		return run(2, command_help);
	print_usage(stdout);
	return EXIT_OK;
}

/*
 * A standard descriptor that is closed gets one that fails as a closed one does: otherwise the next
 * file that is opened, a BPF program say, is taken for it. A program that weir starts has it closed.
 */
static bool fill_standard(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		int mode = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;

		/* The lowest that is free is this one, since those below are not. */
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", mode | O_CLOEXEC) < 0)
			return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	if (!fill_standard())
		return EXIT_FAILED;
	if (argc < 2) {
		print_usage(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))
		return help(argc - 2, argv + 2);
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "version")) {
		printf("weir %s\n", WEIR_VERSION);
		return EXIT_OK;
	}
	return run(argc - 1, argv + 1);
}
