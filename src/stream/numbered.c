/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * numbered.c - rings that are written through weir.bpf.h: bytes -> index, and the loss that their
 * numbers prove.
 *
 * Promises: each finished record below P is indexed once; each number below S that was not seen by
 * then is told as lost, and no other (G4); whatever the bytes say, nothing outside the ring is read
 * (G8).
 */
#include "stream/internal.h"

#include <string.h>

static void take_snapshot(struct ring *ring)
{
	/*
	 * S before P, both acquire. Pairs with the producer's fetch_add on `attempts`, a full barrier
	 * behind its reserve: a number that S counts has its space inside P.
	 */
	ring->latest.attempts = __atomic_load_n(&ring->counters->attempts, __ATOMIC_ACQUIRE);
	if (ring->size)
		ring->latest.pos = __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE);
}

/* Refused reserves that the producers have counted, beyond those that are told as lost. */
static uint64_t refused_untold(const struct ring *ring)
{
	uint64_t failed = __atomic_load_n(&ring->counters->failed, __ATOMIC_ACQUIRE);
	uint64_t told = ring->lost[WEIR_LOST_RESERVE_FAILED];

	failed -= ring->failed_start;
	return failed > told ? failed - told : 0;
}

/*
 * How many of the missing were refused by the ring. A record whose bytes made no sense has a number,
 * too, which we could not read: its hole is not the ring's fault, and the producers' count of refused
 * reserves tells them apart.
 */
static uint64_t refused_of(const struct ring *ring, uint64_t missing)
{
	uint64_t untold;

	if (!ring->broken)
		return missing;
	untold = refused_untold(ring);
	return missing < untold ? missing : untold;
}

/*
 * A producer may stand between its attempt and its failure when a hole is told: then that one passed
 * for broken. When the count has caught up, so does the account; only the gap's cause stays.
 */
static void correct_blame(struct ring *ring)
{
	uint64_t untold, unsettled, moved;

	if (!ring->broken)
		return;
	untold = refused_untold(ring);
	/* Read after it: so many of them, at most, are not among these losses yet. */
	unsettled = __atomic_load_n(&ring->counters->attempts, __ATOMIC_ACQUIRE) -
		    ring->seqs.settled;
	moved = untold > unsettled ? untold - unsettled : 0;
	if (moved > ring->lost[WEIR_LOST_BROKEN])
		moved = ring->lost[WEIR_LOST_BROKEN];
	ring->lost[WEIR_LOST_RESERVE_FAILED] += moved;
	ring->lost[WEIR_LOST_BROKEN] -= moved;
}

static void on_lost(void *ctx, const struct hole *hole)
{
	struct ring *ring = ((void **)ctx)[0];
	struct weir_stream *s = ((void **)ctx)[1];
	uint64_t refused = refused_of(ring, hole->missing);
	struct weir_gap gap = {
		.from_ns = hole->from_ns,
		.to_ns = hole->to_ns,
		.lost = refused,
		.cause = WEIR_LOST_RESERVE_FAILED,
		.seq_end = hole->end,
	};

	ring->lost[WEIR_LOST_RESERVE_FAILED] += refused;
	ring->lost[WEIR_LOST_BROKEN] += hole->missing - refused;
	if (gap.lost)
		stream__add_gap(s, ring, hole->first, &gap);
	gap.lost = hole->missing - refused;
	gap.cause = WEIR_LOST_BROKEN;
	if (gap.lost)
		stream__add_gap(s, ring, hole->first, &gap);
}

static void take_record(struct ring *ring, const struct weir_record *rec, uint64_t pos,
			bool discard)
{
	uint64_t stamp_ns = rec->stamp;

	/* It is finished, so it was counted before: the counter knows its number by now. */
	ring->seqs.limit = __atomic_load_n(&ring->counters->attempts, __ATOMIC_ACQUIRE);
	if (!seqs__see(&ring->seqs, rec->seq, stamp_ns)) {
		ring->stray++;
		ring->broken++;
		return;
	}
	if (discard) {
		ring->discarded++;
		return;
	}
	queue__push(&ring->queue, (struct entry){stamp_ns, pos}, ring__tie, ring);
}

/* What was put behind the queue's end has come, in the order of its numbers. */
static void see_run(struct ring *ring, size_t count)
{
	size_t noted = count < SEQS_NESTING ? count : SEQS_NESTING;

	ring->queue.end += count;
	ring->seqs.expect += count;
	ring->seqs.seen += count - noted;
	for (size_t i = ring->queue.end - noted; i < ring->queue.end; i++)
		seqs__note_stamp(&ring->seqs, ring->queue.e[i].stamp_ns);
}

/*
 * Index a run of records that are as nearly all are: finished and whole, next in number, and later
 * than the one before. Stops at the first that is not.
 */
static void take_run(struct ring *ring, uint64_t head)
{
	struct bpf_ringbuf_run run = bpf_ringbuf__run(&ring->rb, head);
	struct entry *first = ring->queue.e + ring->queue.end, *out = first;
	uint64_t pos = ring->rb.pos, last_ns = queue__last_ns(&ring->queue);
	/* No more than there is room for, nor than were counted: neither is for these bytes to say. */
	uint64_t counted = seqs__room(&ring->seqs), room = ring->queue.cap - ring->queue.end;
	const struct entry *end = first + (counted < room ? counted : room);
	uint32_t seq = (uint32_t)ring->seqs.expect;
	const struct weir_record *rec;

	while (out != end && (rec = bpf_ringbuf_run__peek(&run)) && rec->seq == seq &&
	       rec->stamp > last_ns) {
		last_ns = rec->stamp;
		*out++ = (struct entry){last_ns, pos};
		seq++;
		bpf_ringbuf_run__pass(&run);
		pos += run.guess;
	}
	ring->rb.pos = pos;
	bpf_ringbuf_run__end(&run, (uint64_t)(out - first), &ring->rb);
	see_run(ring, (size_t)(out - first));
}

/* Index what the ring holds up to `head`. false: it ends at a record that is not finished. */
static bool take_all(struct weir_stream *s, struct ring *ring)
{
	uint64_t head = ring->latest.pos;

	(void)s;
	ring->seqs.limit = ring->latest.attempts;
	for (;;) {
		const struct weir_record *rec;
		uint64_t pos;
		uint32_t len;

		take_run(ring, head);
		switch (bpf_ringbuf__next(&ring->rb, head, &pos, &rec, &len)) {
		case BPF_RINGBUF_RECORD:
			take_record(ring, rec, pos, false);
			continue;
		case BPF_RINGBUF_DISCARDED:
			take_record(ring, rec, pos, true);
			continue;
		case BPF_RINGBUF_BROKEN:
			ring->broken++;
			continue;
		case BPF_RINGBUF_IS_BUSY:
			return false;
		case BPF_RINGBUF_END:
			return true;
		}
	}
}

static void settle(struct weir_stream *s, struct ring *ring, const struct wm_snapshot *reached)
{
	void *ctx[] = {ring, s};

	seqs__settle(&ring->seqs, reached->t_ns, reached->bound_ns, reached->attempts, on_lost,
		     ctx);
	correct_blame(ring);
}

static uint64_t seq_of(const struct ring *ring, uint64_t pos)
{
	return seqs__widen(&ring->seqs, ring__record(ring, pos)->seq);
}

/* Counted by the kernel up to the last snapshot, or proved by a number that was seen. */
static uint64_t attempts(const struct ring *ring)
{
	uint64_t snapshot = ring->latest.attempts;

	return (int64_t)(ring->seqs.expect - snapshot) > 0 ? ring->seqs.expect : snapshot;
}

static uint64_t pending(const struct weir_stream *s, const struct ring *ring)
{
	uint64_t queued = queue__count(&ring->queue);
	uint64_t unseen = attempts(ring) - ring->seqs.start - ring->seqs.seen - ring->seqs.lost;

	/* Closed, and drained to the end: what was not seen by now is a difference, not pending. */
	return s->closed && !ring->fifo.count ? queued : queued + unseen;
}

static void account(const struct weir_stream *s, const struct ring *ring, struct weir_account *out)
{
	uint64_t in_kernel = __atomic_load_n(&ring->counters->filtered, __ATOMIC_RELAXED);

	memset(out, 0, sizeof(*out));
	memcpy(out->lost, ring->lost, sizeof(out->lost));
	out->produced = attempts(ring) - ring->seqs.start + in_kernel;
	out->delivered = ring->delivered - ring->filtered - ring->given_up;
	out->filtered = in_kernel + ring->discarded + ring->filtered;
	out->pending = pending(s, ring);
	out->late = ring->late;
	out->ahead = ring->ahead;
	out->stray = ring->stray;
	out->self = __atomic_load_n(&ring->counters->self, __ATOMIC_RELAXED);
	out->unread = __atomic_load_n(&ring->counters->unread, __ATOMIC_RELAXED);
	out->failed = __atomic_load_n(&ring->counters->failed, __ATOMIC_RELAXED);
}

static enum view view(struct weir_stream *s, const struct ring *ring, uint64_t pos,
		      struct weir_event *event)
{
	const struct weir_record *rec = ring__record(ring, pos);

	(void)s;
	event->seq = seqs__widen(&ring->seqs, rec->seq);
	event->data = rec + 1;
	event->len = bpf_ringbuf__payload((const uint8_t *)rec - BPF_RINGBUF_HDR);
	event->type = rec->type;
	event->flags = rec->flags;
	return VIEW_IN_PLACE;
}

const struct ring_kind ring_kind__numbered = {
	.min_record = BPF_RINGBUF_MIN_RECORD,
	.snapshot = take_snapshot,
	.take = take_all,
	.settle = settle,
	.seq = seq_of,
	.view = view,
	.account = account,
};
