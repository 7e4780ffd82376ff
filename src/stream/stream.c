/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stream.c - the public handle: sources meet order here, and only here.
 *
 * Owns the sources and everything that is sized by them. A call that fails leaves the stream as it
 * was.
 */
#include "stream/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLOSE_ROUNDS 3 /* after detach one is enough; more only to be sure of it */

WEIR_API struct weir_stream *weir_stream__new(const struct weir_stream_opts *opts)
{
	struct weir_stream *s;
	int err;

	if (!opts || opts->sz < sizeof(*opts) || !opts->on_event) {
		errno = EINVAL;
		return NULL;
	}
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->on_event = opts->on_event;
	s->on_watermark = opts->on_watermark;
	s->ctx = opts->ctx;
	s->memory_max = opts->memory_bytes ? opts->memory_bytes : DEFAULT_MEMORY_BYTES;
	s->guard_min_ns = opts->guard_ns ? opts->guard_ns : DEFAULT_GUARD_NS;
	s->guard_ns = s->guard_min_ns;
	s->interval_ns = opts->poll_interval_ns ? opts->poll_interval_ns : DEFAULT_POLL_INTERVAL_NS;
	s->clock = clock__kernel;
	s->start_ns = stream__now(s);
	s->memory_only = true;
	s->hotplug.fd = -1;
	/* This first: 0 is a descriptor, and free() closes those that don't say that they are none. */
	err = wake__open(&s->wake);
	if (!err)
		err = merge__init(&s->merge);
	if (err) {
		weir_stream__free(s);
		errno = -err;
		return NULL;
	}
	return s;
}

static void free_ring(struct ring *ring)
{
	if (!ring)
		return;
	while (ring->held)
		ring__drop_oldest_held(ring);
	queue__free(&ring->queue);
	seqs__free(&ring->seqs);
	free(ring);
}

WEIR_API void weir_stream__free(struct weir_stream *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->nr_rings; i++)
		free_ring(s->rings[i]);
	for (size_t i = 0; i < s->nr_groups; i++)
		source_rings__close(&s->groups[i]);
	for (size_t i = 0; i < s->nr_watches; i++)
		misses__close(&s->watches[i].misses);
	hotplug__close(&s->hotplug);
	wake__close(&s->wake);
	merge__free(&s->merge);
	retire__free(&s->retire);
	free(s->rings);
	free(s->by_source);
	free(s->active);
	free(s->lanes);
	free(s->notices);
	free(s->watches);
	free(s->groups);
	free(s);
}

static int grow(void *array_ptr, size_t count, size_t size)
{
	void **array = array_ptr;
	void *grown = realloc(*array, count * size);

	if (!grown)
		return -ENOMEM;
	*array = grown;
	return 0;
}

/* Room for sources up to and with `source`, and for one more ring. */
static int room_for(struct weir_stream *s, uint32_t source)
{
	uint32_t slots = source + 1 > s->nr_sources ? source + 1 : s->nr_sources;

	if (source >= SOURCES_MAX)
		return -E2BIG;
	if (grow(&s->by_source, slots, sizeof(*s->by_source)) ||
	    grow(&s->rings, s->nr_rings + 1, sizeof(*s->rings)) ||
	    grow(&s->active, s->nr_rings + 1, sizeof(*s->active)) ||
	    grow(&s->lanes, s->nr_rings + 1, sizeof(*s->lanes)) ||
	    stream__room_for_notices(s, s->nr_rings + 1))
		return -ENOMEM;
	while (s->nr_sources < slots)
		s->by_source[s->nr_sources++] = NULL;
	return 0;
}

/* Put a ring into the poll list, which goes by source: that is the order of ties. */
static void list_ring(struct weir_stream *s, struct ring *ring)
{
	size_t i = s->nr_rings++;

	for (; i && s->rings[i - 1]->source > ring->source; i--)
		s->rings[i] = s->rings[i - 1];
	s->rings[i] = ring;
	s->by_source[ring->source] = ring;
}

static struct ring *new_ring(struct weir_stream *s, uint32_t source, const char *name, int cpu,
			     const struct weir_counters *counters)
{
	struct ring *ring = calloc(1, sizeof(*ring));

	if (!ring)
		return NULL;
	if (seqs__init(&ring->seqs)) {
		free(ring);
		return NULL;
	}
	ring->source = source;
	ring->cpu = cpu;
	ring->counters = counters;
	ring->held_last = &ring->held;
	ring->held_bytes = &s->held_bytes;
	ring->online = true;
	/* Its CPU may have tried before there was a ring, but not before there was a stream. */
	ring->seqs.floor_ns = s->start_ns;
	/* Nothing of it is known to be complete before the watermark that was announced without it. */
	ring->reached_ns = s->watermark_ns;
	snprintf(ring->name, sizeof(ring->name), "%s", name);
	return ring;
}

/* -ENOMEM: nothing is bound. The index is there from now on: to read the ring needs no memory. */
static int bind_memory(struct ring *ring, const void *data, size_t size, const uint64_t *producer,
		       uint64_t *consumer)
{
	int err = queue__room(&ring->queue, size / BPF_RINGBUF_MIN_RECORD);

	if (err)
		return err;
	ring->rb.data = data;
	ring->rb.mask = size - 1;
	ring->rb.pos = ring->tail = __atomic_load_n(consumer, __ATOMIC_RELAXED);
	ring->latest.pos = ring->rb.pos;
	ring->size = size;
	ring->producer = producer;
	ring->consumer = consumer;
	return 0;
}

int weir_stream__add_memory_ring(struct weir_stream *s, const struct weir_memory_ring *memory)
{
	uint32_t source = s->nr_sources;
	struct ring *ring;
	int err;

	if (!memory->size || memory->size & (memory->size - 1) ||
	    memory->size < BPF_RINGBUF_MIN_RECORD || *memory->consumer % BPF_RINGBUF_ALIGN)
		return -EINVAL;
	err = room_for(s, source);
	if (err)
		return err;
	ring = new_ring(s, source, memory->name, memory->cpu, memory->counters);
	if (!ring ||
	    bind_memory(ring, memory->data, memory->size, memory->producer, memory->consumer)) {
		free_ring(ring);
		s->nr_sources = source;
		return -ENOMEM;
	}
	ring->failed_start = __atomic_load_n(&memory->counters->failed, __ATOMIC_ACQUIRE);
	seqs__start(&ring->seqs, __atomic_load_n(&memory->counters->attempts, __ATOMIC_ACQUIRE));
	list_ring(s, ring);
	return (int)source;
}

void weir_stream__set_clock(struct weir_stream *s, const struct weir_clock *clock)
{
	s->clock = *clock;
	s->start_ns = stream__now(s);
	for (size_t i = 0; i < s->nr_rings; i++)
		s->rings[i]->seqs.floor_ns = s->start_ns;
	for (size_t i = 0; i < s->nr_watches; i++)
		s->watches[i].read_ns = stream__now(s);
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
		list_ring(s, ring);
	}
	err = bind_memory(ring, (const char *)kernel->producer_page + page, kernel->size,
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
		err = room_for(s, group->first_source + slot);
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

/* Take back what a failed add has made. */
static void forget_group(struct weir_stream *s, struct source_rings *group, uint32_t nr_sources)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->nr_rings; i++) {
		if (s->rings[i]->source < group->first_source)
			s->rings[kept++] = s->rings[i];
		else
			free_ring(s->rings[i]);
	}
	s->nr_rings = kept;
	s->nr_sources = nr_sources;
	source_rings__close(group);
}

static int start_hotplug(struct weir_stream *s)
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

	if (grow(&s->groups, s->nr_groups + 1, sizeof(*s->groups)))
		return -ENOMEM;
	err = open_group(s, opts, &group);
	if (err)
		return err;
	/* All sources at once, so that their numbers are slots, whenever their CPU comes. */
	err = room_for(s, group.first_source + source_rings__slots(&group) - 1);
	if (!err)
		err = make_rings(s, &group, &s->hotplug.online);
	if (err) {
		forget_group(s, &group, nr_sources);
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
	err = start_hotplug(s);
	if (!err)
		err = add_group(s, opts);
	/* Nothing was added, so there is nothing to watch either. */
	if (err && s->memory_only)
		hotplug__close(&s->hotplug);
	return err;
}

static int add_watch(struct weir_stream *s, const struct misses *misses)
{
	struct watch *watch;

	if (grow(&s->watches, s->nr_watches + 1, sizeof(*s->watches)))
		return -ENOMEM;
	watch = &s->watches[s->nr_watches++];
	*watch = (struct watch){
		.misses = *misses,
		.base = misses__total(misses, 0),
		.read_ns = stream__now(s),
	};
	return 0;
}

WEIR_API int weir_stream__watch_prog(struct weir_stream *s, int prog_fd, const char *name)
{
	struct misses misses;
	int err = misses__open_prog(&misses, prog_fd, name);

	if (err)
		return err;
	err = add_watch(s, &misses);
	if (err)
		misses__close(&misses);
	return err;
}

int weir_stream__watch_misses(struct weir_stream *s, const char *name, uint64_t (*read)(void *ctx),
			      void *ctx)
{
	struct misses misses = {.read = read, .ctx = ctx, .fd = -1};

	snprintf(misses.name, sizeof(misses.name), "%s", name);
	return add_watch(s, &misses);
}

static void add_offline_gap(struct weir_stream *s, struct ring *ring, uint64_t to_ns)
{
	struct weir_gap gap = {
		.from_ns = ring->offline_since_ns < to_ns ? ring->offline_since_ns : to_ns,
		.to_ns = to_ns,
		.cause = WEIR_LOST_OFFLINE,
	};

	stream__add_gap(s, ring, ring->seqs.expect, &gap);
	/* Told up to here: a close that has to be repeated does not tell it again. */
	ring->offline_since_ns = gap.to_ns;
}

static void add_cpu(struct weir_stream *s, int cpu)
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

/*
 * A CPU is at work before anybody hears that it is back: the hole ends before its first record, or
 * with it where the stream has come so near that before it would be late.
 */
static uint64_t back_since(const struct weir_stream *s, const struct ring *ring)
{
	const struct queue *q = &ring->queue;
	size_t before = queue__until(q, ring->offline_since_ns);
	uint64_t now_ns = stream__now(s), first_ns;
	bool near;

	if (before == queue__count(q))
		return now_ns;
	first_ns = q->e[q->first + before].stamp_ns;
	if (first_ns > now_ns) /* A stamp that was made up. */
		return now_ns;
	near = first_ns - 1 <= s->watermark_ns || first_ns - 1 <= s->stopped.stamp_ns;
	return near ? first_ns : first_ns - 1;
}

void weir_stream__cpu_changed(struct weir_stream *s, int cpu, bool online)
{
	for (size_t i = 0; i < s->nr_rings; i++) {
		struct ring *ring = s->rings[i];

		if (ring->cpu != cpu || ring->online == online)
			continue;
		ring->online = online;
		if (online)
			add_offline_gap(s, ring, back_since(s, ring));
		else
			ring->offline_since_ns = stream__now(s);
	}
	if (online)
		add_cpu(s, cpu);
}

WEIR_API int weir_stream__poll(struct weir_stream *s, int timeout_ms)
{
	uint64_t start_ns = stream__now(s), end_ns, now_ns;
	int count, err;

	if (s->closed)
		return 0;
	if (s->wake.paced)
		wake__taken(&s->wake);
	end_ns = timeout_ms < 0 ? UINT64_MAX : start_ns + (uint64_t)timeout_ms * 1000000;
	/* Events flow: let the interval pass, so that a poll has something to do. */
	if (timeout_ms && s->flowing) {
		err = stream__wait(s, end_ns - start_ns);
		if (err)
			return err;
	}
	count = stream__round(s);
	for (;;) {
		now_ns = stream__now(s);
		if (count || now_ns >= end_ns || s->memory_only)
			break;
		/* The timer that moves the watermark on an idle machine. */
		err = stream__wait(s, end_ns - now_ns < CHORES_INTERVAL_NS ? end_ns - now_ns
									   : CHORES_INTERVAL_NS);
		if (err)
			return err;
		count = stream__round(s);
	}
	if (s->wake.paced)
		wake__due(&s->wake, s->flowing ? s->interval_ns : CHORES_INTERVAL_NS);
	return count;
}

static int flush_to(struct weir_stream *s, uint64_t limit_ns)
{
	int count = stream__deliver(s, limit_ns);

	return count < 0 ? count : 0;
}

static bool all_reached(const struct weir_stream *s, uint64_t t_ns)
{
	for (size_t i = 0; i < s->nr_rings; i++)
		if (s->rings[i]->reached_ns < t_ns)
			return false;
	return true;
}

WEIR_API int weir_stream__flush(struct weir_stream *s, int timeout_ms)
{
	/*
	 * What was published before now is stamped before now, or within the guard of it; and the
	 * watermark keeps another guard from the clock.
	 */
	uint64_t now_ns = stream__now(s), until_ns = now_ns + s->guard_ns;
	uint64_t end_ns = timeout_ms < 0 ? UINT64_MAX : now_ns + (uint64_t)timeout_ms * 1000000;

	while (!s->closed) {
		int count = stream__round(s);

		if (count < 0)
			return count;
		if (s->watermark_ns >= until_ns || !s->nr_rings)
			return 0;
		if (all_reached(s, s->t_ns)) {
			/* A clock of the caller's may stand still, and has no second reader. */
			if (s->memory_only)
				return flush_to(s, now_ns);
			continue;
		}
		if (s->memory_only || s->bound_ns >= end_ns)
			return -ETIMEDOUT;
		count = stream__wait(s, s->interval_ns);
		if (count)
			return count;
	}
	return 0;
}

/* Rings that the producers wanted and never got: their attempts are losses like any other. */
static int add_ringless(struct weir_stream *s, struct source_rings *group)
{
	for (uint32_t slot = 0; slot < source_rings__slots(group); slot++) {
		const struct weir_counters *counters = source_rings__counters(group, slot);
		uint32_t source = group->first_source + slot, cpu = slot % group->nr_cpus;
		struct ring *ring;
		char name[32];

		if (s->by_source[source] || !__atomic_load_n(&counters->attempts, __ATOMIC_ACQUIRE))
			continue;
		if (room_for(s, source))
			return -ENOMEM;
		snprintf(name, sizeof(name), "%s%u", group->classes[slot / group->nr_cpus].name,
			 cpu);
		ring = new_ring(s, source, name, (int)cpu, counters);
		if (!ring)
			return -ENOMEM;
		list_ring(s, ring);
	}
	return 0;
}

static bool any_offline(const struct weir_stream *s)
{
	for (size_t i = 0; i < s->nr_rings; i++)
		if (!s->rings[i]->online)
			return true;
	return false;
}

/* That a CPU is back may not have been heard yet: first a round, which looks. */
static int end_offline_gaps(struct weir_stream *s)
{
	int count = any_offline(s) ? stream__round(s) : 0;

	if (count < 0)
		return count;
	for (size_t i = 0; i < s->nr_rings; i++)
		if (!s->rings[i]->online)
			add_offline_gap(s, s->rings[i], stream__now(s));
	return 0;
}

WEIR_API int weir_stream__close(struct weir_stream *s)
{
	int err = 0, count = 1;

	if (s->closed)
		return 0;
	for (size_t i = 0; i < s->nr_groups && !err; i++) {
		err = source_rings__fence(&s->groups[i]);
		if (!err)
			err = add_ringless(s, &s->groups[i]);
	}
	if (!err)
		err = end_offline_gaps(s);
	if (err)
		return err;
	s->next_misses_ns = 0;
	for (int i = 0; i < CLOSE_ROUNDS && count > 0; i++)
		count = stream__last_round(s);
	if (count < 0)
		return count;
	s->closed = true;
	return 0;
}

WEIR_API uint64_t weir_stream__watermark(const struct weir_stream *s)
{
	return s->watermark_ns;
}

WEIR_API int weir_stream__epoll_fd(struct weir_stream *s)
{
	s->wake.paced = true;
	wake__due(&s->wake, 0);
	return s->wake.epoll_fd;
}

WEIR_API int weir_stream__retire(struct weir_stream *s, uint64_t stamp_ns, weir_retire_fn fn,
				 void *arg)
{
	return retire__add(&s->retire, stamp_ns, fn, arg);
}

WEIR_API int64_t weir_stream__wall_ns(const struct weir_stream *s, uint64_t stamp_ns)
{
	return clock_offsets__wall_ns(&s->offsets, stamp_ns);
}
