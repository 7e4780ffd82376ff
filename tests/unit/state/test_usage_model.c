// SPDX-License-Identifier: BSD-2-Clause
/*
 * The accounts against an oracle that knows one thing: what was told of a CPU, as a list. For each
 * nanosecond it looks into that list for who had the CPU then, and counts. Random schedules on a few
 * CPUs, with records lost (told as gaps, or by their numbers alone), hidden by the kernel, and late;
 * with execs by threads that are no leaders, CPUs that go and come back, and CPUs read in any order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "tests/model/rng.h"
#include "tests/unit/state/usage_feed.h"

#define CPUS	 4
#define PROCS	 6
#define TASKS	 (3 * PROCS) /* a leader and two threads each */
#define STEPS	 1200
#define RECORDS	 (STEPS + 8)
#define IDLE	 0 /* a process, for the oracle: PROCS are 1 to PROCS */
#define NOBODY	 (PROCS + 1)
#define FIRST_NS 100
#define PID(p)	 (100 * (p))

struct faults {
	uint32_t lost, told, hidden, late, renamed, away; /* per mille */
};

/* A fact: from stamp_ns on, that process has the CPU, until the next fact. */
struct fact {
	uint64_t stamp_ns;
	uint32_t process;
};

struct sim_task {
	uint32_t process, tid;
	uint64_t start_ns, left_ns;
	uint64_t waited_ns, moves;
	int last_cpu, on; /* -1 */
	bool dead;
};

struct sim_record {
	struct weir_lean lean;
	uint32_t process;
	bool lost, told; /* told: as a gap */
};

struct sim_cpu {
	struct sim_record records[RECORDS];
	unsigned int made, fed;
	struct fact facts[2 * RECORDS];
	unsigned int nr_facts;
	int runs;      /* a task; -1: idle */
	int told_runs; /* by the last record that the probe saw */
	uint32_t seq;
	bool away, in_gap;
};

static struct sim {
	struct rng rng;
	struct faults faults;
	struct usage *usage;
	struct sim_task tasks[TASKS];
	struct sim_cpu cpus[CPUS];
	uint64_t now_ns;
} sim;

/* ---- the machine ------------------------------------------------------------------------------ */

static void make_tasks(void)
{
	for (int i = 0; i < TASKS; i++) {
		uint32_t process = 1 + (uint32_t)i / 3;

		sim.tasks[i] = (struct sim_task){
			.process = process,
			.tid = PID(process) + (uint32_t)i % 3,
			.start_ns = FIRST_NS + 1 + (uint64_t)i,
			.last_cpu = -1,
			.on = -1,
		};
	}
}

static int pick_task(void)
{
	int first = (int)rng__below(&sim.rng, TASKS);

	if (rng__chance(&sim.rng, 300))
		return -1;
	for (int i = 0; i < TASKS; i++) {
		int task = (first + i) % TASKS;

		if (sim.tasks[task].on < 0 && !sim.tasks[task].dead)
			return task;
	}
	return -1;
}

/* A thread that takes its leader's place while it runs. The leader is off every CPU, for good. */
static bool may_rename(int task)
{
	const struct sim_task *leader = task < 0 ? NULL : &sim.tasks[task / 3 * 3];

	return leader && task % 3 && leader->on < 0 && !leader->dead &&
	       sim.tasks[task].tid != leader->tid;
}

static void put_totals(struct sim_record *record, const struct sim_task *task)
{
	record->lean.prev_totals = task->moves << WEIR_LEAN_DELAY_BITS | task->waited_ns;
}

static void task_leaves(struct sim_record *record, int cpu, int task)
{
	struct sim_task *t = task < 0 ? NULL : &sim.tasks[task];

	if (!t)
		return;
	if (may_rename(task) && rng__chance(&sim.rng, sim.faults.renamed)) {
		sim.tasks[task / 3 * 3].dead = true;
		t->tid = PID(t->process);
		t->start_ns = sim.tasks[task / 3 * 3].start_ns;
		record->lean.flags |= WEIR_LEAN_RENAMED;
	}
	put_totals(record, t);
	t->on = -1;
	t->left_ns = sim.now_ns;
	t->last_cpu = cpu;
}

static void task_comes(struct sim_record *record, int cpu, int task)
{
	struct sim_task *t = task < 0 ? NULL : &sim.tasks[task];

	sim.cpus[cpu].runs = task;
	if (!t)
		return;
	t->on = cpu;
	t->moves += t->last_cpu >= 0 && t->last_cpu != cpu;
	t->waited_ns += rng__below(&sim.rng, sim.now_ns - t->left_ns + 1);
	record->lean.next_tid = t->tid;
	record->lean.next_pid = PID(t->process);
	record->lean.next_start_ns = t->start_ns;
	record->process = t->process;
}

/* The kernel has hidden the switch: no number, and the next that is seen says so. */
static bool is_hidden(const struct sim_cpu *cpu)
{
	return cpu->made && !cpu->away && rng__chance(&sim.rng, sim.faults.hidden);
}

static void make_switch(int id)
{
	struct sim_cpu *cpu = &sim.cpus[id];
	struct sim_record record = {.lean = {.stamp = sim.now_ns, .type = WEIR_T_LEAN_SWITCH}};
	int prev = cpu->runs;

	if (!cpu->made)
		record.lean.type = WEIR_T_LEAN_SEED;
	task_leaves(&record, id, prev);
	task_comes(&record, id, pick_task());
	if (is_hidden(cpu) && !(record.lean.flags & WEIR_LEAN_RENAMED))
		return;
	if (cpu->told_runs != prev) {
		record.lean.flags |= WEIR_LEAN_UNSEEN;
		record.lean.flags &= (uint16_t)~WEIR_LEAN_RENAMED;
	}
	cpu->told_runs = cpu->runs;
	if (cpu->away)
		record.lean.flags |= WEIR_LEAN_AWAY;
	cpu->away = false;
	record.lean.seq = cpu->seq++;
	record.lost = cpu->made && !(record.lean.flags & (WEIR_LEAN_RENAMED | WEIR_LEAN_AWAY)) &&
		      rng__chance(&sim.rng, sim.faults.lost);
	record.told = rng__chance(&sim.rng, sim.faults.told);
	cpu->records[cpu->made++] = record;
}

/* ---- what is told ----------------------------------------------------------------------------- */

static void add_fact(struct sim_cpu *cpu, uint64_t stamp_ns, uint32_t process)
{
	cpu->facts[cpu->nr_facts++] = (struct fact){stamp_ns, process};
}

/* Of the last fact, only what is up to there is true. */
static void doubt(struct sim_cpu *cpu, uint64_t from_ns)
{
	struct fact *last = &cpu->facts[cpu->nr_facts - 1];

	if (last->process == NOBODY)
		return;
	add_fact(cpu, from_ns > last->stamp_ns ? from_ns : last->stamp_ns, NOBODY);
}

static void feed_lost(int id, const struct sim_record *record)
{
	struct sim_cpu *cpu = &sim.cpus[id];
	uint64_t last_ns = cpu->facts[cpu->nr_facts - 1].stamp_ns;
	uint64_t from_ns = rng__range(&sim.rng, last_ns, record->lean.stamp);

	if (!record->told)
		return;
	usage__gap(sim.usage, id, from_ns, record->lean.stamp, 1);
	doubt(cpu, from_ns);
	cpu->in_gap = true;
}

static void feed_record(int id, const struct sim_record *record)
{
	struct sim_cpu *cpu = &sim.cpus[id];
	const struct weir_lean *lean = &record->lean;
	bool hole = cpu->fed && cpu->records[cpu->fed - 1].lost && !cpu->in_gap;

	if (hole || lean->flags & (WEIR_LEAN_UNSEEN | WEIR_LEAN_AWAY))
		doubt(cpu, 0);
	usage__records(sim.usage, id, (const struct weir_record *)(const void *)lean, sizeof(*lean),
		       1);
	add_fact(cpu, lean->stamp, lean->next_tid ? record->process : IDLE);
	cpu->in_gap = false;
}

static void feed_cpu(int id, bool hold_some_back)
{
	struct sim_cpu *cpu = &sim.cpus[id];
	unsigned int until = cpu->made;

	if (hold_some_back)
		until -= (unsigned int)rng__below(&sim.rng, until - cpu->fed + 1);
	for (; cpu->fed < until; cpu->fed++) {
		const struct sim_record *record = &cpu->records[cpu->fed];

		if (record->lost)
			feed_lost(id, record);
		else
			feed_record(id, record);
	}
}

static void poll_all(void)
{
	int first = (int)rng__below(&sim.rng, CPUS);

	for (int i = 0; i < CPUS; i++) {
		int id = (first + i) % CPUS;
		struct sim_cpu *cpu = &sim.cpus[id];

		feed_cpu(id, rng__chance(&sim.rng, sim.faults.late));
		if (cpu->away && cpu->fed == cpu->made)
			doubt(cpu, 0);
		usage__watermark(sim.usage, id, sim.now_ns, cpu->away && cpu->fed == cpu->made);
	}
	usage__polled(sim.usage);
}

/* ---- the oracle ------------------------------------------------------------------------------- */

/* Each nanosecond from the beginning to that one, counted for whoever had the CPU then. */
static void count_each(const struct sim_cpu *cpu, uint64_t to_ns, int64_t had[PROCS + 2])
{
	unsigned int fact = 0;

	for (uint64_t ns = FIRST_NS; ns < to_ns; ns++) {
		while (fact + 1 < cpu->nr_facts && cpu->facts[fact + 1].stamp_ns <= ns)
			fact++;
		had[cpu->facts[fact].process]++;
	}
}

static int64_t total_of_process(const struct usage_snapshot *snapshot, uint32_t process)
{
	int64_t total_ns = 0;

	for (size_t i = 0; i < snapshot->nr_rows; i++)
		if (snapshot->rows[i].pid == PID(process))
			total_ns += snapshot->rows[i].total.time_ns;
	return total_ns;
}

static void check(const struct usage_snapshot *snapshot)
{
	int64_t had[PROCS + 2] = {0}, on_cpu[PROCS + 2];

	assert_non_null(snapshot);
	assert_int_equal(snapshot->cpu_difference_ns, 0);
	assert_int_equal(snapshot->rows_difference_ns, 0);
	assert_int_equal(snapshot->interval_difference_ns, 0);
	assert_int_equal(snapshot->nr_cpus, CPUS);
	for (uint32_t id = 0; id < CPUS; id++) {
		memset(on_cpu, 0, sizeof(on_cpu));
		count_each(&sim.cpus[id], snapshot->to_ns, on_cpu);
		assert_int_equal(feed__row(snapshot, USAGE_IDLE, id, 0)->total.time_ns,
				 on_cpu[IDLE]);
		assert_int_equal(feed__row(snapshot, USAGE_GAP, id, 0)->total.time_ns,
				 on_cpu[NOBODY]);
		for (uint32_t p = 0; p < PROCS + 2; p++)
			had[p] += on_cpu[p];
	}
	for (uint32_t process = 1; process <= PROCS; process++)
		assert_int_equal(total_of_process(snapshot, process), had[process]);
}

/* Totals only grow: of all that this task's switches away have told, the last are the largest. */
static void add_told(const struct sim_task *task, uint64_t *waited_ns, uint64_t *moves,
		     uint64_t *waits)
{
	uint64_t most_ns = 0, most_moves = 0;

	for (int id = 0; id < CPUS; id++) {
		for (unsigned int i = 1; i < sim.cpus[id].made; i++) {
			const struct sim_record *in = &sim.cpus[id].records[i - 1];
			uint64_t totals = sim.cpus[id].records[i].lean.prev_totals;

			if (in->lean.next_tid != task->tid)
				continue;
			(*waits)++;
			if (weir_lean__delay_ns(totals, 0) > most_ns)
				most_ns = weir_lean__delay_ns(totals, 0);
			if (weir_lean__migrations(totals, 0) > most_moves)
				most_moves = weir_lean__migrations(totals, 0);
		}
	}
	*waited_ns += most_ns;
	*moves += most_moves;
}

/* Nothing was lost, late or renamed: each switch away has told one wait. */
static void check_waits(const struct usage_snapshot *snapshot)
{
	uint64_t waited_ns = 0, moves = 0, waits = 0;

	for (int i = 0; i < TASKS; i++)
		add_told(&sim.tasks[i], &waited_ns, &moves, &waits);
	for (size_t i = 0; i < snapshot->nr_rows; i++) {
		const struct usage_row *row = &snapshot->rows[i];

		assert_int_equal(row->total.waits_unknown, 0);
		waited_ns -= row->total.wait_ns;
		moves -= row->total.migrations;
		waits -= row->delays ? row->delays->count : 0;
	}
	assert_int_equal(waited_ns, 0);
	assert_int_equal(moves, 0);
	assert_int_equal(waits, 0);
}

/* ---- runs ------------------------------------------------------------------------------------- */

static void begin(uint64_t seed, const struct faults *faults)
{
	memset(&sim, 0, sizeof(sim));
	sim.rng.state = seed;
	sim.faults = *faults;
	sim.now_ns = FIRST_NS;
	sim.usage = usage__new(NULL, 0);
	assert_non_null(sim.usage);
	usage__begin(sim.usage, FIRST_NS);
	make_tasks();
	for (int id = 0; id < CPUS; id++) {
		sim.cpus[id].runs = sim.cpus[id].told_runs = -1;
		add_fact(&sim.cpus[id], FIRST_NS, NOBODY);
		make_switch(id);
	}
	sim.now_ns += TASKS + 2;
	poll_all();
}

static void step(void)
{
	int id = (int)rng__below(&sim.rng, CPUS);

	sim.now_ns += 1 + rng__below(&sim.rng, 6);
	if (!sim.cpus[id].away)
		make_switch(id);
	/* Behind all that it has done, idle. */
	if (sim.cpus[id].runs < 0 && sim.cpus[id].told_runs < 0 &&
	    rng__chance(&sim.rng, sim.faults.away))
		sim.cpus[id].away = true;
	else if (sim.cpus[id].away && rng__chance(&sim.rng, 300))
		make_switch(id);
}

static void run(uint64_t seed, const struct faults *faults, bool in_one)
{
	const struct usage_snapshot *snapshot;

	begin(seed, faults);
	for (int i = 0; i < STEPS; i++) {
		step();
		if (rng__chance(&sim.rng, 60))
			poll_all();
		if (!in_one && rng__chance(&sim.rng, 15))
			check(usage__take(sim.usage));
	}
	sim.faults.late = 0;
	poll_all();
	snapshot = usage__take(sim.usage);
	check(snapshot);
	if (in_one)
		check_waits(snapshot);
	usage__free(sim.usage);
}

static void runs(const struct faults *faults, bool in_one)
{
	for (uint64_t seed = 1; seed <= 25; seed++) {
		/* What failed is told, and runs again with this seed alone. */
		print_message("seed %llu\n", (unsigned long long)seed);
		run(seed, faults, in_one);
	}
}

static void test_nothing_amiss(void **state)
{
	(void)state;
	runs(&(struct faults){0}, false);
}

static void test_waits(void **state)
{
	(void)state;
	runs(&(struct faults){0}, true);
}

static void test_lost(void **state)
{
	(void)state;
	runs(&(struct faults){.lost = 150, .told = 500}, false);
}

static void test_hidden(void **state)
{
	(void)state;
	runs(&(struct faults){.hidden = 100}, false);
}

static void test_late(void **state)
{
	(void)state;
	runs(&(struct faults){.late = 400}, false);
}

static void test_renamed(void **state)
{
	(void)state;
	runs(&(struct faults){.renamed = 30}, false);
}

static void test_away(void **state)
{
	(void)state;
	runs(&(struct faults){.away = 100}, false);
}

static void test_all(void **state)
{
	(void)state;
	runs(&(struct faults){.lost = 80,
			      .told = 500,
			      .hidden = 50,
			      .late = 200,
			      .renamed = 20,
			      .away = 40},
	     false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_amiss), cmocka_unit_test(test_waits),
		cmocka_unit_test(test_lost),	      cmocka_unit_test(test_hidden),
		cmocka_unit_test(test_late),	      cmocka_unit_test(test_renamed),
		cmocka_unit_test(test_away),	      cmocka_unit_test(test_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
