/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ledger.h - the account of every record.
 *
 *	produced = delivered + filtered + pending + lost		(for every source, and in all)
 *
 * `produced` comes from the kernel-side counters, the right side from what the reader saw: the two
 * are counted apart, so that the sum is a check and not a definition.
 */
#ifndef WEIR_LEDGER_H
#define WEIR_LEDGER_H

#include <weir/event.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_account {
	uint64_t produced;  /* kernel-side attempts, plus filtered, plus skipped */
	uint64_t delivered; /* records handed to the event callback, late ones included */
	uint64_t filtered;  /* turned away by the selection, in the kernel or by the consumer */
	uint64_t pending;   /* counted by the kernel, neither delivered nor given up yet */
	uint64_t late;	    /* of delivered, those flagged late */
	uint64_t ahead;	    /* of delivered, those stamped beyond the clock */
	uint64_t self;	    /* the reader's own events, left out; not part of the sum */
	uint64_t unread;    /* strings in delivered records that could not be read */
	uint64_t
		failed; /* reserves that failed, as the kernel-side counter has it: a check on lost */
	uint64_t stray; /* records whose number came twice: dropped, not part of the sum */
	uint64_t lost[WEIR_LOST_CAUSES];
	uint8_t bound[WEIR_LOST_CAUSES]; /* enum weir_bound for each cause */
};

/* One source, for the ledger and for messages. Strings live as long as the stream. */
struct weir_source_info {
	const char *name; /* "cpu0", "life1" */
	int32_t cpu;
	bool online;
	struct weir_account account;
	uint64_t watermark_ns;	/* complete up to here */
	uint64_t busy_since_ns; /* a reserved, unfinished record holds the watermark; 0: none */
	uint64_t size_bytes;	/* of its ring; 0 when it has none yet */
	uint64_t max_fill_bytes;
};

enum weir_order {
	WEIR_ORDER_EXACT = 0, /* every watermark was proved by a fence */
	WEIR_ORDER_ESTIMATED, /* at least one was a grace period's */
};

struct weir_lag {
	uint64_t p50_ns, p99_ns, max_ns; /* from stamp to callback */
};

/* What waiting for grace periods took (fence.h); all 0 where no source needs it. */
struct weir_fence_stats {
	const char *door; /* "rcu" or "membarrier"; NULL: none. Lives as long as the stream */
	uint64_t tickets; /* grace periods */
	uint64_t p50_ns, p99_ns, max_ns;
	int error; /* why the last one failed, negative errno; 0: it did not */
};

struct weir_ledger {
	size_t sz; /* sizeof(struct weir_ledger), set by the caller: older callers stay valid */
	struct weir_account total;
	enum weir_order order;
	struct weir_lag lag;
	uint64_t watermark_ns;
	uint64_t polls;
	uint64_t held_bytes; /* copied out of rings while the watermark was held */
	uint64_t guard_ns;   /* the clock's guard in force */
	uint32_t sources;    /* how many; ask each with weir_stream__source() */
	struct weir_fence_stats fence;
	/*
	 * How far the kernel's clock is ahead of the one that the watermark goes by, as a handshake
	 * each second finds; 0: they are one, or nothing could be found out. If not, order is estimated.
	 */
	int64_t clock_off_ns;
	struct weir_lag
		lateness; /* of late records: from their stamp to the watermark they missed */
};

/*
 * The sum of an account's right side less its left; 0 when it closes. Causes whose bound is
 * UNKNOWN have no count to add.
 */
int64_t weir_account__difference(const struct weir_account *account);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_LEDGER_H */
