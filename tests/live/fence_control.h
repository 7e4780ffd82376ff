/* SPDX-License-Identifier: BSD-2-Clause */
/* fence_control.h - what fence_control.bpf.c sends and fence_control.c reads. */
#ifndef WEIR_TESTS_FENCE_CONTROL_H
#define WEIR_TESTS_FENCE_CONTROL_H

#include <linux/types.h>

struct control_sample {
	__u64 stamp_ns;
	char comm[16];
	__u64 stack[8];
};

#endif /* WEIR_TESTS_FENCE_CONTROL_H */
