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

#define PREFETCH_AHEAD 2 /* rings */
#define PREFETCH_BYTES 512

static void take_snapshot(struct weir_stream *s)
{
	/* First of all: a ticket's T is older than this, and it was done before the heads are read. */
	uint64_t ticket_ns = stream__ticket(s);

	s->t_ns = stream__now(s);
	clock__fence();
	for (size_t i = 0; i < s->nr_rings; i++) {
		struct ring *ring = s->rings[i];

		ring->latest.t_ns = ring__t_ns(ring, s->t_ns, ticket_ns);
		ring->kind->snapshot(ring);
	}
	/* All that the counters count was tried before this. */
	clock__fence();
	s->bound_ns = stream__now(s);
}

static void note_fill(struct ring *ring)
{
	uint64_t fill = ring->latest.pos - ring->tail;

	if (fill > ring->max_fill)
		ring->max_fill = fill;
}

/* Index what the ring holds up to P. -ENOMEM: nothing was taken, the next poll tries again. */
static int drain(struct weir_stream *s, struct ring *ring)
{
	uint64_t head = ring->latest.pos, begin = ring->rb.pos;
	int err = queue__room(&ring->queue, (head - begin) / ring->kind->min_record);

	if (err)
		return err;
	if (head == begin || ring->kind->take(s, ring))
		ring->busy_since_ns = 0;
	else if (!ring->busy_since_ns || ring->rb.pos != begin)
		ring->busy_since_ns = s->t_ns; /* of this record, not of one before it */
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

/*
 * With many rings the first records of each are in no cache, and where a ring ends is not foreseen: ask
 * for those of a ring whose turn comes a little later. (Inlined, or the compiler takes it for a call
 * without effect.)
 */
static inline __attribute__((always_inline)) void prefetch_ring(const struct weir_stream *s,
								size_t i)
{
	const struct ring *ring = i < s->nr_rings ? s->rings[i] : NULL;
	const uint8_t *at;

	if (!ring || !ring->size || ring->latest.pos == ring->rb.pos)
		return;
	at = bpf_ringbuf__at(ring->rb.data, ring->rb.mask, ring->rb.pos);
	for (size_t k = 0; k < PREFETCH_BYTES; k += CACHE_LINE)
		__builtin_prefetch(at + k);
}

static void drain_ring(struct weir_stream *s, struct ring *ring)
{
	struct wm_snapshot reached;

	ring->latest.bound_ns = s->bound_ns;
	if (ring->size) {
		check_head(ring);
		note_fill(ring);
		drain(s, ring);
	}
	if (!wm_fifo__pass(&ring->fifo, &ring->latest, ring->rb.pos, &reached))
		return;
	ring->reached_ns = reached.t_ns;
	ring->kind->settle(s, ring, &reached);
}

void stream__drain_dead(struct weir_stream *s, struct ring *ring)
{
	ring->kind->snapshot(ring);
	s->bound_ns = stream__now(s);
	drain_ring(s, ring);
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

/* Is T read from the clock that the stamps are? What can't be found out is not held against it. */
static void shake_hands(struct weir_stream *s)
{
	if (s->handshake.prog_fd < 0 &&
	    (s->no_handshake || handshake__open(&s->handshake, s->clock_id)))
		s->no_handshake = true;
	if (!s->no_handshake)
		handshake__shake(&s->handshake, &s->clock, s->guard_ns, &s->clock_off_ns);
}

/* Once a second, or when the kernel says so: CPUs, and what lies between the clocks. */
static void chores(struct weir_stream *s)
{
	bool was_set = !s->memory_only && wake__clock_was_set(&s->wake);

	if (!s->memory_only) {
		hotplug__events(&s->hotplug, stream__on_hotplug, s);
		stream__look_after_offline(s);
	}
	if (s->t_ns < s->next_chores_ns && !was_set)
		return;
	s->next_chores_ns = s->t_ns + CHORES_INTERVAL_NS;
	if (clock_offsets__update(&s->offsets, &s->clock, s->t_ns))
		add_step(s);
	if (!s->memory_only) {
		hotplug__look(&s->hotplug, stream__on_hotplug, s);
		stream__check_perf(s);
		shake_hands(s);
		s->guard_ns = s->guard_min_ns + clock__slew_guard_ns();
	}
}

static void announce(struct weir_stream *s, uint64_t watermark_ns)
{
	if (watermark_ns <= s->watermark_ns)
		return;
	s->watermark_ns = watermark_ns;
	if (s->on_watermark && watermark_ns - s->announced_ns >= s->announce_interval_ns) {
		s->announced_ns = watermark_ns;
		s->on_watermark(s->ctx, watermark_ns, stream__order(s));
	}
	retire__run(&s->retire, watermark_ns);
}

static bool left_behind(const struct weir_stream *s)
{
	for (size_t i = 0; i < s->nr_rings; i++) {
		const struct ring *ring = s->rings[i];

		/* What is behind the last snapshot waits for the next. */
		if (!ring__is_on_demand(ring) && (queue__count(&ring->queue) || ring->fifo.count))
			return true;
	}
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
	for (size_t i = 0; i < s->nr_rings; i++) {
		prefetch_ring(s, i + PREFETCH_AHEAD);
		drain_ring(s, s->rings[i]);
	}
	watermark_ns = watermark(s);
	chores(s);
	stream__read_misses(s);
	ahead = deliver_beyond_clock(s);
	if (ahead < 0)
		return ahead;
	delivered = stream__deliver(s, last ? UINT64_MAX : watermark_ns,
				    last ? SIZE_MAX : s->budget);
	stream__hold(s);
	if (delivered < 0)
		return delivered;
	s->behind = s->delivered_to_ns < watermark_ns;
	announce(s, s->behind ? s->delivered_to_ns : watermark_ns);
	s->flowing = ahead + delivered > 0 || left_behind(s);
	stream__ask_for_ticket(s);
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
