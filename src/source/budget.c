/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * budget.c - descriptors and locked memory: how much there may be, how much it will take.
 *
 * Judging is arithmetic on numbers that are handed in; only reading them asks the kernel.
 */
#include "source/budget.h"

#include "source/cpus.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static uint64_t limit_of(int resource)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return BUDGET_UNLIMITED;
	return limit.rlim_cur;
}

static uint64_t count_open(void)
{
	DIR *dir = opendir("/proc/self/fd");
	uint64_t count = 0;

	if (!dir)
		return 0;
	while (readdir(dir))
		count++;
	closedir(dir);
	/* ".", ".." and the folder's own. */
	return count > 3 ? count - 3 : 0;
}

static bool read_number(const char *path, int64_t *number)
{
	FILE *file = fopen(path, "re");
	bool read;

	if (!file)
		return false;
	read = fscanf(file, "%" SCNd64, number) == 1;
	fclose(file);
	return read;
}

static void read_status(struct budget_limits *limits)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[256];
	uint64_t value;

	if (!file)
		return;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "VmPin: %" SCNu64, &value) == 1)
			limits->pinned_bytes = value * 1024;
		else if (sscanf(line, "CapEff: %" SCNx64, &value) == 1)
			limits->unlocked = value >> CAP_IPC_LOCK & 1;
	}
	fclose(file);
}

void budget__read_limits(struct budget_limits *limits)
{
	struct cpus online;
	int64_t number;

	*limits = (struct budget_limits){
		.fds_max = limit_of(RLIMIT_NOFILE),
		.fds_open = count_open(),
		.page_bytes = (uint64_t)sysconf(_SC_PAGESIZE),
		.memlock_bytes = limit_of(RLIMIT_MEMLOCK),
		.cpus = cpus__online(&online, NULL) ? 0 : cpus__count(&online),
	};
	read_status(limits);
	if (read_number("/proc/sys/kernel/perf_event_paranoid", &number) && number < 0)
		limits->unlocked = true;
	if (!limits->cpus || !read_number("/proc/sys/kernel/perf_event_mlock_kb", &number))
		limits->unlocked = true;
	else
		limits->per_cpu_kb = number > 0 ? (uint64_t)number : 0;
}

static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? BUDGET_UNLIMITED : product;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? BUDGET_UNLIMITED : sum;
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static uint64_t round_up(uint64_t value, uint64_t unit)
{
	return plus(value, unit - 1) / unit;
}

static uint64_t locked_bytes(const struct budget_limits *limits, const struct budget_need *need)
{
	return times(need->rings, plus(need->ring_bytes, limits->page_bytes));
}

static int judge_fds(const struct budget_limits *limits, const struct budget_need *need,
		     const struct reason *reason)
{
	uint64_t wanted = plus(limits->fds_open, need->fds);

	if (wanted <= limits->fds_max)
		return 0;
	/* Some room for what the program opens later. */
	return reason__say(reason, -EMFILE,
			   "%" PRIu64 " file descriptors are needed and %" PRIu64 " are open, but "
			   "at most %" PRIu64 " may be; allow more: ulimit -n %" PRIu64,
			   need->fds, limits->fds_open, limits->fds_max,
			   times(round_up(wanted, 1024), 1024));
}

/* What the user's rings may have, and what this process may have beyond that. */
static uint64_t free_locked(const struct budget_limits *limits)
{
	uint64_t shared = times(times(limits->per_cpu_kb, 1024), limits->cpus);

	return plus(shared, less(limits->memlock_bytes, limits->pinned_bytes));
}

/* The sysctl that would be enough by itself. */
static uint64_t enough_kb(const struct budget_limits *limits, const struct budget_need *need)
{
	return round_up(round_up(locked_bytes(limits, need), 1024),
			limits->cpus ? limits->cpus : 1);
}

static int say_memory(const struct budget_limits *limits, const struct budget_need *need,
		      const char *but, const struct reason *reason)
{
	return reason__say(
		reason, -EPERM,
		"%" PRIu64 " rings of %" PRIu64 " KiB need %" PRIu64 " KiB of locked memory, %s "
		"(kernel.perf_event_mlock_kb is %" PRIu64 " for each of %" PRIu64 " CPUs, "
		"RLIMIT_MEMLOCK %" PRIu64 " KiB, of which %" PRIu64 " KiB are used); make the "
		"rings smaller, run with CAP_IPC_LOCK, or allow more: sysctl "
		"kernel.perf_event_mlock_kb=%" PRIu64,
		need->rings, need->ring_bytes / 1024, locked_bytes(limits, need) / 1024, but,
		limits->per_cpu_kb, limits->cpus, limits->memlock_bytes / 1024,
		limits->pinned_bytes / 1024, enough_kb(limits, need));
}

static int judge_memory(const struct budget_limits *limits, const struct budget_need *need,
			const struct reason *reason)
{
	uint64_t available = free_locked(limits);
	char but[64];

	if (limits->unlocked || locked_bytes(limits, need) <= available)
		return 0;
	snprintf(but, sizeof(but), "but %" PRIu64 " KiB are allowed", available / 1024);
	return say_memory(limits, need, but, reason);
}

int budget__judge(const struct budget_limits *limits, const struct budget_need *need,
		  const struct reason *reason)
{
	int err = judge_fds(limits, need, reason);

	return err ? err : judge_memory(limits, need, reason);
}

int budget__refused(const struct budget_limits *limits, const struct budget_need *need,
		    const struct reason *reason)
{
	return say_memory(limits, need, "and others of this user have taken what there is", reason);
}
