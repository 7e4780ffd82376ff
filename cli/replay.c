/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * replay.c - `weir replay`: a capture, printed as `weir trace` would have printed it.
 *
 * Puts the rooms together: the capture's lanes tell, the stream orders, the task table says who, a sink
 * prints. What is missing from the capture is a gap, and in the ledger.
 */
#include "capture/feed.h"
#include "cli/account.h"
#include "cli/clock.h"
#include "cli/commands.h"
#include "cli/flaws.h"
#include "cli/options.h"
#include "cli/picked.h"
#include "cli/selection.h"
#include "cli/stop.h"
#include "cli/viewer.h"
#include "cli/when.h"
#include "probes/fields.h"

#include <weir/weir.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DRAW_EVERY_NS 300000000ull

struct replay_options {
	struct option_list events, pids;
	const char *from, *to;
	struct viewer_options viewer;
	bool no_follow;
};

struct replay {
	struct replay_options opts;
	const char *path;
	struct reader *reader;
	struct feed *feed;
	struct weir_stream *stream;
	struct tasks *tasks;
	struct viewer viewer;
	struct picked picked;
	struct probes_selection selection;
	struct when_base base;
	struct feed_opts range;

	bool shows_progress, drawn;
	uint64_t drawn_ns, drawn_bytes;
};

#define AT(member) OPTION_AT(struct replay_options, member)

static const struct option_def replay_options[] = {
	{'e', "events", OPTION_LIST, AT(events), "GROUP[:NAME][,...]",
	 "of what was recorded, only these, as for weir trace"},
	{'p', "pid", OPTION_LIST, AT(pids), "PID[,PID]...",
	 "only these processes, and those that they fork from then on"},
	{0, "no-follow", OPTION_FLAG, AT(no_follow), NULL, "with -p: not what they fork"},
	{0, "from", OPTION_STRING, AT(from), "TIME", "begin there (see below)"},
	{0, "to", OPTION_STRING, AT(to), "TIME", "end there"},
	OPTION_PART(filter__options, AT(viewer.filter)),
	{'o', "output", OPTION_STRING, AT(viewer.output), "FILE",
	 "write there (mode 0600); default: standard output"},
	OPTION_PART(viewer__options, AT(viewer)),
	{0},
};

static const struct command_def replay_command = {
	.name = "replay",
	.synopsis = "[OPTION]... DIR",
	.about =
		"Prints a capture that weir record has made, as weir trace would have printed it: all\n"
		"CPUs as one stream in true time order, what was lost in its place. Reads what can be\n"
		"read: what is torn or damaged is a gap.",
	.after = "A TIME is " WHEN_FORMS ".\n"
		 "A time of day is the first such one in the capture.\n\n"
		 "-y and -P know of descriptors what was opened while the capture was made.\n\n"
		 "Examples:\n"
		 "  weir replay cap                            all of it\n"
		 "  weir replay --from +60 --to +61 cap        one second of it\n"
		 "  weir replay -e sys:openat --failed cap     files that were not there\n"
		 "  weir replay -c -p 123 cap                  calls of 123 and its children\n\n"
		 "Exit status: 0 done, 1 failed, 2 wrong usage, 3 something was lost (--strict).",
	.options = replay_options,
};

#define SAY(...) say(&replay_command, __VA_ARGS__)

/* ---- events ----------------------------------------------------------------------------------- */

static int on_event(void *ctx, const struct weir_event *event)
{
	struct replay *r = ctx;

	return viewer__event(&r->viewer, event);
}

static void on_watermark(void *ctx, uint64_t watermark_ns, enum weir_order order)
{
	struct replay *r = ctx;

	tasks__retire(r->tasks, watermark_ns);
}

static void on_task(void *ctx, const struct weir_seed *seed, const char *exe, const char *cgroups)
{
	struct replay *r = ctx;

	tasks__seed(r->tasks, seed, exe, cgroups);
}

/* ---- what the user asked for ------------------------------------------------------------------ */

/* -e chooses among what was recorded; without it, that is all. */
static bool check_events(struct replay *r)
{
	const char *otherwise = r->opts.viewer.summary_only ? "sys" : "process,sched,signal,sys";

	if (!selection__events(&replay_command, &r->opts.events, otherwise, &r->selection))
		return false;
	if (r->opts.events.count)
		r->picked.calls = &r->selection;
	r->picked.follow = !r->opts.no_follow;
	return picked__pids(&replay_command, &r->opts.pids, &r->picked);
}

/* Of what was asked for by name, what cannot be in the capture; of calls, only whether there are any. */
static void say_not_recorded(const struct replay *r)
{
	uint32_t recorded = reader__env(r->reader)->selected_types;
	bool by_name = r->opts.events.count && r->opts.events.at[0][0] != '!';

	if (!by_name && !r->opts.viewer.summary_only)
		return;
	for (int group = WEIR_GROUP_NONE + 1; group < WEIR_GROUPS; group++) {
		uint32_t wanted = 0;

		for (unsigned int type = 0; type < FIELDS_TYPES; type++) {
			const struct record_desc *desc = fields__find(type);

			if (desc && desc->group == (enum weir_group)group)
				wanted |= r->selection.types & 1u << type;
		}
		if (wanted && !(wanted & recorded))
			SAY("%s: %s was not recorded", r->path,
			    fields__group_name((enum weir_group)group));
	}
}

static bool check_time(const struct replay *r, const char *option, const char *text, uint64_t *ns)
{
	if (!text || when__parse(text, &r->base, ns))
		return true;
	SAY("--%s takes a time such as %s, not '%s'", option, WHEN_FORMS, text);
	return false;
}

static void say_outside(const struct replay *r)
{
	double seconds = (double)(r->base.end_ns - r->base.start_ns) / 1e9;

	if (r->range.from_ns > r->base.end_ns)
		SAY("%s: --from is behind the end (+%.2f s)", r->path, seconds);
	if (r->range.to_ns < r->base.start_ns)
		SAY("%s: --to is before the beginning (the end is +%.2f s)", r->path, seconds);
}

static bool check_range(struct replay *r)
{
	reader__span(r->reader, &r->base.start_ns, &r->base.end_ns);
	r->base.wall_offset_ns = reader__env(r->reader)->wall_offset_ns;
	r->range.to_ns = UINT64_MAX;
	if (!check_time(r, "from", r->opts.from, &r->range.from_ns) ||
	    !check_time(r, "to", r->opts.to, &r->range.to_ns))
		return false;
	if (r->range.from_ns > r->range.to_ns) {
		SAY("--from is behind --to");
		return false;
	}
	r->picked.from_ns = r->range.from_ns;
	say_outside(r);
	return true;
}

/* ---- set up ----------------------------------------------------------------------------------- */

static bool open_viewer(struct replay *r)
{
	const struct filter *filter = &r->opts.viewer.filter;

	r->selection.types &= reader__env(r->reader)->selected_types;
	if (r->picked.pids || r->picked.calls || r->picked.from_ns || filter->user) {
		r->viewer.wants = picked__wants;
		r->viewer.ctx = &r->picked;
	}
	if (filter->user) {
		r->picked.tasks = r->tasks;
		r->picked.uid = filter->uid;
	}
	return viewer__open(&r->viewer, r->stream, r->tasks, &r->selection);
}

static bool open_feed(struct replay *r)
{
	const struct weir_stream_opts opts = {
		.sz = sizeof(opts),
		.on_event = on_event,
		.on_watermark = on_watermark,
		.ctx = r,
	};
	int err;

	r->stream = weir_stream__new(&opts);
	r->tasks = tasks__new(0);
	if (r->stream && r->tasks)
		r->feed = feed__new(r->reader, r->stream, &r->range);
	err = r->feed ? feed__tasks(r->feed, on_task, r) : -errno;
	if (!err)
		return open_viewer(r);
	SAY("cannot make the stream: %s", strerror(-err));
	return false;
}

/* ---- run -------------------------------------------------------------------------------------- */

static void draw_progress(struct replay *r)
{
	uint64_t now, done, all;

	if (!r->shows_progress)
		return;
	now = now_ns();
	if (now - r->drawn_ns < DRAW_EVERY_NS)
		return;
	feed__progress(r->feed, &done, &all);
	if (r->drawn_ns)
		fprintf(stderr, "\r%3.0f %% of %.1f MiB, %.0f MiB/s\033[K",
			all ? 100.0 * (double)done / (double)all : 100.0, (double)all / 1048576,
			(double)(done - r->drawn_bytes) / (double)(now - r->drawn_ns) *
				(1e9 / 1048576));
	r->drawn = r->drawn_ns;
	r->drawn_ns = now;
	r->drawn_bytes = done;
}

static void wipe_progress(struct replay *r)
{
	if (r->drawn)
		fputs("\r\033[K", stderr);
}

static int run(struct replay *r)
{
	int more = 1;

	r->drawn_ns = now_ns();
	while (more > 0 && !stop__requested && !viewer__is_done(&r->viewer)) {
		more = feed__step(r->feed);
		draw_progress(r);
		viewer__answer(&r->viewer);
	}
	wipe_progress(r);
	return more < 0 ? more : 0;
}

/* Calls that are still open ended with the capture, or with what was asked for of it. */
static uint64_t end_ns(const struct replay *r)
{
	return r->range.to_ns < r->base.end_ns ? r->range.to_ns : r->base.end_ns;
}

/* A file that is gone may have held no events: the account does not know it. */
static bool is_loss(const struct replay *r)
{
	if (viewer__is_loss(&r->viewer))
		return true;
	if (!r->opts.viewer.strict || !flaws__count(r->reader))
		return false;
	SAY("it is damaged: status %d (--strict)", EXIT_LOST);
	return true;
}

static void say_flaws(const struct replay *r)
{
	flaws__say(&replay_command, r->reader, r->path);
	if (r->range.to_ns == UINT64_MAX && !stop__requested && !viewer__is_done(&r->viewer))
		flaws__say_end(&replay_command, r->reader, r->feed, r->path);
}

/* Not before there is something to end in order: until then a signal ends us, however long it takes. */
static bool catch_signals(void)
{
	int err = stop__install(false);

	if (err)
		SAY("cannot catch signals: %s", strerror(-err));
	return !err;
}

static int replay(struct replay *r)
{
	struct viewer *viewer = &r->viewer;
	bool bad;
	int err;

	if (!viewer__open_outputs(viewer, STDOUT_FILENO) || !open_feed(r) || !catch_signals() ||
	    !outputs__empty(&replay_command, &viewer->outputs))
		return EXIT_FAILED;
	/* What is printed on the same terminal tells by itself how far it is. */
	r->shows_progress = isatty(STDERR_FILENO) && !isatty(viewer->outputs.trace_fd);
	err = run(r);
	if (err)
		SAY("%s", strerror(-err));
	viewer__finish(viewer, end_ns(r));
	say_flaws(r);
	bad = viewer__report(viewer) != 0;
	if (err || bad || !reader__env(r->reader)->has_metadata)
		return EXIT_FAILED;
	return is_loss(r) ? EXIT_LOST : EXIT_OK;
}

static void free_replay(struct replay *r)
{
	viewer__free(&r->viewer);
	feed__free(r->feed);
	weir_stream__free(r->stream);
	tasks__free(r->tasks);
	reader__close(r->reader);
	picked__free(&r->picked);
}

static int open_and_replay(struct replay *r)
{
	char err[512];

	r->reader = reader__open(r->path, err, sizeof(err));
	if (!r->reader) {
		SAY("%s", err);
		return EXIT_FAILED;
	}
	if (!check_range(r))
		return EXIT_USAGE;
	say_not_recorded(r);
	return replay(r);
}

int cmd_replay(int argc, char **argv)
{
	static struct replay r;
	int status, operand;

	operand = options__parse(&replay_command, argc, argv, &r.opts, &status);
	if (operand < 0)
		return status;
	if (argc - operand != 1) {
		SAY("one capture at a time: DIR");
		return EXIT_USAGE;
	}
	r.path = argv[operand];
	r.viewer.def = &replay_command;
	r.viewer.opts = &r.opts.viewer;
	r.viewer.is_past = true;
	if (!viewer__check(&r.viewer) || !check_events(&r))
		return EXIT_USAGE;
	status = open_and_replay(&r);
	free_replay(&r);
	return status;
}
