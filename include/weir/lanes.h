/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lanes.h - rings with a single writer, read CPU by CPU, each in its own order.
 *
 * For what needs no order between CPUs, such as accounting: no merge, no copy, records are handed out
 * where they lie. Each CPU is a lane. What was lost is told at its place, and how far the lane is
 * complete.
 */
#ifndef WEIR_LANES_H
#define WEIR_LANES_H

#include <weir/event.h>
#include <weir/record.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What is told of one lane in one poll: records and gaps in the order of time, then the watermark.
 * Borrowed: valid during the call only.
 */
struct weir_lanes_reader {
	/* `count` records whose numbers follow each other, `stride` bytes from one to the next. */
	void (*records)(void *ctx, int cpu, const struct weir_record *first, size_t stride,
			size_t count);
	/*
	 * `lost` records between two others, or after the last: what happened in (from_ns, to_ns] is
	 * not known. from_ns is at or behind the last record and the last watermark. A gap at the end
	 * of a poll reaches up to the watermark that follows, and is continued in the next one, until a
	 * record comes: then `lost` may be 0, and the time counts all the same.
	 */
	void (*gap)(void *ctx, int cpu, uint64_t from_ns, uint64_t to_ns, uint64_t lost);
	/*
	 * All that is stamped at or before watermark_ns has been told. away: the CPU has been offline
	 * since its last record. Only called when the watermark has moved.
	 */
	void (*watermark)(void *ctx, int cpu, uint64_t watermark_ns, bool away);
};

#ifdef __cplusplus
}
#endif

#endif /* WEIR_LANES_H */
