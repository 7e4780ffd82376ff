/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/stop.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>

#define TICK_NS 50000000

volatile int stop__requested;
static volatile sig_atomic_t ledger_wanted;
static timer_t tick;
static volatile sig_atomic_t spared;

static void on_stop(int sig)
{
	const struct itimerspec again = {{0, TICK_NS}, {0, TICK_NS}};
	int saved = errno;

	if (sig == SIGINT && spared) {
		spared = 0;
		return;
	}
	stop__requested = 1;
	timer_settime(tick, 0, &again, NULL); /* async-signal-safe */
	errno = saved;
}

static void on_ledger(int sig)
{
	ledger_wanted = 1;
}

static void on_tick(int sig)
{
}

static int catch (int sig, void (*handler)(int))
{
	/* No SA_RESTART: a signal has to end the call that waits. */
	struct sigaction action = {.sa_handler = handler};

	sigemptyset(&action.sa_mask);
	return sigaction(sig, &action, NULL) ? -errno : 0;
}

int stop__install(int spare_first_interrupt)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
	int err;

	spared = spare_first_interrupt;
	if (timer_create(CLOCK_MONOTONIC, &event, &tick))
		return -errno;
	err = catch (SIGALRM, on_tick);
	if (!err)
		err = catch (SIGINT, on_stop);
	if (!err)
		err = catch (SIGTERM, on_stop);
	if (!err)
		err = catch (SIGHUP, on_stop);
	if (!err)
		err = catch (SIGUSR1, on_ledger);
	if (!err)
		err = catch (SIGPIPE, SIG_IGN);
	return err;
}

void stop__request(void)
{
	stop__requested = 1;
}

int stop__ledger_wanted(void)
{
	int wanted = ledger_wanted;

	ledger_wanted = 0;
	return wanted;
}
