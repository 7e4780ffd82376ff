/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/filter.h"

#include <fnmatch.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#define ERRNO_MAX 4095

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
	if (!filter->errno_name)
		return true;
	for (int err = 1; err <= ERRNO_MAX; err++) {
		const char *name = strerrorname_np(err);

		if (!name || strcmp(name, filter->errno_name) != 0)
			continue;
		filter->error = err;
		return true;
	}
	say(command, "--errno takes a name such as ENOENT, not '%s'", filter->errno_name);
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

/* It is compared with paths that the kernel wrote, and opened below the hierarchy's root. */
static bool check_cgroup(const struct filter *filter, const struct command_def *command)
{
	if (!filter->cgroup || (filter->cgroup[0] == '/' && !has_dots(filter->cgroup)))
		return true;
	say(command,
	    "--cgroup takes a path as /proc/PID/cgroup has it, such as /system.slice, not '%s'",
	    filter->cgroup);
	return false;
}

bool filter__check(struct filter *filter, const struct command_def *command)
{
	return resolve_user(filter, command) && resolve_errno(filter, command) &&
	       check_cgroup(filter, command);
}

bool filter__is_set(const struct filter *filter)
{
	return filter->comms.count || filter->container || filter->cgroup || filter->user ||
	       filter__needs_calls(filter);
}

bool filter__needs_calls(const struct filter *filter)
{
	return filter->paths.count || filter->failed || filter->errno_name ||
	       filter->min_duration_ns;
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

/* In this cgroup, or in one below it. */
static bool is_below(const char *path, const char *top)
{
	size_t len = strlen(top);

	while (len > 1 && top[len - 1] == '/')
		len--;
	if (!path || strncmp(path, top, len) != 0)
		return false;
	return len == 1 || !path[len] || path[len] == '/';
}

static bool task_matches(const struct filter *filter, const struct sink_event *item,
			 const struct task_view *task)
{
	if (filter->container && !begins_with(item->container, filter->container))
		return false;
	if (filter->cgroup && (!task || !is_below(task->cgroup, filter->cgroup)))
		return false;
	/* The kernel has looked at the caller of a system call, who may have changed since its exec. */
	if (filter->user && item->decoded->group != WEIR_GROUP_SYS &&
	    (!task || task->uid != filter->uid))
		return false;
	return comm_matches(filter, item);
}

static bool is_path(const struct filter *filter, const struct weir_arg *arg)
{
	for (unsigned i = 0; i < filter->paths.count; i++) {
		const char *path = filter->paths.at[i];

		if (arg->len == strlen(path) && !memcmp(arg->bytes, path, arg->len))
			return true;
	}
	return false;
}

static bool path_matches(const struct filter *filter, const struct weir_decoded *decoded)
{
	for (uint32_t i = 0; i < decoded->nargs; i++)
		if (decoded->args[i].kind == WEIR_ARG_STR && is_path(filter, &decoded->args[i]))
			return true;
	return !filter->paths.count;
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
		   const struct task_view *task, const struct weir_call *call)
{
	if (!task_matches(filter, item, task))
		return false;
	if (item->decoded->group == WEIR_GROUP_SYS && !path_matches(filter, item->decoded))
		return false;
	return !call || call_matches(filter, item->decoded, call);
}
