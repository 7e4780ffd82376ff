/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/stop.h"

#include "sinks/out.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define TICK_NS	     50000000
#define NSEC_PER_SEC 1000000000ull

volatile int stop__requested, stop__signal;
static volatile sig_atomic_t ledger_wanted;
static timer_t tick;
static volatile sig_atomic_t spared;
static uint64_t end_ns; /* 0: none; set before its timer */
static volatile sig_atomic_t hangup_asks, hangup_came;

static void on_stop(int sig)
{
	const struct itimerspec again = {{0, TICK_NS}, {0, TICK_NS}};
	int saved = errno;

	if (sig == SIGINT && spared) {
		spared = 0;
		return;
	}
	if (sig == SIGHUP && hangup_asks) {
		hangup_came = 1;
		return;
	}
	stop__signal = sig;
	stop__requested = OUT_STOP;
	timer_settime(tick, 0, &again, NULL); /* async-signal-safe */
	errno = saved;
}

static void on_ledger(int sig)
{
	ledger_wanted = 1;
}

static void on_tick(int sig)
{
	struct timespec now;
	int saved = errno;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (end_ns && !stop__requested &&
	    (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec >= end_ns)
		stop__requested = OUT_STOP_PATIENTLY;
	errno = saved;
}

static const struct {
	int sig;
	void (*handler)(int);
} caught[] = {
	{SIGALRM, on_tick},
	{SIGINT, on_stop},
	{SIGTERM, on_stop},
	{SIGHUP, on_stop},
	{SIGUSR1, on_ledger},
	{SIGPIPE, SIG_IGN},
	/* A write beyond RLIMIT_FSIZE fails instead, and what it leaves out is counted. */
	{SIGXFSZ, SIG_IGN},
};

#define N_CAUGHT (sizeof(caught) / sizeof(caught[0]))

/* What the caller had in place of them; of the first nr_before. */
static struct sigaction before[N_CAUGHT];
static unsigned nr_before;

static int catch_one(unsigned i)
{
	/* No SA_RESTART: a signal has to end the call that waits. */
	struct sigaction action = {.sa_handler = caught[i].handler};
	int sig = caught[i].sig;

	sigemptyset(&action.sa_mask);
	if (sigaction(sig, NULL, &before[i]))
		return -errno;
	nr_before = i + 1;
	/* nohup asks for it. */
	if (sig == SIGHUP && before[i].sa_handler == SIG_IGN && !hangup_asks)
		return 0;
	return sigaction(sig, &action, NULL) ? -errno : 0;
}

int stop__install(int spare_first_interrupt)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
	int err = 0;

	spared = spare_first_interrupt;
	if (timer_create(CLOCK_MONOTONIC, &event, &tick))
		return -errno;
	for (unsigned i = 0; i < N_CAUGHT && !err; i++)
		err = catch_one(i);
	return err;
}

void stop__at(uint64_t at_ns)
{
	const struct itimerspec at = {
		.it_interval = {0, TICK_NS},
		.it_value = {(time_t)(at_ns / NSEC_PER_SEC), (long)(at_ns % NSEC_PER_SEC)},
	};

	end_ns = at_ns;
	timer_settime(tick, TIMER_ABSTIME, &at, NULL);
}

void stop__spare_no_more(void)
{
	spared = 0;
}

void stop__restore(void)
{
	for (unsigned i = 0; i < nr_before; i++)
		sigaction(caught[i].sig, &before[i], NULL);
}

int stop__ledger_wanted(void)
{
	int wanted = ledger_wanted;

	ledger_wanted = 0;
	return wanted;
}

void stop__hangup_asks(void)
{
	hangup_asks = 1;
}

int stop__hangup_came(void)
{
	int came = hangup_came;

	hangup_came = 0;
	return came;
}
