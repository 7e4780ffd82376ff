/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/filter.h"

#include "state/cgroupfs.h"

#include <fnmatch.h>
#include <pwd.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define ERRNO_MAX 4095

#define AT(member) OPTION_AT(struct filter, member)

const struct option_def filter__options[] = {
	{0, "comm", OPTION_LIST, AT(comms), "GLOB",
	 "only of threads whose name matches; repeat for more"},
	{0, "container", OPTION_STRING, AT(container), "ID",
	 "only in this container: its id or name, or how that begins"},
	{0, "cgroup", OPTION_STRING, AT(cgroup), "PATH", "only in this cgroup and those below it"},
	{0, "uid", OPTION_STRING, AT(user), "USER",
	 "only of processes that USER (name or number) ran"},
	{'P', "path", OPTION_LIST, AT(paths), "PATH",
	 "of system calls, only those with this path as an argument;\n"
	 "repeat for more"},
	{0, "failed", OPTION_FLAG, AT(failed), NULL, "of system calls, only those that failed"},
	{0, "errno", OPTION_STRING, AT(errno_name), "NAME",
	 "of system calls, only those that failed with NAME (ENOENT)"},
	{0, "min-duration", OPTION_DURATION, AT(min_duration_ns), "TIME",
	 "of system calls, only those that took TIME or longer"},
	{0},
};

static bool resolve_user(struct filter *filter, const struct command_def *command)
{
	const struct passwd *user;
	unsigned long uid;
	char *end;

	if (!filter->user)
		return true;
	user = getpwnam(filter->user);
	uid = strtoul(filter->user, &end, 10);
	if (!user && (*end || uid > UINT32_MAX - 1)) {
		say(command, "there is no user '%s'", filter->user);
		return false;
	}
	filter->uid = user ? user->pw_uid : (uint32_t)uid;
	return true;
}

static bool resolve_errno(struct filter *filter, const struct command_def *command)
{
	unsigned long number;
	char *end;

	if (!filter->errno_name)
		return true;
	number = strtoul(filter->errno_name, &end, 10);
	for (int err = 1; err <= ERRNO_MAX; err++) {
		const char *name = strerrorname_np(err);
		bool is_number = !*end && number == (unsigned long)err;

		if (!name || (!is_number && strcasecmp(name, filter->errno_name) != 0))
			continue;
		filter->error = err;
		return true;
	}
	say(command, "--errno takes a name such as ENOENT, or its number, not '%s'",
	    filter->errno_name);
	return false;
}

static bool has_dots(const char *path)
{
	for (const char *part = path; part; part = strchr(part, '/')) {
		size_t len;

		part += strspn(part, "/");
		len = strcspn(part, "/");
		if ((len == 1 || len == 2) && !strncmp(part, "..", len))
			return true;
	}
	return false;
}

/* What is copied from a shell begins where the hierarchy is mounted. */
static void strip_mount(struct filter *filter)
{
	struct cgroupfs *cgroupfs = filter->cgroup ? cgroupfs__open(NULL) : NULL;

	if (cgroupfs)
		filter->cgroup = cgroupfs__from_root(cgroupfs, filter->cgroup);
	cgroupfs__close(cgroupfs);
}

/* It is compared with paths that the kernel wrote, and opened below the hierarchy's root. */
static bool check_cgroup(struct filter *filter, const struct command_def *command)
{
	strip_mount(filter);
	if (!filter->cgroup || (filter->cgroup[0] == '/' && !has_dots(filter->cgroup)))
		return true;
	say(command,
	    "--cgroup takes a path as /proc/PID/cgroup has it, such as /system.slice, not '%s'",
	    filter->cgroup);
	return false;
}

/* NULL, or text that is freed with the filter, once. */
static void add_target(struct filter *filter, const char *text)
{
	char *own;

	for (unsigned i = 0; text && i < filter->nr_targets; i++)
		if (!strcmp(filter->targets[i], text))
			return;
	own = text ? strdup(text) : NULL;
	if (own)
		filter->targets[filter->nr_targets++] = own;
}

static void resolve_paths(struct filter *filter)
{
	char cwd[PATH_MAX], full[PATHS_MAX], real[PATH_MAX];

	for (unsigned i = 0; i < filter->paths.count; i++) {
		const char *path = filter->paths.at[i];

		add_target(filter, path);
		if (paths__resolve(getcwd(cwd, sizeof(cwd)), path, strlen(path), full))
			add_target(filter, full);
		add_target(filter, realpath(path, real));
	}
}

bool filter__check(struct filter *filter, const struct command_def *command)
{
	resolve_paths(filter);
	return resolve_user(filter, command) && resolve_errno(filter, command) &&
	       check_cgroup(filter, command);
}

void filter__free(struct filter *filter)
{
	while (filter->nr_targets)
		free(filter->targets[--filter->nr_targets]);
}

bool filter__is_set(const struct filter *filter)
{
	return filter->comms.count || filter->container || filter->cgroup || filter->user ||
	       filter__needs_calls(filter);
}

const char *filter__of_calls(const struct filter *filter)
{
	if (filter->paths.count)
		return "--path";
	if (filter->failed)
		return "--failed";
	if (filter->errno_name)
		return "--errno";
	return filter->min_duration_ns ? "--min-duration" : NULL;
}

bool filter__needs_calls(const struct filter *filter)
{
	return filter__of_calls(filter);
}

bool filter__needs_fds(const struct filter *filter)
{
	return filter->paths.count;
}

static bool comm_matches(const struct filter *filter, const struct sink_event *item)
{
	char comm[17] = "";

	if (item->comm)
		strncpy(comm, item->comm, sizeof(comm) - 1);
	for (unsigned i = 0; i < filter->comms.count; i++)
		if (!fnmatch(filter->comms.at[i], comm, 0))
			return true;
	return !filter->comms.count;
}

static bool begins_with(const char *text, const char *start)
{
	return text && !strncmp(text, start, strlen(start));
}

bool filter__is_container(const struct filter *filter, const char *container)
{
	return begins_with(container, filter->container);
}

bool filter__is_in_cgroup(const struct filter *filter, const char *path)
{
	size_t len = strlen(filter->cgroup);

	while (len > 1 && filter->cgroup[len - 1] == '/')
		len--;
	if (!path || strncmp(path, filter->cgroup, len) != 0)
		return false;
	return len == 1 || !path[len] || path[len] == '/';
}

static bool task_matches(const struct filter *filter, const struct sink_event *item,
			 const struct task_view *task)
{
	if (filter->container && !filter__is_container(filter, item->container))
		return false;
	if (filter->cgroup && (!task || !filter__is_in_cgroup(filter, task->cgroup)))
		return false;
	/* The kernel has looked at the caller of a system call, who may have changed since its exec. */
	if (filter->user && item->decoded->group != WEIR_GROUP_SYS &&
	    (!task || task->uid != filter->uid))
		return false;
	return comm_matches(filter, item);
}

static bool is_target(const struct filter *filter, const char *path, size_t len)
{
	for (unsigned i = 0; i < filter->nr_targets; i++)
		if (len == strlen(filter->targets[i]) && !memcmp(path, filter->targets[i], len))
			return true;
	return false;
}

/* As it stands, or as seen from a directory, which may be NULL. */
static bool leads_to_target(const struct filter *filter, const char *dir, const char *path,
			    size_t len)
{
	char full[PATHS_MAX];

	return is_target(filter, path, len) ||
	       (paths__resolve(dir, path, len, full) && is_target(filter, full, strlen(full)));
}

static bool is_fd_of_target(const struct filter *filter, const char *name)
{
	return name && leads_to_target(filter, NULL, name, strlen(name));
}

static bool is_path(const struct weir_decoded *decoded, uint32_t i)
{
	return i < decoded->nargs && decoded->args[i].kind == WEIR_ARG_STR &&
	       !(decoded->args[i].flags & WEIR_ARG_UNREAD);
}

static bool is_dirfd(const struct weir_decoded *decoded, uint32_t i)
{
	return decoded->args[i].tag == WEIR_TAG_DIRFD;
}

/* That a path begins in a directory does not make it a call of the directory's. */
static bool argument_matches(const struct filter *filter, const struct weir_decoded *decoded,
			     uint32_t i, const struct filter_places *places)
{
	const struct weir_arg *arg = &decoded->args[i];
	const struct sink_fds *fds = places->fds;
	const char *dir = places->cwd;

	if (!is_path(decoded, i))
		return fds && !(is_dirfd(decoded, i) && is_path(decoded, i + 1)) &&
		       is_fd_of_target(filter, fds->arg[i]);
	if (i && is_dirfd(decoded, i - 1))
		dir = fds ? fds->arg[i - 1] : NULL;
	return leads_to_target(filter, dir, arg->bytes, arg->len);
}

static bool path_matches(const struct filter *filter, const struct weir_decoded *decoded,
			 const struct filter_places *places)
{
	if (!filter->paths.count)
		return true;
	for (uint32_t i = 0; i < decoded->nargs; i++)
		if (argument_matches(filter, decoded, i, places))
			return true;
	return places->fds && is_fd_of_target(filter, places->fds->result);
}

static bool call_matches(const struct filter *filter, const struct weir_decoded *decoded,
			 const struct weir_call *call)
{
	bool failed = decoded->has_ret && decoded->ret < 0 && decoded->ret >= -ERRNO_MAX;

	if (filter->failed && !failed)
		return false;
	if (filter->error && !(failed && decoded->ret == -filter->error))
		return false;
	if (!filter->min_duration_ns)
		return true;
	/* One that has not returned took at least as long as it was watched. */
	return call->enter && call->stamp_ns - call->enter->stamp_ns >= filter->min_duration_ns;
}

bool filter__wants(const struct filter *filter, const struct sink_event *item,
		   const struct task_view *task, const struct weir_call *call,
		   const struct filter_places *places)
{
	if (!task_matches(filter, item, task))
		return false;
	if (item->decoded->group == WEIR_GROUP_SYS && !path_matches(filter, item->decoded, places))
		return false;
	return !call || call_matches(filter, item->decoded, call);
}
