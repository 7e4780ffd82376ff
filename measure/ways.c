/* SPDX-License-Identifier: BSD-2-Clause */
#include "measure/ways.h"
#include "measure/hook.h"
#include "measure/perf_rings.h"

#include <bpf/bpf.h>
#include <err.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STRING_LEN  40
#define RING_BYTES  (1u << 20)
#define BATCH_CALLS 500u /* between two looks at the rings: much less than they hold */
#define RECORD_SIZE (16 + 7 * 8)

enum road { ROAD_NONE, ROAD_WEIR, ROAD_BARE, ROAD_PERF };

struct way {
	const char *name, *what;
	enum road road;
	bool wakes;    /* for each record a reader that sleeps */
	size_t offset; /* of its program in the skeleton */
};

#define PROGRAM(name) offsetof(struct probe, progs.name)

static const struct way ways[WAYS] = {
	{"empty", "an empty program; the others are what goes beyond it", ROAD_NONE, false,
	 PROGRAM(empty)},
	{"stamp", "the stamp alone", ROAD_NONE, false, PROGRAM(stamp)},
	{"ring", "BPF ring buffer, nothing around it", ROAD_BARE, false, PROGRAM(ring)},
	{"record", "weir.bpf.h, constant size", ROAD_WEIR, false, PROGRAM(record)},
	{"record_dynptr", "weir.bpf.h, size at run time", ROAD_WEIR, false, PROGRAM(record_dynptr)},
	{"string_class", "and 40 bytes of string, size classes", ROAD_WEIR, false,
	 PROGRAM(string_class)},
	{"string_dynptr", "and 40 bytes of string, exact size", ROAD_WEIR, false,
	 PROGRAM(string_dynptr)},
	{"perf", "perf buffer, woken by the half", ROAD_PERF, false, PROGRAM(perf_output)},
	{"ring_wakes", "BPF ring buffer, a wake-up each", ROAD_BARE, true, PROGRAM(ring_wakes)},
	{"perf_wakes", "perf buffer, a wake-up each", ROAD_PERF, true, PROGRAM(perf_output)},
};

/* The ring `bare`, emptied by forgetting what it holds. */
struct bare {
	int fd;
	uint64_t *consumer;
	const uint64_t *producer;
};

struct bench {
	struct hook hook;
	uint64_t events; /* out of its stream */
	struct bare bare;
	struct perf_rings perf;
	unsigned round_ms;
};

static int on_event(void *ctx, const struct weir_event *event)
{
	((struct bench *)ctx)->events += event->kind == WEIR_KIND_RECORD;
	return 0;
}

static void open_bare(struct bare *bare, int fd)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *consumer = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	void *producer = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, (off_t)page);

	if (consumer == MAP_FAILED || producer == MAP_FAILED)
		err(1, "mmap");
	*bare = (struct bare){fd, consumer, producer};
}

static uint64_t forget_bare(struct bare *bare)
{
	uint64_t head = __atomic_load_n(bare->producer, __ATOMIC_ACQUIRE);
	uint64_t bytes = head - *bare->consumer;

	__atomic_store_n(bare->consumer, head, __ATOMIC_RELEASE);
	return bytes;
}

static void put_string(int map_fd)
{
	struct {
		uint64_t len;
		char rest[7 * 8 + 4096];
	} scratch = {.len = STRING_LEN};
	int cpus = libbpf_num_possible_cpus();
	uint32_t zero = 0;
	char *all = calloc((size_t)cpus, sizeof(scratch));

	if (cpus < 0 || !all)
		errx(1, "no memory");
	memset(scratch.rest + 7 * 8, 'x', STRING_LEN);
	for (int cpu = 0; cpu < cpus; cpu++)
		memcpy(all + (size_t)cpu * sizeof(scratch), &scratch, sizeof(scratch));
	if (bpf_map_update_elem(map_fd, &zero, all, BPF_ANY))
		err(1, "the scratch map");
	free(all);
}

/* A reader that sleeps, is woken, and sleeps again. */
struct sleeper {
	pthread_t thread;
	int epoll_fd;
	bool stop;
};

static void *sleep_on(void *ctx)
{
	struct sleeper *sleeper = ctx;
	struct epoll_event event;

	while (!__atomic_load_n(&sleeper->stop, __ATOMIC_RELAXED))
		epoll_wait(sleeper->epoll_fd, &event, 1, 10);
	return NULL;
}

static void start_sleeper(struct sleeper *sleeper, const struct bench *bench, enum road road)
{
	/* Edges: the buffers are never empty for long. */
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};

	*sleeper = (struct sleeper){.epoll_fd = epoll_create1(EPOLL_CLOEXEC)};
	if (sleeper->epoll_fd < 0)
		err(1, "epoll");
	if (road == ROAD_BARE)
		epoll_ctl(sleeper->epoll_fd, EPOLL_CTL_ADD, bench->bare.fd, &event);
	for (int cpu = 0; road == ROAD_PERF && cpu < bench->perf.cpus; cpu++)
		if (bench->perf.ring[cpu].page)
			epoll_ctl(sleeper->epoll_fd, EPOLL_CTL_ADD, bench->perf.ring[cpu].fd,
				  &event);
	errno = pthread_create(&sleeper->thread, NULL, sleep_on, sleeper);
	if (errno)
		err(1, "a thread");
}

static void stop_sleeper(struct sleeper *sleeper)
{
	__atomic_store_n(&sleeper->stop, true, __ATOMIC_RELAXED);
	pthread_join(sleeper->thread, NULL);
	close(sleeper->epoll_fd);
}

/* What has come by this road since the last look, in records. */
static uint64_t take(struct bench *bench, enum road road)
{
	uint64_t before = bench->events;

	switch (road) {
	case ROAD_WEIR:
		if (weir_stream__poll(bench->hook.stream, 0) < 0)
			errx(1, "the stream fails");
		return bench->events - before;
	case ROAD_BARE:
		return forget_bare(&bench->bare) / (8 + RECORD_SIZE);
	case ROAD_PERF:
		/* Header, size of the raw data, padding. */
		return perf_rings__forget(&bench->perf) / (8 + 4 + RECORD_SIZE + 4);
	case ROAD_NONE:
		break;
	}
	return 0;
}

struct count {
	uint64_t calls, records;
	uint64_t cpu_ns; /* of the calls alone */
	uint64_t run_ns, runs;
};

static void add_runs(int prog_fd, struct count *count, int sign)
{
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);

	if (bpf_obj_get_info_by_fd(prog_fd, &info, &len))
		err(1, "what the kernel knows of a program");
	count->run_ns += (uint64_t)sign * info.run_time_ns;
	count->runs += (uint64_t)sign * info.run_cnt;
}

static void call_for(struct bench *bench, enum road road, unsigned ms, struct count *count)
{
	uint64_t end_ns = sample__now_ns() + ms * 1000000ull;

	do {
		uint64_t begin_ns = sample__cpu_ns();

		for (unsigned i = 0; i < BATCH_CALLS; i++)
			syscall(SYS_getppid);
		count->cpu_ns += sample__cpu_ns() - begin_ns;
		count->calls += BATCH_CALLS;
		count->records += take(bench, road);
	} while (sample__now_ns() < end_ns);
}

static void check(const struct way *way, const struct count *count)
{
	if (way->road != ROAD_NONE && count->records < count->calls)
		errx(1, "%s: %lu calls gave %lu records", way->name, count->calls, count->records);
}

static struct count run_way(struct bench *bench, const struct way *way)
{
	struct bpf_program *program =
		*(struct bpf_program **)((char *)bench->hook.skel + way->offset);
	struct bpf_link *link;
	struct sleeper sleeper;
	struct count warm = {0}, count = {0};

	if (way->road == ROAD_PERF)
		perf_rings__open(&bench->perf, bpf_map__fd(bench->hook.skel->maps.perf_rings),
				 way->wakes);
	if (way->wakes)
		start_sleeper(&sleeper, bench, way->road);
	link = bpf_program__attach(program);
	if (!link)
		err(1, "%s cannot be attached", way->name);
	call_for(bench, way->road, 1 + bench->round_ms / 10, &warm);
	add_runs(bpf_program__fd(program), &count, -1);
	call_for(bench, way->road, bench->round_ms, &count);
	add_runs(bpf_program__fd(program), &count, 1);
	bpf_link__destroy(link);
	if (way->wakes)
		stop_sleeper(&sleeper);
	if (way->road == ROAD_PERF)
		perf_rings__close(&bench->perf);
	check(way, &count);
	return count;
}

static void run_round(struct bench *bench, struct way_cost cost[WAYS])
{
	double empty_run_ns = 0, empty_call_ns = 0;

	for (int i = 0; i < WAYS; i++) {
		struct count count = run_way(bench, &ways[i]);
		double run_ns = (double)count.run_ns, sent = (double)count.calls;
		double call_ns = (double)count.cpu_ns / (double)count.calls;

		/* The reader's own calls between the batches are this thread's, and sent too. */
		if (ways[i].road != ROAD_NONE)
			sent = (double)count.records;
		if (!i) {
			empty_run_ns = run_ns / (double)count.runs;
			empty_call_ns = call_ns;
			sample__add(&cost[i].run_ns, empty_run_ns);
			sample__add(&cost[i].call_ns, call_ns);
			continue;
		}
		/* What ran for other threads cost what the empty program does. */
		sample__add(&cost[i].run_ns, (run_ns - (double)count.runs * empty_run_ns) / sent);
		sample__add(&cost[i].call_ns, call_ns - empty_call_ns);
	}
}

void ways__measure(struct way_cost cost[WAYS], int cpu, unsigned rounds, unsigned round_ms)
{
	struct bench bench = {.round_ms = round_ms};
	int stats_fd;

	sample__pin(cpu);
	hook__open(&bench.hook, (int)syscall(SYS_gettid), RING_BYTES, on_event, &bench);
	put_string(bpf_map__fd(bench.hook.skel->maps.scratch));
	open_bare(&bench.bare, bpf_map__fd(bench.hook.skel->maps.bare));
	for (int i = 0; i < WAYS; i++)
		cost[i] = (struct way_cost){.name = ways[i].name, .what = ways[i].what};
	/* kernel.bpf_stats_enabled, for as long as this is open. */
	stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	if (stats_fd < 0)
		err(1, "bpf_stats");
	for (unsigned i = 0; i < rounds; i++)
		run_round(&bench, cost);
	close(stats_fd);
	hook__close(&bench.hook);
}
