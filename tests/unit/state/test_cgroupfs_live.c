// SPDX-License-Identifier: BSD-2-Clause
/*
 * Paths by id from the running kernel: by handle, and by the walk that a caller without the
 * capability takes, which have to agree. Needs root and a v2 mount that can be written; else exit
 * status 77, which says so.
 */
#include <dirent.h>
#include <errno.h>
#include <linux/capability.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "state/cgroupfs.h"

static char mount_point[256];

static bool find_mount(void)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	char line[1024], root[256], *type;
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file)) {
		type = strstr(line, " - cgroup2 ");
		found = type && sscanf(line, "%*d %*d %*s %255s %255s", root, mount_point) == 2 &&
			!strcmp(root, "/");
	}
	if (file)
		fclose(file);
	return found;
}

/* Give up the right to open by handle, for good: last in the program. */
static void drop_capability(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	assert_int_equal(syscall(SYS_capget, &header, data), 0);
	data[0].effective &= ~(1u << CAP_DAC_READ_SEARCH);
	assert_int_equal(syscall(SYS_capset, &header, data), 0);
}

static uint64_t make(const char *name, char path[512])
{
	struct stat st;

	snprintf(path, 512, "%s%s", mount_point, name);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(stat(path, &st), 0);
	return st.st_ino;
}

static void resolve_both(void)
{
	char outer_path[512], inner_path[512], outer[64], inner[128], buf[512];
	struct cgroupfs *cgroupfs = cgroupfs__open(NULL);
	uint64_t outer_id, inner_id;
	int len;

	assert_non_null(cgroupfs);
	snprintf(outer, sizeof(outer), "/weir-test-%d", (int)getpid());
	snprintf(inner, sizeof(inner), "%s/inner one", outer);
	outer_id = make(outer, outer_path);
	inner_id = make(inner, inner_path);

	len = cgroupfs__resolve(cgroupfs, outer_id, 0, buf, sizeof(buf));
	assert_int_equal(len, strlen(outer));
	assert_memory_equal(buf, outer, strlen(outer));
	len = cgroupfs__resolve(cgroupfs, inner_id, 0, buf, sizeof(buf));
	assert_int_equal(len, strlen(inner));
	assert_memory_equal(buf, inner, strlen(inner));
	assert_int_equal(cgroupfs__resolve(cgroupfs, 1, 0, buf, sizeof(buf)), 1);
	assert_int_equal(buf[0], '/');
	assert_int_equal(cgroupfs__resolve(cgroupfs, inner_id, 0, buf, strlen(inner)),
			 -ENAMETOOLONG);

	/* Removed: there is no path any more. */
	assert_int_equal(rmdir(inner_path), 0);
	assert_int_equal(rmdir(outer_path), 0);
	assert_int_equal(cgroupfs__resolve(cgroupfs, inner_id, 0, buf, sizeof(buf)), -ENOENT);
	cgroupfs__close(cgroupfs);
}

static void test_by_handle(void **state)
{
	resolve_both();
}

static void test_by_walk(void **state)
{
	drop_capability();
	resolve_both();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_handle),
		cmocka_unit_test(test_by_walk),
	};

	if (geteuid() || !find_mount() || access(mount_point, W_OK)) {
		fprintf(stderr, "needs root and a cgroup2 mount that can be written\n");
		return 77;
	}
	return cmocka_run_group_tests_name("cgroupfs, live", tests, NULL, NULL) ? 1 : 0;
}
