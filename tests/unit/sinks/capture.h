/* SPDX-License-Identifier: BSD-2-Clause */
/* capture.h - what a sink wrote, as a string; and random numbers that a seed gives again. */
#ifndef WEIR_TESTS_CAPTURE_H
#define WEIR_TESTS_CAPTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "sinks/out.h"
#include "sinks/sink.h"

/* A thread's name, in as many bytes as a record has for it. */
#define COMM(name) ((const char[16]){name})

struct capture {
	int fd;
	struct out *out;
	char *text; /* the last that was taken, NUL-terminated */
	size_t len;
};

static inline void capture__open(struct capture *c)
{
	memset(c, 0, sizeof(*c));
	c->fd = memfd_create("capture", MFD_CLOEXEC);
	assert_true(c->fd >= 0);
	c->out = out__new(c->fd, 0, NULL, 0);
	assert_non_null(c->out);
}

static inline void capture__close(struct capture *c)
{
	out__free(c->out);
	close(c->fd);
	free(c->text);
}

/* The whole of a file, NUL-terminated. */
static inline char *read_fd(int fd, size_t *len)
{
	off_t size = lseek(fd, 0, SEEK_END);
	char *text = malloc((size_t)size + 1);

	assert_non_null(text);
	assert_int_equal(pread(fd, text, (size_t)size, 0), size);
	text[size] = '\0';
	*len = (size_t)size;
	return text;
}

/* What was written since the last time. */
static inline const char *capture__take(struct capture *c)
{
	assert_int_equal(out__flush(c->out), 0);
	free(c->text);
	c->text = read_fd(c->fd, &c->len);
	assert_int_equal(ftruncate(c->fd, 0), 0);
	lseek(c->fd, 0, SEEK_SET);
	return c->text;
}

/* A small generator: the same numbers on every machine. */
static inline uint64_t rng(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

#endif /* WEIR_TESTS_CAPTURE_H */
