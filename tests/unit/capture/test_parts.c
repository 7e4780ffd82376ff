// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a capture's folder holds: nothing that is not a capture's is ever removed.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/parts.h"
#include "walk.h"

static struct folder folder;

static void touch(const char *name)
{
	int fd = openat(folder.fd, name, O_WRONLY | O_CREAT, 0600);

	assert_true(fd >= 0);
	close(fd);
}

static bool is_there(const char *name)
{
	return !faccessat(folder.fd, name, F_OK, 0);
}

static int set_up(void **state)
{
	folder__make(&folder);
	return 0;
}

static int tear_down(void **state)
{
	folder__remove(&folder);
	return 0;
}

static void test_names(void **state)
{
	static const char *const others[] = {
		"",
		"metadata",
		"cpu.000001",
		"cpu0",
		"cpu0.",
		"cpu0.1",
		"cpu0.00000x",
		"cpux.000001",
		"tasks0.000001",
		"weir.000001.gz",
		".cpu0.000001",
		"cpu0.000001~",
		"acpu0.000001",
		"cpu0.0000000001",
	};
	uint32_t number = 0;

	assert_true(parts__parse("cpu0.000001", &number));
	assert_int_equal(number, 1);
	assert_true(parts__parse("cpu511.123456.zst", &number));
	assert_int_equal(number, 123456);
	assert_true(parts__parse("tasks.1000000", &number));
	assert_int_equal(number, 1000000);
	assert_true(parts__parse("weir.000007", &number));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(parts__parse(others[i], &number));
}

static void test_look(void **state)
{
	assert_int_equal(parts__look(folder.fd), PARTS_EMPTY);
	touch("metadata");
	touch("cpu0.000001");
	touch(".cpu0.000002");
	assert_int_equal(mkdirat(folder.fd, ".zstd", 0700), 0);
	assert_int_equal(parts__look(folder.fd), PARTS_CAPTURE);
	touch(".bashrc");
	assert_int_equal(parts__look(folder.fd), PARTS_OTHER);
}

static void test_remove_oldest(void **state)
{
	struct parts parts = {0};

	assert_false(parts__remove_oldest(&parts, folder.fd));
	assert_int_equal(mkdirat(folder.fd, ".zstd", 0700), 0);
	touch("cpu0.000001");
	touch(".zstd/tasks.000001.zst");
	touch("cpu0.000002");
	touch("cpu1.0000010");
	assert_int_equal(parts__add(&parts, &(struct part){1, 100, 5}), 0);
	assert_int_equal(parts__add(&parts, &(struct part){2, 50, 9}), 0);
	assert_int_equal(parts.bytes, 150);
	parts__shrink(&parts, 1, 60);
	parts__shrink(&parts, 3, 60);
	assert_int_equal(parts.bytes, 90);
	assert_true(parts__remove_oldest(&parts, folder.fd));
	assert_int_equal(parts.bytes, 50);
	assert_false(is_there("cpu0.000001"));
	assert_false(is_there(".zstd/tasks.000001.zst"));
	assert_true(is_there("cpu0.000002"));
	assert_true(is_there("cpu1.0000010"));
	parts__free(&parts);
}

static void test_remove_all(void **state)
{
	touch("metadata");
	touch(".metadata");
	touch("weir.000001");
	touch(".weir.000002");
	touch("mine");
	assert_int_equal(mkdirat(folder.fd, ".zstd", 0700), 0);
	touch(".zstd/cpu0.000001.zst");
	assert_int_equal(parts__remove_all(folder.fd), 0);
	assert_true(is_there("mine"));
	assert_int_equal(unlinkat(folder.fd, "mine", 0), 0);
	assert_int_equal(parts__look(folder.fd), PARTS_EMPTY);
}

/* Somebody else may have put it there: what it leads to stays. */
static void test_folder_is_a_link(void **state)
{
	assert_int_equal(mkdirat(folder.fd, "mine", 0700), 0);
	touch("mine/cpu0.000001.zst");
	assert_int_equal(symlinkat("mine", folder.fd, ".zstd"), 0);
	assert_int_not_equal(parts__remove_all(folder.fd), 0);
	assert_true(is_there("mine/cpu0.000001.zst"));
	unlinkat(folder.fd, ".zstd", 0);
	unlinkat(folder.fd, "mine/cpu0.000001.zst", 0);
	unlinkat(folder.fd, "mine", AT_REMOVEDIR);
}

static bool count(void *ctx, int dir_fd, const char *name)
{
	return ++*(int *)ctx < 2;
}

static void test_each_file(void **state)
{
	int files = 0;

	touch("cpu0.000001");
	touch("tasks.000001");
	touch("cpu0.000002");
	parts__each_file(folder.fd, 2, count, &files);
	assert_int_equal(files, 1);
	/* Until it says so. */
	touch("cpu1.000001");
	files = 0;
	parts__each_file(folder.fd, 1, count, &files);
	assert_int_equal(files, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test_setup_teardown(test_look, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_remove_oldest, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_remove_all, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_folder_is_a_link, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_each_file, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
