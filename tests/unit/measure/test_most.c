/* SPDX-License-Identifier: BSD-2-Clause */
/* The search for the highest rate, on machines that are numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "measure/most.h"

struct machine {
	double makes;  /* at most, a second */
	double stands; /* more than that is lost in part */
	unsigned tries;
};

static struct most_run run(void *ctx, uint64_t rate)
{
	struct machine *machine = ctx;
	double made = (double)rate < machine->makes ? (double)rate : machine->makes;

	machine->tries++;
	assert_true(machine->tries < 100);
	if (made <= machine->stands)
		return (struct most_run){.delivered = made};
	return (struct most_run){.delivered = machine->stands, .lost = 1};
}

static void find(double makes, double stands, double from, double to, bool expect_limit)
{
	struct machine machine = {.makes = makes, .stands = stands};
	bool limit = !expect_limit;
	double most = most__find(run, &machine, &limit);

	assert_true(most >= from && most <= to);
	assert_int_equal(limit, expect_limit);
}

static void test_loss_ends_it(void **state)
{
	/* Halved four times: within a sixteenth of the last doubling. */
	find(1e9, 3.3e6, 3.1e6, 3.3e6, false);
	find(1e9, 3.2e6, 3.2e6, 3.2e6, false);
}

static void test_less_than_the_first_rate(void **state)
{
	find(1e9, 40000, 37500, 40000, false);
}

static void test_load_ends_it(void **state)
{
	find(2.5e6, 1e9, 2.5e6, 2.5e6, true);
	find(10, 1e9, 10, 10, true);
}

/* What is lost beyond the load's end can't be reached. */
static void test_both_at_once(void **state)
{
	find(2.5e6, 2.5e6, 2.5e6, 2.5e6, true);
}

static void test_always_lost(void **state)
{
	find(1e9, 10, 0, 0, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loss_ends_it),
		cmocka_unit_test(test_less_than_the_first_rate),
		cmocka_unit_test(test_load_ends_it),
		cmocka_unit_test(test_both_at_once),
		cmocka_unit_test(test_always_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
