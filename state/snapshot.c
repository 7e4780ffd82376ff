// SPDX-License-Identifier: BSD-2-Clause
/*
 * snapshot.c - owns the rows of the last interval. Promises that each account is in exactly one row, and
 * tells by how much the rows do not add up. Knows nothing of switches.
 */
#include <string.h>

#include "state/usage_internal.h"

/*
 * Who has ended keeps its entry for that long: its last switch away may come after its end, on a CPU
 * that was stolen.
 */
#define LINGER_NS UINT64_C(1000000000)

/* ---- what the last snapshot holds ------------------------------------------------------------- */

static void drop_contents(struct usage *usage)
{
	struct usage_snapshot *snapshot = &usage->snapshot;

	for (size_t i = 0; i < usage->nr_names; i++)
		names__put(&usage->runners.names, usage->names[i]);
	for (size_t i = 0; i < snapshot->nr_rows; i++)
		delays__put(&usage->runners.pool, usage->rows[i].delays);
	for (size_t i = 0; i < snapshot->nr_cpus; i++)
		delays__put(&usage->runners.pool, usage->cpu_rows[i].delays);
	usage->nr_names = snapshot->nr_rows = snapshot->nr_cpus = 0;
}

void snapshot__drop(struct usage *usage)
{
	struct budget *budget = &usage->runners.budget;

	drop_contents(usage);
	budget__free(budget, usage->rows);
	budget__free(budget, usage->cpu_rows);
	budget__free(budget, usage->names);
}

/* Room for `count` of `size`, without what was there. NULL: no memory. */
static void *make_room(struct usage *usage, void *old, size_t *room, size_t count, size_t size)
{
	/* Some more than that: who comes next finds room. */
	size_t more = count + count / 8 + 8;

	if (old && count <= *room)
		return old;
	budget__free(&usage->runners.budget, old);
	old = budget__alloc(&usage->runners.budget, more * size);
	*room = old ? more : 0;
	return old;
}

static bool is_empty(const struct account *account)
{
	static const struct usage_counts zero;

	return !memcmp(&account->total, &zero, sizeof(zero)) &&
	       !memcmp(&account->seen, &zero, sizeof(zero));
}

/* Rows of what is left of threads and processes, the one without a kind apart. */
static size_t count_leftovers(const struct runners *runners)
{
	const struct list_node *node, *list = &runners->procs;
	size_t count = runners->remains.count + 1;

	for (node = list->next; node != list; node = node->next)
		count += !is_empty(&list__entry(node, struct runner_proc, all)->gone);
	return count;
}

static bool has_room(struct usage *usage)
{
	struct runners *runners = &usage->runners;
	size_t rows = runners->by_tid.count + count_leftovers(runners) + 1 + 2 * usage->nr_cpus;
	size_t names = 3 * runners->by_pid.count + 2 * runners->remains.count;

	usage->rows = make_room(usage, usage->rows, &usage->rows_room, rows, sizeof(*usage->rows));
	usage->cpu_rows = make_room(usage, usage->cpu_rows, &usage->cpu_rows_room, usage->nr_cpus,
				    sizeof(*usage->cpu_rows));
	usage->names = make_room(usage, usage->names, &usage->names_room, names,
				 sizeof(struct name *));
	return usage->rows && usage->cpu_rows && usage->names;
}

/* An eighth of all threads leaves for it at a time: each try has to count them. */
static bool make_all_room(struct usage *usage)
{
	while (!has_room(usage)) {
		size_t batch = usage->runners.by_tid.count / 8 + 1;

		if (!runners__evict(&usage->runners))
			return false;
		while (--batch && runners__evict(&usage->runners))
			;
	}
	return true;
}

/* ---- rows ------------------------------------------------------------------------------------- */

static const char *keep_name(struct usage *usage, struct name *name)
{
	if (!name)
		return NULL;
	usage->names[usage->nr_names++] = name__ref(name);
	return name->text;
}

/* The interval of an account ends here: what it has is told. */
static void tell(struct account *account, struct usage_counts *now, struct usage_counts *total,
		 struct delays **delays)
{
	*total = account->total;
	*now = account->total;
	counts__subtract(now, &account->seen);
	account->seen = account->total;
	*delays = account->delays;
	account->delays = NULL;
}

static struct usage_row *add_row(struct usage *usage, enum usage_kind kind, struct account *account)
{
	struct usage_row *row = &usage->rows[usage->snapshot.nr_rows++];

	*row = (struct usage_row){.kind = kind, .cpu = -1, .uid = TASKS_UID_UNKNOWN};
	tell(account, &row->now, &row->total, &row->delays);
	return row;
}

static enum usage_state state_of(const struct runner *runner)
{
	if (runner->exit_ns)
		return USAGE_EXITED;
	return runner->cpus ? USAGE_RUNNING : (enum usage_state)runner->left;
}

static void of_process(struct usage_row *row, const struct runner_proc *proc)
{
	row->pid = proc->pid;
	row->process_start_ns = proc->start_ns;
	row->uid = proc->who.uid;
	row->ppid = proc->who.ppid;
	row->exe = name__text(proc->who.exe);
	row->cgroup = name__text(proc->who.cgroup);
	row->container = name__text(proc->who.container);
	memcpy(row->name, proc->who.name, sizeof(row->name));
}

static void thread_row(struct usage *usage, struct runner *runner)
{
	struct usage_row *row = add_row(usage, USAGE_THREAD, &runner->account);

	of_process(row, runner->proc);
	row->tid = runner->tid;
	row->state = state_of(runner);
	row->cpu = runner->last_cpu;
	row->start_ns = runner->start_ns;
	memcpy(row->comm, runner->comm, sizeof(row->comm));
	row->ended = runner->exit_ns && !(runner->flags & RUNNER_END_TOLD);
	if (runner->exit_ns)
		runner->flags |= RUNNER_END_TOLD;
}

static void thread_rows(struct usage *usage, const struct list_node *list)
{
	for (struct list_node *node = list->next; node != list; node = node->next)
		thread_row(usage, list__entry(node, struct runner, life));
}

static void process_rows(struct usage *usage)
{
	struct list_node *list = &usage->runners.procs;

	for (struct list_node *node = list->next; node != list; node = node->next) {
		struct runner_proc *proc = list__entry(node, struct runner_proc, all);

		keep_name(usage, proc->who.exe);
		keep_name(usage, proc->who.cgroup);
		keep_name(usage, proc->who.container);
		if (!is_empty(&proc->gone))
			of_process(add_row(usage, USAGE_GONE_THREADS, &proc->gone), proc);
	}
}

static void gone_rows(struct usage *usage)
{
	struct list_node *list = &usage->runners.remainders;
	struct usage_row *row;

	for (struct list_node *node = list->next; node != list; node = node->next) {
		struct remains *remains = list__entry(node, struct remains, all);

		if (is_empty(&remains->account))
			continue;
		row = add_row(usage, USAGE_GONE, &remains->account);
		row->state = USAGE_EXITED;
		row->uid = remains->uid;
		row->cgroup = keep_name(usage, remains->cgroup);
		row->container = keep_name(usage, remains->container);
	}
	if (!is_empty(&usage->runners.others.account))
		add_row(usage, USAGE_GONE, &usage->runners.others.account);
}

static void cpu_row(struct usage *usage, struct usage_cpu *cpu)
{
	struct usage_cpu_row *row = &usage->cpu_rows[usage->snapshot.nr_cpus++];
	struct usage_row *idle, *gap;

	idle = add_row(usage, USAGE_IDLE, &cpu->slices.idle);
	gap = add_row(usage, USAGE_GAP, &cpu->slices.gap);
	idle->cpu = gap->cpu = (int32_t)cpu->slices.cpu;
	*row = (struct usage_cpu_row){.cpu = cpu->slices.cpu, .away = cpu->away};
	tell(&cpu->slices.tasks, &row->now, &row->total, &row->delays);
	row->tasks_ns = row->now.time_ns;
	row->idle_ns = idle->now.time_ns;
	row->gap_ns = gap->now.time_ns;
}

/* ---- does it add up? -------------------------------------------------------------------------- */

static int64_t farther(int64_t a, int64_t b)
{
	return (a < 0 ? -a : a) < (b < 0 ? -b : b) ? b : a;
}

static void check_cpus(struct usage *usage)
{
	struct usage_snapshot *snapshot = &usage->snapshot;
	int64_t elapsed_ns = (int64_t)(snapshot->to_ns - snapshot->from_ns);

	for (uint32_t i = 0; i < usage->nr_cpus; i++)
		if (usage->cpus[i])
			snapshot->cpu_difference_ns =
				farther(snapshot->cpu_difference_ns,
					slices__difference_ns(&usage->cpus[i]->slices));
	for (size_t i = 0; i < snapshot->nr_cpus; i++) {
		const struct usage_cpu_row *cpu = &usage->cpu_rows[i];

		snapshot->interval_difference_ns =
			farther(snapshot->interval_difference_ns,
				cpu->tasks_ns + cpu->idle_ns + cpu->gap_ns - elapsed_ns);
	}
}

static bool is_of_a_cpu(const struct usage_row *row)
{
	return row->kind == USAGE_IDLE || row->kind == USAGE_GAP;
}

static void check_rows(struct usage *usage)
{
	struct usage_snapshot *snapshot = &usage->snapshot;
	int64_t now_ns = 0, total_ns = 0;

	for (size_t i = 0; i < snapshot->nr_rows; i++) {
		const struct usage_row *row = &usage->rows[i];

		now_ns += is_of_a_cpu(row) ? 0 : row->now.time_ns;
		total_ns += is_of_a_cpu(row) ? 0 : row->total.time_ns;
	}
	for (size_t i = 0; i < snapshot->nr_cpus; i++) {
		now_ns -= usage->cpu_rows[i].now.time_ns;
		total_ns -= usage->cpu_rows[i].total.time_ns;
	}
	snapshot->rows_difference_ns = total_ns;
	snapshot->interval_difference_ns = farther(snapshot->interval_difference_ns, now_ns);
}

/* ---- the interval ----------------------------------------------------------------------------- */

static uint64_t end_of_interval(const struct usage *usage)
{
	uint64_t to_ns = usage__least_watermark(usage);

	if (to_ns < usage->from_ns)
		to_ns = usage->from_ns;
	for (uint32_t i = 0; i < usage->nr_cpus; i++)
		if (usage->cpus[i] && usage->cpus[i]->slices.billed_ns > to_ns)
			to_ns = usage->cpus[i]->slices.billed_ns;
	return to_ns;
}

static void describe_all(struct usage *usage, uint64_t stamp_ns)
{
	struct list_node *list = &usage->runners.running;

	for (struct list_node *node = list->next; node != list; node = node->next)
		runners__describe(&usage->runners, list__entry(node, struct runner, life),
				  stamp_ns);
}

static void tell_rows(struct usage *usage)
{
	thread_rows(usage, &usage->runners.running);
	thread_rows(usage, &usage->runners.ended);
	process_rows(usage);
	gone_rows(usage);
	for (uint32_t i = 0; i < usage->nr_cpus; i++)
		if (usage->cpus[i])
			cpu_row(usage, usage->cpus[i]);
}

const struct usage_snapshot *usage__take(struct usage *usage)
{
	struct usage_snapshot *snapshot = &usage->snapshot;
	uint64_t to_ns = end_of_interval(usage);

	drop_contents(usage);
	runners__retire(&usage->runners, to_ns > LINGER_NS ? to_ns - LINGER_NS : 0);
	if (!make_all_room(usage))
		return NULL;
	for (uint32_t i = 0; i < usage->nr_cpus; i++)
		if (usage->cpus[i])
			slices__bill(&usage->cpus[i]->slices, to_ns);
	describe_all(usage, to_ns);
	*snapshot = (struct usage_snapshot){
		.begin_ns = usage->begin_ns,
		.from_ns = usage->from_ns,
		.to_ns = to_ns,
		.rows = usage->rows,
		.cpus = usage->cpu_rows,
		.switches = usage->switches - usage->switches_seen,
		.counters = usage->counters,
		.trouble = usage->trouble,
		.evicted = usage->runners.evicted,
		.bytes = usage->runners.budget.bytes,
	};
	tell_rows(usage);
	check_cpus(usage);
	check_rows(usage);
	usage->from_ns = to_ns;
	usage->switches_seen = usage->switches;
	return snapshot;
}
