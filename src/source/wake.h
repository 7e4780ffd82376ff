/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wake.h - what a reader sleeps on: one epoll descriptor for rings, hotplug, clock and timers.
 *
 * Owns the epoll descriptor and its two timers; borrows what is added.
 */
#ifndef WEIR_SOURCE_WAKE_H
#define WEIR_SOURCE_WAKE_H

#include <stdbool.h>
#include <stdint.h>

struct wake {
	int epoll_fd;
	int pace_fd; /* timerfd: when poll() is due, for a caller that has its own event loop */
	int step_fd; /* timerfd on CLOCK_REALTIME that is cancelled when that clock is set */
	bool paced;  /* somebody uses the descriptor: keep pace_fd armed */
};

int wake__open(struct wake *wake);
void wake__close(struct wake *wake);

/*
 * Edge-triggered: a ring with an unfinished record at its head is readable for as long as that
 * lasts, and a level would spin on it.
 */
int wake__add(struct wake *wake, int fd);
void wake__remove(struct wake *wake, int fd);

/* Sleep at most timeout_ns. 1: something woke us, 0: time out, -EINTR or another error. */
int wake__sleep(struct wake *wake, uint64_t timeout_ns);

/*
 * What made the descriptor readable is being looked after. For a caller that sleeps on it in a loop of
 * its own: without this, a ring that stays readable (see above) would keep it readable.
 */
void wake__taken(struct wake *wake);

/* Make the descriptor readable in delay_ns from now on. */
void wake__due(struct wake *wake, uint64_t delay_ns);

/* Was the wall clock set since the last call? */
bool wake__clock_was_set(struct wake *wake);

#endif /* WEIR_SOURCE_WAKE_H */
