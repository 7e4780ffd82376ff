// SPDX-License-Identifier: BSD-2-Clause
/*
 * summary.c - owns the rows. Promises: every call that is added is in one row of each table, and
 * memory is bounded by the number of calls that a kernel has, and by the cap of processes.
 */
#include "state/summary.h"

#include "state/budget.h"
#include "state/hash.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_MAX_PROCESSES 4096
#define FIRST_BITS	      8
#define ERRNO_MAX	      4095

struct call_row {
	struct hash_node node; /* by number and ABI */
	struct summary_call view;
};

struct process_row {
	struct hash_node node; /* by pid */
	struct summary_process view;
};

/* Rows in order of appearance, sorted when they are asked for. */
struct rows {
	struct hash hash;
	void **views;
	size_t count, cap;
};

struct summary {
	struct budget budget;
	struct rows calls, processes;
	size_t max_processes;
	struct summary_process others;
};

struct summary *summary__new(size_t max_processes)
{
	struct summary *summary = calloc(1, sizeof(*summary));

	if (!summary)
		return NULL;
	summary->budget.cap = SIZE_MAX;
	summary->max_processes = max_processes ? max_processes : DEFAULT_MAX_PROCESSES;
	if (hash__init(&summary->calls.hash, &summary->budget, FIRST_BITS) ||
	    hash__init(&summary->processes.hash, &summary->budget, FIRST_BITS)) {
		summary__free(summary);
		errno = ENOMEM;
		return NULL;
	}
	return summary;
}

static struct call_row *call_row(void *view)
{
	return (struct call_row *)(void *)((char *)view - offsetof(struct call_row, view));
}

static struct process_row *process_row(void *view)
{
	return (struct process_row *)(void *)((char *)view - offsetof(struct process_row, view));
}

void summary__free(struct summary *summary)
{
	if (!summary)
		return;
	for (size_t i = 0; i < summary->calls.count; i++)
		budget__free(&summary->budget, call_row(summary->calls.views[i]));
	for (size_t i = 0; i < summary->processes.count; i++)
		budget__free(&summary->budget, process_row(summary->processes.views[i]));
	budget__free(&summary->budget, summary->calls.views);
	budget__free(&summary->budget, summary->processes.views);
	hash__free(&summary->calls.hash);
	hash__free(&summary->processes.hash);
	free(summary);
}

static struct hash_node *find(const struct rows *rows, uint64_t key)
{
	struct hash_node *node = hash__first(&rows->hash, key);

	while (node && node->key != key)
		node = node->next;
	return node;
}

static bool room(struct summary *summary, struct rows *rows)
{
	size_t cap = rows->cap ? rows->cap * 2 : 64;
	void **grown;

	if (rows->count < rows->cap)
		return true;
	grown = budget__alloc(&summary->budget, cap * sizeof(*grown));
	if (!grown)
		return false;
	if (rows->count)
		memcpy(grown, rows->views, rows->count * sizeof(*grown));
	budget__free(&summary->budget, rows->views);
	rows->views = grown;
	rows->cap = cap;
	return true;
}

/* There is room for it. */
static void add_row(struct rows *rows, struct hash_node *node, uint64_t key, void *view)
{
	hash__insert(&rows->hash, node, key);
	hash__grow(&rows->hash);
	rows->views[rows->count++] = view;
}

static void name_call(struct summary_call *view, const struct weir_decoded *d)
{
	char number[24];

	snprintf(number, sizeof(number), "sys_%d", d->nr);
	snprintf(view->name, sizeof(view->name), "%s%s%s", d->syscall ? d->syscall : number,
		 d->abi ? "/" : "", d->abi ? d->abi : "");
}

static struct summary_call *call_of(struct summary *summary, const struct weir_decoded *d)
{
	/* No two ABIs of a machine begin with the same letter. */
	uint64_t key = (uint64_t)(d->abi ? (uint8_t)d->abi[0] : 0) << 32 | (uint32_t)d->nr;
	struct call_row *row = (struct call_row *)find(&summary->calls, key);

	if (row)
		return &row->view;
	if (!room(summary, &summary->calls))
		return NULL;
	row = budget__alloc(&summary->budget, sizeof(*row));
	if (!row)
		return NULL;
	name_call(&row->view, d);
	add_row(&summary->calls, &row->node, key, &row->view);
	return &row->view;
}

/* What has no row of its own is one of the others. */
static struct summary_process *process_of(struct summary *summary, uint32_t pid)
{
	struct process_row *row = (struct process_row *)find(&summary->processes, pid);

	if (row)
		return &row->view;
	if (summary->processes.count == summary->max_processes ||
	    !room(summary, &summary->processes))
		return &summary->others;
	row = budget__alloc(&summary->budget, sizeof(*row));
	if (!row)
		return &summary->others;
	row->view.pid = pid;
	add_row(&summary->processes, &row->node, pid, &row->view);
	return &row->view;
}

int summary__add(struct summary *summary, const struct weir_call *call,
		 const struct weir_decoded *decoded, const char *comm)
{
	bool failed = decoded->has_ret && decoded->ret < 0 && decoded->ret >= -ERRNO_MAX;
	struct summary_call *by_call = call_of(summary, decoded);
	struct summary_process *by_process;
	uint64_t ns;

	if (!by_call)
		return -ENOMEM;
	by_process = process_of(summary, decoded->pid);
	by_call->calls++;
	by_call->errors += failed;
	by_process->calls++;
	by_process->errors += failed;
	if (comm && by_process->pid)
		snprintf(by_process->comm, sizeof(by_process->comm), "%.16s", comm);
	if (call->end != WEIR_CALL_RETURNED || call->found)
		return 0;
	ns = call->exit->stamp_ns - call->enter->stamp_ns;
	histogram__add(&by_call->times, ns);
	by_process->timed++;
	by_process->total_ns += ns;
	return 0;
}

static int by_call_time(const void *left, const void *right)
{
	const struct summary_call *a = *(void *const *)left, *b = *(void *const *)right;

	if (a->times.total_ns != b->times.total_ns)
		return a->times.total_ns < b->times.total_ns ? 1 : -1;
	if (a->calls != b->calls)
		return a->calls < b->calls ? 1 : -1;
	return strcmp(a->name, b->name);
}

static int by_process_time(const void *left, const void *right)
{
	const struct summary_process *a = *(void *const *)left, *b = *(void *const *)right;

	if (a->total_ns != b->total_ns)
		return a->total_ns < b->total_ns ? 1 : -1;
	if (a->calls != b->calls)
		return a->calls < b->calls ? 1 : -1;
	return (a->pid > b->pid) - (a->pid < b->pid);
}

static void *sorted(struct rows *rows, size_t *count, int (*order)(const void *, const void *))
{
	*count = rows->count;
	if (rows->count)
		qsort(rows->views, rows->count, sizeof(*rows->views), order);
	return rows->views;
}

const struct summary_call *const *summary__calls(struct summary *summary, size_t *count)
{
	return sorted(&summary->calls, count, by_call_time);
}

const struct summary_process *const *summary__processes(struct summary *summary, size_t *count)
{
	return sorted(&summary->processes, count, by_process_time);
}

const struct summary_process *summary__others(const struct summary *summary)
{
	return &summary->others;
}
