/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * budget.h - what the system lets a process have of descriptors and of locked memory, held against
 * what perf rings will take of both, before the first of them is made.
 *
 * Without it the n-th ring fails, with an errno that names neither the limit nor the number.
 */
#ifndef WEIR_SOURCE_BUDGET_H
#define WEIR_SOURCE_BUDGET_H

#include "source/reason.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUDGET_UNLIMITED UINT64_MAX

struct budget_need {
	uint64_t fds;
	uint64_t rings;
	uint64_t ring_bytes; /* of data; a page of head and tail comes to each */
};

struct budget_limits {
	uint64_t fds_max;	/* RLIMIT_NOFILE */
	uint64_t fds_open;	/* of this process; those may have holes, so this is the least */
	uint64_t page_bytes;	/* the kernel counts pages */
	uint64_t per_cpu_kb;	/* sysctl kernel.perf_event_mlock_kb: for all rings of a user */
	uint64_t cpus;		/* online */
	uint64_t memlock_bytes; /* RLIMIT_MEMLOCK: what exceeds the above counts against it */
	uint64_t pinned_bytes;	/* of that, used by this process */
	bool unlocked; /* CAP_IPC_LOCK, or kernel.perf_event_paranoid is -1: memory is not limited */
};

/* As they are now; what can't be read is not limited: then the kernel says so later. */
void budget__read_limits(struct budget_limits *limits);

/*
 * 0, or -EMFILE or -EPERM (what open and mmap would say), and a sentence with the numbers and the
 * way out. Other processes of the user may have rings, too, which nobody can ask for: enough here
 * may still be too little there.
 */
int budget__judge(const struct budget_limits *limits, const struct budget_need *need,
		  const struct reason *reason);

/* -EPERM: the kernel refused to map a ring all the same. */
int budget__refused(const struct budget_limits *limits, const struct budget_need *need,
		    const struct reason *reason);

#endif /* WEIR_SOURCE_BUDGET_H */
