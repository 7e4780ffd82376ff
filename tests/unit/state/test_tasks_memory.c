// SPDX-License-Identifier: BSD-2-Clause
/*
 * The task table and its memory: the cap, who goes first, every allocation failing once. Linked with
 * the heap's functions wrapped, so that what the table says of its bytes is held against the truth.
 */
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "tests/unit/state/events.h"

#define CAP_SMALL (256u << 10)

void *__real_calloc(size_t n, size_t size);
void *__real_malloc(size_t size);
void __real_free(void *ptr);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_malloc(size_t size);
void __wrap_free(void *ptr);

static size_t live_bytes;
static unsigned long allocations;
static unsigned long fail_from, fail_to; /* these allocations are refused, from 1 on; 0: none */

static void *counted(void *ptr)
{
	if (ptr)
		live_bytes += malloc_usable_size(ptr) + sizeof(size_t);
	return ptr;
}

static bool refused(void)
{
	allocations++;
	if (!fail_from || allocations < fail_from || allocations > fail_to)
		return false;
	errno = ENOMEM;
	return true;
}

void *__wrap_calloc(size_t n, size_t size)
{
	return refused() ? NULL : counted(__real_calloc(n, size));
}

void *__wrap_malloc(size_t size)
{
	return refused() ? NULL : counted(__real_malloc(size));
}

void __wrap_free(void *ptr)
{
	if (ptr)
		live_bytes -= malloc_usable_size(ptr) + sizeof(size_t);
	__real_free(ptr);
}

static void assert_within(struct tasks *tasks, size_t cap)
{
	struct tasks_stats stats = stats_of(tasks);

	assert_true(stats.bytes <= cap);
	assert_int_equal(live_bytes, stats.bytes);
}

static bool known(struct tasks *tasks, uint32_t tid, uint64_t stamp_ns)
{
	struct task_view view;

	return tasks__find(tasks, tid, stamp_ns, &view);
}

/* One of many short processes: fork, exec of a program of its own, exit or not. */
static void short_process(struct tasks *tasks, uint32_t pid, uint64_t stamp_ns, bool exits)
{
	char path[64];

	snprintf(path, sizeof(path), "/usr/lib/some/package/bin/program-%llu",
		 (unsigned long long)stamp_ns);
	assert_int_equal(feed_fork(tasks, stamp_ns, .ppid = 1, .pid = pid, .start_ns = stamp_ns - 1,
				   .cgroup = 1),
			 0);
	assert_int_equal(feed_exec(tasks, stamp_ns + 1, .pid = pid, .start_ns = stamp_ns - 1,
				   .path = path, .cgroup = 1),
			 0);
	if (exits)
		assert_int_equal(feed_exit(tasks, stamp_ns + 2, .pid = pid,
					   .start_ns = stamp_ns - 1, .process = true),
				 0);
}

struct w7 {
	size_t cap;
	uint32_t pids; /* how many, before the first comes again */
	uint64_t max_bytes, evicted;
};

/* W7: 100,000 forks, a tenth of the exits missing. Every round is one of them. */
static void w7_round(struct tasks *tasks, struct w7 *w7, uint64_t round)
{
	for (uint64_t i = 0; i < 100000; i++) {
		uint64_t n = round * 100000 + i;
		uint64_t stamp_ns = 1000 + n * 100000; /* ten thousand a second */

		short_process(tasks, (uint32_t)(300 + n % w7->pids), stamp_ns, n % 10 != 3);
		if (i % 100 == 0)
			tasks__retire(tasks, stamp_ns);
		if (i % 1000 == 0)
			assert_within(tasks, w7->cap);
		if (stats_of(tasks).bytes > w7->max_bytes)
			w7->max_bytes = stats_of(tasks).bytes;
	}
	w7->evicted = stats_of(tasks).evicted;
}

/* All entries leave: retired, evicted, or superseded by the next user of the tid and then retired. */
static void test_w7_default_cap(void **state)
{
	struct w7 w7 = {.cap = 64u << 20, .pids = 32468};
	struct tasks *tasks = tasks__new(0);
	uint64_t bytes;

	w7_round(tasks, &w7, 0);
	w7_round(tasks, &w7, 1);
	bytes = w7.max_bytes;
	for (uint64_t round = 2; round < 6; round++)
		w7_round(tasks, &w7, round);
	assert_int_equal(w7.evicted, 0);
	assert_true(w7.max_bytes <= bytes + bytes / 50);
	assert_true(w7.max_bytes < 8u << 20);
	tasks__free(tasks);
	assert_int_equal(live_bytes, 0);
}

/* Pids that never come again: those whose exits are missing can leave by eviction only. */
static void test_w7_small_cap(void **state)
{
	struct w7 w7 = {.cap = 4u << 20, .pids = UINT32_MAX};
	struct tasks *tasks = tasks__new(w7.cap);
	uint64_t entries;

	w7_round(tasks, &w7, 0);
	w7_round(tasks, &w7, 1);
	entries = stats_of(tasks).entries;
	for (uint64_t round = 2; round < 6; round++) {
		uint64_t evicted = w7.evicted;

		w7_round(tasks, &w7, round);
		assert_true(w7.evicted > evicted);
	}
	assert_true(stats_of(tasks).entries <= entries + entries / 10);
	assert_true(w7.max_bytes <= w7.cap);
	/* And all of it is put to use. */
	assert_true(w7.max_bytes > w7.cap - w7.cap / 10);
	tasks__free(tasks);
	assert_int_equal(live_bytes, 0);
}

/* Everything there is to allocate for, at the least cap. */
static void test_least_cap(void **state)
{
	const size_t cap = 64u << 10;
	struct tasks *tasks = tasks__new(cap);
	char path[4096];

	memset(path, 'p', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	for (uint32_t i = 1; i < 3000; i++) {
		snprintf(path, 16, "/%u", i);
		path[strlen(path)] = '-';
		assert_int_equal(
			feed_fork(tasks, i, .ppid = i, .pid = i + 1, .cgroup = i, .start_ns = i),
			0);
		assert_int_equal(feed_exec(tasks, i, .pid = i + 1, .path = path, .start_ns = i), 0);
		assert_int_equal(feed_attach(tasks, i, .pid = i + 1, .start_ns = i, .cgroup = i,
					     .hierarchy = i % 40, .path = path),
				 0);
		assert_true(known(tasks, i + 1, i));
		assert_within(tasks, cap);
	}
	assert_true(stats_of(tasks).evicted > 2900);
	tasks__free(tasks);
	assert_int_equal(live_bytes, 0);
}

/* A record that fits nowhere is refused before anything is changed, and costs no entry of others. */
static void test_larger_than_cap(void **state)
{
	const size_t cap = 64u << 10;
	struct tasks *tasks = tasks__new(cap);
	char *path = test_malloc(60000);

	memset(path, 'x', 59999);
	path[59999] = '\0';
	assert_int_equal(feed_fork(tasks, 10, .ppid = 1, .pid = 2, .start_ns = 5), 0);
	assert_int_equal(feed_mkdir(tasks, 20, 0, true, 5, path), -ENOMEM);
	assert_int_equal(stats_of(tasks).evicted, 0);
	assert_true(known(tasks, 2, 20));
	test_free(path);
	tasks__free(tasks);
	assert_int_equal(live_bytes, 0);
}

static void fill(struct tasks *tasks, uint32_t *pid, uint64_t evictions)
{
	uint64_t goal = stats_of(tasks).evicted + evictions;

	while (stats_of(tasks).evicted < goal)
		assert_int_equal(feed_fork(tasks, 1000, .ppid = 1, .pid = ++*pid, .start_ns = 999),
				 0);
}

/* Exited ones first, those that exited first before the others; runners stay as long as there are any. */
static void test_exited_go_first(void **state)
{
	struct tasks *tasks = tasks__new(CAP_SMALL);
	uint32_t pid = 100;

	for (uint32_t i = 0; i < 100; i++)
		feed_fork(tasks, 100, .ppid = 1, .pid = ++pid, .start_ns = 99);
	/* 150 down to 111, so that the order of their forks is not it. */
	for (uint32_t i = 150; i > 110; i--)
		feed_exit(tasks, 500 - i, .pid = i, .start_ns = 99, .process = true);
	for (uint32_t i = 150; i > 110; i--) {
		assert_true(known(tasks, i, 500));
		fill(tasks, &pid, 1);
		assert_false(known(tasks, i, 500));
	}
	for (uint32_t i = 101; i <= 200; i++)
		assert_int_equal(known(tasks, i, 500), i <= 110 || i > 150);
	tasks__free(tasks);
}

/* Then the least recently used: those that were asked for stay, however old. */
static void test_used_stay(void **state)
{
	struct tasks *tasks = tasks__new(CAP_SMALL);
	uint32_t pid = 100, last;

	fill(tasks, &pid, 1);
	last = pid;
	for (uint32_t i = 110; i < 120; i++)
		assert_true(known(tasks, i, 1000));
	/* As many again as there are, less the ones that were used. */
	fill(tasks, &pid, last - 100 - 50);
	for (uint32_t i = 110; i < 120; i++)
		assert_true(known(tasks, i, 1000));
	for (uint32_t i = 120; i < last - 60; i++)
		assert_false(known(tasks, i, 1000));
	assert_true(known(tasks, pid, 1000));
	assert_within(tasks, CAP_SMALL);
	tasks__free(tasks);
}

/* A leader stays as long as its threads: it holds what they share. */
static void test_leader_goes_last(void **state)
{
	struct tasks *tasks = tasks__new(CAP_SMALL);
	struct task_view view;

	feed_fork(tasks, 10, .ppid = 1, .pid = 2, .start_ns = 9);
	feed_exec(tasks, 20, .pid = 2, .start_ns = 9, .path = "/bin/many", .comm = "sh");
	for (uint32_t tid = 3; tid < 10000; tid++) {
		/* By the one before, so that nothing uses the leader's own entry. */
		feed_fork(tasks, 100 + tid, .ppid = 2, .ptid = tid - 1, .pid = 2, .tid = tid,
			  .start_ns = 99 + tid);
		/* A tenth of the exits. */
		if (tid % 10 == 0)
			feed_exit(tasks, 100 + tid, .pid = 2, .tid = tid, .start_ns = 99 + tid);
		assert_true(tasks__find(tasks, tid, 100 + tid, &view));
		assert_string_equal(view.exe, "/bin/many");
		assert_string_equal(view.name, "sh");
	}
	assert_true(stats_of(tasks).evicted > 5000);
	assert_within(tasks, CAP_SMALL);
	/* All of an ended process can go, whatever stands first. */
	feed_exit(tasks, 20000, .pid = 2, .start_ns = 9, .process = true);
	tasks__retire(tasks, 20000 + LINGER_NS);
	assert_true(stats_of(tasks).entries <= 1);
	tasks__free(tasks);
	assert_int_equal(live_bytes, 0);
}

/* Evicted threads that were running do not keep their process from ending. */
static void test_evicted_threads_do_not_count(void **state)
{
	struct tasks *tasks = tasks__new(CAP_SMALL);
	uint32_t pid = 100;

	feed_fork(tasks, 10, .ppid = 1, .pid = 2, .start_ns = 9);
	for (uint32_t tid = 3; tid < 20; tid++)
		feed_fork(tasks, 20, .ppid = 2, .pid = 2, .tid = tid, .start_ns = 19);
	for (int i = 0; i < 40; i++) {
		assert_true(known(tasks, 2, 1000));
		fill(tasks, &pid, 100);
	}
	assert_false(known(tasks, 3, 1000));
	assert_true(known(tasks, 2, 1000));
	feed_exit(tasks, 2000, .pid = 2, .start_ns = 9);
	tasks__retire(tasks, 2000 + LINGER_NS);
	assert_false(known(tasks, 2, 2000));
	assert_int_equal(stats_of(tasks).retired, 1);
	tasks__free(tasks);
}

static void test_lookup_allocates_nothing(void **state)
{
	struct tasks *tasks = tasks__new(0);
	unsigned long before;

	for (uint32_t i = 1; i < 1000; i++) {
		feed_fork(tasks, i, .ppid = i, .pid = i + 1, .start_ns = i, .cgroup = i);
		feed_attach(tasks, i, .pid = i + 1, .start_ns = i, .cgroup = i, .hierarchy = 3,
			    .path = "/lxc/x");
	}
	before = allocations;
	for (uint32_t i = 0; i < 2000; i++)
		known(tasks, i, 1000);
	assert_int_equal(allocations, before);
	tasks__free(tasks);
}

static int resolve(void *ctx, uint64_t id, uint32_t hierarchy, char *buf, size_t len)
{
	return snprintf(buf, len, "/system.slice/docker-%064llu.scope", (unsigned long long)id);
}

/* A bit of everything that allocates. */
static int story_step(struct tasks *tasks, int step)
{
	char path[64];

	switch (step) {
	case 0:
		return feed_seed(tasks, .pid = 10, .start_ns = 5, .cgroup = 30, .exe = "/bin/init",
				 .cgroups = "9:name=systemd:/docker/x\n2:cpu:/lxc/web\n0::/a/b\n");
	case 1:
		return feed_fork(tasks, 100, .ppid = 11, .ptid = 12, .pid = 20, .start_ns = 99,
				 .cgroup = 31);
	case 2:
		return feed_fork(tasks, 110, .ppid = 10, .pid = 21, .start_ns = 109, .cgroup = 32);
	case 3:
		return feed_exec(tasks, 120, .pid = 21, .start_ns = 109, .path = "/bin/sh",
				 .cgroup = 33);
	case 4:
		return feed_fork(tasks, 130, .ppid = 21, .pid = 21, .tid = 22, .start_ns = 129,
				 .cgroup = 33);
	case 5:
		return feed_mkdir(tasks, 140, 2, false, 40, "/lxc/db/x.service");
	case 6:
		return feed_attach(tasks, 150, .pid = 21, .start_ns = 109, .cgroup = 40,
				   .hierarchy = 2, .path = "/lxc/db/x.service");
	case 7:
		return feed_exec(tasks, 160, .pid = 21, .old_tid = 22, .start_ns = 109,
				 .path = "/bin/new", .cgroup = 33);
	case 8:
		return feed_exit(tasks, 170, .pid = 30, .tid = 31, .start_ns = 20);
	case 9:
		return feed_rename(tasks, 180, 40, 41, 30, "x", 0);
	case 10 ... 109: /* enough for every hash table to grow */
		snprintf(path, sizeof(path), "/bin/%d", step);
		return feed_exec(tasks, 1000, .pid = (uint32_t)step + 100, .start_ns = 900,
				 .path = path, .cgroup = (uint64_t)step);
	default:
		return -ENOENT;
	}
}

static void assert_story(struct tasks *tasks)
{
	struct task_view view;

	assert_true(tasks__find(tasks, 21, 160, &view));
	assert_string_equal(view.exe, "/bin/new");
	assert_string_equal(view.container,
			    "0000000000000000000000000000000000000000000000000000000000000033");
	assert_int_equal(view.start_ns, 109);
	assert_true(tasks__find(tasks, 22, 160, &view));
	assert_true(view.exited);
	assert_true(tasks__find(tasks, 20, 160, &view));
	assert_string_equal(
		view.unit,
		"docker-0000000000000000000000000000000000000000000000000000000000000031.scope");
	assert_int_equal(view.ppid, 11);
	assert_true(tasks__find(tasks, 10, 160, &view));
	assert_string_equal(view.exe, "/bin/init");
	assert_true(tasks__find(tasks, 31, 170, &view));
	assert_true(view.exited);
	assert_true(tasks__find(tasks, 41, 180, &view));
	assert_string_equal(view.comm, "x");
	for (uint32_t step = 10; step < 110; step++) {
		assert_true(tasks__find(tasks, step + 100, 1000, &view));
		assert_non_null(view.exe);
		assert_non_null(view.container);
	}
}

/* Tells the story, again what was refused. Returns how often that was. */
static unsigned int tell_story(struct tasks *tasks)
{
	unsigned int refusals = 0;
	int err;

	for (int step = 0; (err = story_step(tasks, step)) != -ENOENT; step++) {
		while (err) {
			assert_int_equal(err, -ENOMEM);
			assert_true(++refusals < 10);
			err = story_step(tasks, step);
		}
	}
	return refusals;
}

static void test_every_allocation_fails_once(void **state)
{
	unsigned long n, last;
	unsigned int refusals = 0;
	struct tasks *tasks;

	allocations = 0;
	tasks = tasks__new(0);
	tasks__set_cgroup_resolver(tasks, resolve, NULL);
	assert_int_equal(tell_story(tasks), 0);
	assert_story(tasks);
	tasks__free(tasks);
	last = allocations;
	assert_true(last > 500);

	for (n = 1; n <= last; n++) {
		allocations = 0;
		fail_from = fail_to = n;
		errno = 0;
		tasks = tasks__new(0);
		if (!tasks) {
			assert_int_equal(errno, ENOMEM);
			assert_int_equal(live_bytes, 0);
			continue;
		}
		tasks__set_cgroup_resolver(tasks, resolve, NULL);
		refusals += tell_story(tasks);
		assert_story(tasks);
		assert_within(tasks, 64u << 20);
		tasks__retire(tasks, 10 * LINGER_NS);
		tasks__free(tasks);
		assert_int_equal(live_bytes, 0);
	}
	fail_from = 0;
	assert_true(refusals > 400);
}

/* From some point on there is no memory any more: errors, and an orderly end. */
static void test_memory_runs_out(void **state)
{
	for (unsigned long n = 1; n < 120; n++) {
		struct tasks *tasks;

		allocations = 0;
		fail_from = n;
		fail_to = ULONG_MAX;
		tasks = tasks__new(0);
		if (tasks) {
			tasks__set_cgroup_resolver(tasks, resolve, NULL);
			for (int step = 0; step < 50; step++) {
				int err = story_step(tasks, step);

				assert_true(!err || err == -ENOMEM);
			}
			known(tasks, 21, 160);
			tasks__retire(tasks, UINT64_MAX);
		}
		tasks__free(tasks);
		assert_int_equal(live_bytes, 0);
	}
	fail_from = 0;
}

/* Records of any bytes, on few ids and few stamps, so that they meet: no crash, no leak, the cap holds. */
static void test_random_records(void **state)
{
	struct tasks *tasks = tasks__new(64u << 10);
	uint64_t seed = 7, record[24];

	tasks__set_cgroup_resolver(tasks, resolve, NULL);
	for (int i = 0; i < 300000; i++) {
		uint16_t type;
		size_t len;
		int err;

		for (size_t j = 0; j < sizeof(record) / sizeof(record[0]); j++) {
			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
			record[j] = seed >> 33;
			/* Mostly small in both halves, as ids and stamps and lengths. */
			if (record[j] % 32)
				record[j] = (record[j] >> 5 & 7) | (record[j] >> 8 & 7) << 32;
		}
		type = (uint16_t)(seed >> 40) % 8;
		len = (seed >> 44) % (sizeof(record) + 1);
		err = feed_marked(tasks, type, seed >> 60 ? seed >> 33 & 31 : seed, record, len,
				  seed >> 50 & 3);
		assert_true(!err || err == -EBADMSG || err == -ENOMEM);
		known(tasks, seed >> 36 & 7, seed >> 33 & 31);
		if (i % 64 == 0)
			tasks__retire(tasks, seed >> 33 & 31);
		if (i % 64 == 0)
			assert_within(tasks, 64u << 10);
	}
	assert_true(stats_of(tasks).evicted > 0);
	tasks__free(tasks);
	assert_int_equal(live_bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_w7_default_cap),
		cmocka_unit_test(test_w7_small_cap),
		cmocka_unit_test(test_least_cap),
		cmocka_unit_test(test_larger_than_cap),
		cmocka_unit_test(test_exited_go_first),
		cmocka_unit_test(test_used_stay),
		cmocka_unit_test(test_leader_goes_last),
		cmocka_unit_test(test_evicted_threads_do_not_count),
		cmocka_unit_test(test_lookup_allocates_nothing),
		cmocka_unit_test(test_every_allocation_fails_once),
		cmocka_unit_test(test_memory_runs_out),
		cmocka_unit_test(test_random_records),
	};

	return cmocka_run_group_tests_name("memory of tasks", tests, NULL, NULL) ? 1 : 0;
}
