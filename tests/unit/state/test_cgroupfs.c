// SPDX-License-Identifier: BSD-2-Clause
/* Where v2 is mounted, and paths by the walk: on a tree of directories, whose numbers are ids too. */
#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "state/cgroupfs.h"

struct fixture {
	char dir[64];	 /* stands for the mount */
	char mounts[96]; /* a mountinfo */
};

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static int setup(void **state)
{
	struct fixture *fixture = test_calloc(1, sizeof(*fixture));

	/* A blank, a backslash and a letter beyond ASCII in the name of the mount. */
	strcpy(fixture->dir, "/tmp/weir cgroup\\\xc3\xa9-XXXXXX");
	*state = fixture;
	if (!mkdtemp(fixture->dir))
		return -1;
	snprintf(fixture->mounts, sizeof(fixture->mounts), "%s.mountinfo", fixture->dir);
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	nftw(fixture->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	unlink(fixture->mounts);
	test_free(fixture);
	return 0;
}

/* Of %s stands the mount, escaped as the kernel does it. */
static struct cgroupfs *open_with(const struct fixture *fixture, const char *format)
{
	FILE *file = fopen(fixture->mounts, "w");
	char escaped[128];
	size_t len = 0;

	for (const char *c = fixture->dir; *c; c++)
		len += (size_t)sprintf(escaped + len, *c == ' ' || *c == '\\' ? "\\%03o" : "%c",
				       (unsigned char)*c);
	fprintf(file, format, escaped);
	fclose(file);
	errno = 0;
	return cgroupfs__open(fixture->mounts);
}

static uint64_t make_dir(const struct fixture *fixture, const char *name)
{
	char path[512];
	struct stat st;

	snprintf(path, sizeof(path), "%s%s", fixture->dir, name);
	assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
	assert_int_equal(stat(path, &st), 0);
	return st.st_ino;
}

static void assert_path(struct cgroupfs *cgroupfs, uint64_t id, const char *expected)
{
	char buf[512];
	int len = cgroupfs__resolve(cgroupfs, id, 0, buf, sizeof(buf));

	assert_int_equal(len, strlen(expected));
	assert_memory_equal(buf, expected, strlen(expected));
	/* A byte short. */
	assert_int_equal(cgroupfs__resolve(cgroupfs, id, 0, buf, strlen(expected)), -ENAMETOOLONG);
	assert_int_equal(cgroupfs__resolve(cgroupfs, id, 0, buf, 0), -ENAMETOOLONG);
}

#define REST "rw,relatime shared:1 master:2 - "

static void test_walk(void **state)
{
	struct fixture *fixture = *state;
	uint64_t a = make_dir(fixture, "/a"), b = make_dir(fixture, "/a/b");
	uint64_t c = make_dir(fixture, "/a/b/docker-1.scope"), d = make_dir(fixture, "/d");
	struct cgroupfs *cgroupfs = open_with(fixture,
					      "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
					      "41 31 0:38 / %s " REST "cgroup2 cgroup2 rw\n");
	char buf[64];

	assert_non_null(cgroupfs);
	assert_path(cgroupfs, a, "/a");
	assert_path(cgroupfs, b, "/a/b");
	assert_path(cgroupfs, c, "/a/b/docker-1.scope");
	assert_path(cgroupfs, d, "/d");
	assert_path(cgroupfs, make_dir(fixture, ""), "/");
	assert_int_equal(cgroupfs__resolve(cgroupfs, UINT64_MAX, 0, buf, sizeof(buf)), -ENOENT);
	assert_int_equal(cgroupfs__resolve(cgroupfs, a, 3, buf, sizeof(buf)), -ENOENT);
	cgroupfs__close(cgroupfs);
	cgroupfs__close(NULL);
}

/* A directory that leads out of the tree, or round in it, is not walked. */
static void test_walk_stays_inside(void **state)
{
	struct fixture *fixture = *state;
	struct cgroupfs *cgroupfs;
	char path[512], buf[64];
	struct stat st;

	make_dir(fixture, "/a");
	snprintf(path, sizeof(path), "%s/a/out", fixture->dir);
	assert_int_equal(symlink("/", path), 0);
	snprintf(path, sizeof(path), "%s/a/round", fixture->dir);
	assert_int_equal(symlink("..", path), 0);
	assert_int_equal(stat("/proc", &st), 0);
	cgroupfs = open_with(fixture, "41 31 0:38 / %s " REST "cgroup2 cgroup2 rw\n");
	assert_int_equal(cgroupfs__resolve(cgroupfs, st.st_ino, 0, buf, sizeof(buf)), -ENOENT);
	cgroupfs__close(cgroupfs);
}

/* Only a part of the hierarchy is mounted: paths are from its root all the same. */
static void test_part_of_hierarchy(void **state)
{
	struct fixture *fixture = *state;
	uint64_t a = make_dir(fixture, "/a");
	struct cgroupfs *cgroupfs =
		open_with(fixture, "41 31 0:38 /lxc/web %s " REST "cgroup2 cgroup2 rw\n"
				   "42 31 0:38 /lxc/other /proc " REST "cgroup2 cgroup2 rw\n");

	assert_non_null(cgroupfs);
	assert_path(cgroupfs, a, "/lxc/web/a");
	assert_path(cgroupfs, make_dir(fixture, ""), "/lxc/web");
	cgroupfs__close(cgroupfs);

	/* All of it, mounted later, is better. */
	cgroupfs = open_with(fixture, "42 31 0:38 /lxc/other /proc " REST "cgroup2 cgroup2 rw\n"
				      "41 31 0:38 / %s " REST "cgroup2 cgroup2 rw\n");
	assert_non_null(cgroupfs);
	assert_path(cgroupfs, a, "/a");
	cgroupfs__close(cgroupfs);
}

static void test_paths_with_the_mount(void **state)
{
	const struct fixture *fixture = *state;
	struct cgroupfs *cgroupfs = open_with(fixture, "41 31 0:38 / %s rw - cgroup2 cgroup2 rw\n");
	char path[512];

	assert_non_null(cgroupfs);
	assert_string_equal(cgroupfs__from_root(cgroupfs, fixture->dir), "/");
	snprintf(path, sizeof(path), "%s//a/b", fixture->dir);
	assert_string_equal(cgroupfs__from_root(cgroupfs, path), "/a/b");
	snprintf(path, sizeof(path), "%sa/b", fixture->dir);
	assert_string_equal(cgroupfs__from_root(cgroupfs, path), path);
	assert_string_equal(cgroupfs__from_root(cgroupfs, "/a/b"), "/a/b");
	cgroupfs__close(cgroupfs);
	/* What a part of it has there is not known to begin at the root. */
	cgroupfs = open_with(fixture, "41 31 0:38 /a %s rw - cgroup2 cgroup2 rw\n");
	assert_non_null(cgroupfs);
	snprintf(path, sizeof(path), "%s/b", fixture->dir);
	assert_string_equal(cgroupfs__from_root(cgroupfs, path), path);
	cgroupfs__close(cgroupfs);
}

static void test_no_mount(void **state)
{
	static const char *const texts[] = {
		"",
		"\n\n",
		"31 23 0:28 / %s rw - tmpfs tmpfs rw\n",
		"32 31 0:29 / %s rw,relatime - cgroup cgroup rw,cpu\n",
		"32 31 0:29 / %s rw,relatime cgroup2 cgroup2 rw\n",
		"32 31 0:29 / - cgroup2 cgroup2 %s\n",
		"32 31 0:29 / %s rw -",
		"- cgroup2 %s",
		"\xff\xfe\\0\\%s",
	};
	struct fixture *fixture = *state;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_null(open_with(fixture, texts[i]));
		assert_int_equal(errno, ENOENT);
	}
	assert_null(open_with(fixture, "41 31 0:38 / %s/gone " REST "cgroup2 cgroup2 rw\n"));
	assert_int_equal(errno, ENOENT);
	assert_null(cgroupfs__open("/no/such/file"));
	assert_int_equal(errno, ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_walk, setup, teardown),
		cmocka_unit_test_setup_teardown(test_walk_stays_inside, setup, teardown),
		cmocka_unit_test_setup_teardown(test_part_of_hierarchy, setup, teardown),
		cmocka_unit_test_setup_teardown(test_paths_with_the_mount, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_mount, setup, teardown),
	};

	return cmocka_run_group_tests_name("cgroupfs", tests, NULL, NULL) ? 1 : 0;
}
