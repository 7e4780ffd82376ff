/* SPDX-License-Identifier: BSD-2-Clause */
#include "measure/switches.h"
#include "probes/lean.h"

#include <weir/stream.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <err.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lean_ways.skel.h"

#define RING_BYTES (1u << 22)
#define BATCH	   8192u /* to and fro, between two looks at the rings */

static const struct switch_cost ways[SWITCH_WAYS] = {
	[SWITCH_EMPTY] = {"empty", "an empty program; the others are what goes beyond it"},
	[SWITCH_STAMP] = {"stamp", "the stamp alone"},
	[SWITCH_LANE] = {"lane", "the accounting probe"},
	[SWITCH_LANE_RAW] = {"lane_raw", "the same on a raw tracepoint"},
	[SWITCH_RING] = {"ring", "the same record through a BPF ring buffer (weir.bpf.h)"},
};

struct bench {
	struct lean_ways *skel;
	struct weir_stream *stream; /* over the rings of `ring` */
	struct lean *lean;	    /* of LANE and LANE_RAW, while they run */
	uint64_t records, sum;
	uint64_t lost; /* where others switched more than a lane holds */
	int to[2], fro[2];
	unsigned batches;
};

static void *echo(void *ctx)
{
	struct bench *bench = ctx;
	char byte;

	while (read(bench->to[0], &byte, 1) == 1 && write(bench->fro[1], &byte, 1) == 1)
		;
	return NULL;
}

static void start_echo(struct bench *bench, pthread_t *thread)
{
	if (pipe(bench->to) || pipe(bench->fro))
		err(1, "pipe");
	errno = pthread_create(thread, NULL, echo, bench);
	if (errno)
		err(1, "a thread");
}

/* At least two switches each. */
static void hand_over(struct bench *bench, unsigned times)
{
	char byte = 0;

	for (unsigned i = 0; i < times; i++)
		if (write(bench->to[1], &byte, 1) != 1 || read(bench->fro[0], &byte, 1) != 1)
			err(1, "the pipes");
}

static void on_records(void *ctx, int cpu, const struct weir_record *first, size_t stride,
		       size_t count)
{
	struct bench *bench = ctx;

	for (size_t i = 0; i < count; i++) {
		const struct weir_lean *lean =
			(const struct weir_lean *)((const char *)first + i * stride);

		bench->sum += lean->stamp + lean->next_start_ns + lean->next_tid;
	}
	bench->records += count;
}

static void on_gap(void *ctx, int cpu, uint64_t from_ns, uint64_t to_ns, uint64_t lost)
{
	((struct bench *)ctx)->lost += lost;
}

static void on_watermark(void *ctx, int cpu, uint64_t watermark_ns, bool away)
{
}

static const struct weir_lanes_reader reader = {on_records, on_gap, on_watermark};

static int on_event(void *ctx, const struct weir_event *event)
{
	struct bench *bench = ctx;
	const uint64_t *payload = event->data;

	if (event->kind == WEIR_KIND_GAP)
		bench->lost += ((const struct weir_gap *)event->data)->lost;
	if (event->kind != WEIR_KIND_RECORD)
		return 0;
	bench->records++;
	bench->sum += event->stamp_ns + payload[0] + payload[1];
	return 0;
}

static bool is_lane(enum switch_way id)
{
	return id == SWITCH_LANE || id == SWITCH_LANE_RAW;
}

static void look(struct bench *bench, enum switch_way id)
{
	int n = 0;

	if (is_lane(id))
		n = lean__poll(bench->lean, &reader, bench);
	else if (id == SWITCH_RING)
		n = weir_stream__poll(bench->stream, 0);
	if (n < 0)
		errx(1, "%s cannot be read: %s", ways[id].name, strerror(-n));
}

static bool switch_has_state(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int id = btf ? btf__find_by_name_kind(btf, "btf_trace_sched_switch", BTF_KIND_TYPEDEF) : -1;
	const struct btf_type *type = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
	bool has;

	if (!type)
		errx(1, "the type of sched_switch is not known");
	type = btf__type_by_id(btf, btf__type_by_id(btf, type->type)->type);
	has = btf_vlen(type) > 4;
	btf__free(btf);
	return has;
}

static void open_ways(struct bench *bench)
{
	const struct weir_ring_class class = {.name = "cpu", .ring_bytes = RING_BYTES};
	struct weir_stream_opts opts = {.sz = sizeof(opts), .on_event = on_event, .ctx = bench};
	struct weir_rings_opts rings = {.sz = sizeof(rings), .classes = &class, .nr_classes = 1};
	int cpus = libbpf_num_possible_cpus();

	bench->skel = lean_ways__open();
	if (!bench->skel || cpus < 0)
		err(1, "the BPF object");
	bench->skel->rodata->weir_nr_cpus = (uint32_t)cpus;
	bench->skel->rodata->weir_switch_has_state = switch_has_state();
	if (bpf_map__set_max_entries(bench->skel->maps.weir_rings, (uint32_t)cpus) ||
	    bpf_map__set_max_entries(bench->skel->maps.weir_counters, (uint32_t)cpus + 1) ||
	    lean_ways__load(bench->skel))
		errx(1, "the BPF object cannot be loaded; it needs root");
	rings.rings_fd = bpf_map__fd(bench->skel->maps.weir_rings);
	rings.counters_fd = bpf_map__fd(bench->skel->maps.weir_counters);
	rings.nr_cpus = (uint32_t)cpus;
	bench->stream = weir_stream__new(&opts);
	if (!bench->stream || weir_stream__add_rings(bench->stream, &rings))
		errx(1, "the stream cannot be made");
}

static struct bpf_program *program_of(struct bench *bench, enum switch_way id)
{
	if (id == SWITCH_EMPTY)
		return bench->skel->progs.empty;
	return id == SWITCH_STAMP ? bench->skel->progs.stamp : bench->skel->progs.ring;
}

static void attach_lean(struct bench *bench, bool raw)
{
	const struct lean_opts opts = {.raw = raw};
	char why[512];

	bench->lean = lean__open(&opts, why, sizeof(why));
	if (!bench->lean || lean__attach(bench->lean, why, sizeof(why)))
		errx(1, "%s", why);
}

static struct bpf_prog_info info_of(int fd)
{
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd, &info, &len))
		err(1, "what the kernel knows of a program");
	return info;
}

struct count {
	double run_ns;	/* a run */
	double read_ns; /* a record */
};

/* Only what is read behind the batches counts for the reader: nothing of the load's. */
static struct count measure(struct bench *bench, enum switch_way id, int fd)
{
	struct bpf_prog_info before, after;
	uint64_t read_ns = 0, records;

	hand_over(bench, BATCH);
	look(bench, id);
	records = bench->records;
	before = info_of(fd);
	for (unsigned i = 0; i < bench->batches; i++) {
		uint64_t begin_ns;

		hand_over(bench, BATCH);
		begin_ns = sample__cpu_ns();
		look(bench, id);
		read_ns += sample__cpu_ns() - begin_ns;
	}
	after = info_of(fd);
	records = bench->records - records;
	if (id >= SWITCH_LANE && !bench->lost && records < 2ull * BATCH * bench->batches)
		errx(1, "%s: %lu records of more switches", ways[id].name, records);
	return (struct count){
		.run_ns = (double)(after.run_time_ns - before.run_time_ns) /
			  (double)(after.run_cnt - before.run_cnt),
		.read_ns = records ? (double)read_ns / (double)records : 0,
	};
}

static struct count run_lane(struct bench *bench, enum switch_way id)
{
	struct count count;

	attach_lean(bench, id == SWITCH_LANE_RAW);
	count = measure(bench, id, lean__prog_fd(bench->lean));
	lean__free(bench->lean);
	bench->lean = NULL;
	return count;
}

static struct count run_program(struct bench *bench, enum switch_way id)
{
	struct bpf_program *program = program_of(bench, id);
	struct bpf_link *link = bpf_program__attach(program);
	struct count count;

	if (!link)
		err(1, "%s cannot be attached", ways[id].name);
	count = measure(bench, id, bpf_program__fd(program));
	bpf_link__destroy(link);
	return count;
}

static void run_round(struct bench *bench, struct switch_cost cost[SWITCH_WAYS])
{
	double empty_ns = 0;

	for (int id = 0; id < SWITCH_WAYS; id++) {
		struct count count = is_lane((enum switch_way)id)
					     ? run_lane(bench, (enum switch_way)id)
					     : run_program(bench, (enum switch_way)id);

		sample__add(&cost[id].run_ns, count.run_ns - empty_ns);
		sample__add(&cost[id].read_ns, count.read_ns);
		if (id == SWITCH_EMPTY)
			empty_ns = count.run_ns;
	}
}

void switches__measure(struct switch_cost cost[SWITCH_WAYS], int cpu, unsigned rounds,
		       unsigned batches)
{
	struct bench bench = {.batches = batches};
	pthread_t thread;
	int stats_fd;

	sample__pin(cpu);
	open_ways(&bench);
	start_echo(&bench, &thread);
	memcpy(cost, ways, sizeof(ways));
	/* kernel.bpf_stats_enabled, for as long as this is open. */
	stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	if (stats_fd < 0)
		err(1, "bpf_stats");
	for (unsigned i = 0; i < rounds; i++)
		run_round(&bench, cost);
	close(stats_fd);
	close(bench.to[1]);
	pthread_join(thread, NULL);
	weir_stream__free(bench.stream);
	lean_ways__destroy(bench.skel);
}
