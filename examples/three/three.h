/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* three.h - what the two programs send. */
#include <linux/types.h>

struct fork {
	__u64 ns;
	__u32 parent, child;
};

struct exit {
	__u32 pid, tid;
};
