/* SPDX-License-Identifier: BSD-2-Clause */
/* unit.h - what cmocka wants to see first, and what these tests share. */
#ifndef CORE_UNIT_H
#define CORE_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rng.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

#endif /* CORE_UNIT_H */
