/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * feeding.h - what the feed's files share: feed.c (all lanes side by side), lane.c (one of them),
 * settle.c (the account of the end). Nobody else includes it.
 */
#ifndef WEIR_CAPTURE_FEEDING_H
#define WEIR_CAPTURE_FEEDING_H

#include "capture/feed.h"
#include "capture/packet.h"
#include "stream/told.h"

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

static inline const struct reader_stream *lane__stream(const struct feed *f,
						       const struct lane *lane)
{
	size_t count;

	return &reader__streams(f->reader, &count)[lane->stream];
}

/* Tell more, until the lane is ahead of what was delivered. */
void lane__advance(struct feed *f, struct lane *lane);

/* What the notes tell of a source, and what that is to its account when all is told. */
void settle__note(struct feed *f, const struct capture_account *account);
void settle__all(struct feed *f);

#endif /* WEIR_CAPTURE_FEEDING_H */
