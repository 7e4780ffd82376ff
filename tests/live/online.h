/* SPDX-License-Identifier: BSD-2-Clause */
/* online.h - CPUs that a test takes away and gives back. */
#ifndef WEIR_TESTS_ONLINE_H
#define WEIR_TESTS_ONLINE_H

#include <stdbool.h>

/* false: this one can't be, or not by us. */
bool set_online(unsigned cpu, bool on);

#endif /* WEIR_TESTS_ONLINE_H */
