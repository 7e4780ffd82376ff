/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf.h - what the files of the stream share about perf events: a group for each call of
 * weir_stream__add_perf() or weir_stream__add_perf_array().
 */
#ifndef WEIR_STREAM_PERF_H
#define WEIR_STREAM_PERF_H

#include "source/perf.h"
#include "stream/internal.h"

struct perf_group;

/* One CPU of a group. */
struct perf_cpu {
	struct perf_group *group;
	uint32_t cpu;
	uint32_t source;      /* WEIR_SOURCE_NONE: was never online */
	uint64_t lost_before; /* by rings that this one has had before */
	uint64_t enabled_ns;  /* of its events, at the last look; 0: none yet */
};

struct perf_group {
	struct source_perf source;
	struct perf_layout layout; /* of all its rings */
	char name[16];
	enum proof proof;
	uint64_t grace_ns;
	bool payload;	       /* show what a BPF program has written, not perf's record */
	struct perf_cpu *cpus; /* by id, as many as source.nr_cpus */
};

static inline struct ring *perf_cpu__ring(const struct weir_stream *s, const struct perf_cpu *c)
{
	return c->source == WEIR_SOURCE_NONE ? NULL : s->by_source[c->source];
}

#endif /* WEIR_STREAM_PERF_H */
