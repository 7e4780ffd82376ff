/* SPDX-License-Identifier: BSD-2-Clause */
/* usage_cases.h - what the tests of usage.h with numbers in them share: a table, fed and asked. */
#ifndef TESTS_USAGE_CASES_H
#define TESTS_USAGE_CASES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "tests/unit/state/usage_feed.h"

static struct feed feed;
static struct tasks *tasks;

static inline int setup(void **state)
{
	memset(&feed, 0, sizeof(feed));
	feed.lean = *state;
	tasks = tasks__new(0);
	feed.usage = usage__new(tasks, 0);
	return feed.usage && tasks ? 0 : 1;
}

static inline int teardown(void **state)
{
	(void)state;
	usage__free(feed.usage);
	tasks__free(tasks);
	return 0;
}

static inline void adds_up(const struct usage_snapshot *snapshot)
{
	assert_non_null(snapshot);
	assert_int_equal(snapshot->cpu_difference_ns, 0);
	assert_int_equal(snapshot->rows_difference_ns, 0);
	assert_int_equal(snapshot->interval_difference_ns, 0);
}

static inline const struct usage_snapshot *take(uint64_t watermark_ns)
{
	const struct usage_snapshot *snapshot = feed__take(&feed, watermark_ns);

	adds_up(snapshot);
	return snapshot;
}

static inline const struct usage_row *thread(const struct usage_snapshot *snapshot, uint32_t tid)
{
	const struct usage_row *row = feed__row(snapshot, USAGE_THREAD, tid, 0);

	assert_non_null(row);
	return row;
}

static inline int64_t time_of(const struct usage_snapshot *snapshot, uint32_t tid)
{
	return thread(snapshot, tid)->now.time_ns;
}

static inline int64_t idle_of(const struct usage_snapshot *snapshot, uint32_t cpu)
{
	return feed__row(snapshot, USAGE_IDLE, cpu, 0)->now.time_ns;
}

static inline int64_t gap_of(const struct usage_snapshot *snapshot, uint32_t cpu)
{
	return feed__row(snapshot, USAGE_GAP, cpu, 0)->now.time_ns;
}

static inline void sw(int cpu, uint64_t stamp_ns, uint32_t prev, uint32_t next)
{
	feed__switch(&feed, cpu, stamp_ns, prev, next, FEED_SLEEPS);
}

static inline void record(int cpu, const struct weir_lean_counted *counted)
{
	feed__record(&feed, cpu, counted, sizeof(*counted));
}

static inline void forked(uint64_t stamp_ns, uint32_t pid, uint32_t tid, uint64_t start_ns,
			  const char *comm)
{
	struct weir_fork fork = {
		.parent = {pid == tid ? 1 : pid, pid == tid ? 1 : pid},
		.child = {pid, tid},
		.child_start_ns = start_ns,
	};
	struct weir_event event = {
		.stamp_ns = stamp_ns,
		.type = WEIR_T_FORK,
		.data = &fork,
		.len = sizeof(fork),
	};

	memcpy(fork.comm, comm, strlen(comm));
	tasks__apply(tasks, &event);
	usage__apply(feed.usage, &event);
	usage__sched(feed.usage, &event);
	feed.start_ns[tid] = start_ns;
	feed.pid[tid] = pid;
}

static inline void exited(uint64_t stamp_ns, uint32_t pid, uint32_t tid, uint64_t start_ns,
			  bool process)
{
	struct weir_exit exit = {
		.id = {pid, tid},
		.start_ns = start_ns,
		.flags = process ? WEIR_EXIT_PROCESS : 0,
		.comm = "gone",
	};
	struct weir_event event = {
		.stamp_ns = stamp_ns,
		.type = WEIR_T_EXIT,
		.data = &exit,
		.len = sizeof(exit),
	};

	tasks__apply(tasks, &event);
	usage__apply(feed.usage, &event);
	usage__sched(feed.usage, &event);
}

#define BOTH(name, f)                                    \
	{"stream: " name, f, setup, teardown, NULL},     \
	{                                                \
		"lean: " name, f, setup, teardown, &feed \
	}
#define LEAN(name, f)                                    \
	{                                                \
		"lean: " name, f, setup, teardown, &feed \
	}
#define STREAM(name, f)                                   \
	{                                                 \
		"stream: " name, f, setup, teardown, NULL \
	}

#endif /* TESTS_USAGE_CASES_H */
