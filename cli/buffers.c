/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/buffers.h"

#include <unistd.h>

#define DEFAULT_OF_CPU	(9u << 20) /* 8 MiB for events: 100,000 records, some 20 ms of a flood */
#define LIFE_SHARE	8u
#define MEMORY_SHARE	64u /* of the machine's memory, at most */
#define OF_CPU_MIN	(64u << 10)
#define EVENT_BYTES_MAX (1u << 30)

static uint64_t system_has(int what)
{
	long n = sysconf(what);

	return n > 0 ? (uint64_t)n : 1;
}

static size_t floor_power_of_two(uint64_t n)
{
	return n ? (size_t)1 << (63 - __builtin_clzll(n)) : 0;
}

static uint64_t default_of_cpu(uint64_t cpus, uint64_t page)
{
	uint64_t most = system_has(_SC_PHYS_PAGES) * page / MEMORY_SHARE, share = DEFAULT_OF_CPU;

	while (share * cpus > most && share > OF_CPU_MIN)
		share /= 2;
	return share;
}

bool buffers__split(const struct command_def *command, uint64_t asked, struct buffers *buffers)
{
	uint64_t page = system_has(_SC_PAGESIZE), cpus = system_has(_SC_NPROCESSORS_ONLN);
	uint64_t share = asked ? asked / cpus : default_of_cpu(cpus, page);

	buffers->total = share * cpus;
	buffers->life_bytes = floor_power_of_two(share / LIFE_SHARE);
	buffers->event_bytes = floor_power_of_two(share - buffers->life_bytes);
	if (buffers->life_bytes < page) {
		say(command,
		    "--buffer %llu is too small for %llu CPUs: the least that works is %lluk",
		    (unsigned long long)asked, (unsigned long long)cpus,
		    (unsigned long long)(LIFE_SHARE * page * cpus / 1024));
		return false;
	}
	if (buffers->event_bytes > EVENT_BYTES_MAX) {
		say(command, "--buffer is too large: at most 2G a CPU, so %lluG here",
		    2 * (unsigned long long)cpus);
		return false;
	}
	return true;
}

void buffers__share(struct buffers *buffers, bool probes_have_events)
{
	size_t page = (size_t)system_has(_SC_PAGESIZE);
	size_t half = buffers->event_bytes / 2 > page ? buffers->event_bytes / 2 : page;

	buffers->outside_bytes = probes_have_events ? half : buffers->event_bytes;
	buffers->event_bytes = probes_have_events ? half : page;
}
