/* SPDX-License-Identifier: BSD-2-Clause */
/* source/cpus: ids as the kernel lists them (M1). */
#include "unit.h"

#include "source/cpus.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void expect_set(const struct cpus *cpus, const int *ids, size_t n)
{
	size_t next = 0;

	assert_int_equal(cpus__count(cpus), n);
	for (unsigned cpu = 0; cpu < CPUS_MAX; cpu++) {
		bool want = next < n && ids[next] == (int)cpu;

		assert_int_equal(cpus__has(cpus, cpu), want);
		next += want;
	}
	assert_int_equal(next, n);
	assert_false(cpus__has(cpus, CPUS_MAX));
	assert_false(cpus__has(cpus, UINT32_MAX));
}

static void test_lists(void **state)
{
	static const struct {
		const char *text;
		int ids[32];
		size_t n;
	} lists[] = {
		{"0", {0}, 1},
		{"0\n", {0}, 1},
		{"", {0}, 0},
		{"\n", {0}, 0},
		{"5", {5}, 1},
		{"0-1\n", {0, 1}, 2},
		{"0-3,8-11\n", {0, 1, 2, 3, 8, 9, 10, 11}, 8},
		{"0,2,4", {0, 2, 4}, 3},
		{"7-7", {7}, 1},
		{"63-65,127-128", {63, 64, 65, 127, 128}, 5},
		{"8191", {8191}, 1},
		{"8189-8191\n", {8189, 8190, 8191}, 3},
		{"4,1", {1, 4}, 2},	      /* in no order */
		{"1-3,2-4", {1, 2, 3, 4}, 4}, /* named twice */
		{"007", {7}, 1},
	};

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		struct cpus cpus;

		memset(&cpus, 0xff, sizeof(cpus));
		assert_int_equal(cpus__parse(&cpus, lists[i].text), 0);
		expect_set(&cpus, lists[i].ids, lists[i].n);
	}
}

/* M1: "0-11,16-27", and all that there can be. */
static void test_counts(void **state)
{
	struct cpus cpus;

	assert_int_equal(cpus__parse(&cpus, "0-11,16-27\n"), 0);
	assert_int_equal(cpus__count(&cpus), 24);
	assert_true(cpus__has(&cpus, 11) && !cpus__has(&cpus, 12));
	assert_true(!cpus__has(&cpus, 15) && cpus__has(&cpus, 16));
	assert_int_equal(cpus__parse(&cpus, "0-8191"), 0);
	assert_int_equal(cpus__count(&cpus), CPUS_MAX);
}

static void test_no_lists(void **state)
{
	static const char *const garbage[] = {
		"8192",
		"0-8192",
		"8192-8193",
		"65536",
		"4294967296",		/* 0 in 32 bits */
		"18446744073709551616", /* 0 in 64 */
		"99999999999999999999999999",
		"3-1",
		"1-0",
		"-1",
		"-",
		"1-",
		"1-\n",
		"1-,2",
		"1--2",
		"1-2-3",
		",",
		",1",
		"1,",
		"1,\n",
		"1,,2",
		" 1",
		"1 ",
		"1, 2",
		"+1",
		"1-+2",
		"0x1",
		"1;2",
		"all",
		"0\r\n",
		"0-1:1/2", /* the kernel's other syntax, which it never prints */
		"\xff",
	};

	for (size_t i = 0; i < ARRAY_SIZE(garbage); i++) {
		struct cpus cpus;

		if (cpus__parse(&cpus, garbage[i]) != -EINVAL)
			fail_msg("\"%s\" was taken for a list", garbage[i]);
	}
}

/* Any text: the verdict is 0 or -EINVAL, and what was taken can be said again. */
static void test_random_text(void **state)
{
	static const char letters[] = "0123456789,,--\n ";
	struct rng rng = {41};
	unsigned good = 0;

	for (int run = 0; run < 300000; run++) {
		char text[12] = "";
		struct cpus cpus;
		size_t len = rng__below(&rng, sizeof(text));
		int err;

		for (size_t i = 0; i < len; i++)
			text[i] = letters[rng__below(&rng, sizeof(letters) - 1)];
		err = cpus__parse(&cpus, text);
		assert_true(err == 0 || err == -EINVAL);
		if (err)
			continue;
		good++;
		assert_true(strspn(text, "0123456789,-") == strcspn(text, "\n"));
		assert_true((cpus__count(&cpus) == 0) == (strcspn(text, "\n") == 0));
	}
	assert_in_range(good, 1000, 299000); /* both ways were taken */
}

/* A sysfs of ours. */
static char root[64];

static int make_root(void **state)
{
	char path[128];

	snprintf(root, sizeof(root), "%s", "/tmp/weir-cpus-XXXXXX");
	if (!mkdtemp(root))
		return -1;
	snprintf(path, sizeof(path), "%s/devices", root);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/devices/system", root);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/devices/system/cpu", root);
	return mkdir(path, 0700);
}

static void file_path(char *path, size_t size, const char *name)
{
	snprintf(path, size, "%s/devices/system/cpu/%s", root, name);
}

static void write_file(const char *name, const char *text)
{
	char path[128];
	FILE *file;

	file_path(path, sizeof(path), name);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static int remove_root(void **state)
{
	static const char *const parts[] = {
		"/devices/system/cpu/online",
		"/devices/system/cpu/possible",
		"/devices/system/cpu",
		"/devices/system",
		"/devices",
		"",
	};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		char path[128];

		snprintf(path, sizeof(path), "%s%s", root, parts[i]);
		err = remove(path);
	}
	return err;
}

static void test_sysfs(void **state)
{
	const int online[] = {0, 1, 2, 3, 8, 9, 11};
	struct cpus cpus;

	write_file("possible", "0-3,8-11\n");
	write_file("online", "0-3,8-9,11\n");
	assert_int_equal(cpus__online(&cpus, root), 0);
	expect_set(&cpus, online, ARRAY_SIZE(online));
	/* By the highest id, never by their number. */
	assert_int_equal(cpus__possible_slots(root), 12);
	write_file("possible", "0-8191\n");
	assert_int_equal(cpus__possible_slots(root), CPUS_MAX);
	write_file("possible", "0\n");
	assert_int_equal(cpus__possible_slots(root), 1);
}

static void test_sysfs_says_nonsense(void **state)
{
	struct cpus cpus;

	assert_int_equal(cpus__online(&cpus, root), -ENOENT);
	assert_int_equal(cpus__possible_slots(root), -ENOENT);
	assert_int_equal(cpus__online(&cpus, "/nowhere/at/all"), -ENOENT);
	write_file("online", "");
	assert_int_equal(cpus__online(&cpus, root), 0);
	assert_int_equal(cpus__count(&cpus), 0);
	write_file("possible", "\n");
	assert_int_equal(cpus__possible_slots(root), -EINVAL);
	write_file("possible", "0-8192\n");
	assert_int_equal(cpus__possible_slots(root), -EINVAL);
	write_file("online", "garbage\n");
	assert_int_equal(cpus__online(&cpus, root), -EINVAL);
}

/* A list that is longer than what is read must not end in the middle of a number. */
static void test_sysfs_is_too_long(void **state)
{
	static char text[8 * CPUS_MAX];
	struct cpus cpus;
	size_t len = 0;

	for (unsigned cpu = 0; cpu < CPUS_MAX; cpu += 2)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%u", cpu ? "," : "",
					cpu);
	write_file("online", text);
	assert_int_equal(cpus__online(&cpus, root), 0);
	assert_int_equal(cpus__count(&cpus), CPUS_MAX / 2);
	assert_true(cpus__has(&cpus, CPUS_MAX - 2));
}

static void test_long_root(void **state)
{
	static char long_root[8192];
	struct cpus cpus;

	memset(long_root, 'x', sizeof(long_root) - 1);
	long_root[0] = '/';
	assert_int_equal(cpus__online(&cpus, long_root), -ENAMETOOLONG);
}

/* M1: what the reader is bound to says nothing about which CPUs there are. */
static void test_this_machine(void **state)
{
	struct cpus cpus;

	assert_int_equal(cpus__online(&cpus, NULL), 0);
	assert_int_equal(cpus__count(&cpus), sysconf(_SC_NPROCESSORS_ONLN));
	assert_true(cpus__possible_slots(NULL) >= (int)cpus__count(&cpus));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_no_lists),
		cmocka_unit_test(test_random_text),
		cmocka_unit_test_setup_teardown(test_sysfs, make_root, remove_root),
		cmocka_unit_test_setup_teardown(test_sysfs_says_nonsense, make_root, remove_root),
		cmocka_unit_test_setup_teardown(test_sysfs_is_too_long, make_root, remove_root),
		cmocka_unit_test(test_long_root),
		cmocka_unit_test(test_this_machine),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	return r ? 1 : 0;
}
