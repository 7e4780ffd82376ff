// SPDX-License-Identifier: BSD-2-Clause
/*
 * The description of a capture's records: where each ends, whatever its bytes are.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../probes/records.h"
#include "capture/classes.h"
#include "capture/crc.h"
#include "capture/metadata.h"
#include "walk.h"

static void test_checksum(void **state)
{
	static const char check[] = "123456789";
	char zeros[32] = {0};

	/* From RFC 3720 and the catalogues of CRCs. */
	assert_int_equal(crc__32c(0, check, 9), 0xe3069283);
	assert_int_equal(crc__32c(0, zeros, 32), 0x8a9136aa);
	assert_int_equal(crc__32c(crc__32c(0, check, 4), check + 4, 5), 0xe3069283);
	assert_int_equal(crc__32c(0, check, 0), 0);
}

/* Each sample is as long as it is: no shorter piece of it passes, and what follows is not looked at. */
static void test_samples(void **state)
{
	for (size_t i = 0; i < sample_count; i++) {
		struct record record = sample__get(i);

		assert_int_equal(
			capture_class__size(record.type, record.bytes, sizeof(record.bytes)),
			record.len);
		for (size_t room = 0; room <= record.len; room++) {
			char *copy = malloc(room);
			int64_t size = room == record.len ? (int64_t)room : -EBADMSG;

			memcpy(copy, record.bytes, room);
			assert_int_equal(capture_class__size(record.type, copy, room), size);
			free(copy);
		}
	}
}

static void test_late(void **state)
{
	char bytes[sizeof(struct capture_late) + sizeof(struct weir_rename)] = {0};
	unsigned int id = WEIR_T_RENAME | CAPTURE_LATE;

	assert_int_equal(capture_class__size(id, bytes, sizeof(bytes)), sizeof(bytes));
	assert_int_equal(capture_class__size(id, bytes, sizeof(bytes) - 1), -EBADMSG);
	assert_int_equal(capture_class__size(id, bytes, 8), -EBADMSG);
}

static void test_no_such_class(void **state)
{
	static const unsigned int ids[] = {0, 15, 23, 0x1000, 0x1008, 0x4000, 0x8001, 0xffff};
	char bytes[4096] = {0};

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		assert_int_equal(capture_class__size(ids[i], bytes, sizeof(bytes)), -EBADMSG);
		for (unsigned int stream = 0; stream < CAPTURE_STREAMS; stream++)
			assert_false(capture_class__in_stream(ids[i], stream));
	}
}

/* A late gap, say, is none: what is not a probe's record has no late form. */
static void test_streams(void **state)
{
	assert_true(capture_class__in_stream(WEIR_T_FORK, CAPTURE_CPU));
	assert_true(capture_class__in_stream(WEIR_T_SWITCH | CAPTURE_LATE, CAPTURE_CPU));
	assert_false(capture_class__in_stream(WEIR_T_FORK, CAPTURE_NOTES));
	assert_true(capture_class__in_stream(CAPTURE_T_GAP, CAPTURE_CPU));
	assert_true(capture_class__in_stream(CAPTURE_T_GAP, CAPTURE_NOTES));
	assert_false(capture_class__in_stream(CAPTURE_T_GAP, CAPTURE_TASKS));
	assert_false(capture_class__in_stream(CAPTURE_T_GAP | CAPTURE_LATE, CAPTURE_CPU));
	assert_true(capture_class__in_stream(CAPTURE_T_TASK, CAPTURE_TASKS));
	assert_false(capture_class__in_stream(CAPTURE_T_MARK, CAPTURE_CPU));
}

static void check_cover(void *ctx, unsigned int id, const struct record_desc *desc)
{
	unsigned char owners[512] = {0};

	assert_ptr_equal(capture_class__find(id), desc);
	assert_true(desc->len <= sizeof(owners) && desc->len % 8 == 0);
	for (unsigned int i = 0; i < desc->nr_fields; i++) {
		const struct field *field = &desc->fields[i];

		assert_true(field->offset + field->size <= desc->len);
		for (unsigned int at = 0; at < field->size && !(field->use & FIELD_VIEW); at++)
			owners[field->offset + at]++;
	}
	for (unsigned int at = 0; at < desc->len; at++)
		assert_int_equal(owners[at], 1);
	++*(int *)ctx;
}

static void check_behind(void *ctx, unsigned int id, const struct record_desc *desc)
{
	for (unsigned int i = 0; i < desc->nr_fields; i++) {
		bool is_behind = desc->fields[i].use & (FIELD_TAIL | FIELD_BLOBS);

		assert_int_equal(is_behind, i >= desc->first_behind &&
						    i < desc->first_behind + desc->nr_behind);
	}
}

/* A record is sized by these fields alone. */
static void test_what_stands_behind(void **state)
{
	capture_class__each(check_behind, NULL);
}

/* CTF has no way to pass over bytes. */
static void test_all_bytes_are_described(void **state)
{
	int classes = 0;

	capture_class__each(check_cover, &classes);
	assert_int_equal(classes, 13 + 7);
}

/* G8: any bytes, of any class; a sanitizer sees a step too far. */
static void test_hostile(void **state)
{
	unsigned int seed = 20261129;

	for (int i = 0; i < 200000; i++) {
		size_t room = (size_t)rand_r(&seed) % 200;
		unsigned char *bytes = malloc(room);
		unsigned int id = (unsigned int)rand_r(&seed) % 2
					  ? CAPTURE_T_GAP + (unsigned int)rand_r(&seed) % 7
					  : (unsigned int)rand_r(&seed) % 24;
		int64_t size;

		for (size_t at = 0; at < room; at++)
			bytes[at] = (unsigned char)(rand_r(&seed) % 4 ? 0 : rand_r(&seed));
		size = capture_class__size(id | (i % 3 ? 0 : CAPTURE_LATE), bytes, room);
		assert_true(size == -EBADMSG || (size >= 0 && size <= (int64_t)room));
		free(bytes);
	}
}

static char *written(const struct metadata *metadata)
{
	char *text = NULL;
	size_t len;
	FILE *file = open_memstream(&text, &len);

	metadata__write(file, metadata);
	fclose(file);
	assert_int_equal(strlen(text), len);
	return text;
}

static void test_metadata_strings(void **state)
{
	struct metadata metadata = plain_metadata;
	char *text;

	metadata.command = "a \"b\" \\ \xc3\xa4 \xff \xed\xa0\x80 \n";
	text = written(&metadata);
	assert_non_null(strstr(text, "\tcommand = \"a \\\"b\\\" \\\\\\\\ \xc3\xa4 \\\\xff "
				     "\\\\xed\\\\xa0\\\\x80 \\\\x0a\";\n"));
	free(text);
}

static void test_metadata_clock(void **state)
{
	struct metadata metadata = plain_metadata;
	char *text;

	metadata.wall_offset_ns = 1700000000000000005;
	text = written(&metadata);
	assert_non_null(strstr(text, "offset_s = 1700000000; offset = 5;"));
	free(text);
	/* Before 1970. */
	metadata.wall_offset_ns = -1;
	text = written(&metadata);
	assert_non_null(strstr(text, "offset_s = -1; offset = 999999999;"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_checksum),
		cmocka_unit_test(test_samples),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_no_such_class),
		cmocka_unit_test(test_streams),
		cmocka_unit_test(test_all_bytes_are_described),
		cmocka_unit_test(test_what_stands_behind),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_metadata_strings),
		cmocka_unit_test(test_metadata_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
