/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * event.h - what a consumer of the stream sees: records in order, and gaps where some were lost.
 */
#ifndef WEIR_EVENT_H
#define WEIR_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Why records are missing. Names: weir_cause__name(). Order is ABI; new causes go to the end. */
enum weir_cause {
	WEIR_LOST_RESERVE_FAILED = 0, /* ring full, its lock busy, or no ring on this CPU yet */
	WEIR_LOST_SKIPPED,	      /* the kernel skipped a program that was already running */
	WEIR_LOST_UNSEEN,	      /* the kernel never showed the event to its probe */
	WEIR_LOST_THROTTLED,	      /* perf stopped an event for a while */
	WEIR_LOST_DEAD_EVENT,	      /* a perf event died with its CPU */
	WEIR_LOST_LATE,		      /* behind the watermark, and the policy is to drop */
	WEIR_LOST_HELD,	       /* the watermark was held until the memory bound was reached */
	WEIR_LOST_BROKEN,      /* the record's bytes make no sense */
	WEIR_LOST_OFFLINE,     /* the CPU was offline: a hole in time, not in records */
	WEIR_LOST_OUTPUT,      /* delivered to a sink that could not write it out */
	WEIR_LOST_PAUSED,      /* a deliberate pause */
	WEIR_LOST_OVERWRITTEN, /* in an overwritable ring, between two snapshots */
	WEIR_LOST_CAUSES
};

/* What a count of lost records is worth. */
enum weir_bound {
	WEIR_BOUND_EXACT = 0,
	WEIR_BOUND_AT_MOST, /* the true number is between 0 and the count */
	WEIR_BOUND_UNKNOWN, /* the count says nothing; print `unknown`, never 0 */
};

/* Records of one source lost in (from_ns, to_ns]. */
struct weir_gap {
	uint64_t from_ns;
	uint64_t to_ns;
	uint64_t lost;
	enum weir_cause cause;
	enum weir_bound bound;
	/*
	 * The numbers of the lost ones lie in [seq of the event, seq_end). 0: they stand together, so
	 * that it is seq + lost; other numbers lie between them where losses were joined.
	 */
	uint64_t seq_end;
};

/* The wall clock was set, or the machine slept: wall = stamp + offset changes here. */
struct weir_clock_step {
	int64_t old_offset_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC before */
	int64_t new_offset_ns; /* and from here on */
	uint64_t suspended_ns; /* of the change, the time spent in suspend */
};

enum weir_kind {
	WEIR_KIND_RECORD = 0,
	WEIR_KIND_GAP,	      /* data: struct weir_gap */
	WEIR_KIND_CLOCK_STEP, /* data: struct weir_clock_step */
};

/* struct weir_event.mark */
#define WEIR_MARK_LATE	(1u << 0) /* behind a watermark that was announced, or a stopped poll */
#define WEIR_MARK_AHEAD (1u << 1) /* stamp beyond the clock: delivered at once, out of order */

#define WEIR_SOURCE_NONE UINT32_MAX /* the event belongs to the whole machine */

/*
 * One delivered event. A borrowed view: it and what `data` points to are valid inside the callback
 * only; copy what has to live longer.
 */
struct weir_event {
	uint64_t stamp_ns; /* as the kernel took it, never altered; a gap stands at its to_ns */
	uint64_t seq; /* position among the source's attempts, 64 bits; a gap's first lost one */
	const void *data; /* RECORD: the payload after struct weir_record */
	uint32_t len;	  /* bytes at data */
	uint32_t source;  /* weir_stream__source() names it */
	int32_t cpu;	  /* -1: unknown */
	uint16_t type;	  /* RECORD: weir_record.type, flags */
	uint16_t flags;
	uint8_t kind; /* enum weir_kind */
	uint8_t mark; /* WEIR_MARK_* */
	uint8_t pad[6];
};

/* The name of a cause, as the ledger's JSON has it ("reserve_failed"). Never NULL. Thread-safe. */
const char *weir_cause__name(enum weir_cause cause);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_EVENT_H */
