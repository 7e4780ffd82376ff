/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * compress.h - closed parts, compressed beside the recording by a thread of low priority.
 *
 * A part that is removed meanwhile stays removed; one whose files can't be compressed stays as it is.
 */
#ifndef WEIR_CAPTURE_COMPRESS_H
#define WEIR_CAPTURE_COMPRESS_H

#include <stdbool.h>
#include <stdint.h>

struct compressor;

/* Starts the thread. dir_fd is borrowed. NULL and errno on failure. */
struct compressor *compressor__new(int dir_fd);

/* Gives up what is not done, and ends the thread: within the time that a packet takes. */
void compressor__free(struct compressor *compressor);

/* The files of this part are whole. */
void compressor__add(struct compressor *compressor, uint32_t part);

/* From now on no file of this part or an older one comes into being. */
void compressor__forget(struct compressor *compressor, uint32_t part);

/* A part that is done: by how many bytes it is smaller. false: no other one is. */
bool compressor__done(struct compressor *compressor, uint32_t *part, uint64_t *saved);

#endif /* WEIR_CAPTURE_COMPRESS_H */
