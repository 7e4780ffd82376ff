// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tracepoints of a tracefs that is made here: which are meant, and how records of theirs read, also of
 * those whose lengths lie.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probes/tracepoints.h"
#include "tests/model/rng.h"

#define COMMON                                                                     \
	"	field:unsigned short common_type;	offset:0;	size:2;	signed:0;\n"         \
	"	field:unsigned char common_flags;	offset:2;	size:1;	signed:0;\n"         \
	"	field:unsigned char common_preempt_count;	offset:3;	size:1;	signed:0;\n" \
	"	field:int common_pid;	offset:4;	size:4;	signed:1;\n\n"

static char root[] = "/tmp/weir-tracefs-XXXXXX";
static char err[512];

static void write_file(const char *folder, const char *name, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void make_folder(char *path, size_t size, const char *name)
{
	snprintf(path, size, "%s/%s", root, name);
	assert_int_equal(mkdir(path, 0700), 0);
}

static void make_tracepoint(const char *name, const char *fields)
{
	char folder[128], format[8192];

	make_folder(folder, sizeof(folder), name);
	snprintf(format, sizeof(format),
		 "name: %s\nID: 77\nformat:\n" COMMON "%s\nprint fmt: \"x=%%d\", REC->x\n",
		 strrchr(name, '/') + 1, fields);
	write_file(folder, "format", format);
	write_file(folder, "enable", "0\n");
}

static int make_tracefs(void **state)
{
	char folder[128], many[4096] = "";

	(void)state;
	assert_non_null(mkdtemp(root));
	make_folder(folder, sizeof(folder), "events");
	make_folder(folder, sizeof(folder), "events/a");
	make_folder(folder, sizeof(folder), "events/ab");
	make_tracepoint("events/a/kinds",
			"	field:char comm[8];	offset:8;	size:8;	signed:0;\n"
			"	field:int negative;	offset:16;	size:4;	signed:1;\n"
			"	field:u32 positive;	offset:20;	size:4;	signed:0;\n"
			"	field:const void * where;	offset:24;	size:8;	signed:0;\n"
			"	field:bool is;	offset:32;	size:1;	signed:0;\n"
			"	field:u8 mac[6];	offset:33;	size:6;	signed:0;\n"
			"	field:s16 pair[2];	offset:40;	size:4;	signed:1;\n");
	make_tracepoint(
		"events/a/words",
		"	field:__data_loc char[] name;	offset:8;	size:4;	signed:0;\n"
		"	field:__data_loc u32[] list;	offset:12;	size:4;	signed:0;\n"
		"	field:__rel_loc char[] rel;	offset:16;	size:4;	signed:0;\n");
	for (int i = 0; i < 25; i++)
		snprintf(many + strlen(many), sizeof(many) - strlen(many),
			 "	field:u32 f%d;	offset:%d;	size:4;	signed:0;\n", i, 8 + 4 * i);
	make_tracepoint("events/ab/many", many);
	make_folder(folder, sizeof(folder), "events/ab/mark");
	write_file(folder, "format", "");
	return 0;
}

static int remove_tracefs(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

static struct tracepoints *chosen(const char *pattern)
{
	struct tracepoints *tps = tracepoints__new(root);

	assert_non_null(tps);
	if (tracepoints__choose(tps, pattern, true, err, sizeof(err)) ||
	    tracepoints__load(tps, err, sizeof(err)))
		fail_msg("%s", err);
	return tps;
}

static int decode(struct tracepoints *tps, const void *bytes, size_t len, struct weir_decoded *out)
{
	/* A block of its own, so that a look behind its end is seen. */
	void *own = malloc(len ? len : 1);
	struct weir_perf_sample sample = {.raw = own, .raw_len = (uint32_t)len};
	int code;

	memcpy(own, bytes, len);
	code = tracepoints__decode(tps, 0, &sample, out);
	free(own);
	return code;
}

static void assert_text(const struct weir_arg *arg, const char *text)
{
	assert_int_equal(arg->kind, WEIR_ARG_STR);
	assert_int_equal(arg->len, strlen(text));
	assert_memory_equal(arg->bytes, text, arg->len);
}

/* ---- choosing ----------------------------------------------------------------------------------- */

static void test_patterns(void **state)
{
	static const struct {
		const char *pattern;
		uint32_t count;
	} cases[] = {
		{"a:kinds", 1}, {"a:*", 2},  {"*:*", 3},     {"a*:*", 3},
		{"ab:*", 1},	{"?:*s", 2}, {"a:[kw]*", 2},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tracepoints *tps = chosen(cases[i].pattern);

		assert_int_equal(tracepoints__count(tps), cases[i].count);
		tracepoints__free(tps);
	}
}

static void test_taken_out_and_twice(void **state)
{
	struct tracepoints *tps = tracepoints__new(root);

	assert_int_equal(tracepoints__choose(tps, "*:*", true, err, sizeof(err)), 0);
	assert_int_equal(tracepoints__choose(tps, "a:kinds", true, err, sizeof(err)), 0);
	assert_int_equal(tracepoints__count(tps), 3);
	assert_int_equal(tracepoints__choose(tps, "a:w*", false, err, sizeof(err)), 0);
	assert_int_equal(tracepoints__count(tps), 2);
	assert_string_equal(tracepoints__name(tps, 0), "tp:a:kinds");
	assert_string_equal(tracepoints__name(tps, 1), "tp:ab:many");
	tracepoints__free(tps);
}

static void test_refused(void **state)
{
	static const struct {
		const char *pattern, *says;
		int code;
	} cases[] = {
		{"a", "tp:GROUP:NAME", -EINVAL},
		{":x", "tp:GROUP:NAME", -EINVAL},
		{"a:", "tp:GROUP:NAME", -EINVAL},
		{"../a:x", "tp:GROUP:NAME", -EINVAL},
		{"a:../kinds", "tp:GROUP:NAME", -EINVAL},
		{"a:x:y", "tp:GROUP:NAME", -EINVAL},
		{"a:nope", "a:nope", -ENOENT},
		{"nope:*", "nope:*", -ENOENT},
		{"..:a", "..:a", -ENOENT},
		{"ab:mark", "ab:mark", -ENOENT},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tracepoints *tps = tracepoints__new(root);

		assert_int_equal(tracepoints__choose(tps, cases[i].pattern, true, err, sizeof(err)),
				 cases[i].code);
		assert_non_null(strstr(err, cases[i].says));
		assert_int_equal(tracepoints__count(tps), 0);
		tracepoints__free(tps);
	}
}

static void test_no_tracefs(void **state)
{
	struct tracepoints *tps = tracepoints__new("/nowhere");

	assert_int_equal(tracepoints__choose(tps, "a:*", true, err, sizeof(err)), -ENOENT);
	tracepoints__free(tps);
}

/* ---- records ------------------------------------------------------------------------------------ */

struct kinds {
	uint16_t type;
	uint8_t flags, count;
	int32_t pid;
	char comm[8];
	int32_t negative;
	uint32_t positive;
	uint64_t where;
	uint8_t is, mac[6], pad;
	int16_t pair[2];
};

static const struct kinds one = {
	.pid = 4711,
	.comm = "a\nb",
	.negative = -5,
	.positive = 4000000000u,
	.where = 0xffff888000000000u,
	.is = 1,
	.mac = {0, 1, 2, 0xab, 0xcd, 0xef},
	.pair = {-1, 300},
};

static void test_kinds(void **state)
{
	struct tracepoints *tps = chosen("a:kinds");
	struct weir_perf_sample sample = {.raw = &one, .raw_len = sizeof(one)};
	struct weir_decoded d;

	assert_int_equal(tracepoints__id(tps, 0), 77);
	assert_int_equal(tracepoints__decode(tps, 0, &sample, &d), 0);
	assert_string_equal(d.name, "tp:a:kinds");
	assert_int_equal(d.tid, 4711);
	assert_int_equal(d.nargs, 7);
	assert_string_equal(d.args[0].name, "comm");
	assert_text(&d.args[0], "a\nb");
	assert_int_equal(d.args[1].kind, WEIR_ARG_INT);
	assert_int_equal(d.args[1].i, -5);
	assert_int_equal(d.args[2].kind, WEIR_ARG_UINT);
	assert_int_equal(d.args[2].u, 4000000000u);
	assert_int_equal(d.args[3].kind, WEIR_ARG_HEX);
	assert_int_equal(d.args[3].u, 0xffff888000000000u);
	assert_int_equal(d.args[4].kind, WEIR_ARG_BOOL);
	assert_text(&d.args[5], "000102abcdef");
	assert_text(&d.args[6], "-1 300");
	tracepoints__free(tps);
}

static void test_every_truncation(void **state)
{
	struct tracepoints *tps = chosen("a:kinds");
	size_t whole = offsetof(struct kinds, pair) + sizeof(one.pair);
	struct weir_decoded d;

	assert_int_equal(decode(tps, &one, whole, &d), 0);
	for (size_t len = 0; len < whole; len++)
		assert_int_equal(decode(tps, &one, len, &d), -EBADMSG);
	tracepoints__free(tps);
}

struct words {
	uint64_t common;
	uint16_t name_at, name_len, list_at, list_len, rel_at, rel_len;
	uint32_t pad;
	char text[8];
	uint32_t list[2];
};

static void test_words(void **state)
{
	struct tracepoints *tps = chosen("a:words");
	const struct words words = {
		.name_at = offsetof(struct words, text),
		.name_len = 4,
		.list_at = offsetof(struct words, list),
		.list_len = 8,
		/* Counted from the end of its own word. */
		.rel_at = offsetof(struct words, text) + 4 - 20,
		.rel_len = 4,
		.text = "abc\0xyz",
		.list = {7, 4294967295u},
	};
	struct weir_perf_sample sample = {.raw = &words, .raw_len = sizeof(words)};
	struct weir_decoded d;

	assert_int_equal(tracepoints__decode(tps, 0, &sample, &d), 0);
	assert_int_equal(d.nargs, 3);
	assert_text(&d.args[0], "abc");
	assert_text(&d.args[1], "7 4294967295");
	assert_text(&d.args[2], "xyz");
	tracepoints__free(tps);
}

/* Offsets and lengths that lead anywhere: refused, or inside. */
static void test_any_words(void **state)
{
	struct tracepoints *tps = chosen("a:words");
	struct rng rng = {.state = 20261129};
	unsigned good = 0;

	for (int run = 0; run < 100000; run++) {
		struct words words;
		struct weir_perf_sample sample = {.raw = &words, .raw_len = sizeof(words)};
		struct weir_decoded d;
		uint8_t *bytes = (uint8_t *)&words;

		for (size_t i = 0; i < sizeof(words); i++)
			bytes[i] = rng__below(&rng, 4) ? (uint8_t)rng__below(&rng, 24)
						       : (uint8_t)rng__below(&rng, 2);
		if (tracepoints__decode(tps, 0, &sample, &d))
			continue;
		good++;
		for (int i = 0; i < 3; i += 2) {
			const char *end = d.args[i].bytes + d.args[i].len;

			assert_true(d.args[i].bytes >= (char *)bytes);
			assert_true(end <= (char *)bytes + sizeof(words));
		}
	}
	assert_true(good);
	tracepoints__free(tps);
}

static void test_more_fields_than_arguments(void **state)
{
	struct tracepoints *tps = chosen("ab:many");
	uint32_t record[2 + 25];
	struct weir_perf_sample sample = {.raw = record, .raw_len = sizeof(record)};
	struct weir_decoded d;

	for (uint32_t i = 0; i < 27; i++)
		record[i] = i;
	assert_int_equal(tracepoints__decode(tps, 0, &sample, &d), 0);
	assert_int_equal(d.nargs, WEIR_ARGS_MAX);
	assert_int_equal(d.args[18].u, 20);
	assert_string_equal(d.args[19].name, "fields_left_out");
	assert_int_equal(d.args[19].u, 25 - 19);
	tracepoints__free(tps);
}

static void test_format_that_is_none(void **state)
{
	struct tracepoints *tps = tracepoints__new(root);
	char folder[128];

	make_folder(folder, sizeof(folder), "events/a/broken");
	write_file(folder, "enable", "0\n");
	write_file(folder, "format", "name: broken\nID: x\n\x01\xff{{{;;;");
	assert_int_equal(tracepoints__choose(tps, "a:broken", true, err, sizeof(err)), 0);
	assert_true(tracepoints__load(tps, err, sizeof(err)) < 0);
	assert_non_null(strstr(err, "a/broken/format"));
	tracepoints__free(tps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_taken_out_and_twice),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_no_tracefs),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_every_truncation),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_any_words),
		cmocka_unit_test(test_more_fields_than_arguments),
		cmocka_unit_test(test_format_that_is_none),
	};

	return cmocka_run_group_tests_name("tracepoints", tests, make_tracefs, remove_tracefs) ? 1
											       : 0;
}
