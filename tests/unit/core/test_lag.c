/* SPDX-License-Identifier: BSD-2-Clause */
/* order/lag: quantiles against exact ones, from no lag to 2^64 - 1. */
#include "unit.h"

#include "order/lag.h"

#include <stdlib.h>

static int down(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x < y) - (x > y);
}

/* Count stamps, which rise, as delivered at now_ns. */
static void count_stamps(struct lag *lag, uint64_t now_ns, const uint64_t *stamps, size_t n)
{
	const uint64_t base_ns = n ? stamps[0] : 0;
	uint64_t *key = calloc(n + 1, sizeof(*key));
	struct merge_run run = {.key = key, .count = n, .base_ns = base_ns};

	assert_non_null(key);
	for (size_t i = 0; i < n; i++)
		key[i] = stamps[i] - base_ns;
	lag__count(lag, now_ns, &run, 0);
	free(key);
}

/* What stands before `from` was not delivered. */
static void test_from_the_middle(void **state)
{
	const uint64_t key[] = {0, 60, 70, 70, 90};
	const struct merge_run run = {.key = key, .count = ARRAY_SIZE(key), .base_ns = 10};
	struct lag lag = {0};

	lag__count(&lag, 100, &run, 2);
	assert_int_equal(lag.count, 3);
	assert_int_equal(lag.max_ns, 20);
	lag__count(&lag, 100, &run, run.count);
	assert_int_equal(lag.count, 3);
	assert_int_equal(lag__quantile_ns(&lag, 1000), 20);
}

/* Count lags, in any order; they are sorted by it. */
static void count(struct lag *lag, uint64_t now_ns, uint64_t *lags, size_t n)
{
	uint64_t *stamps = calloc(n + 1, sizeof(*stamps));

	assert_non_null(stamps);
	qsort(lags, n, sizeof(*lags), down);
	for (size_t i = 0; i < n; i++)
		stamps[i] = now_ns - lags[i];
	count_stamps(lag, now_ns, stamps, n);
	free(stamps);
}

/* `sorted`: every lag that was counted, greatest first. */
static void expect_quantiles(const struct lag *lag, const uint64_t *sorted, size_t n)
{
	static const unsigned per_mille[] = {1, 10, 500, 900, 990, 999, 1000};

	assert_int_equal(lag->count, n);
	assert_true(lag->max_ns == sorted[0]);
	for (size_t i = 0; i < ARRAY_SIZE(per_mille); i++) {
		size_t rank = (n * per_mille[i] + 999) / 1000;
		uint64_t exact = sorted[n - rank];
		uint64_t got = lag__quantile_ns(lag, per_mille[i]);

		assert_true(got >= exact);
		assert_true(got - exact <= exact / LAG_SUB);
		assert_true(got <= lag->max_ns);
	}
}

static void test_none(void **state)
{
	struct lag lag = {0};

	count_stamps(&lag, 100, NULL, 0);
	assert_int_equal(lag__quantile_ns(&lag, 500), 0);
	assert_int_equal(lag__quantile_ns(&lag, 1000), 0);
	assert_int_equal(lag.max_ns, 0);
}

static void test_one(void **state)
{
	for (unsigned bit = 0; bit < 64; bit++) {
		for (int off = -1; off <= 1; off++) {
			uint64_t ns = (1ull << bit) + (uint64_t)off;
			struct lag lag = {0};

			count(&lag, UINT64_MAX, &ns, 1);
			/* Of one, each quantile is that one. */
			assert_true(lag__quantile_ns(&lag, 1) == ns);
			assert_true(lag__quantile_ns(&lag, 500) == ns);
			assert_true(lag__quantile_ns(&lag, 1000) == ns);
		}
	}
}

/* O15: stamped now or beyond the clock is no lag, not 2^64. */
static void test_beyond_the_clock(void **state)
{
	const uint64_t stamps[] = {99, 100, 101, UINT64_MAX};
	struct lag lag = {0};

	count_stamps(&lag, 100, stamps, ARRAY_SIZE(stamps));
	assert_int_equal(lag.count, 4);
	assert_int_equal(lag.max_ns, 1);
	assert_int_equal(lag__quantile_ns(&lag, 500), 0);
	assert_int_equal(lag__quantile_ns(&lag, 750), 0);
	assert_int_equal(lag__quantile_ns(&lag, 751), 1);
}

static void test_extremes(void **state)
{
	uint64_t lags[] = {UINT64_MAX, UINT64_MAX - 1, 1ull << 63, 1, 0, 0};
	struct lag lag = {0};

	count(&lag, UINT64_MAX, lags, ARRAY_SIZE(lags));
	expect_quantiles(&lag, lags, ARRAY_SIZE(lags));
	assert_true(lag__quantile_ns(&lag, 1000) == UINT64_MAX);
}

/* Sixteen values in one bucket's neighbourhood, and every boundary between buckets. */
static void test_every_bucket(void **state)
{
	for (unsigned octave = 4; octave < 64; octave++) {
		uint64_t lags[3 * LAG_SUB];
		struct lag lag = {0};
		size_t n = 0;

		for (uint64_t sub = 0; sub < LAG_SUB; sub++) {
			uint64_t floor_ns = (LAG_SUB + sub) << (octave - 4);

			lags[n++] = floor_ns - 1;
			lags[n++] = floor_ns;
			lags[n++] = floor_ns + (1ull << (octave - 4)) - 1;
		}
		count(&lag, UINT64_MAX, lags, n);
		expect_quantiles(&lag, lags, n);
	}
}

static void test_at_random(void **state)
{
	static uint64_t lags[5000];
	struct rng rng = {37};

	for (int run = 0; run < 200; run++) {
		size_t n = rng__range(&rng, 1, ARRAY_SIZE(lags)), done = 0;
		uint64_t now_ns = UINT64_MAX - rng__below(&rng, 1000);
		unsigned shift = (unsigned)rng__range(&rng, 0, 60);
		struct lag lag = {0};

		for (size_t i = 0; i < n; i++)
			lags[i] = (rng__next(&rng) >> shift >> rng__below(&rng, 4)) % now_ns;
		/* Run by run. */
		while (done < n) {
			size_t part = rng__range(&rng, 1, n - done);

			count(&lag, now_ns, lags + done, part);
			done += part;
		}
		qsort(lags, n, sizeof(*lags), down);
		expect_quantiles(&lag, lags, n);
	}
}

/* One by one, in any order, is the same as in runs. */
static void test_one_by_one(void **state)
{
	static uint64_t lags[5000];
	struct rng rng = {41};
	struct lag one_by_one = {0}, runs = {0};

	for (size_t i = 0; i < ARRAY_SIZE(lags); i++) {
		lags[i] = rng__next(&rng) >> rng__range(&rng, 1, 63);
		lag__count_one(&one_by_one, lags[i]);
	}
	count(&runs, UINT64_MAX, lags, ARRAY_SIZE(lags));
	assert_memory_equal(&one_by_one, &runs, sizeof(runs));
	expect_quantiles(&one_by_one, lags, ARRAY_SIZE(lags));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_one),
		cmocka_unit_test(test_beyond_the_clock),
		cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_every_bucket),
		cmocka_unit_test(test_at_random),
		cmocka_unit_test(test_one_by_one),
		cmocka_unit_test(test_from_the_middle),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	return r ? 1 : 0;
}
