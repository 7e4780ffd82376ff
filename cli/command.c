/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/command.h"
#include "cli/options.h"
#include "cli/stop.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int check_program(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || access(path, X_OK))
		return -EACCES;
	return 0;
}

int command__find(const char *name, char *path, size_t size)
{
	const char *dirs = getenv("PATH");
	int result = -ENOENT;

	if (strchr(name, '/')) {
		snprintf(path, size, "%s", name);
		return check_program(path);
	}
	if (!dirs)
		dirs = "/bin:/usr/bin";
	while (*name && dirs) {
		size_t len = strcspn(dirs, ":");
		int err;

		/* An empty one is the current directory. */
		snprintf(path, size, "%.*s%s%s", (int)len, dirs, len ? "/" : "", name);
		err = check_program(path);
		if (!err)
			return 0;
		if (err == -EACCES)
			result = err;
		dirs = dirs[len] ? dirs + len + 1 : NULL;
	}
	return result;
}

/* A script without its interpreter's name is the shell's, as execvp(3) has it. */
static void run_program(const char *path, char **argv)
{
	char **script;
	size_t n = 0;

	execv(path, argv);
	if (errno != ENOEXEC)
		return;
	while (argv[n])
		n++;
	script = calloc(n + 2, sizeof(*script));
	if (!script)
		return;
	script[0] = argv[0];
	script[1] = (char *)path;
	memcpy(&script[2], &argv[1], n * sizeof(*argv));
	execv("/bin/sh", script);
	free(script);
}

static void run_child(int go_fd, int err_fd, const char *path, char **argv)
{
	ssize_t n;
	char go;
	int err;

	/* Nothing stands between being let go and the exec: that is to be the first thing seen. */
	do
		n = read(go_fd, &go, 1);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(1);
	run_program(path, argv);
	err = errno;
	/* The pipe is empty and this is less than its atomic size: it can't be cut short. */
	n = write(err_fd, &err, sizeof(err));
	_exit(err == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUN);
}

static void close_pair(int fds[2])
{
	close(fds[0]);
	close(fds[1]);
}

/*
 * What is ignored stays so across exec, what is caught does not: the program has both as weir's
 * caller meant them. A signal that comes meanwhile waits, or weir's handler would swallow it.
 */
static pid_t fork_without_handlers(void)
{
	sigset_t all, before;
	pid_t pid;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	pid = fork();
	if (!pid)
		stop__restore();
	sigprocmask(SIG_SETMASK, &before, NULL);
	return pid;
}

int command__fork(struct command *command, const char *path, char **argv)
{
	int go[2], failed[2], err;

	if (pipe2(go, O_CLOEXEC))
		return -errno;
	if (pipe2(failed, O_CLOEXEC)) {
		err = -errno;
		close_pair(go);
		return err;
	}
	command->pid = fork_without_handlers();
	if (command->pid < 0) {
		err = -errno;
		close_pair(go);
		close_pair(failed);
		return err;
	}
	if (!command->pid) {
		close(go[1]);
		close(failed[0]);
		run_child(go[0], failed[1], path, argv);
	}
	close(go[0]);
	close(failed[1]);
	command->go_fd = go[1];
	command->err_fd = failed[0];
	command->wait_status = 0;
	command->ended = false;
	return 0;
}

static void reap(struct command *command, int flags)
{
	pid_t pid;

	if (command->ended)
		return;
	do
		pid = waitpid(command->pid, &command->wait_status, flags);
	while (pid < 0 && errno == EINTR);
	command->ended = pid == command->pid;
}

int command__start(struct command *command)
{
	ssize_t n = write(command->go_fd, "", 1);
	int err = 0;

	close(command->go_fd);
	command->go_fd = -1;
	if (n != 1)
		err = EINTR;
	else
		do
			n = read(command->err_fd, &err, sizeof(err));
		while (n < 0 && errno == EINTR && !stop__requested);
	close(command->err_fd);
	command->err_fd = -1;
	/* An exec can hang, on a file system that does not answer: then the command can't be reaped either. */
	if (n < 0)
		return -EINTR;
	if (err)
		reap(command, 0);
	return -err;
}

bool command__was_let_go(const struct command *command)
{
	return command->go_fd < 0;
}

bool command__ended(struct command *command)
{
	reap(command, WNOHANG);
	return command->ended;
}

void command__wait(struct command *command)
{
	reap(command, 0);
}

int command__status(const struct command *command)
{
	if (WIFSIGNALED(command->wait_status))
		return 128 + WTERMSIG(command->wait_status);
	return WEXITSTATUS(command->wait_status);
}

void command__abandon(struct command *command)
{
	if (command->pid <= 0 || command->go_fd < 0)
		return;
	close(command->go_fd);
	close(command->err_fd);
	command->go_fd = command->err_fd = -1;
	reap(command, 0);
}
