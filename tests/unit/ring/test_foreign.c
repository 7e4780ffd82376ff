/* SPDX-License-Identifier: BSD-2-Clause */
/* ring/foreign_ringbuf.h: B1, B2 and B4, a stamp at any offset, and bytes that mean nothing (G8). */
#include "unit.h"

#include "ring/foreign_ringbuf.h"
#include "ring_memory.h"

#define SIZE 4096u

static struct bpf_ringbuf reader(const struct ring_memory *ring)
{
	return (struct bpf_ringbuf){
		.data = ring->data, .mask = ring->size - 1, .pos = ring->consumer};
}

/* A payload of any length: its first bytes a word, the rest 0. */
static void write_payload(struct ring_memory *ring, uint32_t len, uint32_t flags, uint64_t word)
{
	uint8_t *at = ring->data + ring->producer % ring->size;

	ring_memory__store32(ring, ring->producer, len | flags);
	memset(at + 8, 0, len);
	memcpy(at + 8, &word, len < 8 ? len : 8);
	ring->producer += (8 + (uint64_t)len + 7) / 8 * 8;
}

static void expect_stamp(struct bpf_ringbuf *rb, uint32_t offset, uint64_t head, uint64_t stamp_ns,
			 uint32_t len)
{
	uint64_t pos = rb->pos;
	struct foreign_record record = {0};
	uint32_t body_len;

	assert_int_equal(foreign_ringbuf__next(rb, offset, head, &record), BPF_RINGBUF_RECORD);
	assert_true(record.pos == pos);
	assert_true(record.stamp_ns == stamp_ns);
	assert_int_equal(record.len, len);
	assert_ptr_equal(foreign_ringbuf__body(rb->data, rb->mask, record.pos, &body_len),
			 record.data);
	assert_int_equal(body_len, len);
}

static void expect(struct bpf_ringbuf *rb, uint32_t offset, uint64_t head,
		   enum bpf_ringbuf_step step, uint64_t bytes)
{
	uint64_t pos = rb->pos;
	struct foreign_record record = {0};

	assert_int_equal(foreign_ringbuf__next(rb, offset, head, &record), step);
	assert_true(rb->pos == pos + bytes);
	if (step == BPF_RINGBUF_BROKEN)
		assert_true(record.pos == pos);
}

/* B1: 5, 10 discarded, 15, 20 discarded, 25; 16 + 24 + 24 + 32 + 40 bytes. */
static void test_discarded(void **state)
{
	struct ring_memory ring;
	struct bpf_ringbuf rb;

	ring_memory__init(&ring, SIZE, 0);
	rb = reader(&ring);
	for (uint32_t len = 5; len <= 25; len += 5)
		write_payload(&ring, len, len % 10 ? 0 : RING_DISCARD, len);
	assert_int_equal(ring.producer, 136);
	expect(&rb, 0, ring.producer, BPF_RINGBUF_BROKEN, 16); /* no room for a stamp */
	expect(&rb, 0, ring.producer, BPF_RINGBUF_DISCARDED, 24);
	expect_stamp(&rb, 0, ring.producer, 15, 15);
	expect(&rb, 0, ring.producer, BPF_RINGBUF_DISCARDED, 32);
	expect_stamp(&rb, 0, ring.producer, 25, 25);
	expect(&rb, 0, ring.producer, BPF_RINGBUF_END, 0);
	assert_int_equal(rb.pos, 136);
	ring_memory__free(&ring);
}

/* What was discarded may be too short for anything. */
static void test_discarded_without_a_stamp(void **state)
{
	struct ring_memory ring;
	struct bpf_ringbuf rb;

	ring_memory__init(&ring, SIZE, 0);
	rb = reader(&ring);
	write_payload(&ring, 0, RING_DISCARD, 0);
	write_payload(&ring, 8, 0, 77);
	expect(&rb, 0, ring.producer, BPF_RINGBUF_DISCARDED, 8);
	expect_stamp(&rb, 0, ring.producer, 77, 8);
	ring_memory__free(&ring);
}

/* B2 */
static void test_busy_head(void **state)
{
	struct ring_memory ring;
	struct bpf_ringbuf rb;

	ring_memory__init(&ring, SIZE, 0);
	rb = reader(&ring);
	write_payload(&ring, 8, RING_BUSY, 1);
	write_payload(&ring, 8, 0, 2);
	for (unsigned i = 0; i < 3; i++)
		expect(&rb, 0, ring.producer, BPF_RINGBUF_IS_BUSY, 0);
	ring_memory__store32(&ring, 0, 8);
	expect_stamp(&rb, 0, ring.producer, 1, 8);
	expect_stamp(&rb, 0, ring.producer, 2, 8);
	ring_memory__free(&ring);
}

/* B4: F2's rule. */
static void test_lengths_of_no_use(void **state)
{
	static const uint32_t lengths[] = {25, 4096, 0x3fffffff, 0x3ffffff8};
	struct ring_memory ring;

	ring_memory__init(&ring, SIZE, 0);
	for (unsigned i = 0; i < ARRAY_SIZE(lengths); i++) {
		struct bpf_ringbuf rb;
		uint64_t bad;

		ring.consumer = ring.producer;
		rb = reader(&ring);
		write_payload(&ring, 8, 0, 1);
		bad = ring.producer;
		write_payload(&ring, 8, 0, 2);
		write_payload(&ring, 8, 0, 3);
		ring_memory__store32(&ring, bad, lengths[i]);
		expect_stamp(&rb, 0, ring.producer, 1, 8);
		expect(&rb, 0, ring.producer, BPF_RINGBUF_BROKEN, 32);
		write_payload(&ring, 8, 0, 4);
		expect_stamp(&rb, 0, ring.producer, 4, 8);
	}
	ring_memory__free(&ring);
}

/* Every offset in every length: found where it fits, else broken, and what follows is read. */
static void test_every_offset(void **state)
{
	static const uint64_t stamp = 0x1122334455667788;
	struct ring_memory ring;

	ring_memory__init(&ring, SIZE, 0);
	for (uint32_t len = 0; len <= 40; len++) {
		for (uint32_t offset = 0; offset <= 40; offset++) {
			struct bpf_ringbuf rb;
			uint8_t *payload;

			ring.consumer = ring.producer;
			rb = reader(&ring);
			payload = ring.data + ring.producer % SIZE + 8;
			write_payload(&ring, len, 0, 0);
			if (offset + 8 > len) {
				expect(&rb, offset, ring.producer, BPF_RINGBUF_BROKEN,
				       ring.producer - ring.consumer);
				continue;
			}
			memcpy(payload + offset, &stamp, 8);
			expect_stamp(&rb, offset, ring.producer, stamp, len);
		}
	}
	ring_memory__free(&ring);
}

static void test_offset_that_no_record_has(void **state)
{
	struct ring_memory ring;
	struct bpf_ringbuf rb;

	ring_memory__init(&ring, SIZE, 0);
	for (uint32_t offset = UINT32_MAX; offset > UINT32_MAX - 16; offset--) {
		rb = reader(&ring);
		write_payload(&ring, 64, 0, 1);
		expect(&rb, offset, ring.producer, BPF_RINGBUF_BROKEN, 72);
		ring.consumer = ring.producer;
	}
	ring_memory__free(&ring);
}

/* G8 */
static void test_hostile_bytes(void **state)
{
	struct rng rng = {.state = 11};
	struct ring_memory ring;

	ring_memory__init(&ring, SIZE, 0);
	for (unsigned round = 0; round < 20000; round++) {
		uint32_t offset = (uint32_t)rng__below(&rng, 64);
		uint64_t head, pos, steps = 0;
		struct foreign_record record = {0};
		enum bpf_ringbuf_step step;
		struct bpf_ringbuf rb;
		uint32_t len;

		for (pos = 0; pos < SIZE; pos += 8) {
			uint64_t word = rng__next(&rng);

			if (rng__chance(&rng, 950))
				word = rng__below(&rng, 100) | (word & RING_DISCARD);
			memcpy(ring.data + pos, &word, 8);
		}
		ring.consumer = rng__next(&rng) & ~7ull;
		head = ring.consumer + rng__below(&rng, SIZE / 8 + 1) * 8;
		rb = reader(&ring);
		for (pos = rb.pos;; pos = rb.pos) {
			step = foreign_ringbuf__next(&rb, offset, head, &record);
			if (step == BPF_RINGBUF_END || step == BPF_RINGBUF_IS_BUSY)
				break;
			assert_true(++steps <= SIZE / 8);
			assert_true(record.pos == pos && rb.pos - pos >= 8);
			assert_true(head - rb.pos <= SIZE);
			if (step != BPF_RINGBUF_RECORD)
				continue;
			assert_ptr_equal(foreign_ringbuf__body(rb.data, rb.mask, pos, &len),
					 record.data);
			assert_true(len == record.len && len <= rb.pos - pos - 8);
		}
		assert_true(rb.pos == pos);
		assert_true(step == BPF_RINGBUF_IS_BUSY || pos == head);
	}
	ring_memory__free(&ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_discarded),
		cmocka_unit_test(test_discarded_without_a_stamp),
		cmocka_unit_test(test_busy_head),
		cmocka_unit_test(test_lengths_of_no_use),
		cmocka_unit_test(test_every_offset),
		cmocka_unit_test(test_offset_that_no_record_has),
		cmocka_unit_test(test_hostile_bytes),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	return r ? 1 : 0;
}
