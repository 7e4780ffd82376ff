/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* opens.h - what the program sends. */
#include <linux/types.h>

struct open {
	__u64 ns;
	__u32 pid, cpu;
	char comm[16];
};
