/* SPDX-License-Identifier: BSD-2-Clause */
#include "measure/perf_rings.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <err.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DATA_PAGES 256 /* 1 MiB */

static int open_event(int cpu, bool wake_each)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_BPF_OUTPUT,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_RAW,
		.watermark = !wake_each,
	};

	if (wake_each)
		attr.wakeup_events = 1;
	else
		attr.wakeup_watermark = DATA_PAGES * 4096 / 2;
	return (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static void open_ring(struct perf_rings *rings, int cpu, int map_fd, bool wake_each)
{
	struct perf_ring *ring = &rings->ring[cpu];
	struct epoll_event event = {.events = EPOLLIN};
	void *map;

	ring->fd = open_event(cpu, wake_each);
	if (ring->fd < 0 && errno == ENODEV)
		return; /* not online */
	if (ring->fd < 0)
		err(1, "a perf event on CPU %d", cpu);
	map = mmap(NULL, rings->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
	if (map == MAP_FAILED)
		err(1, "a perf buffer on CPU %d", cpu);
	ring->page = map;
	if (bpf_map_update_elem(map_fd, &cpu, &ring->fd, BPF_ANY) ||
	    epoll_ctl(rings->epoll_fd, EPOLL_CTL_ADD, ring->fd, &event))
		err(1, "CPU %d", cpu);
}

void perf_rings__open(struct perf_rings *rings, int map_fd, bool wake_each)
{
	*rings = (struct perf_rings){
		.cpus = libbpf_num_possible_cpus(),
		.bytes = (1 + DATA_PAGES) * (size_t)sysconf(_SC_PAGESIZE),
		.epoll_fd = epoll_create1(EPOLL_CLOEXEC),
	};
	if (rings->cpus < 0 || rings->epoll_fd < 0)
		err(1, "perf buffers");
	rings->ring = calloc((size_t)rings->cpus, sizeof(*rings->ring));
	if (!rings->ring)
		err(1, "perf buffers");
	for (int cpu = 0; cpu < rings->cpus; cpu++)
		open_ring(rings, cpu, map_fd, wake_each);
}

size_t perf_rings__forget(struct perf_rings *rings)
{
	size_t bytes = 0;

	for (int cpu = 0; cpu < rings->cpus; cpu++) {
		struct perf_event_mmap_page *page = rings->ring[cpu].page;
		uint64_t head;

		if (!page)
			continue;
		/* Nothing is read between the two, so neither has anything to order. */
		head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
		bytes += head - page->data_tail;
		__atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
	}
	return bytes;
}

void perf_rings__close(struct perf_rings *rings)
{
	for (int cpu = 0; cpu < rings->cpus; cpu++) {
		if (rings->ring[cpu].page)
			munmap(rings->ring[cpu].page, rings->bytes);
		if (rings->ring[cpu].fd >= 0)
			close(rings->ring[cpu].fd);
	}
	close(rings->epoll_fd);
	free(rings->ring);
	memset(rings, 0, sizeof(*rings));
}
