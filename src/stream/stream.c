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

WEIR_API struct weir_stream *weir_stream__new(const struct weir_stream_opts *opts)
{
	struct weir_stream *s;
	int err;

	if (!opts || opts->sz < sizeof(*opts) || !opts->on_event == !opts->on_batch ||
	    opts->late > WEIR_LATE_FAIL) {
		errno = EINVAL;
		return NULL;
	}
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->on_event = opts->on_event;
	s->on_batch = opts->on_batch;
	s->on_watermark = opts->on_watermark;
	s->ctx = opts->ctx;
	stream__set_emit(s);
	s->late = opts->late;
	s->budget = opts->poll_budget ? opts->poll_budget : SIZE_MAX;
	s->announce_interval_ns = opts->watermark_interval_ns;
	s->memory_max = opts->memory_bytes ? opts->memory_bytes : DEFAULT_MEMORY_BYTES;
	s->guard_min_ns = opts->guard_ns ? opts->guard_ns : DEFAULT_GUARD_NS;
	s->guard_ns = s->guard_min_ns;
	s->interval_ns = opts->poll_interval_ns ? opts->poll_interval_ns : DEFAULT_POLL_INTERVAL_NS;
	s->memory_only = true;
	s->all_numbered = true;
	s->hotplug.fd = -1;
	s->handshake.prog_fd = s->handshake.map_fd = -1;
	/* This first: 0 is a descriptor, and free() closes those that don't say that they are none. */
	err = wake__open(&s->wake);
	if (!err)
		err = merge__init(&s->merge);
	if (!err)
		err = clock__open(&s->clock, opts->clock);
	if (err) {
		weir_stream__free(s);
		errno = -err;
		return NULL;
	}
	s->clock_id = opts->clock;
	s->start_ns = stream__now(s);
	return s;
}

WEIR_API void weir_stream__free(struct weir_stream *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->nr_rings; i++)
		ring__free(s->rings[i]);
	for (size_t i = 0; i < s->nr_groups; i++)
		source_rings__close(&s->groups[i]);
	stream__free_perf(s);
	stream__free_ringbufs(s);
	for (size_t i = 0; i < s->nr_watches; i++)
		misses__close(&s->watches[i].misses);
	if (s->has_fence)
		fence__close(&s->fence);
	handshake__close(&s->handshake);
	clock__close(&s->clock);
	hotplug__close(&s->hotplug);
	wake__close(&s->wake);
	merge__free(&s->merge);
	retire__free(&s->retire);
	free(s->rings);
	free(s->by_source);
	free(s->fronts);
	free(s->lanes);
	free(s->scratch);
	free(s->notices);
	free(s->watches);
	free(s->groups);
	free(s);
}

void weir_stream__set_clock(struct weir_stream *s, const struct weir_clock *clock)
{
	clock__close(&s->clock);
	s->clock = *clock;
	s->start_ns = stream__now(s);
	for (size_t i = 0; i < s->nr_rings; i++)
		s->rings[i]->seqs.floor_ns = s->start_ns;
	for (size_t i = 0; i < s->nr_watches; i++)
		s->watches[i].read_ns = stream__now(s);
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
