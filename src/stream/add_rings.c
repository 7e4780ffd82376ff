/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * add_rings.c - rings of weir.bpf.h's shape become sources: those of a BPF object, by (class, CPU),
 * and those that lie in plain memory.
 *
 * A ring is in the poll list before its producers learn of it: a CPU that comes later never writes
 * where nobody looks.
 */
#include "stream/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct ring *new_ring(struct weir_stream *s, uint32_t source, const char *name, int cpu,
			     const struct weir_counters *counters)
{
	struct ring *ring = stream__new_ring(s, &ring_kind__numbered, source, name, cpu);

	if (!ring)
		return NULL;
	ring->counters = counters;
	/* Its CPU may have tried before there was a ring, but not before there was a stream. */
	ring->seqs.floor_ns = s->start_ns;
	if (!seqs__init(&ring->seqs))
		return ring;
	ring__free(ring);
	return NULL;
}

int weir_stream__add_memory_ring(struct weir_stream *s, const struct weir_memory_ring *memory)
{
	uint32_t source = s->nr_sources;
	struct ring *ring;
	int err;

	if (!memory->size || memory->size & (memory->size - 1) ||
	    memory->size < BPF_RINGBUF_MIN_RECORD || *memory->consumer % BPF_RINGBUF_ALIGN)
		return -EINVAL;
	err = stream__room_for(s, source);
	if (err)
		return err;
	ring = new_ring(s, source, memory->name, memory->cpu, memory->counters);
	if (!ring ||
	    ring__bind(ring, memory->data, memory->size, memory->producer, memory->consumer)) {
		ring__free(ring);
		s->nr_sources = source;
		return -ENOMEM;
	}
	ring->failed_start = __atomic_load_n(&memory->counters->failed, __ATOMIC_ACQUIRE);
	seqs__start(&ring->seqs, __atomic_load_n(&memory->counters->attempts, __ATOMIC_ACQUIRE));
	stream__list_ring(s, ring);
	return (int)source;
}

static int make_ring(struct weir_stream *s, struct source_rings *group, uint32_t slot)
{
	uint32_t class = slot / group->nr_cpus, cpu = slot % group->nr_cpus;
	uint32_t source = group->first_source + slot;
	struct source_ring *kernel = &group->rings[slot];
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct ring *ring = s->by_source[source];
	char name[32];
	int err;

	err = source_rings__make(group, slot);
	if (err)
		return err;
	if (!ring) {
		snprintf(name, sizeof(name), "%s%u", group->classes[class].name, cpu);
		ring = new_ring(s, source, name, (int)cpu, source_rings__counters(group, slot));
		if (!ring)
			return -ENOMEM;
		stream__list_ring(s, ring);
	}
	err = ring__bind(ring, (const char *)kernel->producer_page + page, kernel->size,
			 kernel->producer_page, kernel->consumer_page);
	return err ? err : wake__add(&s->wake, kernel->fd);
}

/* Make, poll, then publish the rings that `online` needs and that are not there yet. */
static int make_rings(struct weir_stream *s, struct source_rings *group, const struct cpus *online)
{
	uint32_t slots = source_rings__slots(group), n = 0;
	uint32_t *made = calloc(slots, sizeof(*made));
	int err = made ? 0 : -ENOMEM;

	for (uint32_t slot = 0; slot < slots && !err; slot++) {
		if (group->rings[slot].fd >= 0 || !cpus__has(online, slot % group->nr_cpus))
			continue;
		err = stream__room_for(s, group->first_source + slot);
		if (!err)
			err = make_ring(s, group, slot);
		made[n++] = slot;
	}
	if (!err)
		err = source_rings__publish(group, made, n);
	free(made);
	return err;
}

static int open_group(struct weir_stream *s, const struct weir_rings_opts *opts,
		      struct source_rings *group)
{
	int err = source_rings__open(group, opts->rings_fd, opts->counters_fd, opts->nr_cpus,
				     opts->nr_classes);

	if (err)
		return err;
	group->first_source = s->nr_sources;
	for (uint32_t i = 0; i < opts->nr_classes; i++) {
		snprintf(group->classes[i].name, sizeof(group->classes[i].name), "%s",
			 opts->classes[i].name);
		group->classes[i].ring_bytes = opts->classes[i].ring_bytes;
	}
	return 0;
}

static bool good_opts(const struct weir_rings_opts *opts)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (!opts || opts->sz < sizeof(*opts) || !opts->nr_cpus || opts->nr_cpus > CPUS_MAX ||
	    !opts->nr_classes || opts->nr_classes > 16 || !opts->classes)
		return false;
	for (uint32_t i = 0; i < opts->nr_classes; i++) {
		size_t bytes = opts->classes[i].ring_bytes;

		if (bytes < page || bytes & (bytes - 1) || bytes > UINT32_MAX / 2 + 1ul ||
		    !opts->classes[i].name || strlen(opts->classes[i].name) > 15)
			return false;
	}
	return true;
}

int stream__start_hotplug(struct weir_stream *s)
{
	int err;

	if (!s->memory_only)
		return 0;
	err = hotplug__open(&s->hotplug);
	if (!err && s->hotplug.fd >= 0)
		err = wake__add(&s->wake, s->hotplug.fd);
	return err;
}

static int add_group(struct weir_stream *s, const struct weir_rings_opts *opts)
{
	uint32_t nr_sources = s->nr_sources;
	struct source_rings group;
	int err;

	if (stream__grow(&s->groups, s->nr_groups + 1, sizeof(*s->groups)))
		return -ENOMEM;
	err = open_group(s, opts, &group);
	if (err)
		return err;
	/* All sources at once, so that their numbers are slots, whenever their CPU comes. */
	err = stream__room_for(s, group.first_source + source_rings__slots(&group) - 1);
	if (!err)
		err = make_rings(s, &group, &s->hotplug.online);
	if (err) {
		stream__forget_from(s, nr_sources);
		source_rings__close(&group);
		return err;
	}
	s->groups[s->nr_groups++] = group;
	s->memory_only = false;
	return 0;
}

WEIR_API int weir_stream__add_rings(struct weir_stream *s, const struct weir_rings_opts *opts)
{
	int err;

	if (!good_opts(opts))
		return -EINVAL;
	err = stream__start_hotplug(s);
	if (!err)
		err = add_group(s, opts);
	/* Nothing was added, so there is nothing to watch either. */
	if (err && s->memory_only)
		hotplug__close(&s->hotplug);
	return err;
}

void stream__add_cpu_rings(struct weir_stream *s, int cpu)
{
	struct cpus only = {0};

	only.bits[cpu / 64] = 1ull << (cpu % 64);
	/*
	 * When there is no memory for it, its records are counted as reserves that failed, which is
	 * what they are.
	 */
	for (size_t i = 0; i < s->nr_groups; i++)
		make_rings(s, &s->groups[i], &only);
}

/* Rings that the producers wanted and never got: their attempts are losses like any other. */
int stream__add_ringless(struct weir_stream *s, struct source_rings *group)
{
	for (uint32_t slot = 0; slot < source_rings__slots(group); slot++) {
		const struct weir_counters *counters = source_rings__counters(group, slot);
		uint32_t source = group->first_source + slot, cpu = slot % group->nr_cpus;
		struct ring *ring;
		char name[32];

		if (s->by_source[source] || !__atomic_load_n(&counters->attempts, __ATOMIC_ACQUIRE))
			continue;
		if (stream__room_for(s, source))
			return -ENOMEM;
		snprintf(name, sizeof(name), "%s%u", group->classes[slot / group->nr_cpus].name,
			 cpu);
		ring = new_ring(s, source, name, (int)cpu, counters);
		if (!ring)
			return -ENOMEM;
		stream__list_ring(s, ring);
	}
	return 0;
}
