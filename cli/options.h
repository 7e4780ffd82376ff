/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * options.h - a command's options as one table: parsing, checking and --help all come from it.
 */
#ifndef WEIR_CLI_OPTIONS_H
#define WEIR_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_kind {
	OPTION_FLAG,	 /* bool */
	OPTION_COUNT,	 /* uint64_t, 1 or more */
	OPTION_SIZE,	 /* uint64_t bytes: 4096, 64k, 16M, 1G */
	OPTION_DURATION, /* uint64_t ns: 10 (seconds), 500ms, 2m */
	OPTION_STRING,	 /* const char * */
	OPTION_LIST,	 /* struct option_list: may be given again and again */
};

#define OPTION_LIST_MAX 64

struct option_list {
	const char *at[OPTION_LIST_MAX];
	unsigned count;
};

/* Where in the command's struct a value goes: OPTION_AT(struct trace_options, buffer). */
#define OPTION_AT(type, member) offsetof(type, member)

struct option_def {
	char letter; /* 0: none */
	const char *name;
	enum option_kind kind;
	size_t at;
	const char *value; /* in --help: "FILE"; NULL for flags */
	const char *help;  /* may have several lines, separated by \n */
	/* All rows of another table in place of this one, of a struct that stands at `at`. */
	const struct option_def *part;
};

#define OPTION_PART(table, where)              \
	{                                      \
		.part = (table), .at = (where) \
	}

/* A letter that is no option here, and what whoever knows it from another program is told. */
struct option_hint {
	char letter; /* '\0' ends a list */
	const char *text;
};

struct command_def {
	const char *name;     /* "trace" */
	const char *synopsis; /* what follows "weir trace" */
	const char *about;    /* paragraphs before the options */
	const char *after;    /* paragraphs after them: examples, exit status */
	bool runs_command;    /* the first operand ends the options: what follows is another's */
	const struct option_hint *hints;  /* NULL: none */
	const struct option_def *options; /* ends with neither name nor part, as parts do */
};

enum {
	EXIT_OK = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_LOST = 3, /* --strict, and something was lost */
	/* Where the status is that of a command which weir runs. */
	EXIT_WEIR_FAILED = 125,
	EXIT_NOT_RUN = 126,
	EXIT_NOT_FOUND = 127,
};

/*
 * Fill *values from argv. Returns the index of the first operand, or -1 when the command is over:
 * *status then has its exit status (help was printed, or the usage was wrong and said so).
 */
int options__parse(const struct command_def *command, int argc, char **argv, void *values,
		   int *status);

/* On stderr, what a terminal might obey as \xNN: names come from users, files and the kernel. */
void say_safely(const char *text);

/* "weir trace: <text>" in the same way, one line or more; command NULL: "weir: <text>". */
void say(const struct command_def *command, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif /* WEIR_CLI_OPTIONS_H */
