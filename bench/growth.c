/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * growth - how cost grows with what there is more of: a table each, a line a point, for plots.
 *
 *	growth rates	records a second, 1,000 to 5 million: weir beside one BPF ring buffer and libbpf
 *	growth sizes	bytes of a record, 32 to 4,096: where it is sent, and where it is read
 *	growth tasks	processes, 100 to 100,000: the table of who was who
 *
 * How cost grows with the number of rings, `order` tells.
 */
#include "measure/flood.h"
#include "measure/sample.h"
#include "state/tasks.h"

#include <bpf/bpf.h>
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECONDS 0.5

/* ---- rates ------------------------------------------------------------------------------------ */

#define RATE_BYTES 64

static void print_rates(enum flood_reader reader, const char *name)
{
	static const uint64_t rates[] = {1000,	 3000,	  10000,   30000,   100000,
					 300000, 1000000, 2000000, 3000000, 5000000};
	struct flood flood;

	flood__open(&flood, reader);
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		const struct flood_shape shape = {
			.rate = rates[i],
			.bytes = RATE_BYTES,
			.cpus = 1,
			/* A system call takes longer than there is time. */
			.times = rates[i] > 500000 ? 8 : 1,
		};
		struct flood_result result = flood__run(&flood, &shape, SECONDS);

		printf("%s\t%" PRIu64 "\t%.0f\t%.1f\t%.3f\t%.4f\n", name, rates[i], result.produced,
		       result.cpu_ns, result.cpu_percent,
		       result.lost ? (double)result.lost / (result.produced * SECONDS) : 0);
		fflush(stdout);
	}
	flood__close(&flood);
}

static void rates(void)
{
	printf("reader\trate\tproduced\treader_ns\treader_percent\tlost_part\n");
	print_rates(FLOOD_WEIR, "weir");
	print_rates(FLOOD_LIBBPF, "libbpf");
}

/* ---- sizes ------------------------------------------------------------------------------------ */

#define SIZE_RATE   50000
#define SIZE_ROUNDS 5
#define HEAD_BYTES  16 /* of the record's head, which is sent with each payload */

struct runs {
	uint64_t ns, count;
};

static struct runs runs_of(const struct flood *flood)
{
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);
	struct bpf_program *program = flood->reader == FLOOD_WEIR
					      ? flood->hook.skel->progs.flood
					      : flood->hook.skel->progs.flood_bare;

	if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &len))
		err(1, "what the kernel knows of a program");
	return (struct runs){info.run_time_ns, info.run_cnt};
}

/* A run of the program for somebody else's call, which is sent nothing. */
static double idle_run_ns(const struct flood *flood)
{
	struct runs before = runs_of(flood), after;
	uint64_t end_ns = sample__now_ns() + 50000000;

	while (sample__now_ns() < end_ns)
		for (int i = 0; i < 100; i++)
			getuid();
	after = runs_of(flood);
	return (double)(after.ns - before.ns) / (double)(after.count - before.count);
}

/* ns of the program for each record, beyond what it takes when it is none of its business. */
static double send_ns(struct flood *flood, const struct flood_shape *shape, struct sample *read_ns)
{
	double idle_ns = idle_run_ns(flood), sent;
	struct runs before = runs_of(flood), after;
	struct flood_result result = flood__run(flood, shape, SECONDS / SIZE_ROUNDS);

	after = runs_of(flood);
	sent = (double)result.calls;
	sample__add(read_ns, result.cpu_ns);
	return ((double)(after.ns - before.ns) -
		((double)(after.count - before.count) - sent) * idle_ns) /
	       sent;
}

static void print_sizes(enum flood_reader reader, const char *name)
{
	struct flood flood;

	flood__open(&flood, reader);
	for (unsigned bytes = 32; bytes <= 4096; bytes *= 2) {
		const struct flood_shape shape = {
			.rate = SIZE_RATE, .bytes = bytes - HEAD_BYTES, .cpus = 1, .times = 1};
		struct sample sent = {0}, read = {0};

		for (int i = 0; i < SIZE_ROUNDS; i++)
			sample__add(&sent, send_ns(&flood, &shape, &read));
		printf("%s\t%u\t%.1f\t%.1f\n", name, bytes, sample__median(&sent),
		       sample__median(&read));
		fflush(stdout);
		sample__free(&sent);
		sample__free(&read);
	}
	flood__close(&flood);
}

static void sizes(void)
{
	int stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);

	if (stats_fd < 0)
		err(1, "bpf_stats");
	printf("reader\tbytes\tsend_ns\tread_ns\n");
	print_sizes(FLOOD_WEIR, "weir");
	print_sizes(FLOOD_LIBBPF, "libbpf");
	close(stats_fd);
}

/* ---- tasks ------------------------------------------------------------------------------------ */

#define LOOKUPS	   1000000u
#define LIVES	   200000u /* a fork, and the exit of it */
#define FIRST_TID  1000u
#define SEED_NS	   1000000000ull
#define STEP_NS	   10000ull
#define RETIRE_ALL 1024u /* lives between two watermarks */

static void seed_tasks(struct tasks *tasks, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct weir_seed seed = {
			.id = {FIRST_TID + i, FIRST_TID + i},
			.start_ns = SEED_NS + i,
			.ppid = 1,
		};

		snprintf(seed.comm, sizeof(seed.comm), "task%u", i % 100);
		if (tasks__seed(tasks, &seed, "/usr/bin/task", "/system.slice/task.service"))
			errx(1, "no memory for %u tasks", count);
	}
}

/* Any of them, one after another in no order. */
static uint32_t any_tid(uint32_t i, uint32_t count)
{
	return FIRST_TID + (uint32_t)((uint64_t)(i * 2654435761u) * count >> 32);
}

static double find_ns(struct tasks *tasks, uint32_t count)
{
	uint64_t begin_ns = sample__cpu_ns();
	struct task_view view;

	for (uint32_t i = 0; i < LOOKUPS; i++)
		if (!tasks__find(tasks, any_tid(i, count), 2 * SEED_NS, &view))
			errx(1, "a task is not there");
	return (double)(sample__cpu_ns() - begin_ns) / LOOKUPS;
}

static void apply(struct tasks *tasks, uint16_t type, uint64_t stamp_ns, const void *data,
		  uint32_t len)
{
	const struct weir_event event = {
		.stamp_ns = stamp_ns, .data = data, .len = len, .type = type};

	if (tasks__apply(tasks, &event))
		errx(1, "an event is refused");
}

/* The numbers are used again and again, as the kernel does it. */
static double life_ns(struct tasks *tasks, uint32_t count)
{
	uint64_t stamp_ns = 3 * SEED_NS, begin_ns = sample__cpu_ns();

	for (uint32_t i = 0; i < LIVES; i++) {
		const struct weir_task_id id = {FIRST_TID + count + i % 30000,
						FIRST_TID + count + i % 30000};
		struct weir_fork born = {.child = id, .comm = "sh"};
		struct weir_exit dead = {.id = id, .comm = "sh"};

		born.parent.pid = born.parent.tid = any_tid(i, count);
		born.child_start_ns = dead.start_ns = stamp_ns;
		apply(tasks, WEIR_T_FORK, stamp_ns += STEP_NS, &born, sizeof(born));
		apply(tasks, WEIR_T_EXIT, stamp_ns += STEP_NS, &dead, sizeof(dead));
		if (i % RETIRE_ALL == 0)
			tasks__retire(tasks, stamp_ns);
	}
	return (double)(sample__cpu_ns() - begin_ns) / LIVES;
}

static void tasks(void)
{
	static const uint32_t counts[] = {100, 300, 1000, 3000, 10000, 30000, 100000};

	printf("tasks\tfind_ns\tlife_ns\tbytes\tseed_ns\n");
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct tasks *table = tasks__new(0);
		uint64_t begin_ns = sample__cpu_ns(), seed_ns;
		struct tasks_stats stats;
		double found_ns;

		if (!table)
			err(1, "the table");
		seed_tasks(table, counts[i]);
		seed_ns = sample__cpu_ns() - begin_ns;
		tasks__stats(table, &stats);
		found_ns = find_ns(table, counts[i]);
		printf("%u\t%.1f\t%.1f\t%.0f\t%.0f\n", counts[i], found_ns,
		       life_ns(table, counts[i]), (double)stats.bytes / counts[i],
		       (double)seed_ns / counts[i]);
		fflush(stdout);
		tasks__free(table);
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*print)(void);
	} tables[] = {{"rates", rates}, {"sizes", sizes}, {"tasks", tasks}};

	for (size_t i = 0; argc == 2 && i < sizeof(tables) / sizeof(tables[0]); i++) {
		if (!strcmp(argv[1], tables[i].name)) {
			tables[i].print();
			return 0;
		}
	}
	errx(2, "usage: growth rates|sizes|tasks");
}
