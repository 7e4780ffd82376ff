/* SPDX-License-Identifier: BSD-2-Clause */
/* summary.h - what all calls come to, as a table for people and as one JSON object. */
#ifndef WEIR_SINKS_SUMMARY_H
#define WEIR_SINKS_SUMMARY_H

#include <stddef.h>
#include <stdint.h>

struct out;

struct sink_summary_call {
	const char *name;
	uint64_t calls, errors;
	uint64_t timed; /* of the calls, those whose time is known; the rest of the row is theirs */
	uint64_t total_ns, p50_ns, p99_ns, max_ns;
};

struct sink_summary_process {
	uint32_t pid; /* 0: others, counted together */
	const char *comm;
	uint64_t calls, errors, timed, total_ns;
};

/* Rows in the order in which they are to be shown. */
struct sink_summary {
	const struct sink_summary_call *calls;
	size_t nr_calls;
	const struct sink_summary_process *processes;
	size_t nr_processes;
};

/*
 * Lines of at most 80 columns: up to max_calls and max_processes rows, and how many there are beyond.
 * Colours as the style of `out` has them.
 */
void sink__summary_text(struct out *out, const struct sink_summary *summary, size_t max_calls,
			size_t max_processes);

/* "calls":[...],"processes":[...]: members of an object, all rows. */
void sink__summary_json(struct out *out, const struct sink_summary *summary);

#endif /* WEIR_SINKS_SUMMARY_H */
