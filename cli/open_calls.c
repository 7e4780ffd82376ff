/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/open_calls.h"

#include "cli/clock.h"

#include <weir/probes.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define STACK_ARG 6 /* behind the arguments */

/* "0 0x3 0x7ffe... 0x1000 0x0 0x0 0x0 0x7ffe... 0x7f12...", or "running", or "-1 ..." in no call. */
static bool parse(const char *text, struct weir_sys_enter *enter)
{
	unsigned long long words[STACK_ARG + 1];
	long nr;
	int used, i;

	if (sscanf(text, "%ld%n", &nr, &used) != 1 || nr < 0 || nr >= 1024)
		return false;
	for (i = 0, text += used; i <= STACK_ARG; i++, text += used)
		if (sscanf(text, " %llx%n", &words[i], &used) != 1)
			return false;
	/* A stack below 4 GiB is a 32-bit program's, as a rule, and its numbers mean other calls. */
	if (words[STACK_ARG] <= UINT32_MAX)
		return false;
	enter->nr = (uint32_t)nr;
	for (i = 0; i < STACK_ARG; i++)
		enter->args[i] = words[i];
	return true;
}

static bool read_call(int tasks, const char *tid, struct weir_sys_enter *enter)
{
	char path[300], text[256];
	ssize_t len;
	int file;

	snprintf(path, sizeof(path), "%s/syscall", tid);
	file = openat(tasks, path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return false;
	len = read(file, text, sizeof(text) - 1);
	close(file);
	if (len <= 0)
		return false;
	text[len] = '\0';
	return parse(text, enter);
}

static bool is_selected(const struct probes_selection *selection, uint32_t nr)
{
	return selection->syscalls[WEIR_ABI_NATIVE][nr / 64] >> nr % 64 & 1;
}

void open_calls__find(const struct probes_selection *selection, uint32_t pid,
		      void (*fn)(void *ctx, const struct weir_event *enter), void *ctx)
{
	char path[64];
	struct dirent *item;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	tasks = opendir(path);
	while (tasks && (item = readdir(tasks))) {
		struct weir_sys_enter enter = {.id.pid = pid,
					       .id.tid = (uint32_t)atoi(item->d_name)};
		struct weir_event event = {
			.kind = WEIR_KIND_RECORD,
			.type = WEIR_T_SYS_ENTER,
			.source = WEIR_SOURCE_NONE,
			.cpu = -1,
			.data = &enter,
			.len = sizeof(enter),
		};

		if (!enter.id.tid || !read_call(dirfd(tasks), item->d_name, &enter) ||
		    !is_selected(selection, enter.nr))
			continue;
		/* After the look: an exit that lies before it may be of an earlier call. */
		event.stamp_ns = now_ns();
		fn(ctx, &event);
	}
	if (tasks)
		closedir(tasks);
}
