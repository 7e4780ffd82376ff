// SPDX-License-Identifier: BSD-2-Clause
/*
 * fuzz_options.c - any words on the command line.
 *
 * An input is the words, each with its NUL, of which the first byte says whether the first operand ends
 * the options. Promises checked: what was accepted is as its kind says, and operands stand at the end.
 * Each word has memory of its own, of exactly its length.
 */
#include "fuzz.h"

#include <stdio.h>

#include "cli/options.h"

#define WORDS_MAX 80

struct values {
	bool flag;
	uint64_t count, size, duration;
	const char *string;
	struct option_list list;
};

static const struct option_def options[] = {
	{'f', "flag", OPTION_FLAG, OPTION_AT(struct values, flag), NULL, "a flag"},
	{'c', "count", OPTION_COUNT, OPTION_AT(struct values, count), "N", "a\nnumber"},
	{0, "size", OPTION_SIZE, OPTION_AT(struct values, size), "BYTES", "a size"},
	{'d', "duration", OPTION_DURATION, OPTION_AT(struct values, duration), "TIME", "a time"},
	{'o', "string", OPTION_STRING, OPTION_AT(struct values, string), "FILE", "a word"},
	{'e', "list", OPTION_LIST, OPTION_AT(struct values, list), "WHAT", "words"},
	{0},
};

/* Whatever is printed goes nowhere. */
static void be_quiet(void)
{
	static FILE *nowhere;

	if (!nowhere)
		stdout = stderr = nowhere = fopen("/dev/null", "w");
}

static char *next_word(struct input *in)
{
	size_t len = strnlen((const char *)in->at, in->left);
	char *word = malloc(len + 1);

	memcpy(word, in->at, len);
	word[len] = '\0';
	in->at += len;
	in->left -= len;
	if (in->left) {
		in->at++;
		in->left--;
	}
	return word;
}

static void check(const struct values *values, int first, int argc, int status)
{
	unsigned i;

	if (first < 0) {
		HOLDS(status == EXIT_OK || status == EXIT_USAGE);
		return;
	}
	HOLDS(first >= 1 && first <= argc);
	HOLDS(!values->string || *values->string);
	HOLDS(values->list.count <= OPTION_LIST_MAX);
	for (i = 0; i < values->list.count; i++)
		HOLDS(*values->list.at[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct command_def command = {
		.name = "fuzz", .synopsis = "[OPTIONS]", .about = "Nothing.", .options = options};
	struct input in = {bytes, size};
	char *argv[WORDS_MAX + 1], *words[WORDS_MAX];
	struct values values = {0};
	int argc = 0, status = -1, i;
	uint8_t how;

	be_quiet();
	input__take(&in, &how, 1);
	command.runs_command = how & 1;
	do {
		argv[argc] = words[argc] = next_word(&in);
		argc++;
	} while (in.left && argc < WORDS_MAX);
	argv[argc] = NULL;
	i = options__parse(&command, argc, argv, &values, &status);
	check(&values, i, argc, status);
	for (i = 0; i < argc; i++) /* getopt has changed the order of argv */
		free(words[i]);
	return 0;
}
