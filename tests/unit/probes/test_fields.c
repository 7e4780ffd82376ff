// SPDX-License-Identifier: BSD-2-Clause
/*
 * The description of the records, held against itself: what it promises to those who walk it.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "probes/fields.h"
#include "probes/syscalls.h"

static const uint16_t types[] = {
	WEIR_T_FORK,	       WEIR_T_EXEC,	     WEIR_T_EXIT,      WEIR_T_RENAME,
	WEIR_T_CGROUP_MKDIR,   WEIR_T_CGROUP_ATTACH, WEIR_T_SYS_ENTER, WEIR_T_SYS_EXIT,
	WEIR_T_SWITCH,	       WEIR_T_WAKEUP,	     WEIR_T_MIGRATE,   WEIR_T_SIGNAL_GENERATE,
	WEIR_T_SIGNAL_DELIVER,
};
#define NR_TYPES (sizeof(types) / sizeof(types[0]))

static void for_each_record(void (*fn)(const struct record_desc *desc))
{
	for (size_t i = 0; i < NR_TYPES; i++) {
		const struct record_desc *desc = fields__find(types[i]);

		assert_non_null(desc);
		fn(desc);
	}
}

static void check_cover(const struct record_desc *desc)
{
	unsigned char *owners = calloc(1, desc->len);

	assert_non_null(owners);
	for (unsigned int i = 0; i < desc->nr_fields; i++) {
		const struct field *field = &desc->fields[i];

		assert_true(field->offset + field->size <= desc->len);
		for (unsigned int at = 0; at < field->size && !(field->use & FIELD_VIEW); at++)
			owners[field->offset + at]++;
	}
	for (unsigned int at = 0; at < desc->len; at++)
		assert_int_equal(owners[at], 1);
	assert_int_equal(desc->len % 8, 0);
	free(owners);
}

/* Whoever writes the layout down from the table writes each byte once. */
static void test_each_byte_has_one_owner(void **state)
{
	for_each_record(check_cover);
}

static void check_room(const struct record_desc *desc)
{
	unsigned int args = 0;

	for (unsigned int i = 0; i < desc->nr_fields; i++) {
		if (desc->fields[i].use & FIELD_ARG)
			args++;
		if (desc->fields[i].use & (FIELD_CALL_ARGS | FIELD_BLOBS))
			args += SYSCALL_ARGS_MAX;
	}
	assert_in_range(args, 1, WEIR_ARGS_MAX);
}

/* Decoding counts on it and does not look again. */
static void test_arguments_have_room(void **state)
{
	for_each_record(check_room);
}

static void check_names(const struct record_desc *desc)
{
	assert_non_null(desc->event);
	for (unsigned int i = 0; i < desc->nr_fields; i++) {
		for (unsigned int j = 0; j < i; j++)
			assert_string_not_equal(desc->fields[i].name, desc->fields[j].name);
	}
}

static void test_names_are_unique(void **state)
{
	for_each_record(check_names);
}

static void check_kinds(const struct record_desc *desc)
{
	for (unsigned int i = 0; i < desc->nr_fields; i++) {
		const struct field *field = &desc->fields[i];
		bool number = field->size == 1 || field->size == 2 || field->size == 4 ||
			      field->size == 8;

		if (field->use & FIELD_TAIL)
			assert_true(number);
		else if (field->kind == WEIR_ARG_STR)
			assert_int_equal(field->size, WEIR_COMM_LEN);
		else if (field->kind == WEIR_ARG_INT)
			assert_true(field->size == 4 || field->size == 8);
		else if (field->use & FIELD_CALL_ARGS)
			assert_int_equal(field->size, SYSCALL_ARGS_MAX * 8);
		else if (field->size)
			assert_true(number);
		else
			assert_true(field->use & FIELD_VIEW);
		assert_int_equal(field->kind == WEIR_ARG_WORD, field->words != NULL);
		if (field->cut || field->unread)
			assert_true(desc->flags_offset > 0);
	}
}

static void test_kinds_fit_sizes(void **state)
{
	for_each_record(check_kinds);
}

static void test_words(void **state)
{
	static const char *const pair[] = {"zero", NULL, "two"};
	const struct field field = {.words = pair, .nr_words = 3};

	assert_string_equal(fields__word(&field, 0), "zero");
	assert_string_equal(fields__word(&field, 1), "unknown");
	assert_string_equal(fields__word(&field, 2), "two");
	assert_string_equal(fields__word(&field, 3), "unknown");
	assert_string_equal(fields__word(&field, UINT64_MAX), "unknown");
}

static void test_values(void **state)
{
	const uint64_t bytes = 0xfffffffffffffff6;
	const struct field narrow = {.kind = WEIR_ARG_INT, .size = 4};
	const struct field wide = {.kind = WEIR_ARG_INT, .size = 8};
	const struct field plain = {.kind = WEIR_ARG_UINT, .size = 2};
	const struct field any = {.kind = WEIR_ARG_BOOL, .size = 1};
	const struct field bit = {.kind = WEIR_ARG_BOOL, .size = 4, .mask = 1};

	assert_int_equal((int64_t)fields__value(&narrow, &bytes), -10);
	assert_int_equal((int64_t)fields__value(&wide, &bytes), -10);
	assert_int_equal(fields__value(&plain, &bytes), 0xfff6);
	assert_int_equal(fields__value(&any, &bytes), 1);
	assert_int_equal(fields__value(&bit, &bytes), 0);
}

static void test_unknown_types(void **state)
{
	size_t known = 0;

	for (unsigned int type = 0; type < 70000; type++)
		known += fields__find(type) != NULL;
	assert_int_equal(known, NR_TYPES);
	assert_null(fields__find(UINT32_MAX));
}

static void test_groups(void **state)
{
	assert_null(fields__group_name(WEIR_GROUP_NONE));
	assert_string_equal(fields__group_name(WEIR_GROUP_PROCESS), "process");
	assert_string_equal(fields__group_name(WEIR_GROUP_SYS), "sys");
	assert_null(fields__group_name(WEIR_GROUPS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_byte_has_one_owner),
		cmocka_unit_test(test_arguments_have_room),
		cmocka_unit_test(test_names_are_unique),
		cmocka_unit_test(test_kinds_fit_sizes),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_unknown_types),
		cmocka_unit_test(test_groups),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	return r ? 1 : 0;
}
