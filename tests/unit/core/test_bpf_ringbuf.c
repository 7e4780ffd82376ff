/* SPDX-License-Identifier: BSD-2-Clause */
/* ring/bpf_ringbuf.h: B1 to B4, F2 and F3 as they apply to it, and bytes that mean nothing (G8). */
#include "unit.h"

#include "ring/bpf_ringbuf.h"
#include "ring_memory.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SIZE 4096u
#define HEAD ((uint32_t)sizeof(struct weir_record))

struct step {
	enum bpf_ringbuf_step what;
	uint64_t pos;
	const struct weir_record *rec;
	uint32_t len;
};

static struct bpf_ringbuf reader(const struct ring_memory *ring)
{
	return (struct bpf_ringbuf){ring->data, ring->size - 1, ring->consumer};
}

static struct step next(struct bpf_ringbuf *rb, uint64_t head)
{
	struct step step = {0};

	step.what = bpf_ringbuf__next(rb, head, &step.pos, &step.rec, &step.len);
	return step;
}

static void expect_record(struct bpf_ringbuf *rb, uint64_t head, uint64_t pos, uint32_t len,
			  uint32_t seq)
{
	struct step step = next(rb, head);

	assert_int_equal(step.what, BPF_RINGBUF_RECORD);
	assert_true(step.pos == pos);
	assert_int_equal(step.len, len);
	assert_int_equal(step.rec->seq, seq);
	assert_true(ring_memory__payload_ok(step.rec + 1, step.len, seq));
	assert_int_equal(bpf_ringbuf__payload((const uint8_t *)step.rec - BPF_RINGBUF_HDR), len);
}

static void expect(struct bpf_ringbuf *rb, uint64_t head, enum bpf_ringbuf_step what, uint64_t pos)
{
	assert_int_equal(next(rb, head).what, what);
	assert_true(rb->pos == pos);
}

static void test_empty(void **state)
{
	struct ring_memory ring;
	struct bpf_ringbuf rb;

	ring_memory__init(&ring, SIZE, 0);
	rb = reader(&ring);
	for (int i = 0; i < 3; i++)
		expect(&rb, 0, BPF_RINGBUF_END, 0);
	ring_memory__free(&ring);
}

static void test_payload_lengths(void **state)
{
	struct ring_memory ring;
	struct bpf_ringbuf rb;

	for (uint32_t len = 0; len <= SIZE - 8 - HEAD; len++) {
		uint64_t pos;

		ring_memory__init(&ring, SIZE, 64);
		rb = reader(&ring);
		pos = ring_memory__write(&ring, HEAD + len, 0, 1, len);
		expect_record(&rb, ring.producer, pos, len, len);
		expect(&rb, ring.producer, BPF_RINGBUF_END, ring.producer);
		ring_memory__free(&ring);
	}
}

/* B1, with payloads of its sizes behind our head. */
static void test_discarded_between(void **state)
{
	const uint32_t flags[] = {0, RING_DISCARD, 0, RING_DISCARD, 0};
	struct ring_memory ring;
	struct bpf_ringbuf rb;

	ring_memory__init(&ring, SIZE, 0);
	rb = reader(&ring);
	for (uint32_t i = 0; i < 5; i++)
		ring_memory__write(&ring, HEAD + 5 * (i + 1), flags[i], 0, i);
	for (uint32_t i = 0; i < 5; i++) {
		struct step step = next(&rb, ring.producer);

		assert_int_equal(step.what, flags[i] ? BPF_RINGBUF_DISCARDED : BPF_RINGBUF_RECORD);
		assert_int_equal(step.len, 5 * (i + 1));
		/* A discarded record's number counts all the same. */
		assert_int_equal(step.rec->seq, i);
	}
	expect(&rb, ring.producer, BPF_RINGBUF_END, 32 + 40 + 40 + 48 + 56);
	ring_memory__free(&ring);
}

/* B1 as it stands: samples of 5 to 25 bytes are too short for a head, all but the last two. */
static void test_foreign_samples(void **state)
{
	const enum bpf_ringbuf_step want[] = {BPF_RINGBUF_BROKEN, BPF_RINGBUF_BROKEN,
					      BPF_RINGBUF_BROKEN, BPF_RINGBUF_DISCARDED,
					      BPF_RINGBUF_RECORD};
	struct ring_memory ring;
	struct bpf_ringbuf rb;

	ring_memory__init(&ring, SIZE, 0);
	rb = reader(&ring);
	for (uint32_t i = 0; i < 5; i++)
		ring_memory__write(&ring, 5 * (i + 1), i % 2 ? RING_DISCARD : 0, 0, i);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(next(&rb, ring.producer).what, want[i]);
	expect(&rb, ring.producer, BPF_RINGBUF_END, 136);
	ring_memory__free(&ring);
}

/* B2, O16: a busy record stops the ring whatever its length says; what is behind it comes later. */
static void test_busy(void **state)
{
	const uint32_t lengths[] = {HEAD + 8, 0, 15, SIZE, 0x3fffffff};

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		struct ring_memory ring;
		struct bpf_ringbuf rb;
		uint64_t busy, behind;

		ring_memory__init(&ring, SIZE, SIZE - 32);
		rb = reader(&ring);
		busy = ring_memory__write(&ring, HEAD + 8, 0, 0, 0);
		behind = ring_memory__write(&ring, HEAD, 0, 0, 1);
		ring_memory__store32(&ring, busy, lengths[i] | RING_BUSY);
		for (int again = 0; again < 3; again++)
			expect(&rb, ring.producer, BPF_RINGBUF_IS_BUSY, busy);
		ring_memory__store32(&ring, busy, lengths[i] | RING_BUSY | RING_DISCARD);
		expect(&rb, ring.producer, BPF_RINGBUF_IS_BUSY, busy);
		ring_memory__store32(&ring, busy, HEAD + 8);
		expect_record(&rb, ring.producer, busy, 8, 0);
		expect_record(&rb, ring.producer, behind, 0, 1);
		ring_memory__free(&ring);
	}
}

/* B3: discarded without a wake-up, then a record: both are there in one look. */
static void test_discard_then_record(void **state)
{
	struct ring_memory ring;
	struct bpf_ringbuf rb;
	uint64_t pos;

	ring_memory__init(&ring, SIZE, 0);
	rb = reader(&ring);
	ring_memory__write(&ring, HEAD, RING_DISCARD, 0, 0);
	pos = ring_memory__write(&ring, HEAD, 0, 0, 1);
	expect(&rb, ring.producer, BPF_RINGBUF_DISCARDED, pos);
	expect_record(&rb, ring.producer, pos, 0, 1);
	ring_memory__free(&ring);
}

/* F2: what is too short for a head is skipped alone, and what follows is delivered. */
static void test_too_short(void **state)
{
	for (uint32_t len = 0; len < HEAD; len++) {
		struct ring_memory ring;
		struct bpf_ringbuf rb;
		uint64_t good;

		ring_memory__init(&ring, SIZE, 8);
		rb = reader(&ring);
		ring_memory__write(&ring, len, len % 2 ? RING_DISCARD : 0, 0, 0);
		good = ring_memory__write(&ring, HEAD + 3, 0, 0, 1);
		expect(&rb, ring.producer, BPF_RINGBUF_BROKEN, good);
		expect_record(&rb, ring.producer, good, 3, 1);
		ring_memory__free(&ring);
	}
}

/* B4, F2: a length that leads past the head, out of the ring or nowhere skips to the head. */
static void test_useless_lengths(void **state)
{
	const uint32_t lengths[] = {
		2 * (8 + HEAD) - 8 + 1, /* one byte past the head */
		2 * (8 + HEAD),
		65535,
		SIZE - 8,
		SIZE - 7,
		SIZE,
		0x10000000, /* bits that no ring's size leaves over */
		0x20000000,
		0x3fffffff,
		0x3ffffff8,
	};

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		for (uint32_t flags = 0; flags <= RING_DISCARD; flags += RING_DISCARD) {
			struct ring_memory ring;
			struct bpf_ringbuf rb;
			uint64_t bad, good;

			ring_memory__init(&ring, SIZE, 40);
			rb = reader(&ring);
			bad = ring_memory__write(&ring, HEAD, 0, 0, 0);
			ring_memory__write(&ring, HEAD, 0, 0, 1);
			ring_memory__store32(&ring, bad, lengths[i] | flags);
			expect(&rb, ring.producer, BPF_RINGBUF_BROKEN, ring.producer);
			good = ring_memory__write(&ring, HEAD + 7, 0, 0, 2);
			expect_record(&rb, ring.producer, good, 7, 2);
			ring_memory__free(&ring);
		}
	}
}

/* A record that fills the ring to the last byte is whole; one that is 8 bytes longer is none. */
static void test_as_large_as_the_ring(void **state)
{
	struct ring_memory ring;
	struct bpf_ringbuf rb;
	uint64_t pos;

	ring_memory__init(&ring, SIZE, 3 * SIZE + 1024);
	rb = reader(&ring);
	pos = ring_memory__write(&ring, SIZE - 8, 0, 0, 9);
	expect_record(&rb, ring.producer, pos, SIZE - 8 - HEAD, 9);
	ring_memory__store32(&ring, ring.producer, SIZE);
	expect(&rb, ring.producer + SIZE + 8, BPF_RINGBUF_BROKEN, ring.producer + SIZE + 8);
	ring_memory__free(&ring);
}

/* F4: straddling the end at every 8-byte split, byte for byte, also where positions wrap. */
static void test_straddling(void **state)
{
	const uint64_t ends[] = {SIZE, 1ull << 32, 0 /* 2^64 */};
	const uint32_t len = 509;

	for (size_t end = 0; end < ARRAY_SIZE(ends); end++) {
		for (uint64_t before = 8; before < 8 + HEAD + len; before += 8) {
			struct ring_memory ring;
			struct bpf_ringbuf rb;

			ring_memory__init(&ring, SIZE, ends[end] - before);
			rb = reader(&ring);
			ring_memory__write(&ring, HEAD + len, 0, 0, (uint32_t)before);
			ring_memory__write(&ring, HEAD + 1, 0, 0, 1);
			expect_record(&rb, ring.producer, ends[end] - before, len,
				      (uint32_t)before);
			expect_record(&rb, ring.producer, ends[end] - before + 536, 1, 1);
			expect(&rb, ring.producer, BPF_RINGBUF_END, ring.producer);
			ring_memory__free(&ring);
		}
	}
}

/* F3: a head behind the position is an empty ring, and not 2^64 bytes. */
static void test_head_behind(void **state)
{
	const uint64_t behind[] = {8, 64, SIZE, 1ull << 40};

	for (size_t i = 0; i < ARRAY_SIZE(behind); i++) {
		struct ring_memory ring;
		struct bpf_ringbuf rb;

		ring_memory__init(&ring, SIZE, 512);
		rb = reader(&ring);
		ring_memory__write(&ring, HEAD, 0, 0, 0);
		expect(&rb, 512 - behind[i], BPF_RINGBUF_END, 512);
		ring_memory__free(&ring);
	}
}

/* A window whose last byte stands before a page that faults. */
struct window {
	uint8_t *map, *end;
	size_t bytes; /* all before `end` */
};

static struct window window_new(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct window w = {.bytes = (bytes + page - 1) / page * page};

	w.map = mmap(NULL, w.bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	assert_ptr_not_equal(w.map, MAP_FAILED);
	w.end = w.map + w.bytes;
	assert_int_equal(mprotect(w.end, page, PROT_NONE), 0);
	return w;
}

static void window_free(struct window *w)
{
	munmap(w->map, w->bytes + (size_t)sysconf(_SC_PAGESIZE));
}

/* A head that leaves less than a header: nothing of it is read. */
static void test_less_than_a_header(void **state)
{
	struct window w = window_new(SIZE);

	for (uint64_t left = 1; left < 8; left++) {
		struct bpf_ringbuf rb = {w.map, 0xffff, SIZE};

		expect(&rb, SIZE + left, BPF_RINGBUF_BROKEN, SIZE + left);
		expect(&rb, SIZE + left, BPF_RINGBUF_END, SIZE + left);
	}
	window_free(&w);
}

/* What the next step must be, by the layout alone. */
static struct step should_be(const uint8_t *data, uint64_t pos, uint64_t head, uint64_t size)
{
	uint64_t word = 0, len;

	if (pos == head)
		return (struct step){.what = BPF_RINGBUF_END, .pos = pos};
	for (int i = 3; i >= 0; i--)
		word = word * 256 + data[pos + (uint64_t)i];
	if (word >= RING_BUSY)
		return (struct step){.what = BPF_RINGBUF_IS_BUSY, .pos = pos};
	len = word % RING_DISCARD;
	if (8 + len > head - pos || 8 + len > size)
		return (struct step){.what = BPF_RINGBUF_BROKEN, .pos = head};
	pos += (8 + len + 7) / 8 * 8;
	if (len < HEAD)
		return (struct step){.what = BPF_RINGBUF_BROKEN, .pos = pos};
	return (struct step){
		.what = word >= RING_DISCARD ? BPF_RINGBUF_DISCARDED : BPF_RINGBUF_RECORD,
		.pos = pos,
		.len = (uint32_t)len - HEAD,
	};
}

static void read_to_the_end(const struct window *w, uint64_t pos, uint64_t head)
{
	struct bpf_ringbuf rb = {w->map, 0xffff, pos};
	size_t steps = 0;

	for (;;) {
		struct step want = should_be(w->map, rb.pos, head, 0x10000);
		uint64_t at = rb.pos;
		struct step got = next(&rb, head);

		assert_int_equal(got.what, want.what);
		assert_true(rb.pos == want.pos);
		if (got.what == BPF_RINGBUF_END || got.what == BPF_RINGBUF_IS_BUSY)
			return;
		assert_true(got.pos == at);
		assert_true(++steps <= (head - pos) / 8);
		if (got.what == BPF_RINGBUF_BROKEN)
			continue;
		assert_ptr_equal(got.rec, w->map + at + 8);
		assert_int_equal(got.len, want.len);
		assert_true(at + 8 + HEAD + got.len <= head);
	}
}

/* The same bytes by runs: each takes whole, finished records and stops at whatever else there is. */
static void read_by_runs(const struct window *w, uint64_t pos, uint64_t head)
{
	struct bpf_ringbuf rb = {w->map, 0xffff, pos};
	enum bpf_ringbuf_step what;

	do {
		struct bpf_ringbuf_run run = bpf_ringbuf__run(&rb, head);
		const struct weir_record *rec;

		while ((rec = bpf_ringbuf_run__peek(&run))) {
			struct step want = should_be(w->map, rb.pos, head, 0x10000);

			assert_int_equal(want.what, BPF_RINGBUF_RECORD);
			assert_ptr_equal(rec, w->map + rb.pos + 8);
			/* A peek alone moves nothing. */
			assert_ptr_equal(bpf_ringbuf_run__peek(&run), rec);
			bpf_ringbuf_run__pass(&run);
			rb.pos += run.guess;
			assert_true(rb.pos == want.pos);
		}
		what = next(&rb, head).what;
		assert_int_not_equal(what, BPF_RINGBUF_RECORD);
	} while (what != BPF_RINGBUF_END && what != BPF_RINGBUF_IS_BUSY);
}

/* G8: any bytes end, each step is what the layout says, and nothing behind the head is touched. */
static void test_random_bytes(void **state)
{
	struct rng rng = {0x5eed};
	struct window w = window_new(SIZE);

	for (int run = 0; run < 200000; run++) {
		uint64_t bytes = 8 * rng__range(&rng, 1, 64), pos = w.bytes - bytes;

		for (uint64_t at = pos; at < w.bytes; at += 4) {
			uint32_t word = (uint32_t)rng__next(&rng);

			/* Plain noise would be busy or broken at once: mostly small lengths. */
			if (!rng__chance(&rng, 100))
				word &= 0x3f | (rng__chance(&rng, 200) ? RING_DISCARD : 0);
			memcpy(w.map + at, &word, sizeof(word));
		}
		read_to_the_end(&w, pos, w.bytes);
		read_by_runs(&w, pos, w.bytes);
	}
	window_free(&w);
}

/* Every length from 0 to beyond the window, each with each flag. */
static void test_every_length(void **state)
{
	const uint32_t flags[] = {0, RING_DISCARD, RING_BUSY, RING_BUSY | RING_DISCARD};
	const uint64_t bytes = 256;
	struct window w = window_new(SIZE);

	for (uint32_t len = 0; len < 2 * bytes; len++) {
		for (size_t f = 0; f < ARRAY_SIZE(flags); f++) {
			uint32_t word = len | flags[f];

			memset(w.end - bytes, 0, bytes);
			memcpy(w.end - bytes, &word, sizeof(word));
			read_to_the_end(&w, w.bytes - bytes, w.bytes);
			read_by_runs(&w, w.bytes - bytes, w.bytes);
		}
	}
	window_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_payload_lengths),
		cmocka_unit_test(test_discarded_between),
		cmocka_unit_test(test_foreign_samples),
		cmocka_unit_test(test_busy),
		cmocka_unit_test(test_discard_then_record),
		cmocka_unit_test(test_too_short),
		cmocka_unit_test(test_useless_lengths),
		cmocka_unit_test(test_as_large_as_the_ring),
		cmocka_unit_test(test_straddling),
		cmocka_unit_test(test_head_behind),
		cmocka_unit_test(test_less_than_a_header),
		cmocka_unit_test(test_random_bytes),
		cmocka_unit_test(test_every_length),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	return r ? 1 : 0;
}
