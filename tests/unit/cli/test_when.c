/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_when.c - which moment is meant.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "cli/when.h"

#define SECOND	      1000000000ull
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* 2026-11-29 23:59:50 to 00:00:10 UTC, five seconds after boot. */
static const struct when_base midnight = {
	.start_ns = 5 * SECOND,
	.end_ns = 25 * SECOND,
	.wall_offset_ns = 1795996785 * (int64_t)SECOND,
};

static uint64_t stamp(const char *text, const struct when_base *base)
{
	uint64_t ns = 0;

	assert_true(when__parse(text, base, &ns));
	return ns;
}

static void test_forms(void **state)
{
	assert_int_equal(stamp("8.25", &midnight), 8250000000);
	assert_int_equal(stamp("+1.5", &midnight), 6500000000);
	assert_int_equal(stamp("23:59:55", &midnight), 10 * SECOND);
	assert_int_equal(stamp("2026-11-29T23:59:55.5Z", &midnight), 10500000000);
	assert_int_equal(stamp("2026-11-30 00:00:01", &midnight), 16 * SECOND);
}

static void test_first_such_time_of_day(void **state)
{
	assert_int_equal(stamp("00:00:01", &midnight), 16 * SECOND);
	/* Not in the recording: of its first day. */
	assert_int_equal(stamp("12:00", &midnight), 0);
}

static void test_nonsense(void **state)
{
	static const char *const texts[] = {"",
					    "+",
					    "x",
					    "1e3",
					    "-1",
					    "+-1",
					    "nan",
					    "25:00",
					    "12:60",
					    "10:00x",
					    "2026-11-29",
					    "2026-13-01 10:00:00",
					    "18446744073709551616"};
	uint64_t ns;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_false(when__parse(texts[i], &midnight, &ns));
}

/* Dates that no stamp reaches lie behind all of the recording, or before it. */
static void test_far_away(void **state)
{
	assert_true(stamp("9999-12-31T23:59:59Z", &midnight) > midnight.end_ns);
	assert_true(stamp("2300-01-01T00:00:00Z", &midnight) > midnight.end_ns);
	assert_int_equal(stamp("1066-10-14T09:00:00Z", &midnight), 0);
}

/* A damaged capture may have any offset and any span: no overflow, no endless search. */
static void test_hostile_base(void **state)
{
	static const int64_t offsets[] = {INT64_MIN, -1, 0, INT64_MAX};

	for (size_t i = 0; i < ARRAY_SIZE(offsets); i++) {
		const struct when_base base = {
			.start_ns = 0, .end_ns = INT64_MAX, .wall_offset_ns = offsets[i]};

		stamp("10:00", &base);
		stamp("9999-12-31T23:59:59Z", &base);
		stamp("0001-01-01T00:00:00Z", &base);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),	     cmocka_unit_test(test_first_such_time_of_day),
		cmocka_unit_test(test_nonsense),     cmocka_unit_test(test_far_away),
		cmocka_unit_test(test_hostile_base),
	};

	setenv("TZ", "UTC", 1);
	tzset();
	return cmocka_run_group_tests_name("when", tests, NULL, NULL) ? 1 : 0;
}
