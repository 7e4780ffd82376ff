/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage_feed.h - switches for the tests of usage.h, in a line each: from the lean probe, CPU by CPU, or
 * from a stream.
 */
#ifndef TESTS_USAGE_FEED_H
#define TESTS_USAGE_FEED_H

#include <stdlib.h>
#include <string.h>

#include "state/usage.h"

#define FEED_CPUS 1024
#define FEED_TIDS 4096

struct feed {
	struct usage *usage;
	bool lean;
	uint32_t seq[FEED_CPUS];
	uint64_t start_ns[FEED_TIDS]; /* of who has the tid; 0: 1 */
	uint32_t pid[FEED_TIDS];      /* 0: the tid */
};

#define FEED_SLEEPS  (1u << 0) /* how prev leaves; else it could go on */
#define FEED_DIES    (1u << 1)
#define FEED_UNSEEN  (1u << 2) /* lean alone */
#define FEED_RENAMED (1u << 3)
#define FEED_AWAY    (1u << 4)

static inline uint64_t feed__start_ns(const struct feed *feed, uint32_t tid)
{
	return tid ? (feed->start_ns[tid] ? feed->start_ns[tid] : 1) : 0;
}

static inline uint32_t feed__pid(const struct feed *feed, uint32_t tid)
{
	return feed->pid[tid] ? feed->pid[tid] : tid;
}

static inline uint16_t feed__lean_flags(uint32_t how)
{
	uint16_t flags = WEIR_LEAN_NO_TOTALS;

	if (how & FEED_SLEEPS)
		flags |= 1 << WEIR_LEAN_STATE_SHIFT;
	if (how & FEED_DIES)
		flags |= 0x80 << WEIR_LEAN_STATE_SHIFT;
	if (how & FEED_UNSEEN)
		flags |= WEIR_LEAN_UNSEEN;
	if (how & FEED_RENAMED)
		flags |= WEIR_LEAN_RENAMED;
	if (how & FEED_AWAY)
		flags |= WEIR_LEAN_AWAY;
	return flags;
}

/* A record as the probe writes it, in a piece of heap of its own that is freed at once. */
static inline void feed__record(struct feed *feed, int cpu, const struct weir_lean_counted *record,
				size_t size)
{
	void *copy = malloc(size);

	memcpy(copy, record, size);
	usage__records(feed->usage, cpu, copy, size, 1);
	free(copy);
}

static inline struct weir_lean feed__lean(struct feed *feed, int cpu, uint64_t stamp_ns,
					  uint32_t next, uint32_t how)
{
	return (struct weir_lean){
		.stamp = stamp_ns,
		.type = WEIR_T_LEAN_SWITCH,
		.flags = feed__lean_flags(how),
		.seq = feed->seq[cpu]++,
		.next_start_ns = feed__start_ns(feed, next),
		.next_tid = next,
		.next_pid = feed__pid(feed, next),
	};
}

static inline void feed__event(struct feed *feed, int cpu, uint64_t stamp_ns, uint16_t type,
			       const void *data, size_t len, uint8_t mark)
{
	void *copy = malloc(len);
	struct weir_event event = {
		.stamp_ns = stamp_ns,
		.data = copy,
		.len = (uint32_t)len,
		.cpu = cpu,
		.type = type,
		.mark = mark,
	};

	memcpy(copy, data, len);
	usage__apply(feed->usage, &event);
	usage__sched(feed->usage, &event);
	free(copy);
}

/* (cpu, stamp, prev>next) */
static inline void feed__switch(struct feed *feed, int cpu, uint64_t stamp_ns, uint32_t prev,
				uint32_t next, uint32_t how)
{
	struct weir_lean_counted record = {.lean = {0}};
	struct weir_switch sw = {
		.prev = {feed__pid(feed, prev), prev},
		.next = {feed__pid(feed, next), next},
		.prev_state = (how & FEED_SLEEPS ? 1u : 0) | (how & FEED_DIES ? 0x80u : 0),
	};

	if (feed->lean) {
		record.lean = feed__lean(feed, cpu, stamp_ns, next, how);
		feed__record(feed, cpu, &record, sizeof(record.lean));
	} else {
		feed__event(feed, cpu, stamp_ns, WEIR_T_SWITCH, &sw, sizeof(sw), 0);
	}
}

/* This CPU runs that. A stream has no such record: the switch to it will do. */
static inline void feed__seed(struct feed *feed, int cpu, uint64_t stamp_ns, uint32_t runs)
{
	struct weir_lean_counted record = {.lean = feed__lean(feed, cpu, stamp_ns, runs, 0)};

	if (!feed->lean) {
		feed__switch(feed, cpu, stamp_ns, FEED_TIDS - 1, runs, FEED_SLEEPS);
		return;
	}
	record.lean.type = WEIR_T_LEAN_SEED;
	record.lean.flags = 0;
	feed__record(feed, cpu, &record, sizeof(record.lean));
}

/* `count` records, which had numbers, between from and to. */
static inline void feed__lost(struct feed *feed, int cpu, uint64_t from_ns, uint64_t to_ns,
			      uint32_t count)
{
	struct weir_gap gap = {.from_ns = from_ns, .to_ns = to_ns, .lost = count};
	struct weir_event event = {
		.kind = WEIR_KIND_GAP,
		.stamp_ns = to_ns,
		.data = &gap,
		.len = sizeof(gap),
		.cpu = cpu,
	};

	feed->seq[cpu] += count;
	if (feed->lean)
		usage__gap(feed->usage, cpu, from_ns, to_ns, count);
	else
		usage__sched(feed->usage, &event);
}

/* Everything up to there has been told, of all CPUs that were heard of. */
static inline const struct usage_snapshot *feed__take(struct feed *feed, uint64_t watermark_ns)
{
	usage__passed(feed->usage, watermark_ns);
	usage__polled(feed->usage);
	return usage__take(feed->usage);
}

static inline const struct usage_row *feed__row(const struct usage_snapshot *snapshot,
						enum usage_kind kind, uint32_t id,
						uint64_t start_ns)
{
	for (size_t i = 0; i < snapshot->nr_rows; i++) {
		const struct usage_row *row = &snapshot->rows[i];

		if (row->kind != kind)
			continue;
		if (kind == USAGE_THREAD
			    ? row->tid == id && (!start_ns || row->start_ns == start_ns)
			    : row->cpu == (int32_t)id)
			return row;
	}
	return NULL;
}

#endif /* TESTS_USAGE_FEED_H */
