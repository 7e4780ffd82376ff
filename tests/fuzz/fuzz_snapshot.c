// SPDX-License-Identifier: BSD-2-Clause
/*
 * fuzz_snapshot.c - snapshots of overwritable rings of any bytes, whose heads go anywhere, also while a
 * grace period is waited for (G8).
 *
 * An input is a row of looks { u8 ring; u8 words; u16 moves[3]; u64 bytes[words] }: the bytes are put at the
 * ring's new head, and both heads move on. Promises checked: no step back and nothing behind the
 * watermark unless it is marked (G1, G2), every event's bytes can be read, the sum closes (G4).
 */
#include "fuzz.h"

#include <errno.h>
#include <string.h>

#include "stream/memory.h"

#define RINGS	    2 /* one by grace periods, one by a guard */
#define RING_SIZE   1024u
#define SAMPLE_TYPE 0x10486 /* as the stream opens them */

struct look {
	uint8_t ring, words;
	uint16_t moves[3];
};

static struct {
	uint8_t *data;
	uint64_t head;
} rings[RINGS];

static uint64_t now_ns, last_ns, watermark_ns;
static const uint16_t *moves; /* of this look that were not made yet */
static volatile uint8_t sum;

static uint64_t clock_ns(void *ctx)
{
	return ++now_ns;
}

static int on_event(void *ctx, const struct weir_event *event)
{
	const uint8_t *bytes = event->data;

	for (uint32_t i = 0; i < event->len; i++)
		sum += bytes[i];
	if (event->mark & (WEIR_MARK_LATE | WEIR_MARK_AHEAD))
		return 0;
	HOLDS(event->stamp_ns >= last_ns);
	HOLDS(!watermark_ns || event->stamp_ns > watermark_ns);
	last_ns = event->stamp_ns;
	return 0;
}

static void on_watermark(void *ctx, uint64_t w_ns, enum weir_order order)
{
	HOLDS(w_ns > watermark_ns);
	watermark_ns = w_ns;
}

static int wait(void *ctx)
{
	now_ns += 100;
	for (int i = 0; i < RINGS && moves; i++)
		rings[i].head -= moves[i];
	return 0;
}

static void add_rings(struct weir_stream *stream, const struct perf_layout *layout)
{
	for (int i = 0; i < RINGS; i++) {
		const struct weir_memory_outside memory = {
			.name = i ? "b" : "a",
			.cpu = i,
			.data = rings[i].data,
			.size = RING_SIZE,
			.producer = &rings[i].head,
			.fence = i ? WEIR_FENCE_GRACE : WEIR_FENCE_RCU,
			.grace_ns = 50,
		};

		rings[i].head = 0;
		memset(rings[i].data, 0, RING_SIZE);
		HOLDS(weir_stream__add_memory_overwritable(stream, &memory, layout) == i);
	}
}

static void take_look(struct weir_stream *stream, struct input *in)
{
	struct weir_snapshot told = {.sz = sizeof(told)};
	struct weir_ledger ledger = {.sz = sizeof(ledger)};
	struct look look;
	uint64_t word;
	int i, count;

	input__take(in, &look, sizeof(look));
	i = look.ring % RINGS;
	rings[i].head -= look.moves[2];
	for (uint64_t at = rings[i].head & ~7ull; look.words--; at += 8) {
		input__take(in, &word, sizeof(word));
		memcpy(rings[i].data + at % RING_SIZE, &word, sizeof(word));
	}
	now_ns += 1000;
	moves = look.moves;
	count = weir_stream__snapshot(stream, WEIR_SNAPSHOT_RUNNING, &told);
	moves = NULL;
	HOLDS(count >= 0 || count == -ENOBUFS);
	HOLDS(count < 0 || watermark_ns <= told.to_ns);
	HOLDS(!weir_stream__ledger(stream, &ledger));
	HOLDS(!weir_account__difference(&ledger.total));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const struct weir_stream_opts opts = {
		.sz = sizeof(opts),
		.on_event = on_event,
		.on_watermark = on_watermark,
		.memory_bytes = 1 << 16,
	};
	const struct weir_clock clock = {.now_ns = clock_ns};
	struct input in = {bytes, size};
	struct perf_layout layout;
	struct weir_stream *stream;

	for (int i = 0; i < RINGS && !rings[i].data; i++)
		HOLDS((rings[i].data = malloc(RING_SIZE)));
	now_ns = 1000000;
	last_ns = watermark_ns = 0;
	HOLDS(!perf_layout__init(&layout, SAMPLE_TYPE, true, 0));
	HOLDS((stream = weir_stream__new(&opts)));
	weir_stream__set_clock(stream, &clock);
	HOLDS(!weir_stream__set_fence(stream, wait, NULL));
	add_rings(stream, &layout);
	while (in.left >= sizeof(struct look))
		take_look(stream, &in);
	HOLDS(!weir_stream__close(stream));
	weir_stream__free(stream);
	return 0;
}
