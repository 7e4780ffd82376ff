/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/store.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

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
	if (err) {
		store__close(store);
		return err;
	}
	store->size = (uint64_t)st.st_size;
	return 0;
}

void store__close(struct store *store)
{
	if (store->fd >= 0)
		close(store->fd);
	store->fd = -1;
}

ssize_t store__read(struct store *store, void *buf, size_t len, uint64_t offset)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = pread(store->fd, (char *)buf + done, len - done,
				  (off_t)(offset + done));

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
