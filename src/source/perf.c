/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf.c - perf events, one of each kind on each CPU, and one ring on each CPU for all of them.
 */
#include "source/perf.h"

#include "source/budget.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_event(const struct perf_event_attr *attr, uint32_t cpu)
{
	/* Of any process, on this CPU: never of whatever this process may run on. */
	long fd = syscall(SYS_perf_event_open, attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

static int judge_opts(const struct source_perf_opts *opts, const struct reason *reason)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = opts->ring_bytes;

	if (!opts->events || !opts->nr_events || opts->nr_events > SOURCE_PERF_EVENTS_MAX)
		return reason__say(reason, -EINVAL, "there have to be 1 to %u events",
				   SOURCE_PERF_EVENTS_MAX);
	if (bytes && (bytes < page || bytes & (bytes - 1) || bytes > 1u << 30))
		return reason__say(reason, -EINVAL,
				   "%zu is no size of a ring: a power of two from %zu to %u", bytes,
				   page, 1u << 30);
	return 0;
}

/* A reader knows one layout for all that is in a ring. */
static int judge_layouts(const struct source_perf *group, const struct reason *reason)
{
	const struct source_perf_event *first = &group->events[0];

	for (uint32_t i = 1; i < group->nr_events; i++) {
		const struct source_perf_event *event = &group->events[i];

		if (event->attr.sample_type != first->attr.sample_type ||
		    event->attr.read_format != first->attr.read_format)
			return reason__say(reason, -EINVAL,
					   "%s and %s differ in what a sample has, so they cannot "
					   "share a ring",
					   first->name, event->name);
	}
	return 0;
}

static int complete_events(struct source_perf *group, const struct source_perf_opts *opts,
			   const struct reason *reason)
{
	const struct perf_ring_shape shape = {
		.bytes = group->ring_bytes,
		.overwrite = group->overwrite,
		.clock = opts->clock,
	};
	int err = 0;

	for (uint32_t i = 0; i < group->nr_events && !err; i++) {
		const struct weir_perf_event *wanted = &opts->events[i];
		struct source_perf_event *event = &group->events[i];

		err = perf_attr__complete(event, wanted, &shape, NULL, reason);
		if (err || !wanted->filter)
			continue;
		/* It is needed again for each CPU that comes. */
		event->filter = strdup(wanted->filter);
		if (!event->filter)
			err = reason__say(reason, -ENOMEM, "no memory for the filter of %s",
					  event->name);
	}
	return err ? err : judge_layouts(group, reason);
}

static void dont_count_lost(struct source_perf *group)
{
	group->counts_lost = false;
	for (uint32_t i = 0; i < group->nr_events; i++)
		group->events[i].attr.read_format &= ~(uint64_t)PERF_FORMAT_LOST;
}

/*
 * Does the kernel have PERF_FORMAT_LOST? By trying, on any CPU that takes an event: distributions
 * carry such things back, so no version tells. What else is wrong with the event is said later.
 */
static void probe_lost(struct source_perf *group, const struct cpus *online)
{
	group->counts_lost = true;
	for (uint32_t cpu = 0; cpu < group->nr_cpus; cpu++) {
		int fd = cpus__has(online, cpu) ? open_event(&group->events[0].attr, cpu) : -ENODEV;

		if (fd == -ENODEV)
			continue;
		if (fd == -EINVAL)
			dont_count_lost(group);
		if (fd >= 0)
			close(fd);
		return;
	}
}

static struct budget_need need_of(const struct source_perf *group, uint64_t cpus)
{
	return (struct budget_need){
		.fds = group->nr_events * cpus,
		.rings = cpus,
		.ring_bytes = group->ring_bytes,
	};
}

static int judge_budget(const struct source_perf *group, const struct cpus *online,
			const struct reason *reason)
{
	struct budget_need need = need_of(group, cpus__count(online));
	struct budget_limits limits;

	budget__read_limits(&limits);
	return budget__judge(&limits, &need, reason);
}

static int allocate(struct source_perf *group)
{
	int slots = cpus__possible_slots(NULL);

	if (slots < 0)
		return slots;
	group->nr_cpus = (uint32_t)slots;
	group->events = calloc(group->nr_events, sizeof(*group->events));
	group->rings = calloc(group->nr_cpus, sizeof(*group->rings));
	return group->events && group->rings ? 0 : -ENOMEM;
}

int source_perf__open(struct source_perf *group, const struct source_perf_opts *opts,
		      const struct cpus *online, const struct reason *reason)
{
	int err = judge_opts(opts, reason);

	memset(group, 0, sizeof(*group));
	if (err)
		return err;
	group->nr_events = opts->nr_events;
	group->ring_bytes = opts->ring_bytes ? opts->ring_bytes : SOURCE_PERF_RING_BYTES;
	group->overwrite = opts->overwrite;
	err = allocate(group);
	if (err)
		reason__say(reason, err, "cannot set up perf events: %s", strerror(-err));
	else
		err = complete_events(group, opts, reason);
	if (!err)
		err = judge_budget(group, online, reason);
	if (!err && opts->map_fd >= 0) {
		err = perf_slots__open(&group->slots, opts->map_fd, reason);
		group->has_slots = !err;
	}
	if (err)
		source_perf__close(group);
	else
		probe_lost(group, online);
	return err;
}

void source_perf__close(struct source_perf *group)
{
	for (uint32_t cpu = 0; group->rings && cpu < group->nr_cpus; cpu++) {
		source_perf__unmake(group, cpu);
		free(group->rings[cpu].ids_before);
	}
	if (group->has_slots)
		perf_slots__close(&group->slots);
	for (uint32_t i = 0; group->events && i < group->nr_events; i++)
		free(group->events[i].filter);
	free(group->events);
	free(group->rings);
	memset(group, 0, sizeof(*group));
}

static int set_filter(const struct source_perf_event *event, int fd, const struct reason *reason)
{
	int err;

	if (!event->filter || !ioctl(fd, PERF_EVENT_IOC_SET_FILTER, event->filter))
		return 0;
	err = -errno;
	return reason__say(reason, err,
			   "the kernel does not take the filter '%s' for %s: %s; its format in "
			   "tracefs has the names of the fields",
			   event->filter, event->name, strerror(-err));
}

static int share_ring(const struct source_perf_ring *ring, const struct source_perf_event *event,
		      int fd, const struct reason *reason)
{
	int err;

	if (!ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fds[0]))
		return 0;
	err = -errno;
	return reason__say(reason, err, "%s cannot be written into the others' ring: %s",
			   event->name, strerror(-err));
}

static int map_ring(struct source_perf *group, struct source_perf_ring *ring,
		    const struct reason *reason)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct budget_need need = need_of(group, 1);
	struct budget_limits limits;
	void *map = mmap(NULL, page + group->ring_bytes,
			 group->overwrite ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED,
			 ring->fds[0], 0);
	int err = -errno;

	if (map != MAP_FAILED) {
		ring->page = map;
		ring->data = (const uint8_t *)map + page;
		return 0;
	}
	budget__read_limits(&limits);
	if (err == -EPERM)
		return budget__refused(&limits, &need, reason);
	return reason__say(reason, err, "cannot map a ring of %zu bytes: %s", group->ring_bytes,
			   strerror(-err));
}

/* One event more of this ring; the first one's is the ring. */
static int make_event(struct source_perf *group, uint32_t cpu, uint32_t i,
		      const struct reason *reason)
{
	struct source_perf_ring *ring = &group->rings[cpu];
	const struct source_perf_event *event = &group->events[i];
	int fd = open_event(&event->attr, cpu), err;

	if (fd == -ENODEV)
		return fd;
	if (fd < 0)
		return perf_attr__explain_open(event, cpu, fd, reason);
	ring->fds[i] = fd;
	if (ioctl(fd, PERF_EVENT_IOC_ID, &ring->ids[i])) {
		err = -errno;
		return reason__say(reason, err, "cannot read the id of %s: %s", event->name,
				   strerror(-err));
	}
	err = set_filter(event, fd, reason);
	if (err)
		return err;
	return i ? share_ring(ring, event, fd, reason) : map_ring(group, ring, reason);
}

int source_perf__make(struct source_perf *group, uint32_t cpu, const struct reason *reason)
{
	struct source_perf_ring *ring = &group->rings[cpu];
	int err = 0;

	ring->fds = malloc(group->nr_events * sizeof(*ring->fds));
	ring->ids = calloc(group->nr_events, sizeof(*ring->ids));
	for (uint32_t i = 0; ring->fds && i < group->nr_events; i++)
		ring->fds[i] = -1;
	if (!ring->fds || !ring->ids)
		err = reason__say(reason, -ENOMEM, "no memory for the events of CPU %u", cpu);
	for (uint32_t i = 0; i < group->nr_events && !err; i++)
		err = make_event(group, cpu, i, reason);
	if (err)
		source_perf__unmake(group, cpu);
	return err;
}

static void disable(struct source_perf *group, struct source_perf_ring *ring)
{
	for (uint32_t i = 0; i < group->nr_events; i++)
		if (ring->fds[i] >= 0)
			ioctl(ring->fds[i], PERF_EVENT_IOC_DISABLE, 0);
}

int source_perf__start(struct source_perf *group, uint32_t cpu, const struct reason *reason)
{
	struct source_perf_ring *ring = &group->rings[cpu];
	int err;

	for (uint32_t i = 0; i < group->nr_events; i++) {
		if (!ioctl(ring->fds[i], PERF_EVENT_IOC_ENABLE, 0))
			continue;
		err = -errno;
		disable(group, ring);
		return reason__say(reason, err, "cannot enable %s on CPU %u: %s",
				   group->events[i].name, cpu, strerror(-err));
	}
	if (!group->has_slots)
		return 0;
	err = perf_slots__put(&group->slots, cpu, ring->fds[0], reason);
	ring->in_slot = !err;
	if (err)
		disable(group, ring);
	return err;
}

void source_perf__stop(struct source_perf *group, uint32_t cpu)
{
	struct source_perf_ring *ring = &group->rings[cpu];

	if (ring->in_slot)
		perf_slots__take(&group->slots, cpu, ring->fds[0]);
	ring->in_slot = false;
	disable(group, ring);
}

void source_perf__unmake(struct source_perf *group, uint32_t cpu)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct source_perf_ring *ring = &group->rings[cpu];

	if (ring->page) {
		source_perf__stop(group, cpu);
		munmap(ring->page, page + group->ring_bytes);
	}
	for (uint32_t i = group->nr_events; ring->fds && i-- > 0;)
		if (ring->fds[i] >= 0)
			close(ring->fds[i]);
	free(ring->fds);
	free(ring->ids_before);
	*ring = (struct source_perf_ring){.ids_before = ring->ids};
}

int source_perf__pause(struct source_perf *group, uint32_t cpu, bool paused)
{
	return ioctl(group->rings[cpu].fds[0], PERF_EVENT_IOC_PAUSE_OUTPUT, paused) ? -errno : 0;
}

/* What read(2) gives: the value, then what read_format asks for, in the order of its bits. */
static size_t words_before_lost(uint64_t read_format)
{
	return 1 + (size_t)__builtin_popcountll(read_format & (PERF_FORMAT_LOST - 1));
}

/* At least `count` of them. */
static int read_words(int fd, uint64_t *words, size_t room, size_t count)
{
	ssize_t bytes = read(fd, words, room);

	if (bytes < 0)
		return -errno;
	return (size_t)bytes < count * sizeof(*words) ? -EIO : 0;
}

int source_perf__enabled_ns(const struct source_perf *group, uint32_t cpu, uint64_t *enabled_ns)
{
	uint64_t words[8];
	int err = read_words(group->rings[cpu].fds[0], words, sizeof(words), 2);

	if (!err)
		*enabled_ns = words[1];
	return err;
}

int source_perf__lost(const struct source_perf *group, uint32_t cpu, uint64_t *lost)
{
	const struct source_perf_ring *ring = &group->rings[cpu];
	size_t at = words_before_lost(group->events[0].attr.read_format);
	uint64_t words[8];

	if (!group->counts_lost)
		return -EOPNOTSUPP;
	*lost = 0;
	/* Each event counts its own, wherever it is written to. */
	for (uint32_t i = 0; i < group->nr_events; i++) {
		int err = read_words(ring->fds[i], words, sizeof(words), at + 1);

		if (err)
			return err;
		*lost += words[at];
	}
	return 0;
}

static int64_t find_id(const uint64_t *ids, uint32_t count, uint64_t id)
{
	uint32_t low = 0, high = ids ? count : 0;

	/* The kernel counts them up, and they were opened in the order of their index. */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (ids[middle] == id)
			return middle;
		if (ids[middle] < id)
			low = middle + 1;
		else
			high = middle;
	}
	return -1;
}

int64_t source_perf__event(const struct source_perf *group, uint32_t cpu, uint64_t id)
{
	const struct source_perf_ring *ring = &group->rings[cpu];
	int64_t index = find_id(ring->ids, group->nr_events, id);

	return index < 0 ? find_id(ring->ids_before, group->nr_events, id) : index;
}
