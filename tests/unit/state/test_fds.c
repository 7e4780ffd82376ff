// SPDX-License-Identifier: BSD-2-Clause
/* fds.c: what a number stands for at each point of a stream, through dups, forks, execs, races and gaps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "state/fds.h"
#include "state/sockname.h"

#include <weir/probes.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static struct fds *fds;
static uint64_t now_ns;
static unsigned int resolved;
static int pipe_from; /* 0: none is open */

/* Each process has a directory /home/PID and its standard output when it is met. */
static void resolve(void *ctx, struct fds *table, uint32_t pid)
{
	char cwd[64];

	assert_ptr_equal(ctx, &resolved);
	resolved++;
	snprintf(cwd, sizeof(cwd), "/home/%u", pid);
	fds__seed(table, pid, FDS_CWD, cwd, false);
	fds__seed(table, pid, 1, "/dev/pts/0", false);
	if (pipe_from) {
		fds__seed(table, pid, pipe_from, "pipe:[12]", false);
		fds__seed(table, pid, pipe_from + 1, "pipe:[12]", true);
		fds__seed(table, pid, pipe_from + 2, "socket:[13]", false);
	}
}

static int setup(void **state)
{
	pipe_from = 0;
	now_ns = 1000;
	resolved = 0;
	fds = fds__new(0, resolve, &resolved);
	return fds ? 0 : 1;
}

static int teardown(void **state)
{
	fds__free(fds);
	return 0;
}

/* ---- what happens ----------------------------------------------------------------------------- */

static struct weir_arg number(uint64_t u)
{
	return (struct weir_arg){.kind = WEIR_ARG_HEX, .u = u};
}

static struct weir_arg str(const char *text)
{
	/* Not ended by a NUL, as in a record. */
	size_t len = strlen(text);
	char *bytes = memcpy(test_malloc(len + 1), text, len);

	bytes[len] = '!';
	return (struct weir_arg){.kind = WEIR_ARG_STR, .bytes = bytes, .len = (uint32_t)len};
}

static struct weir_arg address(const void *bytes, uint32_t len)
{
	return (struct weir_arg){.kind = WEIR_ARG_SOCKADDR, .bytes = bytes, .len = len};
}

static void call_from(uint64_t enter_ns, uint32_t pid, int64_t ret, const char *name,
		      const struct weir_arg *args, uint32_t nargs)
{
	struct weir_event enter = {.stamp_ns = enter_ns}, leave = {.stamp_ns = ++now_ns};
	struct weir_call call = {.enter = &enter, .exit = &leave, .stamp_ns = now_ns};
	struct weir_decoded d = {.syscall = name,
				 .pid = pid,
				 .tid = pid + 1,
				 .has_args = true,
				 .has_ret = true,
				 .ret = ret,
				 .nargs = nargs};

	for (uint32_t i = 0; i < nargs; i++)
		d.args[i] = args[i];
	fds__call(fds, &call, &d);
	for (uint32_t i = 0; i < nargs; i++)
		if (args[i].kind == WEIR_ARG_STR)
			test_free((void *)args[i].bytes);
}

#define ARGS(...)                           \
	((struct weir_arg[]){__VA_ARGS__}), \
		sizeof((struct weir_arg[]){__VA_ARGS__}) / sizeof(struct weir_arg)
#define CALL(pid, ret, name, ...) call_from(now_ns, pid, ret, name, ARGS(__VA_ARGS__))

static void opened(uint32_t pid, int64_t ret, const char *path, uint64_t flags)
{
	CALL(pid, ret, "openat", number((uint64_t)FDS_CWD), str(path), number(flags), number(0));
}

static void event(uint16_t type, const void *data, uint32_t len)
{
	struct weir_event e = {.stamp_ns = ++now_ns, .type = type, .data = data, .len = len};

	fds__apply(fds, &e);
}

static void forked(uint32_t parent, uint32_t child)
{
	struct weir_fork fork = {.parent = {parent, parent}, .child = {child, child}};

	event(WEIR_T_FORK, &fork, sizeof(fork));
}

static void execed(uint32_t pid)
{
	struct weir_exec exec = {.id = {pid, pid}, .old_tid = pid};

	event(WEIR_T_EXEC, &exec, sizeof(exec));
}

static void ended(uint32_t pid, bool process)
{
	struct weir_exit exit = {.id = {pid, pid + 1}, .flags = process ? WEIR_EXIT_PROCESS : 0};

	event(WEIR_T_EXIT, &exit, sizeof(exit));
}

static void assert_fd(uint32_t pid, int32_t fd, const char *text)
{
	const char *found = fds__find(fds, pid, fd);

	if (!text)
		assert_null(found);
	else if (!found)
		fail_msg("%u has no %d", pid, fd);
	else
		assert_string_equal(found, text);
}

/* ---- tests ------------------------------------------------------------------------------------ */

static void test_met_once(void **state)
{
	assert_fd(7, 1, "/dev/pts/0");
	assert_fd(7, FDS_CWD, "/home/7");
	assert_fd(7, 2, NULL);
	fds__meet(fds, 7);
	assert_int_equal(resolved, 1);
	fds__seed(fds, 8, 3, "nobody has met 8", false);
	assert_fd(8, 3, NULL);
	ended(7, false); /* a thread of it */
	assert_fd(7, 1, "/dev/pts/0");
	assert_int_equal(resolved, 2);
	ended(7, true);
	assert_fd(7, 1, "/dev/pts/0");
	assert_int_equal(resolved, 3);
}

static void test_open_and_close(void **state)
{
	opened(7, 3, "/etc/passwd", 0);
	assert_fd(7, 3, "/etc/passwd");
	opened(7, 4, "notes", 0);
	assert_fd(7, 4, "/home/7/notes");
	opened(7, 5, "", 0);
	opened(7, -ENOENT, "/nope", 0);
	assert_fd(7, -ENOENT, NULL);
	CALL(7, 6, "open", str("/a"), number(0));
	assert_fd(7, 6, "/a");
	CALL(7, 8, "creat", str("b"), number(0644));
	assert_fd(7, 8, "/home/7/b");
	CALL(7, 0, "close", number(0xffff000000000000ull | 3)); /* an int */
	assert_fd(7, 3, NULL);
	CALL(7, -EBADF, "close", number(4));
	assert_fd(7, 4, "/home/7/notes");
	/* From a directory, known or not. */
	opened(7, 9, "/srv", O_DIRECTORY);
	CALL(7, 10, "openat", number(9), str("x/y"), number(0));
	assert_fd(7, 10, "/srv/x/y");
	CALL(7, 11, "openat2", number(99), str("x/y"), number(0));
	assert_fd(7, 11, "x/y");
	/* A path that could not be read: what was there is closed, what is there is not known. */
	opened(7, 12, "/old", 0);
	CALL(7, 12, "openat", number(9), number(0x7fff), number(0));
	assert_fd(7, 12, NULL);
}

static void test_a_cut_path_says_so(void **state)
{
	struct weir_arg path = str("/very/long");

	path.flags = WEIR_ARG_CUT;
	CALL(7, 3, "open", path, number(0));
	assert_fd(7, 3, "/very/long...");
}

static void test_directories(void **state)
{
	CALL(7, 0, "chdir", str("sub"));
	assert_fd(7, FDS_CWD, "/home/7/sub");
	CALL(7, 0, "chdir", str("/"));
	opened(7, 3, "etc", O_DIRECTORY);
	assert_fd(7, 3, "/etc");
	CALL(7, 0, "fchdir", number(3));
	assert_fd(7, FDS_CWD, "/etc");
	CALL(7, 0, "fchdir", number(77));
	assert_fd(7, FDS_CWD, NULL);
	opened(7, 4, "x", 0);
	assert_fd(7, 4, "x");
	CALL(7, 0, "close_range", number(0), number(UINT32_MAX), number(0));
	CALL(7, 0, "chdir", str("/a"));
	CALL(7, 0, "close_range", number(0), number(UINT32_MAX), number(0));
	assert_fd(7, FDS_CWD, "/a"); /* no descriptor, after all */
}

static void test_dup(void **state)
{
	opened(7, 3, "/a", O_CLOEXEC);
	CALL(7, 4, "dup", number(3));
	CALL(7, 1, "dup2", number(3), number(1));
	CALL(7, 5, "dup3", number(3), number(5), number(O_CLOEXEC));
	CALL(7, 3, "dup2", number(3), number(3)); /* nothing happens */
	CALL(7, 6, "fcntl", number(3), number(F_DUPFD), number(6));
	CALL(7, 7, "fcntl", number(3), number(F_DUPFD_CLOEXEC), number(6));
	CALL(7, 0, "fcntl", number(3), number(F_GETFL), number(0));
	for (int32_t fd = 3; fd <= 7; fd++)
		assert_fd(7, fd, "/a");
	assert_fd(7, 1, "/a");
	execed(7);
	assert_fd(7, 3, NULL);
	assert_fd(7, 4, "/a");
	assert_fd(7, 1, "/a");
	assert_fd(7, 5, NULL);
	assert_fd(7, 6, "/a");
	assert_fd(7, 7, NULL);
	/* Of one that is not known, over one that is. */
	CALL(7, 4, "dup2", number(50), number(4));
	assert_fd(7, 4, NULL);
}

static void test_cloexec(void **state)
{
	opened(7, 3, "/a", O_CLOEXEC);
	opened(7, 4, "/b", 0);
	opened(7, 5, "/c", 0);
	CALL(7, 0, "fcntl", number(3), number(F_SETFD), number(0));
	CALL(7, 0, "fcntl", number(4), number(F_SETFD), number(FD_CLOEXEC));
	CALL(7, 0, "close_range", number(5), number(5), number(CLOSE_RANGE_CLOEXEC));
	assert_fd(7, 5, "/c");
	opened(7, 6, "/d", O_CLOEXEC);
	opened(7, 8, "/e", 0);
	CALL(7, 0, "ioctl", number(6), number(0xffffffff00000000ull | FIONCLEX), number(0));
	CALL(7, 0, "ioctl", number(8), number(FIOCLEX), number(0));
	CALL(7, 0, "ioctl", number(3), number(FIONREAD), number(0));
	execed(7);
	assert_fd(7, 6, "/d");
	assert_fd(7, 8, NULL);
	assert_fd(7, 3, "/a");
	assert_fd(7, 4, NULL);
	assert_fd(7, 5, NULL);
	assert_fd(7, FDS_CWD, "/home/7");
}

static void test_fork(void **state)
{
	opened(7, 3, "/a", O_CLOEXEC);
	forked(7, 8);
	assert_int_equal(resolved, 1); /* the child has what its parent had */
	assert_fd(8, 3, "/a");
	assert_fd(8, FDS_CWD, "/home/7");
	execed(8);
	assert_fd(8, 3, NULL);
	assert_fd(7, 3, "/a");
	/* One that nobody had met is looked at now, before it goes on. */
	forked(20, 21);
	assert_fd(21, FDS_CWD, "/home/20");
	/* A pid again, whose first end was lost. */
	opened(7, 4, "/b", 0);
	forked(7, 21);
	assert_fd(21, 4, "/b");
	assert_fd(21, FDS_CWD, "/home/7");
	/* A thread is no process. */
	event(WEIR_T_FORK, &(struct weir_fork){.parent = {7, 7}, .child = {7, 30}},
	      sizeof(struct weir_fork));
	assert_fd(7, 4, "/b");
}

static void test_sockets(void **state)
{
	static const char local[] = "\x02\0\x13\x88\0\0\0\0\0\0\0\0\0\0\0\0";
	static const char peer[] = "\x02\0\0\x50\x7f\0\0\1\0\0\0\0\0\0\0\0";

	CALL(7, 3, "socket", number(AF_INET), number(SOCK_STREAM | SOCK_CLOEXEC), number(0));
	assert_fd(7, 3, "tcp");
	CALL(7, 0, "bind", number(3), address(local, 16), number(16));
	assert_fd(7, 3, "tcp:0.0.0.0:5000");
	CALL(7, 4, "accept4", number(3), number(0), number(0), number(SOCK_CLOEXEC));
	assert_fd(7, 4, "tcp:0.0.0.0:5000<-?");
	CALL(7, 5, "accept", number(77), number(0), number(0));
	assert_fd(7, 5, NULL);
	/* All who share it see it connected, begun is as good as done, a refusal is nothing. */
	CALL(7, 6, "dup", number(3));
	forked(7, 8);
	CALL(7, -ECONNREFUSED, "connect", number(3), address(peer, 16), number(16));
	assert_fd(7, 3, "tcp:0.0.0.0:5000");
	CALL(7, -EINPROGRESS, "connect", number(3), address(peer, 16), number(16));
	assert_fd(7, 6, "tcp:0.0.0.0:5000->127.0.0.1:80");
	assert_fd(8, 3, "tcp:0.0.0.0:5000->127.0.0.1:80");
	CALL(7, 0, "connect", number(3), address("\x02\0\0\x51\1\2\3\4\0\0\0\0\0\0\0\0", 16),
	     number(16));
	assert_fd(7, 3, "tcp:0.0.0.0:5000->1.2.3.4:81");
	CALL(7, 0, "connect", number(3), address("\0\0", 2), number(2)); /* AF_UNSPEC: let go */
	assert_fd(7, 3, "tcp:0.0.0.0:5000");
	execed(8);
	assert_fd(8, 3, NULL);
	assert_fd(8, 4, NULL);
	assert_fd(8, 6, "tcp:0.0.0.0:5000");
}

static void test_other_kinds(void **state)
{
	CALL(7, 3, "memfd_create", str("x"), number(0));
	assert_fd(7, 3, "memfd:x");
	CALL(7, 4, "pidfd_open", number(12), number(0));
	assert_fd(7, 4, "pidfd:12");
	CALL(7, 5, "epoll_create1", number(O_CLOEXEC));
	assert_fd(7, 5, "epoll");
	CALL(7, 6, "eventfd2", number(0), number(0));
	CALL(7, 7, "timerfd_create", number(0), number(0));
	CALL(7, 8, "inotify_init", number(0));
	assert_fd(7, 6, "eventfd");
	assert_fd(7, 7, "timerfd");
	assert_fd(7, 8, "inotify");
	CALL(7, 8, "pidfd_getfd", number(4), number(1), number(0));
	assert_fd(7, 8, NULL);
	execed(7);
	assert_fd(7, 4, NULL);
	assert_fd(7, 5, NULL);
	assert_fd(7, 6, "eventfd");
}

/* What it opened stands in memory: the resolver is asked, about what nobody has seen. */
static void test_pipes(void **state)
{
	opened(7, 4, "/tmp/file", 0);
	CALL(7, 0, "chdir", str("/elsewhere"));
	pipe_from = 4;
	CALL(7, 0, "pipe2", number(0x7000), number(0));
	assert_int_equal(resolved, 2);
	assert_fd(7, 4, "/tmp/file"); /* not taken by what is there by now */
	assert_fd(7, FDS_CWD, "/elsewhere");
	assert_fd(7, 5, "pipe:[12]");
	assert_fd(7, 6, NULL); /* nor is anything else */
	CALL(7, 0, "socketpair", number(1), number(1), number(0), number(0x7000));
	assert_fd(7, 6, "socket:[13]");
	CALL(7, -24, "pipe", number(0x7000));
	assert_int_equal(resolved, 3);
	forked(7, 8);
	assert_fd(8, 5, "pipe:[12]");
	execed(7);
	assert_fd(7, 5, NULL);
	assert_fd(7, 6, "socket:[13]");
}

/* A close frees the number before it returns; another thread's open may have it by then. */
static void test_close_races_open(void **state)
{
	uint64_t enter_ns;

	opened(7, 3, "/old", 0);
	enter_ns = now_ns;
	opened(7, 3, "/new", 0);
	call_from(enter_ns, 7, 0, "close", ARGS(number(3)));
	assert_fd(7, 3, "/new");
	enter_ns = now_ns;
	opened(7, 4, "/new too", 0);
	call_from(enter_ns, 7, 0, "close_range", ARGS(number(3), number(9), number(0)));
	assert_fd(7, 3, NULL);
	assert_fd(7, 4, "/new too");
}

static void test_calls_that_did_not_return(void **state)
{
	struct weir_event enter = {0};
	struct weir_call call = {.end = WEIR_CALL_BROKEN, .enter = &enter};
	struct weir_decoded d = {.syscall = "close", .pid = 7, .has_args = true, .nargs = 1};

	opened(7, 0, "/a", 0);
	fds__call(fds, &call, &d);
	assert_fd(7, 0, "/a");
	d.syscall = NULL; /* a number that has no name */
	fds__call(fds, &call, &d);
}

static void test_gaps(void **state)
{
	struct weir_gap gap = {.bound = WEIR_BOUND_EXACT};
	struct weir_event e = {.kind = WEIR_KIND_GAP, .data = &gap, .len = sizeof(gap)};

	opened(7, 3, "/a", 0);
	fds__apply(fds, &e); /* of nothing */
	assert_fd(7, 3, "/a");
	gap.lost = 1;
	fds__apply(fds, &e);
	assert_fd(7, 3, NULL);
	assert_int_equal(resolved, 2);
	opened(7, 3, "/a", 0);
	gap = (struct weir_gap){.bound = WEIR_BOUND_UNKNOWN};
	fds__apply(fds, &e);
	assert_fd(7, 3, NULL);
}

static void test_broken_records(void **state)
{
	static const uint16_t types[] = {WEIR_T_FORK, WEIR_T_EXEC, WEIR_T_EXIT};

	opened(7, 3, "/a", O_CLOEXEC);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		event(types[i], "\7\0\0\0\7\0\0", 8);
	assert_fd(7, 3, "/a");
}

static void test_the_cap(void **state)
{
	char path[4000];

	fds__free(fds);
	fds = fds__new(64 << 10, resolve, &resolved);
	memset(path, 'x', sizeof(path) - 1);
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	for (uint32_t pid = 1; pid < 200; pid++) {
		for (int32_t fd = 3; fd < 8; fd++)
			opened(pid, fd, path, 0);
		forked(pid, pid + 1000);
		assert_in_range(fds__bytes(fds), 1, 64 << 10);
	}
	/* Those longest not heard of went first, and are met anew. */
	resolved = 0;
	assert_fd(199, 3, path);
	assert_int_equal(resolved, 0);
	assert_fd(1, 3, NULL);
	assert_int_equal(resolved, 1);
	/* One process alone with more than there is room for. */
	for (int32_t fd = 3; fd < 100; fd++)
		opened(5, fd, path, 0);
	assert_in_range(fds__bytes(fds), 1, 64 << 10);
	assert_fd(5, 99, NULL);
	assert_fd(5, 3, path);
}

/* fds__call() finds a call by binary search, and the program asks the kernel for all of them. */
static void test_needs(void **state)
{
	unsigned int n;

	for (n = 1; fds__needs(n); n++)
		assert_true(strcmp(fds__needs(n - 1), fds__needs(n)) < 0);
	assert_true(n > 30);
	assert_true(fds__returns_fd("openat"));
	assert_true(fds__returns_fd("accept"));
	assert_true(fds__returns_fd("userfaultfd"));
	assert_false(fds__returns_fd("close"));
	assert_false(fds__returns_fd("read"));
	assert_false(fds__returns_fd(NULL));
}

static const char *name(const void *bytes, size_t len)
{
	static char text[SOCKNAME_MAX];
	char *exact = test_malloc(len + 1); /* so that a read behind it is seen */

	memcpy(exact, bytes, len);
	sockname__address(exact, len, text);
	test_free(exact);
	return text;
}

static void test_socket_names(void **state)
{
	char longest[2 + 200] = {AF_UNIX};

	assert_string_equal(name("\x02\0\0\x50\x7f\0\0\1\0\0\0\0\0\0\0\0", 16), "127.0.0.1:80");
	assert_string_equal(name("\x02\0\0\x50\x7f\0\0\1", 8), ""); /* too short */
	assert_string_equal(
		name("\x0a\0\0\x50\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0", 28),
		"[::1]:80");
	assert_string_equal(name("\1\0/run/x\0junk", 13), "/run/x");
	assert_string_equal(name("\1\0\0ab\0c", 7), "@ab@c");
	assert_string_equal(name("\1\0", 2), "");
	assert_string_equal(name("\1", 1), "");
	assert_string_equal(name("", 0), "");
	assert_string_equal(name("\x63\0abc", 5), "");
	memset(longest + 2, 'x', 200);
	assert_int_equal(strlen(name(longest, sizeof(longest))), SOCKNAME_MAX - 1);
	assert_string_equal(sockname__kind(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK), "udp");
	assert_string_equal(sockname__kind(AF_INET, SOCK_RAW), "raw");
	assert_string_equal(sockname__kind(AF_UNIX, SOCK_STREAM), "unix");
	assert_string_equal(sockname__kind(AF_NETLINK, 0), "netlink");
	assert_string_equal(sockname__kind(12345, 0), "socket");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_met_once),
		T(test_open_and_close),
		T(test_a_cut_path_says_so),
		T(test_directories),
		T(test_dup),
		T(test_cloexec),
		T(test_fork),
		T(test_sockets),
		T(test_other_kinds),
		T(test_pipes),
		T(test_close_races_open),
		T(test_calls_that_did_not_return),
		T(test_gaps),
		T(test_broken_records),
		T(test_the_cap),
		T(test_needs),
		T(test_socket_names),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	return r ? 1 : 0;
}
