// SPDX-License-Identifier: BSD-2-Clause
/*
 * reuse - processes, one after another, that all get the same pid.
 *
 *	reuse COUNT
 *
 * The n-th calls getpid(), names itself "life-N", and calls getpid() again. Prints "pid PID".
 */
#include "load.h"

#include <errno.h>
#include <linux/sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* fork(), but for the choice of the pid; 0: any. */
static pid_t fork_as(pid_t pid)
{
	struct clone_args args = {.exit_signal = SIGCHLD};

	if (pid) {
		args.set_tid = (uintptr_t)&pid;
		args.set_tid_size = 1;
	}
	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

static void live(int n)
{
	char name[16];

	syscall(SYS_getpid);
	snprintf(name, sizeof(name), "life-%d", n);
	prctl(PR_SET_NAME, name);
	syscall(SYS_getpid);
	_exit(0);
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 0;
	pid_t chosen = 0;

	load__wait_for_go();
	for (int n = 0; n < count; n++) {
		pid_t pid = fork_as(chosen);

		/* In between somebody else may have got it: wait for that one's end. */
		while (pid < 0 && errno == EEXIST) {
			usleep(10000);
			pid = fork_as(chosen);
		}
		if (pid < 0)
			err(1, "clone3");
		if (!pid)
			live(n);
		chosen = pid;
		if (waitpid(pid, NULL, 0) != pid)
			err(1, "waitpid");
	}
	printf("pid %d\n", chosen);
	return 0;
}
