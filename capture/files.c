/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * files.c - the folder of a capture: which streams there are, and which files they have.
 *
 * Promises that each file is one of the names in docs/capture.md, once for each part, and that time and
 * memory go by how many there are, whatever the notes tell of others. Must not know what is in them.
 */
#include "capture/reading.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- names ------------------------------------------------------------------------------------ */

#define NAME_BYTES sizeof(((struct reader_file *)NULL)->name)

static void make_name(char name[NAME_BYTES], enum capture_stream kind, uint32_t instance,
		      uint32_t part)
{
	if (kind == CAPTURE_CPU)
		snprintf(name, NAME_BYTES, CAPTURE_CPU_FILE, instance, part);
	else
		snprintf(name, NAME_BYTES,
			 kind == CAPTURE_TASKS ? CAPTURE_TASKS_FILE : CAPTURE_NOTES_FILE, part);
}

/* Exactly what is made of its numbers: no sign, no more zeros than that. */
static bool parse_name(const char *name, enum capture_stream *kind, uint32_t *instance,
		       uint32_t *part)
{
	char again[NAME_BYTES];

	*instance = *part = 0;
	if (sscanf(name, "cpu%u.%u", instance, part) == 2)
		*kind = CAPTURE_CPU;
	else if (sscanf(name, "tasks.%u", part) == 1)
		*kind = CAPTURE_TASKS;
	else if (sscanf(name, "weir.%u", part) == 1)
		*kind = CAPTURE_NOTES;
	else
		return false;
	make_name(again, *kind, *instance, *part);
	return !strcmp(name, again);
}

static struct reader_stream *append_stream(struct reader *r, enum capture_stream kind,
					   uint32_t instance)
{
	struct reader_stream *grown = reading__grow(r->streams, r->nr_streams, sizeof(*grown));

	if (!grown)
		return NULL;
	r->streams = grown;
	grown[r->nr_streams] = (struct reader_stream){.kind = kind, .instance = instance};
	return &grown[r->nr_streams++];
}

static struct reader_stream *stream_of(struct reader *r, enum capture_stream kind,
				       uint32_t instance)
{
	for (size_t i = 0; i < r->nr_streams; i++)
		if (r->streams[i].kind == kind && r->streams[i].instance == instance)
			return &r->streams[i];
	return append_stream(r, kind, instance);
}

/* A part that is there both ways was left by a kill while it was being compressed: take the plain one. */
static bool has_part(const struct reader_stream *stream, uint32_t part)
{
	for (size_t i = 0; i < stream->nr_files; i++)
		if (stream->files[i].part == part)
			return true;
	return false;
}

static struct reader_file *append_file(struct reader_stream *stream, const struct reader_file *file)
{
	struct reader_file *grown = reading__grow(stream->files, stream->nr_files, sizeof(*grown));

	if (!grown)
		return NULL;
	stream->files = grown;
	grown[stream->nr_files] = *file;
	return &grown[stream->nr_files++];
}

static int add_file(struct reader *r, const char *name, bool compressed)
{
	struct reader_file file = {.compressed = compressed};
	struct reader_stream *stream;
	enum capture_stream kind;
	uint32_t instance;

	if (!parse_name(name, &kind, &instance, &file.part))
		return 0;
	stream = stream_of(r, kind, instance);
	if (!stream)
		return -ENOMEM;
	if (compressed && has_part(stream, file.part))
		return 0;
	snprintf(file.name, sizeof(file.name), "%s%s", name, compressed ? CAPTURE_ZSTD_SUFFIX : "");
	return append_file(stream, &file) ? 0 : -ENOMEM;
}

/* Its name without the suffix; false: it has none. */
static bool cut_suffix(char *name)
{
	size_t len = strlen(name), suffix = strlen(CAPTURE_ZSTD_SUFFIX);

	if (len <= suffix || strcmp(name + len - suffix, CAPTURE_ZSTD_SUFFIX) != 0)
		return false;
	name[len - suffix] = '\0';
	return true;
}

static int list_folder(struct reader *r, int dir, bool compressed)
{
	int fd = dup(dir), err = 0;
	DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *item;

	if (!list) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	while (!err && (item = readdir(list)))
		if (item->d_name[0] != '.' && (!compressed || cut_suffix(item->d_name)))
			err = add_file(r, item->d_name, compressed);
	closedir(list);
	return err;
}

static int by_part(const void *a, const void *b)
{
	const struct reader_file *x = a, *y = b;

	return (x->part > y->part) - (x->part < y->part);
}

static int by_kind(const void *a, const void *b)
{
	const struct reader_stream *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return (x->instance > y->instance) - (x->instance < y->instance);
}

static void sort_files(struct reader_stream *stream)
{
	qsort(stream->files, stream->nr_files, sizeof(*stream->files), by_part);
}

static void sort_streams(struct reader *r)
{
	if (r->nr_streams)
		qsort(r->streams, r->nr_streams, sizeof(*r->streams), by_kind);
}

int files__list(struct reader *r)
{
	int err = list_folder(r, r->dir, false);

	r->zstd_dir = openat(r->dir, CAPTURE_ZSTD_FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!err && r->zstd_dir >= 0)
		err = list_folder(r, r->zstd_dir, true);
	for (size_t i = 0; i < r->nr_streams; i++)
		sort_files(&r->streams[i]);
	sort_streams(r);
	return err;
}

/* ---- what the notes tell of ------------------------------------------------------------------- */

static int by_stream(const struct told_file *a, const struct told_file *b)
{
	if (a->file.stream != b->file.stream)
		return a->file.stream < b->file.stream ? -1 : 1;
	return (a->file.instance > b->file.instance) - (a->file.instance < b->file.instance);
}

static int by_file(const void *a, const void *b)
{
	const struct told_file *x = a, *y = b;
	int order = by_stream(x, y);

	return order ? order : (x->part > y->part) - (x->part < y->part);
}

static int add_gone(struct reader_stream *stream, const struct told_file *told)
{
	struct reader_file file = {
		.part = told->part, .number = told->file.number, .end = told->file.end};

	make_name(file.name, stream->kind, stream->instance, told->part);
	return append_file(stream, &file) ? 0 : -ENOMEM;
}

/* What is told of one stream; both by part. */
static int expect_files(struct reader_stream *stream, const struct told_file *told, size_t count)
{
	size_t there = stream->nr_files, at = 0;
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		if (i && told[i].part == told[i - 1].part)
			continue;
		while (at < there && stream->files[at].part < told[i].part)
			at++;
		if (at == there || stream->files[at].part != told[i].part) {
			err = add_gone(stream, &told[i]);
			continue;
		}
		stream->files[at].number = told[i].file.number;
		stream->files[at].end = told[i].file.end;
	}
	sort_files(stream);
	return err;
}

int files__expect(struct reader *r, struct told_file *told, size_t count)
{
	size_t there = r->nr_streams, i = 0;
	int err = 0;

	if (count)
		qsort(told, count, sizeof(*told), by_file);
	while (i < count && !err) {
		const struct reader_stream key = {.kind = (enum capture_stream)told[i].file.stream,
						  .instance = told[i].file.instance};
		struct reader_stream *stream = bsearch(&key, r->streams, there, sizeof(key),
						       by_kind);
		size_t first = i;

		while (i < count && !by_stream(&told[i], &told[first]))
			i++;
		if (!stream)
			stream = append_stream(r, key.kind, key.instance);
		err = stream ? expect_files(stream, told + first, i - first) : -ENOMEM;
	}
	sort_streams(r);
	return err;
}
