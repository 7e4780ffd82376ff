/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * poll.c - the three ways to make a stream move: poll, flush and close.
 *
 * How long to sleep, and when enough has come out; what one round does is round.c's.
 */
#include "stream/internal.h"

#include <errno.h>

#define CLOSE_ROUNDS 3 /* after detach one is enough; more only to be sure of it */

/* When a caller with an event loop of its own has to come back, whatever wakes him before. */
static uint64_t pace_ns(const struct weir_stream *s)
{
	if (s->behind)
		return 0;
	if (s->flowing)
		return s->interval_ns;
	return s->nr_quiet ? QUIET_NS : CHORES_INTERVAL_NS;
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
	/*
	 * Events flow: let the interval pass, so that a poll has something to do. Not where the budget left
	 * something behind: what is due would wait, and more of it each time.
	 */
	if (timeout_ms && s->flowing && !s->behind) {
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
		wake__due(&s->wake, pace_ns(s));
	return count;
}

static int flush_to(struct weir_stream *s, uint64_t limit_ns)
{
	int count = stream__deliver(s, limit_ns, SIZE_MAX);

	/* By as much as the guard this is beyond the watermark. */
	stream__stop_here(s);
	return count < 0 ? count : 0;
}

/* Not by T: where no grace period has ended since, two snapshots have the same. */
static bool all_reached(const struct weir_stream *s)
{
	for (size_t i = 0; i < s->nr_rings; i++)
		if (s->rings[i]->fifo.count)
			return false;
	return true;
}

/* Is there nothing older than this that could still come? */
static bool all_proved(const struct weir_stream *s, uint64_t since_ns)
{
	for (size_t i = 0; i < s->nr_rings; i++)
		if (s->rings[i]->latest.t_ns < since_ns)
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
		/* It goes as far as the last snapshot, and that is out. */
		if (s->nr_on_demand)
			return 0;
		/* A clock of the caller's may stand still, and has no second reader. */
		if (s->memory_only)
			return all_reached(s) && all_proved(s, now_ns) ? flush_to(s, now_ns)
								       : -ETIMEDOUT;
		if (!all_reached(s)) {
			if (s->bound_ns >= end_ns)
				return -ETIMEDOUT;
		} else if (all_proved(s, now_ns)) {
			continue; /* it takes no longer than the guard */
		} else if (s->fence_err) {
			return s->fence_err; /* nothing is proved any more */
		}
		stream__want_ticket(s, until_ns);
		count = stream__wait(s, s->interval_ns);
		if (count)
			return count;
	}
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
			err = stream__add_ringless(s, &s->groups[i]);
	}
	if (!err)
		err = stream__stop_perf(s);
	if (!err)
		err = stream__end_offline_gaps(s);
	if (err)
		return err;
	s->next_misses_ns = 0;
	s->closing = true;
	for (int i = 0; i < CLOSE_ROUNDS && count > 0; i++)
		count = stream__last_round(s);
	if (count < 0)
		return count;
	s->closed = true;
	return 0;
}
