/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wait.c - sleeping without missing the first record, and without a wake-up for each.
 *
 * Wake-ups are the largest cost of all. So the reader asks for one only when it has found nothing:
 * it sets `wanted`, looks once more, and sleeps; the first producer that sees `wanted` swaps it back
 * and wakes. While events flow it just comes back after the poll interval.
 */
#include "stream/internal.h"

#include <errno.h>

static bool has_unread(const struct weir_stream *s)
{
	for (size_t i = 0; i < s->nr_rings; i++) {
		const struct ring *ring = s->rings[i];

		if (ring->size && __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE) + ring->base !=
					  ring->latest.pos)
			return true;
	}
	return false;
}

static void want_wakeup(const struct weir_stream *s, uint32_t wanted)
{
	for (size_t i = 0; i < s->nr_groups; i++)
		__atomic_store_n(&source_rings__control(&s->groups[i])->wanted, wanted,
				 __ATOMIC_RELAXED);
}

/*
 * perf wakes at a mark in its ring, not for a record: what stands below the mark is seen by looking, and
 * nothing waits longer than QUIET_NS for it (F7). Ever more seldom while nothing comes, so that an
 * idle machine pays next to nothing.
 */
static int sleep_and_look(struct weir_stream *s, uint64_t timeout_ns)
{
	uint64_t nap_ns = s->interval_ns;
	int woken;

	for (;;) {
		if (nap_ns > timeout_ns)
			nap_ns = timeout_ns;
		woken = wake__sleep(&s->wake, nap_ns);
		timeout_ns -= nap_ns;
		if (woken || !timeout_ns || has_unread(s))
			return woken;
		nap_ns = 2 * nap_ns < QUIET_NS ? 2 * nap_ns : QUIET_NS;
	}
}

int stream__wait(struct weir_stream *s, uint64_t timeout_ns)
{
	uint64_t now_ns;
	int woken;

	if (s->memory_only)
		return 0;
	if (s->flowing) {
		uint64_t next_ns = s->last_round_ns + s->interval_ns;

		now_ns = stream__now(s);
		if (next_ns <= now_ns)
			return 0;
		if (timeout_ns > next_ns - now_ns)
			timeout_ns = next_ns - now_ns;
		woken = wake__sleep(&s->wake, timeout_ns);
		return woken < 0 ? woken : 0;
	}
	want_wakeup(s, 1);
	/*
	 * Pairs with the producer's fetch_add between its reserve and its look at `wanted`: either it
	 * sees our 1, or we see its new position. Without a full barrier on both sides neither may.
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (has_unread(s)) {
		want_wakeup(s, 0);
		return 0;
	}
	woken = s->nr_quiet ? sleep_and_look(s, timeout_ns) : wake__sleep(&s->wake, timeout_ns);
	want_wakeup(s, 0);
	return woken < 0 ? woken : 0;
}
