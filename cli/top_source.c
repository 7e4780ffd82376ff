// SPDX-License-Identifier: BSD-2-Clause
/*
 * top_source.c - the live kernel -> accounts: switches from the lean probe, names from forks, execs and
 * exits. Knows nothing of what is shown.
 */
#include "cli/clock.h"
#include "cli/live.h"
#include "cli/top.h"
#include "probes/lean.h"

#include <errno.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/*
 * Between two reports nobody waits for an event, and rings that fill up wake us. This often the table
 * lets go of who has ended.
 */
#define PAUSE_NS 1000000000u

struct top_source {
	struct live_options live_opts;
	struct live live;
	struct lean *lean;
	struct usage *usage;
	int stream_fd; /* asking for it makes it readable: once is enough */
	bool closed;
};

#define SAY(...) say(&top_command, __VA_ARGS__)

/* ---- what the probes tell --------------------------------------------------------------------- */

static int on_event(void *ctx, const struct weir_event *event)
{
	struct top_source *source = ctx;

	tasks__apply(source->live.tasks, event);
	usage__apply(source->usage, event);
	return 0;
}

static void on_watermark(void *ctx, uint64_t watermark_ns, enum weir_order order)
{
	struct top_source *source = ctx;

	(void)order;
	tasks__retire(source->live.tasks, watermark_ns);
}

static void on_seed(void *ctx, const struct weir_seed *seed)
{
	struct top_source *source = ctx;

	usage__seed(source->usage, seed);
}

static void on_records(void *ctx, int cpu, const struct weir_record *first, size_t stride,
		       size_t count)
{
	struct top_source *source = ctx;

	usage__records(source->usage, cpu, first, stride, count);
}

static void on_gap(void *ctx, int cpu, uint64_t from_ns, uint64_t to_ns, uint64_t lost)
{
	struct top_source *source = ctx;

	usage__gap(source->usage, cpu, from_ns, to_ns, lost);
}

static void on_lane_watermark(void *ctx, int cpu, uint64_t watermark_ns, bool away)
{
	struct top_source *source = ctx;

	usage__watermark(source->usage, cpu, watermark_ns, away);
}

static const struct weir_lanes_reader lanes_reader = {
	.records = on_records,
	.gap = on_gap,
	.watermark = on_lane_watermark,
};

/* ---- open and close --------------------------------------------------------------------------- */

/* As many as fit into the share of a CPU; a power of two. 0: as many as the probe finds right. */
static uint32_t ring_records(const struct top_options *opts)
{
	size_t bytes = opts->counters ? sizeof(struct weir_lean_counted) : sizeof(struct weir_lean);
	uint64_t records = opts->buffer / bytes / (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);

	if (!opts->buffer)
		return 0;
	if (records < 64)
		records = 64;
	if (records > 1u << 24)
		records = 1u << 24;
	return 1u << (31 - __builtin_clz((uint32_t)records));
}

static bool open_lean(struct top_source *source, const struct top_options *opts)
{
	const struct lean_opts lean_opts = {
		.ring_records = ring_records(opts),
		.counters = opts->counters,
	};
	char err[512];

	source->lean = lean__open(&lean_opts, err, sizeof(err));
	if (!source->lean)
		SAY("%s", err);
	return source->lean;
}

/* Forks, execs and exits, and the process table from before them. */
static bool open_live(struct top_source *source)
{
	struct weir_stream_opts stream_opts = {
		.sz = sizeof(stream_opts),
		.on_event = on_event,
		.on_watermark = on_watermark,
		.ctx = source,
		.poll_interval_ns = PAUSE_NS,
	};

	source->live.def = &top_command;
	source->live.opts = &source->live_opts;
	source->live.seeded = on_seed;
	source->live.ctx = source;
	if (!live__check(&source->live, live__default_events(&source->live)) ||
	    !live__open(&source->live, &stream_opts))
		return false;
	source->usage = usage__new(source->live.tasks, 0);
	if (!source->usage) {
		SAY("out of memory");
		return false;
	}
	source->stream_fd = weir_stream__epoll_fd(source->live.stream);
	return live__attach(&source->live) && live__settle(&source->live);
}

/* Each CPU's first record is there when this has returned: so accounts begin without a gap. */
static bool attach_lean(struct top_source *source)
{
	char err[512];

	if (lean__attach(source->lean, err, sizeof(err))) {
		SAY("%s", err);
		return false;
	}
	usage__begin(source->usage, now_ns());
	return true;
}

struct top_source *top_source__open(const struct top_options *opts)
{
	struct top_source *source = calloc(1, sizeof(*source));

	if (!source) {
		SAY("out of memory");
		return NULL;
	}
	if (open_lean(source, opts) && open_live(source) && attach_lean(source))
		return source;
	top_source__free(source);
	return NULL;
}

int top_source__close(struct top_source *source)
{
	int err, lean_err;

	if (source->closed)
		return 0;
	source->closed = true;
	err = live__close(&source->live);
	lean_err = lean__detach(source->lean, &lanes_reader, source);
	usage__polled(source->usage);
	return lean_err < 0 ? lean_err : err;
}

void top_source__free(struct top_source *source)
{
	if (!source)
		return;
	lean__free(source->lean);
	usage__free(source->usage);
	live__free(&source->live);
	free(source);
}

/* ---- run -------------------------------------------------------------------------------------- */

/* Who was born first, then how it ran: so that a name is there when it is asked for. */
int top_source__poll(struct top_source *source)
{
	int err = weir_stream__poll(source->live.stream, 0);

	if (err < 0 && err != -EINTR)
		return err;
	err = lean__poll(source->lean, &lanes_reader, source);
	usage__polled(source->usage);
	return err < 0 && err != -EINTR ? err : 0;
}

void top_source__wake_fds(const struct top_source *source, int fds[TOP_WAKE_FDS])
{
	fds[TOP_WAKE_STREAM] = source->stream_fd;
	fds[TOP_WAKE_RINGS] = lean__wake_fd(source->lean);
}

const struct usage_snapshot *top_source__take(struct top_source *source)
{
	return usage__take(source->usage);
}

static uint64_t own_rss_bytes(void)
{
	unsigned long size, resident = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	if (!file)
		return 0;
	if (fscanf(file, "%lu %lu", &size, &resident) != 2)
		resident = 0;
	fclose(file);
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

void top_source__account(struct top_source *source, struct top_account *out)
{
	struct weir_ledger ledger = {.sz = sizeof(ledger)};
	struct weir_lane_account lane;
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	*out = (struct top_account){
		.self_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID),
		.self_bytes = own_rss_bytes(),
		.wall_offset_ns = (int64_t)(clock_ns(CLOCK_REALTIME) - now_ns()),
	};
	for (int cpu = 0; cpu < cpus; cpu++) {
		if (lean__account(source->lean, cpu, &lane))
			continue;
		out->produced += lane.produced;
		out->told += lane.delivered;
		out->lost += lane.lost;
		out->pending += lane.pending;
	}
	weir_stream__ledger(source->live.stream, &ledger);
	/* What is only known not to be more is as a rule none at all. */
	for (int cause = 0; cause < WEIR_LOST_CAUSES; cause++)
		if (ledger.total.bound[cause] == WEIR_BOUND_EXACT)
			out->life_lost += ledger.total.lost[cause];
}
