/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * store.h - a file of a capture as the bytes that it had when it was written, compressed or not.
 */
#ifndef WEIR_CAPTURE_STORE_H
#define WEIR_CAPTURE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct store_zstd;

struct store {
	int fd;
	uint64_t size;		 /* of the plain bytes */
	struct store_zstd *zstd; /* NULL: the file is them */
};

/*
 * 0, or -errno; -EBADMSG: it says that it is compressed, and no frame can be made out. A file that
 * grows or shrinks meanwhile is read as far as it goes.
 */
int store__open(struct store *store, int dir, const char *name, bool compressed);
void store__close(struct store *store);

/*
 * Up to `len` bytes from `offset` on, or -errno; fewer: there are no more. What can't be decompressed is
 * zeros.
 */
ssize_t store__read(struct store *store, void *buf, size_t len, uint64_t offset);

#endif /* WEIR_CAPTURE_STORE_H */
