// SPDX-License-Identifier: BSD-2-Clause
/*
 * groups.c - owns groups of rows. Promises that the sum over all groups is that over all rows which the
 * filter lets through. Knows nothing of how rows came about.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "state/usage.h"

/* What rows have in common that belong together. */
struct key {
	enum usage_kind kind;
	uint64_t a, b;
};

static struct key key_of(const struct usage_row *row, enum usage_by by)
{
	struct key key = {.kind = row->kind};

	if (row->kind == USAGE_IDLE || row->kind == USAGE_GAP)
		return key;
	switch (by) {
	case USAGE_BY_THREAD:
		key.kind = row->kind == USAGE_THREAD ? USAGE_THREAD : USAGE_GONE;
		if (row->kind == USAGE_THREAD)
			key = (struct key){USAGE_THREAD, row->tid, row->start_ns};
		break;
	case USAGE_BY_PROCESS:
		if (row->kind != USAGE_GONE)
			key = (struct key){USAGE_THREAD, row->pid, row->process_start_ns};
		break;
	case USAGE_BY_CGROUP:
		key = (struct key){USAGE_THREAD, (uintptr_t)row->cgroup, 0};
		break;
	case USAGE_BY_CONTAINER:
		key = (struct key){USAGE_THREAD, (uintptr_t)row->container, 0};
		break;
	case USAGE_BY_USER:
		key = (struct key){USAGE_THREAD, row->uid, 0};
		break;
	case USAGE_BY_CPU:
		break;
	}
	return key;
}

static bool is_same(const struct key *a, const struct key *b)
{
	return a->kind == b->kind && a->a == b->a && a->b == b->b;
}

static size_t hash_of(const struct key *key)
{
	uint64_t h = (key->a ^ key->b * UINT64_C(0xff51afd7ed558ccd)) + key->kind;

	return (size_t)((h * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

/* Empty slots for twice as many as there are rows: a search ends soon. */
static int make_room(struct usage_groups *groups, size_t count)
{
	size_t room = 64;

	while (room < 2 * (count + 2))
		room *= 2;
	if (room > groups->room) {
		usage__free_groups(groups);
		groups->at = malloc(room / 2 * sizeof(*groups->at));
		groups->slots = malloc(room * sizeof(*groups->slots));
		if (!groups->at || !groups->slots) {
			usage__free_groups(groups);
			return -ENOMEM;
		}
		groups->room = room;
	}
	memset(groups->slots, 0, groups->room * sizeof(*groups->slots));
	return 0;
}

/* What the group is called, as far as all its rows share it. */
static void name_group(struct usage_group *group, const struct usage_row *row, enum usage_by by)
{
	struct usage_row *to = &group->row;

	*to = (struct usage_row){.kind = row->kind, .state = row->state, .cpu = -1};
	to->uid = TASKS_UID_UNKNOWN;
	if (row->kind == USAGE_IDLE || row->kind == USAGE_GAP)
		return;
	switch (by) {
	case USAGE_BY_THREAD:
	case USAGE_BY_PROCESS:
		if (row->kind == USAGE_GONE ||
		    (by == USAGE_BY_THREAD && row->kind != USAGE_THREAD)) {
			to->kind = USAGE_GONE;
			to->state = USAGE_EXITED;
			return;
		}
		*to = *row;
		to->kind = USAGE_THREAD;
		if (by == USAGE_BY_PROCESS) {
			to->tid = row->pid;
			to->start_ns = row->process_start_ns;
		}
		break;
	case USAGE_BY_CGROUP:
		to->cgroup = row->cgroup;
		break;
	case USAGE_BY_CONTAINER:
		to->container = row->container;
		break;
	case USAGE_BY_USER:
		to->uid = row->uid;
		break;
	case USAGE_BY_CPU:
		break;
	}
	to->kind = USAGE_THREAD;
	memset(&to->now, 0, sizeof(to->now));
	memset(&to->total, 0, sizeof(to->total));
	to->delays = NULL;
}

static struct usage_group *add_group(struct usage_groups *groups)
{
	struct usage_group *group = &groups->at[groups->count++];

	memset(group, 0, sizeof(*group));
	return group;
}

static struct usage_group *group_of(struct usage_groups *groups, const struct usage_row *row,
				    enum usage_by by)
{
	struct key key = key_of(row, by), other;
	size_t slot = hash_of(&key) & (groups->room - 1);
	struct usage_group *group;

	for (; groups->slots[slot]; slot = (slot + 1) & (groups->room - 1)) {
		group = &groups->at[groups->slots[slot] - 1];
		other = key_of(&group->row, by);
		if (is_same(&key, &other))
			return group;
	}
	group = add_group(groups);
	groups->slots[slot] = (uint32_t)groups->count;
	name_group(group, row, by);
	return group;
}

/* Of what its threads do, the most. */
static enum usage_state livelier(enum usage_state a, enum usage_state b)
{
	static const int order[] = {
		[USAGE_EXITED] = 0,  [USAGE_STOPPED] = 1, [USAGE_SLEEPING] = 2,
		[USAGE_BLOCKED] = 3, [USAGE_WAITING] = 4, [USAGE_RUNNING] = 5,
	};

	return order[a] > order[b] ? a : b;
}

static int add_delays(struct usage_groups *groups, struct usage_group *group,
		      const struct delays *delays)
{
	if (!delays)
		return 0;
	if (!group->row.delays)
		group->row.delays = delays__get(&groups->pool);
	if (!group->row.delays)
		return -ENOMEM;
	delays__merge(group->row.delays, delays);
	return 0;
}

static int add_row(struct usage_groups *groups, struct usage_group *group,
		   const struct usage_row *row)
{
	bool thread = row->kind == USAGE_THREAD;

	counts__add(&group->row.now, &row->now);
	counts__add(&group->row.total, &row->total);
	if (thread)
		group->row.state = group->threads ? livelier(group->row.state, row->state)
						  : row->state;
	group->threads += thread;
	group->processes += thread && row->tid == row->pid;
	group->exited += thread && row->state == USAGE_EXITED;
	group->row.ended |= row->ended;
	/* The leader's, where there are several. */
	if (thread && row->tid == row->pid && group->row.tid == row->tid)
		memcpy(group->row.comm, row->comm, sizeof(row->comm));
	return add_delays(groups, group, row->delays);
}

static int add_cpu(struct usage_groups *groups, const struct usage_cpu_row *cpu)
{
	struct usage_group *group = add_group(groups);

	group->row = (struct usage_row){
		.kind = USAGE_THREAD,
		.state = cpu->away ? USAGE_EXITED : USAGE_RUNNING,
		.cpu = (int32_t)cpu->cpu,
		.uid = TASKS_UID_UNKNOWN,
		.now = cpu->now,
		.total = cpu->total,
	};
	return add_delays(groups, group, cpu->delays);
}

static int add_kind(struct usage_groups *groups, const struct usage_snapshot *snapshot,
		    enum usage_kind kind, enum usage_by by)
{
	int err = 0;

	for (size_t i = 0; i < snapshot->nr_rows && !err; i++)
		if (snapshot->rows[i].kind == kind)
			err = add_row(groups, group_of(groups, &snapshot->rows[i], by),
				      &snapshot->rows[i]);
	return err;
}

static void forget(struct usage_groups *groups)
{
	for (size_t i = 0; i < groups->count; i++)
		delays__put(&groups->pool, groups->at[i].row.delays);
	groups->count = 0;
}

int usage__group(struct usage_groups *groups, const struct usage_snapshot *snapshot,
		 enum usage_by by, usage_filter filter, const void *ctx)
{
	int err;

	if (!groups->pool.budget) {
		groups->budget.cap = SIZE_MAX;
		groups->pool.budget = &groups->budget;
	}
	forget(groups);
	err = make_room(groups, snapshot->nr_rows + snapshot->nr_cpus);
	if (!err)
		err = add_kind(groups, snapshot, USAGE_IDLE, by);
	if (!err)
		err = add_kind(groups, snapshot, USAGE_GAP, by);
	for (size_t i = 0; by == USAGE_BY_CPU && i < snapshot->nr_cpus && !err; i++)
		err = add_cpu(groups, &snapshot->cpus[i]);
	for (size_t i = 0; by != USAGE_BY_CPU && i < snapshot->nr_rows && !err; i++) {
		const struct usage_row *row = &snapshot->rows[i];

		if (row->kind == USAGE_IDLE || row->kind == USAGE_GAP ||
		    (filter && !filter(ctx, row)))
			continue;
		err = add_row(groups, group_of(groups, row, by), row);
	}
	return err;
}

void usage__free_groups(struct usage_groups *groups)
{
	forget(groups);
	if (groups->pool.budget)
		delays__free_pool(&groups->pool);
	free(groups->at);
	free(groups->slots);
	groups->at = NULL;
	groups->slots = NULL;
	groups->room = 0;
}
