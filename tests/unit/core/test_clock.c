/* SPDX-License-Identifier: BSD-2-Clause */
/* source/clock: wall times of stamps over steps and suspends (M3, M4), hostile stamps (O15). */
#include "unit.h"

#include "source/clock.h"

#include <string.h>
#include <sys/timex.h>
#include <time.h>

#define SEC 1000000000ll

/* Offsets that the test sets. */
struct fake {
	int64_t real_ns, boot_ns;
};

static void fake_offsets(void *ctx, int64_t *real_ns, int64_t *boot_ns)
{
	const struct fake *fake = ctx;

	*real_ns = fake->real_ns;
	*boot_ns = fake->boot_ns;
}

static struct weir_clock fake_clock(struct fake *fake)
{
	return (struct weir_clock){.offsets = fake_offsets, .ctx = fake};
}

/* M3: the wall clock is set back by an hour at 100 s; before and after, each stamp has its own wall. */
static void test_step(void **state)
{
	const int64_t wall = 1757412345 * SEC;
	struct fake fake = {.real_ns = wall};
	const struct weir_clock clock = fake_clock(&fake);
	struct clock_offsets offsets = {0};

	assert_false(clock_offsets__update(&offsets, &clock, 50 * SEC));
	assert_false(clock_offsets__update(&offsets, &clock, 99 * SEC));
	fake.real_ns -= 3600 * SEC;
	assert_true(clock_offsets__update(&offsets, &clock, 100 * SEC));
	/* One notice, not one each second. */
	assert_false(clock_offsets__update(&offsets, &clock, 101 * SEC));
	assert_false(clock_offsets__update(&offsets, &clock, 200 * SEC));
	assert_int_equal(offsets.count, 2);

	assert_true(clock_offsets__wall_ns(&offsets, 0) == wall);
	assert_true(clock_offsets__wall_ns(&offsets, 100 * SEC - 1) == wall + 100 * SEC - 1);
	assert_true(clock_offsets__wall_ns(&offsets, 100 * SEC) == wall + 100 * SEC - 3600 * SEC);
	assert_true(clock_offsets__wall_ns(&offsets, 150 * SEC) == wall + 150 * SEC - 3600 * SEC);
}

/* M3: 3 h of suspend: monotonic says 100 s, boot 10,900 s. The wall goes on, the stamps do not jump. */
static void test_suspend(void **state)
{
	const int64_t wall = 1757412345 * SEC;
	struct fake fake = {.real_ns = wall};
	const struct weir_clock clock = fake_clock(&fake);
	struct clock_offsets offsets = {0};

	assert_false(clock_offsets__update(&offsets, &clock, 99 * SEC));
	fake.real_ns += 10800 * SEC;
	fake.boot_ns += 10800 * SEC;
	assert_true(clock_offsets__update(&offsets, &clock, 100 * SEC));
	assert_false(clock_offsets__update(&offsets, &clock, 101 * SEC));
	assert_true(offsets.at[1].boot_ns - offsets.at[0].boot_ns == 10800 * SEC);
	assert_true(offsets.at[1].from_ns == 100 * SEC);
	assert_true(clock_offsets__wall_ns(&offsets, 99 * SEC) == wall + 99 * SEC);
	assert_true(clock_offsets__wall_ns(&offsets, 100 * SEC) == wall + 10900 * SEC);
}

/* A suspend while the wall clock is set to just what it was: still a step. */
static void test_suspend_alone(void **state)
{
	struct fake fake = {.real_ns = SEC};
	const struct weir_clock clock = fake_clock(&fake);
	struct clock_offsets offsets = {0};

	assert_false(clock_offsets__update(&offsets, &clock, 1));
	fake.boot_ns = 60 * SEC;
	assert_true(clock_offsets__update(&offsets, &clock, 2));
}

/* Jitter of the reading is no step, in either direction; many small ones add up to one. */
static void test_jitter(void **state)
{
	struct fake fake = {.real_ns = 500 * SEC};
	const struct weir_clock clock = fake_clock(&fake);
	struct clock_offsets offsets = {0};
	unsigned steps = 0;

	assert_false(clock_offsets__update(&offsets, &clock, 1));
	fake.real_ns += CLOCK_STEP_MIN_NS - 1;
	assert_false(clock_offsets__update(&offsets, &clock, 2));
	fake.real_ns -= 2 * (CLOCK_STEP_MIN_NS - 1);
	assert_false(clock_offsets__update(&offsets, &clock, 3));
	fake.real_ns += CLOCK_STEP_MIN_NS - 1 + CLOCK_STEP_MIN_NS;
	assert_true(clock_offsets__update(&offsets, &clock, 4));
	for (uint64_t i = 0; i < 100; i++) {
		fake.real_ns += CLOCK_STEP_MIN_NS / 10;
		steps += clock_offsets__update(&offsets, &clock, 5 + i);
	}
	assert_int_equal(steps, 10);
}

/* Steps without end: the newest are kept, in order, and the oldest one that is kept stands for before. */
static void test_many_steps(void **state)
{
	const unsigned steps = 3 * CLOCK_OFFSETS_MAX;
	struct fake fake = {0};
	const struct weir_clock clock = fake_clock(&fake);
	struct clock_offsets offsets = {0};

	for (unsigned i = 0; i < steps; i++) {
		fake.real_ns = (int64_t)i * SEC;
		assert_int_equal(clock_offsets__update(&offsets, &clock, 1000ull * i), i > 0);
	}
	assert_int_equal(offsets.count, CLOCK_OFFSETS_MAX);
	for (unsigned i = 0; i < steps; i++) {
		unsigned oldest = steps - CLOCK_OFFSETS_MAX, known = i < oldest ? oldest : i;

		assert_true(clock_offsets__wall_ns(&offsets, 1000ull * i) ==
			    (int64_t)known * SEC + 1000 * (int64_t)i);
		assert_true(clock_offsets__wall_ns(&offsets, 1000ull * i + 999) ==
			    (int64_t)known * SEC + 1000 * (int64_t)i + 999);
	}
}

/* O15: any stamp converts; the digits of a true one stay whole (M4). */
static void test_hostile_stamps(void **state)
{
	const uint64_t stamps[] = {0, 1, INT64_MAX, 1ull << 63, UINT64_MAX - 1, UINT64_MAX};
	struct fake fake = {.real_ns = 1757412345123456789};
	const struct weir_clock clock = fake_clock(&fake);
	struct clock_offsets offsets = {0};

	/* Before the first look there is no offset. */
	assert_int_equal(clock_offsets__wall_ns(&offsets, 42), 42);
	clock_offsets__update(&offsets, &clock, 10);
	fake.real_ns = -1757412345123456789;
	clock_offsets__update(&offsets, &clock, 1000);
	for (size_t i = 0; i < ARRAY_SIZE(stamps); i++) {
		uint64_t real = stamps[i] < 1000 ? 1757412345123456789u
						 : 0 - (uint64_t)1757412345123456789;

		assert_true((uint64_t)clock_offsets__wall_ns(&offsets, stamps[i]) ==
			    stamps[i] + real);
	}
	assert_true(clock_offsets__wall_ns(&offsets, 0) == 1757412345123456789);
}

static void test_without_offsets(void **state)
{
	const struct weir_clock clock = {0};
	struct clock_offsets offsets = {0};

	assert_false(clock_offsets__update(&offsets, &clock, 5));
	assert_false(clock_offsets__update(&offsets, &clock, 6));
	assert_int_equal(clock_offsets__wall_ns(&offsets, 1234), 1234);
}

static int64_t read_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return ts.tv_sec * SEC + ts.tv_nsec;
}

/* The kernel's clocks, between two readings of our own. */
static void test_kernel_clock(void **state)
{
	int64_t before = read_ns(CLOCK_MONOTONIC), real_ns, boot_ns, low, high;
	int64_t now = (int64_t)clock__kernel.now_ns(clock__kernel.ctx);

	assert_in_range(now, before, read_ns(CLOCK_MONOTONIC));
	low = read_ns(CLOCK_REALTIME) - read_ns(CLOCK_MONOTONIC);
	clock__kernel.offsets(clock__kernel.ctx, &real_ns, &boot_ns);
	high = -read_ns(CLOCK_MONOTONIC) + read_ns(CLOCK_REALTIME);
	/* Each pair is apart by what lies between its two calls: allow 10 s of being put off. */
	assert_in_range(real_ns, low - 10 * SEC, high + 10 * SEC);
	low = read_ns(CLOCK_BOOTTIME) - read_ns(CLOCK_MONOTONIC);
	assert_in_range(boot_ns + 20 * SEC, low + 10 * SEC, low + 30 * SEC);
}

/* adjtimex() as the kernel would answer it: --wrap in meson.build. */
int __wrap_adjtimex(struct timex *tx);

static struct {
	long freq, tick, pll_offset, constant, adjtime_left;
	int status, error;
} kernel;

int __wrap_adjtimex(struct timex *tx)
{
	/* Read only: setting the clock is nothing that a tracer does. */
	assert_true(tx->modes == 0 || tx->modes == ADJ_OFFSET_SS_READ);
	if (kernel.error)
		return -1;
	tx->freq = kernel.freq;
	tx->tick = kernel.tick;
	tx->constant = kernel.constant;
	tx->status = kernel.status;
	tx->offset = tx->modes ? kernel.adjtime_left : kernel.pll_offset;
	return TIME_OK;
}

static void set_kernel(long ppm, long tick)
{
	memset(&kernel, 0, sizeof(kernel));
	kernel.freq = ppm * 65536;
	kernel.tick = tick;
}

/* The guard is slope x 1 ms: 1 ns for each ppm. */
static void test_slew_guard(void **state)
{
	set_kernel(0, 10000);
	assert_int_equal(clock__slew_guard_ns(), 0);
	set_kernel(37, 10000);
	assert_int_equal(clock__slew_guard_ns(), 37);
	set_kernel(-37, 10000);
	assert_int_equal(clock__slew_guard_ns(), 37);
	/* The largest that an administrator can set: 10 %. */
	set_kernel(500, 11000);
	assert_int_equal(clock__slew_guard_ns(), 100500);
	set_kernel(-500, 9000);
	assert_int_equal(clock__slew_guard_ns(), 100500);
	/* A fast tick that a slow frequency takes back. */
	set_kernel(-100, 10001);
	assert_int_equal(clock__slew_guard_ns(), 0);
	kernel.error = 1;
	assert_int_equal(clock__slew_guard_ns(), 0);
}

/* adjtime(3) slews by 500 ppm, in the direction that is left to go. */
static void test_slew_by_adjtime(void **state)
{
	set_kernel(0, 10000);
	kernel.adjtime_left = 2500000;
	assert_int_equal(clock__slew_guard_ns(), 500);
	kernel.adjtime_left = -1;
	assert_int_equal(clock__slew_guard_ns(), 500);
	set_kernel(40, 10000);
	kernel.adjtime_left = -1;
	assert_in_range(clock__slew_guard_ns(), 460, 540);
}

/* The kernel's own loop takes 2^-(2 + constant) of what is left in each second. */
static void test_slew_by_the_loop(void **state)
{
	set_kernel(0, 10000);
	kernel.pll_offset = 64000; /* us */
	kernel.constant = 4;
	assert_in_range(clock__slew_guard_ns(), 1000, 1001);
	kernel.pll_offset = -64000;
	assert_in_range(clock__slew_guard_ns(), 1000, 1001);
	kernel.pll_offset = 64000000; /* ns */
	kernel.status = STA_NANO;
	assert_in_range(clock__slew_guard_ns(), 1000, 1001);
	/* Half a second, the most there is, as fast as it goes. */
	kernel.pll_offset = 500000000;
	kernel.constant = 0;
	assert_in_range(clock__slew_guard_ns(), 125000, 125001);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_step),
		cmocka_unit_test(test_suspend),
		cmocka_unit_test(test_suspend_alone),
		cmocka_unit_test(test_jitter),
		cmocka_unit_test(test_many_steps),
		cmocka_unit_test(test_hostile_stamps),
		cmocka_unit_test(test_without_offsets),
		cmocka_unit_test(test_kernel_clock),
		cmocka_unit_test(test_slew_guard),
		cmocka_unit_test(test_slew_by_adjtime),
		cmocka_unit_test(test_slew_by_the_loop),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	return r ? 1 : 0;
}
