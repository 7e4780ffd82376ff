/* SPDX-License-Identifier: BSD-2-Clause */
#include "measure/steady.h"
#include "measure/ordinary.h"
#include "measure/sample.h"

#include <err.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SPIN_RATE 10000u /* from here on the load waits with a loop, and not with a timer */

void steady__sleep_until(uint64_t due_ns)
{
	struct timespec due = {
		.tv_sec = (time_t)(due_ns / 1000000000),
		.tv_nsec = (long)(due_ns % 1000000000),
	};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
}

/* Each call is an event: at low rates the sleep itself. */
static void *make_calls(void *ctx)
{
	struct steady *load = ctx;
	uint64_t next_ns = sample__now_ns();

	ordinary__be();
	sample__pin(load->cpu);
	__atomic_store_n(&load->tid, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
	while (load->rate && !__atomic_load_n(&load->stop, __ATOMIC_RELAXED)) {
		next_ns += 1000000000 / load->rate;
		if (load->rate < SPIN_RATE) {
			steady__sleep_until(next_ns);
		} else {
			while (sample__now_ns() < next_ns)
				;
			syscall(SYS_getppid);
		}
		load->calls++;
	}
	return NULL;
}

void steady__start(struct steady *load, unsigned rate, int cpu)
{
	*load = (struct steady){.rate = rate, .cpu = cpu};
	errno = pthread_create(&load->thread, NULL, make_calls, load);
	if (errno)
		err(1, "a thread");
	while (!__atomic_load_n(&load->tid, __ATOMIC_ACQUIRE))
		sched_yield();
}

void steady__stop(struct steady *load)
{
	__atomic_store_n(&load->stop, true, __ATOMIC_RELAXED);
	pthread_join(load->thread, NULL);
}

static void *spin(void *ctx)
{
	const struct busy *busy = ctx;

	ordinary__be();
	while (!__atomic_load_n(&busy->stop, __ATOMIC_RELAXED))
		;
	return NULL;
}

void busy__start(struct busy *busy)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	*busy = (struct busy){.count = cpus > 0 ? (unsigned)cpus : 1};
	busy->thread = calloc(busy->count, sizeof(*busy->thread));
	if (!busy->thread)
		err(1, "threads");
	for (unsigned i = 0; i < busy->count; i++) {
		errno = pthread_create(&busy->thread[i], NULL, spin, busy);
		if (errno)
			err(1, "a thread");
	}
}

void busy__stop(struct busy *busy)
{
	__atomic_store_n(&busy->stop, true, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < busy->count; i++)
		pthread_join(busy->thread[i], NULL);
	free(busy->thread);
}
