/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/picked.h"

#include <stdlib.h>
#include <string.h>

#define PIDS_MAX (1u << 22) /* PID_MAX_LIMIT of 64-bit kernels */

static void set(struct picked *p, uint32_t pid, bool in)
{
	if (pid >= PIDS_MAX)
		return;
	if (in)
		p->pids[pid / 64] |= 1ull << pid % 64;
	else
		p->pids[pid / 64] &= ~(1ull << pid % 64);
}

static bool has(const struct picked *p, uint32_t pid)
{
	return pid < PIDS_MAX && p->pids[pid / 64] >> pid % 64 & 1;
}

static bool add_list(const struct command_def *command, const char *list, struct picked *p)
{
	while (*list) {
		char *end;
		unsigned long pid = strtoul(list, &end, 10);

		if (*list < '0' || *list > '9' || !pid || pid >= PIDS_MAX ||
		    (*end && *end != ',')) {
			say(command, "-p takes process ids, not '%s'", list);
			return false;
		}
		set(p, (uint32_t)pid, true);
		list = *end ? end + 1 : end;
	}
	return true;
}

bool picked__pids(const struct command_def *command, const struct option_list *words,
		  struct picked *p)
{
	if (!words->count)
		return true;
	p->pids = calloc(PIDS_MAX / 64, sizeof(*p->pids));
	if (!p->pids) {
		say(command, "out of memory");
		return false;
	}
	for (unsigned int i = 0; i < words->count; i++)
		if (!add_list(command, words->at[i], p))
			return false;
	return true;
}

bool picked__begin(struct picked *p, const uint32_t *pids, uint32_t count)
{
	p->pids = calloc(PIDS_MAX / 64, sizeof(*p->pids));
	for (uint32_t i = 0; p->pids && i < count; i++)
		set(p, pids[i], true);
	return p->pids;
}

void picked__add(struct picked *p, uint32_t pid)
{
	set(p, pid, true);
}

bool picked__has(const struct picked *p, uint32_t pid)
{
	return has(p, pid);
}

void picked__free(struct picked *p)
{
	free(p->pids);
}

/* Every payload begins with the task that it is of; some go on with another. */
static bool is_pair(uint16_t type)
{
	return type == WEIR_T_SWITCH || type == WEIR_T_WAKEUP || type == WEIR_T_MIGRATE ||
	       type == WEIR_T_SIGNAL_GENERATE;
}

static bool wants_pid(struct picked *p, const struct weir_event *event)
{
	const struct weir_task_id *ids = event->data;
	const struct weir_exit *ended = event->data;
	bool in, pair = is_pair(event->type);

	if (event->type == WEIR_T_CGROUP_MKDIR || event->len < (pair ? 2 : 1) * sizeof(*ids))
		return true;
	in = has(p, ids[0].pid) || (pair && has(p, ids[1].pid));
	if (in && p->follow && event->type == WEIR_T_FORK && event->len >= 2 * sizeof(*ids))
		set(p, ids[1].pid, true);
	/* Its number may soon be another's. */
	if (in && event->type == WEIR_T_EXIT && event->len >= sizeof(*ended) &&
	    ended->flags & WEIR_EXIT_PROCESS)
		set(p, ids[0].pid, false);
	return in;
}

static bool wants_call(const struct probes_selection *sel, const struct weir_event *event)
{
	uint32_t nr, abi;

	if (event->type == WEIR_T_SYS_ENTER && event->len >= sizeof(struct weir_sys_enter)) {
		nr = ((const struct weir_sys_enter *)event->data)->nr;
		abi = ((const struct weir_sys_enter *)event->data)->abi;
	} else if (event->type == WEIR_T_SYS_EXIT && event->len >= sizeof(struct weir_sys_exit)) {
		nr = ((const struct weir_sys_exit *)event->data)->nr;
		abi = ((const struct weir_sys_exit *)event->data)->abi;
	} else {
		return true;
	}
	/* What has no number that could be chosen comes with all of them. */
	if (abi >= sizeof(sel->syscalls) / sizeof(sel->syscalls[0]) || nr >= 1024)
		return sel->syscalls[0][15] >> 63 & 1;
	return sel->syscalls[abi][nr / 64] >> nr % 64 & 1;
}

static bool wants_caller(const struct picked *p, const struct weir_event *event)
{
	const struct weir_task_id *id = event->data;
	struct task_view task;

	if ((event->type != WEIR_T_SYS_ENTER && event->type != WEIR_T_SYS_EXIT) ||
	    event->len < sizeof(*id))
		return true;
	return tasks__find(p->tasks, id->tid, event->stamp_ns, &task) && task.uid == p->uid;
}

bool picked__wants(void *picked, const struct weir_event *event)
{
	struct picked *p = picked;
	bool in = !p->pids || wants_pid(p, event);

	if (event->stamp_ns < p->from_ns)
		return false;
	return in && (!p->calls || wants_call(p->calls, event)) &&
	       (!p->tasks || wants_caller(p, event));
}
