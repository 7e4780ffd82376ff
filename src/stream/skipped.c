/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * skipped.c - events that the kernel never gave to a program, because the program was already running
 * on that CPU: gaps of cause `skipped`, at most N, of no CPU in particular.
 */
#include "stream/internal.h"

#include <errno.h>
#include <stdio.h>

static int add_watch(struct weir_stream *s, const struct misses *misses)
{
	struct watch *watch;

	if (stream__grow(&s->watches, s->nr_watches + 1, sizeof(*s->watches)))
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

void stream__read_misses(struct weir_stream *s)
{
	if (s->t_ns < s->next_misses_ns)
		return;
	s->next_misses_ns = s->t_ns + (s->memory_only ? 0 : MISSES_INTERVAL_NS);
	for (size_t i = 0; i < s->nr_watches; i++) {
		struct watch *watch = &s->watches[i];
		uint64_t total = misses__total(&watch->misses, watch->base + watch->total) -
				 watch->base;
		struct weir_gap gap = {
			.from_ns = watch->read_ns,
			.to_ns = s->t_ns,
			.lost = total - watch->total,
			.cause = WEIR_LOST_SKIPPED,
			.bound = WEIR_BOUND_AT_MOST,
		};

		watch->read_ns = s->t_ns;
		if (total <= watch->total)
			continue;
		s->lost_nowhere[WEIR_LOST_SKIPPED] += gap.lost;
		watch->total = total;
		stream__add_gap(s, NULL, 0, &gap);
	}
}
