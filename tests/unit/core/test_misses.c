/* SPDX-License-Identifier: BSD-2-Clause */
/* source/misses: a counter that can't be read keeps its value. */
#include "unit.h"

#include "source/misses.h"

#include <fcntl.h>
#include <unistd.h>

static uint64_t seven(void *ctx)
{
	return *(uint64_t *)ctx + 7;
}

static void test_own_counter(void **state)
{
	uint64_t base = UINT64_MAX - 10;
	struct misses misses = {.read = seven, .ctx = &base, .fd = -1};

	assert_true(misses__total(&misses, 0) == UINT64_MAX - 3);
	misses__close(&misses);
}

static void test_no_program(void **state)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct misses misses;

	assert_true(null >= 0);
	assert_true(misses__open_prog(&misses, -1, "gone") < 0);
	assert_true(misses__open_prog(&misses, null, "no program") < 0);
	close(null);
}

/* A total that is unknown is what it was, not 0: it would look like a step back, then like a loss. */
static void test_unreadable(void **state)
{
	struct misses misses = {.fd = open("/dev/null", O_RDONLY | O_CLOEXEC)};
	int fd = misses.fd;

	assert_true(fd >= 0);
	assert_true(misses__total(&misses, 1234) == 1234);
	misses__close(&misses);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	misses__close(&misses);
	assert_true(misses__total(&misses, 1234) == 1234);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_counter),
		cmocka_unit_test(test_no_program),
		cmocka_unit_test(test_unreadable),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	return r ? 1 : 0;
}
