/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fence_load.h - the load of the fence tests: a process with a loop of uname() on each CPU, and
 * the program of fence_control.bpf.c, which sends each of these calls. One at a time.
 */
#ifndef WEIR_TESTS_FENCE_LOAD_H
#define WEIR_TESTS_FENCE_LOAD_H

#include <stdint.h>

#include "fence_control.h"
#include "fence_control.skel.h"

/* Program attached, process there, no call made yet. pause_us: between bursts; 0: none. */
struct fence_control *fence_load__open(unsigned int pause_us);
void fence_load__go(void);

/* No more calls. */
void fence_load__end(void);

/* After the end: calls made, and loops that made some. */
uint64_t fence_load__calls(void);
unsigned int fence_load__loops(void);

/*
 * Calls that are missing from what came and what could not be sent. The kernel has to have skipped
 * the program for each of them, since it ran on that CPU already; it may have been for other calls.
 */
uint64_t fence_load__skipped(const struct fence_control *control, uint64_t accounted);

void fence_load__close(struct fence_control *control);

#endif /* WEIR_TESTS_FENCE_LOAD_H */
