/* SPDX-License-Identifier: BSD-2-Clause */
#include "source/clock.h"
#include "source/clock_perf.h"
#include "symbols.h"

#include <errno.h>
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

/* Of a few tries the one with the least time between its two readings, in the middle. */
static int64_t offset_to(clockid_t id, const struct weir_clock *from)
{
	int64_t best_width = INT64_MAX, best = 0;

	for (int i = 0; i < 3; i++) {
		int64_t before = (int64_t)from->now_ns(from->ctx);
		int64_t there = read_ns(id);
		int64_t width = (int64_t)from->now_ns(from->ctx) - before;

		if (width < best_width) {
			best_width = width;
			best = there - before - width / 2;
		}
	}
	return best;
}

static uint64_t monotonic_now_ns(void *ctx)
{
	return (uint64_t)read_ns(CLOCK_MONOTONIC);
}

static void monotonic_offsets(void *ctx, int64_t *real_ns, int64_t *boot_ns)
{
	*real_ns = offset_to(CLOCK_REALTIME, &clock__kernel);
	*boot_ns = offset_to(CLOCK_BOOTTIME, &clock__kernel);
}

const struct weir_clock clock__kernel = {
	.now_ns = monotonic_now_ns,
	.offsets = monotonic_offsets,
};

static uint64_t boottime_now_ns(void *ctx)
{
	return (uint64_t)read_ns(CLOCK_BOOTTIME);
}

static const struct weir_clock boottime;

static void boottime_offsets(void *ctx, int64_t *real_ns, int64_t *boot_ns)
{
	*real_ns = offset_to(CLOCK_REALTIME, &boottime);
	*boot_ns = 0;
}

static const struct weir_clock boottime = {
	.now_ns = boottime_now_ns,
	.offsets = boottime_offsets,
};

/* The wall's own time: no offset, and no step that would show as one. */
static uint64_t realtime_now_ns(void *ctx)
{
	return (uint64_t)read_ns(CLOCK_REALTIME);
}

static const struct weir_clock realtime = {.now_ns = realtime_now_ns};

static uint64_t tai_now_ns(void *ctx)
{
	return (uint64_t)read_ns(CLOCK_TAI);
}

static const struct weir_clock tai;

static void tai_offsets(void *ctx, int64_t *real_ns, int64_t *boot_ns)
{
	*real_ns = offset_to(CLOCK_REALTIME, &tai);
	*boot_ns = 0;
}

static const struct weir_clock tai = {
	.now_ns = tai_now_ns,
	.offsets = tai_offsets,
};

int clock__open(struct weir_clock *out, enum weir_clock_id id)
{
	static const struct weir_clock *const plain[] = {
		[WEIR_CLOCK_MONOTONIC] = &clock__kernel,
		[WEIR_CLOCK_BOOTTIME] = &boottime,
		[WEIR_CLOCK_REALTIME] = &realtime,
		[WEIR_CLOCK_TAI] = &tai,
	};

	if (id == WEIR_CLOCK_PERF)
		return clock_perf__open(out);
	if (id >= WEIR_CLOCKS)
		return -EINVAL;
	*out = *plain[id];
	return 0;
}

void clock__close(struct weir_clock *clock)
{
	clock_perf__close(clock);
}

WEIR_API const char *weir_clock__name(enum weir_clock_id id)
{
	static const char *const names[] = {
		[WEIR_CLOCK_MONOTONIC] = "monotonic", [WEIR_CLOCK_BOOTTIME] = "boottime",
		[WEIR_CLOCK_REALTIME] = "realtime",   [WEIR_CLOCK_TAI] = "tai",
		[WEIR_CLOCK_PERF] = "perf",
	};

	return id < WEIR_CLOCKS ? names[id] : "unknown";
}

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
