// SPDX-License-Identifier: BSD-2-Clause
/*
 * usage.c - owns what a switch, a wake-up, a loss and an exit mean for the accounts. Promises that time
 * goes to a task only between its switch in and its switch away, with nothing missing between them.
 * Knows nothing of rows and intervals.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "state/usage_internal.h"

#define CAP_DEFAULT (64u << 20)
#define CAP_MIN	    (256u << 10)

/* Low byte of a task's state, as the kernel has it. */
#define STATE_UNINTERRUPTIBLE 0x02
#define STATE_STOPPED	      0x04
#define STATE_TRACED	      0x08
#define STATE_DEAD	      0x80

/*
 * Hardware counts are at least that wide, and no CPU has more in a ns. One that falls has wrapped
 * there, or, if that would be more than can be, has begun anew.
 */
#define COUNTER_BITS	 48
#define COUNTS_MOST_A_NS 64

struct usage *usage__new(struct tasks *tasks, size_t cap_bytes)
{
	struct usage *usage;

	if (!cap_bytes)
		cap_bytes = CAP_DEFAULT;
	if (cap_bytes < CAP_MIN) {
		errno = EINVAL;
		return NULL;
	}
	usage = calloc(1, sizeof(*usage));
	if (!usage)
		return NULL;
	if (runners__init(&usage->runners, cap_bytes, budget__cost(usage), tasks)) {
		free(usage);
		errno = ENOMEM;
		return NULL;
	}
	waits__init(&usage->waits, &usage->runners);
	return usage;
}

void usage__free(struct usage *usage)
{
	struct budget *budget;

	if (!usage)
		return;
	budget = &usage->runners.budget;
	snapshot__drop(usage);
	for (uint32_t i = 0; i < usage->nr_cpus; i++) {
		if (usage->cpus[i])
			delays__put(&usage->runners.pool, usage->cpus[i]->slices.tasks.delays);
		budget__free(budget, usage->cpus[i]);
	}
	budget__free(budget, usage->cpus);
	waits__free(&usage->waits);
	runners__free(&usage->runners);
	free(usage);
}

void usage__begin(struct usage *usage, uint64_t begin_ns)
{
	usage->begin_ns = begin_ns;
	usage->from_ns = begin_ns;
}

/* ---- CPUs ------------------------------------------------------------------------------------- */

static bool make_slots(struct usage *usage, uint32_t count)
{
	struct budget *budget = &usage->runners.budget;
	struct usage_cpu **cpus;

	if (count <= usage->nr_cpus)
		return true;
	cpus = runners__alloc(&usage->runners, count * sizeof(*cpus));
	if (!cpus)
		return false;
	if (usage->nr_cpus)
		memcpy(cpus, usage->cpus, usage->nr_cpus * sizeof(*cpus));
	budget__free(budget, usage->cpus);
	usage->cpus = cpus;
	usage->nr_cpus = count;
	return true;
}

/* NULL: there is no such CPU, or no memory: then its time is in no sum. */
static struct usage_cpu *cpu_at(struct usage *usage, int id)
{
	struct usage_cpu *cpu;

	if (id < 0 || id >= USAGE_CPUS_MAX)
		return NULL;
	if ((uint32_t)id < usage->nr_cpus && usage->cpus[id])
		return usage->cpus[id];
	if (!make_slots(usage, (uint32_t)id + 1))
		return NULL;
	cpu = runners__alloc(&usage->runners, sizeof(*cpu));
	usage->cpus[id] = cpu;
	if (!cpu)
		return NULL;
	slices__begin(&cpu->slices, (uint32_t)id, usage->begin_ns);
	/* One that comes later: of the intervals that were told, it had no part. */
	slices__bill(&cpu->slices, usage->from_ns);
	cpu->slices.gap.seen = cpu->slices.gap.total;
	return cpu;
}

void usage__cpu(struct usage *usage, uint32_t cpu)
{
	cpu_at(usage, cpu < USAGE_CPUS_MAX ? (int)cpu : -1);
}

/* ---- a CPU's open slice ----------------------------------------------------------------------- */

/* From there on it is not known who has this CPU. */
static void let_go(struct usage_cpu *cpu, uint64_t from_ns)
{
	struct runner *runner = runner_of(cpu);

	if (runner)
		runner->cpus--;
	slices__lose(&cpu->slices, from_ns);
	cpu->losses++;
	cpu->counted = 0;
}

/* And switches are missing in (from_ns, to_ns]. */
static void lose(struct usage *usage, struct usage_cpu *cpu, uint64_t from_ns, uint64_t to_ns)
{
	let_go(cpu, from_ns);
	waits__lost(&usage->waits, from_ns, to_ns);
}

/* The whole slice is in doubt, also what was billed of it. */
static void lose_slice(struct usage *usage, struct usage_cpu *cpu, uint64_t to_ns)
{
	lose(usage, cpu, cpu->slices.since_ns, to_ns);
}

/* Of a slice that has an end; not so: nobody's, until a switch tells again. */
static bool is_in_order(struct usage *usage, struct usage_cpu *cpu, uint64_t stamp_ns)
{
	if (stamp_ns >= cpu->slices.since_ns)
		return true;
	usage->trouble.steps_back++;
	lose(usage, cpu, cpu->slices.billed_ns, cpu->slices.billed_ns);
	return false;
}

/* NULL: the idle task. */
static void enter(struct usage_cpu *cpu, struct runner *runner, uint64_t stamp_ns)
{
	if (!runner) {
		slices__switch(&cpu->slices, stamp_ns, SLICE_IDLE, NULL);
		return;
	}
	slices__switch(&cpu->slices, stamp_ns, SLICE_TASK, &runner->account);
	runner->cpus++;
	runner->last_cpu = (int32_t)cpu->slices.cpu;
}

/* Nothing points to the thread behind this: room for the next one may be made by letting go of it. */
static void end_slice(struct usage_cpu *cpu, struct runner *runner, uint64_t stamp_ns)
{
	slices__switch(&cpu->slices, stamp_ns, SLICE_GAP, NULL);
	runner->cpus--;
}

/* How a thread leaves a CPU. */
struct leaving {
	uint64_t stamp_ns;
	uint8_t state; /* low byte of the kernel's */
	bool preempted, noload;
};

static bool is_runnable(const struct leaving *how)
{
	return how->preempted || !how->state;
}

static enum usage_state state_of(const struct leaving *how)
{
	if (is_runnable(how))
		return USAGE_WAITING;
	if (how->state & (STATE_STOPPED | STATE_TRACED))
		return USAGE_STOPPED;
	return how->state & STATE_UNINTERRUPTIBLE && !how->noload ? USAGE_BLOCKED : USAGE_SLEEPING;
}

/* The thread whose slice ends, or ended somewhere in a gap. on: NULL in that case. */
static void leave(struct usage *usage, struct runner *runner, struct account *on,
		  const struct leaving *how)
{
	bool runnable = is_runnable(how);

	runner->account.total.voluntary += !runnable;
	runner->account.total.involuntary += runnable;
	if (on) {
		on->total.voluntary += !runnable;
		on->total.involuntary += runnable;
	}
	/* CPUs are read one after the other: an older switch away comes later. */
	if (how->stamp_ns >= runner->left_ns) {
		runner->left_ns = how->stamp_ns;
		runner->left = (uint8_t)state_of(how);
	}
	if (how->state & STATE_DEAD)
		runners__end(&usage->runners, runner, how->stamp_ns);
}

/* The rest of the slice is of the process's leader, whose name the thread has taken. */
static void rename_slice(struct usage *usage, struct usage_cpu *cpu, uint64_t stamp_ns)
{
	struct runner *from = runner_of(cpu), *to;
	struct runner_proc *proc;

	if (!from || from == &usage->runners.others || runner__leads(from))
		return;
	proc = from->proc;
	if (proc->start_ns)
		to = runners__get(&usage->runners, proc->pid, proc->pid, proc->start_ns, stamp_ns);
	else
		to = runners__now(&usage->runners, proc->pid, proc->pid, stamp_ns);
	runners__revive(&usage->runners, to, stamp_ns);
	waits__rename(&usage->waits, from, to);
	slices__hand_over(&cpu->slices, &to->account);
	to->cpus++;
	to->last_cpu = (int32_t)cpu->slices.cpu;
	from->cpus--;
	runners__end(&usage->runners, from, stamp_ns);
}

/* ---- the lean probe --------------------------------------------------------------------------- */

static bool reading(const __u64 *count, unsigned int i)
{
	return count[i] != WEIR_LEAN_NO_COUNT;
}

/* What was counted in `ns`. false: nobody knows. */
static bool counted_between(uint64_t before, uint64_t now, uint64_t ns, uint64_t *count)
{
	*count = now - before;
	if (now >= before)
		return true;
	*count &= (UINT64_C(1) << COUNTER_BITS) - 1;
	return *count / COUNTS_MOST_A_NS <= ns;
}

/*
 * What the hardware counted in the slice that ends here. What could not be read is not 0; a counter that
 * could never be read is none of this machine's.
 */
static void count_slice(struct usage *usage, struct usage_cpu *cpu, struct account *owner,
			const struct weir_lean_counted *record)
{
	uint64_t ns = record->lean.stamp - cpu->slices.since_ns;
	struct usage_counts slice = {0};

	for (unsigned int i = 0; i < WEIR_LEAN_COUNTERS; i++) {
		uint32_t bit = 1u << i;
		bool begun = cpu->counted & bit, read = reading(record->count, i);

		usage->counters |= read ? bit : 0;
		if (!begun || !read ||
		    !counted_between(cpu->counter[i], record->count[i], ns, &slice.counter[i])) {
			slice.counter[i] = 0;
			slice.uncounted |= !!(usage->counters & bit);
		}
		cpu->counted &= ~bit;
		if (read) {
			cpu->counted |= bit;
			cpu->counter[i] = record->count[i];
		}
	}
	if (!owner)
		return;
	counts__add(&owner->total, &slice);
	if (owner != &cpu->slices.idle)
		counts__add(&cpu->slices.tasks.total, &slice);
}

static struct account *owner_of(struct usage_cpu *cpu)
{
	if (cpu->slices.of == SLICE_IDLE)
		return &cpu->slices.idle;
	return cpu->slices.of == SLICE_TASK ? cpu->slices.owner : NULL;
}

static void lean_leave(struct usage *usage, struct usage_cpu *cpu, const struct weir_lean *lean)
{
	struct runner *runner = runner_of(cpu);
	struct account *on = &cpu->slices.tasks;
	struct leaving how = {
		.stamp_ns = lean->stamp,
		.state = weir_lean__state(lean->flags),
		.preempted = lean->flags & WEIR_LEAN_PREEMPT,
		.noload = lean->flags & WEIR_LEAN_NOLOAD,
	};

	if (!runner)
		return;
	end_slice(cpu, runner, lean->stamp);
	if (lean->flags & WEIR_LEAN_NO_TOTALS || runner == &usage->runners.others)
		waits__unknown(runner);
	else
		waits__left(&usage->waits, runner, cpu->slices.cpu, on, cpu->losses, lean->stamp,
			    lean->prev_totals);
	leave(usage, runner, on, &how);
}

/* The totals of who began while we looked began at 0; if it had an account before, that has told. */
static void expect_totals(struct usage *usage, struct runner *runner)
{
	if (runner->last_cpu >= 0 || runner->start_ns <= usage->begin_ns || usage->runners.evicted)
		return;
	runner->flags |= RUNNER_HAS_TOTALS;
	runner->totals = 0;
	runner->totals_ns = runner->start_ns;
}

static void lean_enter(struct usage *usage, struct usage_cpu *cpu, const struct weir_lean *lean)
{
	struct runner *runner = NULL;

	if (lean->next_tid) {
		runner = runners__get(&usage->runners, lean->next_tid, lean->next_pid,
				      lean->next_start_ns, lean->stamp);
		expect_totals(usage, runner);
	}
	enter(cpu, runner, lean->stamp);
}

/* From the record before on it is not known who had the CPU, if there is something between them. */
static void check_chain(struct usage *usage, struct usage_cpu *cpu, const struct weir_lean *lean)
{
	bool hole = cpu->has_seq && lean->seq != cpu->next_seq && cpu->slices.of != SLICE_GAP;

	usage->trouble.unseen += !!(lean->flags & WEIR_LEAN_UNSEEN);
	if (hole || lean->flags & WEIR_LEAN_UNSEEN)
		lose_slice(usage, cpu, lean->stamp);
	else if (lean->flags & WEIR_LEAN_AWAY || lean->type == WEIR_T_LEAN_SEED)
		let_go(cpu, cpu->slices.since_ns);
	cpu->has_seq = true;
	cpu->next_seq = lean->seq + 1;
}

/* counted: the same with its counts; NULL: it has none. */
static void lean_record(struct usage *usage, struct usage_cpu *cpu, const struct weir_lean *lean,
			const struct weir_lean_counted *counted)
{
	check_chain(usage, cpu, lean);
	if (!is_in_order(usage, cpu, lean->stamp))
		return;
	if (lean->flags & WEIR_LEAN_RENAMED)
		rename_slice(usage, cpu, lean->stamp);
	if (counted)
		count_slice(usage, cpu, owner_of(cpu), counted);
	lean_leave(usage, cpu, lean);
	lean_enter(usage, cpu, lean);
	usage->switches += lean->type == WEIR_T_LEAN_SWITCH;
}

static bool is_lean(const struct weir_record *record, size_t stride)
{
	return stride >= sizeof(struct weir_lean) &&
	       (record->type == WEIR_T_LEAN_SEED || record->type == WEIR_T_LEAN_SWITCH);
}

void usage__records(struct usage *usage, int id, const struct weir_record *first, size_t stride,
		    size_t count)
{
	struct usage_cpu *cpu = cpu_at(usage, id);
	const char *at = (const char *)first;

	for (; cpu && count; count--, at += stride) {
		const struct weir_lean_counted *record = (const void *)at;

		if (is_lean((const void *)at, stride))
			lean_record(usage, cpu, &record->lean,
				    stride >= sizeof(*record) ? record : NULL);
		else
			usage->trouble.broken++;
	}
}

void usage__gap(struct usage *usage, int id, uint64_t from_ns, uint64_t to_ns, uint64_t lost)
{
	struct usage_cpu *cpu = cpu_at(usage, id);

	usage->trouble.lost += lost;
	if (!cpu) {
		waits__lost(&usage->waits, from_ns, to_ns);
		return;
	}
	lose(usage, cpu, from_ns, to_ns);
}

void usage__watermark(struct usage *usage, int id, uint64_t watermark_ns, bool away)
{
	struct usage_cpu *cpu = cpu_at(usage, id);

	if (!cpu)
		return;
	/* It went with its last switch, to the idle task; there have been none since. */
	if (away && cpu->slices.of != SLICE_GAP)
		let_go(cpu, cpu->slices.since_ns);
	cpu->away = away;
	if (watermark_ns > cpu->watermark_ns)
		cpu->watermark_ns = watermark_ns;
}

static struct account *account_of(void *ctx, uint32_t id)
{
	struct usage *usage = ctx;

	return &usage->cpus[id]->slices.tasks;
}

uint64_t usage__least_watermark(const struct usage *usage)
{
	uint64_t least_ns = UINT64_MAX;

	for (uint32_t i = 0; i < usage->nr_cpus; i++)
		if (usage->cpus[i] && usage->cpus[i]->watermark_ns < least_ns)
			least_ns = usage->cpus[i]->watermark_ns;
	return least_ns == UINT64_MAX ? 0 : least_ns;
}

void usage__polled(struct usage *usage)
{
	waits__settle(&usage->waits, usage__least_watermark(usage), account_of, usage);
}

/* ---- a stream --------------------------------------------------------------------------------- */

/* The last record of this CPU says that another has been switched to. */
static bool is_chain_broken(const struct usage_cpu *cpu, uint32_t prev_tid)
{
	const struct runner *runner = runner_of(cpu);

	if (cpu->slices.of == SLICE_GAP)
		return false;
	return runner ? runner->tid != prev_tid : prev_tid != 0;
}

static void stream_leave(struct usage *usage, struct usage_cpu *cpu, const struct weir_switch *sw,
			 uint64_t stamp_ns)
{
	struct runner *runner = runner_of(cpu);
	struct account *on = runner ? &cpu->slices.tasks : NULL;
	struct leaving how = {
		.stamp_ns = stamp_ns,
		.state = (uint8_t)sw->prev_state,
		.preempted = sw->preempt,
	};

	if (runner)
		end_slice(cpu, runner, stamp_ns);
	else if (sw->prev.tid)
		runner = runners__now(&usage->runners, sw->prev.tid, sw->prev.pid, stamp_ns);
	if (!runner)
		return;
	leave(usage, runner, on, &how);
	if (is_runnable(&how))
		runner->wait_ns = stamp_ns;
}

/* Its wait ends, if it is known when it began. */
static void end_wait(struct usage *usage, struct usage_cpu *cpu, struct runner *runner,
		     uint64_t stamp_ns)
{
	if (runner->wait_ns && runner->wait_ns <= stamp_ns &&
	    !waits__is_hidden(&usage->waits, runner->wait_ns, stamp_ns)) {
		account__wait(&runner->account, &usage->runners.pool, stamp_ns - runner->wait_ns);
		account__wait(&cpu->slices.tasks, &usage->runners.pool, stamp_ns - runner->wait_ns);
	} else {
		runner->account.total.waits_unknown++;
		cpu->slices.tasks.total.waits_unknown++;
	}
	runner->wait_ns = 0;
}

static void stream_enter(struct usage *usage, struct usage_cpu *cpu, const struct weir_switch *sw,
			 uint64_t stamp_ns)
{
	struct runner *runner;

	if (!sw->next.tid) {
		enter(cpu, NULL, stamp_ns);
		return;
	}
	runner = runners__now(&usage->runners, sw->next.tid, sw->next.pid, stamp_ns);
	end_wait(usage, cpu, runner, stamp_ns);
	if (runner->last_cpu >= 0 && runner->last_cpu != (int32_t)cpu->slices.cpu) {
		runner->account.total.migrations++;
		cpu->slices.tasks.total.migrations++;
	}
	enter(cpu, runner, stamp_ns);
}

static void on_switch(struct usage *usage, const struct weir_event *event)
{
	struct usage_cpu *cpu = cpu_at(usage, event->cpu);
	const struct weir_switch *sw = event->data;

	if (!cpu)
		return;
	/* When it was nobody knows: what it says of who runs holds only from the next one on. */
	if (event->mark & WEIR_MARK_AHEAD) {
		usage->trouble.steps_back++;
		lose(usage, cpu, cpu->slices.billed_ns, cpu->slices.billed_ns);
		return;
	}
	if (is_chain_broken(cpu, sw->prev.tid)) {
		usage->trouble.unseen++;
		lose_slice(usage, cpu, event->stamp_ns);
	}
	if (!is_in_order(usage, cpu, event->stamp_ns))
		return;
	stream_leave(usage, cpu, sw, event->stamp_ns);
	stream_enter(usage, cpu, sw, event->stamp_ns);
	usage->switches++;
}

/* One that runs, or waits already, is not woken by this: it was about to sleep. */
static void on_wakeup(struct usage *usage, const struct weir_event *event)
{
	const struct weir_wakeup *wakeup = event->data;
	struct runner *runner;

	if (!wakeup->target.tid || event->mark & WEIR_MARK_AHEAD)
		return;
	runner = runners__now(&usage->runners, wakeup->target.tid, wakeup->target.pid,
			      event->stamp_ns);
	if (runner->cpus ||
	    (runner->wait_ns && !waits__is_hidden(&usage->waits, runner->wait_ns, event->stamp_ns)))
		return;
	runner->wait_ns = event->stamp_ns;
	runner->left = USAGE_WAITING;
}

/* A thread that is not the leader execs: it is the leader from here on. */
static void on_exec(struct usage *usage, const struct weir_event *event)
{
	struct usage_cpu *cpu = cpu_at(usage, event->cpu);
	const struct weir_exec *exec = event->data;
	struct runner *runner = cpu ? runner_of(cpu) : NULL;

	if (!runner || exec->old_tid == exec->id.tid || runner->tid != exec->old_tid ||
	    event->stamp_ns < cpu->slices.since_ns)
		return;
	slices__bill(&cpu->slices, event->stamp_ns);
	rename_slice(usage, cpu, event->stamp_ns);
}

static void on_gap(struct usage *usage, const struct weir_event *event)
{
	const struct weir_gap *gap = event->data;

	usage__gap(usage, event->cpu, gap->from_ns, gap->to_ns,
		   gap->cause == WEIR_LOST_OFFLINE ? 0 : gap->lost);
}

static int if_long_enough(struct usage *usage, const struct weir_event *event, size_t least,
			  void (*fn)(struct usage *usage, const struct weir_event *event))
{
	if (event->len < least) {
		usage->trouble.broken++;
		return -EBADMSG;
	}
	fn(usage, event);
	return 0;
}

int usage__sched(struct usage *usage, const struct weir_event *event)
{
	if (event->kind == WEIR_KIND_GAP)
		return if_long_enough(usage, event, sizeof(struct weir_gap), on_gap);
	if (event->kind != WEIR_KIND_RECORD)
		return 0;
	switch (event->type) {
	case WEIR_T_SWITCH:
		return if_long_enough(usage, event, sizeof(struct weir_switch), on_switch);
	case WEIR_T_WAKEUP:
		return if_long_enough(usage, event, sizeof(struct weir_wakeup), on_wakeup);
	case WEIR_T_EXEC:
		return if_long_enough(usage, event, sizeof(struct weir_exec), on_exec);
	default:
		return 0;
	}
}

void usage__passed(struct usage *usage, uint64_t watermark_ns)
{
	for (uint32_t i = 0; i < usage->nr_cpus; i++)
		if (usage->cpus[i] && usage->cpus[i]->watermark_ns < watermark_ns)
			usage->cpus[i]->watermark_ns = watermark_ns;
}

/* ---- who comes and goes ----------------------------------------------------------------------- */

void usage__seed(struct usage *usage, const struct weir_seed *seed)
{
	if (seed->id.tid)
		runners__get(&usage->runners, seed->id.tid, seed->id.pid, seed->start_ns,
			     seed->start_ns);
}

static void on_fork(struct usage *usage, const struct weir_event *event)
{
	const struct weir_fork *fork = event->data;

	runners__get(&usage->runners, fork->child.tid, fork->child.pid, fork->child_start_ns,
		     event->stamp_ns);
}

/* The last moment at which the task table is sure to know it. */
static void on_exit_event(struct usage *usage, const struct weir_event *event)
{
	const struct weir_exit *exited = event->data;
	struct runner *runner = runners__get(&usage->runners, exited->id.tid, exited->id.pid,
					     exited->start_ns, event->stamp_ns);

	runners__describe(&usage->runners, runner, event->stamp_ns);
	runners__end(&usage->runners, runner, event->stamp_ns);
}

/* Whoever had this name and ended was another thread of the process. */
static void on_image(struct usage *usage, const struct weir_event *event)
{
	const struct weir_exec *exec = event->data;
	struct runner *runner = runners__find(&usage->runners, exec->id.tid, exec->start_ns);

	if (runner)
		runners__revive(&usage->runners, runner, event->stamp_ns);
}

void usage__apply(struct usage *usage, const struct weir_event *event)
{
	if (event->kind != WEIR_KIND_RECORD)
		return;
	if (event->type == WEIR_T_FORK)
		if_long_enough(usage, event, sizeof(struct weir_fork), on_fork);
	else if (event->type == WEIR_T_EXEC)
		if_long_enough(usage, event, sizeof(struct weir_exec), on_image);
	else if (event->type == WEIR_T_EXIT)
		if_long_enough(usage, event, sizeof(struct weir_exit), on_exit_event);
}
