/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lane.c - the snapshot protocol (docs/design.md, section 3) on a ring with one writer.
 *
 * Owns what is known of a lane. Promises that records and gaps are told in the order of time, each
 * number once, and that (first record, watermark] is covered by them without a hole. Must not know of
 * maps or other lanes.
 *
 * A number is given out before the record is stamped and finished after it. So if all numbers below S
 * are finished, whatever is not below P was stamped after S was read, and that is after T.
 */
#include "source/lane.h"

#include <string.h>

static uint64_t load(const __u64 *from)
{
	return __atomic_load_n(from, __ATOMIC_ACQUIRE);
}

void lane__init(struct lane *lane, int cpu, struct weir_lane *shared, const void *data,
		uint64_t records, size_t stride)
{
	memset(lane, 0, sizeof(*lane));
	lane->cpu = cpu;
	lane->shared = shared;
	lane->ring = (struct single_writer){
		.data = data,
		.mask = records - 1,
		.stride = stride,
	};
}

/*
 * Each load is an acquire that pairs with the writer's stores, in the opposite order: it counts, then
 * fails or publishes. `failed` before `head`, so that their sum never has a number that P has not.
 */
struct lane_snapshot lane__look(const struct lane *lane)
{
	const struct weir_lane *shared = lane->shared;
	struct lane_snapshot snapshot = {.was_away = load(&shared->away) != 0};

	snapshot.attempts = load(&shared->attempts);
	snapshot.finished = load(&shared->failed);
	snapshot.head = load(&shared->head);
	snapshot.finished += snapshot.head;
	snapshot.limit = load(&shared->attempts);
	snapshot.is_away = load(&shared->away) != 0;
	return snapshot;
}

/* `missing` is told as a gap that ends at to_ns, and so is the time for which it is not known. */
static void tell_gap(struct lane *lane, uint64_t to_ns, const struct weir_lanes_reader *reader,
		     void *ctx)
{
	if (to_ns < lane->known_ns)
		to_ns = lane->known_ns;
	reader->gap(ctx, lane->cpu, lane->known_ns, to_ns, lane->missing);
	lane->account.lost += lane->missing;
	lane->missing = 0;
	lane->known_ns = to_ns;
}

/* Stamps beyond the clock are told as they are, and prove nothing. */
static void note_stamp(struct lane *lane, uint64_t stamp_ns, uint64_t now_ns)
{
	if (stamp_ns > lane->known_ns && stamp_ns <= now_ns)
		lane->known_ns = stamp_ns;
}

static void tell_run(struct lane *lane, const struct weir_record *first, uint64_t count,
		     uint64_t now_ns, const struct weir_lanes_reader *reader, void *ctx)
{
	size_t stride = lane->ring.stride;
	const struct weir_record *last =
		(const struct weir_record *)((const uint8_t *)first + (count - 1) * stride);

	if (lane->open)
		tell_gap(lane, first->stamp <= now_ns ? first->stamp : lane->known_ns, reader, ctx);
	lane->open = false;
	reader->records(ctx, lane->cpu, first, stride, count);
	note_stamp(lane, last->stamp, now_ns);
	lane->account.delivered += count;
}

/* Up to the head of the snapshot, and no further: a writer that floods ends nobody's poll. */
static void drain(struct lane *lane, const struct lane_snapshot *snapshot, uint64_t now_ns,
		  const struct weir_lanes_reader *reader, void *ctx)
{
	const struct weir_record *first;
	enum single_writer_step step;
	uint64_t count;

	while ((step = single_writer__next(&lane->ring, snapshot->head, snapshot->limit, &first,
					   &count)) != SINGLE_WRITER_END) {
		if (step == SINGLE_WRITER_RECORDS) {
			tell_run(lane, first, count, now_ns, reader, ctx);
		} else if (step == SINGLE_WRITER_HOLE) {
			lane->missing += count;
			lane->open = true;
		} else {
			lane->account.broken += count;
		}
	}
	/*
	 * Pairs with the writer's look at the tail: it stores into a place only when it has seen that
	 * its record is done with.
	 */
	__atomic_store_n(&lane->shared->tail, lane->ring.pos, __ATOMIC_RELEASE);
}

/* All numbers that the snapshot counts are finished: those that have not been seen are lost. */
static void settle(struct lane *lane, const struct lane_snapshot *snapshot, uint64_t t_ns,
		   const struct weir_lanes_reader *reader, void *ctx)
{
	uint64_t lost = snapshot->attempts - lane->ring.expect;

	if ((int64_t)lost > 0) {
		lane->missing += lost;
		lane->ring.expect = snapshot->attempts;
		lane->open = true;
	}
	if (lane->open && (lane->missing || t_ns > lane->known_ns))
		tell_gap(lane, t_ns, reader, ctx);
	else if (t_ns > lane->known_ns)
		lane->known_ns = t_ns;
}

static void note_account(struct lane *lane, const struct lane_snapshot *snapshot, uint64_t fill)
{
	struct weir_lane_account *account = &lane->account;

	/* What was given out later may have been told all the same. */
	account->produced = snapshot->limit;
	account->pending = snapshot->limit - lane->ring.expect + lane->missing;
	account->failed = load(&lane->shared->failed);
	account->watermark_ns = lane->known_ns;
	if (fill > account->max_fill)
		account->max_fill = fill;
}

/* It has come back if there are records; those that stand before its going are told in its poll. */
static bool is_away(const struct lane_snapshot *snapshot, uint64_t told)
{
	return snapshot->is_away || (snapshot->was_away && !told);
}

uint64_t lane__tell(struct lane *lane, const struct lane_snapshot *snapshot, uint64_t t_ns,
		    uint64_t now_ns, const struct weir_lanes_reader *reader, void *ctx)
{
	uint64_t fill = snapshot->head - lane->ring.pos, before = lane->account.delivered;
	uint64_t known_ns = lane->known_ns, told;

	drain(lane, snapshot, now_ns, reader, ctx);
	told = lane->account.delivered - before;
	/* Else one is in flight, whose stamp may be from before T: the next poll will have it. */
	if ((int64_t)(snapshot->finished - snapshot->attempts) >= 0)
		settle(lane, snapshot, t_ns, reader, ctx);
	if (lane->known_ns > known_ns)
		reader->watermark(ctx, lane->cpu, lane->known_ns, is_away(snapshot, told));
	note_account(lane, snapshot, fill);
	return told;
}
