/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reading.h - what the reader's files share: reader.c (the handle), files.c (the folder), index.c
 * (the packets). Nobody else includes it.
 */
#ifndef WEIR_CAPTURE_READING_H
#define WEIR_CAPTURE_READING_H

#include "capture/reader.h"
#include "capture/store.h"

struct reader {
	int dir, zstd_dir; /* zstd_dir -1: there is none */
	struct reader_env env;
	char *command;
	struct reader_stream *streams;
	size_t nr_streams;
	struct reader_flaw *flaws;
	size_t nr_flaws;
	/* The file that a stream was read from last, by stream. */
	struct {
		struct store store;
		size_t file; /* SIZE_MAX: none */
	} * open;
};

/* Room for one more, doubling: amortised. NULL: no memory. */
void *reading__grow(void *array, size_t count, size_t size);

/* A file of a stream, open. 0 or -errno. */
int reading__open(const struct reader *r, const struct reader_file *file, struct store *store);

/* The streams and their files, by the names in the folder; sorted. 0 or -errno. */
int files__list(struct reader *r);

/* A file that the notes have told of. */
struct told_file {
	uint32_t part;
	struct capture_file file;
};

/* Notes in the streams' files what was told, and adds those that are gone. Sorts `told`. 0 or -ENOMEM. */
int files__expect(struct reader *r, struct told_file *told, size_t count);

/* The packets of all files, and what is wrong with them. 0 or -ENOMEM. */
int index__make(struct reader *r);

#endif /* WEIR_CAPTURE_READING_H */
