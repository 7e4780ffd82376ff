// SPDX-License-Identifier: BSD-2-Clause
/*
 * mix.c - the glue between a stream, writers of every kind and the oracle.
 *
 * Owns all of them. Promises that the oracle is told of everything that crosses the interface, in the
 * order in which it happens, and that what the reader has given back is overwritten before anything
 * that it delivers is looked at. Must not judge.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mix.h"
#include "model.h"

static void poison(struct mix *m)
{
	uint32_t i;

	sim__poison(&m->sim);
	for (i = 0; i < m->nsources; i++)
		if (m->sources[i].outside)
			out_ring__poison(m->sources[i].outside);
}

static int take_event(struct mix *m, const struct weir_event *event)
{
	if (m->sim.trace)
		fprintf(stderr, "%" PRIu64 " event: source %d stamp %" PRIu64 " kind %u mark %u\n",
			m->sim.now_ns, (int)event->source, event->stamp_ns, event->kind,
			event->mark);
	mix_oracle__event(m, event);
	return m->on_event ? m->on_event(m, event) : 0;
}

static int on_event(void *ctx, const struct weir_event *event)
{
	struct mix *m = ctx;

	model_in_library = false;
	poison(m);
	m->stopped = take_event(m, event);
	model_in_library = true;
	return m->stopped;
}

/* All of them are borrowed at once: what one shows may not be where another was. */
static int on_batch(void *ctx, const struct weir_event *events, size_t count)
{
	struct mix *m = ctx;
	size_t i;

	model_in_library = false;
	poison(m);
	m->batches++;
	if (count > m->largest_batch)
		m->largest_batch = count;
	if (!count || count > WEIR_BATCH_MAX)
		mix_oracle__fault(m, "a batch of %zu", count);
	m->stopped = 0;
	for (i = 0; i < count; i++) {
		int err = take_event(m, &events[i]);

		if (err && !m->stopped)
			m->stopped = err;
	}
	model_in_library = true;
	return m->stopped;
}

static void on_watermark(void *ctx, uint64_t watermark_ns, enum weir_order order)
{
	struct mix *m = ctx;

	model_in_library = false;
	mix_oracle__watermark(m, watermark_ns, order);
	model_in_library = true;
}

static void on_clock(void *ctx)
{
	struct mix *m = ctx;

	if (m->on_clock)
		m->on_clock(m);
}

static uint64_t now_ns(void *ctx)
{
	struct mix *m = ctx;
	bool in_library = model_in_library;
	uint64_t t;

	model_in_library = false;
	t = sim__reader_clock(&m->sim);
	if (m->in_call && !m->timed) {
		m->first_t = t;
		m->timed = true;
	}
	model_in_library = in_library;
	return t;
}

static uint64_t ticket_ns(void *ctx)
{
	struct mix *m = ctx;
	bool in_library = model_in_library;

	model_in_library = false;
	sim__interrupt(&m->sim);
	m->ticket_ns = sim_grace__ticket(&m->grace);
	model_in_library = in_library;
	return m->ticket_ns;
}

static void offsets(void *ctx, int64_t *real_ns, int64_t *boot_ns)
{
	(void)ctx;
	*real_ns = *boot_ns = 0;
}

static struct weir_stream *new_stream(struct mix *m)
{
	struct weir_stream_opts opts = {
		.sz = sizeof(opts),
		.on_event = m->opts.batch ? NULL : on_event,
		.on_batch = m->opts.batch ? on_batch : NULL,
		.on_watermark = on_watermark,
		.ctx = m,
		.memory_bytes = m->opts.memory_bytes,
		.guard_ns = m->opts.guard_ns,
		.late = m->opts.late,
		.poll_budget = m->opts.poll_budget,
		.watermark_interval_ns = m->opts.watermark_interval_ns,
	};
	struct weir_clock clock = {.now_ns = now_ns, .offsets = offsets, .ctx = m};
	struct weir_stream *stream = LIBRARY(weir_stream__new(&opts));

	if (!stream)
		return NULL;
	weir_stream__set_clock(stream, &clock);
	weir_stream__set_ticket(stream, ticket_ns, m);
	return stream;
}

struct mix *mix__try_new(const struct mix_opts *opts)
{
	struct mix *m = calloc(1, sizeof(*m));
	int error;

	if (!m)
		abort();
	m->opts = *opts;
	if (!m->opts.guard_ns)
		m->opts.guard_ns = 1;
	if (!m->opts.label)
		m->opts.label = "mix";
	sim__init(&m->sim);
	m->sim.on_clock = on_clock;
	m->sim.ctx = m;
	m->grace.sim = &m->sim;
	assert_int_equal(perf_layout__init(&m->layout, OUT_SAMPLE_TYPE, true, 0), 0);
	m->stream = new_stream(m);
	if (m->stream)
		return m;
	error = errno;
	mix__free(m);
	errno = error;
	return NULL;
}

struct mix *mix__new(const struct mix_opts *opts)
{
	static const struct mix_opts plain;
	struct mix *m = mix__try_new(opts ? opts : &plain);

	assert_non_null(m);
	return m;
}

void mix__free(struct mix *m)
{
	uint32_t i;

	if (!m)
		return;
	model_in_library = true;
	weir_stream__free(m->stream);
	model_in_library = false;
	for (i = 0; i < m->nsources; i++)
		if (m->sources[i].outside)
			out_ring__free(m->sources[i].outside);
	sim__destroy(&m->sim);
	sim_grace__destroy(&m->grace);
	free(m->sources);
	free(m->out);
	free(m);
}

static int add_numbered(struct mix *m, struct mix_source *source)
{
	struct sim_ring *ring = sim__add_ring(&m->sim, (int)m->nsources, source->how.size, 0, 0);
	struct weir_memory_ring memory;
	int index;

	if (!ring)
		abort();
	memory = (struct weir_memory_ring){
		.name = ring->name,
		.cpu = ring->cpu,
		.data = ring->buffer.data,
		.size = source->how.size,
		.producer = &ring->buffer.shared->producer,
		.consumer = &ring->buffer.shared->consumer,
		.counters = &ring->buffer.shared->counters,
	};
	index = LIBRARY(weir_stream__add_memory_ring(m->stream, &memory));
	if (index < 0)
		sim__drop_ring(&m->sim);
	else
		source->numbered = ring;
	return index;
}

static int add_outside(struct mix *m, struct mix_source *source)
{
	const struct mix_ring *how = &source->how;
	struct out_ring *ring = out_ring__new(&m->sim, &m->grace,
					      how->kind == MIX_PERF ? OUT_PERF : OUT_RINGBUF,
					      m->nsources, (int)m->nsources, how->size);
	struct weir_memory_outside memory;
	int index;

	if (!ring)
		abort();
	ring->stamp_offset = how->stamp_offset;
	memory = (struct weir_memory_outside){
		.name = ring->name,
		.cpu = ring->cpu,
		.data = ring->data,
		.size = how->size,
		.producer = out_ring__producer(ring),
		.consumer = out_ring__consumer(ring),
		.fence = how->fence,
		.grace_ns = how->grace_ns,
		.lost = how->counted ? out_ring__lost : NULL,
		.ctx = ring,
	};
	if (how->kind == MIX_PERF)
		index = LIBRARY(
			weir_stream__add_memory_perf(m->stream, &memory, &m->layout, how->payload));
	else
		index = LIBRARY(
			weir_stream__add_memory_ringbuf(m->stream, &memory, how->stamp_offset));
	if (index < 0)
		out_ring__free(ring);
	else
		source->outside = ring;
	return index;
}

int mix__try_add(struct mix *m, const struct mix_ring *how)
{
	struct mix_source source = {.how = *how};
	int index;

	if (!source.how.size)
		source.how.size = 4096;
	m->sources = grow(m->sources, m->nsources, &m->sources_cap, sizeof(*m->sources));
	index = how->kind == MIX_NUMBERED ? add_numbered(m, &source) : add_outside(m, &source);
	if (index < 0)
		return index;
	assert_int_equal(index, m->nsources);
	m->sources[m->nsources++] = source;
	m->estimated |= how->kind != MIX_NUMBERED && how->fence == WEIR_FENCE_GRACE;
	return index;
}

uint32_t mix__add(struct mix *m, const struct mix_ring *how)
{
	int index = mix__try_add(m, how);

	assert_true(index >= 0);
	return (uint32_t)index;
}

struct out_ring *mix__add_outside(struct mix *m, const struct mix_ring *how)
{
	uint32_t index = mix__add(m, how);

	return m->sources[index].outside;
}

struct out_ring *mix__perf(struct mix *m)
{
	return mix__add_outside(m, &(struct mix_ring){.kind = MIX_PERF, .counted = true});
}

struct out_ring *mix__ringbuf(struct mix *m)
{
	return mix__add_outside(m, &(struct mix_ring){.kind = MIX_RINGBUF, .counted = true});
}

struct sim_ring *mix__numbered(struct mix *m)
{
	uint32_t index = mix__add(m, &(struct mix_ring){.kind = MIX_NUMBERED});

	return m->sources[index].numbered;
}

/* --- Time and calls --- */

void mix__at(struct mix *m, uint64_t at_ns)
{
	assert_true(at_ns >= m->sim.now_ns);
	m->sim.now_ns = at_ns;
}

void mix__pass(struct mix *m, uint64_t ns)
{
	m->sim.now_ns += ns;
}

static void check(struct mix *m)
{
	char text[768];

	if (!m->fault[0])
		return;
	snprintf(text, sizeof(text), "%s: at %" PRIu64 ": %s", m->opts.label, m->sim.now_ns,
		 m->fault);
	mix__free(m);
	fail_msg("%s", text);
}

static void begin(struct mix *m)
{
	m->stopped = 0;
	m->calls = m->records = 0;
	m->timed = false;
	m->in_call = true;
}

static void end(struct mix *m, bool complete)
{
	m->in_call = false;
	poison(m);
	mix_oracle__accounts(m, complete);
	check(m);
}

int mix__poll(struct mix *m)
{
	bool may_fail = m->opts.late == WEIR_LATE_FAIL;
	int rc;

	begin(m);
	rc = LIBRARY(weir_stream__poll(m->stream, 0));
	if (m->stopped ? rc != m->stopped
		       : (rc < 0 && !may_fail) || (rc >= 0 && (uint64_t)rc != m->calls))
		mix_oracle__fault(m, "poll returned %d, the callback %d, delivered %" PRIu64, rc,
				  m->stopped, m->calls);
	if (m->opts.poll_budget && m->records > m->opts.poll_budget)
		mix_oracle__fault(m, "G5: %" PRIu64 " records, the budget is %zu", m->records,
				  m->opts.poll_budget);
	if (rc >= 0)
		mix_oracle__liveness(m);
	end(m, rc >= 0);
	return rc;
}

int mix__poll_at(struct mix *m, uint64_t at_ns)
{
	mix__at(m, at_ns);
	return mix__poll(m);
}

int mix__flush(struct mix *m)
{
	uint64_t tick_ns = m->sim.tick_ns;
	int rc;

	m->sim.tick_ns = m->opts.guard_ns + m->sim.grain_ns + 2;
	begin(m);
	rc = LIBRARY(weir_stream__flush(m->stream, 0));
	m->sim.tick_ns = tick_ns;
	end(m, !rc);
	return rc;
}

int mix__close(struct mix *m)
{
	int rc;

	m->sim.tick_ns = m->opts.guard_ns + m->sim.grain_ns + 2;
	begin(m);
	rc = LIBRARY(weir_stream__close(m->stream));
	if (!rc)
		mix_oracle__end(m);
	end(m, !rc);
	return rc;
}

void mix__end(struct mix *m)
{
	assert_int_equal(mix__close(m), 0);
	mix__free(m);
}

/* --- Scenarios' notation --- */

static void put(void *ctx, uint32_t index, uint64_t stamp_ns)
{
	const struct mix_source *source = &((struct mix *)ctx)->sources[index];

	if (source->numbered)
		sim__put(source->numbered, stamp_ns);
	else
		out__put(source->outside, stamp_ns);
}

void mix__feed(struct mix *m, const char *records)
{
	m->dishonest = true;
	came__feed(records, put, m);
}

void mix__expect(struct mix *m, const char *events)
{
	came__expect(m->out, m->nout, &m->rendered, events);
}

struct weir_account mix__account(struct mix *m, uint32_t source)
{
	struct weir_source_info info;

	assert_int_equal(weir_stream__source(m->stream, source, &info), 0);
	return info.account;
}

struct weir_ledger mix__ledger(struct mix *m)
{
	struct weir_ledger ledger = {.sz = sizeof(ledger)};

	assert_int_equal(weir_stream__ledger(m->stream, &ledger), 0);
	return ledger;
}

uint64_t mix__watermark(struct mix *m)
{
	return weir_stream__watermark(m->stream);
}
