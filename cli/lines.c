/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES (256u << 10)

static bool room(struct lines *lines)
{
	char *buf;

	if (lines->begin) {
		memmove(lines->buf, lines->buf + lines->begin, lines->end - lines->begin);
		lines->end -= lines->begin;
		lines->begin = 0;
	}
	if (lines->cap - lines->end >= READ_BYTES)
		return true;
	buf = realloc(lines->buf, lines->cap * 2 + READ_BYTES);
	if (!buf)
		return false;
	lines->buf = buf;
	lines->cap = lines->cap * 2 + READ_BYTES;
	return true;
}

static bool fill(struct lines *lines)
{
	ssize_t n;

	if (!room(lines))
		return false;
	do {
		n = read(lines->fd, lines->buf + lines->end, READ_BYTES);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return false;
	lines->eof = n == 0;
	lines->end += (size_t)n;
	return true;
}

enum lines_next lines__next(struct lines *lines, size_t max_bytes, const char **line, size_t *len)
{
	size_t looked = 0;

	if (!lines->buf && !fill(lines))
		return LINES_ERROR;
	for (;;) {
		char *at = lines->buf + lines->begin;
		size_t have = lines->end - lines->begin;
		char *newline = have > looked ? memchr(at + looked, '\n', have - looked) : NULL;

		*line = at;
		*len = newline ? (size_t)(newline - at) : have;
		if (*len > max_bytes)
			return LINES_TOO_LONG;
		if (newline) {
			lines->begin += *len + 1;
			return LINES_GOT;
		}
		if (lines->eof) {
			lines->begin = lines->end;
			return have ? LINES_GOT : LINES_END;
		}
		looked = have;
		if (!fill(lines))
			return LINES_ERROR;
	}
}

void lines__free(struct lines *lines)
{
	free(lines->buf);
	lines->buf = NULL;
}

char *lines__all(int fd, size_t max_bytes, size_t *len)
{
	struct lines lines = {.fd = fd};

	while (!lines.eof) {
		if (lines.end > max_bytes)
			errno = EFBIG;
		if (lines.end > max_bytes || !fill(&lines)) {
			lines__free(&lines);
			break;
		}
	}
	*len = lines.end;
	return lines.buf;
}
