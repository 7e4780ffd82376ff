/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * replay.c - `weir replay`: a capture, printed as `weir trace` would have printed it.
 *
 * Puts the rooms together: the capture's lanes tell, the stream orders, the task table says who, a sink
 * prints. What is missing from the capture is a gap, and in the ledger.
 */
#include "capture/feed.h"
#include "cli/account.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/outputs.h"
#include "cli/picked.h"
#include "cli/selection.h"
#include "cli/stop.h"
#include "cli/style.h"
#include "cli/viewer.h"
#include "cli/when.h"
#include "probes/fields.h"

#include <weir/weir.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define OUT_BUFFER_BYTES (256u << 10)
#define STOP_GRACE_MS	 400
#define DRAW_EVERY_NS	 300000000ull

struct replay_options {
	struct option_list events, pids;
	const char *from, *to, *output, *format, *ledger, *time, *color;
	uint64_t max_events;
	struct filter filter;
	bool no_follow, pair, strict, summary, summary_only;
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
	struct outputs outputs;
	struct style style;
	struct when_base base;
	struct feed_opts range;
	uint64_t watermark_ns;

	bool shows_progress, drawn;
	uint64_t started_ns, drawn_ns, drawn_bytes;
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
	{0, "comm", OPTION_LIST, AT(filter.comms), "GLOB",
	 "only of threads whose name matches; repeat for more"},
	{0, "container", OPTION_STRING, AT(filter.container), "ID",
	 "only in this container: its id or name, or how that begins"},
	{0, "cgroup", OPTION_STRING, AT(filter.cgroup), "PATH",
	 "only in this cgroup and those below it"},
	{0, "uid", OPTION_STRING, AT(filter.user), "USER",
	 "only of processes that USER (name or number) ran"},
	{'P', "path", OPTION_LIST, AT(filter.paths), "PATH",
	 "of system calls, only those with this path as an argument;\n"
	 "repeat for more"},
	{0, "failed", OPTION_FLAG, AT(filter.failed), NULL,
	 "of system calls, only those that failed"},
	{0, "errno", OPTION_STRING, AT(filter.errno_name), "NAME",
	 "of system calls, only those that failed with NAME (ENOENT)"},
	{0, "min-duration", OPTION_DURATION, AT(filter.min_duration_ns), "TIME",
	 "of system calls, only those that took TIME or longer"},
	{'o', "output", OPTION_STRING, AT(output), "FILE",
	 "write there (mode 0600); default: standard output"},
	{'f', "format", OPTION_STRING, AT(format), "FORMAT",
	 "text (default), json (an object a line), or none (only count)"},
	{'c', "summary-only", OPTION_FLAG, AT(summary_only), NULL,
	 "count system calls instead of printing them: how many, how many\n"
	 "failed, how long they took. Default events: sys"},
	{'C', "summary", OPTION_FLAG, AT(summary), NULL,
	 "print the lines, and that table at the end"},
	{0, "time", OPTION_STRING, AT(time), "HOW",
	 "in text: wall (default), mono (since boot), delta (since the\n"
	 "line before) or none"},
	{0, "color", OPTION_STRING, AT(color), "WHEN",
	 "in text: auto (default: on a terminal, unless NO_COLOR is set),\n"
	 "always or never"},
	{0, "pair", OPTION_FLAG, AT(pair), NULL,
	 "in JSON: one object a system call, at its exit, as text has it"},
	{'n', "max-events", OPTION_COUNT, AT(max_events), "N", "stop after N events"},
	{0, "ledger", OPTION_STRING, AT(ledger), "FILE",
	 "write the account of all records there at the end (JSON)"},
	{0, "strict", OPTION_FLAG, AT(strict), NULL, "exit with 3 if anything was lost"},
	{0},
};

static const struct command_def replay_command = {
	.name = "replay",
	.synopsis = "[OPTION]... DIR",
	.about =
		"Prints a capture that weir record has made, as weir trace would have printed it: all\n"
		"CPUs as one stream in true time order, what was lost in its place. Reads what can be\n"
		"read: what is torn or damaged is a gap.",
	.after =
		"A TIME is " WHEN_FORMS ".\n"
		"A time of day is the first such one in the capture.\n\n"
		"weir trace's -y is not here: which file a descriptor was is not in a capture.\n\n"
		"Examples:\n"
		"  weir replay cap                            all of it\n"
		"  weir replay --from +60 --to +61 cap        one second of it\n"
		"  weir replay -e sys:openat --failed cap     files that were not there\n"
		"  weir replay -c -p 123 cap                  calls of 123 and its children, counted\n\n"
		"Exit status: 0 done, 1 failed, 2 wrong usage, 3 something was lost (--strict).",
	.options = replay_options,
};

#define SAY(...) say(&replay_command, __VA_ARGS__)

static bool is_json(const struct replay *r)
{
	return !strcmp(r->opts.format, "json");
}

static bool counts(const struct replay *r)
{
	return r->opts.summary || r->opts.summary_only;
}

/* ---- events ----------------------------------------------------------------------------------- */

static int on_event(void *ctx, const struct weir_event *event)
{
	struct replay *r = ctx;

	return viewer__event(&r->viewer, event);
}

static void on_watermark(void *ctx, uint64_t watermark_ns, enum weir_order order)
{
	struct replay *r = ctx;

	r->watermark_ns = watermark_ns;
	tasks__retire(r->tasks, watermark_ns);
}

static void on_task(void *ctx, const struct weir_seed *seed, const char *exe, const char *cgroups)
{
	struct replay *r = ctx;

	tasks__seed(r->tasks, seed, exe, cgroups);
}

/* ---- what the user asked for ------------------------------------------------------------------ */

static bool check_format(struct replay *r)
{
	struct replay_options *opts = &r->opts;

	if (!opts->format)
		opts->format = "text";
	if (!sink__find(opts->format)) {
		SAY("there is no format '%s': text, json or none", opts->format);
		return false;
	}
	if (opts->summary && !opts->summary_only && is_json(r)) {
		SAY("-C prints lines for people; in JSON there is -c, one object");
		return false;
	}
	opts->pair |= opts->summary_only;
	if (filter__needs_calls(&opts->filter) && is_json(r) && !opts->pair) {
		SAY("--failed, --errno and --min-duration ask for whole calls: add --pair");
		return false;
	}
	return style__words(&replay_command, opts->time, opts->color);
}

/* -e chooses among what was recorded; without it, that is all. */
static bool check_events(struct replay *r)
{
	const char *otherwise = r->opts.summary_only ? "sys" : "process,sched,signal,sys";

	if (!selection__events(&replay_command, &r->opts.events, otherwise, &r->selection))
		return false;
	if (r->opts.events.count)
		r->picked.calls = &r->selection;
	r->picked.follow = !r->opts.no_follow;
	return picked__pids(&replay_command, &r->opts.pids, &r->picked);
}

static bool check_options(struct replay *r)
{
	return check_format(r) && filter__check(&r->opts.filter, &replay_command) &&
	       check_events(r);
}

/* Of what was asked for by name, what cannot be in the capture; of calls, only whether there are any. */
static void say_not_recorded(const struct replay *r)
{
	uint32_t recorded = reader__env(r->reader)->selected_types;
	bool by_name = r->opts.events.count && r->opts.events.at[0][0] != '!';

	if (!by_name && !r->opts.summary_only)
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

/* From the capture's first packet to its last. */
static void find_span(struct replay *r)
{
	size_t count;
	const struct reader_stream *streams = reader__streams(r->reader, &count);

	r->base.start_ns = UINT64_MAX;
	r->base.wall_offset_ns = reader__env(r->reader)->wall_offset_ns;
	for (size_t i = 0; i < count; i++) {
		const struct reader_packet *packets = streams[i].packets;
		size_t n = streams[i].nr_packets;

		if (n && packets[0].begin_ns < r->base.start_ns)
			r->base.start_ns = packets[0].begin_ns;
		if (n && packets[n - 1].end_ns > r->base.end_ns)
			r->base.end_ns = packets[n - 1].end_ns;
	}
	if (r->base.start_ns > r->base.end_ns)
		r->base.start_ns = r->base.end_ns;
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
	find_span(r);
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

static bool open_outputs(struct replay *r)
{
	struct printer *printer = &r->viewer.printer;

	r->outputs.trace_path = r->opts.output;
	r->outputs.ledger_path = r->opts.ledger;
	if (!outputs__open(&replay_command, &r->outputs, STDOUT_FILENO,
			   counts(r) || strcmp(r->opts.format, "none") != 0))
		return false;
	printer->out = out__new(r->outputs.trace_fd, OUT_BUFFER_BYTES, &stop__requested,
				STOP_GRACE_MS);
	if (!printer->out) {
		SAY("out of memory");
		return false;
	}
	style__fill(&r->style, r->opts.time, r->opts.color, r->outputs.trace_fd);
	out__set_style(printer->out, &r->style);
	/* What is printed on the same terminal tells by itself how far it is. */
	r->shows_progress = isatty(STDERR_FILENO) && !isatty(r->outputs.trace_fd);
	return true;
}

static bool needs_calls(const struct replay *r)
{
	const struct sink_ops *sink = r->viewer.printer.sink;

	return counts(r) || filter__needs_calls(&r->opts.filter) ||
	       (sink->call && (!is_json(r) || r->opts.pair));
}

static bool open_viewer(struct replay *r)
{
	struct printer *printer = &r->viewer.printer;

	printer->sink = sink__find(r->opts.summary_only ? "none" : r->opts.format);
	printer->filter = filter__is_set(&r->opts.filter) ? &r->opts.filter : NULL;
	printer->stream = r->viewer.stream = r->stream;
	printer->tasks = r->tasks;
	if (counts(r) && !(printer->counts = counts__new()))
		return false;
	r->viewer.types = r->selection.types & reader__env(r->reader)->selected_types;
	r->viewer.max_events = r->opts.max_events;
	if (r->picked.pids || r->picked.calls || r->picked.from_ns || r->opts.filter.user) {
		r->viewer.wants = picked__wants;
		r->viewer.ctx = &r->picked;
	}
	if (r->opts.filter.user) {
		r->picked.tasks = r->tasks;
		r->picked.uid = r->opts.filter.uid;
	}
	return viewer__open(&r->viewer, needs_calls(r));
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
	if (!err && open_viewer(r))
		return true;
	SAY("cannot make the stream: %s", strerror(err ? -err : errno));
	return false;
}

/* ---- run -------------------------------------------------------------------------------------- */

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

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
	while (more > 0 && !stop__requested && !viewer__has_enough(&r->viewer) &&
	       !out__error(r->viewer.printer.out)) {
		more = feed__step(r->feed);
		draw_progress(r);
		if (stop__ledger_wanted())
			account__say(r->stream, is_json(r), r->outputs.trace_fd);
	}
	wipe_progress(r);
	return more < 0 ? more : 0;
}

static void count_unwritten(void *ctx, uint32_t source, uint64_t events)
{
	struct replay *r = ctx;

	weir_stream__count_lost(r->stream, source, events, WEIR_LOST_OUTPUT);
}

/* Calls that are still open ended with the capture, or with what was asked for of it. */
static uint64_t end_ns(const struct replay *r)
{
	return r->range.to_ns < r->base.end_ns ? r->range.to_ns : r->base.end_ns;
}

static void finish(struct replay *r)
{
	struct printer *printer = &r->viewer.printer;

	viewer__finish(&r->viewer, end_ns(r));
	if (r->opts.summary && !r->opts.summary_only)
		out__char(printer->out, '\n');
	if (printer->counts)
		counts__print(printer->counts, r->stream, printer->out, is_json(r));
	out__flush(printer->out);
	out__unwritten(printer->out, count_unwritten, r);
}

static void say_flaws(const struct replay *r)
{
	struct feed_end end = feed__end(r->feed);
	size_t flaws;

	reader__flaws(r->reader, &flaws);
	if (!reader__env(r->reader)->has_metadata)
		SAY("%s: metadata is missing: what was selected, and the boot, are not known",
		    r->path);
	if (flaws)
		SAY("%s: damaged in %zu place%s: 'weir verify %s' tells where", r->path, flaws,
		    flaws > 1 ? "s" : "", r->path);
	if (!end.closed && r->range.to_ns == UINT64_MAX && !stop__requested &&
	    !viewer__has_enough(&r->viewer) && !out__error(r->viewer.printer.out))
		SAY("%s: the recording was cut off: what was not written yet, of its last second, is "
		    "missing; nobody knows how much that is",
		    r->path);
}

static bool reader_is_gone(const struct replay *r)
{
	return out__error(r->viewer.printer.out) == -EPIPE;
}

static int report(struct replay *r)
{
	int err = out__error(r->viewer.printer.out), ledger_err = 0;

	/* A reader that has gone away has what it wanted; a stop has cut the rest short. */
	if (err == -EPIPE || err == -ECANCELED)
		err = 0;
	if (err)
		SAY("%s: %s", r->opts.output ? r->opts.output : "the output", strerror(-err));
	say_flaws(r);
	account__say(r->stream, is_json(r), r->outputs.trace_fd);
	if (r->opts.ledger)
		ledger_err = account__write(r->stream, r->outputs.ledger_fd, ACCOUNT_JSON);
	if (ledger_err)
		SAY("%s: %s", r->opts.ledger, strerror(-ledger_err));
	return err ? err : ledger_err;
}

static int replay(struct replay *r)
{
	bool bad;
	int err;

	if (!open_outputs(r) || !open_feed(r) || !outputs__empty(&replay_command, &r->outputs))
		return EXIT_FAILED;
	err = run(r);
	if (err)
		SAY("%s", strerror(-err));
	finish(r);
	bad = report(r) != 0;
	if (err || bad || !reader__env(r->reader)->has_metadata)
		return EXIT_FAILED;
	if (r->opts.strict && account__is_loss(&replay_command, r->stream, reader_is_gone(r)))
		return EXIT_LOST;
	return EXIT_OK;
}

static void free_replay(struct replay *r)
{
	outputs__close(&r->outputs);
	viewer__close(&r->viewer);
	counts__free(r->viewer.printer.counts);
	out__free(r->viewer.printer.out);
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
	static struct replay r = {.outputs = {.trace_fd = -1, .ledger_fd = -1}};
	int status, operand;

	operand = options__parse(&replay_command, argc, argv, &r.opts, &status);
	if (operand < 0)
		return status;
	if (argc - operand != 1) {
		SAY("one capture at a time: DIR");
		return EXIT_USAGE;
	}
	r.path = argv[operand];
	if (!check_options(&r))
		return EXIT_USAGE;
	if (stop__install(false)) {
		SAY("cannot catch signals: %s", strerror(errno));
		return EXIT_FAILED;
	}
	status = open_and_replay(&r);
	free_replay(&r);
	return status;
}
