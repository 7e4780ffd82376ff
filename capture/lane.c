/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lane.c - the packets of one stream, one after the other -> told sources.
 *
 * Promises that each record of the range is told once and each flaw as a gap at its place, whatever the
 * packets hold (G8), and that each call brings the lane on. Must not know of other lanes.
 */
#include "capture/feeding.h"

#include <errno.h>

/* ---- losses that the files do not tell ------------------------------------------------------- */

/* Where there is no room, a loss is in the account alone, and its number is unknown. */
static void put_gap(struct feed *f, const struct lane *lane, int source, uint64_t seq,
		    const struct weir_gap *gap, uint8_t mark)
{
	if (!told__room(f->told, source)) {
		told__unknown(f->told, source, gap->cause);
		return;
	}
	told__gap(f->told, source, lane->place_ns, seq, gap, mark);
	if (gap->bound != WEIR_BOUND_UNKNOWN)
		f->lost[source].by[gap->cause] += gap->lost;
}

static void note_seq(struct lane *lane, enum capture_ring ring, uint64_t seq_end)
{
	if (seq_end > lane->next_seq[ring])
		lane->next_seq[ring] = seq_end;
}

/* Their numbers are behind all that was told. seq_end 0: where they end is not known. */
static void tell_broken(struct feed *f, struct lane *lane, enum capture_ring ring, uint64_t from_ns,
			uint64_t to_ns, uint64_t lost, uint64_t seq_end)
{
	uint64_t seq = lane->next_seq[ring];
	const struct weir_gap gap = {
		.from_ns = from_ns < to_ns ? from_ns : to_ns,
		.to_ns = to_ns,
		.lost = lost == READER_UNKNOWN ? 0 : lost,
		.cause = WEIR_LOST_BROKEN,
		.bound = lost == READER_UNKNOWN ? WEIR_BOUND_UNKNOWN : WEIR_BOUND_EXACT,
		.seq_end = seq_end > seq && seq_end - seq >= lost ? seq_end : 0,
	};

	if (to_ns < f->opts.from_ns || gap.from_ns > f->opts.to_ns)
		return;
	/* Whatever else it held: a mark that took back what was vouched for, say. */
	told__estimated(f->told);
	/* Without marks and process table nothing is missing from the stream itself. */
	if (!lost || lane__stream(f, lane)->kind != CAPTURE_CPU)
		return;
	if (lane->place_ns < to_ns)
		lane->place_ns = to_ns;
	put_gap(f, lane, ring == CAPTURE_RING_LIFE ? lane->life : lane->cpu, seq, &gap, 0);
	note_seq(lane, ring, gap.seq_end ? gap.seq_end : seq + gap.lost);
}

/* The end of the last packet that there is, of any stream. */
static uint64_t last_end_ns(const struct feed *f)
{
	uint64_t first_ns, last_ns;

	reader__span(f->reader, &first_ns, &last_ns);
	return last_ns;
}

static uint64_t at_most(uint64_t count, uint64_t from, uint64_t to)
{
	return from >= to ? 0 : count < to - from ? count : to - from;
}

/* Whose the records were, only their numbers tell: no ring can have lost more than it has of those. */
static void tell_flaw(struct feed *f, struct lane *lane, const struct reader_flaw *flaw)
{
	uint64_t to_ns = flaw->to_ns ? flaw->to_ns : last_end_ns(f);
	uint64_t life = 0, cpu = flaw->records;

	if (flaw->records != READER_UNKNOWN) {
		cpu = at_most(cpu, lane->next_seq[CAPTURE_RING_CPU], flaw->cpu_end);
		life = at_most(flaw->records - cpu, lane->next_seq[CAPTURE_RING_LIFE],
			       flaw->life_end);
	}
	tell_broken(f, lane, CAPTURE_RING_LIFE, flaw->from_ns, to_ns, life, flaw->life_end);
	tell_broken(f, lane, CAPTURE_RING_CPU, flaw->from_ns, to_ns, cpu, flaw->cpu_end);
}

/* Flaws that stand before the next packet. */
static void tell_flaws(struct feed *f, struct lane *lane)
{
	size_t count;
	const struct reader_flaw *flaws = reader__flaws(f->reader, &count);

	while (lane->flaw < lane->flaws_end && flaws[lane->flaw].before <= lane->next_packet) {
		const struct reader_flaw *flaw = &flaws[lane->flaw++];

		tell_flaw(f, lane, flaw);
	}
}

/* ---- records ---------------------------------------------------------------------------------- */

static bool in_range(const struct feed *f, uint64_t stamp_ns)
{
	return stamp_ns >= f->opts.from_ns && stamp_ns <= f->opts.to_ns;
}

static void tell_gap(struct feed *f, struct lane *lane, const struct weir_record *rec)
{
	const struct capture_gap *told = (const void *)(rec + 1);
	enum capture_ring ring = told->ring == CAPTURE_RING_LIFE ? CAPTURE_RING_LIFE
								 : CAPTURE_RING_CPU;
	int source = ring == CAPTURE_RING_LIFE ? lane->life : lane->cpu;
	const struct weir_gap gap = {
		.from_ns = told->from_ns,
		.to_ns = told->to_ns,
		.lost = told->lost,
		.cause = (enum weir_cause)told->cause,
		.bound = (enum weir_bound)told->bound,
		.seq_end = told->seq_end,
	};

	note_seq(lane, ring, told->seq_end ? told->seq_end : told->seq + told->lost);
	if (!in_range(f, rec->stamp))
		return;
	/* A cause of a version to come, say. */
	if (told->cause >= WEIR_LOST_CAUSES || told->bound > WEIR_BOUND_UNKNOWN)
		told__unknown(f->told, source, WEIR_LOST_BROKEN);
	else
		put_gap(f, lane, source, told->seq, &gap, (uint8_t)told->mark);
}

static void tell_step(struct feed *f, struct lane *lane, const struct weir_record *rec)
{
	const struct capture_clock_step *told = (const void *)(rec + 1);
	const struct weir_clock_step step = {
		.old_offset_ns = told->old_offset_ns,
		.new_offset_ns = told->new_offset_ns,
		.suspended_ns = told->suspended_ns,
	};

	if (in_range(f, rec->stamp))
		told__clock_step(f->told, lane->cpu, lane->place_ns, &step);
	else if (rec->stamp < f->opts.from_ns)
		told__wall_offset(f->told, step.new_offset_ns);
}

static void note_mark(struct feed *f, const struct capture_mark *mark)
{
	f->end.closed = mark->closed;
	if (mark->watermark_ns > f->end.complete_ns)
		f->end.complete_ns = mark->watermark_ns;
	if (mark->order)
		told__estimated(f->told);
}

static void take_note(struct feed *f, struct lane *lane, const struct weir_record *rec)
{
	const struct capture_part *part = (const void *)(rec + 1);

	switch (rec->type) {
	case CAPTURE_T_GAP:
		tell_gap(f, lane, rec);
		break;
	case CAPTURE_T_CLOCK_STEP:
		tell_step(f, lane, rec);
		break;
	case CAPTURE_T_MARK:
		note_mark(f, (const void *)(rec + 1));
		break;
	case CAPTURE_T_ACCOUNT:
		settle__note(f, (const void *)(rec + 1));
		break;
	case CAPTURE_T_PART:
		/* Later ones only repeat what steps have told. */
		if (!f->has_wall)
			told__wall_offset(f->told, part->wall_offset_ns);
		f->has_wall = true;
	}
}

static void tell_record(struct feed *f, struct lane *lane, const struct weir_record *rec,
			uint32_t size)
{
	const struct capture_packet *head = (const void *)lane->packet[lane->current];
	uint16_t type = rec->type & (uint16_t)~CAPTURE_LATE;
	bool is_life = type <= WEIR_T_LIFE_MAX;
	int source = is_life ? lane->life : lane->cpu;
	struct told_record record = {
		.place_ns = lane->place_ns,
		.true_ns = rec->stamp,
		/* Of a packet that begins before the one before it has ended. */
		.mark = rec->stamp < lane->place_ns ? WEIR_MARK_LATE : 0,
		.seq = packet__widen(is_life ? head->life_seq : head->cpu_seq, rec->seq),
		.data = rec + 1,
		.len = size,
		.type = type,
		.flags = rec->flags,
	};

	note_seq(lane, is_life ? CAPTURE_RING_LIFE : CAPTURE_RING_CPU, record.seq + 1);
	if (!in_range(f, rec->stamp) && !(is_life && rec->stamp < f->opts.from_ns))
		return;
	if (__builtin_expect(rec->type != type, 0)) {
		const struct capture_late *late = (const void *)(rec + 1);

		record.true_ns = late->true_stamp;
		record.mark = late->mark & 0xff ? (uint8_t)late->mark : WEIR_MARK_LATE;
		record.data = late + 1;
		record.len -= (uint32_t)sizeof(*late);
	}
	f->kept[source] += !(reader__env(f->reader)->selected_types >> (type & 31) & 1);
	told__record(f->told, source, &record);
}

/* ---- a lane: packets, one after the other ---------------------------------------------------- */

static void close_packet(struct lane *lane)
{
	lane->is_open = false;
	lane->next = NULL;
	lane->last_place_ns[lane->current] = lane->place_ns;
}

/* Fetch the next record, or close the packet. What can't be told apart is lost. */
static void walk_on(struct feed *f, struct lane *lane)
{
	enum packet_step step = packet__next(&lane->walk, &lane->next);

	lane->next_size = lane->walk.size;
	if (step == PACKET_RECORD)
		return;
	if (step == PACKET_BROKEN)
		tell_broken(f, lane, CAPTURE_RING_CPU, lane->walk.last_ns, lane->walk.end_ns,
			    lane->walk.left, 0);
	close_packet(lane);
}

/* What a packet had whose bytes are not what was written, by ring. */
struct damaged {
	struct {
		uint64_t records, seq_end; /* seq_end 0: not known */
	} ring[CAPTURE_RING_CPU + 1];
};

/* As many as its head says, if they can be told apart and are so many. */
static struct damaged count_damaged(const uint8_t *bytes)
{
	const struct capture_packet *head = (const void *)bytes;
	const uint64_t last[] = {head->life_seq, head->cpu_seq};
	struct packet_walk walk = packet__walk(bytes);
	const struct weir_record *record;
	struct damaged damaged = {0};
	enum packet_step step;

	while ((step = packet__next(&walk, &record)) == PACKET_RECORD) {
		bool is_life = (record->type & ~CAPTURE_LATE) <= WEIR_T_LIFE_MAX;
		enum capture_ring ring = is_life ? CAPTURE_RING_LIFE : CAPTURE_RING_CPU;

		if (record->type == CAPTURE_T_GAP)
			continue;
		damaged.ring[ring].records++;
		/* Either may be what is damaged: they have to agree. */
		damaged.ring[ring].seq_end = record->seq == (uint32_t)last[ring] ? last[ring] + 1
										 : 0;
	}
	return step == PACKET_END
		       ? damaged
		       : (struct damaged){.ring[CAPTURE_RING_CPU].records = READER_UNKNOWN};
}

static void lose_packet(struct feed *f, struct lane *lane, const struct reader_packet *packet,
			int err)
{
	const struct reader_stream *stream = lane__stream(f, lane);
	const struct packet_place place = {reader__env(f->reader)->uuid, stream->kind,
					   stream->instance};
	const uint8_t *bytes = lane->packet[lane->current];
	bool is_last = packet + 1 == stream->packets + stream->nr_packets;
	uint64_t from_ns = packet > stream->packets ? packet[-1].end_ns : 0;
	/* The next one begins where this one ended; its own head may be what is damaged. */
	uint64_t to_ns = is_last ? packet->end_ns : packet[1].begin_ns;
	struct damaged damaged = {.ring[CAPTURE_RING_CPU].records = READER_UNKNOWN};

	if (err == -EBADMSG && packet__is_head((const void *)bytes, &place) &&
	    packet__bytes((const void *)bytes) == packet->bytes)
		damaged = count_damaged(bytes);
	for (int ring = CAPTURE_RING_LIFE; ring <= CAPTURE_RING_CPU; ring++)
		tell_broken(f, lane, (enum capture_ring)ring, from_ns, to_ns,
			    damaged.ring[ring].records, damaged.ring[ring].seq_end);
}

/* Is there nothing in it that we need? */
static bool is_before_range(const struct feed *f, const struct reader_packet *packet)
{
	return packet->end_ns < f->opts.from_ns && !packet->may_have_life;
}

/*
 * Where the next packet may be read to: what was told of the one there is delivered. -1: neither's is. The
 * one of before is tried first: as a rule that is enough, and half the memory.
 */
static int free_place(const struct feed *f, const struct lane *lane)
{
	if (lane->last_place_ns[lane->current] <= f->until_ns)
		return lane->current;
	return lane->last_place_ns[!lane->current] <= f->until_ns ? !lane->current : -1;
}

static void open_packet(struct feed *f, struct lane *lane)
{
	const struct reader_stream *stream = lane__stream(f, lane);
	const struct reader_packet *packet = &stream->packets[lane->next_packet];
	int err;

	tell_flaws(f, lane);
	lane->next_packet++;
	f->done_bytes += packet->bytes;
	if (!packet->records || (stream->kind == CAPTURE_CPU && is_before_range(f, packet)))
		return;
	lane->current = free_place(f, lane);
	err = reader__packet(f->reader, lane->stream, lane->next_packet - 1,
			     lane->packet[lane->current]);
	if (err) {
		lose_packet(f, lane, packet, err);
		lane->last_place_ns[lane->current] = lane->place_ns;
		return;
	}
	lane->walk = packet__walk(lane->packet[lane->current]);
	lane->is_open = true;
	walk_on(f, lane);
}

/* Records that may come, of whichever ring each is. */
static size_t room_of(const struct feed *f, const struct lane *lane)
{
	size_t life = told__room(f->told, lane->life), cpu = told__room(f->told, lane->cpu);

	return life < cpu ? life : cpu;
}

static bool has_room(const struct feed *f, const struct lane *lane)
{
	return room_of(f, lane) > 0;
}

static void tell_next(struct feed *f, struct lane *lane, bool is_notes)
{
	const struct weir_record *rec = lane->next;

	if (rec->stamp > lane->place_ns)
		lane->place_ns = rec->stamp;
	if (is_notes)
		take_note(f, lane, rec);
	else if (rec->type == CAPTURE_T_GAP)
		tell_gap(f, lane, rec);
	else
		tell_record(f, lane, rec, lane->next_size);
	walk_on(f, lane);
}

/* As many records as there is room for. */
static void tell_records(struct feed *f, struct lane *lane)
{
	bool is_notes = lane__stream(f, lane)->kind == CAPTURE_NOTES;
	size_t room = room_of(f, lane);

	while (lane->is_open && room--)
		tell_next(f, lane, is_notes);
}

static uint64_t just_before(uint64_t stamp_ns)
{
	return stamp_ns ? stamp_ns - 1 : 0;
}

/* Is there no packet to come that we want? */
static bool is_over(const struct feed *f, const struct lane *lane)
{
	const struct reader_stream *stream = lane__stream(f, lane);

	return lane->next_packet == stream->nr_packets ||
	       stream->packets[lane->next_packet].begin_ns > f->opts.to_ns;
}

/* Where does the next record stand, at the earliest? */
static uint64_t told_until(const struct feed *f, const struct lane *lane)
{
	if (lane->is_open)
		return just_before(lane->next->stamp);
	/* What is wrong at the end is to be told, too. */
	if (is_over(f, lane))
		return lane->flaw < lane->flaws_end ? f->until_ns : UINT64_MAX;
	return just_before(lane__stream(f, lane)->packets[lane->next_packet].begin_ns);
}

static bool may_open(const struct feed *f, const struct lane *lane)
{
	return free_place(f, lane) >= 0 && has_room(f, lane);
}

/*
 * Tell more, until the lane is ahead of what was delivered. What has one stamp has to be told at once:
 * where that is too much, what follows is late.
 */
void lane__advance(struct feed *f, struct lane *lane)
{
	while (lane->until_ns <= f->until_ns) {
		if (lane->is_open && has_room(f, lane)) {
			tell_records(f, lane);
		} else if (!lane->is_open && is_over(f, lane)) {
			tell_flaws(f, lane);
			lane->flaw = lane->flaws_end;
		} else if (!lane->is_open && may_open(f, lane)) {
			open_packet(f, lane);
		} else {
			lane->until_ns = lane->place_ns > f->until_ns ? lane->place_ns
								      : f->until_ns + 1;
			return;
		}
		lane->until_ns = told_until(f, lane);
	}
}
