/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit.h"

#include "perf_memory.h"

#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The ring ends where a page without access begins; a ring of whole pages begins behind one, too. */
void perf_memory__init(struct perf_memory *m, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t room = (size + page - 1) / page * page;
	uint8_t *map;

	map = mmap(NULL, room + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	assert_int_equal(mprotect(map + page, room, PROT_READ | PROT_WRITE), 0);
	*m = (struct perf_memory){.data = map + page + room - size, .size = size, .map = map};
}

void perf_memory__free(struct perf_memory *m)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	munmap(m->map, (m->size + page - 1) / page * page + 2 * page);
}

uint64_t perf_memory__sample_type(const struct perf_memory *m)
{
	return PERF_SAMPLE_TIME | (m->with_id ? PERF_SAMPLE_IDENTIFIER : 0) |
	       (m->with_raw ? PERF_SAMPLE_RAW : 0);
}

static void add(struct perf_bytes *b, const void *bytes, uint32_t len)
{
	assert_true(b->len + len <= PERF_BYTES_MAX);
	memcpy(b->at + b->len, bytes, len);
	b->len += len;
}

void perf_bytes__begin(struct perf_bytes *b, uint32_t type, uint16_t misc)
{
	uint16_t size = 0;

	b->len = 0;
	add(b, &type, 4);
	add(b, &misc, 2);
	add(b, &size, 2);
}

void perf_bytes__u64(struct perf_bytes *b, uint64_t value)
{
	add(b, &value, 8);
}

void perf_bytes__u32s(struct perf_bytes *b, uint32_t first, uint32_t second)
{
	add(b, &first, 4);
	add(b, &second, 4);
}

static uint8_t payload_byte(uint64_t seed, uint32_t i)
{
	return (uint8_t)(rng__mix(seed + i / 8) >> (i % 8 * 8));
}

void perf_bytes__raw(struct perf_bytes *b, uint32_t len, uint64_t seed)
{
	uint32_t padded = (4 + len + 7) / 8 * 8 - 4;

	add(b, &padded, 4);
	for (uint32_t i = 0; i < padded; i++) {
		uint8_t byte = i < len ? payload_byte(seed, i) : 0xee;

		add(b, &byte, 1);
	}
}

void perf_bytes__end(struct perf_bytes *b)
{
	uint16_t size = (uint16_t)b->len;

	assert_int_equal(b->len % 8, 0);
	memcpy(b->at + 6, &size, 2);
}

bool perf_memory__payload_ok(const void *raw, uint32_t len, uint64_t seed)
{
	for (uint32_t i = 0; i < len; i++)
		if (((const uint8_t *)raw)[i] != payload_byte(seed, i))
			return false;
	return true;
}

void perf_memory__build(const struct perf_memory *m, struct perf_bytes *b, uint64_t stamp_ns,
			uint32_t payload, uint64_t seed)
{
	perf_bytes__begin(b, PERF_RECORD_SAMPLE, 0);
	if (m->with_id)
		perf_bytes__u64(b, PERF_ID);
	perf_bytes__u64(b, stamp_ns);
	if (m->with_raw)
		perf_bytes__raw(b, payload, seed);
	perf_bytes__end(b);
}

void perf_memory__put(struct perf_memory *m, uint64_t pos, const void *bytes, size_t len)
{
	const uint8_t *from = bytes;

	while (len) {
		size_t at = pos % m->size;
		size_t piece = len < m->size - at ? len : m->size - at;

		memcpy(m->data + at, from, piece);
		pos += piece;
		from += piece;
		len -= piece;
	}
}

static void build_lost(const struct perf_memory *m, struct perf_bytes *b, uint64_t stamp_ns)
{
	perf_bytes__begin(b, PERF_RECORD_LOST, 0);
	perf_bytes__u64(b, PERF_ID);
	perf_bytes__u64(b, m->lost);
	if (m->sample_id_all)
		perf_bytes__u64(b, stamp_ns + PERF_LOST_LATER_NS);
	if (m->sample_id_all && m->with_id)
		perf_bytes__u64(b, PERF_ID);
	perf_bytes__end(b);
}

static bool lose(struct perf_memory *m)
{
	m->lost++;
	m->lost_total++;
	return false;
}

bool perf_memory__write(struct perf_memory *m, const struct perf_bytes *b, uint64_t stamp_ns)
{
	static struct perf_bytes lost;
	uint64_t pos, bytes = b->len;

	if (m->paused)
		return lose(m);
	lost.len = 0;
	if (m->lost)
		build_lost(m, &lost, stamp_ns);
	bytes += lost.len;
	/* CIRC_SPACE(): a ring is never filled to the last byte. */
	if (!m->backward && ((m->tail - m->head - 1) & (m->size - 1)) < bytes)
		return lose(m);
	pos = m->backward ? m->head - bytes : m->head;
	m->head = m->backward ? pos : pos + bytes;
	perf_memory__put(m, pos, lost.at, lost.len);
	perf_memory__put(m, pos + lost.len, b->at, b->len);
	m->lost = 0;
	return true;
}

bool perf_memory__sample(struct perf_memory *m, uint64_t stamp_ns, uint32_t payload, uint64_t seed)
{
	static struct perf_bytes b;

	perf_memory__build(m, &b, stamp_ns, payload, seed);
	return perf_memory__write(m, &b, stamp_ns);
}
