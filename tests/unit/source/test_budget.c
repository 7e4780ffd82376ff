/* SPDX-License-Identifier: BSD-2-Clause */
/* source/budget: descriptors and locked memory, judged before anything is opened (M5). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "source/budget.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define KIB 1024ull

static char why[512];
static const struct reason reason = {why, sizeof(why)};

/* A machine as distributions leave it, and a user without rights. */
static const struct budget_limits modest = {
	.fds_max = 1024,
	.fds_open = 24,
	.page_bytes = 4096,
	.per_cpu_kb = 516,
	.cpus = 4,
	.memlock_bytes = 64 * KIB,
};

static int judge(const struct budget_limits *limits, uint64_t fds, uint64_t rings,
		 uint64_t ring_bytes)
{
	struct budget_need need = {.fds = fds, .rings = rings, .ring_bytes = ring_bytes};

	why[0] = '\0';
	return budget__judge(limits, &need, &reason);
}

static void assert_says(const char *part)
{
	if (!strstr(why, part))
		fail_msg("\"%s\" is not in \"%s\"", part, why);
}

static void test_enough(void **state)
{
	/* What perf itself makes by default fits exactly: 512 KiB and a page on each CPU. */
	assert_int_equal(judge(&modest, 1000, 4, 512 * KIB), 0);
	assert_int_equal(judge(&modest, 0, 0, 0), 0);
	assert_string_equal(why, "");
}

static void test_one_descriptor_too_many(void **state)
{
	assert_int_equal(judge(&modest, 1001, 1, 4 * KIB), -EMFILE);
	assert_says("1001 file descriptors are needed and 24 are open");
	assert_says("at most 1024");
	assert_says("ulimit -n 2048");
}

/* 516 KiB a CPU, then RLIMIT_MEMLOCK: to the page. */
static void test_one_page_too_many(void **state)
{
	struct budget_limits limits = modest;

	limits.memlock_bytes = 4 * 4 * KIB;
	assert_int_equal(judge(&limits, 4, 4, 516 * KIB), 0);
	limits.memlock_bytes -= 4 * KIB;
	assert_int_equal(judge(&limits, 4, 4, 516 * KIB), -EPERM);
	assert_says("4 rings of 516 KiB need 2080 KiB");
	assert_says("but 2076 KiB are allowed");
	assert_says("perf_event_mlock_kb is 516 for each of 4 CPUs");
	assert_says("RLIMIT_MEMLOCK 12 KiB");
	assert_says("sysctl kernel.perf_event_mlock_kb=520");
}

/* The way out that is named is one. */
static void test_the_way_out(void **state)
{
	struct budget_limits limits = modest;

	assert_int_equal(judge(&limits, 4, 4, 1024 * KIB), -EPERM);
	assert_says("kernel.perf_event_mlock_kb=1028");
	limits.per_cpu_kb = 1028;
	assert_int_equal(judge(&limits, 4, 4, 1024 * KIB), 0);
	assert_int_equal(judge(&limits, 3000, 4, 1024 * KIB), -EMFILE);
	assert_says("ulimit -n 3072");
	limits.fds_max = 3072;
	assert_int_equal(judge(&limits, 3000, 4, 1024 * KIB), 0);
}

static void test_pinned_already(void **state)
{
	struct budget_limits limits = modest;

	limits.pinned_bytes = 60 * KIB;
	assert_int_equal(judge(&limits, 4, 4, 516 * KIB), -EPERM);
	assert_says("of which 60 KiB are used");
	/* More pinned than may be: the limit was lowered since. */
	limits.pinned_bytes = 1024 * KIB;
	assert_int_equal(judge(&limits, 4, 4, 512 * KIB), 0);
}

static void test_the_privileged(void **state)
{
	struct budget_limits limits = modest;

	limits.unlocked = true;
	assert_int_equal(judge(&limits, 4, 4, 1024 * 1024 * KIB), 0);
	/* That is about memory alone. */
	assert_int_equal(judge(&limits, 4000, 4, 4 * KIB), -EMFILE);
	limits = modest;
	limits.memlock_bytes = BUDGET_UNLIMITED;
	limits.fds_max = BUDGET_UNLIMITED;
	assert_int_equal(judge(&limits, 1 << 20, 4, 1024 * 1024 * KIB), 0);
}

/* Numbers beyond all reason are too much, not little. */
static void test_overflow(void **state)
{
	assert_int_equal(judge(&modest, UINT64_MAX, 1, 4 * KIB), -EMFILE);
	assert_int_equal(judge(&modest, 1, UINT64_MAX, 4 * KIB), -EPERM);
	assert_int_equal(judge(&modest, 1, 1, UINT64_MAX), -EPERM);
	assert_int_equal(judge(&modest, 1, 1ull << 40, 1ull << 40), -EPERM);
}

static void test_nobody_asks_why(void **state)
{
	struct budget_need need = {.fds = 5000, .rings = 1, .ring_bytes = 4096};
	const struct reason nobody = {NULL, 0};
	char small[8];
	const struct reason short_one = {small, sizeof(small)};

	assert_int_equal(budget__judge(&modest, &need, &nobody), -EMFILE);
	assert_int_equal(budget__judge(&modest, &need, &short_one), -EMFILE);
	assert_string_equal(small, "5000 fi");
}

/* What the kernel says of this process. */
static void test_limits_of_this_process(void **state)
{
	struct budget_limits before, after;
	struct rlimit limit, less;
	int fd;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	budget__read_limits(&before);
	assert_int_equal(before.fds_max, limit.rlim_cur);
	assert_true(before.fds_open >= 3);
	assert_true(before.cpus >= 1);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	less = (struct rlimit){.rlim_cur = 100, .rlim_max = limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &less), 0);
	budget__read_limits(&after);
	assert_int_equal(after.fds_open, before.fds_open + 1);
	assert_int_equal(after.fds_max, 100);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_enough),
		cmocka_unit_test(test_one_descriptor_too_many),
		cmocka_unit_test(test_one_page_too_many),
		cmocka_unit_test(test_the_way_out),
		cmocka_unit_test(test_pinned_already),
		cmocka_unit_test(test_the_privileged),
		cmocka_unit_test(test_overflow),
		cmocka_unit_test(test_nobody_asks_why),
		cmocka_unit_test(test_limits_of_this_process),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	return r ? 1 : 0;
}
