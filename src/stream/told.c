/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * told.c - a kind of ring whose bytes are items, and whose clock is what has been told.
 *
 * Owns the items, and what is special about some of them. Promises that what was told up to a time
 * comes out once, in order, with the account of it; that its clock stands still between two calls of
 * told__until(). Must not know where items come from.
 */
#include "stream/told.h"

#include "stream/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SPECIAL UINT32_MAX /* item.len: data is a struct special */

struct item {
	uint64_t place_ns;
	uint64_t seq;
	const void *data;
	uint32_t len;
	uint16_t type, flags;
};

_Static_assert(sizeof(struct item) == 32, "a power of two, so that none wraps");

/* What is not a record that came in time. */
struct special {
	struct special *next;
	struct told_record record;
	enum weir_kind kind;
	uint8_t mark;
	union {
		struct weir_gap gap;
		struct weir_clock_step step;
	};
};

struct source {
	/* First, for its address leads from the ring to here. */
	struct weir_counters counters;
	struct ring *ring;
	struct item *items;
	uint64_t told;		     /* bytes of items */
	uint64_t producer, consumer; /* of these, what the stream may see, and has delivered */
	struct special *specials;    /* of what waits */
	uint64_t records, late, ahead;
	struct told_counts counts;
	bool unknown[WEIR_LOST_CAUSES], at_most[WEIR_LOST_CAUSES];
};

struct told {
	struct weir_stream *stream;
	struct source **sources;
	size_t nr_sources;
	uint64_t until_ns;
	int64_t wall_offset_ns;
};

/* ---- the kind --------------------------------------------------------------------------------- */

static const struct source *source_of(const struct ring *ring)
{
	return (const struct source *)(const void *)ring->counters;
}

static const struct item *item_at(const struct ring *ring, uint64_t pos)
{
	return (const struct item *)(const void *)ring__at(ring, pos);
}

static void told_snapshot(struct ring *ring)
{
	ring->latest.pos = *ring->producer;
}

static bool told_take(struct weir_stream *s, struct ring *ring)
{
	for (; ring->rb.pos != ring->latest.pos; ring->rb.pos += sizeof(struct item)) {
		const struct item *item = item_at(ring, ring->rb.pos);

		queue__push(&ring->queue, (struct entry){item->place_ns, ring->rb.pos}, ring__tie,
			    ring);
	}
	return true;
}

static void told_settle(struct weir_stream *s, struct ring *ring, const struct wm_snapshot *reached)
{
	/* Nothing is missing that was not told. */
}

/* Items of one place stay as they were told. */
static uint64_t told_seq(const struct ring *ring, uint64_t pos)
{
	return pos;
}

static void view_special(const struct special *special, struct weir_event *event)
{
	event->kind = (uint8_t)special->kind;
	event->mark = special->mark;
	event->type = event->flags = 0;
	event->data = &special->gap;
	event->len = special->kind == WEIR_KIND_GAP ? sizeof(special->gap) : sizeof(special->step);
	/* Each tells its own time, which may lie before the place at which it came. */
	if (special->kind == WEIR_KIND_GAP)
		event->stamp_ns = special->gap.to_ns;
	if (special->kind != WEIR_KIND_RECORD)
		return;
	event->stamp_ns = special->record.true_ns;
	event->data = special->record.data;
	event->len = special->record.len;
	event->type = special->record.type;
	event->flags = special->record.flags;
}

static enum view told_view(struct weir_stream *s, const struct ring *ring, uint64_t pos,
			   struct weir_event *event)
{
	const struct item *item = item_at(ring, pos);

	event->seq = item->seq;
	if (item->len == SPECIAL) {
		view_special(item->data, event);
	} else {
		event->data = item->data;
		event->len = item->len;
		event->type = item->type;
		event->flags = item->flags;
	}
	if (ring->cpu < 0)
		event->source = WEIR_SOURCE_NONE;
	return VIEW_IN_PLACE;
}

/* Of what waits, how many are no records. */
static uint64_t waiting_notices(const struct ring *ring)
{
	const struct queue *q = &ring->queue;
	uint64_t count = 0;

	for (size_t i = q->first; i < q->end; i++) {
		const struct item *item = item_at(ring, q->e[i].pos);
		const struct special *special = item->data;

		count += item->len == SPECIAL && special->kind != WEIR_KIND_RECORD;
	}
	return count;
}

static void told_account(const struct weir_stream *s, const struct ring *ring,
			 struct weir_account *out)
{
	const struct source *source = source_of(ring);
	uint64_t lost = 0;

	memset(out, 0, sizeof(*out));
	for (int cause = 0; cause < WEIR_LOST_CAUSES; cause++) {
		out->lost[cause] = ring->lost[cause] + source->counts.lost[cause];
		lost += out->lost[cause];
		if (source->at_most[cause])
			out->bound[cause] = WEIR_BOUND_AT_MOST;
		if (source->unknown[cause] && !source->counts.exact[cause])
			out->bound[cause] = WEIR_BOUND_UNKNOWN;
	}
	/* Given up after delivery: of the records told, and lost at once. */
	out->produced = source->records + source->counts.filtered + lost - ring->given_up;
	out->pending = queue__count(&ring->queue) - waiting_notices(ring) +
		       (source->told - ring->rb.pos) / sizeof(struct item);
	out->filtered = ring->filtered + source->counts.filtered;
	out->delivered = source->records - out->pending - ring->filtered - ring->given_up;
	out->late = source->late;
	out->ahead = source->ahead;
	out->self = source->counts.self;
	out->unread = source->counts.unread;
	out->failed = source->counts.failed;
	out->stray = source->counts.stray;
}

static const struct ring_kind ring_kind__told = {
	.min_record = sizeof(struct item),
	.snapshot = told_snapshot,
	.take = told_take,
	.settle = told_settle,
	.seq = told_seq,
	.view = told_view,
	.account = told_account,
};

/* ---- the clock -------------------------------------------------------------------------------- */

/* Nothing with a place up to until_ns is missing: the watermark stands just before the clock. */
static uint64_t told_now_ns(void *ctx)
{
	return ((const struct told *)ctx)->until_ns + 1;
}

static void told_offsets(void *ctx, int64_t *real_ns, int64_t *boot_ns)
{
	const struct told *told = ctx;
	const struct clock_offsets *offsets = &told->stream->offsets;

	/* As they are: a step is told, not found. */
	*real_ns = told->wall_offset_ns;
	*boot_ns = 0;
	if (offsets->count) {
		*real_ns = offsets->at[offsets->count - 1].real_ns;
		*boot_ns = offsets->at[offsets->count - 1].boot_ns;
	}
}

struct told *told__new(struct weir_stream *stream)
{
	struct told *told = calloc(1, sizeof(*told));
	const struct weir_clock clock = {
		.now_ns = told_now_ns, .offsets = told_offsets, .ctx = told};

	if (!told)
		return NULL;
	told->stream = stream;
	weir_stream__set_clock(stream, &clock);
	/* There is one clock, and it has one reader. */
	stream->guard_ns = stream->guard_min_ns = 0;
	return told;
}

static void free_specials(struct source *source)
{
	while (source->specials) {
		struct special *next = source->specials->next;

		free(source->specials);
		source->specials = next;
	}
}

static void free_source(struct source *source)
{
	if (!source)
		return;
	free_specials(source);
	free(source->items);
	free(source);
}

void told__free(struct told *told)
{
	if (!told)
		return;
	for (size_t i = 0; i < told->nr_sources; i++)
		free_source(told->sources[i]);
	free(told->sources);
	free(told);
}

/* ---- sources ---------------------------------------------------------------------------------- */

static struct source *new_source(size_t items)
{
	struct source *source = calloc(1, sizeof(*source));

	if (!source)
		return NULL;
	source->items = calloc(items, sizeof(*source->items));
	if (!source->items) {
		free(source);
		return NULL;
	}
	return source;
}

static int list_source(struct told *told, struct source *source, const char *name, int cpu,
		       size_t items)
{
	struct weir_stream *s = told->stream;
	uint32_t index = s->nr_sources;
	struct ring *ring;
	int err = stream__room_for(s, index);

	if (err)
		return err;
	ring = stream__new_ring(s, &ring_kind__told, index, name ? name : "", name ? cpu : -1);
	err = ring ? ring__bind(ring, source->items, items * sizeof(*source->items),
				&source->producer, &source->consumer)
		   : -ENOMEM;
	if (err) {
		ring__free(ring);
		s->nr_sources = index;
		return err;
	}
	ring->counters = &source->counters;
	source->ring = ring;
	stream__list_ring(s, ring);
	if (!name)
		s->by_source[index] = NULL; /* it is no source to be asked for */
	return 0;
}

int told__add_source(struct told *told, const char *name, int cpu, size_t items)
{
	struct source **grown;
	struct source *source;
	int err;

	if (!items || items & (items - 1))
		return -EINVAL;
	grown = realloc(told->sources, (told->nr_sources + 1) * sizeof(struct source *));
	if (!grown)
		return -ENOMEM;
	told->sources = grown;
	source = new_source(items);
	err = source ? list_source(told, source, name, cpu, items) : -ENOMEM;
	if (err) {
		free_source(source);
		return err;
	}
	told->sources[told->nr_sources] = source;
	return (int)told->nr_sources++;
}

static size_t waiting(const struct source *source)
{
	return (source->told - source->consumer) / sizeof(struct item);
}

size_t told__room(const struct told *told, int i)
{
	const struct source *source = told->sources[i];

	return source->ring->size / sizeof(struct item) - waiting(source);
}

uint64_t told__records(const struct told *told, int i)
{
	return told->sources[i]->records;
}

/* ---- items ------------------------------------------------------------------------------------ */

static struct item *next_item(struct source *source)
{
	struct item *item =
		(struct item *)((uint8_t *)source->items + (source->told & source->ring->rb.mask));

	source->told += sizeof(*item);
	return item;
}

/* NULL: no memory. */
static struct special *add_special(struct source *source, uint64_t place_ns, uint64_t seq,
				   enum weir_kind kind, uint8_t mark)
{
	struct special *special;
	struct item *item;

	if (!waiting(source))
		free_specials(source);
	special = calloc(1, sizeof(*special));
	if (!special)
		return NULL;
	special->next = source->specials;
	source->specials = special;
	special->kind = kind;
	special->mark = mark;
	item = next_item(source);
	*item = (struct item){.place_ns = place_ns, .seq = seq, .data = special, .len = SPECIAL};
	return special;
}

static void tell_marked(struct source *source, const struct told_record *record)
{
	struct special *special = add_special(source, record->place_ns, record->seq,
					      WEIR_KIND_RECORD, record->mark);

	if (!special) {
		source->ring->lost[WEIR_LOST_OUTPUT]++;
		return;
	}
	special->record = *record;
	source->records++;
	source->late += !!(record->mark & WEIR_MARK_LATE);
	source->ahead += !!(record->mark & WEIR_MARK_AHEAD);
}

void told__record(struct told *told, int i, const struct told_record *record)
{
	struct source *source = told->sources[i];
	struct item *item;

	if (__builtin_expect(record->mark, 0)) {
		tell_marked(source, record);
		return;
	}
	item = next_item(source);
	item->place_ns = record->place_ns;
	item->seq = record->seq;
	item->data = record->data;
	item->len = record->len;
	item->type = record->type;
	item->flags = record->flags;
	source->records++;
}

static void count_gap(struct source *source, const struct weir_gap *gap)
{
	if (gap->bound == WEIR_BOUND_UNKNOWN)
		source->unknown[gap->cause] = true;
	else
		source->ring->lost[gap->cause] += gap->lost;
	if (gap->bound == WEIR_BOUND_AT_MOST)
		source->at_most[gap->cause] = true;
}

void told__gap(struct told *told, int i, uint64_t place_ns, uint64_t seq,
	       const struct weir_gap *gap, uint8_t mark)
{
	struct source *source = told->sources[i];
	uint8_t late = place_ns > gap->to_ns ? WEIR_MARK_LATE : 0;
	struct special *special = add_special(source, place_ns, seq, WEIR_KIND_GAP, mark | late);

	count_gap(source, gap);
	if (special)
		special->gap = *gap;
}

static void change_offset(struct clock_offsets *offsets, uint64_t from_ns,
			  const struct weir_clock_step *step)
{
	struct clock_offset now = {.from_ns = from_ns, .real_ns = step->new_offset_ns};

	if (offsets->count == CLOCK_OFFSETS_MAX)
		memmove(&offsets->at[0], &offsets->at[1],
			--offsets->count * sizeof(offsets->at[0]));
	if (offsets->count)
		now.boot_ns = (int64_t)((uint64_t)offsets->at[offsets->count - 1].boot_ns +
					step->suspended_ns);
	offsets->at[offsets->count++] = now;
}

void told__clock_step(struct told *told, int i, uint64_t place_ns,
		      const struct weir_clock_step *step)
{
	struct special *special = add_special(told->sources[i], place_ns, 0, WEIR_KIND_CLOCK_STEP,
					      0);

	if (special)
		special->step = *step;
	change_offset(&told->stream->offsets, place_ns, step);
}

void told__wall_offset(struct told *told, int64_t offset_ns)
{
	const struct weir_clock_step first = {.new_offset_ns = offset_ns};

	told->wall_offset_ns = offset_ns;
	told->stream->offsets.count = 0;
	change_offset(&told->stream->offsets, 0, &first);
}

void told__counts(struct told *told, int i, const struct told_counts *counts)
{
	told->sources[i]->counts = *counts;
}

void told__unknown(struct told *told, int i, enum weir_cause cause)
{
	told->sources[i]->unknown[cause] = true;
}

void told__estimated(struct told *told)
{
	told->stream->estimated = true;
}

/* ---- up to a time ----------------------------------------------------------------------------- */

/* Let the stream see what has its place by then: what is beyond would be ahead of its clock. */
static void publish(struct source *source, uint64_t until_ns)
{
	uint64_t low = source->producer, high = source->told;

	while (low != high) {
		uint64_t middle = low +
				  (high - low) / sizeof(struct item) / 2 * sizeof(struct item);
		const struct item *item = (const struct item *)((const uint8_t *)source->items +
								(middle & source->ring->rb.mask));

		if (item->place_ns <= until_ns)
			low = middle + sizeof(struct item);
		else
			high = middle;
	}
	source->producer = low;
}

int told__until(struct told *told, uint64_t until_ns)
{
	struct weir_stream *s = told->stream;
	int count;

	if (until_ns > told->until_ns)
		told->until_ns = until_ns;
	for (size_t i = 0; i < told->nr_sources; i++)
		publish(told->sources[i], told->until_ns);
	count = weir_stream__poll(s, 0);
	/* From a record's stamp to its callback lie years, and they mean nothing. */
	memset(&s->lag, 0, sizeof(s->lag));
	return count;
}
