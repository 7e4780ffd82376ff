/* SPDX-License-Identifier: BSD-2-Clause */
/* others.h - what others.bpf.c sends: 20 bytes, its stamp in the middle, as it may be with others. */
#ifndef WEIR_TESTS_OTHERS_H
#define WEIR_TESTS_OTHERS_H

#include <linux/types.h>

#define OTHERS_MAGIC	  0x07e25
#define OTHERS_RING_BYTES 65536

struct others_event {
	__u32 magic;
	__u64 stamp;
	__u32 cpu;
	__u32 pad;
} __attribute__((packed));

#endif /* WEIR_TESTS_OTHERS_H */
