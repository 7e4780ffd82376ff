// SPDX-License-Identifier: BSD-2-Clause
/*
 * fuzz_stream.c - any bytes in rings of all kinds, under any counters: what stays true of the stream (G8).
 *
 * An input is a row of steps { u8 ring; u8 words; u16 attempts; u64 bytes[words] }: the bytes are
 * put at the ring's head, the counter goes up, and the stream polls. Must not know: how the reader
 * takes records apart.
 *
 * Promises checked: no step back and nothing behind the watermark unless it is marked (G1, G2), the
 * watermark never goes back, every event's bytes can be read, what is told of rings of others adds up
 * (G4), and all of it ends.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "stream/memory.h"

#define RINGS	    4 /* two of weir.bpf.h's, then perf's, then a BPF ring buffer of somebody else's */
#define NUMBERED    2
#define PERF	    2
#define RING_SIZE   4096u
/* As the stream opens them: IDENTIFIER, TID, TIME, CPU and RAW. */
#define SAMPLE_TYPE 0x10486

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

/* Mapped as the kernel does it, once (perf) or twice in succession, and behind that nothing. */
static uint8_t *map_ring(int times)
{
	int fd = memfd_create("ring", MFD_CLOEXEC);
	uint8_t *at = mmap(NULL, 3 * RING_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int i;

	if (fd < 0 || at == MAP_FAILED || ftruncate(fd, RING_SIZE))
		abort();
	for (i = 0; i < times; i++)
		if (mmap(at + i * RING_SIZE, RING_SIZE, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
			abort();
	close(fd);
	return at;
}

/* All grace periods are over 500 ns later. */
static uint64_t ticket_ns(void *ctx)
{
	return now_ns - 500;
}

static uint64_t lost(void *ctx)
{
	return ((struct memory *)ctx)->counters.attempts;
}

static void add_outside(struct weir_stream *stream)
{
	static struct perf_layout layout;
	int i;

	if (perf_layout__init(&layout, SAMPLE_TYPE, true, 0))
		abort();
	for (i = PERF; i < RINGS; i++) {
		struct memory *m = &memory[i];
		const struct weir_memory_outside ring = {
			.name = i == PERF ? "c" : "d",
			.cpu = i,
			.data = m->data,
			.size = RING_SIZE,
			.producer = &m->producer,
			.consumer = &m->consumer,
			.lost = i == PERF ? lost : NULL,
			.ctx = m,
		};
		int index = i == PERF ? weir_stream__add_memory_perf(stream, &ring, &layout, true)
				      : weir_stream__add_memory_ringbuf(stream, &ring, 0);

		if (index != i)
			abort();
	}
}

static void check_outside(const struct weir_stream *stream)
{
	struct weir_source_info info;
	uint32_t i;

	for (i = PERF; i < RINGS; i++)
		if (weir_stream__source(stream, i, &info) ||
		    weir_account__difference(&info.account))
			abort();
}

static void add_rings(struct weir_stream *stream)
{
	int i;

	for (i = 0; i < RINGS; i++) {
		memory[i].producer = memory[i].consumer = 0;
		memset(&memory[i].counters, 0, sizeof(memory[i].counters));
	}
	for (i = 0; i < NUMBERED; i++) {
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
	check_outside(stream);
	return 4 + len;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const struct weir_stream_opts opts = {
		.sz = sizeof(opts),
		.on_event = on_event,
		.on_watermark = on_watermark,
		/* So little that what waits has to be joined and given up; and an input takes less time. */
		.memory_bytes = 1 << 16};
	const struct weir_clock clock = {.now_ns = clock_ns};
	struct weir_ledger ledger = {.sz = sizeof(ledger)};
	struct weir_stream *stream;
	int i;

	for (i = 0; i < RINGS && !memory[i].data; i++)
		memory[i].data = map_ring(i == PERF ? 1 : 2);
	now_ns = 1000000;
	last_ns = watermark_ns = 0;
	stream = weir_stream__new(&opts);
	if (!stream)
		abort();
	weir_stream__set_clock(stream, &clock);
	weir_stream__set_ticket(stream, ticket_ns, NULL);
	add_rings(stream);
	add_outside(stream);
	while (size >= 4) {
		size_t taken = step(stream, bytes, size);

		bytes += taken;
		size -= taken;
	}
	weir_stream__close(stream);
	check_outside(stream);
	if (weir_stream__ledger(stream, &ledger))
		abort();
	weir_stream__free(stream);
	return 0;
}
