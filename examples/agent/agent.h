/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* agent.h - what the agent's two halves say to each other. */
#include <weir/record.h>

#define TYPE_SIGNAL WEIR_TYPE_USER

struct signal {
	__u32 sender, target;
	__s32 sig;
	__u32 pad;
	char sender_comm[16], target_comm[16];
};
