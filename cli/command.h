/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * command.h - a program that is started to be watched.
 *
 * It is forked first, with all of the caller's rights, and waits; so it can be put into the filter
 * before it does anything, and weir can give its own rights up without taking the program's.
 */
#ifndef WEIR_CLI_COMMAND_H
#define WEIR_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct command {
	pid_t pid;
	int go_fd;  /* closing it is giving up, a byte lets it go */
	int err_fd; /* errno of an exec that failed, nothing otherwise */
	int wait_status;
	bool ended;
};

/*
 * Where the program of that name is, as execvp(3) looks for it: so that the trace shows its exec, and
 * not each place where it is not. -ENOENT, or -EACCES when what was found may not be run.
 */
int command__find(const char *name, char *path, size_t size);

/* argv ends with NULL; path is from command__find(). 0, or -errno. */
int command__fork(struct command *command, const char *path, char **argv);

/*
 * Let it go, and see its exec through. 0, or the exec's -errno: it has ended then. -EINTR: a signal
 * has ended it before, or weir is to stop and the exec is not over.
 */
int command__start(struct command *command);

/* Was it started, be it in vain? */
bool command__was_let_go(const struct command *command);

/* Has it ended? Reaps it then. */
bool command__ended(struct command *command);

/* Wait until it has ended, and reap it. */
void command__wait(struct command *command);

/* As a shell has it: its exit status, or 128 + the signal that ended it. */
int command__status(const struct command *command);

/* Take back one that was not started; nothing happens to one that was. */
void command__abandon(struct command *command);

#endif /* WEIR_CLI_COMMAND_H */
