// SPDX-License-Identifier: BSD-2-Clause
/*
 * model.c - the glue between stream, simulator and oracle.
 *
 * Owns all three. Promises that the oracle is told of everything that crosses the interface, in
 * the order in which it happens, and that what the reader has freed is overwritten before anything
 * that it delivers is looked at. Must not judge: that is the oracle's.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

bool model_in_library;

static int on_event(void *ctx, const struct weir_event *event)
{
	struct model *m = ctx;

	model_in_library = false;
	sim__poison(&m->sim);
	if (m->sim.trace)
		fprintf(stderr,
			"%" PRIu64 " event: source %d seq %" PRIu64 " stamp %" PRIu64
			" kind %u mark %u\n",
			m->sim.now_ns, (int)event->source, event->seq, event->stamp_ns, event->kind,
			event->mark);
	oracle__event(&m->oracle, event);
	m->stopped = m->on_event ? m->on_event(m, event) : 0;
	model_in_library = true;
	return m->stopped;
}

static void on_watermark(void *ctx, uint64_t watermark_ns, enum weir_order order)
{
	struct model *m = ctx;

	model_in_library = false;
	oracle__watermark(&m->oracle, watermark_ns, order);
	model_in_library = true;
}

static void on_clock(void *ctx)
{
	struct model *m = ctx;

	if (m->on_clock)
		m->on_clock(m);
}

static uint64_t now_ns(void *ctx)
{
	struct model *m = ctx;
	bool in_library = model_in_library;
	uint64_t t;

	model_in_library = false;
	t = sim__reader_clock(&m->sim);
	if (m->sim.trace)
		fprintf(stderr, "%" PRIu64 " clock: told %" PRIu64 "\n", m->sim.now_ns, t);
	oracle__clock_read(&m->oracle, t);
	model_in_library = in_library;
	return t;
}

static void offsets(void *ctx, int64_t *real_ns, int64_t *boot_ns)
{
	const struct model *m = ctx;

	*real_ns = m->real_ns;
	*boot_ns = m->boot_ns;
}

static uint64_t read_misses(void *ctx)
{
	return ((struct model *)ctx)->misses;
}

static struct weir_stream *new_stream(struct model *m, const struct model_opts *opts)
{
	struct weir_stream_opts stream_opts = {
		.sz = sizeof(stream_opts),
		.on_event = on_event,
		.on_watermark = on_watermark,
		.ctx = m,
		.memory_bytes = opts->memory_bytes,
		.guard_ns = m->oracle.guard_ns,
	};
	struct weir_clock clock = {.now_ns = now_ns, .offsets = offsets, .ctx = m};
	struct weir_stream *stream = LIBRARY(weir_stream__new(&stream_opts));

	if (stream)
		weir_stream__set_clock(stream, &clock);
	return stream;
}

struct model *model__try_new(const struct model_opts *opts)
{
	struct model *m = calloc(1, sizeof(*m));
	int error;

	if (!m)
		abort();
	m->label = opts->label ? opts->label : "model";
	sim__init(&m->sim);
	m->sim.on_clock = on_clock;
	m->sim.ctx = m;
	oracle__init(&m->oracle, &m->sim, opts->guard_ns ? opts->guard_ns : 1,
		     opts->memory_bytes ? opts->memory_bytes : 64 << 20);
	m->stream = new_stream(m, opts);
	if (m->stream)
		return m;
	error = errno;
	model__free(m);
	errno = error;
	return NULL;
}

struct model *model__new(const struct model_opts *opts)
{
	struct model *m = model__try_new(opts);
	uint32_t i;

	assert_non_null(m);
	for (i = 0; i < opts->rings; i++)
		model__add_ring(m, i, opts->ring_bytes ? opts->ring_bytes : 4096, opts->position,
				opts->first_seq);
	return m;
}

struct model *model__with_rings(uint32_t rings)
{
	return model__new(&(struct model_opts){.rings = rings});
}

void model__free(struct model *m)
{
	if (!m)
		return;
	model_in_library = true;
	weir_stream__free(m->stream);
	model_in_library = false;
	oracle__destroy(&m->oracle);
	sim__destroy(&m->sim);
	free(m);
}

int model__try_add_ring(struct model *m, int cpu, size_t size, uint64_t position,
			uint64_t first_seq)
{
	struct sim_ring *ring = sim__add_ring(&m->sim, cpu, size, position, first_seq);
	struct weir_memory_ring memory;
	int index;

	if (!ring)
		abort();
	memory = (struct weir_memory_ring){
		.name = ring->name,
		.cpu = cpu,
		.data = ring->buffer.data,
		.size = size,
		.producer = &ring->buffer.shared->producer,
		.consumer = &ring->buffer.shared->consumer,
		.counters = &ring->buffer.shared->counters,
	};
	index = LIBRARY(weir_stream__add_memory_ring(m->stream, &memory));
	if (index < 0)
		sim__drop_ring(&m->sim);
	else
		oracle__ring_added(&m->oracle);
	return index;
}

struct sim_ring *model__add_ring(struct model *m, int cpu, size_t size, uint64_t position,
				 uint64_t first_seq)
{
	uint32_t index = m->sim.nrings;

	assert_int_equal(model__try_add_ring(m, cpu, size, position, first_seq), index);
	return m->sim.rings[index];
}

struct sim_ring *model__ring(struct model *m, uint32_t index)
{
	return m->sim.rings[index];
}

void model__at(struct model *m, uint64_t at_ns)
{
	assert_true(at_ns >= m->sim.now_ns);
	m->sim.now_ns = at_ns;
}

void model__pass(struct model *m, uint64_t ns)
{
	m->sim.now_ns += ns;
}

void model__check(struct model *m)
{
	char text[768];

	if (!m->oracle.fault[0])
		return;
	snprintf(text, sizeof(text), "%s: at %" PRIu64 ": %s", m->label, m->sim.now_ns,
		 m->oracle.fault);
	model__free(m);
	fail_msg("%s", text);
}

static void begin(struct model *m, enum oracle_call call)
{
	m->stopped = 0;
	if (m->sim.trace)
		fprintf(stderr, "%" PRIu64 " call %d\n", m->sim.now_ns, call);
	oracle__call_begins(&m->oracle, m->oracle.call == ORACLE_CLOSED ? ORACLE_CLOSED : call);
}

static int end(struct model *m, int rc)
{
	sim__poison(&m->sim);
	oracle__call_ends(&m->oracle, m->stream, rc, m->stopped);
	if (m->sim.trace)
		fprintf(stderr, "%" PRIu64 " returned %d, W %" PRIu64 "\n", m->sim.now_ns, rc,
			m->oracle.announced_ns);
	model__check(m);
	return rc;
}

int model__poll(struct model *m)
{
	begin(m, ORACLE_POLL);
	return end(m, LIBRARY(weir_stream__poll(m->stream, 0)));
}

int model__poll_at(struct model *m, uint64_t at_ns)
{
	model__at(m, at_ns);
	return model__poll(m);
}

/*
 * Records that are as young as the guard can only be delivered when the clock has gone on; so it
 * does, by enough with each look at it.
 */
static void let_the_clock_run(struct model *m)
{
	m->sim.tick_ns = m->oracle.guard_ns + m->sim.grain_ns + 2;
}

int model__flush(struct model *m, int timeout_ms)
{
	uint64_t tick_ns = m->sim.tick_ns;
	int rc;

	if (!tick_ns)
		let_the_clock_run(m);
	begin(m, ORACLE_FLUSH);
	rc = end(m, LIBRARY(weir_stream__flush(m->stream, timeout_ms)));
	m->sim.tick_ns = tick_ns;
	return rc;
}

int model__close(struct model *m)
{
	let_the_clock_run(m);
	begin(m, ORACLE_CLOSE);
	return end(m, LIBRARY(weir_stream__close(m->stream)));
}

void model__end(struct model *m)
{
	assert_int_equal(model__close(m), 0);
	model__free(m);
}

void model__watch_misses(struct model *m)
{
	assert_int_equal(LIBRARY(weir_stream__watch_misses(m->stream, "probe", read_misses, m)), 0);
}

void model__skip(struct model *m, uint64_t count)
{
	m->misses += count;
	oracle__skipped(&m->oracle, count);
}

void model__cpu_changed(struct model *m, int cpu, bool online)
{
	model_in_library = true;
	weir_stream__cpu_changed(m->stream, cpu, online);
	model_in_library = false;
}

void model__count_filtered(struct model *m, uint32_t source, uint64_t count)
{
	weir_stream__count_filtered(m->stream, source, count);
	oracle__moved_filtered(&m->oracle, source, count);
}

void model__count_lost(struct model *m, uint32_t source, uint64_t count, enum weir_cause cause)
{
	weir_stream__count_lost(m->stream, source, count, cause);
	oracle__moved_lost(&m->oracle, source, count, cause);
}

struct weir_ledger model__ledger(struct model *m)
{
	struct weir_ledger ledger = {.sz = sizeof(ledger)};

	assert_int_equal(weir_stream__ledger(m->stream, &ledger), 0);
	return ledger;
}

struct weir_source_info model__source(struct model *m, uint32_t index)
{
	struct weir_source_info info;

	assert_int_equal(weir_stream__source(m->stream, index, &info), 0);
	return info;
}

uint64_t model__watermark(struct model *m)
{
	return weir_stream__watermark(m->stream);
}

static void put(void *ctx, uint32_t ring, uint64_t stamp_ns)
{
	sim__put(model__ring(ctx, ring), stamp_ns);
}

void model__feed(struct model *m, const char *records)
{
	came__feed(records, put, m);
}

void model__expect(struct model *m, const char *events)
{
	came__expect(m->oracle.out, m->oracle.nout, &m->rendered, events);
}
