// SPDX-License-Identifier: BSD-2-Clause
/* summary.c and histogram.c: sums against the calls themselves, quantiles against a sorted list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "state/summary.h"

#include <errno.h>

static uint64_t random_state = 11;

static uint64_t random_u64(void)
{
	uint64_t z = (random_state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* ---- histogram -------------------------------------------------------------------------------- */

/* Never below what it is, and at most a sixteenth above. */
static void assert_quantile(const struct histogram *h, const uint64_t *sorted, size_t n,
			    unsigned int per_mille)
{
	size_t rank = (n * per_mille + 999) / 1000;
	uint64_t exact = sorted[rank ? rank - 1 : 0], got = histogram__quantile_ns(h, per_mille);

	assert_true(got >= exact);
	assert_true(got - exact <= exact / 16);
	assert_true(got <= sorted[n - 1]);
}

static void test_quantiles(void **state)
{
	static const unsigned int per_mille[] = {0, 1, 10, 500, 900, 990, 999, 1000};
	static uint64_t ns[5000];

	for (int run = 0; run < 100; run++) {
		struct histogram *h = calloc(1, sizeof(*h));
		size_t n = 1 + random_u64() % (run % 2 ? 10 : 5000);
		uint64_t total = 0;

		for (size_t i = 0; i < n; i++) {
			ns[i] = random_u64() >> (4 + random_u64() % 60);
			total += ns[i];
			histogram__add(h, ns[i]);
		}
		qsort(ns, n, sizeof(*ns), compare);
		assert_int_equal(h->count, n);
		assert_int_equal(h->total_ns, total);
		assert_int_equal(h->max_ns, ns[n - 1]);
		for (size_t q = 0; q < sizeof(per_mille) / sizeof(per_mille[0]); q++)
			assert_quantile(h, ns, n, per_mille[q]);
		free(h);
	}
}

static void test_ends_of_the_range(void **state)
{
	struct histogram *h = calloc(1, sizeof(*h));

	assert_int_equal(histogram__quantile_ns(h, 500), 0);
	histogram__add(h, 0);
	assert_int_equal(histogram__quantile_ns(h, 1000), 0);
	histogram__add(h, UINT64_MAX);
	assert_int_equal(histogram__quantile_ns(h, 500), 0);
	assert_int_equal(histogram__quantile_ns(h, 1000), UINT64_MAX);
	/* Each power of two and its neighbours has a bucket inside the array. */
	for (int bit = 0; bit < 64; bit++) {
		histogram__add(h, 1ull << bit);
		histogram__add(h, (1ull << bit) - 1);
	}
	assert_int_equal(h->count, 130);
	free(h);
}

/* ---- summary ---------------------------------------------------------------------------------- */

static struct summary *summary;

static int setup(void **state)
{
	summary = summary__new(3);
	return summary ? 0 : 1;
}

static int teardown(void **state)
{
	summary__free(summary);
	return 0;
}

struct fact {
	const char *name, *abi, *comm;
	int32_t nr;
	uint32_t pid;
	int64_t ret;
	uint64_t ns;
	enum weir_call_end end;
};

static void add(struct fact f)
{
	struct weir_event enter = {.stamp_ns = 100}, leave = {.stamp_ns = 100 + f.ns};
	bool returned = f.end <= WEIR_CALL_NO_ENTER;
	struct weir_call call = {
		.end = f.end,
		.enter = f.end == WEIR_CALL_NO_ENTER ? NULL : &enter,
		.exit = returned ? &leave : NULL,
	};
	struct weir_decoded d = {.syscall = f.name,
				 .abi = f.abi,
				 .nr = f.nr,
				 .pid = f.pid,
				 .has_ret = returned,
				 .ret = f.ret};

	assert_int_equal(summary__add(summary, &call, &d, f.comm), 0);
}
#define ADD(...) add((struct fact){__VA_ARGS__})

static const struct summary_call *call_row(size_t i)
{
	size_t count;
	const struct summary_call *const *rows = summary__calls(summary, &count);

	assert_true(i < count);
	return rows[i];
}

static const struct summary_process *process_row(size_t i)
{
	size_t count;
	const struct summary_process *const *rows = summary__processes(summary, &count);

	assert_true(i < count);
	return rows[i];
}

static void test_nothing(void **state)
{
	size_t count = 5;

	summary__calls(summary, &count);
	assert_int_equal(count, 0);
	summary__processes(summary, &count);
	assert_int_equal(count, 0);
	assert_int_equal(summary__others(summary)->calls, 0);
}

static void test_rows(void **state)
{
	ADD("read", .nr = 0, .pid = 7, .ret = 5, .ns = 10, .comm = "sh");
	ADD("read", .nr = 0, .pid = 7, .ret = -ENOENT, .ns = 30, .comm = "sh");
	ADD("write", .nr = 1, .pid = 8, .ret = -4095, .ns = 500, .comm = "cat");
	ADD("mmap", .nr = 9, .pid = 8, .ret = -4096, .ns = 20); /* an address */
	assert_string_equal(call_row(0)->name, "write");
	assert_int_equal(call_row(0)->errors, 1);
	assert_string_equal(call_row(1)->name, "read");
	assert_int_equal(call_row(1)->calls, 2);
	assert_int_equal(call_row(1)->errors, 1);
	assert_int_equal(call_row(1)->times.count, 2);
	assert_int_equal(call_row(1)->times.total_ns, 40);
	assert_string_equal(call_row(2)->name, "mmap");
	assert_int_equal(call_row(2)->errors, 0);
	assert_int_equal(process_row(0)->pid, 8);
	assert_string_equal(process_row(0)->comm, "cat");
	assert_int_equal(process_row(0)->calls, 2);
	assert_int_equal(process_row(0)->total_ns, 520);
	assert_int_equal(process_row(1)->pid, 7);
	/* It execs: its last name counts. */
	ADD("read", .nr = 0, .pid = 7, .ns = 1000, .comm = "sixteen_letters_");
	assert_string_equal(process_row(0)->comm, "sixteen_letters_");
}

static void test_names(void **state)
{
	ADD("read", .nr = 0, .ns = 5);
	ADD("restart_syscall", .nr = 0, .abi = "i386", .ns = 4);
	ADD(NULL, .nr = 999, .ns = 3);
	ADD(NULL, .nr = -1, .abi = "x32", .ns = 2);
	assert_string_equal(call_row(0)->name, "read");
	assert_string_equal(call_row(1)->name, "restart_syscall/i386");
	assert_string_equal(call_row(2)->name, "sys_999");
	assert_string_equal(call_row(3)->name, "sys_-1/x32");
}

/* Each counts, and only those with both halves have a time. */
static void test_ends(void **state)
{
	for (int end = WEIR_CALL_RETURNED; end <= WEIR_CALL_OPEN; end++)
		if (end != WEIR_CALL_BORN)
			ADD("x", .pid = 1, .ret = -1, .ns = 50, .end = (enum weir_call_end)end);
	assert_int_equal(call_row(0)->calls, 5);
	assert_int_equal(call_row(0)->errors, 2);
	assert_int_equal(call_row(0)->times.count, 1);
	assert_int_equal(process_row(0)->timed, 1);
	assert_int_equal(process_row(0)->total_ns, 50);
}

static void test_too_many_processes(void **state)
{
	size_t count;

	for (uint32_t pid = 1; pid <= 10; pid++)
		ADD("x", .pid = pid, .ret = -1, .ns = pid, .comm = "c");
	ADD("x", .pid = 2, .ns = 100);
	summary__processes(summary, &count);
	assert_int_equal(count, 3);
	assert_int_equal(process_row(0)->pid, 2);
	assert_int_equal(summary__others(summary)->calls, 7);
	assert_int_equal(summary__others(summary)->errors, 7);
	assert_int_equal(summary__others(summary)->total_ns, 4 + 5 + 6 + 7 + 8 + 9 + 10);
	assert_string_equal(summary__others(summary)->comm, "");
	assert_int_equal(call_row(0)->calls, 11);
}

/* Many rows, in any order: each in its place, and the sums are those of all calls. */
static void test_order(void **state)
{
	uint64_t calls = 0, sum = 0;
	size_t count;
	const struct summary_call *const *rows;

	for (int i = 0; i < 20000; i++)
		ADD(NULL, .nr = (int32_t)(random_u64() % 500), .pid = 1, .ns = random_u64() % 1000);
	rows = summary__calls(summary, &count);
	assert_int_equal(count, 500);
	for (size_t i = 0; i < count; i++) {
		assert_true(!i || rows[i - 1]->times.total_ns >= rows[i]->times.total_ns);
		calls += rows[i]->calls;
		sum += rows[i]->times.total_ns;
	}
	assert_int_equal(calls, 20000);
	assert_int_equal(sum, process_row(0)->total_ns);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quantiles),
		cmocka_unit_test(test_ends_of_the_range),
		T(test_nothing),
		T(test_rows),
		T(test_names),
		T(test_ends),
		T(test_too_many_processes),
		T(test_order),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	return r ? 1 : 0;
}
