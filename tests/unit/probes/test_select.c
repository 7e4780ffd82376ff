// SPDX-License-Identifier: BSD-2-Clause
/*
 * Names that a user gives, and what they select; names that nobody knows, and what is said then.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <syscall.h>

#include "probes/probes.h"
#include "probes/syscalls.h"

#define GROUP(id) (1u << WEIR_GROUP_##id)
#define TYPE(id)  (1u << WEIR_T_##id)

static struct probes_selection selected(const char *group, const char *name)
{
	struct probes_selection sel = {0};
	char err[200] = "";

	assert_int_equal(probes__select(&sel, group, name, err, sizeof(err)), 0);
	assert_string_equal(err, "");
	return sel;
}

static bool has_call(const struct probes_selection *sel, unsigned int abi, unsigned int nr)
{
	return sel->syscalls[abi][nr / 64] >> (nr % 64) & 1;
}

static unsigned int count_calls(const struct probes_selection *sel)
{
	unsigned int count = 0;

	for (unsigned int abi = 0; abi < SYSCALL_ABIS; abi++) {
		for (unsigned int nr = 0; nr < SYSCALL_NR_MAX; nr++)
			count += has_call(sel, abi, nr);
	}
	return count;
}

static void test_records(void **state)
{
	static const struct {
		const char *group, *name;
		uint32_t groups, types;
	} cases[] = {
		{"process", NULL, GROUP(PROCESS), TYPE(FORK) | TYPE(EXEC) | TYPE(EXIT)},
		{"process", "fork", GROUP(PROCESS), TYPE(FORK)},
		{"process", "exec", GROUP(PROCESS), TYPE(EXEC)},
		{"process", "exit", GROUP(PROCESS), TYPE(EXIT)},
		{"sched", NULL, GROUP(SCHED), TYPE(SWITCH) | TYPE(WAKEUP) | TYPE(MIGRATE)},
		{"sched", "switch", GROUP(SCHED), TYPE(SWITCH)},
		{"sched", "sched_switch", GROUP(SCHED), TYPE(SWITCH)},
		{"sched", "wakeup", GROUP(SCHED), TYPE(WAKEUP)},
		{"sched", "sched_migrate", GROUP(SCHED), TYPE(MIGRATE)},
		{"signal", NULL, GROUP(SIGNAL), TYPE(SIGNAL_GENERATE) | TYPE(SIGNAL_DELIVER)},
		{"signal", "generate", GROUP(SIGNAL), TYPE(SIGNAL_GENERATE)},
		{"signal", "generated", GROUP(SIGNAL), TYPE(SIGNAL_GENERATE)},
		{"signal", "deliver", GROUP(SIGNAL), TYPE(SIGNAL_DELIVER)},
		{"signal", "delivered", GROUP(SIGNAL), TYPE(SIGNAL_DELIVER)},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct probes_selection sel = selected(cases[i].group, cases[i].name);

		assert_int_equal(sel.groups, cases[i].groups);
		assert_int_equal(sel.types, cases[i].types);
		assert_int_equal(count_calls(&sel), 0);
	}
}

static void test_all_calls(void **state)
{
	struct probes_selection sel = selected("sys", NULL);

	assert_int_equal(sel.groups, GROUP(SYS));
	assert_int_equal(sel.types, TYPE(SYS_ENTER) | TYPE(SYS_EXIT));
	assert_int_equal(count_calls(&sel), SYSCALL_ABIS * SYSCALL_NR_MAX);
}

static void test_one_call_in_each_abi(void **state)
{
	struct probes_selection sel = selected("sys", "openat");

	assert_int_equal(sel.groups, GROUP(SYS));
	assert_int_equal(sel.types, TYPE(SYS_ENTER) | TYPE(SYS_EXIT));
	assert_true(has_call(&sel, WEIR_ABI_NATIVE, SYS_openat));
#if defined(__x86_64__)
	assert_true(has_call(&sel, WEIR_ABI_32, 295));
	assert_true(has_call(&sel, WEIR_ABI_X32, 257));
	assert_int_equal(count_calls(&sel), 3);
#else
	assert_true(has_call(&sel, WEIR_ABI_32, 322));
	assert_int_equal(count_calls(&sel), 2);
#endif
}

#if defined(__x86_64__)
/* Both lists of arguments belong to one name, and so do numbers that only one ABI has. */
static void test_calls_that_differ(void **state)
{
	struct probes_selection sel = selected("sys", "mmap");

	assert_true(has_call(&sel, WEIR_ABI_NATIVE, 9));
	assert_true(has_call(&sel, WEIR_ABI_32, 90));
	assert_true(has_call(&sel, WEIR_ABI_X32, 9));
	assert_int_equal(count_calls(&sel), 3);

	sel = selected("sys", "socketcall");
	assert_true(has_call(&sel, WEIR_ABI_32, 102));
	assert_int_equal(count_calls(&sel), 1);

	sel = selected("sys", "execve");
	assert_true(has_call(&sel, WEIR_ABI_X32, 520));
	assert_false(has_call(&sel, WEIR_ABI_X32, 59));
}
#endif

static void test_selections_add_up(void **state)
{
	struct probes_selection sel = selected("process", "exec");
	char err[200];

	assert_int_equal(probes__select(&sel, "sys", "read", err, sizeof(err)), 0);
	assert_int_equal(probes__select(&sel, "sys", "write", err, sizeof(err)), 0);
	assert_int_equal(sel.groups, GROUP(PROCESS) | GROUP(SYS));
	assert_int_equal(sel.types, TYPE(EXEC) | TYPE(SYS_ENTER) | TYPE(SYS_EXIT));
	assert_true(has_call(&sel, WEIR_ABI_NATIVE, SYS_read));
	assert_true(has_call(&sel, WEIR_ABI_NATIVE, SYS_write));
}

static void test_unknown_names(void **state)
{
	static const struct {
		const char *group, *name, *sentence;
	} cases[] = {
		{"sched", "swich",
		 "no event is called 'sched:swich'; did you mean 'sched:switch'?"},
		{"sched", "sched_wakup",
		 "no event is called 'sched:sched_wakup'; did you mean 'sched:sched_wakeup'?"},
		{"sys", "opnat", "no event is called 'sys:opnat'; did you mean 'sys:openat'?"},
		{"sys", "zzzzzzzz", "no event is called 'sys:zzzzzzzz'"},
		{"sys", "", "no event is called 'sys:'"},
		{"sys", "raed", "no event is called 'sys:raed'; did you mean 'sys:read'?"},
		{"proces", NULL, "no event is called 'proces'; did you mean 'process'?"},
		{"openat", NULL, "no event is called 'openat'; did you mean 'sys:openat'?"},
		{"exec", NULL, "no event is called 'exec'; did you mean 'process:exec'?"},
		{"task", "fork", "no event is called 'task:fork'; did you mean 'process:fork'?"},
		{"fork", "process", "no event is called 'fork:process'"},
		{"rename", NULL, "no event is called 'rename'; did you mean 'sys:rename'?"},
		{"process", "rename", "no event is called 'process:rename'"},
		{"none", NULL, "no event is called 'none'"},
		{"", NULL, "no event is called ''"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct probes_selection sel = {0}, untouched = {0};
		char err[200];

		assert_int_equal(
			probes__select(&sel, cases[i].group, cases[i].name, err, sizeof(err)),
			-ENOENT);
		assert_string_equal(err, cases[i].sentence);
		assert_memory_equal(&sel, &untouched, sizeof(sel));
	}
}

static void test_long_names(void **state)
{
	struct probes_selection sel = {0};
	char name[5000], err[64];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	assert_int_equal(probes__select(&sel, "sys", name, err, sizeof(err)), -ENOENT);
	assert_memory_equal(err, "no event is called 'sys:xxx", 26);
	assert_int_equal(probes__select(&sel, name, NULL, err, sizeof(err)), -ENOENT);
	assert_int_equal(probes__select(&sel, name, NULL, NULL, 0), -ENOENT);
}

struct listed {
	unsigned int items, openat, i386_only;
	char last[64];
};

/* What is listed can be selected, and each is listed once: calls come sorted by name. */
static int check_item(void *ctx, const struct probes_item *item)
{
	struct listed *listed = ctx;
	struct probes_selection sel = selected(item->group, item->event);

	assert_true(sel.types != 0);
	if (item->also)
		selected(item->group, item->also);
	assert_true(item->nargs <= WEIR_ARGS_MAX);
	for (uint32_t i = 0; i < item->nargs; i++)
		assert_non_null(item->args[i]);
	listed->items++;
	if (strcmp(item->group, "sys") != 0)
		return 0;
	assert_true(strcmp(listed->last, item->event) < 0);
	strncpy(listed->last, item->event, sizeof(listed->last) - 1);
	if (!strcmp(item->event, "openat") && item->nargs == 4 && !item->abi)
		listed->openat++;
	if (item->abi)
		listed->i386_only++;
	return 0;
}

static void test_list(void **state)
{
	struct listed listed = {0};

	assert_int_equal(probes__list(check_item, &listed), 0);
	assert_int_equal(listed.openat, 1);
	assert_true(listed.items > 400);
	assert_true(listed.i386_only > 50);
}

/* A call with two lists of arguments is listed with the native one's. */
static int find_mmap(void *ctx, const struct probes_item *item)
{
	if (strcmp(item->event, "mmap") != 0)
		return 0;
	assert_null(item->abi);
	assert_int_equal(item->nargs, 6);
	return 1;
}

static int stop(void *ctx, const struct probes_item *item)
{
	unsigned int *left = ctx;

	return --*left ? 0 : -EPIPE;
}

static void test_list_stops(void **state)
{
	unsigned int left = 3;

	assert_int_equal(probes__list(find_mmap, NULL), 1);
	assert_int_equal(probes__list(stop, &left), -EPIPE);
	left = 100;
	assert_int_equal(probes__list(stop, &left), -EPIPE);
	assert_int_equal(left, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_all_calls),
		cmocka_unit_test(test_one_call_in_each_abi),
#if defined(__x86_64__)
		cmocka_unit_test(test_calls_that_differ),
#endif
		cmocka_unit_test(test_selections_add_up),
		cmocka_unit_test(test_unknown_names),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_list_stops),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	return r ? 1 : 0;
}
