/* SPDX-License-Identifier: BSD-2-Clause */
#include "source/rings.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "source/fence.h"

static int check_map(int fd, enum bpf_map_type type, uint32_t value_size, uint32_t entries)
{
	struct bpf_map_info info = {0};
	__u32 len = sizeof(info);
	int err = bpf_obj_get_info_by_fd(fd, &info, &len);

	if (err)
		return err;
	if (info.type != type || info.value_size != value_size || info.max_entries < entries)
		return -EINVAL;
	return 0;
}

static int map_counters(struct source_rings *group)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t bytes = (1 + source_rings__slots(group)) * sizeof(struct weir_counters);

	group->counters_bytes = (bytes + page - 1) & ~(page - 1);
	group->counters = mmap(NULL, group->counters_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			       group->counters_fd, 0);
	if (group->counters != MAP_FAILED)
		return 0;
	group->counters = NULL;
	return -errno;
}

static int duplicate(int fd, int *copy)
{
	*copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return *copy < 0 ? -errno : 0;
}

int source_rings__open(struct source_rings *group, int rings_fd, int counters_fd, uint32_t nr_cpus,
		       uint32_t nr_classes)
{
	uint32_t slots = nr_cpus * nr_classes;
	int err;

	memset(group, 0, sizeof(*group));
	group->rings_fd = group->counters_fd = -1;
	group->nr_cpus = nr_cpus;
	group->nr_classes = nr_classes;
	err = check_map(rings_fd, BPF_MAP_TYPE_ARRAY_OF_MAPS, sizeof(uint32_t), slots);
	if (!err)
		err = check_map(counters_fd, BPF_MAP_TYPE_ARRAY, sizeof(struct weir_counters),
				slots + 1);
	if (err)
		return err;
	group->classes = calloc(nr_classes, sizeof(*group->classes));
	group->rings = calloc(slots, sizeof(*group->rings));
	err = group->classes && group->rings ? 0 : -ENOMEM;
	for (uint32_t i = 0; group->rings && i < slots; i++)
		group->rings[i].fd = -1;
	if (!err)
		err = duplicate(rings_fd, &group->rings_fd);
	if (!err)
		err = duplicate(counters_fd, &group->counters_fd);
	if (!err)
		err = map_counters(group);
	if (err)
		source_rings__close(group);
	return err;
}

static void unmake(struct source_ring *ring)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (ring->consumer_page)
		munmap(ring->consumer_page, page);
	if (ring->producer_page)
		munmap((void *)ring->producer_page, page + 2 * ring->size);
	if (ring->fd >= 0)
		close(ring->fd);
	*ring = (struct source_ring){.fd = -1};
}

void source_rings__close(struct source_rings *group)
{
	for (uint32_t i = 0; group->rings && i < source_rings__slots(group); i++)
		unmake(&group->rings[i]);
	if (group->counters)
		munmap(group->counters, group->counters_bytes);
	if (group->rings_fd >= 0)
		close(group->rings_fd);
	if (group->counters_fd >= 0)
		close(group->counters_fd);
	free(group->classes);
	free(group->rings);
	memset(group, 0, sizeof(*group));
	group->rings_fd = group->counters_fd = -1;
}

int source_rings__make(struct source_rings *group, uint32_t slot)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t size = group->classes[slot / group->nr_cpus].ring_bytes;
	struct source_ring *ring = &group->rings[slot];
	void *map;
	int err;

	ring->fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "weir_ring", 0, 0, (__u32)size, NULL);
	if (ring->fd < 0)
		return ring->fd;
	ring->size = size;
	map = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
	if (map == MAP_FAILED)
		goto fail;
	ring->consumer_page = map;
	map = mmap(NULL, page + 2 * size, PROT_READ, MAP_SHARED, ring->fd, (off_t)page);
	if (map == MAP_FAILED)
		goto fail;
	ring->producer_page = map;
	return 0;
fail:
	err = -errno;
	unmake(ring);
	return err;
}

int source_rings__publish(struct source_rings *group, const uint32_t *slots, uint32_t n)
{
	DECLARE_LIBBPF_OPTS(bpf_map_batch_opts, opts);
	uint32_t *fds = calloc(n, sizeof(*fds)), count = n;
	int err = 0;

	if (!fds)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		fds[i] = (uint32_t)group->rings[slots[i]].fd;
	if (!n || !bpf_map_update_batch(group->rings_fd, slots, fds, &count, &opts))
		goto out;
	/* Kernels before 5.13 have no batch for maps of maps. */
	for (uint32_t i = 0; i < n && !err; i++)
		err = bpf_map_update_elem(group->rings_fd, &slots[i], &fds[i], BPF_ANY);
out:
	free(fds);
	return err;
}

int source_rings__fence(struct source_rings *group)
{
	for (uint32_t slot = 0; slot < source_rings__slots(group); slot++)
		if (group->rings[slot].fd >= 0)
			return fence__update(group->rings_fd, slot, group->rings[slot].fd);
	return 0;
}
