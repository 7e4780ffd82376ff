// SPDX-License-Identifier: BSD-2-Clause
/*
 * lean.c - the accounting probe: load, attach, seed, read.
 *
 * Owns its BPF object, the lanes it writes into and the counters it reads. Must not know what records
 * add up to.
 */
#include "probes/lean.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lean.skel.h"
#include "probes/loaded.h"

#define RING_RECORDS 131072

struct lean {
	struct lean_bpf *skel;
	struct weir_lanes *lanes;
	struct bpf_link *switches, *hotplug;
	struct ring_buffer *bell;
	uint32_t nr_cpus;
	uint32_t ring_records;
	bool raw;
	uint64_t hotplugs;		 /* as seen */
	const struct lean_event *events; /* NULL: none are counted */
	int *event_fds;			 /* [cpu * WEIR_LEAN_COUNTERS + counter]; -1: not open */
};

static const struct lean_event hardware[WEIR_LEAN_COUNTERS] = {
	[WEIR_LEAN_CYCLES] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
	[WEIR_LEAN_INSTRUCTIONS] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
	[WEIR_LEAN_CACHE_MISSES] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
};

static uint32_t record_bytes(const struct lean *lean)
{
	return lean->events ? sizeof(struct weir_lean_counted) : sizeof(struct weir_lean);
}

static struct bpf_program *switch_program(const struct lean *lean)
{
	return lean->raw ? lean->skel->progs.on_switch_raw : lean->skel->progs.on_switch;
}

static struct bpf_map *counter_map(const struct lean *lean, int counter)
{
	struct bpf_map *maps[WEIR_LEAN_COUNTERS] = {
		[WEIR_LEAN_CYCLES] = lean->skel->maps.weir_lean_cycles,
		[WEIR_LEAN_INSTRUCTIONS] = lean->skel->maps.weir_lean_instructions,
		[WEIR_LEAN_CACHE_MISSES] = lean->skel->maps.weir_lean_misses,
	};

	return maps[counter];
}

static int set_sizes(struct lean *lean)
{
	int err = bpf_map__set_max_entries(lean->skel->maps.weir_lanes, lean->nr_cpus);

	if (!err)
		err = bpf_map__set_max_entries(lean->skel->maps.weir_lane_rings, lean->nr_cpus);
	for (int i = 0; !err && i < WEIR_LEAN_COUNTERS; i++)
		err = bpf_map__set_max_entries(counter_map(lean, i), lean->nr_cpus);
	return err;
}

/*
 * The verifier has to know what a ring is like: from one that is made for that, since libbpf before
 * 1.2 can't set the size of the one in the object.
 */
static int load_with_ring(struct lean *lean)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "weir_lane", sizeof(uint32_t),
				record_bytes(lean), lean->ring_records, &opts);
	int err = fd < 0 ? fd : 0;

	if (!err)
		err = bpf_map__set_inner_map_fd(lean->skel->maps.weir_lane_rings, fd);
	if (!err)
		err = lean_bpf__load(lean->skel);
	if (fd >= 0)
		close(fd);
	return err;
}

static int load_as(struct lean *lean, const struct tracepoints *tracepoints, bool raw)
{
	int err;

	lean->raw = raw;
	lean->skel = lean_bpf__open();
	if (!lean->skel)
		return -errno;
	lean->skel->rodata->weir_switch_has_state = tracepoints->switch_has_state;
	lean->skel->rodata->weir_lean_counts = lean->events != NULL;
	lean->skel->rodata->weir_lane_records = lean->ring_records;
	bpf_program__set_autoload(lean->skel->progs.on_switch, !raw);
	bpf_program__set_autoload(lean->skel->progs.on_switch_raw, raw);
	err = set_sizes(lean);
	if (!err)
		err = load_with_ring(lean);
	if (!err)
		return 0;
	lean_bpf__destroy(lean->skel);
	lean->skel = NULL;
	return err;
}

/* What the kernel can do is found out by asking it to: its version tells nothing. */
static int load(struct lean *lean, bool raw)
{
	struct tracepoints tracepoints;
	int err = programs__look(&tracepoints);

	if (err)
		return err;
	if (!raw && !load_as(lean, &tracepoints, false))
		return 0;
	return load_as(lean, &tracepoints, true);
}

static int open_lanes(struct lean *lean)
{
	const struct weir_lanes_opts opts = {
		.sz = sizeof(opts),
		.rings_fd = bpf_map__fd(lean->skel->maps.weir_lane_rings),
		.lanes_fd = bpf_map__fd(lean->skel->maps.weir_lanes),
		.nr_cpus = lean->nr_cpus,
		.records = lean->ring_records,
		.record_bytes = record_bytes(lean),
	};

	lean->lanes = weir_lanes__new(&opts);
	return lean->lanes ? 0 : -errno;
}

/* That it has rung is all that it says. */
static int on_bell(void *ctx, void *data, size_t size)
{
	return 0;
}

static int open_bell(struct lean *lean)
{
	lean->bell = ring_buffer__new(bpf_map__fd(lean->skel->maps.weir_lean_bell), on_bell, NULL,
				      NULL);
	return lean->bell ? 0 : -errno;
}

static bool has_lane(const struct lean *lean, uint32_t cpu)
{
	struct weir_lane_account account;

	return !weir_lanes__account(lean->lanes, (int)cpu, &account);
}

static int open_event(const struct lean_event *event, uint32_t cpu)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = event->type,
		.config = event->config,
		.pinned = 1, /* always counting, or an error that can be seen: never scaled */
	};
	long fd = syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

static void close_events(struct lean *lean)
{
	for (uint32_t i = 0; lean->event_fds && i < lean->nr_cpus * WEIR_LEAN_COUNTERS; i++) {
		if (lean->event_fds[i] >= 0)
			close(lean->event_fds[i]);
		lean->event_fds[i] = -1;
	}
}

/*
 * An event dies with its CPU's going offline, and cannot be told from one that counts nothing. So
 * all are opened anew when a CPU has come or gone. 0 if there is any at all: a machine may lack one of
 * the counters, or have CPUs of another kind; what a record has no count of says so.
 */
static int open_events(struct lean *lean)
{
	bool any = false;
	int err = 0;

	close_events(lean);
	for (uint32_t i = 0; lean->events && i < lean->nr_cpus * WEIR_LEAN_COUNTERS; i++) {
		uint32_t cpu = i / WEIR_LEAN_COUNTERS, counter = i % WEIR_LEAN_COUNTERS;
		int fd;

		if (!has_lane(lean, cpu))
			continue;
		fd = open_event(&lean->events[counter], cpu);
		if (fd >= 0) {
			lean->event_fds[i] = fd;
			fd = bpf_map_update_elem(bpf_map__fd(counter_map(lean, (int)counter)), &cpu,
						 &fd, BPF_ANY);
		}
		any |= fd >= 0;
		if (fd < 0 && !err)
			err = fd;
	}
	return any ? 0 : err;
}

static int alloc_events(struct lean *lean)
{
	size_t count = (size_t)lean->nr_cpus * WEIR_LEAN_COUNTERS;

	lean->event_fds = malloc(count * sizeof(*lean->event_fds));
	for (size_t i = 0; lean->event_fds && i < count; i++)
		lean->event_fds[i] = -1;
	return lean->event_fds ? 0 : -ENOMEM;
}

static bool lacks_counters(int error)
{
	return error == ENOENT || error == EOPNOTSUPP || error == ENODEV;
}

static int prepare_counters(struct lean *lean, char *err, size_t err_len)
{
	int error = -open_events(lean);

	if (!error)
		return 0;
	if (lacks_counters(error)) {
		snprintf(err, err_len,
			 "cannot count cycles: this machine has no hardware counters that the "
			 "kernel could use; leave --counters out");
		return -ENODEV;
	}
	snprintf(err, err_len, "cannot open the hardware counters: %s", strerror(error));
	return -error;
}

static int prepare(struct lean *lean, const struct lean_opts *opts, struct refusal *refusal,
		   char *err, size_t err_len)
{
	int error = open__nr_cpus(err, err_len);

	if (error < 0)
		return error;
	lean->nr_cpus = (uint32_t)error;
	lean->ring_records = opts->ring_records ? opts->ring_records : RING_RECORDS;
	if (opts->counters)
		lean->events = opts->events ? opts->events : hardware;
	error = load(lean, opts->raw);
	if (!error)
		error = alloc_events(lean);
	if (!error)
		error = open_bell(lean);
	if (!error)
		error = open_lanes(lean);
	if (!error)
		error = weir_lanes__grow(lean->lanes);
	if (error < 0) {
		refusal__explain(refusal, "load the accounting probe", -error, err, err_len);
		return error;
	}
	return prepare_counters(lean, err, err_len);
}

struct lean *lean__open(const struct lean_opts *opts, char *err, size_t err_len)
{
	struct lean *lean = calloc(1, sizeof(*lean));
	struct refusal refusal;
	int error;

	if (!lean) {
		snprintf(err, err_len, "cannot load the accounting probe: out of memory");
		return NULL;
	}
	refusal__listen(&refusal);
	error = prepare(lean, opts, &refusal, err, err_len);
	refusal__end(&refusal);
	if (!error)
		return lean;
	lean__free(lean);
	errno = -error;
	return NULL;
}

/* Those that have their seed take no other; an offline CPU gets its own when it is back. */
static int seed(struct lean *lean)
{
	int fd = bpf_program__fd(lean->skel->progs.seed_cpu);

	for (uint32_t cpu = 0; cpu < lean->nr_cpus; cpu++) {
		LIBBPF_OPTS(bpf_test_run_opts, opts, .flags = BPF_F_TEST_RUN_ON_CPU, .cpu = cpu);
		int err = has_lane(lean, cpu) ? bpf_prog_test_run_opts(fd, &opts) : 0;

		if (err && err != -ENXIO)
			return err;
	}
	return 0;
}

static int attach(struct lean *lean, const char **what)
{
	*what = "attach to the tracepoint cpuhp_exit";
	lean->hotplug = bpf_program__attach(lean->skel->progs.on_hotplug);
	if (!lean->hotplug)
		return -errno;
	*what = "attach to the tracepoint sched_switch";
	lean->switches = bpf_program__attach(switch_program(lean));
	if (!lean->switches)
		return -errno;
	*what = "ask each CPU what runs there";
	return seed(lean);
}

int lean__attach(struct lean *lean, char *err, size_t err_len)
{
	struct refusal refusal;
	const char *what;
	int error;

	refusal__listen(&refusal);
	error = attach(lean, &what);
	if (error)
		refusal__explain(&refusal, what, -error, err, err_len);
	refusal__end(&refusal);
	return error;
}

static int catch_up_with_hotplug(struct lean *lean)
{
	uint64_t hotplugs = __atomic_load_n(&lean->skel->bss->weir_lean_hotplugs, __ATOMIC_ACQUIRE);
	int err;

	if (hotplugs == lean->hotplugs)
		return 0;
	lean->hotplugs = hotplugs;
	err = weir_lanes__grow(lean->lanes);
	if (err < 0)
		return err;
	open_events(lean);
	return seed(lean);
}

int lean__poll(struct lean *lean, const struct weir_lanes_reader *reader, void *ctx)
{
	int err = catch_up_with_hotplug(lean);

	if (err)
		return err;
	/* First: what rings from here on may be of records that this poll does not see. */
	ring_buffer__consume(lean->bell);
	return weir_lanes__poll(lean->lanes, reader, ctx);
}

int lean__wake_fd(const struct lean *lean)
{
	return bpf_map__fd(lean->skel->maps.weir_lean_bell);
}

static void unlink_programs(struct lean *lean)
{
	bpf_link__destroy(lean->switches);
	bpf_link__destroy(lean->hotplug);
	lean->switches = lean->hotplug = NULL;
}

int lean__detach(struct lean *lean, const struct weir_lanes_reader *reader, void *ctx)
{
	unlink_programs(lean);
	return weir_lanes__close(lean->lanes, reader, ctx);
}

void lean__free(struct lean *lean)
{
	if (!lean)
		return;
	unlink_programs(lean);
	close_events(lean);
	free(lean->event_fds);
	ring_buffer__free(lean->bell);
	weir_lanes__free(lean->lanes);
	lean_bpf__destroy(lean->skel);
	free(lean);
}

int lean__account(const struct lean *lean, int cpu, struct weir_lane_account *out)
{
	return weir_lanes__account(lean->lanes, cpu, out);
}

int lean__prog_fd(const struct lean *lean)
{
	return bpf_program__fd(switch_program(lean));
}
