/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * account.c - the ledger (G4).
 *
 * `produced` is read from the counters that the kernel side keeps; delivered, filtered and lost are
 * counted where they happen. While the stream runs, what the kernel has counted and we have not seen
 * is pending. Once it is closed nothing may be: pending is then only what is really still queued, and
 * a difference shows.
 */
#include "stream/internal.h"

#include <errno.h>
#include <string.h>

static void add(struct weir_account *total, const struct weir_account *one)
{
	total->produced += one->produced;
	total->delivered += one->delivered;
	total->filtered += one->filtered;
	total->pending += one->pending;
	total->late += one->late;
	total->ahead += one->ahead;
	total->self += one->self;
	total->unread += one->unread;
	total->failed += one->failed;
	total->stray += one->stray;
	for (int cause = 0; cause < WEIR_LOST_CAUSES; cause++)
		total->lost[cause] += one->lost[cause];
	for (int cause = 0; cause < WEIR_LOST_CAUSES; cause++)
		if (one->bound[cause] > total->bound[cause])
			total->bound[cause] = one->bound[cause];
}

/* What can't be laid at one source's door. */
static void add_nowhere(const struct weir_stream *s, struct weir_account *total)
{
	for (int cause = 0; cause < WEIR_LOST_CAUSES; cause++) {
		total->lost[cause] += s->lost_nowhere[cause];
		if (cause == WEIR_LOST_SKIPPED)
			total->produced += s->lost_nowhere[cause];
	}
	if (s->lost_nowhere[WEIR_LOST_SKIPPED] && !total->bound[WEIR_LOST_SKIPPED])
		total->bound[WEIR_LOST_SKIPPED] = WEIR_BOUND_AT_MOST;
}

/*
 * Of a cause whose number nobody knows, a part may be known: some records of a source, or of a total
 * those of another one. It is left out of the sum, so it is left out on both sides.
 */
static void leave_out_unknown(struct weir_account *account)
{
	for (int cause = 0; cause < WEIR_LOST_CAUSES; cause++)
		if (account->bound[cause] == WEIR_BOUND_UNKNOWN)
			account->produced -= account->lost[cause];
}

WEIR_API int weir_stream__ledger(const struct weir_stream *s, struct weir_ledger *out)
{
	struct weir_ledger full = {.sz = out->sz};

	if (out->sz < offsetof(struct weir_ledger, lag))
		return -EINVAL;
	for (size_t i = 0; i < s->nr_rings; i++) {
		struct weir_account one;

		s->rings[i]->kind->account(s, s->rings[i], &one);
		add(&full.total, &one);
	}
	add_nowhere(s, &full.total);
	leave_out_unknown(&full.total);
	full.order = stream__order(s);
	full.lag.p50_ns = lag__quantile_ns(&s->lag, 500);
	full.lag.p99_ns = lag__quantile_ns(&s->lag, 990);
	full.lag.max_ns = s->lag.max_ns;
	full.watermark_ns = s->watermark_ns;
	full.polls = s->polls;
	full.held_bytes = s->held_bytes_peak;
	full.guard_ns = s->guard_ns;
	full.sources = s->nr_sources;
	full.fence.tickets = s->fence_lag.count;
	full.fence.p50_ns = lag__quantile_ns(&s->fence_lag, 500);
	full.fence.p99_ns = lag__quantile_ns(&s->fence_lag, 990);
	full.fence.max_ns = s->fence_lag.max_ns;
	full.fence.door = s->has_fence ? fence__door_name(&s->fence) : NULL;
	full.fence.error = s->fence_err;
	full.clock_off_ns = s->clock_off_ns;
	full.lateness.p50_ns = lag__quantile_ns(&s->lateness, 500);
	full.lateness.p99_ns = lag__quantile_ns(&s->lateness, 990);
	full.lateness.max_ns = s->lateness.max_ns;
	memcpy(out, &full, out->sz < sizeof(full) ? out->sz : sizeof(full));
	return 0;
}

WEIR_API int weir_stream__source(const struct weir_stream *s, uint32_t index,
				 struct weir_source_info *out)
{
	const struct ring *ring = index < s->nr_sources ? s->by_source[index] : NULL;

	if (!ring)
		return -ENOENT;
	memset(out, 0, sizeof(*out));
	out->name = ring->name;
	out->cpu = ring->cpu;
	out->online = ring->online;
	ring->kind->account(s, ring, &out->account);
	leave_out_unknown(&out->account);
	out->watermark_ns = ring->reached_ns;
	out->busy_since_ns = ring->busy_since_ns;
	out->size_bytes = ring->size;
	out->max_fill_bytes = ring->max_fill;
	return 0;
}

WEIR_API void weir_stream__count_filtered(struct weir_stream *s, uint32_t source, uint64_t count)
{
	if (source < s->nr_sources && s->by_source[source])
		s->by_source[source]->filtered += count;
}

WEIR_API void weir_stream__count_lost(struct weir_stream *s, uint32_t source, uint64_t count,
				      enum weir_cause cause)
{
	struct ring *ring = source < s->nr_sources ? s->by_source[source] : NULL;

	if (!ring || (unsigned)cause >= WEIR_LOST_CAUSES)
		return;
	ring->given_up += count;
	ring->lost[cause] += count;
}
