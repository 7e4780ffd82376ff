/* SPDX-License-Identifier: BSD-2-Clause */
/* replayed.h - all that comes out of a capture, kept. */
#ifndef TEST_CAPTURE_REPLAYED_H
#define TEST_CAPTURE_REPLAYED_H

#include <stddef.h>

#include <weir/stream.h>

#include "capture/feed.h"

struct replayed_event {
	struct weir_event event; /* data is gone */
	struct weir_gap gap;
	uint32_t pid; /* of a record */
	int64_t wall_ns;
	char source[16]; /* "": the whole machine */
};

struct replayed {
	struct replayed_event *events;
	size_t count, room, records, gaps, late;
	uint64_t watermark_ns;
	struct weir_ledger ledger;
	struct feed_end end;
	size_t tasks;
	char exe[64], cgroups[64];
	struct weir_stream *stream;
};

/* All of it; checks that nothing steps back and that the account closes. */
void replayed__take(struct replayed *replayed, const char *path, uint64_t from_ns, uint64_t to_ns);
void replayed__free(struct replayed *replayed);

#endif /* TEST_CAPTURE_REPLAYED_H */
