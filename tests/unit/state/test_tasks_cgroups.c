// SPDX-License-Identifier: BSD-2-Clause
/* The task table's cgroups: v2, v1 and hybrid hosts, moves, and who knows a path. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "tests/unit/state/events.h"

#define ID_A "0d1fe44cdd4ce0e9c2a7f3b5d8e6a1b4c7f0e3d6b9a2c5f8e1d4b7a0c3f6e9d2"
#define ID_B "9bca8d63d5fa610783847915bcff0ecac1273e5b4bed3f6fa1b07350e0135961"

/* v2: forks inherit, CLONE_INTO_CGROUP goes elsewhere, attach moves all threads or one. */
static void test_cgroup_v2(void **state)
{
	struct tasks *tasks = *state;
	struct task_view view;

	feed_seed(tasks, .pid = 10, .start_ns = 5, .cgroup = 70,
		  .cgroups = "/system.slice/sshd.service");
	feed_fork(tasks, 100, .ppid = 10, .pid = 42, .start_ns = 90, .cgroup = 70);
	view = find(tasks, 42, 100);
	assert_string_equal(view.cgroup, "/system.slice/sshd.service");
	assert_string_equal(view.unit, "sshd.service");
	assert_null(view.container);

	feed_mkdir(tasks, 110, 1, true, 71, "/system.slice/docker-" ID_A ".scope");
	feed_fork(tasks, 120, .ppid = 10, .pid = 43, .start_ns = 119, .cgroup = 71);
	view = find(tasks, 43, 120);
	assert_string_equal(view.container, ID_A);
	assert_string_equal(view.unit, "docker-" ID_A ".scope");

	feed_fork(tasks, 130, .ppid = 42, .pid = 42, .tid = 44, .start_ns = 129, .cgroup = 70);
	feed_attach(tasks, 140, .pid = 42, .start_ns = 90, .cgroup = 72, .hierarchy = 1,
		    .is_v2 = true, .path = "/docker/" ID_B);
	assert_string_equal(find(tasks, 42, 140).container, ID_B);
	assert_string_equal(find(tasks, 44, 140).container, ID_B);
	feed_fork(tasks, 150, .ppid = 42, .ptid = 44, .pid = 45, .start_ns = 149, .cgroup = 72);
	assert_string_equal(find(tasks, 45, 150).container, ID_B);

	/* A threaded cgroup below: the thread alone, no other container. */
	feed_attach(tasks, 160, .pid = 42, .tid = 44, .start_ns = 129, .cgroup = 73, .is_v2 = true,
		    .thread = true, .path = "/docker/" ID_B "/io");
	assert_string_equal(find(tasks, 44, 160).cgroup, "/docker/" ID_B "/io");
	assert_string_equal(find(tasks, 44, 160).container, ID_B);
	assert_string_equal(find(tasks, 42, 160).cgroup, "/docker/" ID_B);

	/* Out of the container, in stream order; and a late move back. */
	feed_attach(tasks, 170, .pid = 42, .start_ns = 90, .cgroup = 70, .is_v2 = true,
		    .path = "/system.slice/sshd.service");
	assert_null(find(tasks, 42, 170).container);
	assert_null(find(tasks, 44, 170).container);
	feed_attach(tasks, 165, .pid = 42, .start_ns = 90, .cgroup = 72, .is_v2 = true,
		    .path = "/docker/" ID_B, .mark = WEIR_MARK_LATE);
	assert_null(find(tasks, 42, 170).container);
	assert_string_equal(find(tasks, 45, 170).container, ID_B);

	/* Exec names the cgroup: an attach before it was lost. */
	feed_exec(tasks, 180, .pid = 42, .start_ns = 90, .path = "/x", .cgroup = 71);
	assert_string_equal(find(tasks, 42, 180).container, ID_A);
}

/* v1: a dozen hierarchies, each with its own attach. None clears what another one says. */
static void test_cgroup_v1(void **state)
{
	struct tasks *tasks = *state;

	feed_seed(tasks, .pid = 10, .start_ns = 5, .cgroup = 1,
		  .cgroups = "12:pids:/system.slice/docker.service\n"
			     "4:memory:/system.slice/docker.service\n"
			     "1:name=systemd:/system.slice/docker.service\n"
			     "0::/\n");
	assert_string_equal(find(tasks, 10, 5).unit, "docker.service");
	assert_string_equal(find(tasks, 10, 5).cgroup, "/system.slice/docker.service");

	feed_fork(tasks, 100, .ppid = 10, .pid = 42, .start_ns = 99, .cgroup = 1);
	for (uint32_t hierarchy = 1; hierarchy <= 12; hierarchy++)
		feed_attach(tasks, 100 + hierarchy, .pid = 42, .start_ns = 99,
			    .cgroup = 500 + hierarchy, .hierarchy = hierarchy,
			    .path = hierarchy == 7 ? "/" : "/docker/" ID_A);
	assert_string_equal(find(tasks, 42, 120).container, ID_A);
	assert_string_equal(find(tasks, 42, 120).cgroup, "/docker/" ID_A);
	assert_null(find(tasks, 42, 120).unit);
	assert_null(find(tasks, 10, 120).container);

	/* Leaves it in one hierarchy after the other: the last one counts. */
	for (uint32_t hierarchy = 12; hierarchy >= 1; hierarchy--) {
		assert_string_equal(find(tasks, 42, 150).container, ID_A);
		feed_attach(tasks, 150 - hierarchy, .pid = 42, .start_ns = 99,
			    .cgroup = 900 + hierarchy, .hierarchy = hierarchy, .path = "/");
	}
	assert_null(find(tasks, 42, 150).container);
	assert_string_equal(find(tasks, 42, 150).cgroup, "/");

	/* Children and execs keep what v1 says: their records know v2 only. */
	feed_attach(tasks, 160, .pid = 42, .start_ns = 99, .cgroup = 504, .hierarchy = 4,
		    .path = "/docker/" ID_A);
	feed_fork(tasks, 155, .ppid = 42, .pid = 44, .start_ns = 154, .cgroup = 1,
		  .mark = WEIR_MARK_LATE);
	assert_null(find(tasks, 44, 180).container);
	feed_fork(tasks, 170, .ppid = 42, .pid = 43, .start_ns = 169, .cgroup = 1);
	feed_exec(tasks, 180, .pid = 43, .start_ns = 169, .path = "/x", .cgroup = 1);
	assert_string_equal(find(tasks, 43, 180).container, ID_A);
}

/* Hybrid: v2 has the task in its runtime's service, and only v1 knows the container. */
static void test_cgroup_hybrid(void **state)
{
	struct tasks *tasks = *state;
	struct task_view view;

	feed_seed(tasks, .pid = 10, .start_ns = 5, .cgroup = 30,
		  .cgroups = "9:name=systemd:/docker/" ID_A "\n"
			     "0::/system.slice/containerd.service\n");
	view = find(tasks, 10, 5);
	assert_string_equal(view.container, ID_A);
	assert_string_equal(view.cgroup, "/docker/" ID_A);
	/* The same id in another hierarchy is another cgroup. */
	feed_mkdir(tasks, 50, 9, false, 30, "/lxc/other");
	feed_fork(tasks, 100, .ppid = 10, .pid = 42, .start_ns = 99, .cgroup = 30);
	assert_string_equal(find(tasks, 42, 100).container, ID_A);
	feed_attach(tasks, 110, .pid = 42, .start_ns = 99, .cgroup = 31, .hierarchy = 9,
		    .path = "/system.slice/x.service");
	view = find(tasks, 42, 110);
	assert_null(view.container);
	assert_string_equal(view.cgroup, "/system.slice/containerd.service");
	/* Number 0 that does not say that it is v2. */
	feed_attach(tasks, 120, .pid = 42, .start_ns = 99, .cgroup = 32, .hierarchy = 0,
		    .path = "/lxc/web");
	assert_string_equal(find(tasks, 42, 120).container, "web");
	feed_attach(tasks, 125, .pid = 42, .start_ns = 99, .cgroup = 34, .hierarchy = 1,
		    .is_v2 = true, .path = "/");
	assert_string_equal(find(tasks, 42, 125).container, "web");
	feed_attach(tasks, 130, .pid = 42, .start_ns = 99, .cgroup = 33, .hierarchy = 1,
		    .is_v2 = true, .path = "/lxc/two");
	assert_string_equal(find(tasks, 42, 130).container, "two");
}

/* Nothing is known of v2 yet, and the first hierarchy that is has a cgroup of the same id. */
static void test_cgroup_same_id(void **state)
{
	struct tasks *tasks = *state;

	feed_attach(tasks, 100, .pid = 42, .start_ns = 99, .cgroup = 30, .hierarchy = 4,
		    .path = "/lxc/web");
	feed_mkdir(tasks, 110, 1, true, 30, "/docker/" ID_A);
	feed_exec(tasks, 120, .pid = 42, .start_ns = 99, .path = "/x", .cgroup = 30);
	assert_string_equal(find(tasks, 42, 120).container, ID_A);
}

static void test_proc_cgroup_text(void **state)
{
	struct tasks *tasks = *state;

	/* What is no line of /proc/PID/cgroup is passed over. */
	assert_int_equal(feed_seed(tasks, .pid = 10, .start_ns = 5, .cgroup = 30,
				   .cgroups = "nonsense\n:\n::\n1:\n1::\n1:x:y\n\n"
					      "99999999999999999999:a:/lxc/huge\n"
					      "-1:a:/lxc/minus\n"
					      "3:cpu:/lxc/web (deleted)"),
			 0);
	assert_string_equal(find(tasks, 10, 5).container, "web");
	assert_string_equal(find(tasks, 10, 5).cgroup, "/lxc/web");
	assert_int_equal(feed_seed(tasks, .pid = 11, .start_ns = 5, .cgroup = 31, .cgroups = ""),
			 0);
	assert_null(find(tasks, 11, 5).cgroup);
	/* A path, and nobody knows the id. */
	feed_seed(tasks, .pid = 12, .start_ns = 5, .cgroups = "/lxc/noid");
	assert_string_equal(find(tasks, 12, 5).container, "noid");
	/* More hierarchies than there is room for. */
	for (uint32_t hierarchy = 1; hierarchy < 100; hierarchy++)
		feed_attach(tasks, 100, .pid = 12, .start_ns = 5, .cgroup = hierarchy,
			    .hierarchy = hierarchy, .path = "/");
	assert_string_equal(find(tasks, 12, 100).container, "noid");
}

struct resolver {
	unsigned int calls;
	const char *path; /* NULL: unknown */
	int len;	  /* what it returns instead of the length, when not 0 */
};

static int resolve(void *ctx, uint64_t id, uint32_t hierarchy, char *buf, size_t len)
{
	struct resolver *resolver = ctx;

	resolver->calls++;
	assert_true(len >= 256);
	if (!resolver->path)
		return -ENOENT;
	memcpy(buf, resolver->path, strlen(resolver->path));
	return resolver->len ? resolver->len : (int)strlen(resolver->path);
}

static void test_resolver(void **state)
{
	struct tasks *tasks = *state;
	struct resolver resolver = {.path = "/docker/" ID_A};

	tasks__set_cgroup_resolver(tasks, resolve, &resolver);
	feed_fork(tasks, 100, .ppid = 1, .pid = 42, .start_ns = 90, .cgroup = 70);
	assert_string_equal(find(tasks, 42, 100).container, ID_A);
	feed_fork(tasks, 110, .ppid = 42, .pid = 43, .start_ns = 100, .cgroup = 70);
	feed_exec(tasks, 111, .pid = 43, .start_ns = 100, .cgroup = 70);
	assert_int_equal(resolver.calls, 1);

	/* What events tell is not asked for. */
	feed_mkdir(tasks, 120, 0, true, 71, "/lxc/web");
	feed_fork(tasks, 130, .ppid = 42, .pid = 44, .start_ns = 129, .cgroup = 71);
	assert_string_equal(find(tasks, 44, 130).container, "web");
	assert_int_equal(resolver.calls, 1);

	/* Unknown stays unknown without asking again, until an event tells: for all who are in it. */
	resolver.path = NULL;
	feed_fork(tasks, 140, .ppid = 42, .pid = 45, .start_ns = 139, .cgroup = 72);
	feed_fork(tasks, 141, .ppid = 45, .pid = 46, .start_ns = 140, .cgroup = 72);
	assert_null(find(tasks, 45, 141).cgroup);
	assert_int_equal(resolver.calls, 2);
	feed_attach(tasks, 150, .pid = 46, .start_ns = 140, .cgroup = 72, .is_v2 = true,
		    .path = "/lxc/told");
	assert_string_equal(find(tasks, 45, 150).container, "told");

	/* A path that an attach could not read is asked for. */
	resolver.path = "/lxc/asked";
	feed_attach(tasks, 160, .pid = 46, .start_ns = 140, .cgroup = 73, .is_v2 = true);
	assert_string_equal(find(tasks, 46, 160).container, "asked");
	/* A seed's path was read later than its id: the resolver knows better. */
	feed_seed(tasks, .pid = 90, .start_ns = 5, .cgroup = 74, .cgroups = "/lxc/moved-to");
	assert_string_equal(find(tasks, 90, 100).container, "asked");

	/* Lengths that make no sense. */
	resolver.len = 1 << 20;
	feed_attach(tasks, 170, .pid = 46, .start_ns = 140, .cgroup = 75, .is_v2 = true);
	assert_null(find(tasks, 46, 170).cgroup);
}

/* Cgroups without a task are kept, but not without end. */
static void test_idle_cgroups(void **state)
{
	struct tasks *tasks = *state;
	uint64_t bytes = 0;
	char path[64];

	for (uint32_t id = 1; id <= 100000; id++) {
		snprintf(path, sizeof(path), "/lxc/box-%06u", id);
		assert_int_equal(feed_mkdir(tasks, id, 0, true, id, path), 0);
		if (id == 50000)
			bytes = stats_of(tasks).bytes;
	}
	assert_int_equal(stats_of(tasks).bytes, bytes);
	feed_fork(tasks, 200000, .ppid = 1, .pid = 42, .start_ns = 199999, .cgroup = 99500);
	assert_string_equal(find(tasks, 42, 200000).container, "box-099500");
	feed_fork(tasks, 200001, .ppid = 1, .pid = 43, .start_ns = 200000, .cgroup = 5);
	assert_null(find(tasks, 43, 200001).cgroup);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TABLE_TEST(test_cgroup_v2),	   TABLE_TEST(test_cgroup_v1),
		TABLE_TEST(test_cgroup_hybrid),	   TABLE_TEST(test_cgroup_same_id),
		TABLE_TEST(test_proc_cgroup_text), TABLE_TEST(test_resolver),
		TABLE_TEST(test_idle_cgroups),
	};

	return cmocka_run_group_tests_name("cgroups of tasks", tests, NULL, NULL) ? 1 : 0;
}
