// SPDX-License-Identifier: BSD-2-Clause
/* paths.c: what a path comes to, as seen from a directory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/paths.h"

static char full[PATHS_MAX];

static const char *resolved(const char *dir, const char *path)
{
	/* Its own piece of heap, without a NUL: nothing behind it is read. */
	size_t len = strlen(path);
	char *bytes = memcpy(test_malloc(len + 1), path, len);
	bool known;

	bytes[len] = '/';
	known = paths__resolve(dir, bytes, len, full);
	test_free(bytes);
	return known ? full : NULL;
}

static void test_absolute(void **state)
{
	assert_string_equal(resolved(NULL, "/etc/passwd"), "/etc/passwd");
	assert_string_equal(resolved("/tmp", "/etc/passwd"), "/etc/passwd");
	assert_string_equal(resolved(NULL, "//etc/./passwd/"), "/etc/passwd");
	assert_string_equal(resolved(NULL, "/"), "/");
	assert_string_equal(resolved(NULL, "/etc/.hidden"), "/etc/.hidden");
	assert_string_equal(resolved(NULL, "/etc/..."), "/etc/...");
}

static void test_relative(void **state)
{
	assert_string_equal(resolved("/etc", "passwd"), "/etc/passwd");
	assert_string_equal(resolved("/etc/", "./passwd"), "/etc/passwd");
	assert_string_equal(resolved("/", "etc"), "/etc");
	assert_string_equal(resolved("/etc", ""), "/etc");
	assert_null(resolved(NULL, "passwd"));
	assert_null(resolved("pipe:[12]", "passwd"));
	assert_null(resolved(NULL, ""));
}

static void test_parents(void **state)
{
	assert_string_equal(resolved("/usr/lib", "../bin/x"), "/usr/bin/x");
	assert_string_equal(resolved("/a", "../../../b"), "/b");
	assert_string_equal(resolved(NULL, "/a/b/../.."), "/");
}

static void test_too_long(void **state)
{
	char path[PATHS_MAX + 2] = "/";

	memset(path + 1, 'x', PATHS_MAX - 2);
	assert_non_null(resolved(NULL, path));
	path[PATHS_MAX - 1] = 'x';
	assert_null(resolved(NULL, path));
	assert_null(resolved("/tmp", path + 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_absolute),
		cmocka_unit_test(test_relative),
		cmocka_unit_test(test_parents),
		cmocka_unit_test(test_too_long),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	return r ? 1 : 0;
}
