// SPDX-License-Identifier: BSD-2-Clause
/*
 * usage - what it costs to add up a switch: ns each, from the lean probe's record to the accounts, a
 * snapshot every second of them included.
 *
 *	usage [-r ROUNDS]
 *
 * Two CPUs that are read one after the other, as the probe's rings are; threads that stay on their CPU,
 * or move at every second switch.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "state/usage.h"

#define CPUS	     2
#define RECORDS	     4096 /* of a CPU, between two polls */
#define POLLS_A_TAKE 20	  /* of 50 ms */
#define THREADS_MAX  4096
#define TARGET_NS    50.0
#define TARGET_UP_TO 500 /* threads: with more it is memory that is slow */

struct thread {
	uint64_t waited_ns, moves;
	int cpu;
};

struct machine {
	struct thread threads[THREADS_MAX];
	struct weir_lean records[CPUS][RECORDS];
	uint32_t seq[CPUS], runs[CPUS];
	uint64_t now_ns;
	uint64_t random;
	uint32_t nr_threads;
	bool move;
};

static uint64_t own_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static uint32_t any(struct machine *m, uint32_t limit)
{
	m->random = m->random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(m->random >> 33) % limit;
}

/* 0: idle. Those of one CPU are every second one. */
static uint32_t pick(struct machine *m, uint32_t cpu)
{
	uint32_t thread = any(m, m->nr_threads);

	if (any(m, 2))
		return 0;
	return 1 + (m->move ? thread : thread / CPUS * CPUS + cpu);
}

static void make_record(struct machine *m, uint32_t cpu, struct weir_lean *record)
{
	const struct thread *prev = &m->threads[m->runs[cpu]];
	uint32_t next = pick(m, cpu);

	m->now_ns += 200 + any(m, 200);
	*record = (struct weir_lean){
		.stamp = m->now_ns,
		.type = WEIR_T_LEAN_SWITCH,
		.flags = 1 << WEIR_LEAN_STATE_SHIFT,
		.seq = m->seq[cpu]++,
		.next_start_ns = next ? 1 : 0,
		.next_pid = next,
		.next_tid = next,
		.prev_totals = prev->moves << WEIR_LEAN_DELAY_BITS | prev->waited_ns,
	};
	m->threads[next].waited_ns += next ? any(m, 5000) : 0;
	m->threads[next].moves += next && m->threads[next].cpu != (int)cpu;
	m->threads[next].cpu = (int)cpu;
	m->runs[cpu] = next;
}

static void make_records(struct machine *m)
{
	for (uint32_t cpu = 0; cpu < CPUS; cpu++)
		for (int i = 0; i < RECORDS; i++)
			make_record(m, cpu, &m->records[cpu][i]);
}

static bool feed(struct usage *usage, const struct machine *m, bool take)
{
	const struct usage_snapshot *snapshot;

	for (int cpu = 0; cpu < CPUS; cpu++) {
		usage__records(usage, cpu, (const void *)m->records[cpu], sizeof(m->records[0][0]),
			       RECORDS);
		usage__watermark(usage, cpu, m->now_ns, false);
	}
	usage__polled(usage);
	if (!take)
		return true;
	snapshot = usage__take(usage);
	return snapshot && !snapshot->cpu_difference_ns && !snapshot->rows_difference_ns;
}

/* ns a switch; below 0: the accounts don't add up. */
static double measure(uint32_t threads, bool move, int rounds)
{
	struct machine *m = calloc(1, sizeof(*m));
	struct usage *usage = usage__new(NULL, 0);
	uint64_t spent_ns = 0;
	bool right = m && usage;

	if (right) {
		*m = (struct machine){.now_ns = 100, .nr_threads = threads, .move = move};
		usage__begin(usage, 1);
	}
	for (int i = 0; right && i < rounds; i++) {
		uint64_t before;

		make_records(m);
		before = own_ns();
		right = feed(usage, m, i % POLLS_A_TAKE == POLLS_A_TAKE - 1);
		spent_ns += own_ns() - before;
	}
	usage__free(usage);
	free(m);
	return right ? (double)spent_ns / ((double)CPUS * RECORDS * rounds) : -1;
}

int main(int argc, char **argv)
{
	static const uint32_t threads[] = {2, 50, 500, 4000};
	int rounds = argc == 3 && !strcmp(argv[1], "-r") ? atoi(argv[2]) : 200;
	bool right = true;

	printf("%-10s %10s %10s\n", "threads", "stay", "move");
	for (unsigned i = 0; i < sizeof(threads) / sizeof(threads[0]); i++) {
		double stay = measure(threads[i], false, rounds);
		double move = measure(threads[i], true, rounds);

		printf("%-10u %10.1f %10.1f%s\n", threads[i], stay, move,
		       threads[i] <= TARGET_UP_TO && (stay > TARGET_NS || move > TARGET_NS)
			       ? "  MISSED: at most 50"
			       : "");
		right = right && stay > 0 && move > 0;
	}
	if (!right)
		puts("WRONG: the accounts do not add up");
	return right ? 0 : 1;
}
