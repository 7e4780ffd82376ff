// SPDX-License-Identifier: BSD-2-Clause
/*
 * packets.c - records -> packets -> files (docs/capture.md).
 *
 * Owns a stream's buffer and file. Promises that a file ends with a whole packet as often as it is
 * up to us, that packets begin where the one before ended, and that a record is in a file, or was
 * handed to capture.lost and is in a gap. Must not know who delivers, or why a part ends.
 */
#include "capture/packets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "capture/classes.h"
#include "capture/crc.h"

#define NAME_MAX_LEN 64
#define HEAD_BYTES   sizeof(struct capture_packet)

struct packets *packets__new(const struct capture *capture, enum capture_stream stream,
			     uint32_t instance)
{
	struct packets *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->stream = stream;
	p->instance = instance;
	p->fd = -1;
	p->source[0] = p->source[1] = WEIR_SOURCE_NONE;
	p->buf = malloc(capture->packet_bytes);
	if (!p->buf) {
		free(p);
		return NULL;
	}
	return p;
}

void packets__free(struct packets *p)
{
	if (!p)
		return;
	if (p->fd >= 0)
		close(p->fd);
	free(p->buf);
	free(p);
}

/* ---- files ------------------------------------------------------------------------------------ */

static void file_name(const struct capture *c, const struct packets *p, char name[NAME_MAX_LEN])
{
	if (p->stream == CAPTURE_CPU)
		snprintf(name, NAME_MAX_LEN, CAPTURE_CPU_FILE, p->instance, c->part);
	else
		snprintf(name, NAME_MAX_LEN,
			 p->stream == CAPTURE_TASKS ? CAPTURE_TASKS_FILE : CAPTURE_NOTES_FILE,
			 c->part);
}

static int write_all(int fd, const char *bytes, size_t len)
{
	while (len) {
		ssize_t n = write(fd, bytes, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		bytes += n;
		len -= (size_t)n;
	}
	return 0;
}

/* One packet at the file's end, whole or not at all. */
static int write_packet(struct capture *c, struct packets *p, const char *packet, size_t len)
{
	int err = write_all(p->fd, packet, len);

	if (!err) {
		memcpy(&p->told, packet + offsetof(struct capture_packet, discarded),
		       sizeof(p->told));
		p->file_bytes += len;
		p->number++;
		c->part_bytes += len;
		c->bytes += len;
		return 0;
	}
	/* Should that fail as well, our reader stops at the torn one, and verify --repair cuts it. */
	if (!ftruncate(p->fd, (off_t)p->file_bytes))
		lseek(p->fd, (off_t)p->file_bytes, SEEK_SET);
	return err;
}

static void fill_head(const struct capture *c, const struct packets *p, struct capture_packet *head,
		      uint64_t end_ns)
{
	*head = (struct capture_packet){
		.magic = CAPTURE_MAGIC,
		.stream = p->stream,
		.instance = p->instance,
		.begin_ns = p->begin_ns,
		.end_ns = end_ns,
		.content_bits = 8 * HEAD_BYTES,
		.packet_bits = 8 * HEAD_BYTES,
		.discarded = p->discarded,
		.number = p->number,
		.cpu = p->stream == CAPTURE_CPU ? p->instance : CAPTURE_NO_CPU,
		.part = c->part,
		.life_seq = p->seq[CAPTURE_RING_LIFE],
		.cpu_seq = p->seq[CAPTURE_RING_CPU],
	};
	memcpy(head->uuid, c->uuid, sizeof(head->uuid));
}

/* Carries what was lost so far. `discarded`: without what the open packet adds. */
static int write_empty(struct capture *c, struct packets *p, uint64_t discarded, uint64_t at_ns)
{
	struct capture_packet head;

	fill_head(c, p, &head, at_ns);
	head.begin_ns = at_ns;
	/* Where that could not be told, the end of the part before has told it: it only grows. */
	head.discarded = discarded > p->told ? discarded : p->told;
	head.checksum = crc__32c(0, &head, sizeof(head));
	return write_packet(c, p, (const char *)&head, sizeof(head));
}

/*
 * The part's file of this stream. It gets its name once there is a packet in it: no reader meets an
 * empty one, or one that was torn by a kill.
 */
static int open_file(struct capture *c, struct packets *p, uint64_t discarded)
{
	char hidden[NAME_MAX_LEN + sizeof(CAPTURE_HIDDEN)], name[NAME_MAX_LEN];
	int err;

	file_name(c, p, name);
	snprintf(hidden, sizeof(hidden), "%s%s", CAPTURE_HIDDEN, name);
	p->fd = openat(c->dir_fd, hidden, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
		       0600);
	if (p->fd < 0)
		return -errno;
	p->file_bytes = 0;
	p->file_number = p->number;
	err = write_empty(c, p, discarded, p->first_ns);
	if (!err && renameat(c->dir_fd, hidden, c->dir_fd, name))
		err = -errno;
	if (err) {
		unlinkat(c->dir_fd, hidden, 0);
		close(p->fd);
		p->fd = -1;
		return err;
	}
	p->file_part = c->part;
	return 0;
}

/* ---- what could not be written ---------------------------------------------------------------- */

static void add_pending(struct packets *p, const struct capture_gap *gap)
{
	struct pending_gap *pending;
	struct capture_gap *sum;

	if (gap->ring > CAPTURE_RING_NONE || gap->cause >= WEIR_LOST_CAUSES)
		return;
	pending = &p->pending[gap->ring][gap->cause];
	sum = &pending->gap;
	p->has_pending = true;
	if (!pending->any) {
		pending->any = true;
		*sum = *gap;
		sum->seq_end = gap->seq_end ? gap->seq_end : gap->seq + gap->lost;
		return;
	}
	sum->lost += gap->lost;
	if (gap->from_ns < sum->from_ns)
		sum->from_ns = gap->from_ns;
	if (gap->to_ns > sum->to_ns)
		sum->to_ns = gap->to_ns;
	if (gap->seq < sum->seq)
		sum->seq = gap->seq;
	if (gap->seq_end > sum->seq_end)
		sum->seq_end = gap->seq_end;
	if (gap->bound > sum->bound)
		sum->bound = gap->bound;
	sum->mark |= gap->mark;
}

static uint64_t widen(uint64_t near, uint32_t seq)
{
	return near + (uint64_t)(int64_t)(int32_t)(seq - (uint32_t)near);
}

/* A record of a packet that is given up. What the selection had turned away is no loss. */
static void drop_record(struct capture *c, struct packets *p, const struct weir_record *head)
{
	unsigned int type = head->type & ~CAPTURE_LATE;
	uint32_t ring = type <= WEIR_T_LIFE_MAX ? CAPTURE_RING_LIFE : CAPTURE_RING_CPU;
	uint64_t seq = widen(p->seq[ring], head->seq);
	const struct capture_gap gap = {
		.from_ns = p->prev_end_ns,
		.to_ns = p->end_ns,
		.lost = 1,
		.seq = seq,
		.seq_end = seq + 1,
		.cause = WEIR_LOST_OUTPUT,
		.ring = ring,
	};

	if (!(c->selected_types >> type & 1))
		return;
	add_pending(p, &gap);
	p->discarded++;
	c->lost(c->ctx, p->source[ring], 1);
}

/* The gaps in it are told again later; their counts are in `discarded` already. */
static void drop_packet(struct capture *c, struct packets *p)
{
	size_t at = HEAD_BYTES;

	while (at < p->at) {
		struct weir_record head;
		const char *payload = p->buf + at + sizeof(head);
		struct capture_gap gap;
		int64_t size;

		memcpy(&head, p->buf + at, sizeof(head));
		size = capture_class__size(head.type, payload, p->at - at - sizeof(head));
		if (head.type == CAPTURE_T_GAP) {
			memcpy(&gap, payload, sizeof(gap));
			add_pending(p, &gap);
		} else if (p->stream == CAPTURE_CPU) {
			drop_record(c, p, &head);
		}
		at = PACKETS_ALIGN8(at + sizeof(head) + (size_t)size);
	}
	p->at = 0;
	p->records = 0;
}

/* ---- packets ---------------------------------------------------------------------------------- */

static void append_gap(struct capture *c, struct packets *p, const struct capture_gap *gap,
		       uint64_t stamp_ns)
{
	const struct weir_record head = {
		.stamp = stamp_ns > c->position_ns ? stamp_ns : c->position_ns,
		.type = CAPTURE_T_GAP,
	};
	char *payload = packets__append(c, p, &head, sizeof(*gap));

	if (payload)
		memcpy(payload, gap, sizeof(*gap));
}

static void tell_pending(struct capture *c, struct packets *p)
{
	p->has_pending = false;
	for (int ring = 0; ring <= CAPTURE_RING_NONE; ring++) {
		for (int cause = 0; cause < WEIR_LOST_CAUSES; cause++) {
			struct pending_gap *pending = &p->pending[ring][cause];

			if (pending->any)
				append_gap(c, p, &pending->gap, pending->gap.to_ns);
			pending->any = false;
		}
	}
}

/*
 * Where the next packet may begin. No two begin at the same time: babeltrace2 sorts the packets of
 * several files by that, and turns equal ones round.
 */
static uint64_t next_begin(const struct packets *p)
{
	return p->prev_end_ns > p->begin_ns ? p->prev_end_ns : p->begin_ns + 1;
}

/* record_ns: of the record that it is opened for; 0: of none. */
static void open_packet(struct capture *c, struct packets *p, uint64_t record_ns)
{
	uint64_t begin_ns = next_begin(p);

	/* Behind the last record of the one before: a reader has no more to do with that then. */
	if (record_ns > begin_ns)
		begin_ns++;
	if (p->fd < 0) {
		p->first_ns = begin_ns > c->part_start_ns ? begin_ns : c->part_start_ns;
		begin_ns = p->first_ns + 1;
	}
	p->at = HEAD_BYTES;
	p->records = 0;
	p->begin_ns = begin_ns;
	if (c->position_ns < begin_ns)
		c->position_ns = begin_ns;
	if (p->end_ns < begin_ns)
		p->end_ns = begin_ns;
	if (p->has_pending)
		tell_pending(c, p);
}

static int write_open_packet(struct capture *c, struct packets *p, uint64_t end_ns)
{
	size_t len = PACKETS_ALIGN8(p->at);
	struct capture_packet head;

	fill_head(c, p, &head, end_ns);
	head.content_bits = 8 * p->at;
	head.packet_bits = 8 * len;
	head.records = p->records;
	memcpy(p->buf, &head, sizeof(head));
	head.checksum = crc__32c(0, p->buf, p->at);
	memcpy(p->buf, &head, sizeof(head));
	memset(p->buf + p->at, 0, len - p->at);
	return write_packet(c, p, p->buf, len);
}

/* Lost in this packet: readers are to count that between the first packet of a file and this. */
static uint64_t discarded_in(const struct packets *p)
{
	uint64_t sum = 0;

	for (size_t at = HEAD_BYTES; at < p->at;) {
		const char *payload = p->buf + at + sizeof(struct weir_record);
		struct weir_record head;
		struct capture_gap gap;

		memcpy(&head, p->buf + at, sizeof(head));
		if (head.type == CAPTURE_T_GAP) {
			memcpy(&gap, payload, sizeof(gap));
			sum += gap.bound == WEIR_BOUND_UNKNOWN ? 0 : gap.lost;
		}
		at += sizeof(head) +
		      (size_t)capture_class__size(head.type, payload, p->at - at - sizeof(head));
		at = PACKETS_ALIGN8(at);
	}
	return sum;
}

static bool is_full(const struct capture *c, const struct packets *p)
{
	return p->at > c->packet_bytes / 2;
}

void packets__close(struct capture *c, struct packets *p, uint64_t end_ns)
{
	int err;

	if (!p->at && p->has_pending)
		open_packet(c, p, 0);
	if (!p->at)
		return;
	/* With the empty ones before and behind it. */
	c->before_write(c->owner, PACKETS_ALIGN8(p->at) + 2 * HEAD_BYTES);
	err = c->no_room ? -ENOSPC : 0;
	if (end_ns < p->end_ns)
		end_ns = p->end_ns;
	if (!err && p->fd < 0)
		err = open_file(c, p, p->discarded - discarded_in(p));
	if (!err)
		err = write_open_packet(c, p, end_ns);
	if (err) {
		if (!c->error)
			c->error = err;
		if (p->stream == CAPTURE_CPU || is_full(c, p))
			drop_packet(c, p);
		return;
	}
	c->records += p->records;
	p->prev_end_ns = end_ns;
	p->at = 0;
}

void packets__end_file(struct capture *c, struct packets *p, uint64_t end_ns)
{
	if (p->ended_part == c->part)
		return;
	p->ended_part = c->part;
	packets__close(c, p, end_ns);
	/* What was kept for another try belongs to this part. */
	if (p->at)
		drop_packet(c, p);
	if (p->fd < 0)
		return;
	if (end_ns < next_begin(p))
		end_ns = next_begin(p);
	if (!c->no_room && !write_empty(c, p, p->discarded, end_ns))
		p->begin_ns = p->prev_end_ns = end_ns;
	if (c->position_ns < end_ns)
		c->position_ns = end_ns;
	close(p->fd);
	p->fd = -1;
}

char *packets__append_slowly(struct capture *c, struct packets *p, const struct weir_record *head,
			     size_t len)
{
	/* What pending gaps take stands in front of it, in the worst case. */
	size_t most = c->packet_bytes - HEAD_BYTES - sizeof(*head) - sizeof(p->pending);
	struct weir_record moved = *head;

	if (len > most)
		return NULL;
	packets__close(c, p, p->end_ns);
	if (p->at)
		drop_packet(c, p);
	open_packet(c, p, head->stamp);
	/* Of the probes' records none is: a full packet of them takes longer than a nanosecond. */
	if (moved.stamp < p->begin_ns)
		moved.stamp = p->begin_ns;
	return packets__append(c, p, &moved, len);
}

void packets__gap(struct capture *c, struct packets *p, const struct capture_gap *gap,
		  uint64_t stamp_ns)
{
	append_gap(c, p, gap, stamp_ns);
	/* After it: the packet that it did not fit into does not count it. */
	if (gap->bound != WEIR_BOUND_UNKNOWN)
		p->discarded += gap->lost;
}
