// SPDX-License-Identifier: BSD-2-Clause
/* ring/single_writer: runs and holes, the end of the memory, 32-bit numbers, and hostile bytes (G8). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "ring/single_writer.h"
#include "rng.h"

#define STRIDE	40
#define RECORDS 1024u

struct fixture {
	struct single_writer ring;
	uint8_t *data; /* what reads beyond it is seen by a sanitizer */
	const struct weir_record *first;
	uint64_t count;
};

/* Memory for so many records, of which the ring is the first RECORDS. */
static void setup_in(struct fixture *f, size_t records)
{
	memset(f, 0, sizeof(*f));
	f->data = calloc(records, STRIDE);
	assert_non_null(f->data);
	f->ring = (struct single_writer){.data = f->data, .mask = RECORDS - 1, .stride = STRIDE};
}

static void setup(struct fixture *f)
{
	setup_in(f, RECORDS);
}

static void teardown(struct fixture *f)
{
	free(f->data);
}

static void put(struct fixture *f, uint64_t pos, uint64_t seq)
{
	struct weir_record *record =
		(struct weir_record *)(f->data + (pos & (RECORDS - 1)) * STRIDE);

	*record = (struct weir_record){.stamp = 1000 + pos, .seq = (uint32_t)seq};
}

static void expect_step(struct fixture *f, uint64_t head, uint64_t limit,
			enum single_writer_step step, uint64_t count)
{
	f->count = 0;
	assert_int_equal(single_writer__next(&f->ring, head, limit, &f->first, &f->count), step);
	assert_int_equal(f->count, count);
}

static void test_empty(void **state)
{
	struct fixture f;

	setup(&f);
	expect_step(&f, 0, 0, SINGLE_WRITER_END, 0);
	f.ring.pos = 5;
	expect_step(&f, 5, 9, SINGLE_WRITER_END, 0);
	/* A head behind us is no reason to go back. */
	expect_step(&f, 4, 9, SINGLE_WRITER_END, 0);
	assert_int_equal(f.ring.pos, 5);
	teardown(&f);
}

static void test_runs(void **state)
{
	struct fixture f;

	setup(&f);
	for (uint64_t i = 0; i < 600; i++)
		put(&f, i, i);
	for (uint64_t told = 0; told < 600; told += f.count) {
		uint64_t left = 600 - told;

		expect_step(&f, 600, 600, SINGLE_WRITER_RECORDS,
			    left < SINGLE_WRITER_RUN ? left : SINGLE_WRITER_RUN);
		assert_int_equal(f.first->stamp, 1000 + told);
	}
	expect_step(&f, 600, 600, SINGLE_WRITER_END, 0);
	teardown(&f);
}

/* A run ends where the memory does, even if the next number stands behind it. */
static void test_end_of_the_memory(void **state)
{
	struct fixture f;

	setup_in(&f, RECORDS + 1);
	((struct weir_record *)(f.data + RECORDS * STRIDE))->seq = 3 * RECORDS;
	f.ring.pos = f.ring.expect = 3 * RECORDS - 2;
	for (uint64_t i = f.ring.pos; i < 3 * RECORDS + 3; i++)
		put(&f, i, i);
	expect_step(&f, 3 * RECORDS + 3, 3 * RECORDS + 3, SINGLE_WRITER_RECORDS, 2);
	expect_step(&f, 3 * RECORDS + 3, 3 * RECORDS + 3, SINGLE_WRITER_RECORDS, 3);
	assert_ptr_equal(f.first, f.data);
	teardown(&f);
}

static void test_hole(void **state)
{
	struct fixture f;

	setup(&f);
	put(&f, 0, 0);
	put(&f, 1, 8);
	put(&f, 2, 9);
	expect_step(&f, 3, 10, SINGLE_WRITER_RECORDS, 1);
	expect_step(&f, 3, 10, SINGLE_WRITER_HOLE, 7);
	assert_int_equal(f.ring.pos, 1);
	expect_step(&f, 3, 10, SINGLE_WRITER_RECORDS, 2);
	assert_int_equal(f.ring.expect, 10);
	teardown(&f);
}

static void test_numbers_of_32_bits(void **state)
{
	const uint64_t start = (5ull << 32) - 2;
	struct fixture f;

	setup(&f);
	f.ring.expect = start;
	put(&f, 0, start);
	put(&f, 1, start + 1);
	put(&f, 2, start + 2);
	put(&f, 3, start + 1000);
	expect_step(&f, 4, start + 1001, SINGLE_WRITER_RECORDS, 3);
	expect_step(&f, 4, start + 1001, SINGLE_WRITER_HOLE, 997);
	expect_step(&f, 4, start + 1001, SINGLE_WRITER_RECORDS, 1);
	assert_int_equal(f.ring.expect, start + 1001);
	teardown(&f);
}

/* A number that was never given out, or was before: of 4,294,967,295 lost ones nothing is believed. */
static void test_nobodys_number(void **state)
{
	struct fixture f;

	setup(&f);
	put(&f, 0, 0);
	put(&f, 1, 0);
	put(&f, 2, 7);
	put(&f, 3, 1);
	expect_step(&f, 4, 5, SINGLE_WRITER_RECORDS, 1);
	expect_step(&f, 4, 5, SINGLE_WRITER_BROKEN, 1);
	expect_step(&f, 4, 5, SINGLE_WRITER_BROKEN, 1);
	expect_step(&f, 4, 5, SINGLE_WRITER_RECORDS, 1);
	expect_step(&f, 4, 5, SINGLE_WRITER_END, 0);
	assert_int_equal(f.ring.expect, 2);
	teardown(&f);
}

/* Nor is a record that has the number expected, when it was not given out yet. */
static void test_not_given_out_yet(void **state)
{
	struct fixture f;

	setup(&f);
	put(&f, 0, 0);
	put(&f, 1, 1);
	expect_step(&f, 2, 1, SINGLE_WRITER_RECORDS, 1);
	expect_step(&f, 2, 1, SINGLE_WRITER_BROKEN, 1);
	assert_int_equal(f.ring.expect, 1);
	teardown(&f);
}

static void test_head_beyond_the_ring(void **state)
{
	struct fixture f;

	setup(&f);
	expect_step(&f, RECORDS + 1, RECORDS + 1, SINGLE_WRITER_BROKEN, RECORDS + 1);
	expect_step(&f, RECORDS + 1, RECORDS + 1, SINGLE_WRITER_END, 0);
	/* A full one is not beyond. */
	for (uint64_t i = 0; i < RECORDS; i++)
		put(&f, RECORDS + 1 + i, i);
	expect_step(&f, 2 * RECORDS + 1, RECORDS, SINGLE_WRITER_RECORDS, SINGLE_WRITER_RUN);
	teardown(&f);
}

/* Any bytes, any head, any counter: it ends, and what it says adds up. */
static void test_hostile(void **state)
{
	struct rng rng = {7};
	struct fixture f;

	setup(&f);
	for (unsigned round = 0; round < 3000; round++) {
		uint64_t head = f.ring.pos + rng__below(&rng, 2 * RECORDS);
		uint64_t limit = rng__below(&rng, 2) ? f.ring.expect + rng__below(&rng, 5000)
						     : rng__next(&rng);
		uint64_t pos = f.ring.pos, expect = f.ring.expect, moved = 0, numbers = 0;
		enum single_writer_step step;

		for (unsigned i = 0; i < 64; i++)
			put(&f, rng__next(&rng),
			    rng__below(&rng, 4) ? expect + rng__below(&rng, 300) : rng__next(&rng));
		while ((step = single_writer__next(&f.ring, head, limit, &f.first, &f.count)) !=
		       SINGLE_WRITER_END) {
			assert_true(f.count > 0);
			moved += step != SINGLE_WRITER_HOLE ? f.count : 0;
			numbers += step != SINGLE_WRITER_BROKEN ? f.count : 0;
			assert_true(moved <= head - pos);
		}
		assert_int_equal(f.ring.pos, pos + moved);
		assert_int_equal(f.ring.pos, head);
		assert_int_equal(f.ring.expect, expect + numbers);
		assert_true(!numbers || (int64_t)(limit - f.ring.expect) >= 0);
	}
	teardown(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_runs),
		cmocka_unit_test(test_end_of_the_memory),
		cmocka_unit_test(test_hole),
		cmocka_unit_test(test_numbers_of_32_bits),
		cmocka_unit_test(test_nobodys_number),
		cmocka_unit_test(test_not_given_out_yet),
		cmocka_unit_test(test_head_beyond_the_ring),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
