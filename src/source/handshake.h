/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * handshake.h - is the clock that we read the one that the kernel stamps with?
 *
 * They are not the same where a time namespace has moved ours, or where the caller took one clock for
 * another. Then every T is wrong by what lies between them, so it is asked for at the start and once a
 * second: a BPF program stores its own clock between two looks at ours.
 */
#ifndef WEIR_SOURCE_HANDSHAKE_H
#define WEIR_SOURCE_HANDSHAKE_H

#include "source/clock.h"

#include <stdint.h>

struct handshake {
	int prog_fd, map_fd;
	const uint64_t *kernel_ns; /* what the program stored */
};

/*
 * Errors: EOPNOTSUPP, BPF has no helper for this clock (REALTIME; perf's; TAI before 6.1); EPERM and
 * bpf(2)'s. Nothing can be said then.
 */
int handshake__open(struct handshake *h, enum weir_clock_id id);
void handshake__close(struct handshake *h);

/*
 * *off_ns: how far the kernel's clock is ahead of `clock`, 0 when its stamp lies between our two
 * readings, give or take guard_ns. Errors: bpf(2)'s.
 */
int handshake__shake(const struct handshake *h, const struct weir_clock *clock, uint64_t guard_ns,
		     int64_t *off_ns);

#endif /* WEIR_SOURCE_HANDSHAKE_H */
