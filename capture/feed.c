/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * feed.c - streams of packets -> told sources, side by side.
 *
 * Owns a lane for each stream of the capture: which packet it has come to, and up to which time it has
 * told everything. The least of these times is what all have told, and the stream delivers that far.
 * Promises that each record of the range is told once and each flaw as a gap, whatever the packets
 * hold (G8), and that each step brings some lane on. Must not know who listens.
 */
#include "capture/feed.h"

#include "capture/packet.h"
#include "stream/told.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ITEMS_MANY_CPUS 512u
#define ITEMS_FEW_CPUS \
	2048u /* with the records that they stand for, they fit a second-level cache */
#define FEW_CPUS 16u

struct lane {
	size_t stream;		/* the reader's */
	int life, cpu;		/* told sources; of the notes, both are the machine's */
	size_t next_packet;	/* to be opened */
	size_t flaw, flaws_end; /* of the reader's, those of this stream that were not told yet */
	/* Items point into the packets: this one, and while some of it wait, the one before. */
	uint8_t *packet[2];
	uint64_t last_place_ns[2]; /* of what was told from each */
	int current;
	struct packet_walk walk;
	bool is_open;
	const struct weir_record *next; /* walked over, and not told */
	uint32_t next_size;
	uint64_t place_ns; /* of the last item */
	/* By ring: one more than the greatest number that was told. */
	uint64_t next_seq[CAPTURE_RING_CPU + 1];
	uint64_t until_ns; /* all up to here is told; UINT64_MAX: there is no more */
};

struct feed {
	struct reader *reader;
	struct told *told;
	struct feed_opts opts;
	struct lane *lanes;
	size_t nr_lanes;
	int machine;	     /* the told source of what is no CPU's */
	uint32_t first_part; /* what is before it is not looked at */
	uint64_t until_ns;
	uint64_t done_bytes, all_bytes;
	struct feed_end end;
	bool has_wall;
	struct capture_account *accounts; /* by told source; name[0] 0: none */
	struct capture_account *others;	  /* of sources that are none here */
	size_t nr_others;
	/* By told source: records that were not selected, and are there all the same. */
	uint64_t *kept;
	/* And what gaps have told so far. */
	struct {
		uint64_t by[WEIR_LOST_CAUSES];
	} * lost;
	bool finished;
};

static const struct reader_stream *stream_of(const struct feed *f, const struct lane *lane)
{
	size_t count;

	return &reader__streams(f->reader, &count)[lane->stream];
}

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

	/* Without marks and process table nothing is missing from the stream itself. */
	if (!lost || stream_of(f, lane)->kind != CAPTURE_CPU || to_ns < f->opts.from_ns ||
	    gap.from_ns > f->opts.to_ns)
		return;
	if (lane->place_ns < to_ns)
		lane->place_ns = to_ns;
	put_gap(f, lane, ring == CAPTURE_RING_LIFE ? lane->life : lane->cpu, seq, &gap, 0);
	note_seq(lane, ring, gap.seq_end ? gap.seq_end : seq + gap.lost);
}

/* The end of the last packet that there is, of any stream. */
static uint64_t last_end_ns(const struct feed *f)
{
	uint64_t last_ns = 0;
	size_t count;
	const struct reader_stream *streams = reader__streams(f->reader, &count);

	for (size_t i = 0; i < count; i++)
		if (streams[i].nr_packets &&
		    streams[i].packets[streams[i].nr_packets - 1].end_ns > last_ns)
			last_ns = streams[i].packets[streams[i].nr_packets - 1].end_ns;
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

/* A source without a file: nothing of it was recorded, or all of that is gone. */
static void note_other(struct feed *f, const struct capture_account *account)
{
	struct capture_account *grown;

	for (size_t i = 0; i < f->nr_others; i++)
		if (f->others[i].ring == account->ring && f->others[i].cpu == account->cpu) {
			f->others[i] = *account;
			return;
		}
	grown = realloc(f->others, (f->nr_others + 1) * sizeof(*grown));
	if (!grown)
		return;
	f->others = grown;
	grown[f->nr_others++] = *account;
}

static void note_account(struct feed *f, const struct capture_account *account)
{
	if (account->ring > CAPTURE_RING_CPU || account->cpu < 0)
		return;
	for (size_t i = 0; i < f->nr_lanes; i++) {
		const struct lane *lane = &f->lanes[i];
		const struct reader_stream *stream = stream_of(f, lane);

		if (stream->kind != CAPTURE_CPU || stream->instance != (uint32_t)account->cpu)
			continue;
		f->accounts[account->ring == CAPTURE_RING_LIFE ? lane->life : lane->cpu] = *account;
		return;
	}
	note_other(f, account);
}

static void note_mark(struct feed *f, const struct capture_mark *mark)
{
	f->end.closed = mark->closed;
	if (mark->watermark_ns > f->end.complete_ns)
		f->end.complete_ns = mark->watermark_ns;
	if (mark->order)
		f->end.order = WEIR_ORDER_ESTIMATED;
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
		note_account(f, (const void *)(rec + 1));
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
	const struct reader_stream *stream = stream_of(f, lane);
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

static void open_packet(struct feed *f, struct lane *lane)
{
	const struct reader_stream *stream = stream_of(f, lane);
	const struct reader_packet *packet = &stream->packets[lane->next_packet];
	int err;

	tell_flaws(f, lane);
	lane->next_packet++;
	f->done_bytes += packet->bytes;
	if (!packet->records || (stream->kind == CAPTURE_CPU && is_before_range(f, packet)))
		return;
	lane->current = !lane->current;
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
	bool is_notes = stream_of(f, lane)->kind == CAPTURE_NOTES;
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
	const struct reader_stream *stream = stream_of(f, lane);

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
	return just_before(stream_of(f, lane)->packets[lane->next_packet].begin_ns);
}

/* The packet that is to be overwritten has to be delivered. */
static bool may_open(const struct feed *f, const struct lane *lane)
{
	return lane->last_place_ns[!lane->current] <= f->until_ns && has_room(f, lane);
}

/*
 * Tell more, until the lane is ahead of what was delivered. What has one stamp has to be told at once:
 * where that is too much, what follows is late.
 */
static void advance(struct feed *f, struct lane *lane)
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

/* ---- the whole -------------------------------------------------------------------------------- */

static uint64_t least_until(const struct feed *f)
{
	uint64_t least_ns = UINT64_MAX;

	for (size_t i = 0; i < f->nr_lanes; i++)
		if (f->lanes[i].until_ns < least_ns)
			least_ns = f->lanes[i].until_ns;
	return least_ns;
}

/* Where the last item of all stands; not before anything that was delivered. */
static uint64_t greatest_place(const struct feed *f)
{
	uint64_t last_ns = f->until_ns;

	for (size_t i = 0; i < f->nr_lanes; i++)
		if (f->lanes[i].place_ns > last_ns)
			last_ns = f->lanes[i].place_ns;
	return last_ns;
}

/*
 * The accounts of the end tell exactly what is in no file: what was turned away before it was written,
 * and what damage has taken. They are of the whole capture, from its first part to an end in order.
 */
static void settle_account(struct feed *f, int source)
{
	const struct capture_account *account = &f->accounts[source];
	uint64_t selected = told__records(f->told, source) - f->kept[source];
	struct told_counts counts = {
		.self = account->self,
		.unread = account->unread,
		.failed = account->failed,
		.stray = account->stray,
	};

	if (account->filtered > f->kept[source])
		counts.filtered = account->filtered - f->kept[source];
	/* What was told was the best guess; the difference may go either way, modulo 2^64. */
	for (int cause = 0; cause < WEIR_LOST_CAUSES; cause++) {
		counts.lost[cause] = account->lost[cause] - f->lost[source].by[cause];
		counts.exact[cause] = account->bound[cause] != WEIR_BOUND_UNKNOWN;
	}
	if (account->delivered > selected)
		counts.lost[WEIR_LOST_BROKEN] += account->delivered - selected;
	told__counts(f->told, source, &counts);
}

/* Of those without a file the sums are left, and stand with what is no CPU's. */
static void settle_others(struct feed *f)
{
	struct told_counts counts = {0};

	for (size_t i = 0; i < f->nr_others; i++) {
		const struct capture_account *other = &f->others[i];

		counts.filtered += other->filtered;
		counts.self += other->self;
		counts.unread += other->unread;
		counts.failed += other->failed;
		counts.stray += other->stray;
		counts.lost[WEIR_LOST_BROKEN] += other->delivered;
		for (int cause = 0; cause < WEIR_LOST_CAUSES; cause++)
			counts.lost[cause] += other->lost[cause];
	}
	told__counts(f->told, f->machine, &counts);
}

static bool is_whole(const struct feed *f)
{
	size_t count;
	const struct reader_stream *streams = reader__streams(f->reader, &count);

	for (size_t i = 0; i < count; i++)
		if (streams[i].kind == CAPTURE_NOTES && streams[i].files[0].part != 1)
			return false;
	return f->end.closed && !f->opts.from_ns && f->opts.to_ns == UINT64_MAX;
}

static void finish(struct feed *f)
{
	if (f->finished)
		return;
	f->finished = true;
	if (!is_whole(f)) {
		/* Where it was cut off without an end, nobody knows how much was not written. */
		if (!f->end.closed && f->opts.to_ns == UINT64_MAX)
			told__unknown(f->told, f->machine, WEIR_LOST_OUTPUT);
		return;
	}
	for (int source = 0; source < f->machine; source++)
		if (f->accounts[source].name[0])
			settle_account(f, source);
	settle_others(f);
}

int feed__step(struct feed *f)
{
	uint64_t until_ns;
	int count;

	for (size_t i = 0; i < f->nr_lanes; i++)
		advance(f, &f->lanes[i]);
	until_ns = least_until(f);
	f->until_ns = until_ns == UINT64_MAX ? greatest_place(f) : until_ns;
	count = told__until(f->told, f->until_ns);
	if (count < 0)
		return count;
	if (until_ns != UINT64_MAX)
		return 1;
	finish(f);
	return 0;
}

void feed__progress(const struct feed *f, uint64_t *done_bytes, uint64_t *all_bytes)
{
	*done_bytes = f->done_bytes;
	*all_bytes = f->all_bytes;
}

struct feed_end feed__end(const struct feed *f)
{
	return f->end;
}

/* ---- where to begin --------------------------------------------------------------------------- */

/* The last part that had begun by then, or the first that there is: its process table is that of from_ns. */
static uint32_t part_of(const struct feed *f, uint64_t from_ns)
{
	size_t count;
	const struct reader_stream *streams = reader__streams(f->reader, &count);
	uint32_t part = 0;

	for (size_t i = 0; i < count; i++) {
		const struct reader_stream *stream = &streams[i];

		if (stream->kind != CAPTURE_TASKS)
			continue;
		for (size_t p = 0; p < stream->nr_packets; p++) {
			uint32_t this = stream->files[stream->packets[p].file].part;

			if (!part || stream->packets[p].begin_ns <= from_ns)
				part = this;
		}
	}
	return part;
}

static void start_lane(struct feed *f, struct lane *lane)
{
	const struct reader_stream *stream = stream_of(f, lane);
	size_t count;
	const struct reader_flaw *flaws = reader__flaws(f->reader, &count);

	while (lane->next_packet < stream->nr_packets &&
	       stream->files[stream->packets[lane->next_packet].file].part < f->first_part)
		lane->next_packet++;
	/* Flaws stand by stream, in its order. */
	while (lane->flaw < count && (flaws[lane->flaw].stream < lane->stream ||
				      (flaws[lane->flaw].stream == lane->stream &&
				       flaws[lane->flaw].before < lane->next_packet)))
		lane->flaw++;
	lane->flaws_end = lane->flaw;
	while (lane->flaws_end < count && flaws[lane->flaws_end].stream == lane->stream)
		lane->flaws_end++;
	for (size_t i = lane->next_packet; i < stream->nr_packets; i++)
		f->all_bytes += stream->packets[i].bytes;
}

static size_t largest_packet(const struct reader_stream *stream)
{
	size_t largest = sizeof(struct capture_packet);

	for (size_t i = 0; i < stream->nr_packets; i++)
		if (stream->packets[i].bytes > largest)
			largest = stream->packets[i].bytes;
	return largest;
}

static int add_lane(struct feed *f, size_t index)
{
	struct lane *lane = &f->lanes[f->nr_lanes++];
	size_t bytes;

	*lane = (struct lane){.stream = index};
	bytes = largest_packet(stream_of(f, lane));
	lane->packet[0] = malloc(bytes);
	lane->packet[1] = malloc(bytes);
	return lane->packet[0] && lane->packet[1] ? 0 : -ENOMEM;
}

/* All life sources first, then all cpu sources, as the rings of the recording were. */
static int add_sources(struct feed *f, bool life, size_t items)
{
	for (size_t i = 0; i < f->nr_lanes; i++) {
		const struct reader_stream *stream = stream_of(f, &f->lanes[i]);
		char name[24];
		int source;

		if (stream->kind != CAPTURE_CPU)
			continue;
		snprintf(name, sizeof(name), "%s%u", life ? "life" : "cpu", stream->instance);
		source = told__add_source(f->told, name, (int)stream->instance, items);
		if (source < 0)
			return source;
		*(life ? &f->lanes[i].life : &f->lanes[i].cpu) = source;
	}
	return 0;
}

static int add_machine(struct feed *f, size_t items)
{
	f->machine = told__add_source(f->told, NULL, -1, items);
	for (size_t i = 0; i < f->nr_lanes; i++)
		if (stream_of(f, &f->lanes[i])->kind == CAPTURE_NOTES)
			f->lanes[i].life = f->lanes[i].cpu = f->machine;
	return f->machine < 0 ? f->machine : 0;
}

static int open_lanes(struct feed *f)
{
	size_t count, items = ITEMS_FEW_CPUS;
	const struct reader_stream *streams = reader__streams(f->reader, &count);
	int err = 0;

	f->lanes = calloc(count, sizeof(*f->lanes));
	if (!f->lanes)
		return -ENOMEM;
	for (size_t i = 0; i < count && !err; i++)
		if (streams[i].kind != CAPTURE_TASKS)
			err = add_lane(f, i);
	if (f->nr_lanes > FEW_CPUS + 1)
		items = ITEMS_MANY_CPUS;
	if (!err)
		err = add_sources(f, true, items);
	if (!err)
		err = add_sources(f, false, items);
	if (!err)
		err = add_machine(f, items);
	if (err)
		return err;
	f->accounts = calloc((size_t)f->machine + 1, sizeof(*f->accounts));
	f->kept = calloc((size_t)f->machine + 1, sizeof(*f->kept));
	f->lost = calloc((size_t)f->machine + 1, sizeof(*f->lost));
	return f->accounts && f->kept && f->lost ? 0 : -ENOMEM;
}

struct feed *feed__new(struct reader *reader, struct weir_stream *stream,
		       const struct feed_opts *opts)
{
	struct feed *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return NULL;
	f->reader = reader;
	f->opts = *opts;
	f->told = told__new(stream);
	err = f->told ? open_lanes(f) : -ENOMEM;
	if (err) {
		feed__free(f);
		errno = -err;
		return NULL;
	}
	told__wall_offset(f->told, reader__env(reader)->wall_offset_ns);
	f->first_part = part_of(f, opts->from_ns);
	for (size_t i = 0; i < f->nr_lanes; i++)
		start_lane(f, &f->lanes[i]);
	return f;
}

void feed__free(struct feed *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->nr_lanes; i++) {
		free(f->lanes[i].packet[0]);
		free(f->lanes[i].packet[1]);
	}
	free(f->lanes);
	free(f->accounts);
	free(f->others);
	free(f->kept);
	free(f->lost);
	told__free(f->told);
	free(f);
}

/* ---- the process table ------------------------------------------------------------------------ */

/* A copy that ends with a NUL; NULL for none, or no memory. */
static char *text_of(const char *bytes, size_t len)
{
	return len ? strndup(bytes, len) : NULL;
}

static void hand_out(const struct weir_record *rec, feed_task_fn fn, void *ctx)
{
	const struct capture_task *task = (const void *)(rec + 1);
	const char *tail = (const char *)(task + 1);
	char *exe = text_of(tail, task->exe_len);
	char *cgroups = text_of(tail + task->exe_len, task->cgroups_len);

	fn(ctx, &task->seed, exe, cgroups);
	free(exe);
	free(cgroups);
}

/* A packet that is damaged is the names of some threads: not known, then. */
static void hand_out_packet(struct feed *f, size_t stream, size_t packet, void *buf,
			    feed_task_fn fn, void *ctx)
{
	const struct weir_record *rec;
	struct packet_walk walk;

	if (reader__packet(f->reader, stream, packet, buf))
		return;
	walk = packet__walk(buf);
	while (packet__next(&walk, &rec) == PACKET_RECORD)
		hand_out(rec, fn, ctx);
}

int feed__tasks(struct feed *f, feed_task_fn fn, void *ctx)
{
	size_t count;
	const struct reader_stream *streams = reader__streams(f->reader, &count);
	void *buf = malloc(CAPTURE_PACKET_BYTES);

	if (!buf)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct reader_stream *stream = &streams[i];

		if (stream->kind != CAPTURE_TASKS)
			continue;
		for (size_t p = 0; p < stream->nr_packets; p++)
			if (stream->files[stream->packets[p].file].part == f->first_part)
				hand_out_packet(f, i, p, buf, fn, ctx);
	}
	free(buf);
	return 0;
}
