/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * proof.c - up to which time a ring's head, read now, has everything: by the order of its producer's
 * steps, by a grace period, or by waiting. All three can stand in one stream; the watermark is the
 * least of theirs (round.c), and says what it rests on.
 */
#include "stream/internal.h"

#include <errno.h>
#include <string.h>
#include <time.h>

/* A source needs grace periods: from the first one on the stream has a fence. */
static int need_fence(struct weir_stream *s, enum proof proof)
{
	int err;

	if ((proof != PROOF_RCU && proof != PROOF_SNAPSHOT) || s->has_fence || s->ticket_ns)
		return 0;
	err = fence__open(&s->fence, FENCE_AUTO, &s->clock);
	if (err)
		return err;
	err = wake__add(&s->wake, fence__fd(&s->fence));
	if (err)
		fence__close(&s->fence);
	else
		s->has_fence = true;
	return err;
}

int stream__need_proof(struct weir_stream *s, enum proof proof, const struct reason *reason)
{
	int err = need_fence(s, proof);

	if (!err)
		return 0;
	return reason__say(reason, err,
			   "order cannot be proved, for no grace period can be waited for: %s; run "
			   "as root or with CAP_BPF, or choose WEIR_FENCE_GRACE",
			   strerror(-err));
}

static void note_delay(struct weir_stream *s)
{
	struct fence_delay delay;

	fence__delay(&s->fence, &delay);
	if (delay.count == s->fence_count)
		return;
	/* Those between two polls count with the last of them. */
	s->fence_count = delay.count;
	lag__count_one(&s->fence_lag, delay.last_ns);
}

uint64_t stream__ticket(struct weir_stream *s)
{
	if (s->ticket_ns)
		return s->ticket_ns(s->ticket_ctx);
	if (!s->has_fence)
		return 0;
	/* Nobody else waits for us: the rings have to hold what is written meanwhile. */
	if (s->nr_rcu && !fence__is_served(&s->fence))
		s->fence_err = fence__run(&s->fence);
	note_delay(s);
	return fence__newest_ns(&s->fence);
}

int stream__await_ticket(struct weir_stream *s, uint64_t since_ns)
{
	const struct timespec nap = {0, 500000};
	int err = 0;

	while (s->has_fence && fence__newest_ns(&s->fence) < since_ns && !err) {
		if (!fence__is_served(&s->fence)) {
			err = fence__run(&s->fence);
			continue;
		}
		fence__request(&s->fence);
		nanosleep(&nap, NULL);
	}
	return err;
}

/*
 * A thread does the waiting: it is asked for a ticket while something waits for one, and once a second
 * to move the watermark. Not at each poll: a ticket that is done wakes the reader, which would ask again.
 */
void stream__ask_for_ticket(struct weir_stream *s)
{
	uint64_t newest_ns;

	if (!s->nr_rcu || !s->has_fence || !fence__is_served(&s->fence))
		return;
	newest_ns = fence__newest_ns(&s->fence);
	/* One may have been done since T was read: then it is newer. */
	if (s->flowing || s->t_ns >= newest_ns + CHORES_INTERVAL_NS)
		fence__request(&s->fence);
}

void stream__want_ticket(struct weir_stream *s, uint64_t since_ns)
{
	if (s->has_fence && fence__is_served(&s->fence) && fence__newest_ns(&s->fence) < since_ns)
		fence__request(&s->fence);
}

uint64_t ring__t_ns(const struct ring *ring, uint64_t t_ns, uint64_t ticket_ns)
{
	switch (ring->proof) {
	case PROOF_RESERVE:
		return t_ns;
	case PROOF_RCU:
		return ticket_ns < t_ns ? ticket_ns : t_ns;
	case PROOF_GRACE:
		return t_ns > ring->grace_ns ? t_ns - ring->grace_ns : 0;
	case PROOF_SNAPSHOT:
	case PROOF_GUARD:
		return ring->snapshot_ns;
	}
	return 0;
}

enum weir_order stream__order(const struct weir_stream *s)
{
	return s->estimated || s->clock_off_ns ? WEIR_ORDER_ESTIMATED : WEIR_ORDER_EXACT;
}

WEIR_API int weir_stream__expedite(struct weir_stream *s)
{
	return s->has_fence ? fence__expedite(&s->fence) : -ENOENT;
}

WEIR_API struct weir_fence *weir_stream__fence(struct weir_stream *s)
{
	if (s->has_fence)
		return fence__handle(&s->fence);
	errno = ENOENT;
	return NULL;
}
