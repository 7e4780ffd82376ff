/* SPDX-License-Identifier: BSD-2-Clause */
/* work.h - how the calls of `work uname` are numbered: f 00 CC NNNNNNNNNN in hex, 16 digits. */
#ifndef WEIR_BENCH_PEERS_WORK_H
#define WEIR_BENCH_PEERS_WORK_H

#define UNAME_MARK	0xf000000000000000ull
#define UNAME_DIGITS	"f000" /* what each number begins with, so that UNAME_CPUS are told apart */
#define UNAME_CPU_SHIFT 40
#define UNAME_CPUS	256

#endif /* WEIR_BENCH_PEERS_WORK_H */
