// SPDX-License-Identifier: BSD-2-Clause
/* summary.c: the table of -c fits its columns, and what nobody knows is no 0. */
#include "parsed.h"

#include "sinks/style.h"
#include "sinks/summary.h"

static struct capture c;

static int setup(void **state)
{
	capture__open(&c);
	return 0;
}

static int teardown(void **state)
{
	capture__close(&c);
	return 0;
}

static const struct sink_summary_call calls[] = {
	{"read", 1500, 3, 1000, 2500000000, 2000, 3000000, 4000000},
	{"exit_group", 1, 0, 0, 0, 0, 0, 0},
	{"x\x1b[2J", 999999999, 0, 1, 5, 5, 5, 5},
};
static const struct sink_summary_process processes[] = {
	{12, "sh\x1b", 1500, 3, 1000, 2500000000},
	{13, "", 1, 0, 0, 0},
	{0, "", 7, 0, 7, 1000},
};
static const struct sink_summary summary = {calls, 3, processes, 3};

static const char *text(size_t max_calls, size_t max_processes)
{
	sink__summary_text(c.out, &summary, max_calls, max_processes);
	return capture__take(&c);
}

static void test_text(void **state)
{
	assert_string_equal(
		text(SIZE_MAX, SIZE_MAX),
		"%time   calls errors   total    mean     p50     p99     max call\n"
		"100.0    1500      3  2.500s 2.500ms 2.000us 3.000ms 4.000ms read\n"
		"    -       1      0       -       -       -       -       - exit_group\n"
		"  0.0 999999999      0 0.005us 0.005us 0.005us 0.005us 0.005us x\\x1b[2J\n"
		"100.0 1000001500      3  2.500s 2.497ms                         all\n"
		"\n"
		"%time   calls errors   total process\n"
		"100.0    1500      3  2.500s sh\\x1b[12]\n"
		"    -       1      0       - ?[13]\n"
		"  0.0       7      0 1.000us others\n");
}

/* Halves are rounded up; what is nearly all is not more than all. */
static void test_shares(void **state)
{
	static const struct sink_summary_call rows[] = {
		{"a", 1, 0, 1, 999499},
		{"b", 1, 0, 1, 500},
		{"c", 1, 0, 1, 1},
	};
	static const struct sink_summary three = {rows, 3, NULL, 0};

	sink__summary_text(c.out, &three, 3, 0);
	capture__take(&c);
	assert_non_null(strstr(c.text, "call\n 99.9  "));
	assert_non_null(strstr(c.text, " a\n  0.1  "));
	assert_non_null(strstr(c.text, " b\n  0.0  "));
	assert_non_null(strstr(c.text, " c\n100.0  "));
}

/* Four digits of each time, so that a row fits; of more than 9,999 s all of them. */
static void test_digits(void **state)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} totals[] = {
		{12345678, "       1      0 12.34ms "},
		{999999, "       1      0 999.9us "},
		{123456789012, "       1      0  123.4s "},
		{1234567890123, "       1      0   1234s "},
		{12345678901234, "       1      0  12345s "},
	};

	for (size_t i = 0; i < sizeof(totals) / sizeof(totals[0]); i++) {
		struct sink_summary_call row = {.name = "x", .calls = 1, .timed = 1};
		struct sink_summary one = {.calls = &row, .nr_calls = 1};

		row.total_ns = totals[i].ns;
		sink__summary_text(c.out, &one, 1, 1);
		assert_non_null(strstr(capture__take(&c), totals[i].text));
	}
}

static void test_fewer_rows(void **state)
{
	assert_non_null(strstr(text(1, 2), "ms read\n          ... and 2 more\n100.0 1000001500 "));
	assert_non_null(strstr(c.text, " ?[13]\n          ... and 1 more\n"));
	text(3, 3);
	assert_null(strstr(c.text, "more"));
}

static void test_colors(void **state)
{
	struct style style = {.color = true};

	out__set_style(c.out, &style);
	text(9, 9);
	out__set_style(c.out, NULL);
	assert_non_null(strstr(c.text, "    1500\x1b[31m      3\x1b[0m "));
	assert_non_null(strstr(c.text, " \x1b[1mread\x1b[0m\n"));
}

static void test_json(void **state)
{
	struct json_object *object, *row;

	out__char(c.out, '{');
	sink__summary_json(c.out, &summary);
	out__str(c.out, "}\n");
	capture__take(&c);
	object = parse_line(c.text, c.len);
	row = json_object_array_get_idx(member(object, "calls"), 0);
	assert_string_equal(text_of(row, "call"), "read");
	assert_int_equal(number_of(row, "calls"), 1500);
	assert_int_equal(number_of(row, "errors"), 3);
	assert_int_equal(number_of(row, "timed"), 1000);
	assert_int_equal(number_of(row, "total_ns"), 2500000000);
	assert_int_equal(number_of(row, "mean_ns"), 2500000);
	assert_int_equal(number_of(row, "p50_ns"), 2000);
	assert_int_equal(number_of(row, "p99_ns"), 3000000);
	assert_int_equal(number_of(row, "max_ns"), 4000000);
	row = json_object_array_get_idx(member(object, "calls"), 1);
	assert_null(member(row, "total_ns"));
	assert_null(member(row, "mean_ns"));
	assert_null(member(row, "max_ns"));
	row = json_object_array_get_idx(member(object, "processes"), 0);
	assert_int_equal(number_of(row, "pid"), 12);
	assert_bytes(member(row, "comm"), "sh\x1b", 3);
	row = json_object_array_get_idx(member(object, "processes"), 1);
	assert_false(json_object_object_get_ex(row, "comm", NULL));
	assert_null(member(row, "total_ns"));
	row = json_object_array_get_idx(member(object, "processes"), 2);
	assert_null(member(row, "pid"));
	json_object_put(object);
}

static void test_nothing(void **state)
{
	static const struct sink_summary none;

	sink__summary_text(c.out, &none, 9, 9);
	assert_non_null(strstr(capture__take(&c), "    -       0      0       -       - "));
	sink__summary_json(c.out, &none);
	assert_string_equal(capture__take(&c), "\"calls\":[],\"processes\":[]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),	cmocka_unit_test(test_shares),
		cmocka_unit_test(test_digits),	cmocka_unit_test(test_fewer_rows),
		cmocka_unit_test(test_colors),	cmocka_unit_test(test_json),
		cmocka_unit_test(test_nothing),
	};
	int r = cmocka_run_group_tests(tests, setup, teardown);

	return r ? 1 : 0;
}
