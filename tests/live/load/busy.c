// SPDX-License-Identifier: BSD-2-Clause
/*
 * busy - processes that use a CPU, and say how much of it.
 *
 *	busy short COUNT US	as many children, one after another, each with that much CPU time
 *	busy loop CPU MS	a loop on that CPU, ahead of everybody else where that is allowed
 *	busy pipe CPU COUNT	a byte goes to a child on the same CPU and back, that often
 *
 * Prints "child PID US" for each child, by what the kernel told its parent, and "self PID NS".
 */
#include "load.h"

#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

static uint64_t own_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void burn(uint64_t ns)
{
	while (own_ns() < ns)
		;
}

static pid_t fork_or_die(void)
{
	pid_t pid = fork();

	if (pid < 0)
		err(1, "fork");
	return pid;
}

static void reap(pid_t pid)
{
	struct rusage usage;

	if (wait4(pid, NULL, 0, &usage) != pid)
		err(1, "wait4");
	printf("child %d %lld\n", pid,
	       (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000LL +
		       usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void run_short(int count, int us)
{
	for (int i = 0; i < count; i++) {
		pid_t pid = fork_or_die();

		if (!pid) {
			burn((uint64_t)us * 1000);
			_exit(0);
		}
		reap(pid);
	}
}

static void run_loop(int cpu, int ms)
{
	struct sched_param first = {.sched_priority = 1};

	load__pin(cpu);
	sched_setscheduler(0, SCHED_FIFO, &first);
	burn((uint64_t)ms * 1000000);
}

static void echo(int in, int out)
{
	char byte;

	while (read(in, &byte, 1) == 1)
		if (write(out, &byte, 1) != 1)
			_exit(1);
	_exit(0);
}

static void run_pipe(int cpu, int count)
{
	int there[2], back[2];
	char byte = 0;
	pid_t pid;

	load__pin(cpu);
	if (pipe(there) || pipe(back))
		err(1, "pipe");
	pid = fork_or_die();
	if (!pid) {
		close(there[1]);
		echo(there[0], back[1]);
	}
	for (int i = 0; i < count; i++)
		if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
			err(1, "pipe");
	close(there[1]);
	reap(pid);
}

int main(int argc, char **argv)
{
	if (argc != 4)
		errx(2, "usage: busy short COUNT US | loop CPU MS | pipe CPU COUNT");
	load__wait_for_go();
	if (!strcmp(argv[1], "short"))
		run_short(atoi(argv[2]), atoi(argv[3]));
	else if (!strcmp(argv[1], "loop"))
		run_loop(atoi(argv[2]), atoi(argv[3]));
	else
		run_pipe(atoi(argv[2]), atoi(argv[3]));
	printf("self %d %llu\n", getpid(), (unsigned long long)own_ns());
	return 0;
}
