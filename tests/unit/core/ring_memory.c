/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit.h"

#include "ring_memory.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void ring_memory__init(struct ring_memory *ring, size_t size, uint64_t position)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int fd = memfd_create("ring", MFD_CLOEXEC);
	uint8_t *map;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	/* The first and the last page stay without access. */
	map = mmap(NULL, 2 * page + 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	for (int half = 0; half < 2; half++) {
		uint8_t *at = map + page + (size_t)half * size;

		assert_ptr_equal(
			mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0), at);
	}
	close(fd);
	*ring = (struct ring_memory){
		.data = map + page,
		.size = size,
		.producer = position,
		.consumer = position,
		.map = map,
	};
}

void ring_memory__free(struct ring_memory *ring)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	munmap(ring->map, 2 * page + 2 * ring->size);
}

static uint8_t *at(const struct ring_memory *ring, uint64_t position)
{
	return ring->data + (position & (ring->size - 1));
}

void ring_memory__store32(struct ring_memory *ring, uint64_t position, uint32_t value)
{
	memcpy(at(ring, position), &value, sizeof(value));
}

static uint8_t payload_byte(uint32_t seq, uint32_t i)
{
	return (uint8_t)rng__mix(((uint64_t)seq << 32) + i);
}

uint64_t ring_memory__write(struct ring_memory *ring, uint32_t len, uint32_t flags, uint64_t stamp,
			    uint32_t seq)
{
	struct weir_record head = {.stamp = stamp, .type = WEIR_TYPE_USER, .seq = seq};
	uint64_t position = ring->producer;
	uint8_t *bytes = at(ring, position);

	ring_memory__store32(ring, position, len | flags);
	ring_memory__store32(ring, position + 4, 0x70675f6f); /* pg_off: nobody's business */
	memcpy(bytes + 8, &head, len < sizeof(head) ? len : sizeof(head));
	for (uint32_t i = sizeof(head); i < len; i++)
		bytes[8 + i] = payload_byte(seq, i - (uint32_t)sizeof(head));
	ring->producer += (8 + (uint64_t)len + 7) / 8 * 8;
	return position;
}

bool ring_memory__payload_ok(const void *payload, uint32_t len, uint32_t seq)
{
	for (uint32_t i = 0; i < len; i++)
		if (((const uint8_t *)payload)[i] != payload_byte(seq, i))
			return false;
	return true;
}
