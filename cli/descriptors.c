/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/descriptors.h"

#include <sys/resource.h>
#include <unistd.h>

#define OF_MACHINE 160 /* programs, links, maps and files, with room for a few */
#define OF_CPU	   4

uint64_t descriptors__needed(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	return OF_MACHINE + OF_CPU * (uint64_t)(cpus > 0 ? cpus : 1);
}

void descriptors__raise_limit(void)
{
	struct rlimit limit;
	uint64_t needed = descriptors__needed();

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= needed)
		return;
	limit.rlim_cur = needed;
	if (limit.rlim_max < needed)
		limit.rlim_max = needed;
	if (!setrlimit(RLIMIT_NOFILE, &limit) || getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

uint64_t descriptors__limit(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) ? 0 : limit.rlim_cur;
}
