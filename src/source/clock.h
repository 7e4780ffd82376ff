/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * clock.h - the clock of the stamps, and what lies between it and the wall.
 *
 * BPF stamps with bpf_ktime_get_ns(): CLOCK_MONOTONIC, read without a lock. User space reads the same
 * clock; the two differ by no more than the guard (docs/design.md, "Clocks").
 */
#ifndef WEIR_SOURCE_CLOCK_H
#define WEIR_SOURCE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/stream.h>

/* now_ns: the clock of the stamps. offsets: REALTIME - MONOTONIC and BOOTTIME - MONOTONIC. */
struct weir_clock {
	uint64_t (*now_ns)(void *ctx);
	void (*offsets)(void *ctx, int64_t *real_ns, int64_t *boot_ns); /* NULL: both stay 0 */
	void *ctx;
};

/* The kernel's: CLOCK_MONOTONIC. */
extern const struct weir_clock clock__kernel;

/*
 * Any clock that a stream can go by. perf's own needs an event to read it by, which *out keeps; close it.
 * Errors: EOPNOTSUPP, perf's clock is not to be read from user space here; perf_event_open(2)'s.
 */
int clock__open(struct weir_clock *out, enum weir_clock_id id);
void clock__close(struct weir_clock *clock);

/*
 * No load that stands after this may be done before the clock was read: the heads of the rings have
 * to be younger than T. A clock read alone does not hold back later loads; without the fence 30 to
 * 56 of 4 M polls were wrong.
 */
static inline void clock__fence(void)
{
#if defined(__x86_64__)
	__builtin_ia32_lfence();
#elif defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory");
#endif
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/*
 * How far the two readers of the clock can be apart, beyond the guard that is kept anyway: (change
 * of slope) x (time for which the timekeeper stands still inside an update, 1 ms here with room).
 */
uint64_t clock__slew_guard_ns(void);

/* One offset, in force from `from_ns` on. */
struct clock_offset {
	uint64_t from_ns;
	int64_t real_ns, boot_ns;
};

#define CLOCK_OFFSETS_MAX 64

/* The newest offsets, oldest first. */
struct clock_offsets {
	struct clock_offset at[CLOCK_OFFSETS_MAX];
	size_t count;
};

/* Offsets closer than this to the last are the same: two clocks cannot be read at one instant. */
#define CLOCK_STEP_MIN_NS 1000000

/* Look again. true: the wall clock was set, or the machine slept. */
bool clock_offsets__update(struct clock_offsets *offsets, const struct weir_clock *clock,
			   uint64_t now_ns);

int64_t clock_offsets__wall_ns(const struct clock_offsets *offsets, uint64_t stamp_ns);

#endif /* WEIR_SOURCE_CLOCK_H */
