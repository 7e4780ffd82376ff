/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * walk.h - a capture's files, record by record; what holds of every one is asserted on the way.
 */
#ifndef TEST_CAPTURE_WALK_H
#define TEST_CAPTURE_WALK_H

#include <stddef.h>
#include <stdint.h>

#include <weir/event.h>

#include "capture/layout.h"
#include "capture/metadata.h"

/* An empty folder, and its descriptor. It is removed by folder__remove(). */
struct folder {
	char path[64];
	int fd;
};
void folder__make(struct folder *folder);
void folder__remove(struct folder *folder);

/* What does not matter to a test. */
extern const struct metadata plain_metadata;

struct walk_record {
	const struct capture_packet *packet;
	struct weir_record head;
	const char *payload;
	size_t len;
};

/*
 * Call fn for each record of a file. Asserts sizes, bounds, checksum, that stamps do not step back, that
 * packets begin one after the other, and that the first is empty. Returns how many packets there are,
 * -1: no such file. The last packet's head goes to *last, if that is not NULL.
 */
typedef void (*walk_fn)(void *ctx, const struct walk_record *record);
int walk__file(const struct folder *folder, const char *name, walk_fn fn, void *ctx,
	       struct capture_packet *last);

/* Records of this id in the file. */
int walk__count(const struct folder *folder, const char *name, unsigned int id);

#endif /* TEST_CAPTURE_WALK_H */
