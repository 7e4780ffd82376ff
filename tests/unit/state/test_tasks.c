// SPDX-License-Identifier: BSD-2-Clause
/* The task table, rule by rule: identities, facts in stream order, retirement. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "tests/unit/state/events.h"

static void test_fork_exec_exit(void **state)
{
	struct tasks *tasks = *state;
	struct task_view view;

	assert_int_equal(feed_seed(tasks, .pid = 10, .ppid = 1, .uid = 33, .start_ns = 5,
				   .comm = "shell", .exe = "/bin/sh"),
			 0);
	assert_int_equal(
		feed_fork(tasks, 100, .ppid = 10, .pid = 42, .start_ns = 90, .comm = "shell"), 0);
	view = find(tasks, 42, 100);
	assert_int_equal(view.pid, 42);
	assert_int_equal(view.tid, 42);
	assert_int_equal(view.start_ns, 90);
	assert_int_equal(view.ppid, 10);
	assert_int_equal(view.uid, 33);
	assert_string_equal(view.comm, "shell");
	assert_string_equal(view.name, "shell");
	assert_string_equal(view.exe, "/bin/sh");
	assert_null(view.container);
	assert_false(view.exited);

	assert_int_equal(feed_exec(tasks, 110, .pid = 42, .ppid = 11, .uid = 34, .start_ns = 90,
				   .path = "/usr/bin/ls", .comm = "ls"),
			 0);
	view = find(tasks, 42, 110);
	assert_string_equal(view.exe, "/usr/bin/ls");
	assert_string_equal(view.comm, "ls");
	assert_int_equal(view.ppid, 11);
	assert_int_equal(view.uid, 34);
	assert_string_equal(find(tasks, 10, 110).exe, "/bin/sh");

	assert_int_equal(
		feed_exit(tasks, 120, .pid = 42, .start_ns = 90, .process = true, .comm = "ls"), 0);
	assert_false(find(tasks, 42, 119).exited);
	assert_true(find(tasks, 42, 120).exited);
	assert_string_equal(find(tasks, 42, 120).exe, "/usr/bin/ls");
	assert_nobody(tasks, 42, 89);
	assert_nobody(tasks, 43, 100);
}

static void test_threads(void **state)
{
	struct tasks *tasks = *state;

	feed_seed(tasks, .pid = 10, .start_ns = 5, .comm = "main", .exe = "/bin/a");
	feed_fork(tasks, 100, .ppid = 10, .pid = 10, .tid = 11, .start_ns = 90, .comm = "main");
	feed_rename(tasks, 110, 10, 11, 90, "worker", 0);
	assert_string_equal(find(tasks, 11, 110).comm, "worker");
	assert_string_equal(find(tasks, 11, 110).name, "main");
	assert_string_equal(find(tasks, 10, 110).comm, "main");
	assert_int_equal(find(tasks, 11, 110).pid, 10);
	assert_string_equal(find(tasks, 11, 110).exe, "/bin/a");

	/* A child of the thread has the process for its parent. */
	feed_fork(tasks, 120, .ppid = 10, .ptid = 11, .pid = 12, .start_ns = 115, .comm = "worker");
	assert_int_equal(find(tasks, 12, 120).ppid, 10);
	assert_string_equal(find(tasks, 12, 120).exe, "/bin/a");
	assert_string_equal(find(tasks, 12, 120).name, "worker");
	assert_int_equal(stats_of(tasks).entries, 3);
}

/* The largest name, and one whose NUL is missing. */
static void test_comm_is_cut(void **state)
{
	struct tasks *tasks = *state;

	feed_seed(tasks, .pid = 10, .start_ns = 5, .comm = "0123456789abcdefXYZ");
	assert_string_equal(find(tasks, 10, 5).comm, "0123456789abcde");
	feed_rename(tasks, 6, 10, 10, 5, "", 0);
	assert_string_equal(find(tasks, 10, 6).comm, "");
}

/* W5: 149 is the last event, 150 the exit; the entry goes the linger after, once. */
static void test_w5_retired_once(void **state)
{
	struct tasks *tasks = *state;

	feed_fork(tasks, 100, .ppid = 1, .pid = 42, .start_ns = 90);
	feed_exit(tasks, 150, .pid = 42, .start_ns = 90, .process = true);
	assert_int_equal(stats_of(tasks).entries, 2);
	tasks__retire(tasks, 149);
	tasks__retire(tasks, 150);
	tasks__retire(tasks, 150 + LINGER_NS - 1);
	assert_int_equal(stats_of(tasks).retired, 0);
	assert_int_equal(find(tasks, 42, 150 + LINGER_NS).start_ns, 90);
	tasks__retire(tasks, 150 + LINGER_NS);
	assert_int_equal(stats_of(tasks).retired, 1);
	assert_int_equal(stats_of(tasks).entries, 1);
	assert_nobody(tasks, 42, 149);

	/* A second exit is ignored; the watermark does not go back. */
	tasks__retire(tasks, 10);
	feed_exit(tasks, 150, .pid = 42, .start_ns = 90, .process = true, .mark = WEIR_MARK_LATE);
	assert_int_equal(stats_of(tasks).entries, 1);
	tasks__retire(tasks, 150 + 3 * LINGER_NS);
	assert_int_equal(stats_of(tasks).retired, 1);
	assert_int_equal(stats_of(tasks).entries, 1);
}

/* W5: a second exit before the entry has gone, and the same pid born right after. */
static void test_w5_reuse_after_exit(void **state)
{
	struct tasks *tasks = *state;

	feed_fork(tasks, 100, .ppid = 1, .pid = 42, .start_ns = 90, .comm = "old");
	feed_exit(tasks, 150, .pid = 42, .start_ns = 90, .process = true, .comm = "old");
	feed_fork(tasks, 152, .ppid = 1, .pid = 42, .start_ns = 151, .comm = "new");
	feed_exit(tasks, 160, .pid = 42, .start_ns = 90, .process = true, .comm = "old");
	assert_string_equal(find(tasks, 42, 150).comm, "old");
	assert_true(find(tasks, 42, 150).exited);
	assert_string_equal(find(tasks, 42, 151).comm, "new");
	assert_false(find(tasks, 42, 170).exited);
	tasks__retire(tasks, 150 + LINGER_NS);
	assert_int_equal(stats_of(tasks).retired, 1);
	assert_nobody(tasks, 42, 150);
	assert_string_equal(find(tasks, 42, 151).comm, "new");
}

/* W1: idle for ever after; the watermark alone retires. Kept while the linger holds. */
static void test_w1_idle(void **state)
{
	struct tasks *tasks = *state;
	uint64_t w;

	feed_fork(tasks, 100, .ppid = 1, .pid = 42, .start_ns = 90);
	feed_exit(tasks, 150, .pid = 42, .start_ns = 90, .process = true);
	for (w = 0; w < LINGER_NS; w += LINGER_NS / 10) {
		tasks__retire(tasks, w);
		assert_int_equal(stats_of(tasks).retired, 0);
	}
	tasks__retire(tasks, 2 * LINGER_NS);
	assert_int_equal(stats_of(tasks).retired, 1);
}

/* W6: fork 42, its exit lost; fork 42 again; the old exit arrives late. */
static void test_w6_late_exit_of_old(void **state)
{
	struct tasks *tasks = *state;

	feed_fork(tasks, 100, .ppid = 1, .pid = 42, .start_ns = 90, .comm = "first");
	feed_exec(tasks, 105, .pid = 42, .start_ns = 90, .path = "/bin/first", .comm = "first");
	feed_fork(tasks, 200, .ppid = 1, .pid = 42, .start_ns = 190, .comm = "second");
	feed_exec(tasks, 210, .pid = 42, .start_ns = 190, .path = "/bin/second", .comm = "second");
	feed_exit(tasks, 150, .pid = 42, .start_ns = 90, .process = true, .comm = "first",
		  .mark = WEIR_MARK_LATE);
	assert_string_equal(find(tasks, 42, 220).comm, "second");
	assert_string_equal(find(tasks, 42, 220).exe, "/bin/second");
	assert_false(find(tasks, 42, 220).exited);
	/* The old one stays findable by its stamps, until it is retired. */
	assert_string_equal(find(tasks, 42, 150).exe, "/bin/first");
	assert_int_equal(find(tasks, 42, 189).start_ns, 90);
	tasks__retire(tasks, 190 + LINGER_NS);
	assert_nobody(tasks, 42, 189);
	assert_string_equal(find(tasks, 42, 220).comm, "second");
	assert_int_equal(stats_of(tasks).retired, 1);
}

/* A leader's pid is free only when all its threads are gone, whatever of their exits was seen. */
static void test_reused_leader_ends_threads(void **state)
{
	struct tasks *tasks = *state;

	feed_fork(tasks, 100, .ppid = 1, .pid = 42, .start_ns = 90);
	feed_fork(tasks, 110, .ppid = 42, .pid = 42, .tid = 43, .start_ns = 109);
	feed_fork(tasks, 200, .ppid = 1, .pid = 42, .start_ns = 190);
	assert_true(find(tasks, 43, 200).exited);
	tasks__retire(tasks, 190 + LINGER_NS);
	assert_nobody(tasks, 43, 200);
	assert_int_equal(stats_of(tasks).retired, 2);
	assert_int_equal(find(tasks, 42, 200).start_ns, 190);
}

/* The leader exits first: a zombie, which goes with the last thread and not before. */
static void test_leader_exits_first(void **state)
{
	struct tasks *tasks = *state;

	feed_fork(tasks, 100, .ppid = 1, .pid = 42, .start_ns = 90, .comm = "main");
	feed_exec(tasks, 101, .pid = 42, .start_ns = 90, .path = "/bin/m", .comm = "main");
	feed_fork(tasks, 110, .ppid = 42, .pid = 42, .tid = 43, .start_ns = 109);
	feed_exit(tasks, 120, .pid = 42, .start_ns = 90, .comm = "main");
	tasks__retire(tasks, 10 * LINGER_NS);
	assert_int_equal(stats_of(tasks).retired, 0);
	assert_true(find(tasks, 42, 10 * LINGER_NS).exited);
	assert_string_equal(find(tasks, 43, 10 * LINGER_NS).exe, "/bin/m");
	assert_string_equal(find(tasks, 43, 10 * LINGER_NS).name, "main");

	feed_exit(tasks, 20 * LINGER_NS, .pid = 42, .tid = 43, .start_ns = 109, .process = true);
	tasks__retire(tasks, 21 * LINGER_NS - 1);
	assert_int_equal(stats_of(tasks).retired, 0);
	tasks__retire(tasks, 21 * LINGER_NS);
	assert_int_equal(stats_of(tasks).retired, 2);
	assert_nobody(tasks, 42, 120);
}

/* The shared part goes with the last thread, also where only threads' exits are told. */
static void test_process_lives_as_long_as_a_thread(void **state)
{
	struct tasks *tasks = *state;

	feed_fork(tasks, 100, .ppid = 1, .pid = 42, .start_ns = 90);
	feed_exec(tasks, 101, .pid = 42, .start_ns = 90, .path = "/bin/m", .comm = "main");
	for (uint32_t tid = 43; tid < 46; tid++)
		feed_fork(tasks, 110, .ppid = 42, .pid = 42, .tid = tid, .start_ns = tid);
	for (uint32_t tid = 43; tid < 46; tid++) {
		feed_exit(tasks, 200 + tid, .pid = 42, .tid = tid, .start_ns = tid);
		assert_string_equal(find(tasks, tid, 300).exe, "/bin/m");
	}
	tasks__retire(tasks, 2 * LINGER_NS);
	assert_int_equal(stats_of(tasks).retired, 3);
	assert_false(find(tasks, 42, 2 * LINGER_NS).exited);
	feed_exit(tasks, 3 * LINGER_NS, .pid = 42, .start_ns = 90);
	tasks__retire(tasks, 4 * LINGER_NS);
	assert_int_equal(stats_of(tasks).retired, 4);
}

/* EXIT_PROCESS ends threads whose own exits were lost. */
static void test_process_exit_ends_all(void **state)
{
	struct tasks *tasks = *state;

	feed_fork(tasks, 100, .ppid = 1, .pid = 42, .start_ns = 90);
	feed_fork(tasks, 110, .ppid = 42, .pid = 42, .tid = 43, .start_ns = 109);
	feed_fork(tasks, 111, .ppid = 42, .pid = 42, .tid = 44, .start_ns = 110);
	feed_exit(tasks, 200, .pid = 42, .tid = 44, .start_ns = 110, .process = true);
	assert_true(find(tasks, 42, 200).exited);
	assert_true(find(tasks, 43, 200).exited);
	tasks__retire(tasks, 200 + LINGER_NS);
	assert_int_equal(stats_of(tasks).retired, 3);
}

/* A17: a thread that is not the leader execs. Events as the kernel sends them. */
static void test_exec_by_thread(void **state)
{
	struct tasks *tasks = *state;
	struct task_view view;

	feed_fork(tasks, 100, .ppid = 1, .pid = 42, .start_ns = 90, .comm = "main");
	feed_fork(tasks, 110, .ppid = 42, .pid = 42, .tid = 43, .start_ns = 109, .comm = "main");
	feed_fork(tasks, 111, .ppid = 42, .pid = 42, .tid = 44, .start_ns = 110, .comm = "main");
	/* The others are killed, the leader among them; then the exec. */
	feed_exit(tasks, 120, .pid = 42, .start_ns = 90, .comm = "main");
	feed_exit(tasks, 121, .pid = 42, .tid = 44, .start_ns = 110, .comm = "main");
	feed_exec(tasks, 130, .pid = 42, .old_tid = 43, .start_ns = 90, .path = "/bin/new",
		  .comm = "new");
	view = find(tasks, 42, 130);
	assert_false(view.exited);
	assert_int_equal(view.start_ns, 90);
	assert_string_equal(view.exe, "/bin/new");
	assert_string_equal(view.comm, "new");
	assert_true(find(tasks, 43, 130).exited);
	assert_true(find(tasks, 44, 130).exited);
	tasks__retire(tasks, 130 + LINGER_NS);
	assert_int_equal(stats_of(tasks).retired, 2);
	assert_nobody(tasks, 43, 130);
	assert_string_equal(find(tasks, 42, 130 + LINGER_NS).exe, "/bin/new");

	feed_exit(tasks, 2 * LINGER_NS, .pid = 42, .start_ns = 90, .process = true);
	tasks__retire(tasks, 3 * LINGER_NS);
	assert_int_equal(stats_of(tasks).retired, 3);
}

/* The same, all exits lost; and with the leader's exit, told after the exec, which is not its end. */
static void test_exec_by_thread_losses(void **state)
{
	struct tasks *tasks = *state;

	feed_fork(tasks, 100, .ppid = 1, .pid = 42, .start_ns = 90);
	feed_fork(tasks, 110, .ppid = 42, .pid = 42, .tid = 43, .start_ns = 109);
	feed_fork(tasks, 111, .ppid = 42, .pid = 42, .tid = 44, .start_ns = 110);
	feed_exec(tasks, 130, .pid = 42, .old_tid = 43, .start_ns = 90, .path = "/bin/new");
	assert_true(find(tasks, 43, 130).exited);
	assert_true(find(tasks, 44, 130).exited);
	feed_exit(tasks, 120, .pid = 42, .start_ns = 90, .mark = WEIR_MARK_LATE);
	assert_false(find(tasks, 42, 140).exited);
	assert_string_equal(find(tasks, 42, 140).comm, "prog");
	tasks__retire(tasks, 130 + LINGER_NS);
	assert_int_equal(stats_of(tasks).retired, 2);
	assert_string_equal(find(tasks, 42, 130 + LINGER_NS).exe, "/bin/new");
}

/* The fork of the thread that execs was lost: when its leader exited, the process seemed to end. */
static void test_exec_by_unknown_thread(void **state)
{
	struct tasks *tasks = *state;

	feed_fork(tasks, 100, .ppid = 1, .pid = 42, .start_ns = 90);
	feed_exit(tasks, 120, .pid = 42, .start_ns = 90);
	feed_exec(tasks, 130, .pid = 42, .old_tid = 43, .start_ns = 90, .path = "/bin/new");
	assert_false(find(tasks, 42, 130).exited);
	tasks__retire(tasks, 2 * LINGER_NS);
	assert_int_equal(stats_of(tasks).retired, 0);
	assert_string_equal(find(tasks, 42, 2 * LINGER_NS).exe, "/bin/new");
	assert_nobody(tasks, 43, 130);
}

/* The exec of the thread was lost: then the leader, exited, forks. */
static void test_exited_leader_acts(void **state)
{
	struct tasks *tasks = *state;

	feed_fork(tasks, 100, .ppid = 1, .pid = 42, .start_ns = 90);
	feed_fork(tasks, 110, .ppid = 42, .pid = 42, .tid = 43, .start_ns = 109);
	feed_exit(tasks, 120, .pid = 42, .start_ns = 90);
	feed_fork(tasks, 140, .ppid = 42, .pid = 50, .start_ns = 139, .comm = "new");
	assert_false(find(tasks, 42, 140).exited);
	assert_int_equal(find(tasks, 42, 140).start_ns, 90);
	assert_string_equal(find(tasks, 42, 140).comm, "new");
}

/* An event about a task whose fork was lost. */
static void test_unknown_tasks(void **state)
{
	struct tasks *tasks = *state;
	struct task_view view;

	feed_fork(tasks, 100, .ppid = 7, .pid = 42, .start_ns = 90, .comm = "dad");
	view = find(tasks, 7, 100);
	assert_string_equal(view.comm, "dad");
	assert_int_equal(view.start_ns, 0);
	assert_null(view.exe);
	assert_null(view.cgroup);
	assert_int_equal(view.ppid, 0);
	assert_int_equal(view.uid, TASKS_UID_UNKNOWN);

	feed_exec(tasks, 110, .pid = 60, .ppid = 3, .uid = 5, .start_ns = 50, .path = "/bin/x",
		  .comm = "x");
	view = find(tasks, 60, 110);
	assert_int_equal(view.start_ns, 50);
	assert_int_equal(view.ppid, 3);
	assert_int_equal(view.uid, 5);
	assert_string_equal(view.exe, "/bin/x");

	feed_rename(tasks, 120, 70, 71, 60, "thread", 0);
	view = find(tasks, 71, 120);
	assert_int_equal(view.pid, 70);
	assert_string_equal(view.comm, "thread");
	assert_null(view.name);
	assert_int_equal(find(tasks, 70, 120).start_ns, 0);
	assert_null(find(tasks, 70, 120).comm);

	feed_exit(tasks, 130, .pid = 80, .start_ns = 70, .process = true, .ppid = 9,
		  .comm = "gone");
	view = find(tasks, 80, 131);
	assert_string_equal(view.comm, "gone");
	assert_int_equal(view.ppid, 9);
	assert_true(view.exited);
}

/* A stand-in takes the start time that is told later, unless it cannot have been that one. */
static void test_start_told_later(void **state)
{
	struct tasks *tasks = *state;

	feed_fork(tasks, 100, .ppid = 7, .pid = 42, .start_ns = 90, .comm = "dad");
	feed_rename(tasks, 110, 7, 7, 20, "daddy", 0);
	assert_int_equal(stats_of(tasks).entries, 2);
	assert_int_equal(find(tasks, 7, 110).start_ns, 20);
	assert_string_equal(find(tasks, 7, 110).comm, "daddy");
	assert_int_equal(find(tasks, 42, 110).ppid, 7);

	feed_fork(tasks, 120, .ppid = 8, .pid = 43, .start_ns = 119, .comm = "mum");
	feed_rename(tasks, 200, 8, 8, 150, "other", 0);
	assert_int_equal(stats_of(tasks).entries, 5);
	assert_int_equal(find(tasks, 8, 149).start_ns, 0);
	assert_string_equal(find(tasks, 8, 149).comm, "mum");
	assert_string_equal(find(tasks, 8, 200).comm, "other");

	/* A start from before an older user of the tid is not the stand-in's either. */
	feed_fork(tasks, 210, .ppid = 1, .pid = 9, .start_ns = 205);
	feed_exit(tasks, 220, .pid = 9, .start_ns = 205, .process = true);
	feed_fork(tasks, 230, .ppid = 9, .pid = 44, .start_ns = 229, .comm = "third");
	feed_rename(tasks, 204, 9, 9, 203, "first", WEIR_MARK_LATE);
	assert_int_equal(find(tasks, 9, 230).start_ns, 0);
	assert_string_equal(find(tasks, 9, 230).comm, "third");
	assert_int_equal(find(tasks, 9, 229).start_ns, 205);
	assert_int_equal(find(tasks, 9, 204).start_ns, 203);
	assert_true(find(tasks, 9, 205).start_ns == 205);
}

/* A thread's seed comes before its leader's: they belong together all the same. */
static void test_threads_before_leader(void **state)
{
	struct tasks *tasks = *state;

	feed_seed(tasks, .pid = 20, .tid = 21, .start_ns = 15, .comm = "t");
	feed_seed(tasks, .pid = 20, .start_ns = 10, .comm = "l", .exe = "/bin/l");
	assert_int_equal(stats_of(tasks).entries, 2);
	assert_string_equal(find(tasks, 21, 15).exe, "/bin/l");
	assert_string_equal(find(tasks, 21, 15).name, "l");
	assert_int_equal(find(tasks, 20, 15).start_ns, 10);
}

/* The parent of a fork has no start time: what has exited, or was another process's, is not it. */
static void test_parent_is_running(void **state)
{
	struct tasks *tasks = *state;

	feed_seed(tasks, .pid = 7, .start_ns = 10, .comm = "old", .exe = "/bin/old");
	feed_exit(tasks, 100, .pid = 7, .start_ns = 10, .process = true);
	feed_fork(tasks, 200, .ppid = 7, .pid = 42, .start_ns = 190, .comm = "new");
	assert_null(find(tasks, 42, 200).exe);
	assert_int_equal(find(tasks, 7, 200).start_ns, 0);
	assert_false(find(tasks, 7, 200).exited);
	assert_string_equal(find(tasks, 7, 199).exe, "/bin/old");

	/* Tid 8 was a process and is a thread of 7 now. */
	feed_seed(tasks, .pid = 8, .start_ns = 11, .comm = "eight", .exe = "/bin/eight");
	feed_fork(tasks, 210, .ppid = 7, .ptid = 8, .pid = 43, .start_ns = 209, .comm = "new");
	assert_int_equal(find(tasks, 8, 210).pid, 7);
	assert_int_equal(find(tasks, 43, 210).ppid, 7);
	assert_null(find(tasks, 43, 210).exe);
	assert_int_equal(find(tasks, 8, 209).pid, 8);
}

/* A fact is replaced only by one that is not older. */
static void test_late_facts(void **state)
{
	struct tasks *tasks = *state;

	feed_fork(tasks, 100, .ppid = 1, .pid = 42, .start_ns = 90);
	feed_exec(tasks, 200, .pid = 42, .ppid = 1, .uid = 2, .start_ns = 90, .path = "/bin/b",
		  .comm = "b");
	feed_exec(tasks, 150, .pid = 42, .ppid = 9, .uid = 9, .start_ns = 90, .path = "/bin/a",
		  .comm = "a", .mark = WEIR_MARK_LATE);
	assert_string_equal(find(tasks, 42, 210).exe, "/bin/b");
	assert_string_equal(find(tasks, 42, 210).comm, "b");
	assert_int_equal(find(tasks, 42, 210).ppid, 1);
	assert_int_equal(find(tasks, 42, 210).uid, 2);
	feed_rename(tasks, 190, 42, 42, 90, "c", WEIR_MARK_LATE);
	assert_string_equal(find(tasks, 42, 210).comm, "b");
	/* Newer than the fact, and late all the same. */
	feed_rename(tasks, 205, 42, 42, 90, "d", WEIR_MARK_LATE);
	assert_string_equal(find(tasks, 42, 210).comm, "d");

	/* An exit that comes after a later exec of its own process does not stop it twice. */
	feed_exit(tasks, 300, .pid = 42, .start_ns = 90, .process = true);
	feed_exec(tasks, 250, .pid = 42, .ppid = 1, .start_ns = 90, .path = "/bin/e",
		  .mark = WEIR_MARK_LATE);
	assert_string_equal(find(tasks, 42, 300).exe, "/bin/e");
	assert_true(find(tasks, 42, 300).exited);
	tasks__retire(tasks, 300 + LINGER_NS);
	assert_nobody(tasks, 42, 300);
}

/* A late exec ends the threads that it killed, not those that were born since. */
static void test_late_exec_spares_the_young(void **state)
{
	struct tasks *tasks = *state;

	feed_fork(tasks, 100, .ppid = 1, .pid = 42, .start_ns = 90);
	feed_fork(tasks, 110, .ppid = 42, .pid = 42, .tid = 43, .start_ns = 109);
	feed_fork(tasks, 200, .ppid = 42, .pid = 42, .tid = 44, .start_ns = 199);
	feed_exec(tasks, 150, .pid = 42, .start_ns = 90, .path = "/bin/x", .mark = WEIR_MARK_LATE);
	assert_true(find(tasks, 43, 210).exited);
	assert_false(find(tasks, 44, 210).exited);
	assert_string_equal(find(tasks, 44, 210).exe, "/bin/x");
}

/* A late exec of a former user of the tid does not bring it back. */
static void test_late_exec_of_old(void **state)
{
	struct tasks *tasks = *state;

	feed_fork(tasks, 100, .ppid = 1, .pid = 42, .start_ns = 90);
	feed_fork(tasks, 110, .ppid = 42, .pid = 42, .tid = 43, .start_ns = 109);
	feed_exit(tasks, 120, .pid = 42, .start_ns = 90);
	feed_fork(tasks, 200, .ppid = 1, .pid = 42, .start_ns = 190, .comm = "new");
	feed_exec(tasks, 130, .pid = 42, .old_tid = 43, .start_ns = 90, .path = "/bin/x",
		  .mark = WEIR_MARK_LATE);
	tasks__retire(tasks, 200 + LINGER_NS);
	assert_int_equal(stats_of(tasks).retired, 2);
	assert_string_equal(find(tasks, 42, 200).comm, "new");
}

/* Forks that come late: inherits what was true then, and goes where it belongs in time. */
static void test_late_fork(void **state)
{
	struct tasks *tasks = *state;

	feed_seed(tasks, .pid = 10, .start_ns = 5, .comm = "shell", .exe = "/bin/sh");
	feed_exec(tasks, 200, .pid = 10, .start_ns = 5, .path = "/bin/later", .comm = "later");
	feed_fork(tasks, 150, .ppid = 10, .pid = 42, .start_ns = 149, .comm = "shell",
		  .mark = WEIR_MARK_LATE);
	assert_null(find(tasks, 42, 210).exe);
	assert_string_equal(find(tasks, 42, 210).comm, "shell");
	assert_string_equal(find(tasks, 10, 210).comm, "later");

	/* Its exec was first. */
	feed_exec(tasks, 300, .pid = 43, .start_ns = 250, .path = "/bin/x", .comm = "x");
	feed_fork(tasks, 251, .ppid = 10, .pid = 43, .start_ns = 250, .comm = "later",
		  .mark = WEIR_MARK_LATE);
	assert_string_equal(find(tasks, 43, 300).exe, "/bin/x");
	assert_string_equal(find(tasks, 43, 300).comm, "x");

	/* An older user of a tid, told after the newer one: it has ended. */
	feed_fork(tasks, 400, .ppid = 10, .pid = 44, .start_ns = 390, .comm = "newer");
	feed_fork(tasks, 320, .ppid = 10, .pid = 44, .start_ns = 310, .comm = "older",
		  .mark = WEIR_MARK_LATE);
	assert_string_equal(find(tasks, 44, 400).comm, "newer");
	assert_false(find(tasks, 44, 400).exited);
	assert_string_equal(find(tasks, 44, 389).comm, "older");
	tasks__retire(tasks, 390 + LINGER_NS);
	assert_nobody(tasks, 44, 389);
	assert_string_equal(find(tasks, 44, 400).comm, "newer");
}

/* A late thread of a process that has ended does not keep it. */
static void test_late_thread_of_ended(void **state)
{
	struct tasks *tasks = *state;

	feed_fork(tasks, 100, .ppid = 1, .pid = 42, .start_ns = 90);
	feed_exec(tasks, 101, .pid = 42, .start_ns = 90, .path = "/bin/m");
	feed_exit(tasks, 200, .pid = 42, .start_ns = 90, .process = true);
	feed_fork(tasks, 150, .ppid = 42, .pid = 42, .tid = 43, .start_ns = 149,
		  .mark = WEIR_MARK_LATE);
	assert_true(find(tasks, 43, 201).exited);
	assert_string_equal(find(tasks, 43, 160).exe, "/bin/m");
	/* Two threads end side by side: the flag is on the first, the fork of the second was lost. */
	feed_exit(tasks, 201, .pid = 42, .tid = 44, .start_ns = 160);
	assert_string_equal(find(tasks, 44, 201).exe, "/bin/m");
	assert_int_equal(find(tasks, 42, 201).start_ns, 90);
	tasks__retire(tasks, 201 + LINGER_NS);
	assert_int_equal(stats_of(tasks).retired, 3);
}

/* Beyond the clock: the fact counts from now, and does not resist what comes. */
static void test_ahead(void **state)
{
	struct tasks *tasks = *state;

	feed_fork(tasks, 100, .ppid = 1, .pid = 42, .start_ns = 90);
	feed_rename(tasks, UINT64_MAX, 42, 42, 90, "future", WEIR_MARK_AHEAD);
	assert_string_equal(find(tasks, 42, 100).comm, "future");
	feed_rename(tasks, 110, 42, 42, 90, "present", 0);
	assert_string_equal(find(tasks, 42, 110).comm, "present");
	/* Now is where the watermark is, if nothing has happened since. */
	tasks__retire(tasks, 500);
	feed_exit(tasks, UINT64_MAX - 5, .pid = 42, .start_ns = 90, .process = true,
		  .mark = WEIR_MARK_AHEAD);
	assert_true(find(tasks, 42, 500 + LINGER_NS).exited);
	tasks__retire(tasks, 500 + LINGER_NS);
	assert_nobody(tasks, 42, 500);
}

/* O15: the extreme stamps wrap nowhere. */
static void test_extreme_stamps(void **state)
{
	struct tasks *tasks = *state;

	feed_fork(tasks, 0, .ppid = 1, .pid = 40, .start_ns = 0);
	assert_int_equal(find(tasks, 40, 0).pid, 40);
	/* A start after the event that tells it. */
	feed_fork(tasks, 100, .ppid = 1, .pid = 39, .start_ns = 200);
	assert_int_equal(find(tasks, 39, 100).start_ns, 200);
	feed_fork(tasks, UINT64_MAX, .ppid = 1, .pid = 41, .start_ns = UINT64_MAX);
	feed_exit(tasks, UINT64_MAX, .pid = 41, .start_ns = UINT64_MAX, .process = true);
	assert_int_equal(find(tasks, 41, UINT64_MAX).pid, 41);
	assert_true(find(tasks, 41, UINT64_MAX).exited);
	tasks__retire(tasks, UINT64_MAX - 1);
	assert_int_equal(find(tasks, 41, UINT64_MAX).pid, 41);
	tasks__retire(tasks, UINT64_MAX);
	assert_nobody(tasks, 41, UINT64_MAX);
	assert_int_equal(find(tasks, 40, UINT64_MAX).pid, 40);
}

/* A fork that makes its own parent, or a thread with its own leader's tid: nonsense, no crash. */
static void test_nonsense_ids(void **state)
{
	struct tasks *tasks = *state;

	feed_fork(tasks, 100, .ppid = 42, .pid = 42, .start_ns = 90);
	feed_fork(tasks, 110, .ppid = 42, .pid = 42, .start_ns = 105);
	feed_fork(tasks, 111, .ppid = 42, .pid = 42, .tid = 42, .start_ns = 105);
	feed_fork(tasks, 120, .ppid = 42, .pid = 43, .tid = 44, .start_ns = 119);
	feed_fork(tasks, 120, .ppid = 43, .ptid = 44, .pid = 43, .tid = 44, .start_ns = 119);
	feed_fork(tasks, 130, .ppid = 0, .pid = 0, .start_ns = 0);
	feed_exit(tasks, 140, .pid = 43, .tid = 44, .start_ns = 119, .process = true);
	feed_exec(tasks, 150, .pid = 44, .old_tid = 43, .start_ns = 119, .path = "/x");
	assert_int_equal(find(tasks, 44, 155).pid, 44);
	feed_exit(tasks, 160, .pid = 42, .tid = 44, .start_ns = 119);
	assert_int_equal(find(tasks, 42, 200).start_ns, 105);
	tasks__retire(tasks, 10 * LINGER_NS);
	assert_int_equal(find(tasks, 42, 200).start_ns, 105);
	assert_nobody(tasks, 44, 155);
}

static void test_broken_records(void **state)
{
	static const uint16_t types[] = {WEIR_T_FORK,	WEIR_T_EXEC,	     WEIR_T_EXIT,
					 WEIR_T_RENAME, WEIR_T_CGROUP_MKDIR, WEIR_T_CGROUP_ATTACH};
	static const size_t sizes[] = {
		sizeof(struct weir_fork),	  sizeof(struct weir_exec),
		sizeof(struct weir_exit),	  sizeof(struct weir_rename),
		sizeof(struct weir_cgroup_mkdir), sizeof(struct weir_cgroup_attach)};
	struct tasks *tasks = *state;
	uint64_t bytes = stats_of(tasks).bytes;
	struct weir_exec exec = {.path_len = 1, .argv_len = 0};
	struct weir_cgroup_mkdir mkdir = {.cgroup = 5, .path_len = UINT16_MAX};
	struct weir_cgroup_attach attach = {.cgroup = 5, .path_len = 1};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		for (size_t len = 0; len < sizes[i]; len++) {
			/* On the heap, so that a sanitizer sees a read behind it. */
			void *data = test_calloc(1, len ? len : 1);

			assert_int_equal(feed(tasks, types[i], 100, data, len), -EBADMSG);
			test_free(data);
		}
	}
	assert_int_equal(feed(tasks, WEIR_T_EXEC, 100, &exec, sizeof(exec)), -EBADMSG);
	exec = (struct weir_exec){.path_len = UINT16_MAX, .argv_len = UINT16_MAX};
	assert_int_equal(feed(tasks, WEIR_T_EXEC, 100, &exec, sizeof(exec)), -EBADMSG);
	assert_int_equal(feed(tasks, WEIR_T_CGROUP_MKDIR, 100, &mkdir, sizeof(mkdir)), -EBADMSG);
	mkdir = (struct weir_cgroup_mkdir){.cgroup = 0};
	assert_int_equal(feed(tasks, WEIR_T_CGROUP_MKDIR, 100, &mkdir, sizeof(mkdir)), -EBADMSG);
	assert_int_equal(feed(tasks, WEIR_T_CGROUP_ATTACH, 100, &attach, sizeof(attach)), -EBADMSG);
	assert_int_equal(stats_of(tasks).entries, 0);
	assert_int_equal(stats_of(tasks).bytes, bytes);
}

/* Other records and gaps pass by. */
static void test_other_events(void **state)
{
	struct tasks *tasks = *state;
	struct weir_gap gap = {.lost = 3};
	struct weir_event event = {.kind = WEIR_KIND_GAP, .data = &gap, .len = sizeof(gap)};

	assert_int_equal(tasks__apply(tasks, &event), 0);
	for (unsigned int type = 0; type <= UINT16_MAX; type += type < 64 ? 1 : 997) {
		if (type < WEIR_T_FORK || type > WEIR_T_CGROUP_ATTACH)
			assert_int_equal(feed(tasks, (uint16_t)type, 100, NULL, 0), 0);
	}
	assert_int_equal(stats_of(tasks).entries, 0);
}

/* An exec path of no bytes is unknown, not the one before; a NUL ends it. */
static void test_exec_path(void **state)
{
	struct tasks *tasks = *state;
	struct {
		struct weir_exec exec;
		char path[8];
	} record = {.exec = {.id = {42, 42}, .old_tid = 42, .start_ns = 90, .path_len = 8},
		    .path = "/a\0/b/c"};

	feed_exec(tasks, 100, .pid = 42, .start_ns = 90, .path = "/bin/sh");
	feed_exec(tasks, 110, .pid = 42, .start_ns = 90, .path = NULL);
	assert_null(find(tasks, 42, 110).exe);
	assert_int_equal(feed(tasks, WEIR_T_EXEC, 120, &record, sizeof(record)), 0);
	assert_string_equal(find(tasks, 42, 120).exe, "/a");
}

/* Seeds are from before: any event replaces what they say, and what they know stays till then. */
static void test_seed_is_oldest(void **state)
{
	struct tasks *tasks = *state;

	feed_fork(tasks, 100, .ppid = 1, .pid = 42, .start_ns = 90, .comm = "event");
	feed_seed(tasks, .pid = 42, .start_ns = 90, .ppid = 77, .comm = "seed", .exe = "/bin/s");
	assert_string_equal(find(tasks, 42, 100).comm, "event");
	assert_int_equal(find(tasks, 42, 100).ppid, 1);

	/* The fork of what was seeded is still in the ring; its parent is not known. */
	feed_seed(tasks, .pid = 43, .start_ns = 110, .uid = 4, .comm = "seed", .exe = "/bin/s");
	feed_fork(tasks, 120, .ppid = 2, .pid = 43, .start_ns = 110, .comm = "event");
	assert_string_equal(find(tasks, 43, 120).exe, "/bin/s");
	assert_int_equal(find(tasks, 43, 120).uid, 4);
	assert_int_equal(find(tasks, 43, 120).ppid, 2);
	assert_string_equal(find(tasks, 43, 120).comm, "event");

	/* A seed of a thread does not know the process's exe. */
	feed_seed(tasks, .pid = 50, .start_ns = 10, .exe = "/bin/p");
	feed_seed(tasks, .pid = 50, .tid = 51, .start_ns = 11);
	assert_string_equal(find(tasks, 51, 11).exe, "/bin/p");
}

static void test_new_and_free(void **state)
{
	struct tasks *tasks;

	assert_null(tasks__new(1));
	assert_int_equal(errno, EINVAL);
	assert_null(tasks__new((64 << 10) - 1));
	tasks = tasks__new(64 << 10);
	assert_non_null(tasks);
	tasks__free(tasks);
	tasks__free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TABLE_TEST(test_fork_exec_exit),
		TABLE_TEST(test_threads),
		TABLE_TEST(test_comm_is_cut),
		TABLE_TEST(test_w5_retired_once),
		TABLE_TEST(test_w5_reuse_after_exit),
		TABLE_TEST(test_w1_idle),
		TABLE_TEST(test_w6_late_exit_of_old),
		TABLE_TEST(test_reused_leader_ends_threads),
		TABLE_TEST(test_leader_exits_first),
		TABLE_TEST(test_process_lives_as_long_as_a_thread),
		TABLE_TEST(test_process_exit_ends_all),
		TABLE_TEST(test_exec_by_thread),
		TABLE_TEST(test_exec_by_thread_losses),
		TABLE_TEST(test_exec_by_unknown_thread),
		TABLE_TEST(test_exited_leader_acts),
		TABLE_TEST(test_unknown_tasks),
		TABLE_TEST(test_start_told_later),
		TABLE_TEST(test_threads_before_leader),
		TABLE_TEST(test_parent_is_running),
		TABLE_TEST(test_late_facts),
		TABLE_TEST(test_late_exec_spares_the_young),
		TABLE_TEST(test_late_exec_of_old),
		TABLE_TEST(test_late_fork),
		TABLE_TEST(test_late_thread_of_ended),
		TABLE_TEST(test_ahead),
		TABLE_TEST(test_extreme_stamps),
		TABLE_TEST(test_nonsense_ids),
		TABLE_TEST(test_broken_records),
		TABLE_TEST(test_other_events),
		TABLE_TEST(test_exec_path),
		TABLE_TEST(test_seed_is_oldest),
		cmocka_unit_test(test_new_and_free),
	};

	return cmocka_run_group_tests_name("tasks", tests, NULL, NULL) ? 1 : 0;
}
