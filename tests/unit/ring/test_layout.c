/* SPDX-License-Identifier: BSD-2-Clause */
/* ring/perf_layout.h: where fields stand, for every combination of them. */
#include "unit.h"

#include "ring/perf_layout.h"

#include <errno.h>
#include <linux/perf_event.h>

#define ALL_FIXED                                                                       \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | \
	 PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |  \
	 PERF_SAMPLE_PERIOD)

static void test_everything(void **state)
{
	struct perf_layout l;

	assert_int_equal(perf_layout__init(&l, ALL_FIXED, true, 0), 0);
	assert_int_equal(l.sample.identifier, 8);
	assert_int_equal(l.sample.ip, 16);
	assert_int_equal(l.sample.tid, 24);
	assert_int_equal(l.sample.time, 32);
	assert_int_equal(l.sample.addr, 40);
	assert_int_equal(l.sample.id, 48);
	assert_int_equal(l.sample.stream_id, 56);
	assert_int_equal(l.sample.cpu, 64);
	assert_int_equal(l.sample.period, 72);
	assert_int_equal(l.sample_min, 80);
	assert_int_equal(l.tail.identifier, 8);
	assert_int_equal(l.tail.cpu, 16);
	assert_int_equal(l.tail.stream_id, 24);
	assert_int_equal(l.tail.id, 32);
	assert_int_equal(l.tail.time, 40);
	assert_int_equal(l.tail.tid, 48);
	assert_int_equal(l.tail_bytes, 48);
	/* Not in a sample_id. */
	assert_int_equal(l.tail.ip, 0);
	assert_int_equal(l.tail.addr, 0);
	assert_int_equal(l.tail.period, 0);
}

static void test_time_alone(void **state)
{
	struct perf_layout l;

	assert_int_equal(perf_layout__init(&l, PERF_SAMPLE_TIME, true, 0), 0);
	assert_int_equal(l.sample.time, 8);
	assert_int_equal(l.sample.tid, 0);
	assert_int_equal(l.sample_min, 16);
	assert_int_equal(l.tail.time, 8);
	assert_int_equal(l.tail_bytes, 8);
	assert_int_equal(perf_layout__min_record(&l), 16);
	assert_int_equal(perf_layout__init(&l, PERF_SAMPLE_TIME, false, 0), 0);
	assert_int_equal(l.tail.time, 0);
	assert_int_equal(l.tail_bytes, 0);
	assert_int_equal(perf_layout__min_record(&l), 8);
}

/* Each field stands behind as many as are set of those that the kernel writes before it. */
static void test_every_combination(void **state)
{
	static const uint64_t order[] = {
		PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IP,	  PERF_SAMPLE_TID,
		PERF_SAMPLE_TIME,	PERF_SAMPLE_ADDR, PERF_SAMPLE_ID,
		PERF_SAMPLE_STREAM_ID,	PERF_SAMPLE_CPU,  PERF_SAMPLE_PERIOD};
	static const uint64_t after[] = {PERF_SAMPLE_ID, PERF_SAMPLE_STREAM_ID, PERF_SAMPLE_CPU,
					 PERF_SAMPLE_IDENTIFIER};

	for (unsigned set = 0; set < 1u << ARRAY_SIZE(order); set++) {
		uint64_t type = 0;
		unsigned time = 8, all = 8, tail = 8;
		struct perf_layout l;

		for (unsigned i = 0; i < ARRAY_SIZE(order); i++)
			type |= set >> i & 1 ? order[i] : 0;
		if (!(type & PERF_SAMPLE_TIME)) {
			assert_int_equal(perf_layout__init(&l, type, true, 0), -EINVAL);
			continue;
		}
		assert_int_equal(perf_layout__init(&l, type, true, 0), 0);
		for (unsigned i = 0; i < ARRAY_SIZE(order); i++) {
			time += i < 3 && set >> i & 1 ? 8 : 0;
			all += set >> i & 1 ? 8 : 0;
		}
		for (unsigned i = 0; i < ARRAY_SIZE(after); i++)
			tail += type & after[i] ? 8 : 0;
		assert_int_equal(l.sample.time, time);
		assert_int_equal(l.sample_min, all);
		assert_int_equal(l.variable, all);
		assert_int_equal(l.tail.time, tail);
	}
}

static void test_refused(void **state)
{
	const uint64_t read = PERF_SAMPLE_TIME | PERF_SAMPLE_READ;
	struct perf_layout l;

	assert_int_equal(perf_layout__init(&l, 0, true, 0), -EINVAL);
	assert_int_equal(perf_layout__init(&l, ALL_FIXED & ~PERF_SAMPLE_TIME, true, 0), -EINVAL);
	for (unsigned bit = 25; bit < 64; bit++)
		assert_int_equal(perf_layout__init(&l, PERF_SAMPLE_TIME | 1ull << bit, true, 0),
				 -EINVAL);
	for (unsigned bit = 5; bit < 64; bit++)
		assert_int_equal(perf_layout__init(&l, read, true, 1ull << bit), -EINVAL);
	/* Where nothing is read, its format says nothing. */
	assert_int_equal(perf_layout__init(&l, PERF_SAMPLE_TIME, true, 1ull << 40), 0);
	/* What stands behind RAW disturbs nobody. */
	assert_int_equal(perf_layout__init(&l,
					   PERF_SAMPLE_TIME | PERF_SAMPLE_BRANCH_STACK |
						   PERF_SAMPLE_WEIGHT_STRUCT,
					   true, 0),
			 0);
}

static uint16_t raw_place(uint64_t more, uint64_t format)
{
	struct perf_layout l;

	assert_int_equal(
		perf_layout__init(&l, PERF_SAMPLE_TIME | PERF_SAMPLE_RAW | more, true, format), 0);
	return l.raw;
}

static void test_raw_place(void **state)
{
	const uint64_t read = PERF_SAMPLE_READ;

	assert_int_equal(raw_place(0, 0), 16);
	assert_int_equal(raw_place(PERF_SAMPLE_CPU | PERF_SAMPLE_TID, 0), 32);
	assert_int_equal(raw_place(read, 0), 24);
	assert_int_equal(raw_place(read, PERF_FORMAT_ID | PERF_FORMAT_LOST), 40);
	assert_int_equal(
		raw_place(read, PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING),
		40);
	/* Behind what has no fixed length. */
	assert_int_equal(raw_place(read, PERF_FORMAT_GROUP), 0);
	assert_int_equal(raw_place(PERF_SAMPLE_CALLCHAIN, 0), 0);
}

static void test_payload(void **state)
{
	struct perf_layout l;

	perf_layout__init(&l, PERF_SAMPLE_TIME | PERF_SAMPLE_RAW, true, 0);
	assert_int_equal(l.payload_stamp, PERF_PAYLOAD_UNSTAMPED);
	assert_int_equal(perf_layout__payload(&l, 16, 24), 0);
	assert_int_equal(l.payload_stamp, 16);
	assert_int_equal(l.payload_len, 24);
	assert_int_equal(perf_layout__payload(&l, 17, 24), -EINVAL);
	assert_int_equal(perf_layout__payload(&l, 17, 0), 0);
	assert_int_equal(perf_layout__payload(&l, PERF_PAYLOAD_UNSTAMPED, 5), 0);
	assert_int_equal(perf_layout__payload(&l, 65536, 0), -EINVAL);
	assert_int_equal(perf_layout__payload(&l, UINT32_MAX - 1, 0), -EINVAL);
	assert_int_equal(perf_layout__payload(&l, PERF_PAYLOAD_UNSTAMPED, 65536), -EINVAL);
	perf_layout__init(&l, PERF_SAMPLE_TIME, true, 0);
	assert_int_equal(perf_layout__payload(&l, PERF_PAYLOAD_UNSTAMPED, 0), -EINVAL);
	perf_layout__init(&l, PERF_SAMPLE_TIME | PERF_SAMPLE_RAW | PERF_SAMPLE_CALLCHAIN, true, 0);
	assert_int_equal(perf_layout__payload(&l, 0, 0), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_everything),	  cmocka_unit_test(test_time_alone),
		cmocka_unit_test(test_every_combination), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_raw_place),	  cmocka_unit_test(test_payload),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	return r ? 1 : 0;
}
