/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * add_perf.c - perf events of all CPUs, and perf event arrays of other people's programs, become
 * sources; and go on being some while CPUs come and go.
 *
 * A ring is in the poll list before its events are enabled. What an offline CPU leaves behind is dead
 * for good, so when it is back, its ring is read to the end, let go, and made anew: under the same
 * source, with a gap of unknown count in between.
 */
#include "stream/perf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How many a CPU's rings have lost since the first of them: struct outside's `lost`. */
static uint64_t count_lost(void *ctx)
{
	const struct perf_cpu *c = ctx;
	uint64_t lost = 0;

	if (source_perf__is_made(&c->group->source, c->cpu) &&
	    source_perf__lost(&c->group->source, c->cpu, &lost))
		return RING_LOST_UNKNOWN;
	return c->lost_before + lost;
}

static uint64_t *head_of(const struct perf_cpu *c)
{
	return (uint64_t *)&c->group->source.rings[c->cpu].page->data_head;
}

static uint64_t *tail_of(const struct perf_cpu *c)
{
	return (uint64_t *)&c->group->source.rings[c->cpu].page->data_tail;
}

static struct overwritable overwritable_of(const struct perf_cpu *c)
{
	return (struct overwritable){
		.data = c->group->source.rings[c->cpu].data,
		.size = c->group->source.ring_bytes,
		.head = head_of(c),
	};
}

static int add_source(struct weir_stream *s, struct perf_cpu *c)
{
	struct perf_group *group = c->group;
	/* What overwrites has always room: it counts pauses alone, which snapshot.c tells. */
	bool counts = group->source.counts_lost && !group->source.overwrite;
	char name[32];
	struct ring_spec spec = {
		.kind = &ring_kind__perf,
		.name = name,
		.cpu = (int)c->cpu,
		.proof = group->proof,
		.grace_ns = group->grace_ns,
		.outside =
			{
				.layout = &group->layout,
				.payload = group->payload,
				.lost = counts ? count_lost : NULL,
				.lost_ctx = c,
				.perf = c,
			},
	};
	int source;

	snprintf(name, sizeof(name), "%s%u", group->name, c->cpu);
	if (group->source.overwrite) {
		spec.outside.overwritable = overwritable_of(c);
	} else {
		spec.data = group->source.rings[c->cpu].data;
		spec.size = group->source.ring_bytes;
		spec.producer = head_of(c);
		spec.consumer = tail_of(c);
	}
	source = stream__add_outside(s, &spec);
	if (source < 0)
		return source;
	c->source = (uint32_t)source;
	/* Before 6.0 only the next record tells of a loss, and at the end there is none. */
	s->by_source[source]->outside.unknown[WEIR_LOST_RESERVE_FAILED] =
		!group->source.counts_lost && !group->source.overwrite;
	return 0;
}

/* The CPU's first ring, in the poll list, not yet written. ENODEV: it is offline. */
static int make_cpu(struct weir_stream *s, struct perf_cpu *c, const struct reason *reason)
{
	struct source_perf *source = &c->group->source;
	int err = source_perf__make(source, c->cpu, reason);

	if (err)
		return err;
	err = add_source(s, c);
	if (!err && !source->overwrite)
		err = wake__add(&s->wake, source_perf__fd(source, c->cpu));
	if (err)
		return reason__say(reason, err, "cannot add %s%u to the stream: %s", c->group->name,
				   c->cpu, strerror(-err));
	return 0;
}

static int make_cpus(struct weir_stream *s, struct perf_group *group, const struct reason *reason)
{
	bool any = false;

	for (uint32_t cpu = 0; cpu < group->source.nr_cpus; cpu++) {
		int err = cpus__has(&s->hotplug.online, cpu)
				  ? make_cpu(s, &group->cpus[cpu], reason)
				  : -ENODEV;

		if (err && err != -ENODEV)
			return err;
		any |= !err;
	}
	return any ? 0 : reason__say(reason, -ENODEV, "no CPU is online");
}

/* Only when all are in the poll list: an error among them leaves nothing behind that was written. */
static int start_cpus(struct perf_group *group, const struct reason *reason)
{
	int err = 0;

	for (uint32_t cpu = 0; cpu < group->source.nr_cpus && !err; cpu++)
		if (source_perf__is_made(&group->source, cpu))
			err = source_perf__start(&group->source, cpu, reason);
	return err;
}

static void free_group(struct perf_group *group)
{
	source_perf__close(&group->source);
	free(group->cpus);
	free(group);
}

/* How its records lie, from how its events are opened; array: what is known of the payload. */
static int find_layout(struct perf_group *group, const struct weir_perf_array_opts *array,
		       const struct reason *reason)
{
	const struct perf_event_attr *attr = &group->source.events[0].attr;
	uint32_t offset = PERF_PAYLOAD_UNSTAMPED;
	int err = perf_layout__init(&group->layout, attr->sample_type, true, attr->read_format);

	if (err)
		return reason__say(reason, err,
				   "%s has fields in its samples that are newer than this library",
				   group->source.events[0].name);
	if (!array)
		return 0;
	if (array->stamp_offset >= 0)
		offset = (uint32_t)array->stamp_offset;
	err = perf_layout__payload(&group->layout, offset, array->payload_len);
	if (err)
		return reason__say(reason, err, "a payload of %u bytes has no stamp at offset %d",
				   array->payload_len, array->stamp_offset);
	return 0;
}

static int open_group(struct weir_stream *s, struct perf_group *group,
		      const struct source_perf_opts *opts, const struct weir_perf_array_opts *array,
		      const struct reason *reason)
{
	int err = source_perf__open(&group->source, opts, &s->hotplug.online, reason);

	if (err)
		return err;
	group->cpus = calloc(group->source.nr_cpus, sizeof(*group->cpus));
	if (!group->cpus)
		return reason__say(reason, -ENOMEM, "no memory for perf rings");
	for (uint32_t cpu = 0; cpu < group->source.nr_cpus; cpu++)
		group->cpus[cpu] =
			(struct perf_cpu){.group = group, .cpu = cpu, .source = WEIR_SOURCE_NONE};
	err = find_layout(group, array, reason);
	if (!err)
		err = make_cpus(s, group, reason);
	return err ? err : start_cpus(group, reason);
}

static int add_group(struct weir_stream *s, struct perf_group *group,
		     const struct source_perf_opts *opts, const struct weir_perf_array_opts *array,
		     const struct reason *reason)
{
	uint32_t nr_sources = s->nr_sources;
	int err = stream__start_hotplug(s);

	if (!err)
		err = stream__grow(&s->perf, s->nr_perf + 1, sizeof(*s->perf));
	if (err)
		reason__say(reason, err, "cannot add perf events: %s", strerror(-err));
	else
		err = stream__need_proof(s, group->proof, reason);
	if (!err)
		err = open_group(s, group, opts, array, reason);
	if (!err) {
		s->perf[s->nr_perf++] = group;
		s->memory_only = false;
		return 0;
	}
	stream__forget_from(s, nr_sources);
	free_group(group);
	if (s->memory_only)
		hotplug__close(&s->hotplug);
	return err;
}

static int new_group(const char *name, enum weir_fence_kind fence, uint64_t grace_ns,
		     struct perf_group **out, const struct reason *reason)
{
	struct perf_group *group;

	if (!name || strlen(name) >= sizeof(group->name))
		return reason__say(reason, -EINVAL, "a name of at most %zu bytes is needed",
				   sizeof(group->name) - 1);
	if (fence > WEIR_FENCE_GRACE)
		return reason__say(reason, -EINVAL, "%d is no kind of fence", (int)fence);
	group = calloc(1, sizeof(*group));
	if (!group)
		return reason__say(reason, -ENOMEM, "no memory for %s", name);
	snprintf(group->name, sizeof(group->name), "%s", name);
	group->proof = fence == WEIR_FENCE_RCU ? PROOF_RCU : PROOF_GRACE;
	group->grace_ns = grace_ns;
	*out = group;
	return 0;
}

WEIR_API int weir_stream__add_perf(struct weir_stream *s, const struct weir_perf_opts *opts)
{
	struct source_perf_opts source = {.map_fd = -1};
	struct perf_group *group;
	struct reason reason;
	int err;

	if (!opts || opts->sz < sizeof(*opts))
		return -EINVAL;
	reason = (struct reason){opts->err, opts->err_len};
	source.events = opts->events;
	source.nr_events = opts->nr_events;
	source.ring_bytes = opts->ring_bytes;
	source.overwrite = opts->overwrite;
	source.clock = s->clock_id;
	err = new_group(opts->name, opts->fence, opts->grace_ns, &group, &reason);
	if (err)
		return err;
	if (opts->overwrite)
		group->proof = group->proof == PROOF_RCU ? PROOF_SNAPSHOT : PROOF_GUARD;
	return add_group(s, group, &source, NULL, &reason);
}

WEIR_API int weir_stream__add_perf_array(struct weir_stream *s,
					 const struct weir_perf_array_opts *opts)
{
	struct perf_event_attr attr = perf_attr__bpf_output();
	const struct weir_perf_event event = {.attr = &attr};
	struct source_perf_opts source = {.events = &event, .nr_events = 1};
	struct perf_group *group;
	struct reason reason;
	int err;

	if (!opts || opts->sz < sizeof(*opts))
		return -EINVAL;
	reason = (struct reason){opts->err, opts->err_len};
	err = opts->stamp_offset >= 0 ? stream__judge_clock(s, opts->clock, &reason) : 0;
	if (err)
		return err;
	if (opts->map_fd < 0)
		return reason__say(&reason, -EINVAL, "there is no map");
	source.map_fd = opts->map_fd;
	source.ring_bytes = opts->ring_bytes;
	source.clock = s->clock_id;
	err = new_group(opts->name, opts->fence, opts->grace_ns, &group, &reason);
	if (err)
		return err;
	group->payload = true;
	return add_group(s, group, &source, opts, &reason);
}

/* ---- CPUs that come back, or come for the first time --------------------------------------------- */

static void let_go(struct weir_stream *s, struct perf_cpu *c)
{
	struct source_perf *source = &c->group->source;
	struct ring *ring = perf_cpu__ring(s, c);
	uint64_t lost;

	if (!source_perf__is_made(source, c->cpu))
		return;
	if (ring && !source->overwrite)
		stream__drain_dead(s, ring);
	if (ring)
		stream__unbind(s, ring);
	if (!source_perf__lost(source, c->cpu, &lost))
		c->lost_before += lost;
	/* What is told by the count needs no record any more, which will not come. */
	if (ring && ring->outside.lost_seen < c->lost_before)
		ring->outside.lost_seen = c->lost_before;
	if (!source->overwrite)
		wake__remove(&s->wake, source_perf__fd(source, c->cpu));
	source_perf__unmake(source, c->cpu);
	c->enabled_ns = 0;
}

/* false: it stays dead for now. */
static bool make_anew(struct weir_stream *s, struct perf_cpu *c)
{
	const struct reason nobody = {NULL, 0};
	struct source_perf *source = &c->group->source;
	struct ring *ring = perf_cpu__ring(s, c);

	if (source_perf__make(source, c->cpu, &nobody))
		return false;
	if (!ring && add_source(s, c))
		goto fail;
	if (!source->overwrite && wake__add(&s->wake, source_perf__fd(source, c->cpu)))
		goto fail;
	ring = perf_cpu__ring(s, c);
	if (!source->overwrite && ring->outside.dead)
		stream__rebind(ring, source->rings[c->cpu].data, source->ring_bytes, head_of(c),
			       tail_of(c));
	if (source->overwrite)
		ring->outside.overwritable = overwritable_of(c);
	ring->outside.dead = false;
	if (!source_perf__start(source, c->cpu, &nobody))
		return true;
fail:
	let_go(s, c);
	return false;
}

static bool is_dead(const struct weir_stream *s, const struct perf_cpu *c)
{
	const struct ring *ring = perf_cpu__ring(s, c);

	return !ring || !ring->online || ring->outside.dead ||
	       !source_perf__is_made(&c->group->source, c->cpu);
}

void stream__revive_perf(struct weir_stream *s, int cpu)
{
	for (size_t i = 0; i < s->nr_perf; i++) {
		struct perf_group *group = s->perf[i];
		struct perf_cpu *c = &group->cpus[cpu];

		if ((uint32_t)cpu >= group->source.nr_cpus || !is_dead(s, c))
			continue;
		let_go(s, c);
		make_anew(s, c);
	}
}

/* Its time stands still: its CPU was away for a moment, and nobody has told. */
static bool died_unheard(struct perf_cpu *c)
{
	uint64_t enabled_ns;
	bool died;

	if (source_perf__enabled_ns(&c->group->source, c->cpu, &enabled_ns))
		return false;
	died = enabled_ns == c->enabled_ns;
	c->enabled_ns = enabled_ns;
	return died;
}

static void check_cpu(struct weir_stream *s, struct perf_cpu *c)
{
	int cpu = (int)c->cpu;

	if (!cpus__has(&s->hotplug.online, c->cpu))
		return;
	/* What did not work when its CPU came may work now. */
	if (is_dead(s, c)) {
		weir_stream__cpu_changed(s, cpu, true);
	} else if (died_unheard(c)) {
		weir_stream__cpu_changed(s, cpu, false);
		weir_stream__cpu_changed(s, cpu, true);
	}
}

/* Once a second: nothing stays dead because news was lost, or something was short for a moment. */
void stream__check_perf(struct weir_stream *s)
{
	for (size_t i = 0; i < s->nr_perf; i++)
		for (uint32_t cpu = 0; cpu < s->perf[i]->source.nr_cpus; cpu++)
			check_cpu(s, &s->perf[i]->cpus[cpu]);
}

/* What has no proof has its time. */
static void sit_out_grace(const struct weir_stream *s)
{
	uint64_t grace_ns = 0;
	struct timespec pause;

	for (size_t i = 0; i < s->nr_rings && !s->memory_only; i++)
		if (s->rings[i]->proof == PROOF_GRACE && s->rings[i]->grace_ns > grace_ns)
			grace_ns = s->rings[i]->grace_ns;
	pause.tv_sec = (time_t)(grace_ns / NSEC_PER_SEC);
	pause.tv_nsec = (long)(grace_ns % NSEC_PER_SEC);
	nanosleep(&pause, NULL);
}

int stream__stop_perf(struct weir_stream *s)
{
	for (size_t i = 0; i < s->nr_perf; i++)
		for (uint32_t cpu = 0; cpu < s->perf[i]->source.nr_cpus; cpu++)
			if (source_perf__is_made(&s->perf[i]->source, cpu))
				source_perf__stop(&s->perf[i]->source, cpu);
	/* What was being written then is published now. */
	sit_out_grace(s);
	return stream__await_ticket(s, stream__now(s));
}

void stream__free_perf(struct weir_stream *s)
{
	for (size_t i = 0; i < s->nr_perf; i++)
		free_group(s->perf[i]);
	free(s->perf);
}

WEIR_API int weir_stream__parse_perf(const struct weir_stream *s, const struct weir_event *event,
				     struct weir_perf_sample *out)
{
	const struct ring *ring = event->source < s->nr_sources ? s->by_source[event->source]
								: NULL;
	const struct perf_cpu *c;
	int64_t index;
	int err;

	c = ring ? ring->outside.perf : NULL;
	if (!c || ring->outside.payload || event->kind != WEIR_KIND_RECORD)
		return -EINVAL;
	err = perf_record__parse(ring->outside.layout, event->data, event->len, out);
	if (err)
		return err;
	index = source_perf__event(&c->group->source, c->cpu, out->id);
	out->event = index < 0 ? UINT32_MAX : (uint32_t)index;
	return 0;
}
