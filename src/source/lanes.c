/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lanes.c - the kernel objects behind weir_lane.bpf.h: the lanes, a ring for each CPU, and the clock.
 *
 * Owns map descriptors and mappings. What is told and when, lane.c knows.
 */
#include <weir/lanes.h>

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "source/clock.h"
#include "source/cpus.h"
#include "source/fence.h"
#include "source/lane.h"
#include "symbols.h"

#define GUARD_NS 1000

struct weir_lanes {
	int rings_fd, lanes_fd;
	uint32_t nr_cpus, records, record_bytes;
	uint64_t guard_ns;
	struct weir_lane *shared; /* by CPU */
	struct place {
		struct lane lane; /* .shared NULL: none */
		int fd;
		void *data;
	} * places; /* by CPU */
};

static size_t whole_pages(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) & ~(page - 1);
}

static size_t shared_bytes(const struct weir_lanes *lanes)
{
	return whole_pages(lanes->nr_cpus * sizeof(struct weir_lane));
}

static size_t data_bytes(const struct weir_lanes *lanes)
{
	return whole_pages((size_t)lanes->records * lanes->record_bytes);
}

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

static int check_opts(const struct weir_lanes_opts *opts)
{
	int err;

	if (!opts || opts->sz < sizeof(*opts) || !opts->nr_cpus || opts->nr_cpus > CPUS_MAX)
		return -EINVAL;
	if (!opts->records || opts->records & (opts->records - 1))
		return -EINVAL;
	if (opts->record_bytes < sizeof(struct weir_record) || opts->record_bytes % 8)
		return -EINVAL;
	err = check_map(opts->rings_fd, BPF_MAP_TYPE_ARRAY_OF_MAPS, sizeof(uint32_t),
			opts->nr_cpus);
	if (err)
		return err;
	return check_map(opts->lanes_fd, BPF_MAP_TYPE_ARRAY, sizeof(struct weir_lane),
			 opts->nr_cpus);
}

static void *map_values(int fd, size_t bytes)
{
	void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return map == MAP_FAILED ? NULL : map;
}

static int open_maps(struct weir_lanes *lanes, const struct weir_lanes_opts *opts)
{
	lanes->rings_fd = fcntl(opts->rings_fd, F_DUPFD_CLOEXEC, 3);
	if (lanes->rings_fd < 0)
		return -errno;
	lanes->lanes_fd = fcntl(opts->lanes_fd, F_DUPFD_CLOEXEC, 3);
	if (lanes->lanes_fd < 0)
		return -errno;
	lanes->shared = map_values(lanes->lanes_fd, shared_bytes(lanes));
	if (!lanes->shared)
		return -errno;
	return 0;
}

WEIR_API struct weir_lanes *weir_lanes__new(const struct weir_lanes_opts *opts)
{
	int err = check_opts(opts);
	struct weir_lanes *lanes = err ? NULL : calloc(1, sizeof(*lanes));

	if (!lanes) {
		errno = err ? -err : ENOMEM;
		return NULL;
	}
	lanes->rings_fd = lanes->lanes_fd = -1;
	lanes->nr_cpus = opts->nr_cpus;
	lanes->records = opts->records;
	lanes->record_bytes = opts->record_bytes;
	lanes->guard_ns = opts->guard_ns ? opts->guard_ns : GUARD_NS;
	lanes->places = calloc(lanes->nr_cpus, sizeof(*lanes->places));
	err = lanes->places ? open_maps(lanes, opts) : -ENOMEM;
	if (!err)
		return lanes;
	weir_lanes__free(lanes);
	errno = -err;
	return NULL;
}

static void unmake(struct weir_lanes *lanes, struct place *place)
{
	if (place->data)
		munmap(place->data, data_bytes(lanes));
	if (place->fd >= 0)
		close(place->fd);
	memset(place, 0, sizeof(*place));
}

WEIR_API void weir_lanes__free(struct weir_lanes *lanes)
{
	if (!lanes)
		return;
	for (uint32_t cpu = 0; lanes->places && cpu < lanes->nr_cpus; cpu++)
		if (lanes->places[cpu].lane.shared)
			unmake(lanes, &lanes->places[cpu]);
	if (lanes->shared)
		munmap(lanes->shared, shared_bytes(lanes));
	if (lanes->rings_fd >= 0)
		close(lanes->rings_fd);
	if (lanes->lanes_fd >= 0)
		close(lanes->lanes_fd);
	free(lanes->places);
	free(lanes);
}

static int make(struct weir_lanes *lanes, uint32_t cpu)
{
	DECLARE_LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	struct place *place = &lanes->places[cpu];
	int err;

	place->fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "weir_lane", sizeof(uint32_t),
				   lanes->record_bytes, lanes->records, &opts);
	if (place->fd < 0)
		return place->fd;
	place->data = map_values(place->fd, data_bytes(lanes));
	if (!place->data) {
		err = -errno;
		unmake(lanes, place);
		return err;
	}
	lane__init(&place->lane, (int)cpu, &lanes->shared[cpu], place->data, lanes->records,
		   lanes->record_bytes);
	return 0;
}

/*
 * All at once: each update of a single element waits for a grace period. The lanes are polled before
 * the program has them.
 */
static int publish(struct weir_lanes *lanes, const uint32_t *cpus, uint32_t count)
{
	DECLARE_LIBBPF_OPTS(bpf_map_batch_opts, opts);
	uint32_t *fds = calloc(count, sizeof(*fds)), done = count;
	int err = 0;

	if (!fds)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		fds[i] = (uint32_t)lanes->places[cpus[i]].fd;
	if (bpf_map_update_batch(lanes->rings_fd, cpus, fds, &done, &opts)) {
		/* Kernels before 5.13 have no batch for maps of maps. */
		for (uint32_t i = 0; i < count && !err; i++)
			err = bpf_map_update_elem(lanes->rings_fd, &cpus[i], &fds[i], BPF_ANY);
	}
	free(fds);
	return err;
}

WEIR_API int weir_lanes__grow(struct weir_lanes *lanes)
{
	uint32_t *made = calloc(lanes->nr_cpus, sizeof(*made)), count = 0;
	struct cpus online;
	int err = made ? cpus__online(&online, NULL) : -ENOMEM, published = 0;

	for (uint32_t cpu = 0; !err && cpu < lanes->nr_cpus; cpu++) {
		if (!cpus__has(&online, cpu) || lanes->places[cpu].lane.shared)
			continue;
		err = make(lanes, cpu);
		if (!err)
			made[count++] = cpu;
	}
	if (count)
		published = publish(lanes, made, count);
	free(made);
	if (err || published)
		return err ? err : published;
	return (int)count;
}

static uint64_t now_ns(void)
{
	return clock__kernel.now_ns(clock__kernel.ctx);
}

static uint64_t tell(struct lane *lane, uint64_t guard_ns, const struct weir_lanes_reader *reader,
		     void *ctx)
{
	uint64_t t_ns = now_ns() - guard_ns;
	struct lane_snapshot snapshot;

	clock__fence();
	snapshot = lane__look(lane);
	/* T itself may be a stamp of what is not in the snapshot. */
	return lane__tell(lane, &snapshot, t_ns - 1, now_ns() + guard_ns, reader, ctx);
}

WEIR_API int weir_lanes__poll(struct weir_lanes *lanes, const struct weir_lanes_reader *reader,
			      void *ctx)
{
	uint64_t guard_ns = lanes->guard_ns + clock__slew_guard_ns(), told = 0;

	for (uint32_t cpu = 0; cpu < lanes->nr_cpus; cpu++)
		if (lanes->places[cpu].lane.shared)
			told += tell(&lanes->places[cpu].lane, guard_ns, reader, ctx);
	return told > INT32_MAX ? INT32_MAX : (int)told;
}

static int fence(struct weir_lanes *lanes)
{
	for (uint32_t cpu = 0; cpu < lanes->nr_cpus; cpu++)
		if (lanes->places[cpu].lane.shared)
			return fence__update(lanes->rings_fd, cpu, lanes->places[cpu].fd);
	return 0;
}

WEIR_API int weir_lanes__close(struct weir_lanes *lanes, const struct weir_lanes_reader *reader,
			       void *ctx)
{
	int err = fence(lanes);

	return err ? err : weir_lanes__poll(lanes, reader, ctx);
}

WEIR_API int weir_lanes__account(const struct weir_lanes *lanes, int cpu,
				 struct weir_lane_account *out)
{
	if (cpu < 0 || (uint32_t)cpu >= lanes->nr_cpus || !lanes->places[cpu].lane.shared)
		return -ENOENT;
	*out = lanes->places[cpu].lane.account;
	return 0;
}
