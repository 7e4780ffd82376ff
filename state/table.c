// SPDX-License-Identifier: BSD-2-Clause
/*
 * table.c - owns the threads and processes, and all memory of the task table. Promises the invariants
 * in table.h and that nothing is freed but in make_room, retire and free: pointers stay good while
 * an event is being applied. Knows nothing of events, and sets no fact but start and end.
 */
#include <errno.h>
#include <string.h>

#include "state/table.h"

#define FIRST_BITS 6

int table__init(struct table *table, size_t cap_bytes, size_t taken_bytes)
{
	int err;

	memset(table, 0, sizeof(*table));
	table->budget = (struct budget){.bytes = taken_bytes, .cap = cap_bytes};
	list__init(&table->running);
	list__init(&table->ended);
	list__init(&table->cgroups.idle); /* table__free() walks it, however far this gets */
	err = names__init(&table->names, &table->budget);
	if (!err)
		err = cgroups__init(&table->cgroups, &table->budget, &table->names);
	if (!err)
		err = hash__init(&table->by_tid, &table->budget, FIRST_BITS);
	if (err)
		table__free(table);
	return err;
}

static struct thread *oldest(struct list_node *list)
{
	return list__empty(list) ? NULL : list__entry(list->next, struct thread, life);
}

static void free_proc(struct table *table, struct proc *proc)
{
	names__put(&table->names, proc->exe);
	budget__free(&table->budget, proc);
}

/* A leader goes last: with it goes its process. */
static void drop(struct table *table, struct thread *thread)
{
	struct proc *proc = thread->proc;

	hash__remove(&table->by_tid, &thread->node);
	list__del(&thread->life);
	list__del(&thread->sibling);
	if (thread->exit_ns == TABLE_NEVER_NS)
		proc->nr_running--;
	if (!--proc->nr_threads)
		free_proc(table, proc);
	cgroups__put_set(&table->cgroups, thread->cgroups);
	budget__free(&table->budget, thread);
}

static void to_tail(struct list_node *list, struct thread *thread)
{
	list__del(&thread->life);
	list__add_tail(list, &thread->life);
}

static bool leads_others(const struct thread *thread)
{
	return thread__leads(thread) && thread->proc->nr_threads > 1;
}

/*
 * Drop the first of a list. A leader of others is passed over; they are on the same list: of a
 * process that has ended, all threads have, and running ones are evicted when no ended one is left.
 */
static bool drop_first(struct table *table, struct list_node *list)
{
	struct thread *thread = oldest(list);

	if (leads_others(thread)) {
		to_tail(list, thread);
		return false;
	}
	drop(table, thread);
	return true;
}

void table__free(struct table *table)
{
	while (!list__empty(&table->ended))
		drop_first(table, &table->ended);
	while (!list__empty(&table->running))
		drop_first(table, &table->running);
	hash__free(&table->by_tid);
	cgroups__free(&table->cgroups);
	names__free(&table->names);
}

/*
 * Least recently used by second chance: a lookup leaves a mark on the line that it reads anyway; a
 * list in exact order would cost it two more cache misses.
 */
static void evict_running(struct table *table)
{
	struct thread *thread = oldest(&table->running);

	if (thread->flags & THREAD_USED) {
		thread->flags &= ~THREAD_USED;
		to_tail(&table->running, thread);
	} else if (drop_first(table, &table->running)) {
		table->evicted++;
	}
}

static bool fits(const struct budget *budget, size_t bytes)
{
	return bytes <= budget->cap && budget->bytes <= budget->cap - bytes;
}

int table__make_room(struct table *table, size_t bytes)
{
	/* What never fits must not cost anybody's entry. */
	if (bytes > table->budget.cap)
		return -ENOMEM;
	while (!fits(&table->budget, bytes)) {
		if (cgroups__evict_idle(&table->cgroups))
			continue;
		if (!list__empty(&table->ended))
			table->evicted += drop_first(table, &table->ended);
		else if (!list__empty(&table->running))
			evict_running(table);
		else
			return -ENOMEM;
	}
	return 0;
}

/* The next in the chain from `node` on that has this tid. */
static struct thread *with_tid(struct hash_node *node, uint32_t tid)
{
	while (node && node->key != tid)
		node = node->next;
	return (struct thread *)node;
}

static struct thread *newest(const struct table *table, uint32_t tid)
{
	return with_tid(hash__first(&table->by_tid, tid), tid);
}

static struct thread *older_than(const struct thread *thread)
{
	return with_tid(thread->node.next, thread->tid);
}

struct thread *table__begun(const struct table *table, uint32_t tid, uint64_t stamp_ns)
{
	struct thread *thread = newest(table, tid);

	while (thread && thread->from_ns > stamp_ns)
		thread = older_than(thread);
	return thread;
}

struct thread *table__at(const struct table *table, uint32_t tid, uint64_t stamp_ns)
{
	struct thread *thread = table__begun(table, tid, stamp_ns);

	return thread && stamp_ns <= thread__gone_ns(thread) ? thread : NULL;
}

/*
 * Without a start of its own, an identity began at its first sight or before; and after the older
 * one, which the walk has not reached yet.
 */
static bool may_have_begun(const struct thread *thread, uint64_t start_ns)
{
	const struct thread *older = older_than(thread);

	return !(thread->flags & THREAD_STARTED) && start_ns <= thread->from_ns &&
	       (!older || older->from_ns < start_ns);
}

struct thread *table__started(const struct table *table, const struct weir_task_id *id,
			      uint64_t start_ns)
{
	struct thread *thread;

	for (thread = newest(table, id->tid); thread; thread = older_than(thread)) {
		if (thread->proc->pid != id->pid)
			continue;
		if ((thread->flags & THREAD_STARTED) && thread->start_ns == start_ns)
			return thread;
		if (may_have_begun(thread, start_ns)) {
			thread->flags |= THREAD_STARTED;
			thread->start_ns = start_ns;
			thread->from_ns = start_ns;
			return thread;
		}
	}
	return NULL;
}

/* All its threads have exited: the last of them tells when. */
static void finish_proc(struct table *table, struct proc *proc)
{
	struct list_node *node;

	proc->end_ns = 0;
	for (node = proc->threads.next; node != &proc->threads; node = node->next) {
		struct thread *thread = list__entry(node, struct thread, sibling);

		if (thread->exit_ns > proc->end_ns)
			proc->end_ns = thread->exit_ns;
	}
	to_tail(&table->ended, proc->leader);
}

void table__end_thread(struct table *table, struct thread *thread, uint64_t stamp_ns)
{
	struct proc *proc = thread->proc;

	if (thread->exit_ns != TABLE_NEVER_NS)
		return;
	/* The largest stamp is `never`; nothing that exits has it. */
	thread->exit_ns = stamp_ns < TABLE_NEVER_NS ? stamp_ns : TABLE_NEVER_NS - 1;
	if (!thread__leads(thread))
		to_tail(&table->ended, thread);
	if (!--proc->nr_running)
		finish_proc(table, proc);
}

void table__end_proc(struct table *table, struct proc *proc, uint64_t stamp_ns)
{
	struct list_node *node;

	for (node = proc->threads.next; proc->nr_running && node != &proc->threads;
	     node = node->next)
		table__end_thread(table, list__entry(node, struct thread, sibling), stamp_ns);
}

void table__revive_leader(struct table *table, struct proc *proc)
{
	struct thread *leader = proc->leader;

	if (leader->exit_ns == TABLE_NEVER_NS || newest(table, leader->tid) != leader)
		return;
	leader->exit_ns = TABLE_NEVER_NS;
	proc->nr_running++;
	proc->end_ns = TABLE_NEVER_NS;
	to_tail(&table->running, leader);
}

static struct proc *new_proc(struct table *table, struct thread *leader)
{
	struct proc *proc = budget__alloc(&table->budget, sizeof(*proc));

	if (!proc)
		return NULL;
	proc->pid = leader->tid;
	proc->uid = UINT32_MAX;
	proc->end_ns = TABLE_NEVER_NS;
	proc->leader = leader;
	list__init(&proc->threads);
	return proc;
}

static struct thread *new_thread(struct table *table, struct proc *proc, uint32_t tid,
				 uint64_t start_ns, uint64_t seen_ns)
{
	struct thread *thread = budget__alloc(&table->budget, sizeof(*thread));

	if (!thread)
		return NULL;
	thread->tid = tid;
	thread->start_ns = start_ns;
	thread->flags = start_ns ? THREAD_STARTED : 0;
	/* A start after the first sight is nonsense; the sight is not. */
	thread->from_ns = start_ns && start_ns < seen_ns ? start_ns : seen_ns;
	thread->exit_ns = TABLE_NEVER_NS;
	thread->proc = proc ? proc : new_proc(table, thread);
	if (!thread->proc) {
		budget__free(&table->budget, thread);
		return NULL;
	}
	list__add_tail(&table->running, &thread->life);
	list__add_tail(&thread->proc->threads, &thread->sibling);
	thread->proc->nr_threads++;
	thread->proc->nr_running++;
	return thread;
}

/* Put it into the chain by age. Returns the next newer identity of the tid. */
static struct thread *insert_by_age(struct table *table, struct thread *thread)
{
	struct thread *newer = NULL;
	struct thread *other = newest(table, thread->tid);

	while (other && other->from_ns > thread->from_ns) {
		newer = other;
		other = older_than(other);
	}
	if (other || newer) {
		thread->node.key = thread->tid;
		hash__insert_at(&table->by_tid, other ? other->node.pprev : &newer->node.next,
				&thread->node);
	} else {
		hash__insert(&table->by_tid, &thread->node, thread->tid);
	}
	hash__grow(&table->by_tid);
	return newer;
}

/* The tid is free for another: so are, with a leader's, all its threads gone. */
static void end_identity(struct table *table, struct thread *thread, uint64_t stamp_ns)
{
	if (thread__leads(thread))
		table__end_proc(table, thread->proc, stamp_ns);
	else
		table__end_thread(table, thread, stamp_ns);
}

struct thread *table__add(struct table *table, struct proc *proc, uint32_t tid, uint64_t start_ns,
			  uint64_t seen_ns)
{
	struct thread *thread = new_thread(table, proc, tid, start_ns, seen_ns);
	struct thread *newer, *older;

	if (!thread)
		return NULL;
	newer = insert_by_age(table, thread);
	older = older_than(thread);
	if (older)
		end_identity(table, older, thread->from_ns);
	if (newer)
		end_identity(table, thread, newer->from_ns);
	else if (thread->proc->end_ns != TABLE_NEVER_NS)
		table__end_thread(table, thread, thread->proc->end_ns);
	return thread;
}

void table__retire(struct table *table, uint64_t watermark_ns)
{
	struct thread *thread;

	/* One with a late end may stand behind others, and goes a little later than it could. */
	while ((thread = oldest(&table->ended)) && thread__gone_ns(thread) <= watermark_ns)
		table->retired += drop_first(table, &table->ended);
}
