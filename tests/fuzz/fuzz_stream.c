// SPDX-License-Identifier: BSD-2-Clause
/*
 * fuzz_stream.c - any bytes in two rings, under any counters: what stays true of the stream (G8).
 *
 * An input is a row of steps { u8 ring; u8 words; u16 attempts; u64 bytes[words] }: the bytes are
 * put at the ring's head, the counter goes up, and the stream polls. Must not know: how the reader
 * takes records apart.
 *
 * Promises checked: no step back and nothing behind the watermark unless it is marked (G1, G2), the
 * watermark never goes back, every event's bytes can be read, and all of it ends.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "stream/memory.h"

#define RINGS	  2
#define RING_SIZE 4096u

static struct memory {
	uint8_t *data;
	uint64_t producer, consumer;
	struct weir_counters counters;
} memory[RINGS];

static uint64_t now_ns, last_ns, watermark_ns;
static volatile uint8_t sum;

static uint64_t clock_ns(void *ctx)
{
	return ++now_ns;
}

static int on_event(void *ctx, const struct weir_event *event)
{
	const uint8_t *bytes = event->data;
	uint32_t i;

	for (i = 0; i < event->len; i++)
		sum += bytes[i];
	if (event->mark & (WEIR_MARK_LATE | WEIR_MARK_AHEAD))
		return 0;
	if (event->stamp_ns < last_ns || (watermark_ns && event->stamp_ns <= watermark_ns))
		abort();
	last_ns = event->stamp_ns;
	return 0;
}

static void on_watermark(void *ctx, uint64_t w_ns, enum weir_order order)
{
	if (w_ns < watermark_ns)
		abort();
	watermark_ns = w_ns;
}

/* Mapped twice in succession, as the kernel does, and behind that nothing. */
static uint8_t *map_ring(void)
{
	int fd = memfd_create("ring", MFD_CLOEXEC);
	uint8_t *at = mmap(NULL, 3 * RING_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int i;

	if (fd < 0 || at == MAP_FAILED || ftruncate(fd, RING_SIZE))
		abort();
	for (i = 0; i < 2; i++)
		if (mmap(at + i * RING_SIZE, RING_SIZE, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
			abort();
	close(fd);
	return at;
}

static void add_rings(struct weir_stream *stream)
{
	int i;

	for (i = 0; i < RINGS; i++) {
		struct memory *m = &memory[i];
		const struct weir_memory_ring ring = {
			.name = i ? "b" : "a",
			.cpu = i,
			.data = m->data,
			.size = RING_SIZE,
			.producer = &m->producer,
			.consumer = &m->consumer,
			.counters = &m->counters,
		};

		m->producer = m->consumer = 0;
		memset(&m->counters, 0, sizeof(m->counters));
		if (weir_stream__add_memory_ring(stream, &ring) < 0)
			abort();
	}
}

/* One step of the input; returns how many bytes it took. */
static size_t step(struct weir_stream *stream, const uint8_t *bytes, size_t size)
{
	struct memory *m = &memory[bytes[0] % RINGS];
	size_t len = bytes[1] * 8u;
	size_t room = RING_SIZE - (m->producer - m->consumer);
	uint16_t attempts;

	memcpy(&attempts, bytes + 2, 2);
	bytes += 4;
	size -= 4;
	if (len > (size & ~7u))
		len = size & ~7u;
	if (len > room)
		len = room;
	memcpy(m->data + m->producer % RING_SIZE, bytes, len);
	m->counters.attempts += attempts;
	m->producer += len;
	now_ns += 1000;
	if (weir_stream__poll(stream, 0) < 0)
		abort();
	return 4 + len;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const struct weir_stream_opts opts = {
		.sz = sizeof(opts), .on_event = on_event, .on_watermark = on_watermark};
	const struct weir_clock clock = {.now_ns = clock_ns};
	struct weir_ledger ledger = {.sz = sizeof(ledger)};
	struct weir_stream *stream;
	int i;

	for (i = 0; i < RINGS && !memory[i].data; i++)
		memory[i].data = map_ring();
	now_ns = 1000000;
	last_ns = watermark_ns = 0;
	stream = weir_stream__new(&opts);
	if (!stream)
		abort();
	weir_stream__set_clock(stream, &clock);
	add_rings(stream);
	while (size >= 4) {
		size_t taken = step(stream, bytes, size);

		bytes += taken;
		size -= taken;
	}
	weir_stream__close(stream);
	if (weir_stream__ledger(stream, &ledger))
		abort();
	weir_stream__free(stream);
	return 0;
}
