/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wake - what a reader costs that sleeps until there is something, and how late it is.
 *
 * One thread on one CPU makes system calls at a steady rate; a record of each goes through weir.bpf.h
 * to a reader that does nothing but poll, on any CPU. CPU time of the reader with an empty callback;
 * then, in a run of its own, the time from stamp to callback. `naps` is a thread that sleeps for a
 * millisecond again and again, and nothing else: what that costs on this machine.
 */
#include "measure/hook.h"
#include "measure/sample.h"

#include <err.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define RING_BYTES (4u << 20)
#define SPIN_RATE  10000u /* from here on the load waits with a loop, and not with a timer */

#define TARGET_IDLE_PERCENT 0.1
#define TARGET_BUSY_PERCENT 6.0 /* at TARGET_BUSY_RATE */
#define TARGET_BUSY_RATE    200000u
#define TARGET_P99_US	    2000.0

struct load {
	pthread_t thread;
	int tid;
	unsigned rate; /* calls a second; 0: none */
	int cpu;       /* where it runs */
	bool stop;
	uint64_t calls;
};

struct reader {
	struct hook hook;
	int load_cpu;
	bool timing; /* each event's lag goes into the sample */
	uint64_t events;
	struct sample lag_us;
};

static int on_event(void *ctx, const struct weir_event *event)
{
	struct reader *reader = ctx;

	if (event->kind != WEIR_KIND_RECORD)
		return 0;
	reader->events++;
	if (reader->timing)
		sample__add(&reader->lag_us, (double)(sample__now_ns() - event->stamp_ns) / 1000);
	return 0;
}

static void sleep_until(uint64_t due_ns)
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
	struct load *load = ctx;
	uint64_t next_ns = sample__now_ns();

	sample__pin(load->cpu);
	__atomic_store_n(&load->tid, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
	while (load->rate && !__atomic_load_n(&load->stop, __ATOMIC_RELAXED)) {
		next_ns += 1000000000 / load->rate;
		if (load->rate < SPIN_RATE) {
			sleep_until(next_ns);
		} else {
			while (sample__now_ns() < next_ns)
				;
			syscall(SYS_getppid);
		}
		load->calls++;
	}
	return NULL;
}

static void start_load(struct load *load, unsigned rate, int cpu)
{
	*load = (struct load){.rate = rate, .cpu = cpu};
	errno = pthread_create(&load->thread, NULL, make_calls, load);
	if (errno)
		err(1, "a thread");
	while (!__atomic_load_n(&load->tid, __ATOMIC_ACQUIRE))
		sched_yield();
}

static void stop_load(struct load *load)
{
	__atomic_store_n(&load->stop, true, __ATOMIC_RELAXED);
	pthread_join(load->thread, NULL);
}

static struct weir_ledger ledger_of(const struct weir_stream *stream)
{
	struct weir_ledger ledger = {.sz = sizeof(ledger)};

	weir_stream__ledger(stream, &ledger);
	return ledger;
}

static uint64_t lost(const struct weir_ledger *ledger)
{
	uint64_t sum = 0;

	for (int cause = 0; cause < WEIR_LOST_CAUSES; cause++)
		sum += ledger->total.lost[cause];
	return sum;
}

struct result {
	double rate, polls; /* a second */
	double cpu_percent;
	uint64_t lost;
};

static void poll_for(struct weir_stream *stream, double seconds)
{
	uint64_t end_ns = sample__now_ns() + (uint64_t)(seconds * 1e9), now_ns;

	while ((now_ns = sample__now_ns()) < end_ns)
		if (weir_stream__poll(stream, (int)((end_ns - now_ns + 999999) / 1000000)) < 0)
			errx(1, "the stream fails");
}

static struct result run(struct reader *reader, unsigned rate, double seconds, bool timing)
{
	struct weir_stream *stream = reader->hook.stream;
	struct weir_ledger before, after;
	uint64_t begin_ns, cpu_ns, events;
	double took;
	struct load load;
	struct result result;

	start_load(&load, rate, reader->load_cpu);
	hook__set_load(&reader->hook, load.tid);
	poll_for(stream, 0.2);
	reader->timing = timing;
	events = reader->events;
	before = ledger_of(stream);
	begin_ns = sample__now_ns();
	cpu_ns = sample__cpu_ns();
	poll_for(stream, seconds);
	cpu_ns = sample__cpu_ns() - cpu_ns;
	took = (double)(sample__now_ns() - begin_ns) / 1e9;
	after = ledger_of(stream);
	result = (struct result){
		.rate = (double)(reader->events - events) / took,
		.polls = (double)(after.polls - before.polls) / took,
		.cpu_percent = (double)cpu_ns / 1e7 / took,
		.lost = lost(&after) - lost(&before),
	};
	reader->timing = false;
	stop_load(&load);
	hook__set_load(&reader->hook, 0);
	return result;
}

static void print_naps(double seconds)
{
	uint64_t begin_ns = sample__now_ns(), now_ns, cpu_ns = sample__cpu_ns(), naps = 0;

	for (now_ns = begin_ns; (double)(now_ns - begin_ns) < seconds * 1e9; naps++) {
		sleep_until(now_ns + 1000000);
		now_ns = sample__now_ns();
	}
	printf("%9s %10s %6s %8.0f %8.3f\n", "naps", "-", "-",
	       (double)naps * 1e9 / (double)(now_ns - begin_ns),
	       (double)(sample__cpu_ns() - cpu_ns) * 100 / (double)(now_ns - begin_ns));
}

static const char *verdict(bool met)
{
	return met ? "met" : "MISSED";
}

static void print_row(unsigned rate, const struct result *result, struct sample *lag_us)
{
	double p99 = sample__quantile(lag_us, 0.99);

	printf("%9u %10.0f %6lu %8.0f %8.3f", rate, result->rate, result->lost, result->polls,
	       result->cpu_percent);
	if (rate)
		printf(" %9.1f %9.1f %9.1f", sample__median(lag_us), p99,
		       sample__quantile(lag_us, 1));
	else
		printf(" %9s %9s %9s", "-", "-", "-");
	if (!rate)
		printf("  CPU < %.1f %%: %s", TARGET_IDLE_PERCENT,
		       verdict(result->cpu_percent < TARGET_IDLE_PERCENT));
	else
		printf("  p99 < %.0f us: %s", TARGET_P99_US, verdict(p99 < TARGET_P99_US));
	if (rate == TARGET_BUSY_RATE)
		printf(", CPU < %.0f %%: %s", TARGET_BUSY_PERCENT,
		       verdict(result->cpu_percent < TARGET_BUSY_PERCENT));
	printf("\n");
	fflush(stdout);
}

static void measure(struct reader *reader, unsigned rate, double seconds)
{
	struct result result = run(reader, rate, seconds, false);

	sample__free(&reader->lag_us);
	if (rate)
		run(reader, rate, seconds, true);
	print_row(rate, &result, &reader->lag_us);
}

static void usage(void)
{
	errx(2, "usage: wake [-c CPU] [-t SECONDS] [-r EVENTS_A_SECOND]");
}

int main(int argc, char **argv)
{
	const unsigned all_rates[] = {0, 100, 10000, TARGET_BUSY_RATE};
	struct reader reader = {0};
	struct bpf_link *link;
	double seconds = 3;
	int opt, rate = -1;

	while ((opt = getopt(argc, argv, "c:t:r:")) != -1) {
		if (opt == 'c')
			reader.load_cpu = atoi(optarg);
		else if (opt == 't')
			seconds = atof(optarg);
		else if (opt == 'r')
			rate = atoi(optarg);
		else
			usage();
	}
	if (optind != argc)
		usage();
	hook__open(&reader.hook, 0, RING_BYTES, on_event, &reader);
	link = bpf_program__attach(reader.hook.skel->progs.record);
	if (!link)
		err(1, "the program cannot be attached");
	printf("%9s %10s %6s %8s %8s %9s %9s %9s\n", "rate", "events/s", "lost", "polls/s",
	       "CPU, %", "p50, us", "p99, us", "max, us");
	print_naps(seconds);
	if (rate >= 0)
		measure(&reader, (unsigned)rate, seconds);
	for (size_t i = 0; rate < 0 && i < sizeof(all_rates) / sizeof(all_rates[0]); i++)
		measure(&reader, all_rates[i], seconds);
	bpf_link__destroy(link);
	hook__close(&reader.hook);
	return 0;
}
