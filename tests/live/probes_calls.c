// SPDX-License-Identifier: BSD-2-Clause
/*
 * The probes on the running kernel: what a system call was given is what its records say, byte for
 * byte, also where a string was not in memory when the call began.
 */
#include "acts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>

#define NOWHERE ((const char *)8)

static const struct weir_sys_enter *find_call(long nr, pid_t tid, const struct weir_sys_exit **exit)
{
	for (size_t i = 0; i < t.n; i++) {
		const struct weir_sys_enter *enter = t.records[i].payload;

		if (t.records[i].type != WEIR_T_SYS_ENTER || enter->nr != nr ||
		    enter->id.tid != (uint32_t)tid)
			continue;
		*exit = find_from(i, WEIR_T_SYS_EXIT, tid)->payload;
		assert_int_equal((*exit)->nr, nr);
		return enter;
	}
	fail_msg("no call %ld by %d", nr, tid);
	return NULL;
}

/* The i-th blob behind a record's fixed part, which ends at `first`. */
static const struct weir_blob *blob(const void *first, int i)
{
	const struct weir_blob *b = first;

	while (i--)
		b = (const struct weir_blob *)((const char *)(b + 1) + ((b->len + 7) & ~7u));
	return b;
}

static void assert_bytes(const struct weir_blob *b, int arg, int kind, const void *bytes,
			 size_t len)
{
	assert_int_equal(b->arg, arg);
	assert_int_equal(b->kind, kind);
	assert_int_equal(b->flags, 0);
	assert_int_equal(b->len, len);
	assert_memory_equal(b + 1, bytes, len);
}

/* Touched by the test before its children are there, so that the page is in their memory too. */
static struct sockaddr_un nobody = {.sun_family = AF_UNIX, .sun_path = "/nowhere/socket"};

static void calls_with_strings(void)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	/* On the stack: a constant's page may not be in memory yet. */
	char one[] = "/nowhere/one", another[] = "/nowhere/another";

	syscall(SYS_renameat2, AT_FDCWD, one, AT_FDCWD, another, 0);
	must(connect(fd, (const struct sockaddr *)&nobody, sizeof(nobody)) < 0);
	must(syscall(SYS_getppid) > 0);
}

static void strings_follow_the_call(void **state)
{
	const struct weir_sys_enter *enter;
	const struct weir_sys_exit *exit;

	nobody.sun_path[sizeof(nobody.sun_path) - 1] = 'x';
	OPEN(NULL, "sys", "renameat2", "sys", "connect", "sys", "getppid");
	run(calls_with_strings);

	enter = find_call(SYS_renameat2, t.told->actor, &exit);
	assert_int_equal(enter->abi, WEIR_ABI_NATIVE);
	assert_int_equal((int)enter->args[0], AT_FDCWD);
	assert_int_equal(enter->blobs, 2);
	assert_bytes(blob(enter + 1, 0), 1, WEIR_BLOB_STR, "/nowhere/one", 12);
	assert_bytes(blob(enter + 1, 1), 3, WEIR_BLOB_STR, "/nowhere/another", 16);
	assert_int_equal(exit->ret, -ENOENT);
	assert_int_equal(exit->blobs, 0);

	enter = find_call(SYS_connect, t.told->actor, &exit);
	assert_bytes(blob(enter + 1, 0), 1, WEIR_BLOB_SOCKADDR, &nobody, sizeof(nobody));
	assert_int_equal(exit->ret, -ENOENT);

	enter = find_call(SYS_getppid, t.told->actor, &exit);
	assert_int_equal(enter->blobs, 0);
	assert_int_equal(exit->ret, getpid());
	/* Calls that were not asked for are counted, once at each end (G4). */
	assert_true(account().filtered > 0);
	close_all();
}

static void open_names_of_each_length(void)
{
	char name[66];

	for (int len = 63; len <= 65; len++) {
		memset(name, 'n', sizeof(name));
		name[len] = '\0';
		syscall(SYS_open, name, O_RDONLY);
	}
}

static void strings_are_cut_at_the_limit(void **state)
{
	static const struct weir_blob want[] = {
		{.len = 63}, {.len = 64}, {.len = 64, .flags = WEIR_BLOB_CUT}};
	size_t seen = 0;

	OPEN(NULL, "sys", "open");
	run(open_names_of_each_length);
	for (size_t i = 0; i < t.n; i++) {
		const struct weir_sys_enter *enter = t.records[i].payload;
		const struct weir_blob *b = blob(enter + 1, 0);

		if (t.records[i].type != WEIR_T_SYS_ENTER ||
		    enter->id.tid != (uint32_t)t.told->actor)
			continue;
		assert_true(seen < 3);
		assert_int_equal(b->len, want[seen].len);
		assert_int_equal(b->flags, want[seen].flags);
		seen++;
	}
	assert_int_equal(seen, 3);
	close_all();
}

/* A page of a file that is in no page table yet: what a program's own constants are at first. */
static char *untouched(const char *bytes, size_t len)
{
	char name[] = "/tmp/weir-probes-XXXXXX";
	int fd = mkstemp(name);
	char *page;

	must(fd >= 0 && unlink(name) == 0);
	must(write(fd, bytes, len) == (ssize_t)len);
	page = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
	must(page != MAP_FAILED);
	return page;
}

static void open_untouched(void)
{
	syscall(SYS_open, untouched("/nowhere/at/all", 16), O_RDONLY);
	syscall(SYS_rmdir, NOWHERE);
}

/* M7, and the count of what can't be read at all. */
static void string_that_is_not_in_memory(void **state)
{
	const struct weir_sys_enter *enter;
	const struct weir_sys_exit *exit;
	const struct weir_blob *b;

	OPEN(NULL, "sys", "open", "sys", "rmdir");
	run(open_untouched);

	enter = find_call(SYS_open, t.told->actor, &exit);
	b = blob(enter + 1, 0);
	assert_int_equal(enter->blobs, 1);
	assert_int_equal(b->flags, WEIR_BLOB_UNREAD);
	assert_int_equal(b->len, 0);
	assert_int_equal(exit->ret, -ENOENT);
	assert_int_equal(exit->blobs, 1);
	assert_bytes(blob(exit + 1, 0), 0, WEIR_BLOB_STR, "/nowhere/at/all", 15);

	enter = find_call(SYS_rmdir, t.told->actor, &exit);
	b = blob(enter + 1, 0);
	assert_int_equal(b->flags, WEIR_BLOB_UNREAD);
	assert_int_equal(exit->ret, -EFAULT);
	assert_int_equal(exit->blobs, 0);
	close_all();
	assert_true(account().unread >= 1);
}

static void exec_untouched_file(const char *path)
{
	char *const argv[] = {untouched("/nowhere/one", 13), untouched("two", 4), NULL};

	syscall(SYS_execve, untouched(path, strlen(path) + 1), argv, NULL);
}

static void exec_nothing(void)
{
	exec_untouched_file("/nowhere");
}

static void exec_a_program(void)
{
	exec_untouched_file(TRUE_PATH);
}

static void exec_a_script(void)
{
	exec_untouched_file(t.told->script);
}

static const struct weir_sys_exit *exec_and_look(void (*act)(void))
{
	const struct weir_sys_enter *enter;
	const struct weir_sys_exit *exit;

	OPEN(NULL, "sys", "execve");
	run(act);
	enter = find_call(SYS_execve, t.told->actor, &exit);
	assert_int_equal(enter->blobs, 2);
	assert_int_equal(blob(enter + 1, 0)->flags, WEIR_BLOB_UNREAD);
	assert_int_equal(blob(enter + 1, 1)->flags, WEIR_BLOB_UNREAD);
	return exit;
}

/* Newer kernels fail before they look at the arguments: these are lost then, and counted. */
static void exec_that_fails(void **state)
{
	const struct weir_sys_exit *exit = exec_and_look(exec_nothing);

	assert_int_equal(exit->ret, -ENOENT);
	assert_bytes(blob(exit + 1, 0), 0, WEIR_BLOB_STR, "/nowhere", 8);
	close_all();
	assert_true(exit->blobs == 2 || (exit->blobs == 1 && account().unread >= 1));
}

/* The caller's memory is gone, the new program's has copies. */
static void exec_that_works(void **state)
{
	static const char argv[] = "/nowhere/one\0two";
	const struct weir_sys_exit *exit = exec_and_look(exec_a_program);

	assert_int_equal(exit->ret, 0);
	assert_int_equal(exit->blobs, 2);
	assert_bytes(blob(exit + 1, 0), 0, WEIR_BLOB_STR, TRUE_PATH, strlen(TRUE_PATH));
	assert_bytes(blob(exit + 1, 1), 1, WEIR_BLOB_STRV, argv, sizeof(argv));
	close_all();
}

/* A script's interpreter gets other arguments than the call had: better none than those. */
static void exec_of_a_script(void **state)
{
	static const char text[] = "#!/bin/true\n";
	const struct weir_sys_exit *exit;
	int fd;

	strcpy(t.told->script, "/tmp/weir-probes-XXXXXX");
	fd = mkstemp(t.told->script);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	fchmod(fd, 0700);
	close(fd);
	exit = exec_and_look(exec_a_script);
	unlink(t.told->script);
	assert_int_equal(exit->ret, 0);
	assert_int_equal(exit->blobs, 1);
	assert_bytes(blob(exit + 1, 0), 0, WEIR_BLOB_STR, t.told->script, strlen(t.told->script));
	close_all();
	assert_true(account().unread >= 1);
}

#ifdef __x86_64__
static void call_by_the_32_bit_door(void)
{
	long ret;

	__asm__ volatile("int $0x80"
			 : "=a"(ret)
			 : "0"(64 /* getppid */), "b"(0x11111111l), "c"(0x22222222l),
			   "d"(0x33333333l), "S"(0x44444444l), "D"(0x55555555l)
			 : "r8", "r9", "r10", "r11", "memory");
	must(ret == getppid());
}

static void calls_of_32_bits(void **state)
{
	static const uint64_t args[] = {0x11111111, 0x22222222, 0x33333333, 0x44444444, 0x55555555};
	const struct weir_sys_enter *enter;
	const struct weir_sys_exit *exit;

	OPEN(NULL, "sys", "getppid");
	run(call_by_the_32_bit_door);
	enter = find_call(64, t.told->actor, &exit);
	assert_int_equal(enter->abi, WEIR_ABI_32);
	assert_int_equal(exit->abi, WEIR_ABI_32);
	assert_memory_equal(enter->args, args, sizeof(args));
	assert_int_equal(exit->ret, getpid());
	close_all();
}
#endif

#ifdef __x86_64__
#define OLD_NANOSLEEP 162 /* of i386, where times have 32 bits; that of 407 has 64 */
#define NANOSLEEP_64  407

static long sleep_by_the_32_bit_door(long nr, const void *time)
{
	long first = nr == OLD_NANOSLEEP ? (long)time : CLOCK_MONOTONIC, ret;

	__asm__ volatile("int $0x80"
			 : "=a"(ret)
			 : "0"(nr), "b"(first), "c"(0l), "d"(nr == OLD_NANOSLEEP ? NULL : time),
			   "S"(0l)
			 : "r8", "r9", "r10", "r11", "memory");
	return ret;
}

static void sleep_twice(void)
{
	int32_t *narrow = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	int64_t *wide = (int64_t *)(narrow + 2);

	must(narrow != MAP_FAILED);
	narrow[0] = 0;
	narrow[1] = 777;
	wide[0] = 0;
	wide[1] = 888;
	must(!sleep_by_the_32_bit_door(OLD_NANOSLEEP, narrow));
	must(!sleep_by_the_32_bit_door(NANOSLEEP_64, wide));
}

/* A timespec is two 64-bit numbers in a record, whatever it is in the program. */
static void times_of_32_bits(void **state)
{
	const int64_t narrow[] = {0, 777}, wide[] = {0, 888};
	const struct weir_sys_enter *enter;
	const struct weir_sys_exit *exit;

	OPEN(NULL, "sys", "nanosleep", "sys", "clock_nanosleep_time64");
	run(sleep_twice);
	enter = find_call(OLD_NANOSLEEP, t.told->actor, &exit);
	assert_int_equal(enter->blobs, 1);
	assert_bytes(blob(enter + 1, 0), 0, WEIR_BLOB_TIMESPEC, narrow, sizeof(narrow));
	enter = find_call(NANOSLEEP_64, t.told->actor, &exit);
	assert_int_equal(enter->blobs, 1);
	assert_bytes(blob(enter + 1, 0), 2, WEIR_BLOB_TIMESPEC, wide, sizeof(wide));
	close_all();
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(strings_follow_the_call),
		CASE(strings_are_cut_at_the_limit),
		CASE(string_that_is_not_in_memory),
		CASE(exec_that_fails),
		CASE(exec_that_works),
		CASE(exec_of_a_script),
#ifdef __x86_64__
		CASE(calls_of_32_bits),
		CASE(times_of_32_bits),
#endif
	};
	int r = cmocka_run_group_tests_name("calls", tests, NULL, NULL);

	return r ? 1 : 0;
}
