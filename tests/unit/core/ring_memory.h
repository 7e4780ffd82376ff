/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring_memory.h - a BPF ring buffer in plain memory: its bytes mapped twice in succession, with pages
 * that fault before and behind them, and a writer that knows the kernel's layout and nothing else.
 */
#ifndef CORE_RING_MEMORY_H
#define CORE_RING_MEMORY_H

#include <weir/record.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RING_BUSY    0x80000000u
#define RING_DISCARD 0x40000000u

struct ring_memory {
	uint8_t *data;
	size_t size;
	uint64_t producer, consumer;
	struct weir_counters counters;
	void *map;
};

/* Fails the test when it can't be had. `size`: a power of two, at least a page. */
void ring_memory__init(struct ring_memory *ring, size_t size, uint64_t position);
void ring_memory__free(struct ring_memory *ring);

void ring_memory__store32(struct ring_memory *ring, uint64_t position, uint32_t value);

/*
 * A record: header word `len | flags`, then a head and `len` - 16 bytes made from seq. Returns the
 * position of its header. Room is the caller's to keep.
 */
uint64_t ring_memory__write(struct ring_memory *ring, uint32_t len, uint32_t flags, uint64_t stamp,
			    uint32_t seq);

/* One attempt that found no room. */
static inline void ring_memory__lose(struct ring_memory *ring)
{
	ring->counters.attempts++;
	ring->counters.failed++;
}

/* The next number's record, with `payload` bytes behind its head. */
static inline uint64_t ring_memory__emit(struct ring_memory *ring, uint32_t payload, uint64_t stamp)
{
	return ring_memory__write(ring, (uint32_t)sizeof(struct weir_record) + payload, 0, stamp,
				  (uint32_t)ring->counters.attempts++);
}

/* Are these the payload bytes that ring_memory__write() made? */
bool ring_memory__payload_ok(const void *payload, uint32_t len, uint32_t seq);

#endif /* CORE_RING_MEMORY_H */
