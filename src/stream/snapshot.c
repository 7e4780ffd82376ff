/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * snapshot.c - overwritable perf rings: looked at when somebody asks, then delivered like any other.
 *
 *	T, grace period; for each ring: head1, copy; fence; grace period; for each ring: head2
 *
 * The first grace period makes the copy complete up to T, as with every perf ring. The second makes it
 * sound: the head is published only when the outermost of nested writers ends, so that what they have
 * overwritten below head1 while we copied shows in head2 only after all of them have ended. A plain
 * second look left 946 corrupt records, up to 24 KiB inside. What is written meanwhile is the price:
 * kept is [head1, head2 + size). To pause instead loses what would be written, and keeps the whole ring.
 *
 * Where no grace period can be waited for (PROOF_GUARD), T is less a time, and what is kept ends a guard
 * below head2: as much as the four contexts that can interrupt each other have in hand, if none writes
 * more than one record before the outermost has ended. That is likely and not proved: W is estimated.
 *
 * No head tells of a writer that was lapped, by a whole ring of what nested in it, before it wrote: then it
 * writes over what is newer. A ring has to hold what interrupts can write meanwhile.
 *
 * Promises: each record comes out once, over all snapshots of a stream; what was overwritten between
 * two of them is a gap.
 */
#include "stream/perf.h"

#include "ring/perf_backward.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define GUARD_RECORDS 4 /* a task, a softirq, an interrupt and an NMI */

/* One ring's part in a snapshot. */
struct look {
	struct ring *ring;
	struct perf_snapshot copy;
	uint8_t *bytes;
	uint32_t *index;
	uint64_t lost_before;
};

struct looks {
	struct look *at;
	size_t count;
	uint64_t t_ns, paused_ns;
};

static uint64_t head_of(const struct look *look)
{
	/* Acquire: pairs with the barrier before the kernel's store of data_head. */
	return __atomic_load_n(look->ring->outside.overwritable.head, __ATOMIC_ACQUIRE);
}

static int prepare(struct look *look, struct ring *ring)
{
	const struct overwritable *memory = &ring->outside.overwritable;
	uint64_t room = perf_backward__room(ring->outside.layout, memory->size);

	*look = (struct look){.ring = ring};
	look->bytes = malloc(memory->size);
	look->index = calloc(room, sizeof(*look->index));
	look->copy = (struct perf_snapshot){
		.bytes = look->bytes, .size = memory->size, .prev = memory->seen};
	if (!look->bytes || !look->index)
		return -ENOMEM;
	return queue__room(&ring->queue, room);
}

/* All that needs memory, before the first look. */
static int prepare_all(struct weir_stream *s, struct looks *looks)
{
	int err = 0;

	if (!s->nr_on_demand)
		return -ENOENT;
	looks->at = calloc(s->nr_on_demand, sizeof(*looks->at));
	if (!looks->at)
		return -ENOMEM;
	for (size_t i = 0; i < s->nr_rings && !err; i++)
		if (s->rings[i]->outside.overwritable.data)
			err = prepare(&looks->at[looks->count++], s->rings[i]);
	return err || looks->count ? err : -ENOENT;
}

static void free_all(struct looks *looks)
{
	for (size_t i = 0; i < looks->count; i++) {
		free(looks->at[i].bytes);
		free(looks->at[i].index);
	}
	free(looks->at);
}

static void copy_all(struct looks *looks)
{
	for (size_t i = 0; i < looks->count; i++) {
		struct look *look = &looks->at[i];

		look->copy.head = head_of(look);
		memcpy(look->bytes, look->ring->outside.overwritable.data, look->copy.size);
	}
	/* The copies before the heads that are read next: an acquire load does not order what is earlier. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
}

static uint64_t guard_bytes(const struct look *look)
{
	const struct perf_layout *layout = look->ring->outside.layout;
	struct perf_backward reader;
	struct perf_record record;
	uint64_t longest = 0;

	perf_backward__init(&reader, layout, &look->copy, look->index);
	while (perf_backward__next(&reader, layout, &record) == PERF_NEXT_RECORD)
		if (record.size > longest)
			longest = record.size;
	return GUARD_RECORDS * longest;
}

/* How far down writers have come since the copy was begun. */
static void see_limits(struct looks *looks)
{
	for (size_t i = 0; i < looks->count; i++) {
		struct look *look = &looks->at[i];

		look->copy.limit = head_of(look);
		if (look->ring->proof == PROOF_GUARD)
			look->copy.limit -= guard_bytes(look);
	}
}

static int look_running(struct weir_stream *s, struct looks *looks)
{
	int err;

	looks->t_ns = stream__now(s);
	err = stream__await_ticket(s, looks->t_ns);
	if (err)
		return err;
	copy_all(looks);
	err = stream__await_ticket(s, stream__now(s));
	if (!err)
		see_limits(looks);
	return err;
}

static bool can_be_paused(const struct looks *looks)
{
	for (size_t i = 0; i < looks->count; i++)
		if (!looks->at[i].ring->outside.perf)
			return false;
	return true;
}

static int pause_all(struct looks *looks, bool paused)
{
	int err = 0;

	for (size_t i = 0; i < looks->count; i++) {
		const struct perf_cpu *c = looks->at[i].ring->outside.perf;
		int one = source_perf__pause(&c->group->source, c->cpu, paused);

		if (!err)
			err = one;
	}
	return err;
}

static uint64_t lost_so_far(const struct look *look)
{
	const struct perf_cpu *c = look->ring->outside.perf;
	uint64_t lost = 0;

	source_perf__lost(&c->group->source, c->cpu, &lost);
	return lost;
}

/* A deliberate pause is not loss of another kind: what would have been written meanwhile is told as such. */
static void tell_pause(struct weir_stream *s, const struct looks *looks, const struct look *look)
{
	struct weir_gap gap = {
		.from_ns = looks->paused_ns,
		.to_ns = stream__now(s),
		.lost = lost_so_far(look) - look->lost_before,
		.cause = WEIR_LOST_PAUSED,
	};

	if (!look->ring->outside.perf->group->source.counts_lost)
		gap.bound = WEIR_BOUND_UNKNOWN;
	else if (!gap.lost)
		return;
	look->ring->lost[WEIR_LOST_PAUSED] += gap.lost;
	look->ring->outside.missing += gap.lost;
	look->ring->outside.unknown[WEIR_LOST_PAUSED] |= gap.bound == WEIR_BOUND_UNKNOWN;
	stream__add_gap(s, look->ring, look->ring->rb.pos, &gap);
}

static int look_paused(struct weir_stream *s, struct looks *looks)
{
	int err, resumed;

	if (!can_be_paused(looks))
		return -EOPNOTSUPP;
	for (size_t i = 0; i < looks->count; i++)
		looks->at[i].lost_before = lost_so_far(&looks->at[i]);
	looks->t_ns = looks->paused_ns = stream__now(s);
	err = pause_all(looks, true);
	/* Those that were writing then have ended. */
	if (!err)
		err = stream__await_ticket(s, stream__now(s));
	if (!err) {
		copy_all(looks);
		see_limits(looks);
	}
	resumed = pause_all(looks, false);
	for (size_t i = 0; i < looks->count; i++)
		tell_pause(s, looks, &looks->at[i]);
	return err ? err : resumed;
}

/* ---- records --------------------------------------------------------------------------------------- */

/* Room for them to wait in: it is held before anything points into it. */
static int make_line(struct weir_stream *s, struct ring *ring, uint64_t bytes, uint8_t **line)
{
	int err;

	*line = NULL;
	if (!bytes)
		return 0;
	if (!stream__can_hold(s, ring, bytes))
		return -ENOBUFS;
	*line = malloc(bytes);
	err = *line ? stream__hold_block(s, ring, *line, ring->rb.pos, bytes) : -ENOMEM;
	if (err)
		free(*line);
	return err;
}

/* One behind the other, in the order of their writing: what waits is in one piece, see hold.c. */
static void line_up(struct weir_stream *s, struct look *look, struct perf_backward *reader,
		    uint8_t *line)
{
	const struct perf_layout *layout = look->ring->outside.layout;
	uint64_t begin = look->ring->rb.pos, bytes = 0;
	struct perf_record record;

	while (perf_backward__next(reader, layout, &record) == PERF_NEXT_RECORD) {
		uint32_t len;
		const void *body = perf_forward__body(reader->base, reader->mask, record.pos, &len,
						      s->scratch);

		/* A LOST tells of a pause, which was told at its end. */
		if (!record.has_stamp || record.type == PERF_RECORD_LOST)
			continue;
		memcpy(line + bytes, body, len);
		queue__push(&look->ring->queue, (struct entry){record.stamp_ns, begin + bytes},
			    ring__tie, look->ring);
		look->ring->outside.taken++;
		look->ring->outside.last_ns = record.stamp_ns;
		bytes += len;
	}
	queue__sort(&look->ring->queue, ring__tie, look->ring);
}

/* Records of which nobody knows how many they were, between what came before and what comes now. */
static void tell_unknown(struct weir_stream *s, struct ring *ring, enum weir_cause cause,
			 uint64_t to_ns)
{
	struct weir_gap gap = {
		.from_ns = ring->outside.last_ns < to_ns ? ring->outside.last_ns : to_ns,
		.to_ns = to_ns,
		.cause = cause,
		.bound = WEIR_BOUND_UNKNOWN,
	};

	ring->outside.unknown[cause] = true;
	stream__add_gap(s, ring, ring->rb.pos, &gap);
}

static uint64_t oldest_ns(const struct look *look, const struct perf_backward *reader,
			  uint64_t otherwise_ns)
{
	struct perf_backward copy = *reader;
	struct perf_record record;

	while (perf_backward__next(&copy, look->ring->outside.layout, &record) == PERF_NEXT_RECORD)
		if (record.has_stamp)
			return record.stamp_ns;
	return otherwise_ns;
}

static uint64_t less(uint64_t ns, uint64_t by_ns)
{
	return ns > by_ns ? ns - by_ns : 0;
}

static int take(struct weir_stream *s, struct look *look, uint64_t t_ns, struct weir_snapshot *told)
{
	struct ring *ring = look->ring;
	struct perf_backward reader;
	uint64_t first_ns, to_ns;
	uint8_t *line;
	int err;

	if (ring->proof == PROOF_GUARD)
		t_ns = less(t_ns, ring->grace_ns);
	perf_backward__init(&reader, ring->outside.layout, &look->copy, look->index);
	err = make_line(s, ring, reader.valid, &line);
	if (err)
		return err;
	first_ns = oldest_ns(look, &reader, t_ns);
	/* Rings that never wrapped reach back to their beginning, and limit nobody. */
	if (reader.hole && first_ns > told->from_ns)
		told->from_ns = first_ns;
	/* Before the first look there is no gap: that is what the ring was made for. */
	if (reader.hole && look->copy.prev)
		tell_unknown(s, ring, WEIR_LOST_OVERWRITTEN, first_ns);
	if (reader.broken || reader.oversized)
		tell_unknown(s, ring, WEIR_LOST_BROKEN, t_ns);
	line_up(s, look, &reader, line);
	ring->rb.pos += reader.valid;
	ring->latest.pos = ring->rb.pos;
	ring->broken += reader.broken + reader.oversized;
	ring->snapshot_ns = t_ns;
	ring->outside.overwritable.seen = look->copy.head;
	to_ns = less(t_ns, 1 + s->guard_ns);
	if (to_ns < told->to_ns)
		told->to_ns = to_ns;
	told->records += reader.count;
	told->torn += reader.torn;
	told->oversized += reader.oversized;
	return 0;
}

static int take_all(struct weir_stream *s, struct looks *looks, struct weir_snapshot *told)
{
	int err = 0;

	told->to_ns = UINT64_MAX;
	for (size_t i = 0; i < looks->count && !err; i++)
		err = take(s, &looks->at[i], looks->t_ns, told);
	return err;
}

WEIR_API int weir_stream__snapshot(struct weir_stream *s, enum weir_snapshot_mode mode,
				   struct weir_snapshot *out)
{
	struct weir_snapshot told = {.sz = sizeof(told)};
	struct looks looks = {0};
	int err;

	if (mode > WEIR_SNAPSHOT_PAUSED || (out && out->sz < sizeof(*out)))
		return -EINVAL;
	if (s->closed)
		return 0;
	err = prepare_all(s, &looks);
	if (!err)
		err = mode == WEIR_SNAPSHOT_PAUSED ? look_paused(s, &looks)
						   : look_running(s, &looks);
	if (!err)
		err = take_all(s, &looks, &told);
	free_all(&looks);
	if (err)
		return err;
	if (out)
		*out = told;
	return stream__round(s);
}
