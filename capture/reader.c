/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reader.c - the handle: a folder that was opened, and the packets that are asked for.
 *
 * Promises that a packet which is given out is whole, and the one that the index has. Must not know what
 * the records mean.
 */
#include "capture/env.h"
#include "capture/packet.h"
#include "capture/reading.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define METADATA_MAX_BYTES (64u << 20) /* twice the longest command line, with its escapes */

void *reading__grow(void *array, size_t count, size_t size)
{
	if (count & (count - 1))
		return array;
	return realloc(array, (count ? 2 * count : 1) * size);
}

int reading__open(const struct reader *r, const struct reader_file *file, struct store *store)
{
	return store__open(store, file->compressed ? r->zstd_dir : r->dir, file->name,
			   file->compressed);
}

/* ---- the whole -------------------------------------------------------------------------------- */

static int read_metadata(struct reader *r)
{
	struct store store;
	ssize_t n = 0;
	size_t size;
	char *text;
	int err;

	if (store__open(&store, r->dir, CAPTURE_METADATA, false))
		return 0;
	size = store.size < METADATA_MAX_BYTES ? store.size : METADATA_MAX_BYTES;
	text = malloc(size + 1);
	if (text)
		n = store__read(&store, text, size, 0);
	r->env.has_metadata = n > 0;
	err = !text ? -ENOMEM : n > 0 ? env__parse(text, (size_t)n, &r->env, &r->command) : 0;
	r->env.command = r->command;
	free(text);
	store__close(&store);
	return err;
}

static int open_all(struct reader *r)
{
	int err = read_metadata(r);

	if (!err)
		err = files__list(r);
	if (!err && !r->nr_streams)
		return -ENOMSG;
	if (!err)
		err = index__make(r);
	if (err)
		return err;
	r->open = calloc(r->nr_streams, sizeof(*r->open));
	if (!r->open)
		return -ENOMEM;
	for (size_t i = 0; i < r->nr_streams; i++)
		r->open[i].file = SIZE_MAX;
	return 0;
}

struct reader *reader__open(const char *path, char *err, size_t err_len)
{
	struct reader *r = calloc(1, sizeof(*r));
	int error = ENOMEM;

	if (r) {
		r->zstd_dir = -1;
		r->env.selected_types = UINT32_MAX;
		r->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		error = r->dir < 0 ? errno : -open_all(r);
	}
	if (!error)
		return r;
	if (error == ENOMSG)
		snprintf(err, err_len, "%s: no capture: there are no files of one in it", path);
	else
		snprintf(err, err_len, "%s: %s", path, strerror(error));
	reader__close(r);
	return NULL;
}

void reader__close(struct reader *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->nr_streams; i++) {
		if (r->open && r->open[i].file != SIZE_MAX)
			store__close(&r->open[i].store);
		free(r->streams[i].files);
		free(r->streams[i].packets);
	}
	if (r->zstd_dir >= 0)
		close(r->zstd_dir);
	if (r->dir >= 0)
		close(r->dir);
	free(r->open);
	free(r->streams);
	free(r->flaws);
	free(r->command);
	free(r);
}

const struct reader_env *reader__env(const struct reader *r)
{
	return &r->env;
}

const struct reader_stream *reader__streams(const struct reader *r, size_t *count)
{
	*count = r->nr_streams;
	return r->streams;
}

void reader__span(const struct reader *r, uint64_t *begin_ns, uint64_t *end_ns)
{
	uint64_t first_ns = UINT64_MAX, last_ns = 0;

	for (size_t i = 0; i < r->nr_streams; i++) {
		const struct reader_packet *packets = r->streams[i].packets;
		size_t n = r->streams[i].nr_packets;

		if (n && packets[0].begin_ns < first_ns)
			first_ns = packets[0].begin_ns;
		if (n && packets[n - 1].end_ns > last_ns)
			last_ns = packets[n - 1].end_ns;
	}
	*begin_ns = first_ns < last_ns ? first_ns : last_ns;
	*end_ns = last_ns;
}

const struct reader_flaw *reader__flaws(const struct reader *r, size_t *count)
{
	*count = r->nr_flaws;
	return r->flaws;
}

int reader__dir(const struct reader *r)
{
	return r->dir;
}

/* Whoever records there has locked the folder. */
bool reader__is_recording(const struct reader *r)
{
	if (flock(r->dir, LOCK_SH | LOCK_NB))
		return errno == EWOULDBLOCK;
	flock(r->dir, LOCK_UN);
	return false;
}

/* The one before is closed: a stream has one file open at a time, however many there are. */
static int open_file(struct reader *r, size_t stream, size_t file)
{
	int err;

	if (r->open[stream].file == file)
		return 0;
	if (r->open[stream].file != SIZE_MAX)
		store__close(&r->open[stream].store);
	r->open[stream].file = SIZE_MAX;
	err = reading__open(r, &r->streams[stream].files[file], &r->open[stream].store);
	if (!err)
		r->open[stream].file = file;
	return err;
}

int reader__packet(struct reader *r, size_t stream, size_t packet, void *buf)
{
	const struct reader_packet *p = &r->streams[stream].packets[packet];
	const struct packet_place place = {r->env.uuid, r->streams[stream].kind,
					   r->streams[stream].instance};
	const struct capture_packet *head = buf;
	int err = open_file(r, stream, p->file);
	ssize_t n;

	if (err)
		return err;
	n = store__read(&r->open[stream].store, buf, p->bytes, p->offset);
	if (n < 0)
		return (int)n;
	/* The file may have changed since the index was made. */
	if (n != (ssize_t)p->bytes || !packet__is_head(head, &place) ||
	    packet__bytes(head) != p->bytes || !packet__is_intact(buf))
		return -EBADMSG;
	return 0;
}

int reader__bytes(struct reader *r, size_t stream, size_t file, uint64_t offset, void *buf,
		  size_t len)
{
	int err = open_file(r, stream, file);
	ssize_t n = err ? err : store__read(&r->open[stream].store, buf, len, offset);

	if (n < 0)
		return (int)n;
	return n == (ssize_t)len ? 0 : -ENODATA;
}
