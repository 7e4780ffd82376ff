/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/outputs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Mode 0600: traces have secrets in them. */
static int open_path(const struct command_def *command, const char *path)
{
	int fd;

	if (!strcmp(path, "-"))
		return STDOUT_FILENO;
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		say(command, "%s: %s", path, strerror(errno));
	return fd;
}

/* EBADF only shows when something is written: a trace in which nothing happens would look well. */
static bool check_writable(const struct command_def *command, int fd, const char *name)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && !(flags & O_PATH))
		return true;
	say(command, "%s: %s", name, strerror(EBADF));
	return false;
}

/* In one file the account, at an offset of its own, would stand on the first events. */
static bool is_same(int a, int b)
{
	struct stat a_st, b_st;

	if (a == b)
		return true;
	if (fstat(a, &a_st) || fstat(b, &b_st))
		return false;
	return S_ISREG(a_st.st_mode) && a_st.st_dev == b_st.st_dev && a_st.st_ino == b_st.st_ino;
}

static bool open_ledger(const struct command_def *command, struct outputs *outputs, bool writes)
{
	outputs->ledger_fd = open_path(command, outputs->ledger_path);
	if (outputs->ledger_fd < 0 ||
	    !check_writable(command, outputs->ledger_fd, outputs->ledger_path))
		return false;
	if (!writes || !is_same(outputs->trace_fd, outputs->ledger_fd))
		return true;
	say(command, "%s: the trace goes there already; --ledger needs a file of its own",
	    outputs->ledger_path);
	return false;
}

bool outputs__open(const struct command_def *command, struct outputs *outputs, int otherwise,
		   bool writes)
{
	outputs->trace_fd = outputs->trace_path ? open_path(command, outputs->trace_path)
						: otherwise;
	if (outputs->trace_fd < 0)
		return false;
	if (writes && !check_writable(command, outputs->trace_fd, "the output"))
		return false;
	return !outputs->ledger_path || open_ledger(command, outputs, writes);
}

/* What a shell has redirected is the shell's to empty. */
static bool empty(const struct command_def *command, int fd, const char *path)
{
	struct stat st;

	if (!path || fd <= STDERR_FILENO || fstat(fd, &st) || !S_ISREG(st.st_mode))
		return true;
	if (!ftruncate(fd, 0))
		return true;
	say(command, "%s: %s", path, strerror(errno));
	return false;
}

bool outputs__empty(const struct command_def *command, const struct outputs *outputs)
{
	return empty(command, outputs->trace_fd, outputs->trace_path) &&
	       empty(command, outputs->ledger_fd, outputs->ledger_path);
}

static void close_own(int *fd)
{
	if (*fd > STDERR_FILENO)
		close(*fd);
	*fd = -1;
}

void outputs__close(struct outputs *outputs)
{
	close_own(&outputs->trace_fd);
	close_own(&outputs->ledger_fd);
}
