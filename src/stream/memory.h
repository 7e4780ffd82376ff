/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memory.h - a stream over rings that live in plain memory, on a clock that the caller owns.
 *
 * For tests, benches and file readers: nothing here asks the kernel for anything but memory and
 * descriptors, weir_stream__poll(s, 0) on such a stream is exactly one round of the snapshot protocol.
 * Internal: not exported.
 */
#ifndef WEIR_STREAM_MEMORY_H
#define WEIR_STREAM_MEMORY_H

#include <weir/perf.h>
#include <weir/record.h>
#include <weir/stream.h>

#include "ring/perf_layout.h"
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

/*
 * A ring that is not written through weir.bpf.h, in plain memory: a forward perf ring (mapped once), or
 * a BPF ring buffer of any payload (mapped twice). Everything is borrowed until weir_stream__free().
 */
struct weir_memory_outside {
	const char *name; /* copied */
	int cpu;
	const void *data;
	size_t size; /* power of two */
	const uint64_t *producer;
	uint64_t *consumer;
	enum weir_fence_kind fence;
	uint64_t grace_ns;
	/* Records lost since the ring is there, or UINT64_MAX: not known now. NULL: nobody counts. */
	uint64_t (*lost)(void *ctx);
	void *ctx;
};

int weir_stream__add_memory_perf(struct weir_stream *stream,
				 const struct weir_memory_outside *memory,
				 const struct perf_layout *layout, bool payload);
int weir_stream__add_memory_ringbuf(struct weir_stream *stream,
				    const struct weir_memory_outside *memory,
				    uint32_t stamp_offset);

/*
 * A backward perf ring, mapped once, that only weir_stream__snapshot() looks at; not PAUSED, for that is
 * the kernel's to do. producer: its head, from 0 down; no consumer, and no count of what is lost.
 */
int weir_stream__add_memory_overwritable(struct weir_stream *stream,
					 const struct weir_memory_outside *memory,
					 const struct perf_layout *layout);

/* wait(ctx) returns after a grace period: in place of the kernel's, before the first ring that needs one. */
int weir_stream__set_fence(struct weir_stream *stream, int (*wait)(void *ctx), void *ctx);

/*
 * The T of the newest grace period that is over, in place of the kernel's: before the first of those
 * that need it is added. Asked once a round, before its clock is read.
 */
void weir_stream__set_ticket(struct weir_stream *stream, uint64_t (*ticket_ns)(void *ctx),
			     void *ctx);

/* Replace the kernel's clock; before the first poll. `clock` is copied. */
void weir_stream__set_clock(struct weir_stream *stream, const struct weir_clock *clock);

/* Watch a counter of skipped runs that is not a BPF program's: read(ctx) gives the total so far. */
int weir_stream__watch_misses(struct weir_stream *stream, const char *name,
			      uint64_t (*read)(void *ctx), void *ctx);

/* The CPU went away (false) or came back (true): what the hotplug watcher calls. */
void weir_stream__cpu_changed(struct weir_stream *stream, int cpu, bool online);

#endif /* WEIR_STREAM_MEMORY_H */
