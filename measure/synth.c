/* SPDX-License-Identifier: BSD-2-Clause */
#include "measure/synth.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096u

/* splitmix64: a few instructions a number, and any seed will do. */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* [0, n), without a division */
static uint32_t below(uint64_t random, uint32_t n)
{
	return (uint32_t)((random >> 32) * n >> 32);
}

struct draw {
	uint64_t random;
	uint64_t stamp_ns;
	unsigned ring, left;
	unsigned fields;
};

static struct draw draw__begin(const struct synth *synth)
{
	return (struct draw){.random = synth->epoch << 32, .stamp_ns = synth->begin_ns};
}

/* Ring, stamp and length of the next record. Equal stamps occur. */
static void draw__next(struct draw *draw, const struct shape *shape)
{
	uint64_t random = next_random(&draw->random);

	if (!draw->left) {
		draw->ring = below(random << 32, shape->rings);
		draw->left = shape->burst;
	}
	draw->left--;
	draw->stamp_ns += below(random, 2 * shape->step_ns + 1);
	draw->fields = SYNTH_FIELDS;
	if (shape->mixed)
		draw->fields += below(random << 16, SYNTH_MORE + 1);
}

/* The most that one ring gets in an epoch, with room for the epochs that draw more. */
static size_t ring_size(const struct shape *shape)
{
	size_t most = SYNTH_STRIDE + (shape->mixed ? SYNTH_MORE * 8 : 0);
	size_t mean = shape->records / shape->rings * most, size = PAGE;

	while (size < 2 * mean + 8 * shape->burst * most)
		size *= 2;
	return size;
}

static uint8_t *map_twice(size_t size)
{
	int fd = memfd_create("ring", MFD_CLOEXEC);
	uint8_t *data;

	if (fd < 0 || ftruncate(fd, (off_t)size))
		err(1, "a ring of %zu bytes", size);
	data = mmap(NULL, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (data == MAP_FAILED)
		err(1, "mmap");
	for (int half = 0; half < 2; half++)
		if (mmap(data + half * size, size, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, 0) == MAP_FAILED)
			err(1, "mmap");
	close(fd);
	return data;
}

void synth__make(struct synth *synth, const struct shape *shape)
{
	uint64_t random = 1;

	*synth = (struct synth){
		.shape = *shape,
		.size = ring_size(shape),
		.ring = calloc(shape->rings, sizeof(*synth->ring)),
		.pages = aligned_alloc(PAGE, 2ul * PAGE * shape->rings),
		.counters = aligned_alloc(sizeof(*synth->counters),
					  shape->rings * sizeof(*synth->counters)),
		.begin_ns = 1000000000,
	};
	if (!synth->ring || !synth->pages || !synth->counters)
		err(1, "%u rings", shape->rings);
	memset(synth->pages, 0, 2ul * PAGE * shape->rings);
	memset(synth->counters, 0, shape->rings * sizeof(*synth->counters));
	for (unsigned i = 0; i < shape->rings; i++) {
		struct synth_ring *ring = &synth->ring[i];

		/* Anywhere: rings that all stood at one offset would fight for the same cache sets. */
		ring->begin = below(next_random(&random), (uint32_t)(synth->size / SYNTH_STRIDE)) *
			      SYNTH_STRIDE;
		ring->data = map_twice(synth->size);
		ring->producer = (uint64_t *)(synth->pages + 2ul * i * PAGE);
		ring->consumer = (uint64_t *)(synth->pages + (2ul * i + 1) * PAGE);
		ring->counters = &synth->counters[i];
		*ring->consumer = *ring->producer = ring->begin;
	}
}

void synth__free(struct synth *synth)
{
	for (unsigned i = 0; i < synth->shape.rings; i++)
		munmap(synth->ring[i].data, 2 * synth->size);
	free(synth->ring);
	free(synth->pages);
	free(synth->counters);
}

static void write_record(struct synth *synth, const struct draw *draw, uint64_t number)
{
	struct synth_ring *ring = &synth->ring[draw->ring];
	uint8_t *at = ring->data + (*ring->producer & (synth->size - 1));
	struct synth_record *record = (struct synth_record *)(at + 8);
	uint32_t bytes = sizeof(record->rec) + draw->fields * 8;

	((uint32_t *)at)[0] = bytes;
	((uint32_t *)at)[1] = 0;
	record->rec = (struct weir_record){
		.stamp = draw->stamp_ns,
		.type = WEIR_TYPE_USER,
		.seq = (uint32_t)ring->counters->attempts++,
	};
	for (unsigned i = 0; i < draw->fields; i++)
		record->field[i] = number ^ i;
	record->field[SYNTH_COUNT] = draw->fields;
	record->field[SYNTH_SOURCE] = draw->ring;
	synth->sum += record->field[SYNTH_READ];
	*ring->producer += 8 + bytes;
	if (*ring->producer - ring->begin > synth->size)
		errx(1, "a ring of %zu bytes is too small", synth->size);
}

void synth__fill(struct synth *synth)
{
	struct draw draw = draw__begin(synth);

	for (unsigned i = 0; i < synth->shape.rings; i++) {
		struct synth_ring *ring = &synth->ring[i];

		*ring->consumer = *ring->producer = ring->begin;
		ring->counters->attempts = ring->first_seq;
	}
	synth->sum = 0;
	for (unsigned i = 0; i < synth->shape.records; i++) {
		draw__next(&draw, &synth->shape);
		write_record(synth, &draw, i);
	}
	synth->end_ns = draw.stamp_ns;
}

void synth__advance(struct synth *synth)
{
	synth->epoch++;
	synth->begin_ns = synth->end_ns + 1000000;
	for (unsigned i = 0; i < synth->shape.rings; i++) {
		synth->ring[i].begin = *synth->ring[i].producer;
		synth->ring[i].first_seq = synth->ring[i].counters->attempts;
	}
}
