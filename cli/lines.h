/* SPDX-License-Identifier: BSD-2-Clause */
/* lines.h - a descriptor, line by line, in memory that its longest line bounds. */
#ifndef WEIR_CLI_LINES_H
#define WEIR_CLI_LINES_H

#include <stdbool.h>
#include <stddef.h>

/* Begins as {.fd = ...}; the descriptor is borrowed. */
struct lines {
	int fd;
	char *buf;
	size_t cap, begin, end; /* [begin, end) is read and not given out */
	bool eof;
};

enum lines_next {
	LINES_END = 0,
	LINES_GOT,
	LINES_TOO_LONG,
	LINES_ERROR, /* errno */
};

/* The next line without its newline; valid until the next call. The last one may lack its newline. */
enum lines_next lines__next(struct lines *lines, size_t max_bytes, const char **line, size_t *len);

void lines__free(struct lines *lines);

/* All that fd has, to be freed; NULL: errno, EFBIG when that is more than max_bytes. */
char *lines__all(int fd, size_t max_bytes, size_t *len);

#endif /* WEIR_CLI_LINES_H */
