/* SPDX-License-Identifier: BSD-2-Clause */
/* ring/perf_backward.h: V1 to V8, any row of snapshots against a plain list, and hostile bytes (G8). */
#include "unit.h"

#include "perf_memory.h"
#include "ring/perf_backward.h"

#include <stdlib.h>

#define SIZE	  4096u
#define INDEX_MAX (SIZE / 8)

static struct perf_bytes bytes;
static uint8_t scratch[65536] __attribute__((aligned(8)));

/* A ring, and one reader's snapshots of it. */
struct fixture {
	struct perf_memory ring;
	struct perf_memory copy; /* its memory ends where that of a copy does */
	struct perf_layout layout;
	uint32_t index[INDEX_MAX + 1];
	uint64_t prev;
	struct perf_backward b;
};

static void setup(struct fixture *f, bool with_id, bool with_raw, bool sample_id_all)
{
	perf_memory__init(&f->ring, SIZE);
	perf_memory__init(&f->copy, SIZE);
	f->ring.backward = true;
	f->ring.with_id = with_id;
	f->ring.with_raw = with_raw;
	f->ring.sample_id_all = sample_id_all;
	f->prev = 0;
	assert_int_equal(
		perf_layout__init(&f->layout, perf_memory__sample_type(&f->ring), sample_id_all, 0),
		0);
}

static void teardown(struct fixture *f)
{
	perf_memory__free(&f->ring);
	perf_memory__free(&f->copy);
}

static void take(struct fixture *f, uint64_t head, uint64_t limit)
{
	const struct perf_snapshot snapshot = {
		.bytes = f->copy.data, .size = SIZE, .head = head, .prev = f->prev, .limit = limit};
	uint64_t room = perf_backward__room(&f->layout, SIZE);

	f->index[room] = 0xabcdef;
	perf_backward__init(&f->b, &f->layout, &snapshot, f->index);
	assert_int_equal(f->index[room], 0xabcdef);
	f->prev = head;
}

/* A snapshot while nobody writes. */
static void snapshot(struct fixture *f)
{
	memcpy(f->copy.data, f->ring.data, SIZE);
	take(f, f->ring.head, f->ring.head);
}

static void expect_stamp(struct fixture *f, uint32_t type, uint64_t stamp_ns)
{
	struct perf_record record = {0};

	assert_int_equal(perf_backward__next(&f->b, &f->layout, &record), PERF_NEXT_RECORD);
	assert_int_equal(record.type, type);
	assert_true(record.has_stamp);
	assert_true(record.stamp_ns == stamp_ns);
}

static void expect_end(struct fixture *f)
{
	struct perf_record record = {0};

	assert_int_equal(perf_backward__next(&f->b, &f->layout, &record), PERF_NEXT_END);
}

/* Of the window, what is no record. */
static void expect_rest(const struct fixture *f, unsigned torn, unsigned oversized, unsigned broken,
			uint64_t skipped)
{
	assert_int_equal(f->b.torn, torn);
	assert_int_equal(f->b.oversized, oversized);
	assert_int_equal(f->b.broken, broken);
	assert_int_equal(f->b.skipped, skipped);
}

/* V1 */
static void test_three_in_a_fresh_ring(void **state)
{
	struct fixture f;

	setup(&f, true, false, true);
	snapshot(&f);
	expect_end(&f);
	for (unsigned i = 1; i <= 3; i++)
		perf_memory__sample(&f.ring, i, 0, 0);
	assert_true(f.ring.head == -72ull);
	snapshot(&f);
	assert_int_equal(f.b.valid, 72);
	for (unsigned i = 1; i <= 3; i++)
		expect_stamp(&f, PERF_RECORD_SAMPLE, i);
	expect_end(&f);
	expect_rest(&f, 0, 0, 0, 0);
	assert_int_equal(f.b.hole, 0);
	teardown(&f);
}

/* V2 */
static void test_two_hundred_more(void **state)
{
	struct fixture f;

	setup(&f, true, false, true);
	for (unsigned i = 1; i <= 203; i++)
		perf_memory__sample(&f.ring, i, 0, 0);
	assert_true(f.ring.head == -4872ull);
	snapshot(&f);
	for (unsigned i = 34; i <= 203; i++)
		expect_stamp(&f, PERF_RECORD_SAMPLE, i);
	expect_end(&f);
	expect_rest(&f, 1, 0, 0, 16);
	assert_int_equal(f.b.hole, 4872 - 4096);
	teardown(&f);
}

/* V3, in records of 8 bytes: {0,1,2,3}, head -(4 + 2): newest first it is {2,3} {0,1}. */
static void test_window_goes_round(void **state)
{
	static const uint16_t want[] = {1, 0, 3, 2};
	struct fixture f;
	struct perf_record record = {0};
	struct perf_snapshot s;

	setup(&f, false, false, false);
	for (uint16_t i = 0; i < 4; i++) {
		perf_bytes__begin(&bytes, PERF_RECORD_SWITCH, i);
		perf_bytes__end(&bytes);
		memcpy(f.copy.data + SIZE - 32 + i * 8, bytes.at, 8);
	}
	s = (struct perf_snapshot){
		.bytes = f.copy.data + SIZE - 32, .size = 32, .head = -48ull, .limit = -48ull};
	perf_backward__init(&f.b, &f.layout, &s, f.index);
	assert_int_equal(f.b.valid, 32);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(perf_backward__next(&f.b, &f.layout, &record), PERF_NEXT_RECORD);
		assert_int_equal(record.misc, want[i]);
	}
	expect_end(&f);
	teardown(&f);
}

/* V4: s2, LOST, s1 in memory. */
static void test_lost_after_a_pause(void **state)
{
	struct fixture f;
	struct perf_loss loss;

	setup(&f, true, false, true);
	perf_memory__sample(&f.ring, 1, 0, 0);
	f.ring.paused = true;
	for (unsigned i = 0; i < 7; i++)
		assert_false(perf_memory__sample(&f.ring, 2 + i, 0, 0));
	f.ring.paused = false;
	perf_memory__sample(&f.ring, 11, 0, 0);
	perf_memory__sample(&f.ring, 12, 0, 0);
	snapshot(&f);
	assert_int_equal(
		((struct perf_event_header *)perf_ring__at(f.b.base, f.b.mask, f.b.head + 24))
			->type,
		PERF_RECORD_LOST);
	assert_int_equal(perf_record__lost(&f.layout,
					   perf_ring__at(f.b.base, f.b.mask, f.b.head + 24), 40,
					   &loss),
			 1);
	assert_int_equal(loss.lost, 7);
	expect_stamp(&f, PERF_RECORD_SAMPLE, 1);
	expect_stamp(&f, PERF_RECORD_LOST, 11);
	expect_stamp(&f, PERF_RECORD_SAMPLE, 11);
	expect_stamp(&f, PERF_RECORD_SAMPLE, 12);
	expect_end(&f);
	teardown(&f);
}

/* V4 where the sample has been overwritten: LOST is the oldest that is left. */
static void test_lost_without_its_sample(void **state)
{
	struct fixture f;

	setup(&f, true, false, true);
	f.ring.lost = 7;
	perf_memory__sample(&f.ring, 1, 0, 0);
	for (unsigned i = 2; i < 171; i++)
		perf_memory__sample(&f.ring, i, 0, 0);
	/* 169 x 24 + 40 = 4096: all but the sample that LOST came with. */
	snapshot(&f);
	expect_stamp(&f, PERF_RECORD_LOST, 1 + PERF_LOST_LATER_NS);
	for (unsigned i = 2; i < 171; i++)
		expect_stamp(&f, PERF_RECORD_SAMPLE, i);
	expect_end(&f);
	expect_rest(&f, 0, 0, 0, 0);
	assert_int_equal(f.b.hole, 24);
	teardown(&f);
}

/* V4, two pauses in a row with one sample between them: none changes places with another's. */
static void test_lost_twice(void **state)
{
	struct fixture f;

	setup(&f, true, false, true);
	for (unsigned i = 1; i <= 3; i++) {
		f.ring.lost = i;
		perf_memory__sample(&f.ring, 10 * i, 0, 0);
	}
	snapshot(&f);
	for (unsigned i = 1; i <= 3; i++) {
		expect_stamp(&f, PERF_RECORD_LOST, 10 * i);
		expect_stamp(&f, PERF_RECORD_SAMPLE, 10 * i);
	}
	expect_end(&f);
	teardown(&f);
}

/* V4 where the sample makes no sense: LOST stays behind the one before, which it has nothing to do with. */
static void test_lost_with_a_broken_sample(void **state)
{
	struct fixture f;

	setup(&f, true, false, true);
	perf_memory__sample(&f.ring, 1, 0, 0);
	f.ring.lost = 7;
	perf_memory__sample(&f.ring, 2, 0, 0);
	perf_memory__put(&f.ring, f.ring.head + 40, &(uint32_t){UINT32_MAX}, 4);
	perf_memory__sample(&f.ring, 3, 0, 0);
	snapshot(&f);
	expect_stamp(&f, PERF_RECORD_SAMPLE, 1);
	expect_stamp(&f, PERF_RECORD_LOST, 2 + PERF_LOST_LATER_NS);
	expect_stamp(&f, PERF_RECORD_SAMPLE, 3);
	expect_end(&f);
	expect_rest(&f, 0, 0, 1, 24);
	teardown(&f);
}

/* V5 */
static void test_exactly_one_ring(void **state)
{
	struct fixture f;

	setup(&f, false, false, true);
	for (unsigned i = 0; i < 256; i++)
		perf_memory__sample(&f.ring, i, 0, 0);
	for (unsigned more = 0; more < 3; more++) {
		f.prev = 0;
		snapshot(&f);
		for (unsigned i = 0; i < 256; i++)
			expect_stamp(&f, PERF_RECORD_SAMPLE, more + i);
		expect_end(&f);
		expect_rest(&f, 0, 0, 0, 0);
		perf_memory__sample(&f.ring, 256 + more, 0, 0);
	}
	teardown(&f);
}

/* V6, alone, and with newer ones before it. */
static void test_larger_than_the_ring(void **state)
{
	struct fixture f;

	setup(&f, false, true, true);
	perf_memory__sample(&f.ring, 1, 4, 0);
	perf_memory__sample(&f.ring, 2, 8224 - 20, 1);
	snapshot(&f);
	expect_end(&f);
	expect_rest(&f, 0, 1, 0, 4096);
	f.prev = 0;
	for (unsigned i = 3; i < 6; i++)
		perf_memory__sample(&f.ring, i, 4, 0);
	snapshot(&f);
	for (unsigned i = 3; i < 6; i++)
		expect_stamp(&f, PERF_RECORD_SAMPLE, i);
	expect_end(&f);
	expect_rest(&f, 0, 1, 0, 4096 - 3 * 24);
	/* The next snapshot has nothing to do with it. */
	perf_memory__sample(&f.ring, 6, 4, 0);
	snapshot(&f);
	expect_stamp(&f, PERF_RECORD_SAMPLE, 6);
	expect_end(&f);
	expect_rest(&f, 0, 0, 0, 0);
	teardown(&f);
}

/* V6, whatever it has left in the place of its header. Without a hole none can have been there. */
static void test_header_that_can_not_be(void **state)
{
	static const uint16_t sizes[] = {0, 7, 20, 4104, 8224, 65528, 65535};
	struct fixture f;

	setup(&f, false, false, true);
	for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (unsigned count = 255; count < 258; count++) {
			bool hole = count > 256;

			f.ring.head = f.prev = 0;
			for (unsigned n = 0; n < count; n++)
				perf_memory__sample(&f.ring, n, 0, 0);
			perf_memory__put(&f.ring, f.ring.head + 16 + 6, &sizes[i], 2);
			snapshot(&f);
			expect_stamp(&f, PERF_RECORD_SAMPLE, count - 1);
			expect_end(&f);
			expect_rest(&f, 0, hole, !hole, f.b.valid - 16);
		}
	}
	teardown(&f);
}

/* V7 */
static void test_between_two_snapshots(void **state)
{
	static const unsigned more[] = {0, 5, 256, 257, 1000, 1};
	struct fixture f;
	unsigned stamp = 0;

	setup(&f, false, false, true);
	for (unsigned i = 0; i < ARRAY_SIZE(more); i++) {
		unsigned kept = more[i] < 256 ? more[i] : 256;

		for (unsigned n = 0; n < more[i]; n++)
			perf_memory__sample(&f.ring, stamp++, 0, 0);
		snapshot(&f);
		for (unsigned n = 0; n < kept; n++)
			expect_stamp(&f, PERF_RECORD_SAMPLE, stamp - kept + n);
		expect_end(&f);
		assert_int_equal(f.b.hole, (more[i] - kept) * 16);
	}
	teardown(&f);
}

/* V8: records of 272 bytes. */
static void test_newest_fifteen(void **state)
{
	struct fixture f;

	setup(&f, false, true, true);
	for (unsigned i = 0; i < 16; i++) {
		perf_memory__sample(&f.ring, i, 247, i);
	}
	assert_true(f.ring.head == -16 * 272ull);
	snapshot(&f);
	for (unsigned i = 1; i < 16; i++)
		expect_stamp(&f, PERF_RECORD_SAMPLE, i);
	expect_end(&f);
	expect_rest(&f, 1, 0, 0, 16);
	teardown(&f);
}

/* What was overwritten while the copy was made is cut off at the old end, up to all there is. */
static void test_overwritten_while_copying(void **state)
{
	struct fixture f;

	setup(&f, true, false, true);
	for (unsigned i = 0; i < 200; i++)
		perf_memory__sample(&f.ring, i, 0, 0);
	for (uint64_t cut = 0; cut <= SIZE + 64; cut += 8) {
		uint64_t valid = cut < SIZE ? SIZE - cut : 0;

		f.prev = 0;
		memcpy(f.copy.data, f.ring.data, SIZE);
		for (uint64_t i = 0; i < cut; i += 8)
			perf_memory__put(&f.copy, f.ring.head - cut + i, "overwrit", 8);
		take(&f, f.ring.head, f.ring.head - cut);
		assert_int_equal(f.b.valid, valid);
		assert_int_equal(f.b.hole, 4800 - valid);
		for (uint64_t i = 200 - valid / 24; i < 200; i++)
			expect_stamp(&f, PERF_RECORD_SAMPLE, i);
		expect_end(&f);
		expect_rest(&f, valid % 24 ? 1 : 0, 0, 0, valid % 24);
	}
	teardown(&f);
}

/* Heads that went the wrong way, as after a mix-up of rings, and one between records. */
static void test_heads_of_no_use(void **state)
{
	struct fixture f;

	setup(&f, true, false, true);
	for (unsigned i = 0; i < 200; i++)
		perf_memory__sample(&f.ring, i, 0, 0);
	memcpy(f.copy.data, f.ring.data, SIZE);
	f.prev = f.ring.head - 48;
	take(&f, f.ring.head, f.ring.head);
	expect_end(&f);
	assert_int_equal(f.b.hole, 0);
	f.prev = 0;
	take(&f, f.ring.head, f.ring.head + 480); /* a limit above head cuts nothing off */
	assert_int_equal(f.b.count, 170);
	for (uint64_t off = 1; off < 8; off++) {
		f.prev = 0;
		take(&f, f.ring.head + off, f.ring.head);
		expect_end(&f);
		assert_int_equal(f.b.broken, 1);
		assert_int_equal(f.b.skipped, (SIZE - off) & ~7ull);
	}
	teardown(&f);
}

/* F2's rule in this direction: alone where the length is of use, else all that is older. */
static void test_broken_records(void **state)
{
	static const struct {
		uint32_t at;
		uint32_t value;
		unsigned kept, skipped;
	} faults[] = {
		{0, UINT32_MAX, 9, 24},
		{0, 0, 9, 24},
		{0, 64, 9, 24},
		/* Sizes stand in the upper half of the word. */
		{4, 0, 4, 6 * 24},
		{4, 7u << 16, 4, 6 * 24},
		{4, 20u << 16, 4, 6 * 24},
		{4, 4096u << 16, 4, 6 * 24},
	};
	struct fixture f;

	setup(&f, true, false, true);
	for (unsigned i = 0; i < ARRAY_SIZE(faults); i++) {
		f.ring.head = f.prev;
		for (unsigned n = 0; n < 10; n++)
			perf_memory__sample(&f.ring, n, 0, 0);
		perf_memory__put(&f.ring, f.ring.head + 4 * 24 + faults[i].at, &faults[i].value, 4);
		snapshot(&f);
		assert_int_equal(f.b.count, faults[i].kept);
		expect_rest(&f, 0, 0, 1, faults[i].skipped);
	}
	teardown(&f);
}

/* What the ring was given, as a plain list. */
struct written {
	uint64_t pos, stamp_ns;
	uint32_t size;
	bool lost;
};

#define WRITTEN_MAX 100000

static struct written *list;
static unsigned nr_written;

static void write_some(struct fixture *f, struct rng *rng, unsigned count)
{
	while (count--) {
		uint64_t stamp_ns = 1000 + nr_written * 10ull, before = f->ring.head;
		uint32_t payload = (uint32_t)rng__range(rng, 7, 300), size;

		f->ring.paused = rng__chance(rng, 30);
		if (!perf_memory__sample(&f->ring, stamp_ns, payload, stamp_ns))
			continue;
		size = (uint32_t)((20 + payload + 7) / 8 * 8);
		if (before - f->ring.head != size)
			list[nr_written++] = (struct written){.pos = f->ring.head,
							      .stamp_ns = stamp_ns,
							      .size = 32,
							      .lost = true};
		list[nr_written++] =
			(struct written){.pos = before - size, .stamp_ns = stamp_ns, .size = size};
	}
}

/* All of the list that is in the window, and nothing else, in the list's order. */
static void check_window(struct fixture *f, uint64_t prev, uint64_t head, uint64_t limit)
{
	uint64_t end = prev - head < limit + SIZE - head ? prev - head : limit + SIZE - head;
	unsigned found = 0;
	uint64_t whole = 0;

	for (unsigned i = 0; i < nr_written; i++) {
		const struct written *w = &list[i];
		struct weir_perf_sample sample;
		struct perf_record record = {0};
		const void *body;
		uint32_t len;

		if (w->pos - head >= end || w->pos - head + w->size > end)
			continue;
		found++;
		whole += w->size;
		assert_int_equal(perf_backward__next(&f->b, &f->layout, &record), PERF_NEXT_RECORD);
		assert_true(record.pos == w->pos && record.size == w->size);
		if (w->lost) {
			assert_int_equal(record.type, PERF_RECORD_LOST);
			continue;
		}
		assert_true(record.stamp_ns == w->stamp_ns);
		body = perf_forward__body(f->b.base, f->b.mask, record.pos, &len, scratch);
		assert_int_equal(perf_record__parse(&f->layout, body, len, &sample), 0);
		assert_true(perf_memory__payload_ok(sample.raw, w->size - 27, w->stamp_ns));
	}
	expect_end(f);
	assert_int_equal(f->b.count, found);
	assert_int_equal(f->b.skipped, end - whole);
	assert_int_equal(f->b.torn, end != whole);
	assert_int_equal(f->b.broken + f->b.oversized, 0);
}

/* V7, V10: any row of snapshots, with a writer that goes on while they are made. */
static void test_any_row_of_snapshots(void **state)
{
	list = calloc(WRITTEN_MAX, sizeof(*list));
	assert_non_null(list);
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct rng rng = {.state = seed};
		struct fixture f;

		nr_written = 0;
		setup(&f, false, true, true);
		for (unsigned round = 0; round < 60; round++) {
			uint64_t prev = f.prev, head;

			write_some(&f, &rng, (unsigned)rng__below(&rng, 40));
			head = f.ring.head;
			/* Half of it was copied before the writer went on, half after. */
			memcpy(f.copy.data, f.ring.data, SIZE / 2);
			write_some(&f, &rng, (unsigned)rng__below(&rng, 12));
			memcpy(f.copy.data + SIZE / 2, f.ring.data + SIZE / 2, SIZE / 2);
			/* Whatever is being written is not in the head yet. */
			if (head - f.ring.head >= SIZE)
				continue;
			take(&f, head, f.ring.head);
			check_window(&f, prev, head, f.ring.head);
		}
		teardown(&f);
	}
	free(list);
}

/* G8 */
static void test_hostile_bytes(void **state)
{
	static const bool yes_no[] = {false, true};
	struct rng rng = {.state = 13};
	struct fixture f;

	for (unsigned way = 0; way < 8; way++) {
		setup(&f, yes_no[way & 1], yes_no[way >> 1 & 1], yes_no[way >> 2]);
		for (unsigned round = 0; round < 3000; round++) {
			uint64_t head = rng__next(&rng) & (rng__chance(&rng, 900) ? ~7ull : ~0ull);
			uint64_t taken = 0;
			struct perf_record record = {0};
			uint32_t len;

			for (uint64_t i = 0; i < SIZE; i += 8) {
				struct perf_event_header header = {
					.type = (uint32_t)rng__below(&rng, 12),
					.size = (uint16_t)(8 * rng__below(&rng, 30)),
				};

				if (rng__chance(&rng, 20))
					memcpy(&header, &(uint64_t){rng__next(&rng)}, 8);
				memcpy(f.copy.data + i, &header, 8);
			}
			f.prev = head + rng__below(&rng, 3 * SIZE);
			take(&f, head, head - rng__below(&rng, 2 * SIZE));
			while (perf_backward__next(&f.b, &f.layout, &record) == PERF_NEXT_RECORD) {
				assert_non_null(perf_forward__body(f.b.base, f.b.mask, record.pos,
								   &len, scratch));
				assert_true(record.pos - head + len <= f.b.valid);
				taken += len;
			}
			assert_int_equal(f.b.done, f.b.count);
			assert_true(taken + f.b.skipped == f.b.valid || head & 7);
		}
		teardown(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_three_in_a_fresh_ring),
		cmocka_unit_test(test_two_hundred_more),
		cmocka_unit_test(test_window_goes_round),
		cmocka_unit_test(test_lost_after_a_pause),
		cmocka_unit_test(test_lost_without_its_sample),
		cmocka_unit_test(test_lost_twice),
		cmocka_unit_test(test_lost_with_a_broken_sample),
		cmocka_unit_test(test_exactly_one_ring),
		cmocka_unit_test(test_larger_than_the_ring),
		cmocka_unit_test(test_header_that_can_not_be),
		cmocka_unit_test(test_between_two_snapshots),
		cmocka_unit_test(test_newest_fifteen),
		cmocka_unit_test(test_overwritten_while_copying),
		cmocka_unit_test(test_heads_of_no_use),
		cmocka_unit_test(test_broken_records),
		cmocka_unit_test(test_any_row_of_snapshots),
		cmocka_unit_test(test_hostile_bytes),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	return r ? 1 : 0;
}
