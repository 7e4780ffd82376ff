// SPDX-License-Identifier: BSD-2-Clause
/*
 * Records that no probe of ours would write (G8): each is refused as a whole, or explained without
 * a look outside its bytes.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syscall.h>

#include "probes/probes.h"
#include "records.h"
#include "tests/model/rng.h"

#define RUNS 300000

static void refuse(const struct record *record)
{
	struct weir_decoded decoded;

	assert_int_equal(record__decode(record, &decoded), -EBADMSG);
}

static void test_every_truncation(void **state)
{
	for (size_t i = 0; i < sample_count; i++) {
		struct record record = sample__get(i);

		while (record.len) {
			record.len--;
			refuse(&record);
		}
	}
}

static void test_unknown_types(void **state)
{
	struct record record = {.len = sizeof(record.bytes)};
	struct weir_decoded decoded;
	unsigned int known = 0;

	for (unsigned int type = 0; type <= UINT16_MAX; type++) {
		record.type = (uint16_t)type;
		if (record__decode(&record, &decoded) == 0)
			known++;
	}
	assert_int_equal(known, 13);
}

static void test_not_a_record(void **state)
{
	struct record fork = sample__get(0);
	struct weir_event event = {
		.kind = WEIR_KIND_RECORD,
		.type = fork.type,
		.data = fork.bytes,
		.len = fork.len,
	};
	struct weir_decoded decoded;

	assert_int_equal(probes__decode(&event, &decoded), 0);
	event.kind = WEIR_KIND_GAP;
	assert_int_equal(probes__decode(&event, &decoded), -EBADMSG);
}

static struct record exec_record(uint32_t flags, uint16_t path_len, uint16_t argv_len)
{
	struct weir_exec exec = {.flags = flags, .path_len = path_len, .argv_len = argv_len};
	struct record record = RECORD(WEIR_T_EXEC, exec);

	record__add(&record, "abcd", 4);
	return record;
}

static void test_bad_lengths(void **state)
{
	struct record record = exec_record(0, UINT16_MAX, 0);

	refuse(&record);
	record = exec_record(0, 3, UINT16_MAX);
	refuse(&record);
	record = exec_record(0, 0, 4); /* no NUL behind the last string */
	refuse(&record);
	record = exec_record(WEIR_EXEC_ARGV_UNREAD, 0, 4);
	refuse(&record);
}

static struct record enter_with(uint8_t abi, uint8_t blobs)
{
	struct weir_sys_enter enter = {.nr = SYS_execve, .abi = abi, .blobs = blobs};

	return RECORD(WEIR_T_SYS_ENTER, enter);
}

static void test_bad_abis(void **state)
{
	for (unsigned int abi = WEIR_ABI_X32 + 1; abi <= UINT8_MAX; abi++) {
		struct record record = enter_with((uint8_t)abi, 0);

		refuse(&record);
	}
}

static void test_bad_blobs(void **state)
{
	static const struct weir_blob good = {.kind = WEIR_BLOB_STR, .len = 4};
	static const struct weir_blob bad[] = {
		{.arg = 3, .kind = WEIR_BLOB_STR, .len = 4}, /* execve has three */
		{.arg = 6, .kind = WEIR_BLOB_STR, .len = 4},
		{.arg = 255, .kind = WEIR_BLOB_STR, .len = 4},
		{.arg = 1, .kind = 0, .len = 4},
		{.arg = 1, .kind = 4, .len = 4},
		{.arg = 1, .kind = 255, .len = 4},
		{.arg = 1, .kind = WEIR_BLOB_STRV, .len = 4}, /* no NUL */
		{.arg = 1, .kind = WEIR_BLOB_STR, .flags = WEIR_BLOB_UNREAD, .len = 4},
		{.arg = 0, .kind = WEIR_BLOB_STR, .len = 4}, /* again */
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct record record = enter_with(WEIR_ABI_NATIVE, 2);

		record__add_blob(&record, good, "abcd");
		record__add_blob(&record, bad[i], "abcd");
		refuse(&record);
	}
}

static void test_blob_lengths_that_wrap(void **state)
{
	static const uint32_t lens[] = {5, 0x7fffffff, 0xfffffff0, 0xfffffff8, UINT32_MAX};

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		struct weir_blob blob = {.kind = WEIR_BLOB_STR, .len = lens[i]};
		struct record record = enter_with(WEIR_ABI_NATIVE, 2);

		record__add(&record, &blob, sizeof(blob));
		record__add(&record, "abcd", 4);
		refuse(&record);
	}
}

static void test_more_blobs_than_there_are(void **state)
{
	struct record record = enter_with(WEIR_ABI_NATIVE, 255);

	record__add_blob(&record, (struct weir_blob){.kind = WEIR_BLOB_STR, .len = 2}, "ab");
	refuse(&record);
}

/* What a consumer may rely on, whatever the bytes were. record__text() reads all of them. */
static void check_decoded(const struct weir_decoded *decoded)
{
	assert_non_null(decoded->name);
	assert_true(decoded->group < WEIR_GROUPS);
	assert_true(decoded->nargs <= WEIR_ARGS_MAX);
	for (uint32_t i = 0; i < decoded->nargs; i++) {
		const struct weir_arg *arg = &decoded->args[i];

		assert_non_null(arg->name);
		if (arg->flags & WEIR_ARG_UNREAD)
			assert_int_equal(arg->len, 0);
		if (arg->kind == WEIR_ARG_STRV && arg->len && !(arg->flags & WEIR_ARG_CUT))
			assert_int_equal(arg->bytes[arg->len - 1], 0);
		if (arg->kind == WEIR_ARG_WORD)
			assert_int_equal(strlen(arg->bytes), arg->len);
	}
	assert_true(strlen(record__text(decoded)) > 0);
}

static void damage(struct rng *rng, struct record *record)
{
	uint64_t flips = rng__below(rng, 8);

	while (flips--) {
		uint64_t at = rng__below(rng, record->len);

		record->bytes[at] ^= (char)rng__range(rng, 1, 255);
	}
	if (rng__chance(rng, 300))
		record->len = (uint32_t)rng__below(rng, record->len + 1);
	if (rng__chance(rng, 100))
		record->type = (uint16_t)rng__below(rng, 24);
}

static uint64_t seed(void)
{
	const char *given = getenv("WEIR_SEED");

	return given ? strtoull(given, NULL, 0) : 1;
}

static void test_damaged_records(void **state)
{
	struct rng rng = {.state = seed()};
	unsigned int refused = 0;

	print_message("seed %" PRIu64 " (WEIR_SEED gives the same run again)\n", rng.state);
	for (unsigned int run = 0; run < RUNS; run++) {
		struct record record = sample__get(rng__below(&rng, sample_count));
		struct weir_decoded decoded;
		int err;

		damage(&rng, &record);
		err = record__decode(&record, &decoded);
		if (err) {
			assert_int_equal(err, -EBADMSG);
			refused++;
		} else {
			check_decoded(&decoded);
		}
	}
	assert_in_range(refused, RUNS / 10, RUNS - RUNS / 10); /* both ways were taken */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_truncation),
		cmocka_unit_test(test_unknown_types),
		cmocka_unit_test(test_not_a_record),
		cmocka_unit_test(test_bad_lengths),
		cmocka_unit_test(test_bad_abis),
		cmocka_unit_test(test_bad_blobs),
		cmocka_unit_test(test_blob_lengths_that_wrap),
		cmocka_unit_test(test_more_blobs_than_there_are),
		cmocka_unit_test(test_damaged_records),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	return r ? 1 : 0;
}
