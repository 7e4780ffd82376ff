/* SPDX-License-Identifier: BSD-2-Clause */
#include "measure/sample.h"

#include <err.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t read_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

uint64_t sample__now_ns(void)
{
	return read_ns(CLOCK_MONOTONIC);
}

uint64_t sample__cpu_ns(void)
{
	return read_ns(CLOCK_THREAD_CPUTIME_ID);
}

void sample__add(struct sample *sample, double value)
{
	if (sample->count == sample->cap) {
		sample->cap = sample->cap ? sample->cap * 2 : 64;
		sample->value = realloc(sample->value, sample->cap * sizeof(*sample->value));
		if (!sample->value)
			err(1, "%zu samples", sample->cap);
	}
	sample->value[sample->count++] = value;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double sample__quantile(struct sample *sample, double q)
{
	if (!sample->count)
		return 0;
	qsort(sample->value, sample->count, sizeof(*sample->value), compare);
	return sample->value[(size_t)(q * (double)(sample->count - 1))];
}

void sample__free(struct sample *sample)
{
	free(sample->value);
	memset(sample, 0, sizeof(*sample));
}

void sample__pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		err(1, "CPU %d", cpu);
}
