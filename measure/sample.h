/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sample.h - repeated measurements of one thing. On a machine that others use too, the least of
 * them is what it costs; the median says how noisy the machine was.
 */
#ifndef WEIR_MEASURE_SAMPLE_H
#define WEIR_MEASURE_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

struct sample {
	double *value;
	size_t count, cap;
};

uint64_t sample__now_ns(void);
/* What this thread has had of a CPU: others that were on it don't count, interrupts do. */
uint64_t sample__cpu_ns(void);

/* Exits with a message when there is no memory. */
void sample__add(struct sample *sample, double value);
/* Of a sample with nothing in it: 0. Sorts it. */
double sample__quantile(struct sample *sample, double q);
void sample__free(struct sample *sample);

static inline double sample__min(struct sample *sample)
{
	return sample__quantile(sample, 0);
}

static inline double sample__median(struct sample *sample)
{
	return sample__quantile(sample, 0.5);
}

/* Keep this process on one CPU; it exits with a message when it can't. */
void sample__pin(int cpu);

#endif /* WEIR_MEASURE_SAMPLE_H */
