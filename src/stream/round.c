/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * round.c - one poll: the snapshot protocol.
 *
 *	T <- clock, fence; for each ring S <- attempts, P <- head; drain each ring up to P;
 *	W <- min over rings of the newest T whose P is drained; deliver what is <= W; announce W.
 *
 * Why it is exact for rings that are written through weir.bpf.h: a record that is not in P was
 * reserved after P was read, so it was stamped after T; and a number that is in S had its space
 * reserved before, so it is in P or lost. Promises G2, G3 and the first half of G4; knows nothing of
 * how long to sleep.
 */
#include "stream/internal.h"

#include <errno.h>

static void take_snapshot(struct weir_stream *s)
{
	s->t_ns = stream__now(s);
	clock__fence();
	for (size_t i = 0; i < s->nr_rings; i++) {
		struct ring *ring = s->rings[i];
		struct wm_snapshot *now = &ring->latest;

		now->t_ns = s->t_ns;
		/*
		 * S before P, both acquire. Pairs with the producer's fetch_add on `attempts`, a full
		 * barrier behind its reserve: a number that S counts has its space inside P.
		 */
		now->attempts = __atomic_load_n(&ring->counters->attempts, __ATOMIC_ACQUIRE);
		if (ring->size)
			now->pos = __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE);
	}
	/* All that the counters count was tried before this. */
	clock__fence();
	s->bound_ns = stream__now(s);
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

static void note_fill(struct ring *ring)
{
	uint64_t fill = ring->latest.pos - ring->tail;

	if (fill > ring->max_fill)
		ring->max_fill = fill;
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
static bool take_all(struct ring *ring, uint64_t head)
{
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

/* Index what the ring holds up to P. -ENOMEM: nothing was taken, the next poll tries again. */
static int drain(struct ring *ring)
{
	uint64_t head = ring->latest.pos, begin = ring->rb.pos;
	int err = queue__room(&ring->queue, (head - begin) / BPF_RINGBUF_MIN_RECORD);

	if (err)
		return err;
	ring->seqs.limit = ring->latest.attempts;
	if (head == begin || take_all(ring, head))
		ring->busy_since_ns = 0;
	else if (!ring->busy_since_ns || ring->rb.pos != begin)
		ring->busy_since_ns = ring->latest.t_ns; /* of this record, not of one before it */
	queue__sort(&ring->queue, ring__tie, ring);
	return 0;
}

/*
 * A head that is more than a ring away from the tail, or where no record can begin, is no position:
 * take it for the end of what was read.
 */
static void check_head(struct ring *ring)
{
	uint64_t room = ring->size - (ring->rb.pos - ring->tail);

	if (ring->latest.pos - ring->rb.pos > room || ring->latest.pos % BPF_RINGBUF_ALIGN)
		ring->latest.pos = ring->rb.pos;
}

static void drain_ring(struct weir_stream *s, struct ring *ring)
{
	void *ctx[] = {ring, s};
	struct wm_snapshot reached;

	ring->latest.bound_ns = s->bound_ns;
	if (ring->size) {
		check_head(ring);
		note_fill(ring);
		drain(ring);
	}
	if (!wm_fifo__pass(&ring->fifo, &ring->latest, ring->rb.pos, &reached))
		return;
	ring->reached_ns = reached.t_ns;
	seqs__settle(&ring->seqs, reached.t_ns, reached.bound_ns, reached.attempts, on_lost, ctx);
	correct_blame(ring);
}

static uint64_t watermark(const struct weir_stream *s)
{
	uint64_t least_ns = s->t_ns;

	for (size_t i = 0; i < s->nr_rings; i++)
		if (s->rings[i]->reached_ns < least_ns)
			least_ns = s->rings[i]->reached_ns;
	/* Stamped at T or later may be stamped T; and two readers of one clock may be a guard apart. */
	return least_ns > s->guard_ns ? least_ns - 1 - s->guard_ns : 0;
}

/*
 * What is stamped beyond the clock would wait for ever, and hold its ring with it (O15): it is
 * delivered at once, flagged. Queues are sorted, so it stands at their ends.
 */
static int deliver_beyond_clock(struct weir_stream *s)
{
	/*
	 * Read again: a record that was begun before the snapshot may have been stamped as late as
	 * just before it was drained.
	 */
	uint64_t limit_ns = stream__now(s) + s->guard_ns;
	int delivered = 0;

	for (size_t i = 0; i < s->nr_rings; i++) {
		struct queue *q = &s->rings[i]->queue;

		while (queue__count(q) && q->e[q->end - 1].stamp_ns > limit_ns) {
			int err = stream__deliver_ahead(s, s->rings[i], q->e[--q->end]);

			delivered++;
			if (err)
				return err;
		}
	}
	return delivered;
}

static void read_misses(struct weir_stream *s)
{
	if (s->t_ns < s->next_misses_ns)
		return;
	s->next_misses_ns = s->t_ns + (s->memory_only ? 0 : MISSES_INTERVAL_NS);
	for (size_t i = 0; i < s->nr_watches; i++) {
		struct watch *watch = &s->watches[i];
		uint64_t total = misses__total(&watch->misses, watch->base + watch->total) -
				 watch->base;
		struct weir_gap gap = {
			.from_ns = watch->read_ns,
			.to_ns = s->t_ns,
			.lost = total - watch->total,
			.cause = WEIR_LOST_SKIPPED,
			.bound = WEIR_BOUND_AT_MOST,
		};

		watch->read_ns = s->t_ns;
		if (total <= watch->total)
			continue;
		s->lost_nowhere[WEIR_LOST_SKIPPED] += gap.lost;
		watch->total = total;
		stream__add_gap(s, NULL, 0, &gap);
	}
}

static void add_step(struct weir_stream *s)
{
	const struct clock_offset *now = &s->offsets.at[s->offsets.count - 1], *old = now - 1;
	struct notice notice = {
		.stamp_ns = now->from_ns,
		.source = WEIR_SOURCE_NONE,
		.cpu = -1,
		.kind = WEIR_KIND_CLOCK_STEP,
		.step =
			{
				.old_offset_ns = old->real_ns,
				.new_offset_ns = now->real_ns,
				.suspended_ns = (uint64_t)(now->boot_ns - old->boot_ns),
			},
	};

	stream__add_notice(s, &notice);
}

static void on_hotplug(void *ctx, int cpu, bool online)
{
	weir_stream__cpu_changed(ctx, cpu, online);
}

/*
 * Records of a CPU that is offline: either it is back, and its news comes later than they do, or they
 * are the last ones of a CPU that was off the list before it was off.
 */
static void look_after_offline(struct weir_stream *s)
{
	bool looked = false;

	for (size_t i = 0; i < s->nr_rings; i++) {
		struct ring *ring = s->rings[i];

		if (ring->online || queue__last_ns(&ring->queue) <= ring->offline_since_ns)
			continue;
		if (!looked)
			hotplug__look(&s->hotplug, on_hotplug, s);
		looked = true;
		if (!ring->online)
			ring->offline_since_ns = queue__last_ns(&ring->queue);
	}
}

/* Once a second, or when the kernel says so: CPUs, and what lies between the clocks. */
static void chores(struct weir_stream *s)
{
	bool was_set = !s->memory_only && wake__clock_was_set(&s->wake);

	if (!s->memory_only) {
		hotplug__events(&s->hotplug, on_hotplug, s);
		look_after_offline(s);
	}
	if (s->t_ns < s->next_chores_ns && !was_set)
		return;
	s->next_chores_ns = s->t_ns + CHORES_INTERVAL_NS;
	if (clock_offsets__update(&s->offsets, &s->clock, s->t_ns))
		add_step(s);
	if (!s->memory_only) {
		hotplug__look(&s->hotplug, on_hotplug, s);
		s->guard_ns = s->guard_min_ns + clock__slew_guard_ns();
	}
}

static void announce(struct weir_stream *s, uint64_t watermark_ns)
{
	if (watermark_ns <= s->watermark_ns)
		return;
	s->watermark_ns = watermark_ns;
	if (s->on_watermark)
		s->on_watermark(s->ctx, watermark_ns, WEIR_ORDER_EXACT);
	retire__run(&s->retire, watermark_ns);
}

static bool left_behind(const struct weir_stream *s)
{
	for (size_t i = 0; i < s->nr_rings; i++)
		if (queue__count(&s->rings[i]->queue) || s->rings[i]->fifo.count)
			return true;
	return s->first_notice != s->nr_notices;
}

static int poll_once(struct weir_stream *s, bool last)
{
	uint64_t watermark_ns;
	int ahead, delivered;

	s->flowing = true;
	take_snapshot(s);
	s->last_round_ns = s->t_ns;
	s->polls++;
	for (size_t i = 0; i < s->nr_rings; i++)
		drain_ring(s, s->rings[i]);
	watermark_ns = watermark(s);
	chores(s);
	read_misses(s);
	ahead = deliver_beyond_clock(s);
	if (ahead < 0)
		return ahead;
	delivered = stream__deliver(s, last ? UINT64_MAX : watermark_ns);
	stream__hold(s);
	if (delivered < 0)
		return delivered;
	announce(s, watermark_ns);
	s->flowing = ahead + delivered > 0 || left_behind(s);
	return ahead + delivered;
}

int stream__round(struct weir_stream *s)
{
	return poll_once(s, false);
}

int stream__last_round(struct weir_stream *s)
{
	return poll_once(s, true);
}
