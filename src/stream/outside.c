/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * outside.c - rings that are not written through weir.bpf.h: perf's, and BPF ring buffers of other
 * people's programs. Bytes -> index, and what can be known of their loss.
 *
 * Their records bear no number, so a record's number is its place in the ring, and loss is what the
 * kernel or the programs say: a LOST record, a counter, or nothing, and then it is unknown and said to
 * be. Whatever the bytes are, nothing outside the ring is read, what is broken is counted, and what
 * stands behind it is read on (G8).
 */
#include "stream/internal.h"

#include <string.h>

static void take_snapshot(struct ring *ring)
{
	/*
	 * Acquire. Pairs with the barrier before perf's store of data_head, and with the kernel's release
	 * of producer_pos: the records below it are there.
	 */
	if (ring->size)
		ring->latest.pos = __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE) + ring->base;
}

static uint64_t seq_of(const struct ring *ring, uint64_t pos)
{
	(void)ring;
	return pos;
}

/* --- Loss --- */

/* lost 0: nobody knows how many. */
static void add_gap(struct weir_stream *s, struct ring *ring, enum weir_cause cause, uint64_t lost,
		    uint64_t from_ns, uint64_t to_ns)
{
	struct weir_gap gap = {
		/* Between records of one stamp, or out of order: it still has that moment in it. */
		.from_ns = from_ns < to_ns ? from_ns : to_ns - !!to_ns,
		.to_ns = to_ns,
		.lost = lost,
		.cause = cause,
		.bound = lost ? WEIR_BOUND_EXACT : WEIR_BOUND_UNKNOWN,
	};

	if (lost)
		ring->lost[cause] += lost;
	else
		ring->outside.unknown[cause] = true;
	ring->outside.missing += lost;
	stream__add_gap(s, ring, ring->rb.pos, &gap);
}

/* Something that was no record: one of them, or all up to the head, however many these were. */
static void add_broken(struct weir_stream *s, struct ring *ring, bool all)
{
	ring->broken++;
	/* It was written before the head was read, whatever else is known of the time before that. */
	add_gap(s, ring, WEIR_LOST_BROKEN, all ? 0 : 1, ring->outside.last_ns,
		ring->latest.bound_ns);
}

/*
 * That many were lost up to now, the kernel says. It says so twice: in LOST records, and to who asks
 * for the count; what was told of the one is not told of the other.
 */
static void add_lost_total(struct weir_stream *s, struct ring *ring, uint64_t total, uint64_t to_ns)
{
	uint64_t told = ring->outside.lost_told;

	if ((int64_t)(total - told) <= 0)
		return;
	ring->outside.lost_told = total;
	add_gap(s, ring, WEIR_LOST_RESERVE_FAILED, total - told, ring->outside.last_ns, to_ns);
}

/* perf has stopped one more event of this ring: from the first one on something is missing. */
static void begin_throttle(struct outside *outside, uint64_t from_ns)
{
	if (!outside->throttled++)
		outside->throttled_ns = from_ns;
}

/*
 * One of those that perf has stopped goes on. That it was stopped may be what was lost: then it was not
 * before the last record. If others are still stopped, what they miss goes on from here.
 */
static void end_throttle(struct weir_stream *s, struct ring *ring, uint64_t to_ns)
{
	struct outside *outside = &ring->outside;

	add_gap(s, ring, WEIR_LOST_THROTTLED, 0,
		outside->throttled ? outside->throttled_ns : outside->last_ns, to_ns);
	outside->throttled -= !!outside->throttled;
	outside->throttled_ns = to_ns;
}

/* The count of lost records, where the ring may have been full, once a second, and at the end. */
static bool is_time_to_ask(const struct weir_stream *s, const struct ring *ring)
{
	return ring->latest.pos - ring->tail > ring->size / 2 || s->t_ns >= s->next_chores_ns ||
	       s->closing;
}

static void settle(struct weir_stream *s, struct ring *ring, const struct wm_snapshot *reached)
{
	uint64_t total;

	(void)reached;
	if (s->closing && ring->outside.throttled) {
		ring->outside.throttled = 1; /* for all of them */
		end_throttle(s, ring, stream__now(s));
	}
	if (!ring->outside.lost || !is_time_to_ask(s, ring))
		return;
	total = ring->outside.lost(ring->outside.lost_ctx);
	if (total != RING_LOST_UNKNOWN)
		add_lost_total(s, ring, total, stream__now(s));
}

static void account(const struct weir_stream *s, const struct ring *ring, struct weir_account *out)
{
	(void)s;
	memset(out, 0, sizeof(*out));
	memcpy(out->lost, ring->lost, sizeof(out->lost));
	for (int cause = 0; cause < WEIR_LOST_CAUSES; cause++)
		if (ring->outside.unknown[cause])
			out->bound[cause] = WEIR_BOUND_UNKNOWN;
	/* What was indexed, given back by its producer, or is known to be missing. */
	out->produced = ring->outside.taken + ring->discarded + ring->outside.missing;
	out->delivered = ring->delivered - ring->filtered - ring->given_up;
	out->filtered = ring->discarded + ring->filtered;
	out->pending = queue__count(&ring->queue);
	out->late = ring->late;
	out->ahead = ring->ahead;
	out->failed = ring->outside.lost_told;
}

static void take(struct ring *ring, uint64_t stamp_ns, uint64_t pos)
{
	ring->outside.taken++;
	ring->outside.last_ns = stamp_ns;
	queue__push(&ring->queue, (struct entry){stamp_ns, pos}, ring__tie, ring);
}

/* --- perf --- */

static void take_loss(struct weir_stream *s, struct ring *ring, const struct perf_loss *loss,
		      uint64_t stamp_ns)
{
	if (loss->type == PERF_RECORD_LOST)
		add_lost_total(s, ring, ring->outside.lost_seen += loss->lost, stamp_ns);
	else if (loss->type == PERF_RECORD_LOST_SAMPLES && loss->lost)
		add_gap(s, ring, WEIR_LOST_UNSEEN, loss->lost, ring->outside.last_ns, stamp_ns);
	else if (loss->type == PERF_RECORD_THROTTLE)
		begin_throttle(&ring->outside, stamp_ns);
	else if (loss->type == PERF_RECORD_UNTHROTTLE)
		end_throttle(s, ring, stamp_ns);
}

static bool tells_of_loss(uint32_t type)
{
	return type == PERF_RECORD_LOST || type == PERF_RECORD_LOST_SAMPLES ||
	       type == PERF_RECORD_THROTTLE || type == PERF_RECORD_UNTHROTTLE;
}

static void take_perf_record(struct weir_stream *s, struct ring *ring,
			     const struct perf_record *rec)
{
	struct perf_loss loss;
	const void *body;
	uint64_t latest_ns;
	uint32_t len;

	if (__builtin_expect(rec->type == PERF_RECORD_SAMPLE, 1)) {
		take(ring, rec->stamp_ns, rec->pos);
		return;
	}
	if (!rec->has_stamp) {
		add_broken(s, ring, false);
		return;
	}
	if (!tells_of_loss(rec->type)) {
		take(ring, rec->stamp_ns, rec->pos);
		return;
	}
	body = perf_forward__body(ring->rb.data, ring->rb.mask, rec->pos, &len, s->scratch);
	if (!body || perf_record__lost(ring->outside.layout, body, len, &loss) != 1) {
		add_broken(s, ring, false);
		return;
	}
	/* What is stamped beyond the clock was made up; a gap that stood there would wait for ever. */
	latest_ns = ring->latest.bound_ns + s->guard_ns;
	take_loss(s, ring, &loss, rec->stamp_ns < latest_ns ? rec->stamp_ns : latest_ns);
}

static bool take_perf(struct weir_stream *s, struct ring *ring)
{
	struct perf_forward reader = {ring->rb.data, ring->rb.mask, ring->rb.pos};
	struct perf_record rec;
	enum perf_next next;

	while ((next = perf_forward__next(&reader, ring->outside.layout, ring->latest.pos, &rec)) !=
	       PERF_NEXT_END) {
		/* rb.pos is still where it stands: a gap comes before the record that it came with. */
		if (__builtin_expect(next == PERF_NEXT_RECORD, 1))
			take_perf_record(s, ring, &rec);
		else
			add_broken(s, ring, reader.pos - rec.pos != rec.size);
		ring->rb.pos = reader.pos;
	}
	return true;
}

static const void *perf_body(const struct weir_stream *s, const struct ring *ring, uint64_t pos,
			     uint32_t *len)
{
	const struct held *held = ring->held ? ring__held(ring, pos) : NULL;
	const struct perf_event_header *header;

	if (!held)
		return perf_forward__body(ring->rb.data, ring->rb.mask, pos, len, s->scratch);
	header = (const void *)(held->bytes + (pos - held->begin));
	if (header->size > held->end - pos)
		return NULL;
	*len = header->size;
	return header;
}

/* The payload alone, of a sample whose writer has put it there; of anything else the whole record. */
static void show_payload(const struct ring *ring, const void *body, uint32_t len,
			 struct weir_event *event)
{
	struct weir_perf_sample sample;

	if (perf_record__parse(ring->outside.layout, body, len, &sample))
		return;
	event->data = sample.raw;
	event->len = sample.raw_len;
}

static enum view view_perf(struct weir_stream *s, const struct ring *ring, uint64_t pos,
			   struct weir_event *event)
{
	const struct perf_event_header *header;
	uint32_t len = 0;

	header = perf_body(s, ring, pos, &len);
	event->seq = pos;
	event->data = header;
	event->len = len;
	event->type = header ? (uint16_t)header->type : 0;
	event->flags = header ? header->misc : 0;
	if (header && ring->outside.payload && header->type == PERF_RECORD_SAMPLE)
		show_payload(ring, header, len, event);
	return (const void *)header == s->scratch ? VIEW_ASSEMBLED : VIEW_IN_PLACE;
}

const struct ring_kind ring_kind__perf = {
	.min_record = 16, /* a header and a stamp: without one it is not indexed */
	.snapshot = take_snapshot,
	.take = take_perf,
	.settle = settle,
	.seq = seq_of,
	.view = view_perf,
	.account = account,
};

/* --- BPF ring buffers --- */

/* Of no use was the record alone, or its length, and so all up to the head. */
static bool skipped_to_head(const struct ring *ring, const struct foreign_record *rec)
{
	return ring->rb.pos - rec->pos != ((BPF_RINGBUF_HDR + (uint64_t)rec->len + 7) & ~7ull);
}

static bool take_ringbuf(struct weir_stream *s, struct ring *ring)
{
	for (;;) {
		uint64_t head = ring->latest.pos;
		struct foreign_record rec;

		switch (foreign_ringbuf__next(&ring->rb, ring->outside.stamp_offset, head, &rec)) {
		case BPF_RINGBUF_RECORD:
			take(ring, rec.stamp_ns, rec.pos);
			continue;
		case BPF_RINGBUF_DISCARDED:
			ring->discarded++;
			continue;
		case BPF_RINGBUF_BROKEN:
			add_broken(s, ring, skipped_to_head(ring, &rec));
			continue;
		case BPF_RINGBUF_IS_BUSY:
			return false;
		case BPF_RINGBUF_END:
			return true;
		}
	}
}

static enum view view_ringbuf(struct weir_stream *s, const struct ring *ring, uint64_t pos,
			      struct weir_event *event)
{
	(void)s;
	event->seq = pos;
	/* A ring that is mapped twice, or a copy: either way the record stands there in one piece. */
	event->data = foreign_ringbuf__body(ring__at(ring, pos), 0, 0, &event->len);
	return VIEW_IN_PLACE;
}

const struct ring_kind ring_kind__ringbuf = {
	.min_record = BPF_RINGBUF_HDR + sizeof(uint64_t),
	.snapshot = take_snapshot,
	.take = take_ringbuf,
	.settle = settle,
	.seq = seq_of,
	.view = view_ringbuf,
	.account = account,
};
