/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * parts.h - the closed parts of a capture: how large, how old, and which goes first.
 */
#ifndef WEIR_CAPTURE_PARTS_H
#define WEIR_CAPTURE_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct part {
	uint32_t number;
	uint64_t bytes;
	uint64_t end_ns;
};

/* The oldest first. Begins as zeros. */
struct parts {
	struct part *at;
	size_t nr, room;
	uint64_t bytes; /* of all */
};

/* What a name in a capture's folder means: the number of its part. false: it is no part's file. */
bool parts__parse(const char *name, uint32_t *number);

/* One more was closed. -ENOMEM: it will never be removed. */
int parts__add(struct parts *parts, const struct part *part);

/* Its files have become smaller. */
void parts__shrink(struct parts *parts, uint32_t number, uint64_t by);

/* Call fn for every plain file of a part, until it returns false. */
void parts__each_file(int dir_fd, uint32_t number,
		      bool (*fn)(void *ctx, int dir_fd, const char *name), void *ctx);

/* Remove the files of the oldest. false: there is none. */
bool parts__remove_oldest(struct parts *parts, int dir_fd);

void parts__free(struct parts *parts);

/*
 * Is there anything in the folder? And are all of it files of a capture (PARTS_CAPTURE)? Hidden files
 * are, too. -errno: it can't be read.
 */
enum parts_folder { PARTS_EMPTY = 0, PARTS_CAPTURE, PARTS_OTHER };
int parts__look(int dir_fd);

/* Remove the metadata and all parts' files, and nothing else. 0 or -errno. */
int parts__remove_all(int dir_fd);

#endif /* WEIR_CAPTURE_PARTS_H */
