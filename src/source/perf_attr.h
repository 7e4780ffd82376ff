/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_attr.h - what a user wants of a perf event -> what perf_event_open(2) is told.
 */
#ifndef WEIR_SOURCE_PERF_ATTR_H
#define WEIR_SOURCE_PERF_ATTR_H

#include <weir/perf.h>
#include <weir/stream.h>

#include "source/reason.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERF_EVENT_NAME_MAX 128

struct source_perf_event {
	struct perf_event_attr attr;
	char *filter;			/* NULL: none */
	char name[PERF_EVENT_NAME_MAX]; /* for sentences: "sched:sched_switch", "event 1:9" */
};

/* What all events of a ring have in common. */
struct perf_ring_shape {
	size_t bytes;
	bool overwrite;
	enum weir_clock_id clock; /* of the stamps */
};

/*
 * Look up the tracepoint, complete the attributes; the filter is left to the caller. `tracefs`: where
 * it is mounted; NULL: where the kernel's places for it are.
 */
int perf_attr__complete(struct source_perf_event *event, const struct weir_perf_event *wanted,
			const struct perf_ring_shape *shape, const char *tracefs,
			const struct reason *reason);

/* A PERF_EVENT_ARRAY takes these. */
struct perf_event_attr perf_attr__bpf_output(void);

/* Why perf_event_open(2) would not have it, with the way out. Returns err. */
int perf_attr__explain_open(const struct source_perf_event *event, uint32_t cpu, int err,
			    const struct reason *reason);

#endif /* WEIR_SOURCE_PERF_ATTR_H */
