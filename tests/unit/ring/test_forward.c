/* SPDX-License-Identifier: BSD-2-Clause */
/* ring/perf_forward.h: F1 to F6, the stamps of all sorts of records, and bytes that mean nothing (G8). */
#include "unit.h"

#include "perf_memory.h"
#include "ring/perf_forward.h"

#include <stdlib.h>

#define SIZE 4096u

static struct perf_bytes bytes;
static uint8_t scratch[65536] __attribute__((aligned(8)));

static struct perf_layout layout_of(const struct perf_memory *m)
{
	struct perf_layout l;

	assert_int_equal(perf_layout__init(&l, perf_memory__sample_type(m), m->sample_id_all, 0),
			 0);
	return l;
}

static struct perf_forward reader(const struct perf_memory *m)
{
	return (struct perf_forward){.base = m->data, .mask = m->size - 1, .pos = m->tail};
}

static void expect_end(struct perf_forward *r, const struct perf_layout *l, uint64_t head)
{
	uint64_t pos = r->pos;
	struct perf_record record = {0};

	assert_int_equal(perf_forward__next(r, l, head, &record), PERF_NEXT_END);
	assert_true(r->pos == pos);
}

static void expect_stamp(struct perf_forward *r, const struct perf_layout *l, uint64_t head,
			 uint32_t type, uint64_t stamp_ns)
{
	uint64_t pos = r->pos;
	struct perf_record record = {0};

	assert_int_equal(perf_forward__next(r, l, head, &record), PERF_NEXT_RECORD);
	assert_true(record.pos == pos);
	assert_int_equal(record.type, type);
	assert_true(record.has_stamp);
	assert_true(record.stamp_ns == stamp_ns);
	assert_true(r->pos == pos + record.size);
}

static void expect_broken(struct perf_forward *r, const struct perf_layout *l, uint64_t head,
			  uint64_t bytes_skipped)
{
	uint64_t pos = r->pos;
	struct perf_record record = {0};

	assert_int_equal(perf_forward__next(r, l, head, &record), PERF_NEXT_BROKEN);
	assert_true(record.pos == pos);
	assert_true(r->pos == pos + bytes_skipped);
}

/* F1, in records of 8 bytes, the shortest that there are: {0,1}, and wrapped {1} {0}. */
static void test_two_in_a_ring_of_two(void **state)
{
	struct perf_memory m;
	struct perf_layout l;
	struct perf_record record = {0};

	perf_memory__init(&m, 16);
	l = layout_of(&m);
	for (uint16_t i = 0; i < 2; i++) {
		perf_bytes__begin(&bytes, PERF_RECORD_SWITCH, i);
		perf_bytes__end(&bytes);
		perf_memory__put(&m, i * 8, bytes.at, 8);
	}
	for (uint64_t tail = 0; tail < 80; tail += 8) {
		struct perf_forward r = {m.data, m.size - 1, tail};

		for (unsigned i = 0; i < 2; i++) {
			assert_int_equal(perf_forward__next(&r, &l, tail + 16, &record),
					 PERF_NEXT_RECORD);
			assert_int_equal(record.misc, (tail / 8 + i) % 2);
			assert_false(record.has_stamp);
		}
		expect_end(&r, &l, tail + 16);
	}
	perf_memory__free(&m);
}

/* F2: what has no usable length takes all up to head with it, not what comes after. */
static void test_lengths_of_no_use(void **state)
{
	static const uint16_t sizes[] = {0, 4, 7, 9, 20, 4104, 65528, 65535};
	struct perf_memory m;
	struct perf_layout l;

	perf_memory__init(&m, SIZE);
	m.with_id = m.sample_id_all = true;
	l = layout_of(&m);
	for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct perf_forward r;
		uint64_t bad;

		m.tail = m.head;
		r = reader(&m);
		assert_true(perf_memory__sample(&m, 1, 0, 0));
		bad = m.head;
		for (unsigned n = 0; n < 3; n++)
			assert_true(perf_memory__sample(&m, 2, 0, 0));
		perf_memory__put(&m, bad + 6, &sizes[i], 2);
		expect_stamp(&r, &l, m.head, PERF_RECORD_SAMPLE, 1);
		expect_broken(&r, &l, m.head, 3 * 24);
		expect_end(&r, &l, m.head);
		assert_true(perf_memory__sample(&m, 3, 0, 0));
		expect_stamp(&r, &l, m.head, PERF_RECORD_SAMPLE, 3);
	}
	perf_memory__free(&m);
}

/* F2: past head, by as little as can be. */
static void test_length_past_head(void **state)
{
	struct perf_memory m;
	struct perf_forward r;
	struct perf_layout l;

	perf_memory__init(&m, SIZE);
	l = layout_of(&m);
	r = reader(&m);
	perf_memory__sample(&m, 1, 0, 0);
	perf_memory__put(&m, 6, &(uint16_t){24}, 2);
	expect_broken(&r, &l, m.head, 16);
	perf_memory__free(&m);
}

/* F2: a length of use, and nonsense otherwise: the record alone is skipped. */
static void test_one_record_of_no_use(void **state)
{
	static const struct {
		uint32_t type;
		unsigned words; /* behind the header */
	} kinds[] = {
		{UINT32_MAX, 2},
		{0, 2},
		{64, 2},
		{68, 2},
		{PERF_RECORD_SAMPLE, 0},
		{PERF_RECORD_SAMPLE, 1},
		{PERF_RECORD_COMM, 1},
		{PERF_RECORD_LOST, 3},
		{PERF_RECORD_THROTTLE, 4},
		{PERF_RECORD_LOST_SAMPLES, 2},
		{PERF_RECORD_UNTHROTTLE, 4},
		{PERF_RECORD_SWITCH, 0},
	};
	struct perf_memory m;
	struct perf_layout l;

	perf_memory__init(&m, SIZE);
	m.with_id = m.sample_id_all = true;
	l = layout_of(&m);
	for (unsigned i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct perf_forward r;

		m.tail = m.head;
		r = reader(&m);
		perf_bytes__begin(&bytes, kinds[i].type, 0);
		for (unsigned n = 0; n < kinds[i].words; n++)
			perf_bytes__u64(&bytes, 1);
		perf_bytes__end(&bytes);
		assert_true(perf_memory__write(&m, &bytes, 1));
		assert_true(perf_memory__sample(&m, 2, 0, 0));
		expect_broken(&r, &l, m.head, bytes.len);
		expect_stamp(&r, &l, m.head, PERF_RECORD_SAMPLE, 2);
		expect_end(&r, &l, m.head);
	}
	perf_memory__free(&m);
}

/* F3, and a head that has stepped back as before 5.2. */
static void test_head_behind_tail(void **state)
{
	struct perf_memory m;
	struct perf_forward r;
	struct perf_layout l;

	perf_memory__init(&m, SIZE);
	l = layout_of(&m);
	for (uint64_t tail = 0; tail < 2 * SIZE; tail += 8) {
		r = (struct perf_forward){m.data, m.size - 1, tail};
		expect_end(&r, &l, tail);
		expect_end(&r, &l, tail - 8);
		expect_end(&r, &l, tail - 64);
	}
	perf_memory__free(&m);
}

/* A head that no kernel stores: between records, or farther away than the ring is long. */
static void test_head_of_no_use(void **state)
{
	struct perf_memory m;
	struct perf_forward r;
	struct perf_layout l;

	perf_memory__init(&m, SIZE);
	l = layout_of(&m);
	perf_memory__sample(&m, 1, 0, 0);
	for (uint64_t more = 1; more < 8; more++) {
		r = reader(&m);
		expect_end(&r, &l, more);
		expect_stamp(&r, &l, m.head + more, PERF_RECORD_SAMPLE, 1);
		expect_end(&r, &l, m.head + more);
	}
	r = reader(&m);
	expect_broken(&r, &l, SIZE + 8, SIZE + 8);
	expect_end(&r, &l, SIZE + 8);
	r = reader(&m);
	expect_broken(&r, &l, 1ull << 60, 1ull << 60);
	perf_memory__free(&m);
}

/* Write the record so that `first` bytes of it stand before the ring's end; read and compare. */
static void check_split(struct perf_memory *m, const struct perf_layout *l, uint64_t first)
{
	struct perf_record record = {0};
	struct perf_forward r;
	const void *body;
	uint32_t len = 0;

	m->head = m->tail = 3 * m->size - first;
	r = reader(m);
	assert_true(perf_memory__write(m, &bytes, 1));
	assert_int_equal(perf_forward__next(&r, l, m->head, &record), PERF_NEXT_RECORD);
	assert_true(record.stamp_ns == 12345);
	body = perf_forward__body(m->data, m->size - 1, record.pos, &len, scratch);
	assert_int_equal(len, bytes.len);
	assert_true((body == scratch) == (first < len));
	assert_memory_equal(body, bytes.at, len);
}

/* F4 */
static void test_every_split(void **state)
{
	static const uint32_t payloads[] = {4, 12, 60, 252, 1020, 4092, 32764, 65500};
	struct perf_memory m;
	struct perf_layout l;

	perf_memory__init(&m, 131072);
	m.with_id = m.with_raw = true;
	l = layout_of(&m);
	for (unsigned i = 0; i < ARRAY_SIZE(payloads); i++) {
		perf_memory__build(&m, &bytes, 12345, payloads[i], i);
		for (uint64_t first = 8; first <= bytes.len; first += 8)
			check_split(&m, &l, first);
	}
	assert_int_equal(bytes.len, PERF_RECORD_SIZE_MAX);
	perf_memory__free(&m);
}

/* A place where no record is, should anybody ask for it. */
static void test_body_of_no_record(void **state)
{
	static const uint16_t sizes[] = {0, 7, SIZE + 8, 65535};
	struct perf_memory m;
	uint32_t len;

	perf_memory__init(&m, SIZE);
	for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
		perf_memory__put(&m, 6, &sizes[i], 2);
		assert_null(perf_forward__body(m.data, m.size - 1, 0, &len, scratch));
	}
	perf_memory__free(&m);
}

/* Positions are free to pass 2^64. */
static void test_past_the_last_position(void **state)
{
	struct perf_memory m;
	struct perf_forward r;
	struct perf_layout l;

	perf_memory__init(&m, SIZE);
	l = layout_of(&m);
	m.head = m.tail = -32ull;
	r = reader(&m);
	for (unsigned i = 0; i < 4; i++)
		perf_memory__sample(&m, i, 0, 0);
	assert_int_equal(m.head, 32);
	for (unsigned i = 0; i < 4; i++)
		expect_stamp(&r, &l, m.head, PERF_RECORD_SAMPLE, i);
	expect_end(&r, &l, m.head);
	perf_memory__free(&m);
}

/* F5: what is lost stands before what then found room. */
static void test_lost_then_a_small_one(void **state)
{
	struct perf_memory m;
	struct perf_forward r;
	struct perf_layout l;
	struct perf_loss loss;
	uint32_t len;

	perf_memory__init(&m, SIZE);
	m.with_raw = m.sample_id_all = true;
	l = layout_of(&m);
	r = reader(&m);
	for (unsigned i = 0; i < 22; i++)
		assert_int_equal(perf_memory__sample(&m, 100 + i, 192 - 20, i), i < 21);
	assert_true(perf_memory__sample(&m, 200, 4, 0));
	for (unsigned i = 0; i < 21; i++)
		expect_stamp(&r, &l, m.head, PERF_RECORD_SAMPLE, 100 + i);
	/* Not by its own stamp, which is later than that of the small one. */
	expect_stamp(&r, &l, m.head, PERF_RECORD_LOST, 200);
	assert_int_equal(
		perf_record__lost(&l,
				  perf_forward__body(m.data, m.size - 1, r.pos - 32, &len, scratch),
				  32, &loss),
		1);
	assert_int_equal(loss.lost, 1);
	assert_int_equal(loss.stamp_ns, 200 + PERF_LOST_LATER_NS);
	expect_stamp(&r, &l, m.head, PERF_RECORD_SAMPLE, 200);
	expect_end(&r, &l, m.head);
	perf_memory__free(&m);
}

static unsigned drain(struct perf_forward *r, const struct perf_layout *l, uint64_t head,
		      uint64_t *lost)
{
	struct perf_record record = {0};
	struct perf_loss loss;
	unsigned samples = 0;
	uint32_t len;

	while (perf_forward__next(r, l, head, &record) == PERF_NEXT_RECORD) {
		const void *body = perf_forward__body(r->base, r->mask, record.pos, &len, scratch);

		samples += record.type == PERF_RECORD_SAMPLE;
		if (perf_record__lost(l, body, len, &loss) == 1)
			*lost += loss.lost;
	}
	return samples;
}

/* F6: 170 of 300; of the others the ring tells only when something is written later. */
static void test_lost_at_the_end(void **state)
{
	struct perf_memory m;
	struct perf_forward r;
	struct perf_layout l;
	uint64_t lost = 0;

	perf_memory__init(&m, SIZE);
	m.with_id = m.sample_id_all = true;
	l = layout_of(&m);
	r = reader(&m);
	for (unsigned i = 0; i < 300; i++)
		perf_memory__sample(&m, i, 0, 0);
	assert_int_equal(m.head, 4080);
	assert_int_equal(drain(&r, &l, m.head, &lost), 170);
	assert_int_equal(lost, 0);
	assert_int_equal(m.lost_total, 130);
	m.tail = r.pos;
	perf_memory__sample(&m, 300, 0, 0);
	assert_int_equal(drain(&r, &l, m.head, &lost), 1);
	assert_int_equal(lost, 130);
	perf_memory__free(&m);
}

/* A LOST without a stamp of its own is bounded by what it came with; where nothing follows, by nothing. */
static void test_stamp_of_lost(void **state)
{
	struct perf_memory m;
	struct perf_forward r;
	struct perf_layout l;
	struct perf_record record = {0};

	perf_memory__init(&m, SIZE);
	l = layout_of(&m);
	r = reader(&m);
	m.lost = 3;
	perf_memory__sample(&m, 50, 0, 0);
	expect_stamp(&r, &l, m.head, PERF_RECORD_LOST, 50);
	r.pos = 0;
	assert_int_equal(perf_forward__next(&r, &l, 24, &record), PERF_NEXT_RECORD);
	assert_int_equal(record.type, PERF_RECORD_LOST);
	assert_false(record.has_stamp);
	/* What follows is broken, and bounds nothing. */
	r.pos = 0;
	perf_memory__put(&m, 24 + 6, &(uint16_t){8}, 2);
	assert_int_equal(perf_forward__next(&r, &l, m.head, &record), PERF_NEXT_RECORD);
	assert_false(record.has_stamp);
	perf_memory__free(&m);
}

/* Counted from the end, whatever stands before it; THROTTLE has its own in front. */
static void test_stamps_of_others(void **state)
{
	struct perf_memory m;
	struct perf_forward r;
	struct perf_layout l;

	perf_memory__init(&m, SIZE);
	m.with_id = m.sample_id_all = true;
	l = layout_of(&m);
	r = reader(&m);
	for (unsigned words = 0; words < 12; words++) {
		perf_bytes__begin(&bytes, PERF_RECORD_COMM, 0);
		for (unsigned i = 0; i < words; i++)
			perf_bytes__u64(&bytes, 1);
		perf_bytes__u64(&bytes, 1000 + words);
		perf_bytes__u64(&bytes, PERF_ID);
		perf_bytes__end(&bytes);
		perf_memory__write(&m, &bytes, 0);
		expect_stamp(&r, &l, m.head, PERF_RECORD_COMM, 1000 + words);
	}
	perf_bytes__begin(&bytes, PERF_RECORD_THROTTLE, 0);
	for (unsigned i = 0; i < 5; i++)
		perf_bytes__u64(&bytes, 70 + i);
	perf_bytes__end(&bytes);
	perf_memory__write(&m, &bytes, 0);
	expect_stamp(&r, &l, m.head, PERF_RECORD_THROTTLE, 70);
	perf_memory__free(&m);
}

/* The program's own stamp, at any offset and across the ring's end. */
static void test_stamps_in_the_payload(void **state)
{
	struct perf_memory m;
	struct perf_layout l;

	perf_memory__init(&m, SIZE);
	m.with_raw = true;
	l = layout_of(&m);
	for (uint32_t offset = 0; offset <= 24; offset++) {
		assert_int_equal(perf_layout__payload(&l, offset, 32), 0);
		for (uint64_t first = 8; first <= 64; first += 8) {
			struct perf_forward r;

			m.head = m.tail = m.size - first;
			r = reader(&m);
			perf_memory__build(&m, &bytes, 5, 32, 0);
			memcpy(bytes.at + 20 + offset, &(uint64_t){0x1122334455667788}, 8);
			perf_memory__write(&m, &bytes, 5);
			expect_stamp(&r, &l, m.head, PERF_RECORD_SAMPLE, 0x1122334455667788);
		}
	}
	perf_memory__free(&m);
}

/* A payload that ends before its stamp does, by its own length or by the record's. */
static void test_payload_too_short_for_its_stamp(void **state)
{
	static const uint32_t lengths[] = {0, 7, 11, 13, 4096, UINT32_MAX};
	struct perf_memory m;
	struct perf_layout l;

	perf_memory__init(&m, SIZE);
	m.with_raw = true;
	l = layout_of(&m);
	assert_int_equal(perf_layout__payload(&l, 4, 0), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(lengths); i++) {
		struct perf_forward r;

		m.tail = m.head;
		r = reader(&m);
		perf_memory__build(&m, &bytes, 5, 12, 0);
		memcpy(bytes.at + 16, &lengths[i], 4);
		perf_memory__write(&m, &bytes, 5);
		expect_broken(&r, &l, m.head, bytes.len);
	}
	perf_memory__free(&m);
}

/* One pass over whatever the ring holds: it ends, all bytes are accounted for, none outside is read. */
static void hostile_pass(struct perf_memory *m, const struct perf_layout *l, uint64_t head)
{
	struct perf_forward r = reader(m);
	uint64_t taken = 0, steps = 0;
	struct weir_perf_sample sample;
	struct perf_record record = {0};
	struct perf_loss loss;
	enum perf_next next;
	uint32_t len;

	while ((next = perf_forward__next(&r, l, head, &record)) != PERF_NEXT_END) {
		const void *body;

		assert_true(++steps <= m->size / 8);
		assert_true(r.pos - record.pos >= 8 && record.pos == m->tail + taken);
		taken = r.pos - m->tail;
		if (next == PERF_NEXT_BROKEN)
			continue;
		assert_true(r.pos - record.pos == record.size);
		body = perf_forward__body(m->data, m->size - 1, record.pos, &len, scratch);
		assert_non_null(body);
		assert_int_equal(len, record.size);
		perf_record__parse(l, body, len, &sample);
		perf_record__lost(l, body, len, &loss);
	}
	assert_true(r.pos == (head & ~7ull) || (int64_t)(head - m->tail) < 8);
}

/* A layout out of all there are. */
static void any_layout(struct rng *rng, struct perf_layout *l)
{
	uint64_t type = (rng__next(rng) & rng__next(rng) & ((1 << 25) - 1)) | PERF_SAMPLE_TIME;

	assert_int_equal(perf_layout__init(l, type, rng__chance(rng, 700), rng__below(rng, 32)), 0);
	if (rng__chance(rng, 300))
		perf_layout__payload(l, (uint32_t)rng__below(rng, 40), 0);
}

/* F2, G8: bytes of all sorts, mostly with a header that makes sense so that the walk goes on. */
static void test_hostile_bytes(void **state)
{
	static const uint16_t sizes[] = {0, 7, 8, 16, 24, 24, 32, 40, 64, 20, 65528, 4096};
	struct rng rng = {.state = 7};
	struct perf_memory m;
	struct perf_layout l;

	perf_memory__init(&m, SIZE);
	for (unsigned round = 0; round < 20000; round++) {
		unsigned nonsense = (unsigned)rng__below(&rng, 100);
		uint64_t pos = 0;

		any_layout(&rng, &l);
		for (uint64_t i = 0; i < SIZE; i += 8)
			memcpy(m.data + i, &(uint64_t){rng__next(&rng)}, 8);
		while (pos < SIZE) {
			uint64_t kind = rng__below(&rng, 12);
			struct perf_event_header header = {
				.type = kind ? (uint32_t)rng__below(&rng, 16)
					     : (uint32_t)rng__next(&rng),
				.size = (uint16_t)(8 * rng__range(&rng, 1, 30)),
			};

			if (rng__chance(&rng, nonsense))
				header.size = sizes[rng__below(&rng, ARRAY_SIZE(sizes))];
			perf_memory__put(&m, pos, &header, sizeof(header));
			pos += header.size >= 8 ? (header.size + 7) / 8 * 8 : 8;
		}
		m.tail = rng__next(&rng) & ~7ull;
		hostile_pass(&m, &l, m.tail + rng__below(&rng, SIZE + 1));
		hostile_pass(&m, &l, m.tail + SIZE);
		hostile_pass(&m, &l, rng__next(&rng));
	}
	perf_memory__free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_in_a_ring_of_two),
		cmocka_unit_test(test_lengths_of_no_use),
		cmocka_unit_test(test_length_past_head),
		cmocka_unit_test(test_one_record_of_no_use),
		cmocka_unit_test(test_head_behind_tail),
		cmocka_unit_test(test_head_of_no_use),
		cmocka_unit_test(test_every_split),
		cmocka_unit_test(test_body_of_no_record),
		cmocka_unit_test(test_past_the_last_position),
		cmocka_unit_test(test_lost_then_a_small_one),
		cmocka_unit_test(test_lost_at_the_end),
		cmocka_unit_test(test_stamp_of_lost),
		cmocka_unit_test(test_stamps_of_others),
		cmocka_unit_test(test_stamps_in_the_payload),
		cmocka_unit_test(test_payload_too_short_for_its_stamp),
		cmocka_unit_test(test_hostile_bytes),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	return r ? 1 : 0;
}
