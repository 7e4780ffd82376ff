/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * deliver.c - what is due -> the callback, in order (G1, G7).
 *
 * Records are delivered from the ring's own memory: no copy, no allocation, no lock, no system call a
 * record. Each ring's queue moves on only as its records go out, so that a callback may stop in the
 * middle and nothing is lost or comes twice.
 */
#include "stream/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CACHE_LINE     64
#define FETCH_AHEAD    32 /* records; a power of two */
#define NOTICES_MAX    16384
#define EXACT_SCAN_MAX 1024 /* so few entries are looked through at the end of each poll */

const struct weir_record *ring__held_record(const struct ring *ring, uint64_t pos)
{
	const struct held *held = ring->held;

	while (held && pos - held->begin >= held->end - held->begin)
		held = held->next;
	if (!held)
		return ring__mapped_record(ring, pos);
	return (const struct weir_record *)(held->bytes + (pos - held->begin) + BPF_RINGBUF_HDR);
}

int ring__tie(void *ctx, uint64_t pos_a, uint64_t pos_b)
{
	const struct ring *ring = ctx;

	return (int32_t)(ring__record(ring, pos_a)->seq - ring__record(ring, pos_b)->seq);
}

static void drop_delivered_notices(struct weir_stream *s)
{
	s->nr_notices -= s->first_notice;
	memmove(s->notices, s->notices + s->first_notice, s->nr_notices * sizeof(*s->notices));
	s->first_notice = 0;
}

/*
 * All that may ever wait: so many of their own, and beyond that at least one for each source and
 * cause to be joined to. So telling of a loss never needs memory.
 */
int stream__room_for_notices(struct weir_stream *s, size_t rings)
{
	size_t most = s->memory_max / 8 / sizeof(*s->notices);
	size_t max = most < NOTICES_MAX ? most : NOTICES_MAX;
	size_t cap = max + (rings + 1) * WEIR_LOST_CAUSES;
	struct notice *grown = realloc(s->notices, cap * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	s->notices = grown;
	s->cap_notices = cap;
	s->max_notices = max;
	return 0;
}

int stream__add_notice(struct weir_stream *s, const struct notice *notice)
{
	if (s->nr_notices == s->cap_notices && s->first_notice)
		drop_delivered_notices(s);
	if (s->nr_notices == s->cap_notices)
		return -ENOMEM;
	s->notices[s->nr_notices++] = *notice;
	s->notices_unsorted = true;
	return 0;
}

/* Widen the newest waiting gap of this source and cause by another. */
static bool join_gap(struct weir_stream *s, uint32_t source, uint64_t seq,
		     const struct weir_gap *gap)
{
	for (size_t i = s->nr_notices; i-- > s->first_notice;) {
		struct notice *notice = &s->notices[i];

		if (notice->kind != WEIR_KIND_GAP || notice->source != source ||
		    notice->gap.cause != gap->cause)
			continue;
		notice->gap.lost += gap->lost;
		if (seq < notice->seq)
			notice->seq = seq;
		if (gap->seq_end > notice->gap.seq_end)
			notice->gap.seq_end = gap->seq_end;
		if (gap->from_ns < notice->gap.from_ns)
			notice->gap.from_ns = gap->from_ns;
		if (gap->to_ns > notice->gap.to_ns)
			notice->gap.to_ns = notice->stamp_ns = gap->to_ns;
		s->notices_unsorted = true;
		return true;
	}
	return false;
}

int stream__add_gap(struct weir_stream *s, const struct ring *ring, uint64_t seq,
		    const struct weir_gap *gap)
{
	uint32_t source = ring ? ring->source : WEIR_SOURCE_NONE;
	struct notice notice = {
		.stamp_ns = gap->to_ns,
		.seq = seq,
		.source = source,
		.cpu = ring ? ring->cpu : -1,
		.kind = WEIR_KIND_GAP,
		.gap = *gap,
	};

	/* Losses that wait must not grow without bound either: counts stay, bounds widen. */
	if (s->nr_notices - s->first_notice >= s->max_notices && join_gap(s, source, seq, gap))
		return 0;
	return stream__add_notice(s, &notice);
}

static int compare_notices(const void *a, const void *b)
{
	const struct notice *x = a, *y = b;

	if (x->stamp_ns != y->stamp_ns)
		return x->stamp_ns < y->stamp_ns ? -1 : 1;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return (x->seq > y->seq) - (x->seq < y->seq);
}

static void sort_notices(struct weir_stream *s)
{
	if (!s->notices_unsorted)
		return;
	drop_delivered_notices(s);
	qsort(s->notices, s->nr_notices, sizeof(*s->notices), compare_notices);
	s->notices_unsorted = false;
}

static const struct notice *next_notice(const struct weir_stream *s)
{
	return s->first_notice < s->nr_notices ? &s->notices[s->first_notice] : NULL;
}

/* The stamp from which on records have to be compared with the next notice. */
static uint64_t notice_from(const struct weir_stream *s)
{
	const struct notice *notice = next_notice(s);

	return notice ? notice->stamp_ns : UINT64_MAX;
}

static bool is_after(const struct place *a, const struct place *b)
{
	if (a->stamp_ns != b->stamp_ns)
		return a->stamp_ns > b->stamp_ns;
	if (a->source != b->source)
		return a->source > b->source;
	return a->seq > b->seq;
}

static uint8_t late_mark(const struct weir_stream *s, const struct place *place)
{
	bool behind = s->watermark_ns && place->stamp_ns <= s->watermark_ns;

	return behind || is_after(&s->stopped, place) ? WEIR_MARK_LATE : 0;
}

/* The callback ended the poll here: nothing is announced, but order goes on from this place. */
static void stop_at(struct weir_stream *s, const struct place *place)
{
	if (is_after(place, &s->stopped))
		s->stopped = *place;
}

static int deliver_notice(struct weir_stream *s)
{
	/* A copy: the callback may make the array grow. */
	struct notice notice = s->notices[s->first_notice++];
	struct place place = {notice.stamp_ns, notice.source, notice.seq};
	struct weir_event event = {
		.stamp_ns = notice.stamp_ns,
		.seq = notice.seq,
		.source = notice.source,
		.cpu = notice.cpu,
		.kind = (uint8_t)notice.kind,
		.mark = late_mark(s, &place),
		.data = &notice.gap,
		.len = notice.kind == WEIR_KIND_GAP ? sizeof(notice.gap) : sizeof(notice.step),
	};
	int err = s->on_event(s->ctx, &event);

	s->notices_delivered++;
	if (err)
		stop_at(s, &place);
	return err;
}

/* Does the notice stand before this record? */
static bool notice_first(const struct notice *notice, const struct ring *ring,
			 const struct weir_record *rec)
{
	if (notice->stamp_ns != rec->stamp)
		return notice->stamp_ns < rec->stamp;
	if (notice->source != ring->source)
		return notice->source < ring->source;
	return notice->seq < seqs__widen(&ring->seqs, rec->seq);
}

/* The queue is the first thing in its ring. */
static struct ring *ring_of(struct queue *queue)
{
	return (struct ring *)queue;
}

static void open_lane(struct lane *lane, const struct ring *ring)
{
	/* Twice in succession: from the oldest byte on, no position has to be wrapped. */
	uintptr_t oldest = (uintptr_t)bpf_ringbuf__at(ring->rb.data, ring->rb.mask, ring->tail);

	*lane = (struct lane){
		.next = ring->queue.e + ring->queue.first,
		.bytes = ring->held ? 0 : oldest - (uintptr_t)ring->tail,
		.expect = ring->seqs.expect,
		.source = ring->source,
		.cpu = ring->cpu,
	};
}

/* What went out of a lane is delivered now. */
static void settle_lane(struct ring *ring, const struct lane *lane)
{
	size_t first = (size_t)(lane->next - ring->queue.e);

	ring->delivered += first - ring->queue.first;
	ring->queue.first = first;
}

static size_t lane_number(const struct merge_run *run, size_t i)
{
	return run->key[i] & run->number_mask;
}

/* A record on its way into the cache. */
struct fetched {
	const struct weir_record *rec;
	const struct lane *lane;
};

/* Ask for the record that a key stands for, long before it is used. */
static inline __attribute__((always_inline)) struct fetched fetch(const struct weir_stream *s,
								  struct lane *lane)
{
	uint64_t pos = (lane->next++)->pos;
	const uint8_t *at = (const uint8_t *)(lane->bytes + (uintptr_t)pos + BPF_RINGBUF_HDR);

	if (__builtin_expect(!lane->bytes, 0))
		at = (const uint8_t *)ring__record(s->by_source[lane->source], pos);
	__builtin_prefetch(at);
	__builtin_prefetch(at + CACHE_LINE);
	return (struct fetched){(const struct weir_record *)at, lane};
}

_Static_assert(offsetof(struct weir_event, cpu) == offsetof(struct weir_event, source) + 4 &&
		       offsetof(struct lane, cpu) == offsetof(struct lane, source) + 4,
	       "fill_event() copies source and CPU in one piece");

static inline void fill_event(struct weir_event *event, const struct weir_record *rec,
			      const struct lane *lane)
{
	event->stamp_ns = rec->stamp;
	event->seq = lane->expect + (uint64_t)(int64_t)(int32_t)(rec->seq - (uint32_t)lane->expect);
	event->data = rec + 1;
	event->len = bpf_ringbuf__payload((const uint8_t *)rec - BPF_RINGBUF_HDR);
	/* Source and CPU stand side by side in both; the compiler does not see that one copy will do. */
	memcpy(&event->source, &lane->source, sizeof(lane->source) + sizeof(lane->cpu));
	event->type = rec->type;
	event->flags = rec->flags;
}

int stream__deliver_ahead(struct weir_stream *s, struct ring *ring, struct entry e)
{
	struct weir_event event = {.kind = WEIR_KIND_RECORD, .mark = WEIR_MARK_AHEAD};
	struct lane lane;

	open_lane(&lane, ring);
	ring->ahead++;
	ring->delivered++;
	fill_event(&event, ring__record(ring, e.pos), &lane);
	return s->on_event(s->ctx, &event);
}

/*
 * A part of a run, all of it late or none, and the notices that stand between its records. Returns
 * how many were delivered; *err: what the callback said to the last one.
 */
static size_t deliver_keys(struct weir_stream *s, const struct merge_run *run, size_t from,
			   size_t until, uint8_t mark, int *err)
{
	const uint64_t *key = run->key, number_mask = run->number_mask;
	struct lane *lanes = s->lanes;
	struct fetched window[FETCH_AHEAD];
	struct weir_event event = {.kind = WEIR_KIND_RECORD, .mark = mark};
	uint64_t compare_from_ns = notice_from(s);
	size_t i = from, fetched = from;
	int result = 0;

	for (; fetched < until && fetched < from + FETCH_AHEAD; fetched++)
		window[fetched % FETCH_AHEAD] = fetch(s, &lanes[key[fetched] & number_mask]);
	while (i < until && !result) {
		struct fetched *place = &window[i % FETCH_AHEAD];

		if (__builtin_expect(place->rec->stamp >= compare_from_ns, 0) &&
		    notice_first(next_notice(s), s->by_source[place->lane->source], place->rec)) {
			result = deliver_notice(s);
			compare_from_ns = notice_from(s);
			continue;
		}
		fill_event(&event, place->rec, place->lane);
		if (fetched < until)
			*place = fetch(s, &lanes[key[fetched++] & number_mask]);
		i++;
		result = s->on_event(s->ctx, &event);
	}
	/* What was fetched and not delivered is the lanes' next again. */
	while (fetched > i)
		lanes[key[--fetched] & number_mask].next--;
	*err = result;
	return i - from;
}

/* Release what nobody needs any more, so that producers have room again. */
void ring__release(struct ring *ring, bool exact)
{
	const struct queue *q = &ring->queue;
	size_t waiting = queue__count(q);
	uint64_t least = ring->rb.pos;

	/*
	 * The queue goes by stamp and the ring by position, so all that waits has to be looked at:
	 * only when at least as much went out since the last time, or when there is little.
	 */
	if (!exact && waiting > EXACT_SCAN_MAX &&
	    waiting > ring->delivered - ring->delivered_at_scan)
		return;
	ring->delivered_at_scan = ring->delivered;
	for (size_t i = q->first; i < q->end; i++)
		if ((int64_t)(q->e[i].pos - least) < 0)
			least = q->e[i].pos;
	/* What is held was freed before: the tail never goes back. */
	if ((int64_t)(least - ring->tail) > 0) {
		ring->tail = least;
		/*
		 * Pairs with the kernel's smp_load_acquire() of the consumer position in
		 * __bpf_ringbuf_reserve(): all our reads of these bytes come before their reuse.
		 */
		__atomic_store_n(ring->consumer, least, __ATOMIC_RELEASE);
	}
	while (ring->held && (int64_t)(least - ring->held->end) >= 0)
		ring__drop_oldest_held(ring);
}

static void release_all(struct weir_stream *s)
{
	for (size_t i = 0; i < s->nr_rings; i++)
		if (s->rings[i]->held ||
		    (s->rings[i]->size && s->rings[i]->tail != s->rings[i]->rb.pos))
			ring__release(s->rings[i], false);
}

/* What is stamped <= limit_ns, by source. */
static struct merge_due find_due(struct weir_stream *s, uint64_t limit_ns)
{
	struct merge_due due = {.queues = s->active, .limit_ns = limit_ns};

	for (size_t i = 0; i < s->nr_rings; i++)
		merge_due__add(&due, &s->rings[i]->queue);
	for (size_t i = 0; i < due.count; i++)
		open_lane(&s->lanes[i], ring_of(s->active[i]));
	return due;
}

/* How many keys at the front of the run stand behind the watermark. */
static size_t count_late(const struct weir_stream *s, const struct merge_run *run)
{
	size_t late = 0;

	while (s->watermark_ns && late < run->count &&
	       merge_run__stamp_ns(run, late) <= s->watermark_ns)
		late++;
	return late;
}

/* Where a record stands in the stream. */
static struct place place_of(const struct weir_stream *s, const struct merge_run *run, size_t i)
{
	const struct lane *lane = &s->lanes[lane_number(run, i)];
	const struct ring *ring = ring_of(s->active[lane_number(run, i)]);

	return (struct place){
		.stamp_ns = lane->next->stamp_ns,
		.source = lane->source,
		.seq = seqs__widen(&ring->seqs, ring__record(ring, lane->next->pos)->seq),
	};
}

/* The same of the last that went out of this run: its lane has gone past it. */
static struct place place_before(struct weir_stream *s, const struct merge_run *run, size_t count)
{
	struct lane *lane = &s->lanes[lane_number(run, count - 1)];
	struct place place;

	lane->next--;
	place = place_of(s, run, count - 1);
	lane->next++;
	return place;
}

/*
 * The last poll was stopped before it could announce a watermark: what stands before the place that
 * it had come to is late all the same (G1).
 */
static size_t deliver_after_stop(struct weir_stream *s, const struct merge_run *run, size_t from,
				 int *err)
{
	size_t i = from;

	while (i < run->count && !*err && merge_run__stamp_ns(run, i) <= s->stopped.stamp_ns) {
		struct place place = place_of(s, run, i);
		bool late = is_after(&s->stopped, &place);

		ring_of(s->active[lane_number(run, i)])->late += late;
		i += deliver_keys(s, run, i, i + 1, late ? WEIR_MARK_LATE : 0, err);
	}
	return i - from;
}

static size_t deliver_run(struct weir_stream *s, const struct merge_run *run, int *err)
{
	size_t late = count_late(s, run), count = 0;
	struct place last = {0};

	if (late)
		count = deliver_keys(s, run, 0, late, WEIR_MARK_LATE, err);
	for (size_t i = 0; i < count; i++)
		ring_of(s->active[lane_number(run, i)])->late++;
	if (!*err)
		count += deliver_after_stop(s, run, count, err);
	if (!*err)
		count += deliver_keys(s, run, count, run->count, 0, err);
	if (*err && count) {
		last = place_before(s, run, count);
		stop_at(s, &last);
	}
	return count;
}

static int deliver_records(struct weir_stream *s, uint64_t limit_ns, size_t *count)
{
	struct merge_due due = find_due(s, limit_ns);
	int err = 0;

	while (due.total && !err) {
		struct merge_run run = merge__next(&s->merge, &due);
		uint64_t now_ns = stream__now(s);

		/* What the callback did not want to see any more is not part of it. */
		run.count = deliver_run(s, &run, &err);
		lag__count(&s->lag, now_ns, &run);
		for (size_t i = 0; i < due.count; i++)
			settle_lane(ring_of(s->active[i]), &s->lanes[i]);
		due.total -= run.count;
		*count += run.count;
	}
	return err;
}

int stream__deliver(struct weir_stream *s, uint64_t limit_ns)
{
	uint64_t notices_before = s->notices_delivered;
	size_t count = 0;
	int err = 0;

	/* Nothing is complete before the first watermark, not even time 0. */
	if (limit_ns) {
		sort_notices(s);
		err = deliver_records(s, limit_ns, &count);
	}
	while (limit_ns && !err && next_notice(s) && notice_from(s) <= limit_ns)
		err = deliver_notice(s);
	release_all(s);
	if (err)
		return err;
	count += s->notices_delivered - notices_before;
	return count > INT32_MAX ? INT32_MAX : (int)count;
}
