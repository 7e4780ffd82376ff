// SPDX-License-Identifier: BSD-2-Clause
/*
 * forks - on each CPU of a list a process that forks and execs, one child after another.
 *
 *	forks CPU[,CPU]... COUNT PROGRAM
 *
 * The i-th child runs PROGRAM with the arguments i % 128 (its status, if it is `tiny`) and i. Prints
 * for each "child PID PARENT CPU I STATUS".
 */
#include "load.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define PARENTS_MAX 64

struct child {
	pid_t pid, parent;
	int status;
};

static struct child *children; /* [parent][i], shared by all */
static int count;
static char *program;

static void run_child(int i)
{
	char status[16], number[16];
	char *argv[] = {program, status, number, NULL};

	snprintf(status, sizeof(status), "%d", i % 128);
	snprintf(number, sizeof(number), "%d", i);
	execv(program, argv);
	_exit(255);
}

static void be_parent(int cpu, struct child *mine)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	load__pin(cpu);
	for (int i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid < 0)
			_exit(1);
		if (!pid)
			run_child(i);
		mine[i].pid = pid;
		mine[i].parent = getpid();
		if (waitpid(pid, &mine[i].status, 0) != pid)
			_exit(1);
	}
	_exit(0);
}

static int parse_cpus(char *list, int *cpus)
{
	int n = 0;

	for (char *word = strtok(list, ","); word && n < PARENTS_MAX; word = strtok(NULL, ","))
		cpus[n++] = atoi(word);
	return n;
}

int main(int argc, char **argv)
{
	int cpus[PARENTS_MAX], parents, status;
	size_t size;

	if (argc != 4)
		errx(1, "see the source");
	parents = parse_cpus(argv[1], cpus);
	count = atoi(argv[2]);
	program = argv[3];
	size = (size_t)(parents * count) * sizeof(*children);
	children = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (children == MAP_FAILED)
		err(1, "mmap");

	load__wait_for_go();
	for (int p = 0; p < parents; p++)
		if (!fork())
			be_parent(cpus[p], children + p * count);
	for (int p = 0; p < parents; p++)
		if (wait(&status) < 0 || status)
			errx(1, "a parent failed");
	for (int n = 0; n < parents * count; n++)
		printf("child %d %d %d %d %d\n", children[n].pid, children[n].parent,
		       cpus[n / count], n % count, WEXITSTATUS(children[n].status));
	return 0;
}
