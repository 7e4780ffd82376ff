/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * misses.h - runs of a program that the kernel skipped because it was already running on that CPU.
 */
#ifndef WEIR_SOURCE_MISSES_H
#define WEIR_SOURCE_MISSES_H

#include <stdint.h>

struct misses {
	uint64_t (*read)(void *ctx); /* NULL: read bpf_prog_info of fd */
	void *ctx;
	int fd;
	char name[32];
};

/* The program behind prog_fd, which is duplicated. Errors: dup's and bpf(2)'s. */
int misses__open_prog(struct misses *misses, int prog_fd, const char *name);
void misses__close(struct misses *misses);

/* How many so far; when it can't be read, `before`: it is a counter, it can't have gone down. */
uint64_t misses__total(const struct misses *misses, uint64_t before);

#endif /* WEIR_SOURCE_MISSES_H */
