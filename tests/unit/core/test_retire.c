/* SPDX-License-Identifier: BSD-2-Clause */
/* order/retire: once, in order, as soon as the watermark is there and never before (W1, W5). */
#include "unit.h"

#include "order/retire.h"

#include <stdbool.h>
#include <stdlib.h>

struct run {
	uint64_t stamp_ns;
	uint64_t id;
};

static struct run ran[200000];
static size_t count;

static int clear(void **state)
{
	count = 0;
	return 0;
}

static void note(void *arg, uint64_t stamp_ns)
{
	assert_true(count < ARRAY_SIZE(ran));
	ran[count++] = (struct run){stamp_ns, (uintptr_t)arg};
}

static void add(struct retire *retire, uint64_t stamp_ns, uintptr_t id)
{
	assert_int_equal(retire__add(retire, stamp_ns, note, (void *)id), 0);
}

static void expect(size_t i, uint64_t stamp_ns, uint64_t id)
{
	assert_true(i < count);
	assert_true(ran[i].stamp_ns == stamp_ns);
	assert_true(ran[i].id == id);
}

/* W5: 149 is too early, 150 is the time, and there is no second time. */
static void test_once_and_not_before(void **state)
{
	struct retire retire = {0};

	retire__run(&retire, UINT64_MAX);
	add(&retire, 150, 1);
	retire__run(&retire, 149);
	assert_int_equal(count, 0);
	retire__run(&retire, 150);
	expect(0, 150, 1);
	retire__run(&retire, 150);
	retire__run(&retire, UINT64_MAX);
	assert_int_equal(count, 1);
	retire__free(&retire);
}

/* O15: the ends of the numbers are stamps like others. */
static void test_extremes(void **state)
{
	struct retire retire = {0};

	add(&retire, UINT64_MAX, 3);
	add(&retire, 0, 1);
	add(&retire, UINT64_MAX - 1, 2);
	retire__run(&retire, 0);
	assert_int_equal(count, 1);
	retire__run(&retire, UINT64_MAX - 1);
	assert_int_equal(count, 2);
	retire__run(&retire, UINT64_MAX);
	assert_int_equal(count, 3);
	for (size_t i = 0; i < 3; i++)
		assert_true(ran[i].id == i + 1);
	retire__free(&retire);
}

/* Equal stamps run as they were asked for, also after others have left the heap. */
static void test_ties(void **state)
{
	struct retire retire = {0};

	for (uintptr_t i = 0; i < 1000; i++)
		add(&retire, i < 500 ? 7 : 9, i);
	retire__run(&retire, 7);
	for (uintptr_t i = 1000; i < 1500; i++)
		add(&retire, 9, i);
	retire__run(&retire, 9);
	assert_int_equal(count, 1500);
	for (size_t i = 0; i < count; i++)
		expect(i, i < 500 ? 7 : 9, i);
	retire__free(&retire);
}

static void test_at_random(void **state)
{
	struct retire retire = {0};
	struct rng rng = {31};
	uint64_t watermark_ns = 0, added = 0;

	for (int step = 0; step < 3000; step++) {
		size_t before = count;

		for (uint64_t n = rng__below(&rng, 40); n; n--)
			add(&retire, watermark_ns + rng__below(&rng, 3000), added++);
		watermark_ns += rng__below(&rng, 100);
		retire__run(&retire, watermark_ns);
		for (size_t i = before; i < count; i++) {
			assert_true(ran[i].stamp_ns <= watermark_ns);
			if (i == before)
				continue;
			assert_true(ran[i - 1].stamp_ns <= ran[i].stamp_ns);
			if (ran[i - 1].stamp_ns == ran[i].stamp_ns)
				assert_true(ran[i - 1].id < ran[i].id);
		}
		assert_true(!retire.count || retire.heap[0].stamp_ns > watermark_ns);
	}
	retire__run(&retire, UINT64_MAX);
	assert_int_equal(count, added);
	retire__free(&retire);
}

struct chain {
	struct retire *retire;
	uint64_t step_ns;
	unsigned left;
};

static void link_next(void *arg, uint64_t stamp_ns)
{
	struct chain *chain = arg;

	note(NULL, stamp_ns);
	if (chain->left--)
		assert_int_equal(
			retire__add(chain->retire, stamp_ns + chain->step_ns, link_next, chain), 0);
}

/* A callback adds: what is due runs in this call, what is not waits. The heap moves meanwhile. */
static void test_add_from_the_callback(void **state)
{
	struct retire retire = {0};
	struct chain chain = {&retire, 10, 1000};

	assert_int_equal(retire__add(&retire, 100, link_next, &chain), 0);
	retire__run(&retire, 5000);
	assert_int_equal(count, 491);
	retire__run(&retire, 5009);
	assert_int_equal(count, 491);
	retire__run(&retire, UINT64_MAX);
	assert_int_equal(count, 1001);
	for (size_t i = 0; i < count; i++)
		assert_true(ran[i].stamp_ns == 100 + 10 * i);
	retire__free(&retire);
}

static void add_many(void *arg, uint64_t stamp_ns)
{
	for (uintptr_t i = 0; i < 10000; i++)
		add(arg, i % 2 ? stamp_ns - 1 : stamp_ns + 1000, i);
}

static void test_heap_grows_in_the_callback(void **state)
{
	struct retire retire = {0};

	add(&retire, 70, 70000);
	assert_int_equal(retire__add(&retire, 50, add_many, &retire), 0);
	add(&retire, 60, 60000);
	retire__run(&retire, 100);
	/* 5,000 that are stamped before it, then the two that were there. */
	assert_int_equal(count, 5002);
	for (size_t i = 0; i < 5000; i++)
		expect(i, 49, 2 * i + 1);
	expect(5000, 60, 60000);
	expect(5001, 70, 70000);
	retire__free(&retire); /* what has not run is dropped */
	assert_int_equal(count, 5002);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_once_and_not_before, clear),
		cmocka_unit_test_setup(test_extremes, clear),
		cmocka_unit_test_setup(test_ties, clear),
		cmocka_unit_test_setup(test_at_random, clear),
		cmocka_unit_test_setup(test_add_from_the_callback, clear),
		cmocka_unit_test_setup(test_heap_grows_in_the_callback, clear),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	return r ? 1 : 0;
}
