/* SPDX-License-Identifier: BSD-2-Clause */
/* test_when.c - points in time as people say them. */
#include "../core/unit.h"

#include "cli/when.h"

#include <stdlib.h>
#include <time.h>

/* From 2026-11-29T23:59:50Z on, for 20 seconds, on a machine that was up for 100 s. */
#define WALL_START 1795996790000000000ll
static const struct when_base base = {
	.start_ns = 100000000000,
	.end_ns = 120000000000,
	.wall_offset_ns = WALL_START - 100000000000,
};

static void assert_is(const char *text, uint64_t expected_ns)
{
	uint64_t ns = 0;

	assert_true(when__parse(text, &base, &ns));
	assert_int_equal(ns, expected_ns);
}

static void assert_is_none(const char *text)
{
	uint64_t ns = 7;

	assert_false(when__parse(text, &base, &ns));
}

static void test_into_it(void **state)
{
	assert_is("+0", 100000000000);
	assert_is("+1.5", 101500000000);
	assert_is("+10.000000001", 110000000001);
	assert_is("+0.12345678999", 100123456789);
}

static void test_since_boot(void **state)
{
	assert_is("100", 100000000000);
	assert_is("101.000000007", 101000000007);
}

static void test_dates(void **state)
{
	assert_is("2026-11-29T23:59:50Z", 100000000000);
	assert_is("2026-11-30T00:00:00.25Z", 110250000000);
	assert_is("2026-11-30 00:00:01", 111000000000);
	/* Before the machine was. */
	assert_is("1999-01-01T00:00:00Z", 0);
}

/* The first such time that is not before the recording. */
static void test_times_of_day(void **state)
{
	assert_is("23:59:51.5", 101500000000);
	assert_is("00:00:03", 113000000000);
	assert_is("0:00", 110000000000);
}

static void test_local_time(void **state)
{
	setenv("TZ", "UTC-3", 1);
	tzset();
	assert_is("02:59:51", 101000000000);
	assert_is("03:00:01", 111000000000);
	assert_is("2026-11-30T03:00:01", 111000000000);
	assert_is("2026-11-30T00:00:01Z", 111000000000);
	setenv("TZ", "UTC", 1);
	tzset();
}

static void test_nonsense(void **state)
{
	static const char *const wrong[] = {
		"",
		"+",
		"soon",
		"1:2:3:4",
		"25:00",
		"10:61",
		"10:00:00x",
		"+1s",
		"2026-13-01T00:00:00",
		"2026-11-29",
		"-1",
		"1e5",
		"99999999999999",
		"+99999999999999",
		"10.5.5",
	};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_is_none(wrong[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_into_it),	   cmocka_unit_test(test_since_boot),
		cmocka_unit_test(test_dates),	   cmocka_unit_test(test_times_of_day),
		cmocka_unit_test(test_local_time), cmocka_unit_test(test_nonsense),
	};
	int r;

	setenv("TZ", "UTC", 1);
	tzset();
	r = cmocka_run_group_tests(tests, NULL, NULL);
	return r ? 1 : 0;
}
