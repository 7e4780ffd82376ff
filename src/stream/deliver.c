/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * deliver.c - what is due -> the callback, in order (G1, G7).
 *
 * Records are delivered from the ring's own memory: no copy, no allocation, no lock, no system call a
 * record. Each ring's queue moves on only as its records go out, so that a callback may stop in the
 * middle and nothing is lost or comes twice.
 */
#include "stream/internal.h"

#include "sanitized.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FETCH_AHEAD 32 /* records */

/* Deliveries of more than this come from memory, of less from the second-level cache. */
#define NEAR_RECORDS 32768

/* --- To the callback --- */

static inline int emit(struct weir_stream *s, const struct weir_event *event)
{
	return s->emit(s->emit_ctx, event);
}

/* What the batch holds goes out: all of it is delivered then, also where the callback ends the poll. */
static int flush_batch(struct weir_stream *s)
{
	size_t count = s->nr_batched;

	s->nr_batched = 0;
	return count ? s->on_batch(s->ctx, s->batch, count) : 0;
}

static int gather(void *ctx, const struct weir_event *event)
{
	struct weir_stream *s = ctx;

	s->batch[s->nr_batched++] = *event;
	return s->nr_batched < WEIR_BATCH_MAX ? 0 : flush_batch(s);
}

/*
 * Under AddressSanitizer a callback sees a copy that is gone afterwards, so that who keeps the
 * borrowed view is told so by the first byte that he reads through it.
 */
#if SANITIZED_ADDRESS
static int lend(void *ctx, const struct weir_event *event)
{
	const struct weir_stream *s = ctx;
	struct weir_event copy = *event;
	void *data = malloc(event->len ? event->len : 1);
	int err;

	/* Delivery needs no memory, and does not fail for the lack of it here either. */
	if (!data)
		return s->on_event(s->ctx, event);
	if (event->len)
		memcpy(data, event->data, event->len);
	copy.data = data;
	err = s->on_event(s->ctx, &copy);
	free(data);
	return err;
}
#endif

/* One place to send an event to, whatever the caller wants: no question asked for each of them. */
void stream__set_emit(struct weir_stream *s)
{
	s->emit = s->on_event;
	s->emit_ctx = s->ctx;
#if SANITIZED_ADDRESS
	s->emit = lend;
	s->emit_ctx = s;
#endif
	if (!s->on_batch)
		return;
	s->emit = gather;
	s->emit_ctx = s;
}

/* --- Places, and being late --- */

static bool is_after(const struct place *a, const struct place *b)
{
	if (a->stamp_ns != b->stamp_ns)
		return a->stamp_ns > b->stamp_ns;
	if (a->source != b->source)
		return a->source > b->source;
	return a->seq > b->seq;
}

static bool is_late(const struct weir_stream *s, const struct place *place)
{
	bool behind = s->watermark_ns && place->stamp_ns <= s->watermark_ns;

	return behind || is_after(&s->stopped, place);
}

/* The callback ended the poll here: nothing is announced, but order goes on from this place. */
static void stop_at(struct weir_stream *s, const struct place *place)
{
	if (is_after(place, &s->stopped))
		s->stopped = *place;
}

static bool notice_first(const struct notice *notice, const struct place *record)
{
	const struct place place = {notice->stamp_ns, notice->source, notice->seq};

	return is_after(record, &place);
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
		.mark = is_late(s, &place) ? WEIR_MARK_LATE : 0,
		.data = &notice.gap,
		.len = notice.kind == WEIR_KIND_GAP ? sizeof(notice.gap) : sizeof(notice.step),
	};
	int err = emit(s, &event);

	/* It lives here only. */
	if (!err && s->on_batch)
		err = flush_batch(s);
	s->notices_delivered++;
	if (err)
		stop_at(s, &place);
	return err;
}

/* --- Lanes: what delivery touches of each ring --- */

/* The queue is the first thing in its ring. */
static struct ring *ring_of(struct queue *queue)
{
	return (struct ring *)queue;
}

/* What went out of each is delivered now. */
static void settle(struct merge_due *due)
{
	for (size_t i = 0; i < due->count; i++) {
		ring_of(due->fronts[i].queue)->delivered += due->fronts[i].taken;
		merge_front__take(&due->fronts[i]);
	}
}

static struct ring *ring_at(const struct weir_stream *s, const struct merge_run *run, size_t i)
{
	return ring_of(s->fronts[merge_run__number(run, i)].queue);
}

/* The position of the i-th record of the run in its ring. */
static uint64_t pos_at(const struct weir_stream *s, const struct merge_run *run, size_t i)
{
	return merge_run__at(run, i) - s->fronts[merge_run__number(run, i)].origin;
}

static struct place place_at(const struct weir_stream *s, const struct merge_run *run, size_t i)
{
	const struct ring *ring = ring_at(s, run, i);
	uint64_t seq = ring->kind->seq(ring, pos_at(s, run, i));

	return (struct place){merge_run__stamp_ns(run, i), ring->source, seq};
}

/* --- Keys -> events, where all rings are weir.bpf.h's, and records where they were written --- */

static inline const uint8_t *bytes_of(const uint64_t *at, uint64_t key)
{
	return (const uint8_t *)(uintptr_t)at[merge_key__index(key)];
}

/*
 * Ask for the record that a key stands for, long before it is used: into the first-level cache where it
 * is near, else into the second, which can wait for more of them at a time.
 */
static inline void fetch(const uint64_t *at, uint64_t key, bool near)
{
	const uint8_t *bytes = bytes_of(at, key);

	if (near) {
		__builtin_prefetch(bytes);
		__builtin_prefetch(bytes + CACHE_LINE);
	} else {
		__builtin_prefetch(bytes, 0, 1);
		__builtin_prefetch(bytes + CACHE_LINE, 0, 1);
	}
}

_Static_assert(offsetof(struct weir_event, cpu) == offsetof(struct weir_event, source) + 4 &&
		       offsetof(struct lane, cpu) == offsetof(struct lane, source) + 4,
	       "fill_event() copies source and CPU in one piece");

static inline void fill_event(struct weir_event *event, const uint8_t *bytes,
			      const struct lane *lane)
{
	const struct weir_record *rec = (const struct weir_record *)(bytes + BPF_RINGBUF_HDR);

	event->stamp_ns = rec->stamp;
	event->seq = lane->expect + (uint64_t)(int64_t)(int32_t)(rec->seq - (uint32_t)lane->expect);
	event->data = rec + 1;
	event->len = bpf_ringbuf__payload(bytes);
	/* Source and CPU stand side by side in both; the compiler does not see that one copy will do. */
	memcpy(&event->source, &lane->source, sizeof(lane->source) + sizeof(lane->cpu));
	event->type = rec->type;
	event->flags = rec->flags;
}

/* How many were delivered; *err: what the callback said to the last one. */
static inline __attribute__((always_inline)) size_t deliver_fetched(struct weir_stream *s,
								    const struct merge_run *run,
								    size_t from, size_t until,
								    uint8_t mark, bool near,
								    int *err)
{
	const uint64_t *at = run->at, number_mask = run->number_mask;
	const uint64_t *first = run->key + from, *end = run->key + until;
	const uint64_t *key = first, *fetched = first;
	const struct lane *lanes = s->lanes;
	struct weir_event event = {.kind = WEIR_KIND_RECORD, .mark = mark};
	int result = 0;

	for (; fetched != end && fetched != first + FETCH_AHEAD; fetched++)
		fetch(at, *fetched, near);
	while (key != end && !result) {
		const struct lane *lane = &lanes[merge_key__number(*key, number_mask)];

		fill_event(&event, bytes_of(at, *key++), lane);
		if (fetched != end)
			fetch(at, *fetched++, near);
		result = emit(s, &event);
	}
	*err = result;
	return (size_t)(key - first);
}

static size_t deliver_numbered(struct weir_stream *s, const struct merge_run *run, size_t from,
			       size_t until, uint8_t mark, int *err)
{
	return s->near ? deliver_fetched(s, run, from, until, mark, true, err)
		       : deliver_fetched(s, run, from, until, mark, false, err);
}

/* --- The same where kinds of rings meet: each shows its records itself --- */

static int deliver_entry(struct weir_stream *s, const struct ring *ring, struct entry e,
			 uint8_t mark)
{
	struct weir_event event = {
		.stamp_ns = e.stamp_ns,
		.source = ring->source,
		.cpu = ring->cpu,
		.kind = WEIR_KIND_RECORD,
		.mark = mark,
	};
	bool assembled = ring->kind->view(s, ring, e.pos, &event) == VIEW_ASSEMBLED;
	int err;

	err = emit(s, &event);
	/* There is one place only to put records together: free it before the next one comes. */
	return assembled && s->on_batch && !err ? flush_batch(s) : err;
}

static size_t deliver_any(struct weir_stream *s, const struct merge_run *run, size_t from,
			  size_t until, uint8_t mark, int *err)
{
	size_t i = from;

	for (*err = 0; i < until && !*err; i++) {
		struct entry e = {merge_run__stamp_ns(run, i), pos_at(s, run, i)};

		*err = deliver_entry(s, ring_at(s, run, i), e, mark);
	}
	return i - from;
}

/* --- A part of a run, all of it late or none --- */

/* The first that is not stamped before the next notice. */
static size_t notice_index(const struct weir_stream *s, const struct merge_run *run, size_t from,
			   size_t until)
{
	uint64_t stamp_ns = stream__notice_from_ns(s);
	size_t low = from, high = until;

	if (merge_run__stamp_ns(run, until - 1) < stamp_ns)
		return until;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (merge_run__stamp_ns(run, mid) < stamp_ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static bool notice_is_next(const struct weir_stream *s, const struct merge_run *run, size_t i)
{
	struct place place = place_at(s, run, i);

	return notice_first(stream__next_notice(s), &place);
}

/* Records, and the notices that stand between them. How many records; *err: of the last callback. */
static size_t deliver_keys(struct weir_stream *s, const struct merge_run *run, size_t from,
			   size_t until, uint8_t mark, int *err)
{
	size_t i = from;

	*err = 0;
	while (i < until && !*err) {
		size_t next = notice_index(s, run, i, until);

		if (next == i && notice_is_next(s, run, i)) {
			*err = deliver_notice(s);
			continue;
		}
		/* Of one stamp with the notice, and before it: one by one. */
		next += next == i;
		i += s->in_place ? deliver_numbered(s, run, i, next, mark, err)
				 : deliver_any(s, run, i, next, mark, err);
	}
	if (s->on_batch && !*err)
		*err = flush_batch(s);
	s->nr_batched = 0;
	return i - from;
}

int stream__deliver_ahead(struct weir_stream *s, struct ring *ring, struct entry e)
{
	int err;

	ring->ahead++;
	ring->delivered++;
	err = deliver_entry(s, ring, e, WEIR_MARK_AHEAD);
	return !err && s->on_batch ? flush_batch(s) : err;
}

/* --- What comes late goes by the policy --- */

static size_t drop_late(struct weir_stream *s, const struct merge_run *run, size_t from,
			size_t until)
{
	for (size_t i = from; i < until; i++) {
		struct place place = place_at(s, run, i);
		struct ring *ring = ring_at(s, run, i);
		struct weir_gap gap = {
			.from_ns = place.stamp_ns ? place.stamp_ns - 1 : 0,
			.to_ns = place.stamp_ns,
			.lost = 1,
			.cause = WEIR_LOST_LATE,
		};

		ring->given_up++;
		ring->lost[WEIR_LOST_LATE]++;
		stream__add_gap(s, ring, place.seq, &gap);
	}
	s->dropped += until - from;
	return until - from;
}

static void note_late(struct weir_stream *s, struct ring *ring, uint64_t stamp_ns)
{
	ring->late++;
	/* Behind the place of a stopped poll, but not behind the watermark: there it is not late. */
	if (s->watermark_ns > stamp_ns)
		lag__count_one(&s->lateness, s->watermark_ns - stamp_ns);
}

/* A part of a run that is late: what was done with, and *err. */
static size_t deliver_late(struct weir_stream *s, const struct merge_run *run, size_t from,
			   size_t until, int *err)
{
	size_t count;

	if (from == until)
		return 0;
	if (s->late == WEIR_LATE_FAIL) {
		*err = -ETIME;
		return 0;
	}
	if (s->late == WEIR_LATE_DROP)
		return drop_late(s, run, from, until);
	count = deliver_keys(s, run, from, until, WEIR_MARK_LATE, err);
	for (size_t i = from; i < from + count; i++)
		note_late(s, ring_at(s, run, i), merge_run__stamp_ns(run, i));
	return count;
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

/*
 * The last poll was stopped before it could announce a watermark: what stands before the place that
 * it had come to is late all the same (G1).
 */
static size_t deliver_after_stop(struct weir_stream *s, const struct merge_run *run, size_t from,
				 int *err)
{
	size_t i = from, done = 1;

	while (i < run->count && !*err && done &&
	       merge_run__stamp_ns(run, i) <= s->stopped.stamp_ns) {
		struct place place = place_at(s, run, i);

		done = is_after(&s->stopped, &place) ? deliver_late(s, run, i, i + 1, err)
						     : deliver_keys(s, run, i, i + 1, 0, err);
		i += done;
	}
	return i - from;
}

/*
 * What has come out so far is out, though no watermark tells of it: what turns up behind the last of it
 * is late.
 */
void stream__stop_here(struct weir_stream *s)
{
	stop_at(s, &s->last_out);
}

static size_t deliver_run(struct weir_stream *s, const struct merge_run *run, int *err)
{
	size_t count = deliver_late(s, run, 0, count_late(s, run), err);

	if (!*err)
		count += deliver_after_stop(s, run, count, err);
	if (!*err)
		count += deliver_keys(s, run, count, run->count, 0, err);
	if (count)
		s->last_out = place_at(s, run, count - 1);
	if (*err && count)
		stream__stop_here(s);
	return count;
}

/* --- All that is due --- */

/*
 * Where it is mapped, less a position: from the oldest byte on, no position of a ring that is mapped
 * twice in succession has to be wrapped. Nobody follows it where records lie elsewhere.
 */
static uint64_t origin_of(const struct ring *ring)
{
	return (uintptr_t)ring->rb.data + (ring->tail & ring->rb.mask) - ring->tail;
}

/* What is stamped <= limit_ns, by source. */
static struct merge_due find_due(struct weir_stream *s, uint64_t limit_ns)
{
	struct merge_due due = {.fronts = s->fronts, .limit_ns = limit_ns};

	for (size_t i = 0; i < s->nr_rings; i++)
		merge_due__add(&due, &s->rings[i]->queue);
	s->near = due.total <= NEAR_RECORDS;
	s->in_place = s->all_numbered;
	for (size_t i = 0; i < due.count; i++) {
		const struct ring *ring = ring_of(due.fronts[i].queue);

		due.fronts[i].origin = origin_of(ring);
		s->lanes[i] = (struct lane){ring->seqs.expect, ring->source, ring->cpu};
		s->in_place &= !ring->held;
	}
	return due;
}

static uint64_t just_before(uint64_t stamp_ns)
{
	return stamp_ns ? stamp_ns - 1 : 0;
}

/*
 * Up to `budget` records. *limit_ns: up to where all are out; where the budget ends in the middle of
 * one stamp, that is just before it.
 */
static int deliver_records(struct weir_stream *s, uint64_t *limit_ns, size_t budget, size_t *count)
{
	struct merge_due due = find_due(s, *limit_ns);
	int err = 0;

	while (due.total && !err && *count < budget) {
		struct merge_run run = merge__next(&s->merge, &due);
		uint64_t now_ns = stream__now(s), dropped = s->dropped;

		if (run.count > budget - *count)
			merge_run__cut(&run, &due, budget - *count);
		/* What the callback did not want to see any more is not part of it. */
		merge_run__cut(&run, &due, deliver_run(s, &run, &err));
		if (run.count && run.count < due.total && *count + run.count == budget)
			stream__stop_here(s);
		/* What was dropped for being late stands in front, and was not delivered. */
		lag__count(&s->lag, now_ns, &run, s->dropped - dropped);
		if (run.count && run.count < due.total)
			*limit_ns = just_before(merge_run__stamp_ns(&run, run.count - 1));
		else if (run.count)
			*limit_ns = due.limit_ns;
		settle(&due);
		due.total -= run.count;
		*count += run.count;
	}
	return err;
}

int stream__deliver(struct weir_stream *s, uint64_t limit_ns, size_t budget)
{
	uint64_t notices_before = s->notices_delivered, dropped_before = s->dropped;
	size_t count = 0;
	int err = 0;

	/* Nothing is complete before the first watermark, not even time 0. */
	if (limit_ns) {
		stream__sort_notices(s);
		err = deliver_records(s, &limit_ns, budget, &count);
		/* Records that were dropped for being late are told as well. */
		stream__sort_notices(s);
	}
	while (limit_ns && !err && stream__next_notice(s) && stream__notice_from_ns(s) <= limit_ns)
		err = deliver_notice(s);
	s->delivered_to_ns = limit_ns;
	stream__release(s);
	if (err)
		return err;
	count += s->notices_delivered - notices_before;
	count -= s->dropped - dropped_before;
	return count > INT32_MAX ? INT32_MAX : (int)count;
}
