/* SPDX-License-Identifier: BSD-2-Clause */
#include "source/misses.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int read_prog(int fd, uint64_t *total)
{
	struct bpf_prog_info info = {0};
	__u32 len = sizeof(info);
	int err = bpf_obj_get_info_by_fd(fd, &info, &len);

	if (err)
		return err;
	*total = info.recursion_misses;
	return 0;
}

int misses__open_prog(struct misses *misses, int prog_fd, const char *name)
{
	uint64_t total;
	int err = read_prog(prog_fd, &total);

	if (err)
		return err;
	memset(misses, 0, sizeof(*misses));
	misses->fd = fcntl(prog_fd, F_DUPFD_CLOEXEC, 3);
	if (misses->fd < 0)
		return -errno;
	snprintf(misses->name, sizeof(misses->name), "%s", name);
	return 0;
}

void misses__close(struct misses *misses)
{
	if (!misses->read && misses->fd >= 0)
		close(misses->fd);
	misses->fd = -1;
}

uint64_t misses__total(const struct misses *misses, uint64_t before)
{
	uint64_t total = before;

	if (misses->read)
		return misses->read(misses->ctx);
	read_prog(misses->fd, &total);
	return total;
}
