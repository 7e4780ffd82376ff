/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * offline.c - CPUs that come and go while the stream runs (G3, G4): what comes gets its rings, what
 * is away leaves a hole in time that is told.
 */
#include "stream/internal.h"

static void add_offline_gap(struct weir_stream *s, struct ring *ring, uint64_t to_ns)
{
	struct weir_gap gap = {
		.from_ns = ring->offline_since_ns < to_ns ? ring->offline_since_ns : to_ns,
		.to_ns = to_ns,
		.cause = WEIR_LOST_OFFLINE,
	};

	/* Its event is dead from there on: it is not only that nothing happened. */
	if (ring->kind == &ring_kind__perf) {
		gap.cause = WEIR_LOST_DEAD_EVENT;
		gap.bound = WEIR_BOUND_UNKNOWN;
		/* It died before anybody heard of it, and after its last record. */
		if (ring->outside.last_ns < gap.from_ns)
			gap.from_ns = ring->outside.last_ns;
		ring->outside.unknown[gap.cause] = true;
	}
	stream__add_gap(s, ring, ring__next_seq(ring), &gap);
	/* Told up to here: a close that has to be repeated does not tell it again. */
	ring->offline_since_ns = ring->outside.last_ns = gap.to_ns;
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
	/* First: until the new events are enabled, those of this CPU are lost. */
	if (online) {
		stream__add_cpu_rings(s, cpu);
		stream__revive_perf(s, cpu);
	}
	for (size_t i = 0; i < s->nr_rings; i++) {
		struct ring *ring = s->rings[i];

		if (ring->cpu != cpu || ring->online == online || ring->outside.dead)
			continue;
		ring->online = online;
		if (online)
			add_offline_gap(s, ring, back_since(s, ring));
		else
			ring->offline_since_ns = stream__now(s);
	}
}

void stream__on_hotplug(void *ctx, int cpu, bool online)
{
	weir_stream__cpu_changed(ctx, cpu, online);
}

/*
 * Records of a CPU that is offline: either it is back, and its news comes later than they do, or they
 * are the last ones of a CPU that was off the list before it was off.
 */
void stream__look_after_offline(struct weir_stream *s)
{
	bool looked = false;

	for (size_t i = 0; i < s->nr_rings; i++) {
		struct ring *ring = s->rings[i];

		if (ring->online || queue__last_ns(&ring->queue) <= ring->offline_since_ns)
			continue;
		if (!looked)
			hotplug__look(&s->hotplug, stream__on_hotplug, s);
		looked = true;
		if (!ring->online)
			ring->offline_since_ns = queue__last_ns(&ring->queue);
	}
}

static bool any_offline(const struct weir_stream *s)
{
	for (size_t i = 0; i < s->nr_rings; i++)
		if (!s->rings[i]->online)
			return true;
	return false;
}

/* That a CPU is back may not have been heard yet: first a round, which looks. */
int stream__end_offline_gaps(struct weir_stream *s)
{
	int count = any_offline(s) ? stream__round(s) : 0;

	if (count < 0)
		return count;
	for (size_t i = 0; i < s->nr_rings; i++)
		if (!s->rings[i]->online)
			add_offline_gap(s, s->rings[i], stream__now(s));
	return 0;
}
