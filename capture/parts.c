// SPDX-License-Identifier: BSD-2-Clause
/*
 * parts.c - what a capture's folder holds, by the names in it.
 *
 * Promises to remove nothing but files that have the name of a capture's. Must not know what is in
 * them.
 */
#include "capture/parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/layout.h"

static size_t digits(const char *s)
{
	return strspn(s, "0123456789");
}

/* "cpu12", "tasks", "weir": how long; 0: none of these. */
static size_t stream_name(const char *name)
{
	if (!strncmp(name, "cpu", 3))
		return digits(name + 3) ? 3 + digits(name + 3) : 0;
	if (!strncmp(name, "tasks", 5))
		return 5;
	return !strncmp(name, "weir", 4) ? 4 : 0;
}

bool parts__parse(const char *name, uint32_t *number)
{
	size_t len = stream_name(name), nr_digits;

	if (!len || name[len] != '.')
		return false;
	name += len + 1;
	nr_digits = digits(name);
	if (nr_digits < 6 || nr_digits > 9)
		return false;
	*number = (uint32_t)strtoul(name, NULL, 10);
	return !name[nr_digits] || !strcmp(name + nr_digits, CAPTURE_ZSTD_SUFFIX);
}

/* A file that was left by a kill before it had its name. */
static bool is_hidden_file(const char *name)
{
	size_t dot = strlen(CAPTURE_HIDDEN);
	uint32_t number;

	return !strncmp(name, CAPTURE_HIDDEN, dot) &&
	       (parts__parse(name + dot, &number) || !strcmp(name + dot, CAPTURE_METADATA));
}

typedef bool (*name_fn)(void *ctx, int dir_fd, const char *name);

/* Until fn returns false. 0 or -errno. */
static int each_name(int dir_fd, name_fn fn, void *ctx)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir)
		return -errno;
	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
		    !fn(ctx, dir_fd, entry->d_name))
			break;
	closedir(dir);
	return 0;
}

static bool remove_of_part(void *ctx, int dir_fd, const char *name)
{
	const struct part *part = ctx;
	uint32_t number;

	if (parts__parse(name, &number) && number == part->number)
		unlinkat(dir_fd, name, 0);
	return true;
}

static bool remove_notes_of_part(void *ctx, int dir_fd, const char *name)
{
	return strncmp(name, "weir", 4) != 0 || remove_of_part(ctx, dir_fd, name);
}

/* Runs fn over the folder of compressed parts, where there is one. */
static void each_compressed(int dir_fd, name_fn fn, void *ctx)
{
	/* A link leads to what is no part of the capture. */
	int fd = openat(dir_fd, CAPTURE_ZSTD_FOLDER,
			O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return;
	each_name(fd, fn, ctx);
	close(fd);
}

int parts__add(struct parts *parts, const struct part *part)
{
	if (parts->nr == parts->room) {
		size_t room = parts->room ? 2 * parts->room : 16;
		struct part *at = reallocarray(parts->at, room, sizeof(*at));

		if (!at)
			return -ENOMEM;
		parts->at = at;
		parts->room = room;
	}
	parts->at[parts->nr++] = *part;
	parts->bytes += part->bytes;
	return 0;
}

void parts__shrink(struct parts *parts, uint32_t number, uint64_t by)
{
	for (size_t i = 0; i < parts->nr; i++) {
		struct part *part = &parts->at[i];

		if (part->number != number || by > part->bytes)
			continue;
		part->bytes -= by;
		parts->bytes -= by;
	}
}

struct of_part {
	uint32_t number;
	name_fn fn;
	void *ctx;
};

static bool call_if_of_part(void *ctx, int dir_fd, const char *name)
{
	const struct of_part *of = ctx;
	uint32_t number;

	if (!parts__parse(name, &number) || number != of->number)
		return true;
	return of->fn(of->ctx, dir_fd, name);
}

void parts__each_file(int dir_fd, uint32_t number, name_fn fn, void *ctx)
{
	struct of_part of = {number, fn, ctx};

	each_name(dir_fd, call_if_of_part, &of);
}

bool parts__remove_oldest(struct parts *parts, int dir_fd)
{
	struct part oldest;

	if (!parts->nr)
		return false;
	oldest = parts->at[0];
	parts->nr--;
	memmove(parts->at, parts->at + 1, parts->nr * sizeof(*parts->at));
	parts->bytes -= oldest.bytes;
	/* First what names the others: a kill in between leaves no part that misses some. */
	each_name(dir_fd, remove_notes_of_part, &oldest);
	each_compressed(dir_fd, remove_notes_of_part, &oldest);
	each_name(dir_fd, remove_of_part, &oldest);
	each_compressed(dir_fd, remove_of_part, &oldest);
	return true;
}

void parts__free(struct parts *parts)
{
	free(parts->at);
	*parts = (struct parts){0};
}

static bool is_capture_file(const char *name)
{
	uint32_t number;

	return !strcmp(name, CAPTURE_METADATA) || !strcmp(name, CAPTURE_ZSTD_FOLDER) ||
	       parts__parse(name, &number) || is_hidden_file(name);
}

static bool look_at(void *ctx, int dir_fd, const char *name)
{
	enum parts_folder *folder = ctx;

	*folder = is_capture_file(name) ? PARTS_CAPTURE : PARTS_OTHER;
	return *folder != PARTS_OTHER;
}

int parts__look(int dir_fd)
{
	enum parts_folder folder = PARTS_EMPTY;
	int err = each_name(dir_fd, look_at, &folder);

	return err ? err : (int)folder;
}

static bool remove_one(void *ctx, int dir_fd, const char *name)
{
	int *err = ctx;

	if (strcmp(name, CAPTURE_ZSTD_FOLDER) != 0 && is_capture_file(name) &&
	    unlinkat(dir_fd, name, 0))
		*err = -errno;
	return true;
}

int parts__remove_all(int dir_fd)
{
	int err = 0, failed;

	each_compressed(dir_fd, remove_one, &err);
	failed = each_name(dir_fd, remove_one, &err);
	if (unlinkat(dir_fd, CAPTURE_ZSTD_FOLDER, AT_REMOVEDIR) && errno != ENOENT)
		err = -errno;
	return failed ? failed : err;
}
