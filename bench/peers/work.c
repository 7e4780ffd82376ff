/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * work - what is traced, and what it noticed of that.
 *
 *	work run FILE COMMAND...	runs COMMAND; writes into FILE its ns from fork to end, and its ns of
 *					CPU time
 *	work uname CALLS		so many calls of uname() on each CPU, at full speed
 *
 * The argument of each uname() is a number in place of an address: UNAME_MARK, the CPU, and a count from 0.
 * No address is like that, so the kernel refuses it at once; but each tool shows it, and what was left out,
 * or shown twice, is known afterwards.
 */
#include "bench/peers/work.h"

#include <err.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static uint64_t timeval_ns(struct timeval tv)
{
	return (uint64_t)tv.tv_sec * 1000000000 + (uint64_t)tv.tv_usec * 1000;
}

static int run(const char *path, char **argv)
{
	uint64_t begin_ns = now_ns(), end_ns;
	struct rusage usage;
	pid_t pid = fork();
	int status;
	FILE *file;

	if (pid < 0)
		err(1, "fork");
	if (!pid) {
		execvp(argv[0], argv);
		err(127, "%s", argv[0]);
	}
	if (wait4(pid, &status, 0, &usage) < 0)
		err(1, "wait");
	end_ns = now_ns();
	file = fopen(path, "we");
	if (!file)
		err(1, "%s", path);
	fprintf(file, "%" PRIu64 " %" PRIu64 "\n", end_ns - begin_ns,
		timeval_ns(usage.ru_utime) + timeval_ns(usage.ru_stime));
	if (fclose(file))
		err(1, "%s", path);
	return status ? 1 : 0;
}

static void call(unsigned cpu, uint64_t calls)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		err(1, "CPU %u", cpu);
	for (uint64_t i = 0; i < calls; i++)
		syscall(SYS_uname, UNAME_MARK | (uint64_t)cpu << UNAME_CPU_SHIFT | i);
	_exit(0);
}

static int call_everywhere(uint64_t calls)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int status, failed = 0;

	if (!calls || calls >> UNAME_CPU_SHIFT || cpus > UNAME_CPUS)
		errx(2, "so many calls, or CPUs, have no numbers");
	for (long cpu = 0; cpu < cpus; cpu++) {
		pid_t pid = fork();

		if (pid < 0)
			err(1, "fork");
		if (!pid)
			call((unsigned)cpu, calls);
	}
	while (wait(&status) > 0)
		failed |= status;
	return failed ? 1 : 0;
}

int main(int argc, char **argv)
{
	if (argc >= 4 && !strcmp(argv[1], "run"))
		return run(argv[2], argv + 3);
	if (argc == 3 && !strcmp(argv[1], "uname"))
		return call_everywhere(strtoull(argv[2], NULL, 10));
	errx(2, "usage: work run FILE COMMAND... | work uname CALLS");
}
