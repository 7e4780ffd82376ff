/* SPDX-License-Identifier: BSD-2-Clause */
#include "source/wake.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define NSEC_PER_SEC  1000000000ull
#define NSEC_PER_MSEC 1000000ull

/* Far enough that it never ends; setting the clock cancels it, which makes it readable. */
static void arm_step_timer(int fd)
{
	struct itimerspec far = {.it_value.tv_sec = INT64_MAX / (int64_t)NSEC_PER_SEC};

	timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &far, NULL);
}

int wake__open(struct wake *wake)
{
	int err;

	memset(wake, 0, sizeof(*wake));
	wake->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	wake->pace_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	wake->step_fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (wake->epoll_fd < 0 || wake->pace_fd < 0 || wake->step_fd < 0)
		goto fail;
	arm_step_timer(wake->step_fd);
	if (wake__add(wake, wake->pace_fd) || wake__add(wake, wake->step_fd))
		goto fail;
	return 0;
fail:
	err = -errno;
	wake__close(wake);
	return err;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void wake__close(struct wake *wake)
{
	close_fd(&wake->epoll_fd);
	close_fd(&wake->pace_fd);
	close_fd(&wake->step_fd);
}

int wake__add(struct wake *wake, int fd)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.fd = fd};

	return epoll_ctl(wake->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

void wake__remove(struct wake *wake, int fd)
{
	epoll_ctl(wake->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

static int round_up_to_ms(uint64_t ns)
{
	uint64_t ms = ns / NSEC_PER_MSEC + (ns % NSEC_PER_MSEC != 0);

	return ms < INT_MAX ? (int)ms : INT_MAX;
}

static int wait_ns(int epoll_fd, struct epoll_event *events, int n, uint64_t timeout_ns)
{
#ifdef SYS_epoll_pwait2
	struct timespec ts = {
		.tv_sec = (time_t)(timeout_ns / NSEC_PER_SEC),
		.tv_nsec = (long)(timeout_ns % NSEC_PER_SEC),
	};
	int ready = (int)syscall(SYS_epoll_pwait2, epoll_fd, events, n, &ts, NULL, (size_t)0);

	/* A kernel before 5.11 has no such call; a sandbox that does not know it says EPERM. */
	if (ready >= 0 || (errno != ENOSYS && errno != EPERM))
		return ready;
#endif
	return epoll_wait(epoll_fd, events, n, round_up_to_ms(timeout_ns));
}

int wake__sleep(struct wake *wake, uint64_t timeout_ns)
{
	struct epoll_event events[16];
	int ready = wait_ns(wake->epoll_fd, events, 16, timeout_ns);

	if (ready < 0)
		return -errno;
	return ready > 0;
}

void wake__taken(struct wake *wake)
{
	struct epoll_event events[16];

	/* Edges: each is told once, so this ends. */
	while (epoll_wait(wake->epoll_fd, events, 16, 0) == 16)
		;
}

void wake__due(struct wake *wake, uint64_t delay_ns)
{
	struct itimerspec due = {
		.it_value.tv_sec = (time_t)(delay_ns / NSEC_PER_SEC),
		.it_value.tv_nsec = (long)(delay_ns % NSEC_PER_SEC),
	};

	/* All zero would disarm it. */
	if (!delay_ns)
		due.it_value.tv_nsec = 1;
	timerfd_settime(wake->pace_fd, 0, &due, NULL);
}

bool wake__clock_was_set(struct wake *wake)
{
	uint64_t expirations;

	if (read(wake->step_fd, &expirations, sizeof(expirations)) >= 0 || errno != ECANCELED)
		return false;
	arm_step_timer(wake->step_fd);
	return true;
}
