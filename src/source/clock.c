/* SPDX-License-Identifier: BSD-2-Clause */
#include "source/clock.h"

#include <string.h>
#include <sys/timex.h>
#include <time.h>

#define NSEC_PER_SEC 1000000000ll

static int64_t read_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static uint64_t kernel_now_ns(void *ctx)
{
	return (uint64_t)read_ns(CLOCK_MONOTONIC);
}

/* Of a few tries the one with the least time between its two readings, in the middle. */
static int64_t offset_to(clockid_t id)
{
	int64_t best_width = INT64_MAX, best = 0;

	for (int i = 0; i < 3; i++) {
		int64_t before = read_ns(CLOCK_MONOTONIC);
		int64_t there = read_ns(id);
		int64_t width = read_ns(CLOCK_MONOTONIC) - before;

		if (width < best_width) {
			best_width = width;
			best = there - before - width / 2;
		}
	}
	return best;
}

static void kernel_offsets(void *ctx, int64_t *real_ns, int64_t *boot_ns)
{
	*real_ns = offset_to(CLOCK_REALTIME);
	*boot_ns = offset_to(CLOCK_BOOTTIME);
}

const struct weir_clock clock__kernel = {
	.now_ns = kernel_now_ns,
	.offsets = kernel_offsets,
};

uint64_t clock__slew_guard_ns(void)
{
	const int64_t stall_ns = 1000000, normal_tick_us = 10000;
	struct timex tx = {.modes = 0}, adjtime_left = {.modes = ADJ_OFFSET_SS_READ};
	int64_t ppm, offset_us;

	if (adjtimex(&tx) < 0)
		return 0;
	/* freq is ppm << 16; a tick 1 us off its normal 10,000 is 100 ppm. */
	ppm = (tx.freq >> 16) + (tx.tick - normal_tick_us) * 100;
	/* The kernel's own loop works off this part of what is left to it in each second. */
	offset_us = tx.status & STA_NANO ? tx.offset / 1000 : tx.offset;
	ppm += offset_us / (4ll << tx.constant);
	/* And adjtime(3) 500 ppm. */
	if (adjtimex(&adjtime_left) >= 0 && adjtime_left.offset)
		ppm += adjtime_left.offset < 0 ? -500 : 500;
	if (ppm < 0)
		ppm = -ppm;
	return (uint64_t)(ppm * stall_ns / 1000000);
}

static int64_t distance(int64_t a, int64_t b)
{
	return a > b ? a - b : b - a;
}

bool clock_offsets__update(struct clock_offsets *offsets, const struct weir_clock *clock,
			   uint64_t now_ns)
{
	struct clock_offset now = {.from_ns = now_ns};
	const struct clock_offset *last;

	if (clock->offsets)
		clock->offsets(clock->ctx, &now.real_ns, &now.boot_ns);
	if (!offsets->count) {
		now.from_ns = 0;
		offsets->at[offsets->count++] = now;
		return false;
	}
	last = &offsets->at[offsets->count - 1];
	if (distance(now.real_ns, last->real_ns) < CLOCK_STEP_MIN_NS &&
	    distance(now.boot_ns, last->boot_ns) < CLOCK_STEP_MIN_NS)
		return false;
	if (offsets->count == CLOCK_OFFSETS_MAX) {
		memmove(&offsets->at[0], &offsets->at[1],
			(CLOCK_OFFSETS_MAX - 1) * sizeof(offsets->at[0]));
		offsets->count--;
	}
	offsets->at[offsets->count++] = now;
	return true;
}

int64_t clock_offsets__wall_ns(const struct clock_offsets *offsets, uint64_t stamp_ns)
{
	size_t i = offsets->count;

	while (i > 1 && offsets->at[i - 1].from_ns > stamp_ns)
		i--;
	/* Unsigned: a hostile stamp may be anything. */
	return (int64_t)(stamp_ns + (i ? (uint64_t)offsets->at[i - 1].real_ns : 0));
}
