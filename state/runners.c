// SPDX-License-Identifier: BSD-2-Clause
/*
 * runners.c - owns the entries of threads and processes and all memory of accounts. Promises that
 * what an account holds is moved and never dropped, and that an entry whose slice is open or whose
 * waits are not settled stays. Knows nothing of records, CPUs and intervals.
 */
#include "state/runners.h"

#include <errno.h>
#include <string.h>

#define FIRST_BITS 6

static void init_lists(struct runners *runners)
{
	list__init(&runners->running);
	list__init(&runners->ended);
	list__init(&runners->procs);
	list__init(&runners->remainders);
}

static void init_others(struct runners *runners)
{
	runners->others_proc = (struct runner_proc){.threads = 1};
	runners->others_proc.who.uid = TASKS_UID_UNKNOWN;
	runners->others.proc = &runners->others_proc;
	runners->others.last_cpu = -1;
	runners->rest.uid = TASKS_UID_UNKNOWN;
	list__add_tail(&runners->remainders, &runners->rest.all);
}

int runners__init(struct runners *runners, size_t cap_bytes, size_t taken_bytes,
		  struct tasks *tasks)
{
	int err;

	memset(runners, 0, sizeof(*runners));
	runners->budget = (struct budget){.bytes = taken_bytes, .cap = cap_bytes};
	runners->pool.budget = &runners->budget;
	runners->tasks = tasks;
	init_lists(runners);
	init_others(runners);
	err = names__init(&runners->names, &runners->budget);
	if (!err)
		err = hash__init(&runners->by_tid, &runners->budget, FIRST_BITS);
	if (!err)
		err = hash__init(&runners->by_pid, &runners->budget, FIRST_BITS);
	if (!err)
		err = hash__init(&runners->remains, &runners->budget, FIRST_BITS);
	if (err)
		runners__free(runners);
	return err;
}

/* ---- what is left ----------------------------------------------------------------------------- */

static uint64_t kind_key(const struct runner_who *who)
{
	return who->uid ^ (uint64_t)(uintptr_t)who->cgroup ^
	       (uint64_t)(uintptr_t)who->container << 20;
}

static struct remains *remains_of(struct runners *runners, const struct runner_who *who)
{
	uint64_t key = kind_key(who);
	struct remains *remains;
	struct hash_node *node;

	for (node = hash__first(&runners->remains, key); node; node = node->next) {
		remains = (struct remains *)node;
		if (remains->uid == who->uid && remains->cgroup == who->cgroup &&
		    remains->container == who->container)
			return remains;
	}
	remains = budget__alloc(&runners->budget, sizeof(*remains));
	if (!remains)
		return &runners->rest;
	remains->uid = who->uid;
	remains->cgroup = name__ref(who->cgroup);
	remains->container = name__ref(who->container);
	hash__insert(&runners->remains, &remains->node, key);
	hash__grow(&runners->remains);
	list__add_tail(&runners->remainders, &remains->all);
	return remains;
}

static void put_who(struct runners *runners, struct runner_who *who)
{
	names__put(&runners->names, who->exe);
	names__put(&runners->names, who->cgroup);
	names__put(&runners->names, who->container);
}

static void drop_proc(struct runners *runners, struct runner_proc *proc)
{
	account__fold(&remains_of(runners, &proc->who)->account, &proc->gone, &runners->pool);
	hash__remove(&runners->by_pid, &proc->node);
	list__del(&proc->all);
	put_who(runners, &proc->who);
	budget__free(&runners->budget, proc);
}

static void drop(struct runners *runners, struct runner *runner)
{
	struct runner_proc *proc = runner->proc;

	account__fold(&proc->gone, &runner->account, &runners->pool);
	hash__remove(&runners->by_tid, &runner->node);
	list__del(&runner->life);
	proc->ended -= runner->exit_ns != 0;
	if (!--proc->threads)
		drop_proc(runners, proc);
	budget__free(&runners->budget, runner);
}

static struct runner *oldest(struct list_node *list)
{
	return list__entry(list->next, struct runner, life);
}

static void drop_remains(struct runners *runners, struct remains *remains)
{
	delays__put(&runners->pool, remains->account.delays);
	list__del(&remains->all);
	if (remains == &runners->rest)
		return;
	names__put(&runners->names, remains->cgroup);
	names__put(&runners->names, remains->container);
	budget__free(&runners->budget, remains);
}

void runners__free(struct runners *runners)
{
	while (!list__empty(&runners->ended))
		drop(runners, oldest(&runners->ended));
	while (!list__empty(&runners->running))
		drop(runners, oldest(&runners->running));
	while (!list__empty(&runners->remainders))
		drop_remains(runners, list__entry(runners->remainders.next, struct remains, all));
	delays__put(&runners->pool, runners->others.account.delays);
	delays__free_pool(&runners->pool);
	hash__free(&runners->by_tid);
	hash__free(&runners->by_pid);
	hash__free(&runners->remains);
	names__free(&runners->names);
}

/* ---- who leaves ------------------------------------------------------------------------------- */

/* Somebody holds a pointer to it. */
static bool is_held(const struct runner *runner)
{
	return runner->cpus || runner->chains;
}

static void to_tail(struct list_node *list, struct runner *runner)
{
	list__del(&runner->life);
	list__add_tail(list, &runner->life);
}

/* The first of a list that nobody holds and that has not run since it was last looked at. */
static bool evict_from(struct runners *runners, struct list_node *list, size_t count)
{
	/* Twice round at most: the first may only take the marks off. */
	for (size_t i = 0; i < 2 * count && !list__empty(list); i++) {
		struct runner *runner = oldest(list);

		if (!is_held(runner) && !(runner->flags & RUNNER_USED)) {
			drop(runners, runner);
			runners->evicted++;
			return true;
		}
		runner->flags &= (uint16_t)~RUNNER_USED;
		to_tail(list, runner);
	}
	return false;
}

bool runners__evict(struct runners *runners)
{
	size_t count = runners->by_tid.count;

	return evict_from(runners, &runners->ended, count) ||
	       evict_from(runners, &runners->running, count);
}

void runners__retire(struct runners *runners, uint64_t before_ns)
{
	struct list_node *node = runners->ended.next, *next;

	for (; node != &runners->ended; node = next) {
		struct runner *runner = list__entry(node, struct runner, life);

		next = node->next;
		if (runner->exit_ns < before_ns && (runner->flags & RUNNER_END_TOLD) &&
		    !is_held(runner))
			drop(runners, runner);
	}
}

void *runners__alloc(struct runners *runners, size_t size)
{
	void *ptr;

	while (!(ptr = budget__alloc(&runners->budget, size)))
		if (!runners__evict(runners))
			return NULL;
	return ptr;
}

/* ---- who is who ------------------------------------------------------------------------------- */

static struct runner_proc *newest_proc(const struct runners *runners, uint32_t pid)
{
	struct hash_node *node = hash__first(&runners->by_pid, pid);

	while (node && node->key != pid)
		node = node->next;
	return (struct runner_proc *)node;
}

static struct runner_proc *new_proc(struct runners *runners, uint32_t pid, uint64_t start_ns)
{
	struct runner_proc *proc = runners__alloc(runners, sizeof(*proc));

	if (!proc)
		return NULL;
	proc->pid = pid;
	proc->start_ns = start_ns;
	proc->who.uid = TASKS_UID_UNKNOWN;
	hash__insert(&runners->by_pid, &proc->node, pid);
	hash__grow(&runners->by_pid);
	list__add_tail(&runners->procs, &proc->all);
	return proc;
}

/* Can a thread that began then be of this process? */
static bool is_of(const struct runner_proc *proc, bool leads, uint64_t start_ns)
{
	if (leads)
		return !start_ns || !proc->start_ns || proc->start_ns == start_ns;
	return !proc__ended(proc) || !start_ns || start_ns <= proc->end_ns;
}

static struct runner_proc *proc_of(struct runners *runners, uint32_t pid, bool leads,
				   uint64_t start_ns)
{
	struct runner_proc *proc = newest_proc(runners, pid);

	if (!proc || !is_of(proc, leads, start_ns))
		return new_proc(runners, pid, leads ? start_ns : 0);
	if (leads && start_ns)
		proc->start_ns = start_ns;
	return proc;
}

static struct runner *with_tid(struct hash_node *node, uint32_t tid)
{
	while (node && node->key != tid)
		node = node->next;
	return (struct runner *)node;
}

struct runner *runners__find(const struct runners *runners, uint32_t tid, uint64_t start_ns)
{
	struct runner *runner = with_tid(hash__first(&runners->by_tid, tid), tid);

	while (runner && runner->start_ns != start_ns)
		runner = with_tid(runner->node.next, tid);
	return runner;
}

static struct runner *add(struct runners *runners, uint32_t tid, uint32_t pid, uint64_t start_ns)
{
	struct runner *runner = runners__alloc(runners, sizeof(*runner));

	if (!runner)
		return &runners->others;
	/* In no list yet: room for its process is not made by letting go of it. */
	runner->proc = proc_of(runners, pid, tid == pid, start_ns);
	if (!runner->proc) {
		budget__free(&runners->budget, runner);
		return &runners->others;
	}
	runner->tid = tid;
	runner->start_ns = start_ns;
	runner->last_cpu = -1;
	runner->proc->threads++;
	hash__insert(&runners->by_tid, &runner->node, tid);
	hash__grow(&runners->by_tid);
	list__add_tail(&runners->running, &runner->life);
	return runner;
}

static bool ask(const struct runners *runners, uint32_t tid, uint64_t stamp_ns,
		struct task_view *view)
{
	return runners->tasks && tasks__find(runners->tasks, tid, stamp_ns, view);
}

/* One that was met before anybody told when it began. */
static struct runner *adopt(struct runners *runners, uint32_t tid, uint64_t start_ns)
{
	struct runner *runner = runners__find(runners, tid, 0);

	if (runner) {
		runner->start_ns = start_ns;
		if (runner__leads(runner) && !runner->proc->start_ns)
			runner->proc->start_ns = start_ns;
	}
	return runner;
}

struct runner *runners__get(struct runners *runners, uint32_t tid, uint32_t pid, uint64_t start_ns,
			    uint64_t stamp_ns)
{
	struct runner *runner = runners__find(runners, tid, start_ns);
	struct task_view view;

	if (!runner && start_ns)
		runner = adopt(runners, tid, start_ns);
	if (runner) {
		runner->flags |= RUNNER_USED;
		return runner;
	}
	if (!pid)
		pid = ask(runners, tid, stamp_ns, &view) ? view.pid : tid;
	runner = add(runners, tid, pid, start_ns);
	if (runner != &runners->others)
		runners__describe(runners, runner, stamp_ns);
	return runner;
}

struct runner *runners__now(struct runners *runners, uint32_t tid, uint32_t pid, uint64_t stamp_ns)
{
	struct runner *runner = with_tid(hash__first(&runners->by_tid, tid), tid);
	struct task_view view;

	/* Its last switch away comes after its end; what comes later is another's. */
	if ((!runner || runner->exit_ns) && ask(runners, tid, stamp_ns, &view) &&
	    !(runner && (!view.start_ns || view.start_ns == runner->start_ns)))
		return runners__get(runners, tid, view.pid, view.start_ns, stamp_ns);
	if (!runner)
		return runners__get(runners, tid, pid, 0, stamp_ns);
	runner->flags |= RUNNER_USED;
	return runner;
}

static void set_comm(char comm[WEIR_COMM_LEN], const char *from)
{
	if (!from)
		return;
	memset(comm, 0, WEIR_COMM_LEN);
	memcpy(comm, from, strnlen(from, WEIR_COMM_LEN - 1));
}

/* The same again nearly always. */
static void set_name(struct runners *runners, struct name **at, const char *text)
{
	struct name *old = *at;

	if (old && text && !strcmp(old->text, text))
		return;
	*at = text ? names__get(&runners->names, text, strlen(text)) : NULL;
	names__put(&runners->names, old);
}

static void describe_proc(struct runners *runners, struct runner_proc *proc,
			  const struct task_view *view)
{
	struct runner_who *who = &proc->who;

	who->uid = view->uid;
	who->ppid = view->ppid;
	set_comm(who->name, view->name);
	set_name(runners, &who->exe, view->exe);
	set_name(runners, &who->cgroup, view->cgroup);
	set_name(runners, &who->container, view->container);
}

void runners__describe(struct runners *runners, struct runner *runner, uint64_t stamp_ns)
{
	struct task_view view;

	if (!ask(runners, runner->tid, stamp_ns, &view) ||
	    (view.start_ns && runner->start_ns && view.start_ns != runner->start_ns))
		return;
	set_comm(runner->comm, view.comm);
	if (view.pid == runner->proc->pid &&
	    (runner__leads(runner) || !(runner->flags & RUNNER_NAMED)))
		describe_proc(runners, runner->proc, &view);
	runner->flags |= RUNNER_NAMED;
}

void runners__end(struct runners *runners, struct runner *runner, uint64_t stamp_ns)
{
	if (runner->exit_ns || stamp_ns < runner->alive_ns || runner == &runners->others)
		return;
	runner->exit_ns = stamp_ns ? stamp_ns : 1;
	runner->proc->ended++;
	if (stamp_ns > runner->proc->end_ns)
		runner->proc->end_ns = stamp_ns;
	to_tail(&runners->ended, runner);
}

void runners__revive(struct runners *runners, struct runner *runner, uint64_t stamp_ns)
{
	if (runner == &runners->others)
		return;
	if (stamp_ns > runner->alive_ns)
		runner->alive_ns = stamp_ns;
	if (!runner->exit_ns || runner->exit_ns > stamp_ns)
		return;
	runner->exit_ns = 0;
	runner->flags &= (uint16_t)~RUNNER_END_TOLD;
	runner->proc->ended--;
	to_tail(&runners->running, runner);
}
