/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wake - what a reader costs that sleeps until there is something, and how late it is (measure/delay.h).
 * `naps` is a thread that sleeps for a millisecond again and again, and nothing else: what that costs on
 * this machine.
 */
#include "measure/delay.h"
#include "measure/steady.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TARGET_IDLE_PERCENT 0.1
#define TARGET_BUSY_PERCENT 6.0 /* at TARGET_BUSY_RATE */
#define TARGET_BUSY_RATE    200000u
#define TARGET_P99_US	    2000.0

static void print_naps(double seconds)
{
	uint64_t begin_ns = sample__now_ns(), now_ns, cpu_ns = sample__cpu_ns(), naps = 0;

	for (now_ns = begin_ns; (double)(now_ns - begin_ns) < seconds * 1e9; naps++) {
		steady__sleep_until(now_ns + 1000000);
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

static void print_row(unsigned rate, const struct delay_result *result, struct sample *lag_us)
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

static void measure(struct delay *reader, unsigned rate, double seconds)
{
	struct delay_result result = delay__run(reader, rate, seconds, false);

	sample__free(&reader->lag_us);
	if (rate)
		delay__run(reader, rate, seconds, true);
	print_row(rate, &result, &reader->lag_us);
}

static void usage(void)
{
	errx(2, "usage: wake [-c CPU] [-t SECONDS] [-r EVENTS_A_SECOND]");
}

int main(int argc, char **argv)
{
	const unsigned all_rates[] = {0, 100, 10000, TARGET_BUSY_RATE};
	struct delay reader;
	int cpu = 0;
	double seconds = 3;
	int opt, rate = -1;

	while ((opt = getopt(argc, argv, "c:t:r:")) != -1) {
		if (opt == 'c')
			cpu = atoi(optarg);
		else if (opt == 't')
			seconds = atof(optarg);
		else if (opt == 'r')
			rate = atoi(optarg);
		else
			usage();
	}
	if (optind != argc)
		usage();
	delay__open(&reader, DELAY_RESERVE, cpu);
	printf("%9s %10s %6s %8s %8s %9s %9s %9s\n", "rate", "events/s", "lost", "polls/s",
	       "CPU, %", "p50, us", "p99, us", "max, us");
	print_naps(seconds);
	if (rate >= 0)
		measure(&reader, (unsigned)rate, seconds);
	for (size_t i = 0; rate < 0 && i < sizeof(all_rates) / sizeof(all_rates[0]); i++)
		measure(&reader, all_rates[i], seconds);
	delay__close(&reader);
	return 0;
}
