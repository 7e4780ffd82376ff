/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * flags.h - numbers of system calls as the names that programmers know them by.
 *
 * Constant tables, by the set's word in probes/syscalls.tbl. What a table does not know stays a
 * number: no bit and no value is ever left out.
 */
#ifndef WEIR_SINKS_FLAGS_H
#define WEIR_SINKS_FLAGS_H

#include <stdint.h>

struct out;

/* O_RDONLY|O_CLOEXEC, SOCK_STREAM, 0x40|...; `set` NULL or unknown: hex. */
void flags__put(struct out *out, const char *set, uint64_t value);
void flags__put_enum(struct out *out, const char *set, uint64_t value);

/* "SIGTERM", "SIGRT_3", or the number. */
void flags__put_signal(struct out *out, uint64_t sig);

#define ERRNO_MAX 4095 /* results from -4095 to -1 are errors, on every architecture */

/* "ENOENT"; NULL: no such number. */
const char *flags__errno_name(int err);

/* What a set is called; NULL: there are not so many. For the manual and its test. */
const char *flags__set_name(unsigned index);

#endif /* WEIR_SINKS_FLAGS_H */
