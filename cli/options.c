/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/options.h"

#include "probes/nearest.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPTIONS_MAX    64
#define LONG_ONLY_BASE 256 /* getopt_long values of options without a letter */
#define SCREEN_WIDTH   80
#define HELP_COLUMN    30
#define SAID_MAX       8192 /* with a path of 4,096 in it */

/* A table with its parts in their places. */
struct rows {
	struct option_def at[OPTIONS_MAX + 1];
	unsigned count;
};

static void add_rows(struct rows *rows, const struct option_def *table, size_t base)
{
	for (const struct option_def *o = table; o->name || o->part; o++) {
		if (o->part) {
			add_rows(rows, o->part, base + o->at);
			continue;
		}
		assert(rows->count < OPTIONS_MAX);
		rows->at[rows->count] = *o;
		rows->at[rows->count++].at += base;
	}
}

static bool is_c1(unsigned char byte)
{
	return byte >= 0x80 && byte < 0xa0;
}

/* C0 but for new lines, DEL, and C1: alone, or with the C2 that UTF-8 has in front of it. */
static bool may_be_obeyed(unsigned char before, unsigned char byte, unsigned char next)
{
	return (byte < 0x20 && byte != '\n') || byte == 0x7f || (byte == 0xc2 && is_c1(next)) ||
	       (is_c1(byte) && (before < 0x80 || before == 0xc2));
}

void say_safely(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;

	for (unsigned char before = 0; *at; before = *at++)
		fprintf(stderr, may_be_obeyed(before, at[0], at[1]) ? "\\x%02x" : "%c", *at);
}

void say(const struct command_def *command, const char *format, ...)
{
	char text[SAID_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "weir%s%s: ", command ? " " : "", command ? command->name : "");
	say_safely(text);
	fputc('\n', stderr);
}

/* The words of `len` bytes, from a column where one stands already; further lines begin at `indent`. */
static void print_words(const char *text, size_t len, int column, int indent)
{
	const char *end = text + len;
	bool first = true;

	for (;;) {
		int word;

		text += strspn(text, " \n");
		if (text >= end)
			break;
		word = (int)strcspn(text, " \n");
		if (!first && column + 1 + word > SCREEN_WIDTH) {
			printf("\n%*s", indent, "");
			column = indent;
		} else if (!first) {
			printf(" ");
			column++;
		}
		printf("%.*s", word, text);
		column += word;
		text += word;
		first = false;
	}
	printf("\n");
}

static void print_option(const struct option_def *o)
{
	char left[80], letter[5] = "    ";

	if (o->letter)
		snprintf(letter, sizeof(letter), "-%c, ", o->letter);
	snprintf(left, sizeof(left), "  %s--%s%s%s", letter, o->name, o->value ? " " : "",
		 o->value ? o->value : "");
	printf("%-*s", HELP_COLUMN, left);
	if (strlen(left) >= HELP_COLUMN)
		printf("\n%*s", HELP_COLUMN, "");
	print_words(o->help, strlen(o->help), HELP_COLUMN, HELP_COLUMN);
}

/* Lines that are set in stay as they are; the others are paragraphs. */
static void print_text(const char *text)
{
	while (*text) {
		size_t len = strcspn(text, "\n");

		while (len && *text != ' ' && text[len] && !strchr(" \n", text[len + 1]))
			len += 1 + strcspn(text + len + 1, "\n");
		if (len && *text != ' ')
			print_words(text, len, 0, 0);
		else
			printf("%.*s\n", (int)len, text);
		text += len + (text[len] == '\n');
	}
}

static void print_help(const struct command_def *command, const struct rows *rows)
{
	printf("Usage: weir %s %s\n\n", command->name, command->synopsis);
	print_text(command->about);
	printf("\nOptions:\n");
	for (unsigned i = 0; i < rows->count; i++)
		print_option(&rows->at[i]);
	printf("  -h, --help                  this text\n");
	if (command->after) {
		printf("\n");
		print_text(command->after);
	}
}

static bool parse_number(const char *text, uint64_t *number, const char **rest)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*number = strtoull(text, &end, 10);
	*rest = end;
	return !errno;
}

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit size_units[] = {
	{"", 1}, {"k", 1024}, {"K", 1024}, {"M", 1024 * 1024}, {"G", 1024 * 1024 * 1024}, {NULL, 0},
};

static const struct unit duration_units[] = {
	{"", 1000000000},   {"s", 1000000000},	  {"ns", 1}, {"us", 1000}, {"ms", 1000000},
	{"m", 60000000000}, {"h", 3600000000000}, {NULL, 0},
};

static const struct unit no_units[] = {{"", 1}, {NULL, 0}};

/* ".25" in millionths; no digits, or no point: 0. */
static uint64_t parse_millionths(const char **text)
{
	uint64_t millionths = 0, place = 1000000;

	if (**text != '.')
		return 0;
	for (++*text; **text >= '0' && **text <= '9'; ++*text) {
		place /= 10;
		millionths += (uint64_t)(**text - '0') * place;
	}
	return millionths;
}

/* A part of a unit counts as far as the unit can be divided. */
static bool parse_quantity(const char *text, const struct unit *units, uint64_t *out)
{
	uint64_t number, whole, millionths;
	const char *rest;

	if (!parse_number(text, &number, &rest))
		return false;
	millionths = parse_millionths(&rest);
	for (; units->name; units++) {
		if (strcmp(units->name, rest) != 0)
			continue;
		if (__builtin_mul_overflow(number, units->factor, &whole) ||
		    __builtin_add_overflow(whole, millionths * units->factor / 1000000, out))
			return false;
		return *out && (!millionths || units->factor > 1);
	}
	return false;
}

static const char *set_quantity(uint64_t *at, const char *text, const struct unit *units,
				const char *wanted)
{
	return parse_quantity(text, units, at) ? NULL : wanted;
}

/* Store a value; returns NULL, or what would have been right. */
static const char *store(const struct option_def *o, void *values, const char *text)
{
	void *at = (char *)values + o->at;
	struct option_list *list = at;

	switch (o->kind) {
	case OPTION_FLAG:
		*(bool *)at = true;
		return NULL;
	case OPTION_COUNT:
		return set_quantity(at, text, no_units, "a whole number from 1 up");
	case OPTION_SIZE:
		return set_quantity(at, text, size_units, "a size such as 4096, 64k, 16M or 1G");
	case OPTION_DURATION:
		return set_quantity(at, text, duration_units,
				    "a time such as 10 (seconds), 500ms or 2m");
	case OPTION_STRING:
		*(const char **)at = text;
		return *text ? NULL : "a value that is not empty";
	case OPTION_LIST:
		if (list->count == OPTION_LIST_MAX)
			return "at most 64 of these";
		list->at[list->count++] = text;
		return *text ? NULL : "a value that is not empty";
	}
	return "an option that weir knows";
}

struct getopt_tables {
	struct option longs[OPTIONS_MAX + 2];
	char letters[3 * OPTIONS_MAX];
};

static void fill_tables(const struct command_def *command, const struct rows *rows,
			struct getopt_tables *t)
{
	char *letter = t->letters;
	int i = 0;

	/* '+': the first operand ends the options. ':': we speak, not getopt. */
	letter = stpcpy(letter, command->runs_command ? "+:h" : ":h");
	for (const struct option_def *o = rows->at; o->name; o++, i++) {
		int has_value = o->kind == OPTION_FLAG ? no_argument : required_argument;

		t->longs[i] = (struct option){o->name, has_value, NULL, LONG_ONLY_BASE + i};
		if (!o->letter)
			continue;
		*letter++ = o->letter;
		if (has_value)
			*letter++ = ':';
	}
	*letter = '\0';
	t->longs[i] = (struct option){"help", no_argument, NULL, 'h'};
	t->longs[i + 1] = (struct option){0};
}

static const struct option_def *by_value(const struct rows *rows, int value)
{
	if (value >= LONG_ONLY_BASE)
		return &rows->at[value - LONG_ONLY_BASE];
	for (const struct option_def *o = rows->at; o->name; o++)
		if (o->letter == value)
			return o;
	return NULL;
}

static int usage(const struct command_def *command, int *status)
{
	fprintf(stderr, "Try 'weir %s --help'.\n", command->name);
	*status = EXIT_USAGE;
	return -1;
}

/* The option as it was written, for messages. */
static const char *written(char **argv, char *buf, size_t len)
{
	const char *word = argv[optind - 1];

	if (optopt && optopt < LONG_ONLY_BASE)
		snprintf(buf, len, "-%c", optopt);
	else
		snprintf(buf, len, "%s", word);
	return buf;
}

static const char *hint_of(const struct command_def *command, const char *word)
{
	const struct option_hint *hint = command->hints;

	while (hint && hint->letter && (word[0] != '-' || word[1] != hint->letter || word[2]))
		hint++;
	return hint && hint->letter ? hint->text : NULL;
}

/* The name that a long option of this spelling was meant to have; NULL: there is none like it. */
static const char *nearest_name(const struct rows *rows, char *word)
{
	struct nearest nearest;
	const char *name = NULL;

	if (strncmp(word, "--", 2) != 0)
		return NULL;
	word[strcspn(word, "=")] = '\0';
	nearest = nearest__to(word + 2);
	for (unsigned i = 0; i < rows->count; i++)
		if (nearest__is(&nearest, rows->at[i].name))
			name = rows->at[i].name;
	return name;
}

static void say_unknown(const struct command_def *command, const struct rows *rows, char *word)
{
	const char *hint = hint_of(command, word), *name = nearest_name(rows, word);

	if (hint)
		say(command, "there is no option %s: %s", word, hint);
	else if (name)
		say(command, "there is no option %s; did you mean --%s?", word, name);
	else
		say(command, "there is no option %s", word);
}

int options__parse(const struct command_def *command, int argc, char **argv, void *values,
		   int *status)
{
	struct rows rows = {0};
	struct getopt_tables tables;
	char word[64];
	int value;

	add_rows(&rows, command->options, 0);
	fill_tables(command, &rows, &tables);
	optind = 0; /* glibc: anew, also where the last one ended inside of "-qx" */
	opterr = 0;
	while ((value = getopt_long(argc, argv, tables.letters, tables.longs, NULL)) != -1) {
		const struct option_def *o;
		const char *wanted;

		if (value == 'h') {
			print_help(command, &rows);
			*status = EXIT_OK;
			return -1;
		}
		if (value == ':' || value == '?') {
			written(argv, word, sizeof(word));
			if (value == ':')
				say(command, "%s needs a value", word);
			else
				say_unknown(command, &rows, word);
			return usage(command, status);
		}
		o = by_value(&rows, value);
		wanted = store(o, values, optarg ? optarg : "");
		if (wanted) {
			say(command, "--%s takes %s, not '%s'", o->name, wanted, optarg);
			return usage(command, status);
		}
	}
	return optind;
}
