/* SPDX-License-Identifier: BSD-2-Clause */
/* source/wake: what a reader sleeps on. No test here measures how long. */
#include "unit.h"

#include "source/wake.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#define SEC 1000000000ull

/* Answers of the kernel that can't be had here: --wrap in meson.build. */
long __real_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);
int __real_epoll_wait(int fd, struct epoll_event *events, int n, int timeout_ms);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int n, int timeout_ms);
ssize_t __real_read(int fd, void *buf, size_t bytes);
ssize_t __wrap_read(int fd, void *buf, size_t bytes);

static int no_pwait2; /* the errno instead of it; 0: it is there */
static int asked_ms;  /* what epoll_wait() was asked for */
static int set_clock_fd = -1;

long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	if (number == SYS_epoll_pwait2 && no_pwait2) {
		errno = no_pwait2;
		return -1;
	}
	return __real_syscall(number, a, b, c, d, e, f);
}

int __wrap_epoll_wait(int fd, struct epoll_event *events, int n, int timeout_ms)
{
	asked_ms = timeout_ms;
	return __real_epoll_wait(fd, events, n, timeout_ms);
}

/* A timerfd whose clock was set says ECANCELED, once. */
ssize_t __wrap_read(int fd, void *buf, size_t bytes)
{
	if (fd != set_clock_fd)
		return __real_read(fd, buf, bytes);
	set_clock_fd = -1;
	errno = ECANCELED;
	return -1;
}

static int make(void **state)
{
	static struct wake wake;

	no_pwait2 = 0;
	*state = &wake;
	return wake__open(&wake);
}

static int end(void **state)
{
	wake__close(*state);
	return 0;
}

static int event_new(void)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	assert_true(fd >= 0);
	return fd;
}

static void signal_event(int fd)
{
	assert_int_equal(eventfd_write(fd, 1), 0);
}

/* Is the descriptor that callers get readable? */
static bool readable(const struct wake *wake, int timeout_ms)
{
	struct pollfd pfd = {.fd = wake->epoll_fd, .events = POLLIN};

	return poll(&pfd, 1, timeout_ms) == 1;
}

static void test_descriptors(void **state)
{
	struct wake *wake = *state;
	const int fds[] = {wake->epoll_fd, wake->pace_fd, wake->step_fd};

	/* A program that a consumer starts must not inherit them. */
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		assert_int_equal(fcntl(fds[i], F_GETFD), FD_CLOEXEC);
	wake__close(wake);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		assert_int_equal(fcntl(fds[i], F_GETFD), -1);
	wake__close(wake);
}

static void test_nothing_there(void **state)
{
	struct wake *wake = *state;

	assert_int_equal(wake__sleep(wake, 0), 0);
	assert_int_equal(wake__sleep(wake, 1), 0);
	assert_false(readable(wake, 0));
	assert_false(wake__clock_was_set(wake));
}

/* O16: what stays readable wakes once, not for ever; what comes anew wakes again. */
static void test_edges(void **state)
{
	struct wake *wake = *state;
	int fd = event_new();

	assert_int_equal(wake__add(wake, fd), 0);
	assert_int_equal(wake__sleep(wake, 0), 0);
	for (int i = 0; i < 3; i++) {
		signal_event(fd);
		assert_int_equal(wake__sleep(wake, 100 * SEC), 1);
		assert_int_equal(wake__sleep(wake, 0), 0);
	}
	close(fd);
}

/* The same for a caller that sleeps in its own loop on our descriptor, and never in ours. */
static void test_edges_outside(void **state)
{
	struct wake *wake = *state;
	int fds[50];

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = event_new();
		assert_int_equal(wake__add(wake, fds[i]), 0);
		signal_event(fds[i]);
	}
	assert_true(readable(wake, 10000));
	wake__taken(wake);
	assert_false(readable(wake, 0));
	signal_event(fds[49]);
	assert_true(readable(wake, 10000));
	wake__taken(wake);
	assert_false(readable(wake, 0));
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
}

static void test_add_and_remove(void **state)
{
	struct wake *wake = *state;
	int fd = event_new();

	assert_int_equal(wake__add(wake, -1), -EBADF);
	assert_int_equal(wake__add(wake, fd), 0);
	assert_int_equal(wake__add(wake, fd), -EEXIST);
	wake__remove(wake, fd);
	wake__remove(wake, fd);
	signal_event(fd);
	assert_int_equal(wake__sleep(wake, 0), 0);
	assert_int_equal(wake__add(wake, fd), 0);
	assert_int_equal(wake__sleep(wake, 0), 1);
	close(fd);
	assert_int_equal(wake__sleep(wake, 0), 0);
}

/* More descriptors at once than one call can tell of. */
static void test_many(void **state)
{
	struct wake *wake = *state;
	int fds[100];

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = event_new();
		signal_event(fds[i]);
		assert_int_equal(wake__add(wake, fds[i]), 0);
	}
	for (size_t i = 0; i < 10; i++)
		if (!wake__sleep(wake, 0))
			break;
	assert_int_equal(wake__sleep(wake, 0), 0);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
}

static void test_pace(void **state)
{
	struct wake *wake = *state;

	wake__due(wake, 0); /* at once, and not never */
	assert_true(readable(wake, 10000));
	wake__due(wake, 1000 * SEC);
	assert_false(readable(wake, 0));
	wake__due(wake, 1);
	assert_true(readable(wake, 10000));
	wake__due(wake, 1000 * SEC);
	assert_false(readable(wake, 0));
	/* It is in the set that we sleep on, too. */
	wake__due(wake, 1000000);
	assert_int_equal(wake__sleep(wake, 100 * SEC), 1);
	/* As far as 64 bits go: late, and no error. */
	wake__due(wake, UINT64_MAX);
	assert_false(readable(wake, 0));
}

/* M3: told once for each time that it is set. */
static void test_clock_is_set(void **state)
{
	struct wake *wake = *state;

	for (int i = 0; i < 3; i++) {
		set_clock_fd = wake->step_fd;
		assert_true(wake__clock_was_set(wake));
		assert_false(wake__clock_was_set(wake));
	}
}

static void on_alarm(int signal)
{
}

static void test_signal(void **state)
{
	struct sigaction action = {.sa_handler = on_alarm}, old;
	struct itimerval often = {{0, 2000}, {0, 2000}}, off = {{0, 0}, {0, 0}};
	struct wake *wake = *state;

	sigaction(SIGALRM, &action, &old);
	for (no_pwait2 = 0; no_pwait2 <= ENOSYS; no_pwait2 += ENOSYS) {
		setitimer(ITIMER_REAL, &often, NULL);
		assert_int_equal(wake__sleep(wake, 100 * SEC), -EINTR);
		setitimer(ITIMER_REAL, &off, NULL);
	}
	sigaction(SIGALRM, &old, NULL);
}

/* Any time-out is one: rounded up, never negative, never cut to its low bits. */
static void test_time_outs(void **state)
{
	static const struct {
		uint64_t ns;
		int ms;
	} timeouts[] = {
		{0, 0},
		{1, 1},
		{999999, 1},
		{1000000, 1},
		{1000001, 2},
		{5 * SEC, 5000},
		{(uint64_t)INT_MAX * 1000000, INT_MAX},
		{(uint64_t)INT_MAX * 1000000 + 1, INT_MAX},
		{(1ull << 32) * 1000000, INT_MAX}, /* 0 in 32 bits */
		{INT64_MAX, INT_MAX},
		{UINT64_MAX, INT_MAX},
	};
	static const int errors[] = {0, ENOSYS, EPERM /* a sandbox that does not know the call */};
	struct wake *wake = *state;
	int fd = event_new();

	assert_int_equal(wake__add(wake, fd), 0);
	for (size_t e = 0; e < ARRAY_SIZE(errors); e++) {
		no_pwait2 = errors[e];
		for (size_t i = 0; i < ARRAY_SIZE(timeouts); i++) {
			asked_ms = -1;
			signal_event(fd);
			assert_int_equal(wake__sleep(wake, timeouts[i].ns), 1);
			assert_int_equal(asked_ms, no_pwait2 ? timeouts[i].ms : -1);
		}
		assert_int_equal(wake__sleep(wake, 1), 0);
	}
	close(fd);
}

static void test_error(void **state)
{
	struct wake *wake = *state;

	wake__close(wake);
	assert_int_equal(wake__sleep(wake, 0), -EBADF);
	no_pwait2 = ENOSYS;
	assert_int_equal(wake__sleep(wake, 0), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_descriptors, make, end),
		cmocka_unit_test_setup_teardown(test_nothing_there, make, end),
		cmocka_unit_test_setup_teardown(test_edges, make, end),
		cmocka_unit_test_setup_teardown(test_edges_outside, make, end),
		cmocka_unit_test_setup_teardown(test_add_and_remove, make, end),
		cmocka_unit_test_setup_teardown(test_many, make, end),
		cmocka_unit_test_setup_teardown(test_pace, make, end),
		cmocka_unit_test_setup_teardown(test_clock_is_set, make, end),
		cmocka_unit_test_setup_teardown(test_signal, make, end),
		cmocka_unit_test_setup_teardown(test_time_outs, make, end),
		cmocka_unit_test_setup_teardown(test_error, make, end),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	return r ? 1 : 0;
}
