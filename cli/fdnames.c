/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/fdnames.h"

#include "state/fds.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CALL_ARGS      6
#define NAME_MAX_BYTES 4096 /* of one descriptor, in a line */

struct fdnames {
	struct fds *fds;
	uint64_t shown[3][16]; /* as struct probes_selection has them */
	struct sink_fds names; /* of the last call; they point into text */
	char text[CALL_ARGS][NAME_MAX_BYTES];
	bool has_cwd;
	char cwd[NAME_MAX_BYTES];
};

/* ---- /proc ------------------------------------------------------------------------------------ */

/* Where a link of /proc leads; the length, 0 where it does not. */
static size_t read_link(int dir, const char *name, char text[NAME_MAX_BYTES])
{
	ssize_t len = readlinkat(dir, name, text, NAME_MAX_BYTES - 1);

	text[len > 0 ? len : 0] = '\0';
	return len > 0 ? (size_t)len : 0;
}

/* From "flags:\t02100002" of its fdinfo. */
static bool is_cloexec(int proc, const char *fd)
{
	char path[300], text[512] = "";
	const char *flags;
	ssize_t len;
	int file;

	snprintf(path, sizeof(path), "fdinfo/%s", fd);
	file = openat(proc, path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return false;
	len = read(file, text, sizeof(text) - 1);
	close(file);
	flags = len > 0 ? strstr(text, "flags:") : NULL;
	return flags && (strtoul(flags + strlen("flags:"), NULL, 8) & O_CLOEXEC);
}

static void seed_all(struct fds *fds, uint32_t pid, int proc, DIR *dir)
{
	char text[NAME_MAX_BYTES];
	struct dirent *item;

	while ((item = readdir(dir))) {
		if (item->d_name[0] < '0' || item->d_name[0] > '9')
			continue;
		if (read_link(dirfd(dir), item->d_name, text))
			fds__seed(fds, pid, atoi(item->d_name), text,
				  is_cloexec(proc, item->d_name));
	}
}

/* One that has ended, or that we may not look at, has nothing that is known. */
static void look_up(void *ctx, struct fds *fds, uint32_t pid)
{
	char path[64], text[NAME_MAX_BYTES];
	int proc, list;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%u", pid);
	proc = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0)
		return;
	if (read_link(proc, "cwd", text))
		fds__seed(fds, pid, FDS_CWD, text, false);
	list = openat(proc, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = list >= 0 ? fdopendir(list) : NULL;
	if (dir) {
		seed_all(fds, pid, proc, dir);
		closedir(dir);
	} else if (list >= 0) {
		close(list);
	}
	close(proc);
}

/* ---- the selection ---------------------------------------------------------------------------- */

static void add_needed(struct probes_selection *selection)
{
	const char *name;
	char ignored[256];

	for (unsigned int i = 0; (name = fds__needs(i)); i++)
		probes__select(selection, "sys", name, ignored, sizeof(ignored));
}

struct fdnames *fdnames__new(struct probes_selection *selection, bool is_live)
{
	struct fdnames *names = calloc(1, sizeof(*names));

	if (!names)
		return NULL;
	names->fds = fds__new(0, is_live ? look_up : NULL, NULL);
	if (!names->fds) {
		free(names);
		return NULL;
	}
	_Static_assert(sizeof(names->shown) == sizeof(selection->syscalls), "one bit a call");
	memcpy(names->shown, selection->syscalls, sizeof(names->shown));
	if (selection->groups >> WEIR_GROUP_SYS & 1)
		add_needed(selection);
	return names;
}

void fdnames__free(struct fdnames *names)
{
	if (!names)
		return;
	fds__free(names->fds);
	free(names);
}

bool fdnames__shows(const struct fdnames *names, const struct weir_call *call)
{
	const struct weir_sys_exit *exit = call->exit ? call->exit->data : NULL;
	const struct weir_sys_enter *enter = call->enter ? call->enter->data : NULL;
	uint32_t nr = enter ? enter->nr : exit->nr, abi = enter ? enter->abi : exit->abi;

	/* What is not known cannot have been added. */
	if (abi >= sizeof(names->shown) / sizeof(names->shown[0]) || nr >= 1024)
		return true;
	return names->shown[abi][nr / 64] >> nr % 64 & 1;
}

/* ---- events ----------------------------------------------------------------------------------- */

void fdnames__meet(struct fdnames *names, uint32_t pid)
{
	fds__meet(names->fds, pid);
}

void fdnames__apply(struct fdnames *names, const struct weir_event *event)
{
	fds__apply(names->fds, event);
}

static bool copy_name(char copy[NAME_MAX_BYTES], const char *text)
{
	if (text)
		snprintf(copy, NAME_MAX_BYTES, "%s", text);
	return text;
}

/* The call may close what it names: so its own copy. */
static const char *name_of(struct fdnames *names, uint32_t i, const struct weir_decoded *decoded)
{
	const struct weir_arg *arg = &decoded->args[i];
	const char *text;

	if (arg->tag != WEIR_TAG_FD && arg->tag != WEIR_TAG_DIRFD)
		return NULL;
	text = fds__find(names->fds, decoded->pid, (int32_t)arg->u);
	return copy_name(names->text[i], text) ? names->text[i] : NULL;
}

const char *fdnames__cwd(const struct fdnames *names)
{
	return names->has_cwd ? names->cwd : NULL;
}

const struct sink_fds *fdnames__call(struct fdnames *names, const struct weir_call *call,
				     const struct weir_decoded *decoded)
{
	bool returns_fd = decoded->has_ret && decoded->ret >= 0 &&
			  fds__returns_fd(decoded->syscall);

	names->names = (struct sink_fds){0};
	names->has_cwd = copy_name(names->cwd, fds__find(names->fds, decoded->pid, FDS_CWD));
	for (uint32_t i = 0; decoded->has_args && i < decoded->nargs && i < CALL_ARGS; i++)
		names->names.arg[i] = name_of(names, i, decoded);
	fds__call(names->fds, call, decoded);
	if (returns_fd)
		names->names.result = fds__find(names->fds, decoded->pid, (int32_t)decoded->ret);
	return &names->names;
}
