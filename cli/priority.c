/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/priority.h"

#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NICE	 (-20)
#define SLICE_NS 100000

void priority__raise(void)
{
	struct sched_attr attr = {
		.size = sizeof(attr),
		.sched_policy = SCHED_NORMAL,
		.sched_nice = NICE,
		.sched_runtime = SLICE_NS,
	};

	/* Kernels that have no slices take the rest, or refuse it all. */
	if (syscall(SYS_sched_setattr, 0, &attr, 0))
		setpriority(PRIO_PROCESS, 0, NICE);
}
