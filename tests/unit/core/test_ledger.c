/* SPDX-License-Identifier: BSD-2-Clause */
/* ledger/ledger: the names of causes, and the sum that has to close (G4). */
#include "unit.h"

#include <weir/ledger.h>

/* As the ledger's JSON has them: they are a format, so they stand here a second time. */
static const char *const names[] = {
	"reserve_failed", "skipped", "unseen",	"throttled", "dead_event", "late",
	"held",		  "broken",  "offline", "output",    "paused",	   "overwritten",
};

static void test_names(void **state)
{
	assert_int_equal(ARRAY_SIZE(names), WEIR_LOST_CAUSES);
	for (int cause = 0; cause < WEIR_LOST_CAUSES; cause++)
		assert_string_equal(weir_cause__name((enum weir_cause)cause), names[cause]);
}

static void test_no_cause(void **state)
{
	const int none[] = {WEIR_LOST_CAUSES, WEIR_LOST_CAUSES + 1, -1, INT32_MAX, INT32_MIN};

	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		assert_string_equal(weir_cause__name((enum weir_cause)none[i]), "unknown_cause");
}

static void test_closes(void **state)
{
	struct weir_account account = {
		.produced = 1000,
		.delivered = 700,
		.filtered = 150,
		.pending = 50,
	};

	account.lost[WEIR_LOST_RESERVE_FAILED] = 60;
	account.lost[WEIR_LOST_SKIPPED] = 30;
	account.lost[WEIR_LOST_PAUSED] = 10;
	assert_int_equal(weir_account__difference(&account), 0);
	account.delivered--;
	assert_int_equal(weir_account__difference(&account), -1);
	account.delivered += 2;
	assert_int_equal(weir_account__difference(&account), 1);
}

/* Each cause is in the sum; a bound that is only `at most` as well, one that is unknown is not. */
static void test_every_cause_counts(void **state)
{
	for (int cause = 0; cause < WEIR_LOST_CAUSES; cause++) {
		struct weir_account account = {.produced = 5};

		account.lost[cause] = 5;
		assert_int_equal(weir_account__difference(&account), 0);
		account.bound[cause] = WEIR_BOUND_AT_MOST;
		assert_int_equal(weir_account__difference(&account), 0);
		account.bound[cause] = WEIR_BOUND_UNKNOWN;
		assert_int_equal(weir_account__difference(&account), -5);
	}
}

/* What is no part of the sum: late and ahead are delivered, self and stray were never produced. */
static void test_what_does_not_count(void **state)
{
	struct weir_account account = {.produced = 1, .delivered = 1};

	account.late = 1;
	account.ahead = 1;
	account.self = 77;
	account.unread = 3;
	account.failed = 9;
	account.stray = 5;
	assert_int_equal(weir_account__difference(&account), 0);
}

/* A difference of more than half of all numbers is still a difference. */
static void test_large(void **state)
{
	struct weir_account account = {.produced = UINT64_MAX, .delivered = UINT64_MAX - 3};

	assert_int_equal(weir_account__difference(&account), -3);
	account.pending = 3;
	assert_int_equal(weir_account__difference(&account), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_no_cause),
		cmocka_unit_test(test_closes),
		cmocka_unit_test(test_every_cause_counts),
		cmocka_unit_test(test_what_does_not_count),
		cmocka_unit_test(test_large),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	return r ? 1 : 0;
}
