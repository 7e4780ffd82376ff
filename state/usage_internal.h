/* SPDX-License-Identifier: BSD-2-Clause */
/* usage_internal.h - what usage.c (what a record means) and snapshot.c (what it all comes to) share. */
#ifndef WEIR_STATE_USAGE_INTERNAL_H
#define WEIR_STATE_USAGE_INTERNAL_H

#include "state/runners.h"
#include "state/slices.h"
#include "state/usage.h"
#include "state/waits.h"

struct usage_cpu {
	struct slices slices;
	uint64_t watermark_ns;
	uint64_t counter[WEIR_LEAN_COUNTERS]; /* at the open slice's begin */
	uint32_t counted;		      /* bits of those that could be read there */
	uint32_t next_seq;
	uint32_t losses;
	bool has_seq, away;
};

struct usage {
	struct runners runners;
	struct waits waits;
	struct usage_cpu **cpus; /* by id; NULL: not seen */
	uint32_t nr_cpus;	 /* slots */
	uint64_t begin_ns, from_ns;
	uint64_t switches, switches_seen;
	uint32_t counters; /* bits of those that could be read */
	struct usage_trouble trouble;

	struct usage_snapshot snapshot;
	struct usage_row *rows;
	struct usage_cpu_row *cpu_rows;
	size_t rows_room, cpu_rows_room;
	/* Of the names in rows, those that were taken for the snapshot. */
	struct name **names;
	size_t nr_names, names_room;
};

static inline struct runner *runner_of(const struct usage_cpu *cpu)
{
	if (cpu->slices.of != SLICE_TASK)
		return NULL;
	return list__entry(cpu->slices.owner, struct runner, account);
}

uint64_t usage__least_watermark(const struct usage *usage);

/* Give back what the last snapshot holds. */
void snapshot__drop(struct usage *usage);

#endif /* WEIR_STATE_USAGE_INTERNAL_H */
