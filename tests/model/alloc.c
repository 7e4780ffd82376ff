// SPDX-License-Identifier: BSD-2-Clause
/*
 * alloc.c - the allocator, and the few calls that make kernel objects, with a tap.
 *
 * Owns the table of the library's live blocks. Promises exact counts for one thread. Must not
 * allocate, and must not know who asks: model_in_library says so.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/timerfd.h>

#include "alloc.h"

extern bool model_in_library;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *block, size_t size);
void __real_free(void *block);
int __real_posix_memalign(void **out, size_t align, size_t size);
void *__real_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset);
int __real_munmap(void *at, size_t size);
int __real_epoll_create1(int flags);
int __real_timerfd_create(int clock, int flags);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_reallocarray(void *block, size_t n, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
int __wrap_posix_memalign(void **out, size_t align, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t max);
void __wrap_free(void *block);
void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset);
int __wrap_munmap(void *at, size_t size);
int __wrap_epoll_create1(int flags);
int __wrap_timerfd_create(int clock, int flags);

/* Open addressing, never shrunk: a freed place keeps its tomb until it is used again. */
#define PLACES (1u << 20)
#define TOMB   ((void *)1)

static struct {
	void *block;
	size_t size;
} places[PLACES];

static size_t live_bytes, live_blocks, peak_bytes, base_bytes;
static uint64_t attempts, refuse_nth;
static bool refuse_from_there, has_refused;

size_t alloc__live_bytes(void)
{
	return live_bytes - base_bytes;
}

size_t alloc__live_blocks(void)
{
	return live_blocks;
}

size_t alloc__peak_bytes(void)
{
	return peak_bytes - base_bytes;
}

void alloc__begin(void)
{
	base_bytes = peak_bytes = live_bytes;
}

uint64_t alloc__attempts(void)
{
	return attempts;
}

void alloc__refuse(uint64_t nth, bool from_there)
{
	attempts = 0;
	refuse_nth = nth;
	refuse_from_there = from_there;
	has_refused = false;
}

bool alloc__has_refused(void)
{
	return has_refused;
}

/* One more attempt of the library's: is it to fail? */
static bool refused(int error)
{
	if (!model_in_library)
		return false;
	attempts++;
	if (!refuse_nth || (refuse_from_there ? attempts < refuse_nth : attempts != refuse_nth))
		return false;
	has_refused = true;
	errno = error;
	return true;
}

static uint32_t place_of(const void *block)
{
	return (uint32_t)(((uintptr_t)block >> 4) * 0x9e3779b1u) % PLACES;
}

static void *add(void *block, size_t size)
{
	uint32_t at = place_of(block);

	if (!block || !model_in_library)
		return block;
	while (places[at].block && places[at].block != TOMB)
		at = (at + 1) % PLACES;
	places[at].block = block;
	places[at].size = size;
	live_blocks++;
	live_bytes += size;
	if (live_bytes > peak_bytes)
		peak_bytes = live_bytes;
	return block;
}

/* Blocks that are not the library's are not in the table. */
static void drop(const void *block)
{
	uint32_t at = place_of(block);

	while (places[at].block && places[at].block != block)
		at = (at + 1) % PLACES;
	if (!block || !places[at].block)
		return;
	live_blocks--;
	live_bytes -= places[at].size;
	places[at].block = TOMB;
}

void *__wrap_malloc(size_t size)
{
	return refused(ENOMEM) ? NULL : add(__real_malloc(size), size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return refused(ENOMEM) ? NULL : add(__real_calloc(n, size), n * size);
}

void *__wrap_realloc(void *block, size_t size)
{
	void *moved;

	if (refused(ENOMEM))
		return NULL;
	moved = __real_realloc(block, size);
	if (moved) {
		drop(block);
		add(moved, size);
	}
	return moved;
}

void *__wrap_reallocarray(void *block, size_t n, size_t size)
{
	if (size && n > SIZE_MAX / size) {
		errno = ENOMEM;
		return NULL;
	}
	return __wrap_realloc(block, n * size);
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
	void *block = NULL;

	return __wrap_posix_memalign(&block, align, size) ? NULL : block;
}

int __wrap_posix_memalign(void **out, size_t align, size_t size)
{
	int error = refused(ENOMEM) ? ENOMEM : __real_posix_memalign(out, align, size);

	if (!error)
		add(*out, size);
	return error;
}

char *__wrap_strndup(const char *text, size_t max)
{
	size_t len = strnlen(text, max);
	char *copy = __wrap_malloc(len + 1);

	if (copy) {
		memcpy(copy, text, len);
		copy[len] = 0;
	}
	return copy;
}

char *__wrap_strdup(const char *text)
{
	return __wrap_strndup(text, SIZE_MAX);
}

void __wrap_free(void *block)
{
	drop(block);
	__real_free(block);
}

void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset)
{
	void *block = refused(ENOMEM) ? MAP_FAILED : __real_mmap(at, size, prot, flags, fd, offset);

	if (block != MAP_FAILED)
		add(block, size);
	return block;
}

int __wrap_munmap(void *at, size_t size)
{
	drop(at);
	return __real_munmap(at, size);
}

int __wrap_epoll_create1(int flags)
{
	return refused(EMFILE) ? -1 : __real_epoll_create1(flags);
}

int __wrap_timerfd_create(int clock, int flags)
{
	return refused(EMFILE) ? -1 : __real_timerfd_create(clock, flags);
}
