/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memory.h - a stream over rings that live in plain memory, on a clock that the caller owns.
 *
 * For tests, benches and file readers: nothing here makes a system call, weir_stream__poll(s, 0) on
 * such a stream is exactly one round of the snapshot protocol. Internal: not exported.
 */
#ifndef WEIR_STREAM_MEMORY_H
#define WEIR_STREAM_MEMORY_H

#include <weir/record.h>
#include <weir/stream.h>

#include "source/clock.h"

/*
 * A BPF ring buffer as the kernel lays it out: positions are free-running byte counts, each record
 * is an 8-byte header { u32 len | BUSY (bit 31) | DISCARD (bit 30); u32 pg_off } and `len` bytes,
 * the next one stands at the next multiple of 8. `data` must be mapped twice in succession
 * (2 * size bytes), as the kernel does, so that no record wraps.
 */
struct weir_memory_ring {
	const char *name; /* copied */
	int cpu;
	const void *data;
	size_t size;		  /* power of two */
	const uint64_t *producer; /* the writer's position: loaded with acquire */
	uint64_t *consumer;	  /* the reader's tail: stored with release */
	const struct weir_counters *counters;
};

/*
 * Add one; returns its source index, or a negative errno. Sources are ordered (ties, G7) by index,
 * in the order in which they are added. Numbers are expected from counters->attempts on: add a ring
 * before its first record. Everything is borrowed until weir_stream__free().
 */
int weir_stream__add_memory_ring(struct weir_stream *stream, const struct weir_memory_ring *ring);

/* Replace the kernel's clock; before the first poll. `clock` is copied. */
void weir_stream__set_clock(struct weir_stream *stream, const struct weir_clock *clock);

/* Watch a counter of skipped runs that is not a BPF program's: read(ctx) gives the total so far. */
int weir_stream__watch_misses(struct weir_stream *stream, const char *name,
			      uint64_t (*read)(void *ctx), void *ctx);

/* The CPU went away (false) or came back (true): what the hotplug watcher calls. */
void weir_stream__cpu_changed(struct weir_stream *stream, int cpu, bool online);

#endif /* WEIR_STREAM_MEMORY_H */
