/* SPDX-License-Identifier: BSD-2-Clause */
#include "measure/ordinary.h"

#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/syscall.h>
#include <unistd.h>

void ordinary__be(void)
{
	/* A slice of 0 is the kernel's own choice. Without the right to be more, it is ordinary as it is. */
	struct sched_attr attr = {.size = sizeof(attr), .sched_policy = SCHED_NORMAL};

	syscall(SYS_sched_setattr, 0, &attr, 0);
}
