/* SPDX-License-Identifier: BSD-2-Clause */
/* ring/perf_record.h: a sample's fields, and what a record says of losses, every length wrong once. */
#include "unit.h"

#include "perf_memory.h"
#include "ring/perf_record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct perf_bytes bytes;

static struct perf_layout layout(uint64_t sample_type, uint64_t read_format)
{
	struct perf_layout l;

	assert_int_equal(perf_layout__init(&l, sample_type, true, read_format), 0);
	return l;
}

/* From memory that ends where the record does, so that a read past it is seen. */
static int parse(const struct perf_layout *l, const struct perf_bytes *b, uint32_t len,
		 struct weir_perf_sample *out)
{
	uint8_t *copy = malloc(len ? len : 1);
	int r;

	memcpy(copy, b->at, len);
	r = perf_record__parse(l, copy, len, out);
	if (!r) {
		assert_true(!out->raw || (const uint8_t *)out->raw + out->raw_len <= copy + len);
		out->raw = out->raw ? b->at + ((const uint8_t *)out->raw - copy) : NULL;
		out->callchain =
			out->callchain
				? (const void *)(b->at + ((const uint8_t *)out->callchain - copy))
				: NULL;
	}
	free(copy);
	return r;
}

static void test_all_fields(void **state)
{
	struct perf_layout l = layout(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
					      PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |
					      PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |
					      PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN |
					      PERF_SAMPLE_RAW,
				      0);
	struct weir_perf_sample s;

	perf_bytes__begin(&bytes, PERF_RECORD_SAMPLE, 0);
	perf_bytes__u64(&bytes, 71);
	perf_bytes__u64(&bytes, 0xffffffff81000000);
	perf_bytes__u32s(&bytes, 42, 43);
	perf_bytes__u64(&bytes, 1757412345123456789);
	perf_bytes__u64(&bytes, 0xdead);
	perf_bytes__u64(&bytes, 71);
	perf_bytes__u64(&bytes, 72);
	perf_bytes__u32s(&bytes, 8191, 0);
	perf_bytes__u64(&bytes, 99);
	perf_bytes__u64(&bytes, 2);
	perf_bytes__u64(&bytes, (uint64_t)PERF_CONTEXT_KERNEL);
	perf_bytes__u64(&bytes, 0xffffffff81000000);
	perf_bytes__raw(&bytes, 13, 5);
	perf_bytes__end(&bytes);
	assert_int_equal(parse(&l, &bytes, bytes.len, &s), 0);
	assert_true(s.fields == l.sample_type);
	assert_true(s.id == 71 && s.stream_id == 72);
	assert_true(s.ip == 0xffffffff81000000 && s.addr == 0xdead);
	assert_int_equal(s.pid, 42);
	assert_int_equal(s.tid, 43);
	assert_true(s.time_ns == 1757412345123456789);
	assert_int_equal(s.cpu, 8191);
	assert_int_equal(s.period, 99);
	assert_int_equal(s.callchain_len, 2);
	assert_true(s.callchain[0] == (uint64_t)PERF_CONTEXT_KERNEL);
	assert_true(s.callchain[1] == 0xffffffff81000000);
	assert_int_equal(s.raw_len, 20); /* 13, and 7 of padding */
	assert_true(perf_memory__payload_ok(s.raw, 13, 5));
}

static void test_fields_that_are_not_there_are_zero(void **state)
{
	struct perf_layout l = layout(PERF_SAMPLE_TIME | PERF_SAMPLE_ID, 0);
	struct weir_perf_sample s;

	perf_bytes__begin(&bytes, PERF_RECORD_SAMPLE, 0);
	perf_bytes__u64(&bytes, 5);
	perf_bytes__u64(&bytes, 6);
	perf_bytes__end(&bytes);
	memset(&s, 0xff, sizeof(s));
	assert_int_equal(parse(&l, &bytes, bytes.len, &s), 0);
	assert_true(s.time_ns == 5 && s.id == 6);
	assert_true(!s.ip && !s.addr && !s.stream_id && !s.period && !s.pid && !s.tid && !s.cpu);
	assert_true(!s.raw && !s.raw_len && !s.callchain && !s.callchain_len);
}

/* 0 to 7 bytes trail, and only who knows the length can tell (section 6). */
static void test_padding(void **state)
{
	struct perf_layout l = layout(PERF_SAMPLE_TIME | PERF_SAMPLE_RAW, 0), declared = l;
	struct weir_perf_sample s;

	for (uint32_t len = 0; len < 64; len++) {
		perf_bytes__begin(&bytes, PERF_RECORD_SAMPLE, 0);
		perf_bytes__u64(&bytes, 1);
		perf_bytes__raw(&bytes, len, len);
		perf_bytes__end(&bytes);
		assert_int_equal(parse(&l, &bytes, bytes.len, &s), 0);
		assert_in_range(s.raw_len, len, len + 7);
		assert_true(perf_memory__payload_ok(s.raw, len, len));
		if (!len)
			continue;
		assert_int_equal(perf_layout__payload(&declared, PERF_PAYLOAD_UNSTAMPED, len), 0);
		assert_int_equal(parse(&declared, &bytes, bytes.len, &s), 0);
		assert_int_equal(s.raw_len, len);
		/* Another length than the declared one is another thing. */
		perf_layout__payload(&declared, PERF_PAYLOAD_UNSTAMPED, len + 8);
		assert_int_equal(parse(&declared, &bytes, bytes.len, &s), -EINVAL);
	}
	perf_layout__payload(&declared, PERF_PAYLOAD_UNSTAMPED, 8);
	assert_int_equal(parse(&declared, &bytes, bytes.len, &s), -EINVAL);
}

/* READ stands before the call chain and has a length of its own for each format. */
static void test_read_is_passed(void **state)
{
	for (unsigned format = 0; format < 1u << 5; format++) {
		struct perf_layout l = layout(PERF_SAMPLE_TIME | PERF_SAMPLE_READ |
						      PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW,
					      format);
		unsigned times = !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
				 !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);
		unsigned each = 1 + !!(format & PERF_FORMAT_ID) + !!(format & PERF_FORMAT_LOST);
		unsigned members = format & PERF_FORMAT_GROUP ? 3 : 1;
		struct weir_perf_sample s;

		perf_bytes__begin(&bytes, PERF_RECORD_SAMPLE, 0);
		perf_bytes__u64(&bytes, 1);
		if (format & PERF_FORMAT_GROUP)
			perf_bytes__u64(&bytes, members);
		for (unsigned i = 0; i < times + members * each; i++)
			perf_bytes__u64(&bytes, UINT64_MAX);
		perf_bytes__u64(&bytes, 1);
		perf_bytes__u64(&bytes, 0xc0ffee);
		perf_bytes__raw(&bytes, 4, 9);
		perf_bytes__end(&bytes);
		assert_int_equal(parse(&l, &bytes, bytes.len, &s), 0);
		assert_int_equal(s.callchain_len, 1);
		assert_true(s.callchain[0] == 0xc0ffee);
		assert_int_equal(s.raw_len, 4);
		assert_true(perf_memory__payload_ok(s.raw, 4, 9));
	}
}

static void put_u64(uint32_t at, uint64_t value)
{
	memcpy(bytes.at + at, &value, 8);
}

/* G8: a length inside the record that leads out of it. */
static void test_lengths_that_lie(void **state)
{
	static const uint64_t lies[] = {5,	    6,		1ull << 29,	1ull << 32,
					1ull << 60, 1ull << 61, UINT64_MAX / 8, UINT64_MAX};
	struct perf_layout l = layout(PERF_SAMPLE_TIME | PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN |
					      PERF_SAMPLE_RAW,
				      PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_LOST);
	struct weir_perf_sample s;

	perf_bytes__begin(&bytes, PERF_RECORD_SAMPLE, 0);
	perf_bytes__u64(&bytes, 1);
	perf_bytes__u64(&bytes, 0); /* members, at 16 */
	perf_bytes__u64(&bytes, 1); /* call chain, at 24 */
	perf_bytes__u64(&bytes, 2);
	perf_bytes__raw(&bytes, 4, 1); /* at 40 */
	perf_bytes__end(&bytes);
	assert_int_equal(parse(&l, &bytes, bytes.len, &s), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(lies); i++) {
		uint32_t raw = (uint32_t)lies[i];

		put_u64(16, lies[i]);
		assert_int_equal(parse(&l, &bytes, bytes.len, &s), -EINVAL);
		put_u64(16, 0);
		put_u64(24, lies[i]);
		assert_int_equal(parse(&l, &bytes, bytes.len, &s), -EINVAL);
		put_u64(24, 1);
		if (raw <= 4)
			continue;
		memcpy(bytes.at + 40, &raw, 4);
		assert_int_equal(parse(&l, &bytes, bytes.len, &s), -EINVAL);
		memcpy(bytes.at + 40, &(uint32_t){4}, 4);
	}
}

static void test_too_short(void **state)
{
	struct perf_layout l = layout(PERF_SAMPLE_TIME | PERF_SAMPLE_CPU, 0);
	struct weir_perf_sample s;

	perf_bytes__begin(&bytes, PERF_RECORD_SAMPLE, 0);
	perf_bytes__u64(&bytes, 1);
	perf_bytes__u32s(&bytes, 1, 0);
	perf_bytes__end(&bytes);
	assert_int_equal(parse(&l, &bytes, bytes.len, &s), 0);
	for (uint32_t len = 0; len < bytes.len; len++)
		assert_int_equal(parse(&l, &bytes, len, &s), -EINVAL);
	for (uint16_t size = 0; size < bytes.len; size++) {
		memcpy(bytes.at + 6, &size, 2);
		assert_int_equal(parse(&l, &bytes, bytes.len, &s), -EINVAL);
	}
}

static void test_no_sample(void **state)
{
	struct perf_layout l = layout(PERF_SAMPLE_TIME, 0);
	struct weir_perf_sample s;

	perf_bytes__begin(&bytes, PERF_RECORD_COMM, 0);
	perf_bytes__u64(&bytes, 1);
	perf_bytes__end(&bytes);
	assert_int_equal(parse(&l, &bytes, bytes.len, &s), -EINVAL);
}

static int lost(const struct perf_layout *l, uint32_t len, struct perf_loss *out)
{
	uint8_t *copy = malloc(len ? len : 1);
	int r;

	memcpy(copy, bytes.at, len);
	r = perf_record__lost(l, copy, len, out);
	free(copy);
	return r;
}

static void build_loss(uint32_t type, unsigned words)
{
	perf_bytes__begin(&bytes, type, 0);
	for (unsigned i = 0; i < words; i++)
		perf_bytes__u64(&bytes, 100 + i);
	perf_bytes__u32s(&bytes, 1, 2); /* the sample_id: tid, time, stream, identifier */
	perf_bytes__u64(&bytes, 777);
	perf_bytes__u64(&bytes, 55);
	perf_bytes__u64(&bytes, 66);
	perf_bytes__end(&bytes);
}

static const uint64_t with_ids = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_STREAM_ID |
				 PERF_SAMPLE_IDENTIFIER;

static void test_lost(void **state)
{
	struct perf_layout l = layout(with_ids, 0);
	struct perf_loss loss;

	build_loss(PERF_RECORD_LOST, 2);
	assert_int_equal(lost(&l, bytes.len, &loss), 1);
	assert_int_equal(loss.type, PERF_RECORD_LOST);
	assert_true(loss.counted && loss.has_stamp);
	assert_int_equal(loss.id, 100);
	assert_int_equal(loss.lost, 101);
	assert_int_equal(loss.stamp_ns, 777);
	assert_int_equal(loss.stream_id, 55);
}

static void test_lost_samples(void **state)
{
	struct perf_layout l = layout(with_ids, 0);
	struct perf_loss loss;

	build_loss(PERF_RECORD_LOST_SAMPLES, 1);
	assert_int_equal(lost(&l, bytes.len, &loss), 1);
	assert_true(loss.counted && loss.has_stamp);
	assert_int_equal(loss.lost, 100);
	assert_int_equal(loss.stamp_ns, 777);
	assert_int_equal(loss.id, 66);
}

static void test_throttle(void **state)
{
	static const uint32_t types[] = {PERF_RECORD_THROTTLE, PERF_RECORD_UNTHROTTLE};
	struct perf_layout l = layout(with_ids, 0);
	struct perf_loss loss;

	for (unsigned i = 0; i < ARRAY_SIZE(types); i++) {
		build_loss(types[i], 3);
		assert_int_equal(lost(&l, bytes.len, &loss), 1);
		assert_int_equal(loss.type, types[i]);
		assert_false(loss.counted);
		assert_true(loss.has_stamp);
		assert_int_equal(loss.lost, 0);
		assert_int_equal(loss.stamp_ns, 100); /* its own, not the sample_id's */
		assert_int_equal(loss.id, 101);
		assert_int_equal(loss.stream_id, 102);
	}
}

static void test_lost_without_sample_id(void **state)
{
	struct perf_layout l;
	struct perf_loss loss;

	assert_int_equal(perf_layout__init(&l, PERF_SAMPLE_TIME, false, 0), 0);
	perf_bytes__begin(&bytes, PERF_RECORD_LOST, 0);
	perf_bytes__u64(&bytes, 9);
	perf_bytes__u64(&bytes, UINT64_MAX);
	perf_bytes__end(&bytes);
	assert_int_equal(lost(&l, bytes.len, &loss), 1);
	assert_false(loss.has_stamp);
	assert_true(loss.lost == UINT64_MAX && loss.id == 9);
}

static void test_lost_too_short(void **state)
{
	static const uint32_t types[] = {PERF_RECORD_LOST, PERF_RECORD_LOST_SAMPLES,
					 PERF_RECORD_THROTTLE, PERF_RECORD_UNTHROTTLE};
	static const unsigned words[] = {2, 1, 3, 3};
	struct perf_layout l = layout(with_ids, 0);
	struct perf_loss loss;

	for (unsigned i = 0; i < ARRAY_SIZE(types); i++) {
		build_loss(types[i], words[i]);
		for (uint32_t len = 0; len < bytes.len; len++)
			assert_int_equal(lost(&l, len, &loss), -EINVAL);
		for (uint16_t size = 0; size < bytes.len; size++) {
			memcpy(bytes.at + 6, &size, 2);
			assert_int_equal(lost(&l, bytes.len, &loss), -EINVAL);
		}
	}
}

static void test_no_loss(void **state)
{
	static const uint32_t types[] = {
		0, PERF_RECORD_SAMPLE, PERF_RECORD_COMM, PERF_RECORD_MMAP2, 64, UINT32_MAX};
	struct perf_layout l = layout(with_ids, 0);
	struct perf_loss loss;

	for (unsigned i = 0; i < ARRAY_SIZE(types); i++) {
		build_loss(types[i], 4);
		assert_int_equal(lost(&l, bytes.len, &loss), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_fields),
		cmocka_unit_test(test_fields_that_are_not_there_are_zero),
		cmocka_unit_test(test_padding),
		cmocka_unit_test(test_read_is_passed),
		cmocka_unit_test(test_lengths_that_lie),
		cmocka_unit_test(test_too_short),
		cmocka_unit_test(test_no_sample),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_lost_samples),
		cmocka_unit_test(test_throttle),
		cmocka_unit_test(test_lost_without_sample_id),
		cmocka_unit_test(test_lost_too_short),
		cmocka_unit_test(test_no_loss),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	return r ? 1 : 0;
}
