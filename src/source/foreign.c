/* SPDX-License-Identifier: BSD-2-Clause */
#include "source/foreign.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int ask(int fd, struct bpf_map_info *info, const struct reason *reason)
{
	__u32 len = sizeof(*info);
	int err;

	memset(info, 0, sizeof(*info));
	err = bpf_obj_get_info_by_fd(fd, info, &len);
	if (!err)
		return 0;
	return reason__say(reason, err, "cannot read what map it is: %s", strerror(-err));
}

static int duplicate(int fd, int *copy, const struct reason *reason)
{
	*copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (*copy >= 0)
		return 0;
	return reason__say(reason, -errno, "cannot duplicate the map's descriptor: %s",
			   strerror(errno));
}

static int map_ring(struct source_foreign *foreign, uint32_t id, const struct reason *reason)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *map = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, foreign->fd, 0);
	int err;

	if (map == MAP_FAILED) {
		err = -errno;
		return reason__say(reason, err,
				   "the tail of ring buffer %u cannot be written, so it cannot be "
				   "read: %s (is the map frozen or the descriptor read-only?)",
				   id, strerror(-err));
	}
	foreign->consumer_page = map;
	map = mmap(NULL, page + 2 * foreign->size, PROT_READ, MAP_SHARED, foreign->fd, (off_t)page);
	if (map == MAP_FAILED) {
		err = -errno;
		return reason__say(reason, err, "cannot map ring buffer %u: %s", id,
				   strerror(-err));
	}
	foreign->producer_page = map;
	foreign->data = (const uint8_t *)map + page;
	return 0;
}

static int open_ring(struct source_foreign *foreign, int map_fd, const struct reason *reason)
{
	struct bpf_map_info info;
	int err = ask(map_fd, &info, reason);

	if (err)
		return err;
	if (info.type != BPF_MAP_TYPE_RINGBUF)
		return reason__say(reason, -EINVAL, "map %u (%s) is no ring buffer", info.id,
				   info.name);
	foreign->size = info.max_entries;
	err = duplicate(map_fd, &foreign->fd, reason);
	return err ? err : map_ring(foreign, info.id, reason);
}

static int judge_counter(const struct foreign_counter *counter, const struct bpf_map_info *info,
			 const struct reason *reason)
{
	if (info->type != BPF_MAP_TYPE_ARRAY && info->type != BPF_MAP_TYPE_PERCPU_ARRAY)
		return reason__say(reason, -EINVAL,
				   "map %u (%s), to count the loss in, is no array", info->id,
				   info->name);
	if (counter->key >= info->max_entries)
		return reason__say(reason, -EINVAL, "map %u has no element %u, it has %u", info->id,
				   counter->key, info->max_entries);
	if (info->value_size < sizeof(uint64_t) ||
	    counter->offset > info->value_size - sizeof(uint64_t))
		return reason__say(reason, -EINVAL,
				   "offset %u lies outside the values of map %u, of %u bytes each",
				   counter->offset, info->id, info->value_size);
	return 0;
}

static int open_counter(struct foreign_counter *counter, int fd, const struct reason *reason)
{
	struct bpf_map_info info;
	int err = ask(fd, &info, reason);

	if (!err)
		err = judge_counter(counter, &info, reason);
	if (err)
		return err;
	/* The kernel gives each CPU's value at a multiple of 8. */
	counter->stride = (info.value_size + 7) & ~7u;
	counter->values = 1;
	if (info.type == BPF_MAP_TYPE_PERCPU_ARRAY) {
		int cpus = libbpf_num_possible_cpus();

		if (cpus < 0)
			return reason__say(reason, cpus, "cannot read how many CPUs there may be");
		counter->values = (uint32_t)cpus;
	}
	counter->bytes = calloc(counter->values, counter->stride);
	if (!counter->bytes)
		return reason__say(reason, -ENOMEM, "no memory for the counters of map %u",
				   info.id);
	return duplicate(fd, &counter->fd, reason);
}

int source_foreign__open(struct source_foreign *foreign, int map_fd, int lost_fd, uint32_t lost_key,
			 uint32_t lost_offset, const struct reason *reason)
{
	int err;

	*foreign = (struct source_foreign){
		.fd = -1,
		.lost = {.fd = -1, .key = lost_key, .offset = lost_offset},
	};
	err = open_ring(foreign, map_fd, reason);
	if (!err && lost_fd >= 0)
		err = open_counter(&foreign->lost, lost_fd, reason);
	if (err)
		source_foreign__close(foreign);
	return err;
}

void source_foreign__close(struct source_foreign *foreign)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (foreign->consumer_page)
		munmap(foreign->consumer_page, page);
	if (foreign->producer_page)
		munmap((void *)foreign->producer_page, page + 2 * foreign->size);
	if (foreign->fd >= 0)
		close(foreign->fd);
	if (foreign->lost.fd >= 0)
		close(foreign->lost.fd);
	free(foreign->lost.bytes);
	*foreign = (struct source_foreign){.fd = -1, .lost.fd = -1};
}

int source_foreign__lost(const struct source_foreign *foreign, uint64_t *lost)
{
	const struct foreign_counter *counter = &foreign->lost;
	int err;

	if (counter->fd < 0)
		return -EOPNOTSUPP;
	err = bpf_map_lookup_elem(counter->fd, &counter->key, counter->bytes);
	if (err)
		return err;
	*lost = 0;
	for (uint32_t i = 0; i < counter->values; i++) {
		uint64_t value;

		memcpy(&value, counter->bytes + (size_t)i * counter->stride + counter->offset,
		       sizeof(value));
		*lost += value;
	}
	return 0;
}
