/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_memory.h - a perf ring in plain memory, between pages that fault, and a writer that does as the
 * kernel does (__perf_output_begin()) and shares no code with the readers.
 */
#ifndef RING_PERF_MEMORY_H
#define RING_PERF_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERF_LOST_LATER_NS 7 /* as older kernels stamp LOST, after the sample that it comes with */
#define PERF_ID		   0x1d1d
#define PERF_BYTES_MAX	   65536

struct perf_memory {
	uint8_t *data;
	size_t size;
	uint64_t head, tail; /* as data_head and data_tail */
	bool backward, paused;
	/* How the event was opened: TIME, and of these what is set. */
	bool with_id; /* PERF_SAMPLE_IDENTIFIER */
	bool with_raw;
	bool sample_id_all;
	uint64_t lost;	     /* since the last LOST */
	uint64_t lost_total; /* what PERF_FORMAT_LOST tells */
	void *map;
};

/* A record before it is in a ring. */
struct perf_bytes {
	uint8_t at[PERF_BYTES_MAX] __attribute__((aligned(8)));
	uint32_t len;
};

/* Fails the test when it can't be had. `size`: a power of two; what is behind its end faults. */
void perf_memory__init(struct perf_memory *m, size_t size);
void perf_memory__free(struct perf_memory *m);

/* The sample_type of the three above. */
uint64_t perf_memory__sample_type(const struct perf_memory *m);

void perf_bytes__begin(struct perf_bytes *b, uint32_t type, uint16_t misc);
void perf_bytes__u64(struct perf_bytes *b, uint64_t value);
void perf_bytes__u32s(struct perf_bytes *b, uint32_t first, uint32_t second);
/* u32 length, `len` bytes made from `seed`, and padding that counts as of the payload. */
void perf_bytes__raw(struct perf_bytes *b, uint32_t len, uint64_t seed);
/* Length and header; fails the test if it is no multiple of 8. */
void perf_bytes__end(struct perf_bytes *b);

/* The sample that perf_memory__sample() writes. */
void perf_memory__build(const struct perf_memory *m, struct perf_bytes *b, uint64_t stamp_ns,
			uint32_t payload, uint64_t seed);

/* Write a record, after a LOST if one is due; false: no room, or paused. */
bool perf_memory__write(struct perf_memory *m, const struct perf_bytes *b, uint64_t stamp_ns);
bool perf_memory__sample(struct perf_memory *m, uint64_t stamp_ns, uint32_t payload, uint64_t seed);

/* Bytes at a position, going round the end. */
void perf_memory__put(struct perf_memory *m, uint64_t pos, const void *bytes, size_t len);

/* Are these the bytes that perf_bytes__raw() made? */
bool perf_memory__payload_ok(const void *raw, uint32_t len, uint64_t seed);

#endif /* RING_PERF_MEMORY_H */
