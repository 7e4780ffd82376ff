// SPDX-License-Identifier: BSD-2-Clause
/* groups.c: whatever rows are put together by, nothing is lost or counted twice on the way. */
#include "tests/unit/state/usage_cases.h"

#define ID     "0d1fe44cdd4ce0e9c2a7f3b5d8e6a1b4c7f0e3d6b9a2c5f8e1d4b7a0c3f6e9d2"
#define DOCKER "/system.slice/docker-" ID ".scope"
#define CRON   "/system.slice/cron.service"
#define SECOND UINT64_C(1000000000)
#define RAN_NS (10 + 20 + 30 + 40)

static struct usage_groups groups;

static void seed(uint32_t pid, uint32_t tid, uint32_t uid, const char *comm, const char *cgroup)
{
	struct weir_seed one = {.id = {pid, tid}, .start_ns = 1, .uid = uid};

	char exe[32];

	memcpy(one.comm, comm, strlen(comm));
	snprintf(exe, sizeof(exe), "/srv/%s", comm);
	assert_int_equal(tasks__seed(tasks, &one, pid == tid ? exe : NULL, cgroup), 0);
	usage__seed(feed.usage, &one);
	feed.pid[tid] = pid;
}

/* 7 and its thread 8 in a container, 9 in a service, and one that comes and goes. */
static const struct usage_snapshot *some_of_each(void)
{
	usage__begin(feed.usage, 5);
	seed(7, 7, 0, "web", DOCKER);
	seed(7, 8, 0, "worker", DOCKER);
	seed(9, 9, 1000, "cron", CRON);
	forked(5, 20, 20, 5, "short");
	sw(0, 5, 3, 0);
	sw(1, 5, 0, 7);
	sw(1, 15, 7, 8);
	sw(1, 35, 8, 9);
	sw(1, 65, 9, 20);
	exited(100, 20, 20, 5, true);
	feed__switch(&feed, 1, 105, 20, 0, FEED_DIES);
	return take(205);
}

static const struct usage_group *find(bool (*is)(const struct usage_row *row))
{
	const struct usage_group *found = NULL;

	for (size_t i = 0; i < groups.count; i++) {
		if (!is(&groups.at[i].row))
			continue;
		assert_null(found);
		found = &groups.at[i];
	}
	assert_non_null(found);
	return found;
}

static int64_t sum_of_tasks(void)
{
	int64_t sum_ns = 0;

	for (size_t i = 0; i < groups.count; i++)
		if (groups.at[i].row.kind != USAGE_IDLE && groups.at[i].row.kind != USAGE_GAP)
			sum_ns += groups.at[i].row.now.time_ns;
	return sum_ns;
}

static void group(const struct usage_snapshot *snapshot, enum usage_by by)
{
	assert_int_equal(usage__group(&groups, snapshot, by, NULL, NULL), 0);
	assert_int_equal(groups.at[0].row.kind, USAGE_IDLE);
	assert_int_equal(groups.at[0].row.now.time_ns, 300);
	assert_int_equal(groups.at[1].row.kind, USAGE_GAP);
	assert_int_equal(sum_of_tasks(), RAN_NS);
}

static bool is_process_7(const struct usage_row *row)
{
	return row->pid == 7;
}

static bool is_container(const struct usage_row *row)
{
	return row->container && !strcmp(row->container, ID);
}

static bool is_no_container(const struct usage_row *row)
{
	return row->kind == USAGE_THREAD && !row->container;
}

static bool is_service(const struct usage_row *row)
{
	return row->cgroup && !strcmp(row->cgroup, CRON);
}

static bool is_user_1000(const struct usage_row *row)
{
	return row->uid == 1000;
}

static bool is_cpu_1(const struct usage_row *row)
{
	return row->kind == USAGE_THREAD && row->cpu == 1;
}

static bool is_gone(const struct usage_row *row)
{
	return row->kind == USAGE_GONE;
}

static void test_by_each(void **state)
{
	const struct usage_snapshot *snapshot = some_of_each();
	const struct usage_group *found;

	(void)state;
	group(snapshot, USAGE_BY_THREAD);
	group(snapshot, USAGE_BY_PROCESS);
	found = find(is_process_7);
	assert_int_equal(found->row.now.time_ns, 30);
	assert_int_equal(found->row.now.voluntary, 2);
	assert_int_equal(found->threads, 2);
	assert_int_equal(found->processes, 1);
	assert_string_equal(found->row.comm, "web");
	assert_string_equal(found->row.exe, "/srv/web");
	group(snapshot, USAGE_BY_CONTAINER);
	assert_int_equal(find(is_container)->row.now.time_ns, 30);
	assert_int_equal(find(is_no_container)->row.now.time_ns, 70);
	group(snapshot, USAGE_BY_CGROUP);
	assert_int_equal(find(is_service)->row.now.time_ns, 30);
	group(snapshot, USAGE_BY_USER);
	assert_int_equal(find(is_user_1000)->row.now.time_ns, 30);
	group(snapshot, USAGE_BY_CPU);
	assert_int_equal(find(is_cpu_1)->row.now.time_ns, RAN_NS);
	assert_int_equal(find(is_cpu_1)->row.now.voluntary, 4);
}

/* Alive is what one of its threads is. */
static void test_state(void **state)
{
	const struct usage_snapshot *snapshot;

	(void)state;
	usage__begin(feed.usage, 5);
	seed(7, 7, 0, "web", DOCKER);
	seed(7, 8, 0, "worker", DOCKER);
	sw(1, 5, 0, 7);
	exited(10, 7, 7, 1, false);
	feed__switch(&feed, 1, 15, 7, 8, FEED_DIES);
	snapshot = take(20);
	assert_int_equal(usage__group(&groups, snapshot, USAGE_BY_PROCESS, NULL, NULL), 0);
	assert_int_equal(find(is_process_7)->row.state, USAGE_RUNNING);
	assert_int_equal(find(is_process_7)->exited, 1);
}

/* A cgroup keeps the time of its processes that are gone; a process that of its threads. */
static void test_gone_stay_in_their_group(void **state)
{
	const struct usage_snapshot *snapshot;

	(void)state;
	some_of_each();
	exited(210, 7, 8, 1, false);
	exited(211, 9, 9, 1, true);
	take(300);
	take(3 * SECOND);
	snapshot = take(4 * SECOND);
	assert_int_equal(usage__group(&groups, snapshot, USAGE_BY_CGROUP, NULL, NULL), 0);
	assert_int_equal(find(is_service)->row.total.time_ns, 30);
	assert_int_equal(find(is_service)->threads, 0);
	assert_int_equal(usage__group(&groups, snapshot, USAGE_BY_PROCESS, NULL, NULL), 0);
	assert_int_equal(find(is_process_7)->row.total.time_ns, 30);
	assert_int_equal(find(is_process_7)->threads, 1);
	assert_int_equal(find(is_gone)->row.total.time_ns, 70);
	assert_int_equal(usage__group(&groups, snapshot, USAGE_BY_THREAD, NULL, NULL), 0);
	assert_int_equal(find(is_gone)->row.total.time_ns, 90);
}

static bool not_of_7(const void *ctx, const struct usage_row *row)
{
	assert_ptr_equal(ctx, &groups);
	return row->pid != 7;
}

static void test_filter(void **state)
{
	const struct usage_snapshot *snapshot = some_of_each();

	(void)state;
	assert_int_equal(usage__group(&groups, snapshot, USAGE_BY_CONTAINER, not_of_7, &groups), 0);
	assert_int_equal(sum_of_tasks(), 70);
	/* All idle time is there whatever is looked for. */
	assert_int_equal(groups.at[0].row.now.time_ns, 300);
}

/* Each of two threads waited once: their process twice. */
static void test_waits(void **state)
{
	const struct usage_snapshot *snapshot;
	const struct delays *delays;

	(void)state;
	usage__begin(feed.usage, 5);
	seed(7, 7, 0, "web", DOCKER);
	seed(7, 8, 0, "worker", DOCKER);
	sw(1, 5, 0, 7);
	feed__switch(&feed, 1, 10, 7, 8, 0);
	feed__switch(&feed, 1, 30, 8, 7, 0);
	feed__switch(&feed, 1, 1030, 7, 8, 0);
	snapshot = take(2000);
	assert_int_equal(usage__group(&groups, snapshot, USAGE_BY_PROCESS, NULL, NULL), 0);
	delays = find(is_process_7)->row.delays;
	assert_int_equal(delays->count, 2);
	assert_int_equal(delays->total_ns, 20 + 1000);
	assert_int_equal(delays->max_ns, 1000);
	assert_in_range(delays__quantile_ns(delays, 500), 20, 63);
	assert_int_equal(delays__quantile_ns(delays, 990), 1000);
}

static int close_groups(void **state)
{
	usage__free_groups(&groups);
	return teardown(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{"by each", test_by_each, setup, close_groups, NULL},
		{"the liveliest", test_state, setup, close_groups, NULL},
		{"the gone", test_gone_stay_in_their_group, setup, close_groups, NULL},
		{"a filter", test_filter, setup, close_groups, NULL},
		{"waits", test_waits, setup, close_groups, NULL},
	};

	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
