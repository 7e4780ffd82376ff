/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * packets.h - one stream of a capture: the packet that is being filled, and the file it goes to.
 *
 * Header stamps never step back, within a stream and over all of them: the caller appends what the
 * stream delivers, in that order. What can't be written is lost, counted, and told as gaps as soon as
 * there is room again.
 */
#ifndef WEIR_CAPTURE_PACKETS_H
#define WEIR_CAPTURE_PACKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <weir/event.h>

#include "capture/layout.h"

#define PACKETS_ALIGN8(offset) (((offset) + 7) & ~(size_t)7)

/* What the streams of a capture share. */
struct capture {
	int dir_fd;
	uint8_t uuid[16];
	size_t packet_bytes; /* at most so much each */
	uint32_t part;
	uint64_t part_start_ns;
	uint64_t position_ns;	 /* the greatest stamp of a header so far */
	uint32_t selected_types; /* bit 1 << enum weir_type: the others were filtered, not lost */
	/* So much is about to be written: makes room, or sets no_room, and then nothing is. */
	void (*before_write)(void *owner, size_t bytes);
	void *owner;
	bool no_room;
	int error;	     /* the first that a write met: -errno */
	uint64_t part_bytes; /* written to files of this part */
	uint64_t records;    /* in packets that were written, all classes */
	uint64_t bytes;	     /* in all */
	/* Records that were counted as delivered, and are lost. */
	void (*lost)(void *ctx, uint32_t source, uint64_t records);
	void *ctx;
};

/* Losses of one ring and cause that wait to be told. */
struct pending_gap {
	bool any;
	struct capture_gap gap;
};

struct packets {
	enum capture_stream stream;
	uint32_t instance;
	int fd;	   /* -1: its file does not exist yet */
	char *buf; /* capture.packet_bytes */
	size_t at; /* where the open packet ends; 0: none is open */
	uint32_t records;
	uint64_t first_ns;    /* of the empty packet that is to stand before this, in a new file */
	uint64_t begin_ns;    /* of the open packet, or of the last one */
	uint64_t prev_end_ns; /* of the last packet in a file */
	uint64_t end_ns;      /* stamp of the last record */
	uint64_t discarded;
	uint64_t told; /* of that, what the last packet in a file has */
	uint64_t number;
	uint64_t file_bytes;  /* whole packets */
	uint64_t file_number; /* of the file's first packet */
	uint32_t file_part;   /* whose the file is, or the last one was; 0: there was none */
	uint32_t ended_part;  /* that has got all of this stream */
	uint64_t seq[2];      /* by enum capture_ring, of the last record */
	uint32_t source[2];
	bool has_pending;
	struct pending_gap pending[CAPTURE_RING_NONE + 1][WEIR_LOST_CAUSES];
};

/* NULL: no memory. */
struct packets *packets__new(const struct capture *capture, enum capture_stream stream,
			     uint32_t instance);
void packets__free(struct packets *packets); /* writes nothing */

/*
 * Room for a record whose payload has `len` bytes: to be filled in by the caller at once. Closes the
 * packet first if it is full. NULL: it is longer than any packet.
 */
char *packets__append_slowly(struct capture *capture, struct packets *packets,
			     const struct weir_record *head, size_t len);

static inline char *packets__append(struct capture *capture, struct packets *packets,
				    const struct weir_record *head, size_t len)
{
	size_t at = PACKETS_ALIGN8(packets->at), end = at + sizeof(*head) + len;
	char *record = packets->buf + at;

	if (!at || end > capture->packet_bytes)
		return packets__append_slowly(capture, packets, head, len);
	if (at != packets->at)
		memset(packets->buf + packets->at, 0, at - packets->at);
	memcpy(record, head, sizeof(*head));
	packets->at = end;
	packets->records++;
	packets->end_ns = capture->position_ns = head->stamp;
	return record + sizeof(*head);
}

/* A loss, which CTF's readers are told as well. */
void packets__gap(struct capture *capture, struct packets *packets, const struct capture_gap *gap,
		  uint64_t stamp_ns);

/*
 * Write the open packet, which ends at end_ns. Streams other than a CPU's keep it when that fails, as
 * long as it is not full.
 */
void packets__close(struct capture *capture, struct packets *packets, uint64_t end_ns);

/*
 * The same, then an empty one, for loss behind the last record; the file is whole. What could not be told
 * by then waits for the next part.
 */
void packets__end_file(struct capture *capture, struct packets *packets, uint64_t end_ns);

#endif /* WEIR_CAPTURE_PACKETS_H */
