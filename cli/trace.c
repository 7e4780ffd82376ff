/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace.c - `weir trace`: the live kernel's events in true time order.
 *
 * Puts the rooms together: probes write, the stream orders, the task table says who, a sink prints.
 * Every record that the stream delivers is printed, or counted as filtered or lost: the ledger at the
 * end closes, or says by how much it does not.
 */
#include "cli/account.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/printer.h"
#include "cli/priority.h"
#include "cli/privileges.h"
#include "cli/selection.h"
#include "cli/stop.h"
#include "cli/style.h"
#include "probes/probes.h"
#include "state/calls.h"
#include "state/cgroupfs.h"

#include <weir/weir.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NSEC_PER_SEC	 1000000000ull
#define OUT_BUFFER_BYTES (256u << 10)
#define STOP_GRACE_MS	 400
#define POLL_MS		 200 /* how late a signal that came between two calls may be seen */
#define WATERMARK_EVERY_NS \
	NSEC_PER_SEC /* on an idle machine; while events flow, behind each batch */
#define DEFAULT_BUFFER	 (16u << 20)
#define DEFAULT_STRING	 256u
#define STRING_LIMIT_MAX 4096u
#define MEMORY_BYTES	 (64u << 20) /* beside the rings: indexes, and what has to wait */

struct trace_options {
	struct option_list events, pids;
	const char *output, *format, *ledger, *time, *color;
	uint64_t duration_ns, max_events, buffer, string_limit;
	struct filter filter;
	bool watermarks, strict, verbose, pair, fds, summary, summary_only, no_wait, list, all,
		children, no_follow;
};

struct trace {
	struct trace_options opts;
	struct probes_selection selection;
	uint32_t pids[SELECTION_PIDS_MAX + 1];
	struct command command;
	char program[PATH_MAX];
	bool has_command, command_began, command_execed;
	size_t life_bytes, event_bytes; /* of one CPU's rings */

	struct weir_stream *stream;
	struct probes *probes;
	struct cgroupfs *cgroupfs;
	struct calls *calls; /* NULL: enter and exit are printed apart */
	struct printer printer;
	struct style style;
	int out_fd, ledger_fd; /* ledger_fd -1: none was asked for */

	uint64_t drawn_ns; /* the table of -c, on a terminal */
	uint64_t printed;
	uint64_t last_watermark_ns; /* printed */
	bool printed_since_watermark;
};

#define AT(member) OPTION_AT(struct trace_options, member)

static const struct option_def trace_options[] = {
	{'e', "events", OPTION_LIST, AT(events), "GROUP[:NAME][,...]",
	 "what to trace: groups process, sched, signal, sys, classes of\n"
	 "calls %file %desc %network %process %memory %signal, or NAMEs\n"
	 "of one group (a colon claims the rest: -e sys:openat,close);\n"
	 "! in front takes away (-e 'sys:!futex,!%memory'); repeat -e to\n"
	 "mix; --list shows all. Default: process; with -p or COMMAND\n"
	 "process,signal,sys"},
	{'p', "pid", OPTION_LIST, AT(pids), "PID[,PID]...",
	 "only these processes, and those that they fork from now on;\n"
	 "ends when the last of them has"},
	{0, "children", OPTION_FLAG, AT(children), NULL,
	 "with -p: also what they have forked before"},
	{0, "no-follow", OPTION_FLAG, AT(no_follow), NULL,
	 "with -p or COMMAND: not what they fork"},
	{0, "all", OPTION_FLAG, AT(all), NULL,
	 "on a terminal, also the processes that weir descends from (shell,\n"
	 "terminal, sshd): they are left out, or showing a line would be\n"
	 "the next line"},
	{0, "list", OPTION_FLAG, AT(list), NULL, "print every event with its arguments, and end"},
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
	 "write there (mode 0600); default: standard output, and standard\n"
	 "error with COMMAND"},
	{'f', "format", OPTION_STRING, AT(format), "FORMAT",
	 "text (default), json (an object a line), or none (only count)"},
	{'y', "fds", OPTION_FLAG, AT(fds), NULL,
	 "print what descriptors stand for: paths, sockets, directories;\n"
	 "in JSON with --pair, which it implies"},
	{'c', "summary-only", OPTION_FLAG, AT(summary_only), NULL,
	 "count system calls instead of printing them: how many, how many\n"
	 "failed, how long they took. Each second on a terminal (but for\n"
	 "COMMAND's), and at the end. Default events: sys"},
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
	{'d', "duration", OPTION_DURATION, AT(duration_ns), "TIME",
	 "stop after TIME: 10 (seconds), 1.5, 500ms, 2m"},
	{'n', "max-events", OPTION_COUNT, AT(max_events), "N", "stop after N events"},
	{0, "no-wait", OPTION_FLAG, AT(no_wait), NULL,
	 "end when COMMAND ends, and not only when all that it started has"},
	{0, "buffer", OPTION_SIZE, AT(buffer), "SIZE",
	 "kernel buffers for the whole machine, 7/8 of it for events and\n"
	 "1/8 for fork, exec and exit; rounded down to powers of two a\n"
	 "CPU. Default: 16M"},
	{0, "string-limit", OPTION_COUNT, AT(string_limit), "N",
	 "keep at most N bytes (up to 4096) of each string. Default: 256"},
	{0, "ledger", OPTION_STRING, AT(ledger), "FILE",
	 "write the account of all records there at the end (JSON)"},
	{0, "watermarks", OPTION_FLAG, AT(watermarks), NULL,
	 "also print up to which time the trace is complete"},
	{0, "strict", OPTION_FLAG, AT(strict), NULL, "exit with 3 if anything was lost"},
	{'v', "verbose", OPTION_FLAG, AT(verbose), NULL, "tell on standard error what is set up"},
	{0},
};

static const struct command_def trace_command = {
	.name = "trace",
	.synopsis = "[OPTION]... [[--] COMMAND [ARG]...]",
	.about =
		"Prints the kernel's events of all CPUs as one stream in true time order. What was\n"
		"lost stands in it as a gap, with its place and count. With COMMAND, runs it and\n"
		"traces it and all that it starts. Needs root, or CAP_BPF and CAP_PERFMON.\n"
		"Ctrl-C ends the trace (while COMMAND runs, the first is COMMAND's); SIGUSR1 prints the account so far.",
	.after =
		"Examples:\n"
		"  weir trace                              every fork, exec and exit\n"
		"  weir trace ls /tmp                      what ls does, and how long it takes\n"
		"  weir trace -e sys:openat,unlink -p 123  files that 123 and its children touch\n"
		"  weir trace -e process,sched -e signal --format json -o trace.json -d 10\n"
		"  weir verify trace.json                  check it\n\n"
		"Exit status: 0 done, 1 failed, 2 wrong usage, 3 something was lost (--strict).\n"
		"With COMMAND: its own, 128 + N when signal N ended it or weir, 125 when weir failed or was\n"
		"stopped before COMMAND began, 126 when it could not be run, 127 when there is none.",
	.runs_command = true,
	.options = trace_options,
};

#define SAY(...) say(&trace_command, __VA_ARGS__)

/* ---- an event on its way to the sink ---------------------------------------------------------- */

static bool enough(const struct trace *t)
{
	return t->opts.max_events && t->printed >= t->opts.max_events;
}

static void count_printed(struct trace *t)
{
	t->printed_since_watermark = true;
	t->printed++;
}

static void notice(struct trace *t, const struct weir_event *event)
{
	printer__notice(&t->printer, event);
	t->printed_since_watermark = true;
}

/* A record whose payload makes no sense: counted, and its place shown. */
static void give_up(struct trace *t, const struct weir_event *event)
{
	struct weir_gap gap = {
		.from_ns = event->stamp_ns ? event->stamp_ns - 1 : 0,
		.to_ns = event->stamp_ns,
		.lost = 1,
		.cause = WEIR_LOST_BROKEN,
	};
	struct weir_event lost = *event;

	lost.kind = WEIR_KIND_GAP;
	lost.data = &gap;
	lost.len = sizeof(gap);
	weir_stream__count_lost(t->stream, event->source, 1, WEIR_LOST_BROKEN);
	notice(t, &lost);
}

static void filter_out(struct trace *t, const struct weir_event *event)
{
	weir_stream__count_filtered(t->stream, event->source, 1);
}

static int on_call(void *ctx, const struct weir_call *call)
{
	const struct weir_event *halves[] = {call->enter, call->exit};
	void (*fate)(struct trace * t, const struct weir_event *event) = NULL;
	struct trace *t = ctx;
	int printed;

	/* The clone that a child returns from is its parent's call. */
	if (enough(t) || call->end == WEIR_CALL_BORN) {
		fate = filter_out;
	} else {
		printed = printer__call(&t->printer, call);
		if (printed)
			fate = printed == PRINTER_FILTERED ? filter_out : give_up;
	}
	if (!fate)
		count_printed(t);
	for (int i = 0; fate && i < 2; i++)
		if (halves[i])
			fate(t, halves[i]);
	return 0;
}

static bool is_half_of_call(const struct weir_event *event)
{
	return event->type == WEIR_T_SYS_ENTER || event->type == WEIR_T_SYS_EXIT;
}

/* Before COMMAND's exec, its process is ours: it returns from waiting to be let go. */
static bool before_command(struct trace *t, const struct weir_event *event)
{
	const struct weir_task_id *id = event->data;

	if (!t->has_command || t->command_began || event->len < sizeof(*id))
		return false;
	if (id->pid != (uint32_t)t->command.pid)
		return false;
	t->command_began = event->type == WEIR_T_SYS_ENTER;
	return !t->command_began;
}

/* The exec that begins COMMAND is told by its call, which is to be the first line. */
static bool is_first_exec(struct trace *t, const struct weir_event *event)
{
	const struct weir_task_id *id = event->data;

	if (!t->calls || !t->command_began || t->command_execed || event->type != WEIR_T_EXEC ||
	    event->len < sizeof(*id) || id->pid != (uint32_t)t->command.pid)
		return false;
	t->command_execed = true;
	return true;
}

static bool selected(struct trace *t, const struct weir_event *event)
{
	if (event->type >= 32 || !(t->selection.types >> event->type & 1))
		return false;
	if (is_first_exec(t, event))
		return false;
	return !is_half_of_call(event) || !before_command(t, event);
}

static void print_record(struct trace *t, const struct weir_event *event)
{
	int printed = enough(t) ? PRINTER_FILTERED : printer__record(&t->printer, event);

	if (printed == PRINTER_FILTERED)
		filter_out(t, event);
	else if (printed)
		give_up(t, event);
	else
		count_printed(t);
}

static int on_event(void *ctx, const struct weir_event *event)
{
	struct trace *t = ctx;
	bool wanted;
	int err;

	if (event->kind != WEIR_KIND_RECORD) {
		notice(t, event);
		err = t->calls ? calls__apply(t->calls, event) : 0;
		if (t->printer.fdnames)
			fdnames__apply(t->printer.fdnames, event);
		return err;
	}
	if (event->type <= WEIR_T_LIFE_MAX)
		tasks__apply(t->printer.tasks, event);
	wanted = selected(t, event);
	if (!wanted)
		filter_out(t, event);
	if (t->calls && (wanted || !is_half_of_call(event)) &&
	    calls__apply(t->calls, event) == -EBADMSG && wanted) {
		give_up(t, event);
		return 0;
	}
	if (t->printer.fdnames)
		fdnames__apply(t->printer.fdnames, event);
	if (wanted && !(t->calls && is_half_of_call(event)))
		print_record(t, event);
	return 0;
}

static void on_watermark(void *ctx, uint64_t watermark_ns, enum weir_order order)
{
	struct trace *t = ctx;

	tasks__retire(t->printer.tasks, watermark_ns);
	if (!t->opts.watermarks)
		return;
	if (!t->printed_since_watermark && watermark_ns - t->last_watermark_ns < WATERMARK_EVERY_NS)
		return;
	printer__watermark(&t->printer, watermark_ns, order);
	t->printed_since_watermark = false;
	t->last_watermark_ns = watermark_ns;
}

/* ---- what the user asked for ------------------------------------------------------------------ */

static const char *default_events(const struct trace *t)
{
	if (t->opts.summary_only)
		return "sys";
	return t->has_command || t->opts.pids.count || t->opts.summary ? "process,signal,sys"
								       : "process";
}

static size_t floor_power_of_two(uint64_t n)
{
	return n ? (size_t)1 << (63 - __builtin_clzll(n)) : 0;
}

/* The buffer as one CPU's two rings; false, and said why, when it is too small or too large. */
static bool split_buffer(struct trace *t)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t cpus = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t share = t->opts.buffer / cpus;

	t->life_bytes = floor_power_of_two(share / 8);
	t->event_bytes = floor_power_of_two(share - share / 8);
	if (t->life_bytes < page) {
		SAY("--buffer %llu is too small for %llu CPUs: the least that works is %lluk",
		    (unsigned long long)t->opts.buffer, (unsigned long long)cpus,
		    (unsigned long long)(8 * page * cpus / 1024));
		return false;
	}
	if (t->event_bytes > 1u << 30) {
		SAY("--buffer is too large: at most 2G a CPU, so %lluG here",
		    2 * (unsigned long long)cpus);
		return false;
	}
	return true;
}

static bool is_json(const struct trace *t)
{
	return !strcmp(t->opts.format, "json");
}

/* -c is a sink of its own, which takes whole calls and nothing else. */
static bool check_summary(struct trace *t)
{
	if (t->opts.summary && !t->opts.summary_only && !strcmp(t->opts.format, "json")) {
		SAY("-C prints lines for people; in JSON there is -c, one object");
		return false;
	}
	if (t->opts.summary_only) {
		t->printer.sink = sink__find("none");
		t->opts.pair = true;
	}
	return true;
}

static bool check_options(struct trace *t)
{
	if (!t->opts.format)
		t->opts.format = "text";
	t->printer.sink = sink__find(t->opts.format);
	if (!t->printer.sink) {
		SAY("there is no format '%s': text, json or none", t->opts.format);
		return false;
	}
	t->opts.pair |= t->opts.fds;
	if (!check_summary(t) || !filter__check(&t->opts.filter, &trace_command))
		return false;
	if (t->opts.children && t->opts.no_follow) {
		SAY("--children and --no-follow exclude each other");
		return false;
	}
	t->selection.children = t->opts.children;
	t->selection.no_follow = t->opts.no_follow;
	if (filter__needs_calls(&t->opts.filter) && is_json(t) && !t->opts.pair) {
		SAY("--failed, --errno and --min-duration ask for whole calls: add --pair");
		return false;
	}
	t->printer.filter = filter__is_set(&t->opts.filter) ? &t->opts.filter : NULL;
	if (!t->opts.buffer)
		t->opts.buffer = DEFAULT_BUFFER;
	if (!t->opts.string_limit)
		t->opts.string_limit = DEFAULT_STRING;
	if (t->opts.string_limit > STRING_LIMIT_MAX) {
		SAY("--string-limit is at most %u", STRING_LIMIT_MAX);
		return false;
	}
	t->selection.string_limit = (uint32_t)t->opts.string_limit;
	if (!style__words(&trace_command, t->opts.time, t->opts.color))
		return false;
	return split_buffer(t) &&
	       selection__events(&trace_command, &t->opts.events, default_events(t),
				 &t->selection) &&
	       selection__pids(&trace_command, &t->opts.pids, t->pids, &t->selection);
}

/* ---- set up ----------------------------------------------------------------------------------- */

/* What a shell returns for a program that is not there, or may not be run. */
static int find_program(struct trace *t, const char *name)
{
	int err = command__find(name, t->program, sizeof(t->program));

	if (!err)
		return EXIT_OK;
	SAY("%s: %s", name, strerror(-err));
	return err == -ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUN;
}

static bool fork_command(struct trace *t, char **argv)
{
	int err;

	if (!t->has_command)
		return true;
	err = command__fork(&t->command, t->program, argv);
	if (err) {
		SAY("cannot fork: %s", strerror(-err));
		return false;
	}
	t->pids[t->selection.nr_pids++] = (uint32_t)t->command.pid;
	t->selection.pids = t->pids;
	return true;
}

/* What it holds stays until the trace has begun: see empty_files(). -1, and said why. */
static int create_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		SAY("%s: %s", path, strerror(errno));
	return fd;
}

static bool is_same_file(int fd, const char *path)
{
	struct stat a, b;

	if (fstat(fd, &a) || stat(path, &b))
		return false;
	return S_ISREG(a.st_mode) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* In one file the account, at an offset of its own, would stand on the first events. */
static bool open_ledger(struct trace *t)
{
	if (is_same_file(t->out_fd, t->opts.ledger)) {
		SAY("%s: the trace goes there already; --ledger needs a file of its own",
		    t->opts.ledger);
		return false;
	}
	t->ledger_fd = create_file(t->opts.ledger);
	return t->ledger_fd >= 0;
}

/* EBADF only shows when something is written: a trace in which nothing happens would look well. */
static bool is_writable(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && !(flags & O_PATH);
}

static bool writes_events(const struct trace *t)
{
	return t->opts.summary_only || t->opts.summary || strcmp(t->opts.format, "none") != 0;
}

/* A file that can't be made is said now, and not when what should stand in it is there. */
static bool open_files(struct trace *t)
{
	const char *path = t->opts.output;

	t->out_fd = t->has_command ? STDERR_FILENO : STDOUT_FILENO;
	if (path)
		t->out_fd = strcmp(path, "-") != 0 ? create_file(path) : STDOUT_FILENO;
	if (t->out_fd < 0)
		return false;
	if (writes_events(t) && !is_writable(t->out_fd)) {
		SAY("the output: %s", strerror(EBADF));
		return false;
	}
	if (t->opts.ledger && !open_ledger(t))
		return false;
	t->printer.out = out__new(t->out_fd, OUT_BUFFER_BYTES, &stop__requested, STOP_GRACE_MS);
	if (!t->printer.out) {
		SAY("out of memory");
		return false;
	}
	style__fill(&t->style, t->opts.time, t->opts.color, t->out_fd);
	out__set_style(t->printer.out, &t->style);
	return true;
}

static bool open_calls(struct trace *t)
{
	bool counted = t->opts.summary || t->opts.summary_only;

	if (counted && !(t->printer.counts = counts__new()))
		return false;
	if (!counted && !filter__needs_calls(&t->opts.filter) &&
	    (!t->printer.sink->call || (is_json(t) && !t->opts.pair)))
		return true;
	t->calls = calls__new(0, on_call, t);
	return t->calls;
}

static bool open_stream(struct trace *t)
{
	struct weir_stream_opts opts = {
		.sz = sizeof(opts),
		.on_event = on_event,
		.on_watermark = on_watermark,
		.ctx = t,
		.memory_bytes = MEMORY_BYTES + t->opts.buffer,
	};

	t->stream = weir_stream__new(&opts);
	t->printer.stream = t->stream;
	t->printer.tasks = tasks__new(0);
	if (!t->stream || !t->printer.tasks || !open_calls(t)) {
		SAY("cannot make the stream: %s", strerror(errno));
		return false;
	}
	t->cgroupfs = cgroupfs__open(NULL);
	if (t->cgroupfs)
		tasks__set_cgroup_resolver(t->printer.tasks, cgroupfs__resolve, t->cgroupfs);
	return true;
}

static void on_seed(void *ctx, const struct weir_seed *seed, const char *exe, const char *cgroups)
{
	struct trace *t = ctx;

	tasks__seed(t->printer.tasks, seed, exe, cgroups);
}

/* Processes that are about to be traced are looked at before they go on. */
static bool open_fdnames(struct trace *t)
{
	t->printer.fdnames = fdnames__new(&t->selection);
	if (!t->printer.fdnames)
		return false;
	for (uint32_t i = 0; i < t->selection.nr_pids; i++)
		fdnames__meet(t->printer.fdnames, t->pids[i]);
	return true;
}

static bool start(struct trace *t)
{
	char err[512];

	if (!open_stream(t))
		return false;
	if (t->calls && t->opts.fds && !open_fdnames(t)) {
		SAY("out of memory");
		return false;
	}
	t->selection.has_uid = t->opts.filter.user;
	t->selection.uid = t->opts.filter.uid;
	/* On v1 hosts there is no such directory: then the paths that are known have to do. */
	if (t->opts.filter.cgroup && t->cgroupfs)
		t->selection.cgroup_fd = cgroupfs__open_dir(t->cgroupfs, t->opts.filter.cgroup);
	t->probes = probes__open(&t->selection, err, sizeof(err));
	if (t->selection.cgroup_fd > 0)
		close(t->selection.cgroup_fd);
	if (!t->probes ||
	    probes__connect(t->probes, t->stream, t->life_bytes, t->event_bytes, err,
			    sizeof(err)) ||
	    probes__attach(t->probes, on_seed, t, err, sizeof(err))) {
		SAY("%s", err);
		return false;
	}
	priority__raise();
	if (privileges__drop()) {
		SAY("cannot give up privileges: %s", strerror(errno));
		return false;
	}
	if (t->opts.verbose)
		SAY("tracing; rings a CPU: %zu bytes for events, %zu for fork, exec and exit",
		    t->event_bytes, t->life_bytes);
	return true;
}

/* ---- run -------------------------------------------------------------------------------------- */

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static int poll_timeout_ms(uint64_t end_ns)
{
	uint64_t now = now_ns();

	if (end_ns <= now)
		return 0;
	if (end_ns - now < POLL_MS * 1000000ull)
		return (int)((end_ns - now + 999999) / 1000000);
	return POLL_MS;
}

/* The processes that were asked for are gone. */
static bool all_ended(struct trace *t)
{
	if (t->has_command && command__ended(&t->command))
		stop__spare_no_more();
	if (!t->selection.nr_pids)
		return false;
	if (t->has_command && t->opts.no_wait)
		return command__ended(&t->command);
	return !probes__alive(t->probes);
}

static bool over(struct trace *t, uint64_t end_ns)
{
	return stop__requested || enough(t) || now_ns() >= end_ns || out__error(t->printer.out) ||
	       all_ended(t);
}

/* The terminal is COMMAND's, too, if there is one. */
static bool is_live(const struct trace *t)
{
	return t->opts.summary_only && !t->has_command && !is_json(t) && isatty(t->out_fd);
}

static void refresh(struct trace *t)
{
	uint64_t now = now_ns();

	if (!is_live(t) || now - t->drawn_ns < NSEC_PER_SEC)
		return;
	t->drawn_ns = now;
	counts__draw(t->printer.counts, t->stream, t->printer.out, t->out_fd);
}

static int run(struct trace *t)
{
	uint64_t end_ns = t->opts.duration_ns ? now_ns() + t->opts.duration_ns : UINT64_MAX;

	while (!over(t, end_ns)) {
		int count = weir_stream__poll(t->stream, poll_timeout_ms(end_ns));

		if (count < 0 && count != -EINTR)
			return count;
		out__flush(t->printer.out);
		refresh(t);
		if (stop__ledger_wanted())
			account__write(t->stream, STDERR_FILENO, is_json(t));
	}
	return 0;
}

static void count_unwritten(void *ctx, uint32_t source, uint64_t events)
{
	struct trace *t = ctx;

	weir_stream__count_lost(t->stream, source, events, WEIR_LOST_OUTPUT);
}

/* Everything that was published comes out, then the account is taken. */
static int finish(struct trace *t)
{
	int err;

	probes__detach(t->probes);
	err = weir_stream__close(t->stream);
	if (err)
		SAY("the last events could not be read: %s", strerror(-err));
	if (t->calls)
		calls__finish(t->calls, now_ns());
	if (is_live(t))
		counts__wipe(t->printer.out);
	else if (t->opts.summary && !t->opts.summary_only)
		out__char(t->printer.out, '\n');
	if (t->printer.counts)
		counts__print(t->printer.counts, t->stream, t->printer.out, is_json(t));
	out__flush(t->printer.out);
	out__unwritten(t->printer.out, count_unwritten, t);
	return err;
}

/* Calls that were handed out unfinished, for they were too many to remember. */
static void say_evicted(const struct trace *t)
{
	uint64_t evicted = t->calls ? calls__evicted(t->calls) : 0;

	if (evicted)
		SAY("more calls were open at once than can be remembered: %llu are marked unfinished",
		    (unsigned long long)evicted);
}

static int report(struct trace *t)
{
	int err = out__error(t->printer.out), ledger_err = 0;

	/* A reader that has gone away has what it wanted; a stop has cut the rest short. */
	if (err == -EPIPE || err == -ECANCELED)
		err = 0;
	if (err)
		SAY("%s: %s", t->opts.output ? t->opts.output : "the output", strerror(-err));
	say_evicted(t);
	account__write(t->stream, STDERR_FILENO, is_json(t));
	if (t->opts.ledger)
		ledger_err = account__write(t->stream, t->ledger_fd, true);
	if (ledger_err)
		SAY("%s: %s", t->opts.ledger, strerror(-ledger_err));
	return err ? err : ledger_err;
}

static void free_trace(struct trace *t)
{
	if (t->printer.out && t->out_fd > STDERR_FILENO)
		close(t->out_fd);
	if (t->ledger_fd >= 0)
		close(t->ledger_fd);
	command__abandon(&t->command);
	out__free(t->printer.out);
	probes__free(t->probes);
	calls__free(t->calls);
	fdnames__free(t->printer.fdnames);
	counts__free(t->printer.counts);
	weir_stream__free(t->stream);
	tasks__free(t->printer.tasks);
	cgroupfs__close(t->cgroupfs);
	printer__free(&t->printer);
}

static bool start_command(struct trace *t, char **argv)
{
	int err;

	if (!t->has_command)
		return true;
	if (stop__requested)
		return false;
	err = command__start(&t->command);
	if (err && err != -EINTR)
		SAY("%s: %s", argv[0], strerror(-err));
	return !err;
}

/* What COMMAND would have returned to its shell. */
static int command_status(struct trace *t)
{
	/* Stopped before that: what did not run is not to be taken for what succeeded. */
	if (!command__was_let_go(&t->command))
		return EXIT_WEIR_FAILED;
	/* The probes see it end before its parent can. */
	if (!probes__alive(t->probes))
		command__wait(&t->command);
	if (command__ended(&t->command))
		return command__status(&t->command);
	/* It outlives the trace: there is nothing to say of it but why we stopped looking. */
	return stop__requested ? 128 + stop__signal : EXIT_OK;
}

/* What stood there before a trace that could not begin is still there. */
static bool empty_file(int fd, const char *path)
{
	struct stat st;

	if (!path || fd <= STDERR_FILENO || fstat(fd, &st) || !S_ISREG(st.st_mode))
		return true;
	if (!ftruncate(fd, 0))
		return true;
	SAY("%s: %s", path, strerror(errno));
	return false;
}

static int trace(struct trace *t, char **argv)
{
	int failed = t->has_command ? EXIT_WEIR_FAILED : EXIT_FAILED;
	bool bad;
	int err;

	if (!open_files(t) || !fork_command(t, argv))
		return failed;
	if (!t->selection.nr_pids && !t->opts.all && isatty(t->out_fd))
		selection__leave_ancestors_out(t->pids, &t->selection);
	if (!start(t) || !empty_file(t->out_fd, t->opts.output) ||
	    !empty_file(t->ledger_fd, t->opts.ledger))
		return failed;
	bad = false;
	if (start_command(t, argv)) {
		err = run(t);
		if (err)
			SAY("%s", strerror(-err));
		bad = err;
	}
	bad |= finish(t) != 0;
	bad |= report(t) != 0;
	if (bad)
		return failed;
	if (t->opts.strict && account__lost_anything(t->stream))
		return EXIT_LOST;
	return t->has_command ? command_status(t) : EXIT_OK;
}

int cmd_trace(int argc, char **argv)
{
	static struct trace t = {.out_fd = -1, .ledger_fd = -1};
	int status, operand;

	operand = options__parse(&trace_command, argc, argv, &t.opts, &status);
	if (operand < 0)
		return status;
	if (t.opts.list) {
		selection__list();
		return EXIT_OK;
	}
	t.has_command = operand < argc;
	if (!check_options(&t))
		return EXIT_USAGE;
	status = t.has_command ? find_program(&t, argv[operand]) : EXIT_OK;
	if (status != EXIT_OK)
		return status;
	if (stop__install(t.has_command)) {
		SAY("cannot catch signals: %s", strerror(errno));
		return t.has_command ? EXIT_WEIR_FAILED : EXIT_FAILED;
	}
	status = trace(&t, argv + operand);
	free_trace(&t);
	return status;
}
