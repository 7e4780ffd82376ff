/* SPDX-License-Identifier: BSD-2-Clause */
/* The library, through its public poll, on a clock that stands behind the last record. */
#include "measure/readers.h"

#include "stream/memory.h"

#include <err.h>
#include <stdlib.h>

/* Beyond the guard, so that all that a poll finds is due in it. */
#define CLOCK_AHEAD_NS 10000

struct state {
	struct weir_stream *stream;
	const struct synth *synth;
	uint64_t records; /* delivered, by what poll returned */
};

static int on_event(void *ctx, const struct weir_event *event)
{
	struct sink *sink = ctx;

	sink->sum += ((const uint64_t *)event->data)[SYNTH_READ];
	sink->records++;
	return 0;
}

static int on_event_checked(void *ctx, const struct weir_event *event)
{
	const struct synth_record *record;

	if (event->kind != WEIR_KIND_RECORD || event->mark)
		errx(1, "weir: an event of kind %u, mark %u", event->kind, event->mark);
	record = (const struct synth_record *)((const struct weir_record *)event->data - 1);
	if (event->len != record->field[SYNTH_COUNT] * 8)
		errx(1, "weir: a payload of %u bytes", event->len);
	if (event->source != record->field[SYNTH_SOURCE] || event->stamp_ns != record->rec.stamp)
		errx(1, "weir: an event that is not its record");
	sink__check(ctx, record);
	return 0;
}

static uint64_t now_ns(void *ctx)
{
	return ((const struct synth *)ctx)->end_ns + CLOCK_AHEAD_NS;
}

static void add_rings(struct weir_stream *stream, const struct synth *synth)
{
	for (unsigned i = 0; i < synth->shape.rings; i++) {
		const struct synth_ring *ring = &synth->ring[i];
		struct weir_memory_ring memory = {
			.name = "ring",
			.cpu = (int)i,
			.data = ring->data,
			.size = synth->size,
			.producer = ring->producer,
			.consumer = ring->consumer,
			.counters = ring->counters,
		};

		/* Numbers count from here: the rings are empty still. */
		if (weir_stream__add_memory_ring(stream, &memory) < 0)
			errx(1, "weir: no ring %u", i);
	}
}

static void *open_weir(struct synth *synth, struct sink *sink, bool checking)
{
	struct weir_stream_opts opts = {
		.sz = sizeof(opts),
		.on_event = checking ? on_event_checked : on_event,
		.ctx = sink,
	};
	struct weir_clock clock = {.now_ns = now_ns, .ctx = synth};
	struct state *state = calloc(1, sizeof(*state));

	if (!state)
		err(1, "weir");
	state->synth = synth;
	state->stream = weir_stream__new(&opts);
	if (!state->stream)
		err(1, "weir");
	weir_stream__set_clock(state->stream, &clock);
	add_rings(state->stream, synth);
	return state;
}

static void read_weir(void *ctx)
{
	struct state *state = ctx;
	int count = weir_stream__poll(state->stream, 0);

	if (count < 0)
		errx(1, "weir: poll: %d", count);
	state->records += (uint64_t)count;
}

/* The account has to close, and to say what was put in. */
static void close_weir(void *ctx)
{
	struct state *state = ctx;
	struct weir_ledger ledger = {.sz = sizeof(ledger)};

	if (weir_stream__close(state->stream) || weir_stream__ledger(state->stream, &ledger))
		errx(1, "weir: it does not close");
	if (ledger.total.delivered != state->records || ledger.total.produced != state->records ||
	    ledger.total.late || weir_account__difference(&ledger.total))
		errx(1, "weir: the ledger does not close");
	weir_stream__free(state->stream);
	free(state);
}

const struct reader reader__weir = {
	.name = "weir",
	.sorted = true,
	.open = open_weir,
	.read = read_weir,
	.close = close_weir,
};
