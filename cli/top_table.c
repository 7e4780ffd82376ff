// SPDX-License-Identifier: BSD-2-Clause
/*
 * top_table.c - owns which lines are shown, and in which order. Knows nothing of columns and screens.
 */
#include "cli/top.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KTHREADD 2 /* the parent of all threads of the kernel */

static const char *const sort_names[TOP_SORTS] = {
	[TOP_SORT_TIME] = "cpu",	[TOP_SORT_TOTAL] = "total",
	[TOP_SORT_VOLUNTARY] = "vol",	[TOP_SORT_INVOLUNTARY] = "invol",
	[TOP_SORT_MIGRATIONS] = "migr", [TOP_SORT_WAIT] = "wait",
	[TOP_SORT_P50] = "p50",		[TOP_SORT_P99] = "p99",
	[TOP_SORT_MAX] = "max",		[TOP_SORT_RSS] = "rss",
	[TOP_SORT_CYCLES] = "cycles",	[TOP_SORT_IPC] = "ipc",
	[TOP_SORT_PID] = "pid",		[TOP_SORT_NAME] = "name",
};

static const char *const by_names[] = {
	[USAGE_BY_PROCESS] = "process", [USAGE_BY_THREAD] = "thread",
	[USAGE_BY_CGROUP] = "cgroup",	[USAGE_BY_CONTAINER] = "container",
	[USAGE_BY_USER] = "user",	[USAGE_BY_CPU] = "cpu",
};

const char *top_sort__name(enum top_sort sort)
{
	return sort < TOP_SORTS ? sort_names[sort] : NULL;
}

const char *top_by__name(enum usage_by by)
{
	return by <= USAGE_BY_CPU ? by_names[by] : NULL;
}

bool top_sort__find(const char *word, enum top_sort *out)
{
	for (int i = 0; i < TOP_SORTS; i++) {
		if (!strcmp(word, sort_names[i])) {
			*out = (enum top_sort)i;
			return true;
		}
	}
	return false;
}

bool top_by__find(const char *word, enum usage_by *out)
{
	for (int i = 0; i <= USAGE_BY_CPU; i++) {
		if (!strcmp(word, by_names[i])) {
			*out = (enum usage_by)i;
			return true;
		}
	}
	return false;
}

/* ---- which -------------------------------------------------------------------------------------- */

static bool has_pid(const struct top_view *view, uint32_t pid)
{
	for (uint32_t i = 0; i < view->nr_pids; i++)
		if (view->pids[i] == pid)
			return true;
	return !view->nr_pids;
}

static bool has_comm(const struct top_view *view, const struct usage_row *row)
{
	const struct option_list *comms = &view->filter->comms;

	for (unsigned i = 0; i < comms->count; i++)
		if (!fnmatch(comms->at[i], row->comm, 0) || !fnmatch(comms->at[i], row->name, 0))
			return true;
	return !comms->count;
}

static bool is_in_place(const struct top_view *view, const struct usage_row *row)
{
	const struct filter *filter = view->filter;

	if (filter->container && !filter__is_container(filter, row->container))
		return false;
	return !filter->cgroup || filter__is_in_cgroup(filter, row->cgroup);
}

static bool has_text(const struct top_view *view, const struct usage_row *row)
{
	char pid[16];

	if (!view->text[0])
		return true;
	snprintf(pid, sizeof(pid), "%u", row->pid);
	return strstr(row->comm, view->text) || strstr(row->name, view->text) ||
	       strstr(pid, view->text) || (row->cgroup && strstr(row->cgroup, view->text)) ||
	       (row->container && strstr(row->container, view->text));
}

static bool wants(const void *ctx, const struct usage_row *row)
{
	const struct top_view *view = ctx;

	if (view->has_uid && row->uid != view->uid)
		return false;
	return has_pid(view, row->pid) && has_comm(view, row) && is_in_place(view, row) &&
	       has_text(view, row);
}

/* Had it a CPU, or did it end, in this interval? */
static bool is_active(const struct usage_group *group)
{
	const struct usage_counts *now = &group->row.now;

	return now->time_ns || now->voluntary || now->involuntary || group->row.ended;
}

static bool is_nobodys(const struct usage_group *group)
{
	return group->row.kind == USAGE_IDLE || group->row.kind == USAGE_GAP;
}

static bool has_ended(const struct usage_group *group, const struct top_view *view)
{
	return (view->by == USAGE_BY_PROCESS || view->by == USAGE_BY_THREAD) &&
	       group->row.state == USAGE_EXITED;
}

/* What has ended and was told so before is no row any more; its time is in the sum of the gone. */
static bool is_shown(const struct usage_group *group, const struct top_view *view)
{
	if (is_nobodys(group))
		return view->account && (group->row.kind == USAGE_IDLE || is_active(group));
	if (view->no_ended && has_ended(group, view))
		return false;
	if (is_active(group))
		return true;
	if (group->row.kind != USAGE_THREAD)
		return false;
	return !view->no_idle && group->row.state != USAGE_EXITED;
}

/* ---- in which order ----------------------------------------------------------------------------- */

static uint64_t quantile(const struct usage_group *group, unsigned per_mille)
{
	return group->row.delays ? delays__quantile_ns(group->row.delays, per_mille) : 0;
}

/* Times below 0 come last; what sorts by more, comes first. */
static int64_t sort_value(const struct top_line *line, enum top_sort sort)
{
	const struct usage_row *row = &line->group->row;
	const struct usage_counts *now = &row->now;

	switch (sort) {
	case TOP_SORT_TOTAL:
		return row->total.time_ns;
	case TOP_SORT_VOLUNTARY:
		return (int64_t)now->voluntary;
	case TOP_SORT_INVOLUNTARY:
		return (int64_t)now->involuntary;
	case TOP_SORT_MIGRATIONS:
		return (int64_t)now->migrations;
	case TOP_SORT_WAIT:
		return (int64_t)now->wait_ns;
	case TOP_SORT_P50:
		return (int64_t)quantile(line->group, 500);
	case TOP_SORT_P99:
		return (int64_t)quantile(line->group, 990);
	case TOP_SORT_MAX:
		return row->delays ? (int64_t)row->delays->max_ns : 0;
	case TOP_SORT_RSS:
		return line->proc ? (int64_t)line->proc->rss_bytes : 0;
	case TOP_SORT_CYCLES:
		return (int64_t)now->counter[WEIR_LEAN_CYCLES];
	case TOP_SORT_IPC:
		return now->counter[WEIR_LEAN_CYCLES]
			       ? (int64_t)(1000 * now->counter[WEIR_LEAN_INSTRUCTIONS] /
					   now->counter[WEIR_LEAN_CYCLES])
			       : 0;
	case TOP_SORT_PID:
		return -(int64_t)row->pid;
	default:
		return now->time_ns;
	}
}

static int compare_names(const struct usage_row *a, const struct usage_row *b)
{
	const char *x = a->cgroup ? a->cgroup : a->container ? a->container : a->name;
	const char *y = b->cgroup ? b->cgroup : b->container ? b->container : b->name;

	return strcmp(x, y);
}

/* Idle time and gaps stand in front, whatever the order. */
static int rank(const struct top_line *line)
{
	return line->group->row.kind == USAGE_IDLE ? 0 : line->group->row.kind == USAGE_GAP ? 1 : 2;
}

static int compare(const void *a, const void *b, void *ctx)
{
	const struct top_line *x = a, *y = b;
	const struct top_view *view = ctx;
	int64_t vx, vy;
	int order;

	if (rank(x) != rank(y))
		return rank(x) - rank(y);
	if (view->sort == TOP_SORT_NAME) {
		order = compare_names(&x->group->row, &y->group->row);
	} else {
		vx = sort_value(x, view->sort);
		vy = sort_value(y, view->sort);
		order = (vx < vy) - (vx > vy);
	}
	if (view->reverse)
		order = -order;
	if (order)
		return order;
	if (x->group->row.pid != y->group->row.pid)
		return x->group->row.pid < y->group->row.pid ? -1 : 1;
	if (x->group->row.tid != y->group->row.tid)
		return x->group->row.tid < y->group->row.tid ? -1 : 1;
	return (x->group > y->group) - (x->group < y->group);
}

/* ---- as a tree ---------------------------------------------------------------------------------- */

struct place {
	uint32_t pid;
	size_t at;
};

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

/* Children by the order of the lines: first_child and next_sibling are indexes + 1. */
struct tree {
	const struct top_line *lines;
	struct top_line *out;
	size_t *first_child, *next_sibling;
	size_t count, done;
};

static void put_tree(struct tree *tree, size_t root, uint32_t depth)
{
	for (size_t i = root; i; i = tree->next_sibling[i - 1]) {
		tree->out[tree->done] = tree->lines[i - 1];
		tree->out[tree->done++].depth = depth;
		put_tree(tree, tree->first_child[i - 1], depth < 64 ? depth + 1 : depth);
	}
}

static const struct top_line *parent_of(const struct top_line *line, const struct place *places,
					size_t nr_places, const struct top_line *lines)
{
	struct place key = {.pid = line->group->row.ppid};
	const struct place *place;

	/* A parent was there first: so there is no circle, whatever pids were used again. */
	place = bsearch(&key, places, nr_places, sizeof(*places), compare_places);
	if (!place || !key.pid || key.pid == line->group->row.pid)
		return NULL;
	return lines[place->at].group->row.start_ns < line->group->row.start_ns ? &lines[place->at]
										: NULL;
}

static size_t fill_places(const struct top_table *table, struct place *places)
{
	size_t count = 0;

	for (size_t i = 0; i < table->count; i++)
		if (table->lines[i].group->row.pid)
			places[count++] = (struct place){table->lines[i].group->row.pid, i};
	qsort(places, count, sizeof(*places), compare_places);
	return count;
}

/* Parents before their children; among those of one parent the order stays. */
static int sort_as_tree(struct top_table *table)
{
	struct tree tree = {.lines = table->lines, .count = table->count};
	struct place *places = calloc(table->count + 1, sizeof(*places));
	size_t roots = 0, nr_places;

	tree.first_child = calloc(table->count + 1, sizeof(size_t));
	tree.next_sibling = calloc(table->count + 1, sizeof(size_t));
	tree.out = calloc(table->count + 1, sizeof(*tree.out));
	if (!places || !tree.first_child || !tree.next_sibling || !tree.out) {
		free(places);
		free(tree.first_child);
		free(tree.next_sibling);
		free(tree.out);
		return -ENOMEM;
	}
	nr_places = fill_places(table, places);
	/* From the last to the first: each is put in front of its siblings. */
	for (size_t i = table->count; i-- > 0;) {
		const struct top_line *parent = parent_of(&table->lines[i], places, nr_places,
							  table->lines);
		size_t *head = parent ? &tree.first_child[parent - table->lines] : &roots;

		tree.next_sibling[i] = *head;
		*head = i + 1;
	}
	put_tree(&tree, roots, 0);
	memcpy(table->lines, tree.out, table->count * sizeof(*table->lines));
	free(places);
	free(tree.first_child);
	free(tree.next_sibling);
	free(tree.out);
	return 0;
}

/* ---- fill --------------------------------------------------------------------------------------- */

static void count_rows(struct top_table *table)
{
	table->processes = table->threads = table->exited = 0;
	for (size_t i = 0; i < table->snapshot->nr_rows; i++) {
		const struct usage_row *row = &table->snapshot->rows[i];
		bool exited = row->state == USAGE_EXITED;

		if (row->kind != USAGE_THREAD)
			continue;
		table->threads += !exited;
		table->processes += !exited && row->pid == row->tid;
		table->exited += row->ended;
	}
}

static int make_room(struct top_table *table)
{
	struct top_line *lines;

	if (table->groups.count <= table->room)
		return 0;
	lines = realloc(table->lines, 2 * table->groups.count * sizeof(*lines));
	if (!lines)
		return -ENOMEM;
	table->lines = lines;
	table->room = 2 * table->groups.count;
	return 0;
}

int top_table__fill(struct top_table *table, const struct top_view *view)
{
	int err = usage__group(&table->groups, table->snapshot, view->by, wants, view);

	table->count = table->nobodys = 0;
	if (!err && table->live && !table->procs) {
		table->procs = top_procs__new();
		err = table->procs ? 0 : -ENOMEM;
	}
	if (!err)
		err = make_room(table);
	if (err)
		return err;
	for (size_t i = 0; i < table->groups.count; i++) {
		struct usage_group *group = &table->groups.at[i];

		if (!is_shown(group, view))
			continue;
		table->lines[table->count++] = (struct top_line){.group = group};
		table->nobodys += is_nobodys(group);
	}
	count_rows(table);
	if (view->sort == TOP_SORT_RSS)
		top_table__ask(table, view, 0, table->count);
	qsort_r(table->lines, table->count, sizeof(*table->lines), compare, (void *)view);
	return view->tree && view->by == USAGE_BY_PROCESS ? sort_as_tree(table) : 0;
}

void top_table__free(struct top_table *table)
{
	usage__free_groups(&table->groups);
	top_procs__free(table->procs);
	free(table->lines);
	table->lines = NULL;
	table->count = table->room = 0;
}

/* Threads of the kernel have no memory of their own. */
static bool has_memory(const struct usage_row *row)
{
	return row->pid != KTHREADD && row->ppid != KTHREADD;
}

/* Of a thread's process: whether its other threads have run is not told there. As if they had. */
static int64_t time_of(const struct usage_row *row, const struct top_view *view, uint64_t to_ns)
{
	return view->by == USAGE_BY_THREAD ? (int64_t)to_ns : row->total.time_ns;
}

/* Nobody has told who that is. */
static void ask_name(struct usage_row *row)
{
	char text[WEIR_COMM_LEN + 1];

	top_procs__read(row->tid, "comm", text, sizeof(text));
	text[strcspn(text, "\n")] = '\0';
	snprintf(row->comm, sizeof(row->comm), "%.*s", WEIR_COMM_LEN - 1, text);
}

void top_table__ask(struct top_table *table, const struct top_view *view, size_t first,
		    size_t count)
{
	uint64_t to_ns = table->snapshot->to_ns;

	for (size_t i = first; table->live && i < table->count && i - first < count; i++) {
		struct top_line *line = &table->lines[i];
		struct usage_row *row = &line->group->row;

		if (row->kind != USAGE_THREAD || !row->pid)
			continue;
		if (has_memory(row))
			line->proc = top_procs__ask(table->procs, row, time_of(row, view, to_ns),
						    view->cmdline, to_ns);
		if (row->state != USAGE_EXITED && !row->name[0] && !row->comm[0])
			ask_name(row);
	}
}
