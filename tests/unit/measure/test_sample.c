/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "measure/sample.h"

static void test_nothing_in_it(void **state)
{
	struct sample sample = {0};

	assert_true(sample__min(&sample) == 0);
	assert_true(sample__median(&sample) == 0);
	sample__free(&sample);
}

static void test_quantiles(void **state)
{
	struct sample sample = {0};

	/* 0 to 1,000, each once, in another order. */
	for (int i = 0; i <= 1000; i++)
		sample__add(&sample, i * 379 % 1001);
	assert_int_equal(sample.count, 1001);
	assert_true(sample__min(&sample) == 0);
	assert_true(sample__median(&sample) == 500);
	assert_true(sample__quantile(&sample, 0.99) == 990);
	assert_true(sample__quantile(&sample, 1) == 1000);
	sample__free(&sample);
	assert_int_equal(sample.count, 0);
}

static void test_more_after_a_look(void **state)
{
	struct sample sample = {0};

	sample__add(&sample, 2);
	assert_true(sample__median(&sample) == 2);
	sample__add(&sample, -1);
	sample__add(&sample, 1);
	assert_true(sample__median(&sample) == 1);
	assert_true(sample__min(&sample) == -1);
	sample__free(&sample);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_in_it),
		cmocka_unit_test(test_quantiles),
		cmocka_unit_test(test_more_after_a_look),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
