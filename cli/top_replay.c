// SPDX-License-Identifier: BSD-2-Clause
/*
 * top_replay.c - a capture -> accounts, an interval at a time, by the stamps in it. Knows nothing of what is
 * shown.
 */
#include "capture/feed.h"
#include "cli/flaws.h"
#include "cli/stop.h"
#include "cli/top.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct top_replay {
	struct reader *reader;
	struct weir_stream *stream;
	struct tasks *tasks;
	struct usage *usage;
	struct feed *feed;
	uint64_t begin_ns, end_ns, next_ns, interval_ns;
	uint64_t told;
	const char *path;
	bool lost; /* something was, of which perhaps nobody knows how much */
	bool last;
	top_interval_fn fn;
	void *ctx;
};

#define SAY(...) say(&top_command, __VA_ARGS__)

static int end_interval(struct top_replay *r, uint64_t at_ns)
{
	const struct usage_snapshot *snapshot;
	struct top_account account = {0};

	usage__passed(r->usage, at_ns);
	usage__polled(r->usage);
	snapshot = usage__take(r->usage);
	if (!snapshot)
		return -ENOMEM;
	r->told += snapshot->switches;
	account.told = r->told;
	account.lost = snapshot->trouble.lost;
	account.produced = account.told + account.lost;
	/* As the notes in the capture have it, also without metadata and after a step. */
	account.wall_offset_ns = weir_stream__wall_ns(r->stream, at_ns) - (int64_t)at_ns;
	return r->fn(r->ctx, snapshot, &account, r->last);
}

/* Where stamps end there is no next one. */
static uint64_t plan_next(const struct top_replay *r, uint64_t ns)
{
	return ns < UINT64_MAX - r->interval_ns ? ns + r->interval_ns : UINT64_MAX;
}

/* Everything before that has been told: so have the intervals that end there. */
static int end_before(struct top_replay *r, uint64_t ns)
{
	int err = 0;

	while (!err && r->next_ns < ns) {
		err = end_interval(r, r->next_ns);
		r->next_ns = plan_next(r, r->next_ns);
	}
	return err;
}

static bool is_loss(const struct weir_event *event)
{
	const struct weir_gap *gap = event->data;

	return event->kind == WEIR_KIND_GAP && event->len >= sizeof(*gap) &&
	       gap->cause != WEIR_LOST_OFFLINE;
}

static int on_event(void *ctx, const struct weir_event *event)
{
	struct top_replay *r = ctx;
	/* A stamp that was made up ends nothing. */
	int err = event->stamp_ns <= r->end_ns ? end_before(r, event->stamp_ns) : 0;

	r->lost |= is_loss(event);
	tasks__apply(r->tasks, event);
	usage__apply(r->usage, event);
	usage__sched(r->usage, event);
	return err;
}

static void on_watermark(void *ctx, uint64_t watermark_ns, enum weir_order order)
{
	struct top_replay *r = ctx;

	(void)order;
	tasks__retire(r->tasks, watermark_ns);
}

static void on_task(void *ctx, const struct weir_seed *seed, const char *exe, const char *cgroups)
{
	struct top_replay *r = ctx;

	tasks__seed(r->tasks, seed, exe, cgroups);
	usage__seed(r->usage, seed);
}

/* Each CPU has a part in the capture from its begin. */
static void begin_accounts(struct top_replay *r)
{
	size_t count;
	const struct reader_stream *streams = reader__streams(r->reader, &count);

	reader__span(r->reader, &r->begin_ns, &r->end_ns);
	r->next_ns = plan_next(r, r->begin_ns);
	usage__begin(r->usage, r->begin_ns);
	for (size_t i = 0; i < count; i++)
		if (streams[i].kind == CAPTURE_CPU)
			usage__cpu(r->usage, streams[i].instance);
}

static bool open_reader(struct top_replay *r, const char *path)
{
	char err[512];

	r->reader = reader__open(path, err, sizeof(err));
	if (!r->reader) {
		SAY("%s", err);
		return false;
	}
	if (reader__env(r->reader)->has_metadata &&
	    !(reader__env(r->reader)->selected_types >> WEIR_T_SWITCH & 1)) {
		SAY("%s has no switches: they are recorded with 'weir record -e process,sched'",
		    path);
		return false;
	}
	return true;
}

static bool open_feed(struct top_replay *r)
{
	const struct weir_stream_opts opts = {
		.sz = sizeof(opts),
		.on_event = on_event,
		.on_watermark = on_watermark,
		.ctx = r,
	};
	const struct feed_opts all = {.to_ns = UINT64_MAX};
	int err = -ENOMEM;

	r->stream = weir_stream__new(&opts);
	r->tasks = tasks__new(0);
	r->usage = r->tasks ? usage__new(r->tasks, 0) : NULL;
	if (r->stream && r->usage) {
		begin_accounts(r);
		r->feed = feed__new(r->reader, r->stream, &all);
		err = r->feed ? feed__tasks(r->feed, on_task, r) : -errno;
	}
	if (err)
		SAY("cannot make the stream: %s", strerror(-err));
	return !err;
}

struct top_replay *top_replay__open(const struct top_options *opts)
{
	struct top_replay *r = calloc(1, sizeof(*r));

	if (!r) {
		SAY("out of memory");
		return NULL;
	}
	r->interval_ns = opts->interval_ns;
	r->path = opts->replay;
	if (open_reader(r, opts->replay) && open_feed(r))
		return r;
	top_replay__free(r);
	return NULL;
}

void top_replay__say_flaws(const struct top_replay *r)
{
	flaws__say(&top_command, r->reader, r->path);
	if (r->last)
		flaws__say_end(&top_command, r->reader, r->feed, r->path);
}

bool top_replay__is_loss(const struct top_replay *r)
{
	return r->lost || flaws__count(r->reader);
}

void top_replay__free(struct top_replay *r)
{
	if (!r)
		return;
	feed__free(r->feed);
	weir_stream__free(r->stream);
	usage__free(r->usage);
	tasks__free(r->tasks);
	reader__close(r->reader);
	free(r);
}

int top_replay__run(struct top_replay *r, top_interval_fn fn, void *ctx)
{
	int more = 1, err;

	r->fn = fn;
	r->ctx = ctx;
	while (more > 0 && !stop__requested)
		more = feed__step(r->feed);
	if (more < 0)
		return more;
	/* What was not read has no report. */
	if (stop__requested)
		return -ECANCELED;
	err = end_before(r, r->end_ns);
	r->last = true;
	return err ? err : end_interval(r, r->end_ns);
}
