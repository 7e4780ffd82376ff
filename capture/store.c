/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * store.c - plain bytes out of files, some of which are compressed a frame a packet.
 *
 * Owns the list of frames, and the one that was read last. Promises that no bytes of a file make it look
 * outside its buffers, or take more than a packet's memory (G8); that a frame which can't be read is
 * zeros, so that those behind it keep their places. Must not know what a packet is.
 */
#include "capture/store.h"

#include "capture/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#define SKIPPABLE_MAGIC 0x184D2A5Eu
#define SEEKABLE_MAGIC	0x8F92EAB1u
#define TABLE_HEAD	8u
#define TABLE_FOOT	9u
#define TABLE_ENTRY	8u
#define HEAD_MAX	4096u /* up to here, the front of a frame is enough */
#define FRONT_BYTES	(192u << 10)
#define WINDOW_LOG	20 /* of a packet */

struct frame {
	uint64_t at, plain_at;
	uint32_t bytes, plain_bytes;
};

struct store_zstd {
	struct frame *frames;
	size_t nr_frames;
	ZSTD_DCtx *ctx;
	uint8_t *plain, *packed; /* a packet each, the second as large as it can become */
	size_t cached;		 /* the frame in `plain`; SIZE_MAX: none */
};

/* ---- the file --------------------------------------------------------------------------------- */

static ssize_t read_file(int fd, void *buf, size_t len, uint64_t offset)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = pread(fd, (char *)buf + done, len - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

/* ---- frames ----------------------------------------------------------------------------------- */

static int add_frame(struct store_zstd *z, uint64_t at, uint32_t bytes, uint64_t plain_bytes)
{
	const struct frame *last = z->nr_frames ? &z->frames[z->nr_frames - 1] : NULL;
	uint64_t plain_at = last ? last->plain_at + last->plain_bytes : 0;
	struct frame *grown = z->frames;

	if (!plain_bytes || plain_bytes > CAPTURE_PACKET_BYTES ||
	    bytes > ZSTD_compressBound(CAPTURE_PACKET_BYTES))
		return -EBADMSG;
	if (!(z->nr_frames & (z->nr_frames - 1)))
		grown = realloc(grown, (z->nr_frames ? 2 * z->nr_frames : 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	z->frames = grown;
	grown[z->nr_frames++] = (struct frame){
		.at = at,
		.plain_at = plain_at,
		.bytes = bytes,
		.plain_bytes = (uint32_t)plain_bytes,
	};
	return 0;
}

/* The table at the end. -EBADMSG: there is none, or it is not of this file. */
static int read_table(struct store_zstd *z, int fd, uint64_t size)
{
	uint8_t foot[TABLE_FOOT], *table;
	uint32_t frames, magic, entry[2];
	uint64_t at = 0, bytes;
	int err = 0;

	if (size < TABLE_HEAD + TABLE_FOOT ||
	    read_file(fd, foot, sizeof(foot), size - TABLE_FOOT) != (ssize_t)TABLE_FOOT)
		return -EBADMSG;
	memcpy(&frames, foot, sizeof(frames));
	memcpy(&magic, foot + 5, sizeof(magic));
	bytes = TABLE_HEAD + (uint64_t)frames * TABLE_ENTRY + TABLE_FOOT;
	if (magic != SEEKABLE_MAGIC || bytes > size)
		return -EBADMSG;
	table = malloc(bytes);
	if (!table)
		return -ENOMEM;
	if (read_file(fd, table, bytes, size - bytes) != (ssize_t)bytes)
		err = -EBADMSG;
	for (uint32_t i = 0; i < frames && !err; i++) {
		memcpy(entry, table + TABLE_HEAD + i * TABLE_ENTRY, sizeof(entry));
		err = add_frame(z, at, entry[0], entry[1]);
		at += entry[0];
	}
	free(table);
	return err ? err : at + bytes == size ? 0 : -EBADMSG;
}

/* Bytes of the file that are in memory. */
struct window {
	uint64_t at;
	size_t bytes;
};

/* How long the frame at this place is, with all of it in the window; 0: there is none. */
static size_t look_at_frame(struct store_zstd *z, int fd, uint64_t at, struct window *window)
{
	size_t from = (size_t)(at - window->at);
	size_t bytes = ZSTD_findFrameCompressedSize(z->packed + from, window->bytes - from);
	ssize_t n;

	/* It may only go on behind the window. Frames are short: most are read with the one before. */
	if (ZSTD_isError(bytes)) {
		n = read_file(fd, z->packed, ZSTD_compressBound(CAPTURE_PACKET_BYTES), at);
		*window = (struct window){at, n > 0 ? (size_t)n : 0};
		bytes = ZSTD_findFrameCompressedSize(z->packed, window->bytes);
	}
	return ZSTD_isError(bytes) ? 0 : bytes;
}

/* One frame after the other, as far as they can be told apart. */
static int walk_frames(struct store_zstd *z, int fd, uint64_t size)
{
	struct window window = {0, 0};
	uint64_t at = 0;
	int err = 0;

	z->nr_frames = 0;
	while (!err && at < size) {
		size_t bytes = look_at_frame(z, fd, at, &window);

		if (!bytes)
			break;
		err = add_frame(z, at, (uint32_t)bytes,
				ZSTD_getFrameContentSize(z->packed + (at - window.at), bytes));
		at += bytes;
	}
	return err == -ENOMEM ? err : z->nr_frames ? 0 : -EBADMSG;
}

static void close_zstd(struct store_zstd *z)
{
	if (!z)
		return;
	ZSTD_freeDCtx(z->ctx);
	free(z->frames);
	free(z->plain);
	free(z->packed);
	free(z);
}

static int open_zstd(struct store *store)
{
	struct store_zstd *z = calloc(1, sizeof(*z));
	const struct frame *last;
	int err;

	store->zstd = z;
	if (!z)
		return -ENOMEM;
	z->cached = SIZE_MAX;
	z->ctx = ZSTD_createDCtx();
	z->plain = malloc(CAPTURE_PACKET_BYTES);
	z->packed = malloc(ZSTD_compressBound(CAPTURE_PACKET_BYTES));
	if (!z->ctx || !z->plain || !z->packed)
		return -ENOMEM;
	/* A frame may ask for more than it is long. */
	ZSTD_DCtx_setParameter(z->ctx, ZSTD_d_windowLogMax, WINDOW_LOG);
	err = read_table(z, store->fd, store->size);
	if (err == -EBADMSG)
		err = walk_frames(z, store->fd, store->size);
	if (err || !z->nr_frames)
		return err ? err : -EBADMSG;
	last = &z->frames[z->nr_frames - 1];
	store->size = last->plain_at + last->plain_bytes;
	return 0;
}

/* ---- reading ---------------------------------------------------------------------------------- */

/* The frame that a plain byte is in; offset is inside of the file. */
static size_t frame_of(const struct store_zstd *z, uint64_t offset)
{
	size_t low = 0, high = z->nr_frames;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (z->frames[middle].plain_at <= offset)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static void load_frame(struct store *store, size_t i)
{
	struct store_zstd *z = store->zstd;
	const struct frame *frame = &z->frames[i];
	size_t n;

	if (z->cached == i)
		return;
	z->cached = i;
	memset(z->plain, 0, frame->plain_bytes);
	if (read_file(store->fd, z->packed, frame->bytes, frame->at) != (ssize_t)frame->bytes)
		return;
	n = ZSTD_decompressDCtx(z->ctx, z->plain, frame->plain_bytes, z->packed, frame->bytes);
	if (ZSTD_isError(n))
		memset(z->plain, 0, frame->plain_bytes);
}

/* A head: its frame's first block will do. */
static void read_front(struct store *store, const struct frame *frame, void *buf, size_t len)
{
	struct store_zstd *z = store->zstd;
	size_t packed = frame->bytes < FRONT_BYTES ? frame->bytes : FRONT_BYTES, left = 1;
	ZSTD_outBuffer out = {buf, len, 0};
	ZSTD_inBuffer in = {z->packed, packed, 0};

	memset(buf, 0, len);
	if (read_file(store->fd, z->packed, packed, frame->at) != (ssize_t)packed)
		return;
	ZSTD_DCtx_reset(z->ctx, ZSTD_reset_session_only);
	while (out.pos < out.size && in.pos < in.size && left && !ZSTD_isError(left))
		left = ZSTD_decompressStream(z->ctx, &out, &in);
	ZSTD_DCtx_reset(z->ctx, ZSTD_reset_session_only);
}

static size_t read_frame(struct store *store, void *buf, size_t len, uint64_t offset)
{
	struct store_zstd *z = store->zstd;
	size_t i = frame_of(z, offset);
	const struct frame *frame = &z->frames[i];
	size_t from = (size_t)(offset - frame->plain_at), have = frame->plain_bytes - from;

	if (len > have)
		len = have;
	if (!from && len <= HEAD_MAX && z->cached != i) {
		read_front(store, frame, buf, len);
		return len;
	}
	load_frame(store, i);
	memcpy(buf, z->plain + from, len);
	return len;
}

ssize_t store__read(struct store *store, void *buf, size_t len, uint64_t offset)
{
	size_t done = 0;

	if (!store->zstd)
		return read_file(store->fd, buf, len, offset);
	while (done < len && offset + done < store->size)
		done += read_frame(store, (char *)buf + done, len - done, offset + done);
	return (ssize_t)done;
}

int store__open(struct store *store, int dir, const char *name, bool compressed)
{
	struct stat st;
	int err = 0;

	*store = (struct store){.fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
	if (store->fd < 0)
		return -errno;
	if (fstat(store->fd, &st))
		err = -errno;
	else if (!S_ISREG(st.st_mode))
		err = -EINVAL;
	store->size = err ? 0 : (uint64_t)st.st_size;
	if (!err && compressed)
		err = open_zstd(store);
	if (err)
		store__close(store);
	return err;
}

void store__close(struct store *store)
{
	close_zstd(store->zstd);
	store->zstd = NULL;
	if (store->fd >= 0)
		close(store->fd);
	store->fd = -1;
}
