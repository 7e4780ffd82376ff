/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace.c - `weir trace`: the live kernel's events in true time order.
 *
 * Puts the rooms together: probes write, the stream orders, the task table says who, a sink prints.
 * Every record that the stream delivers is printed, or counted as filtered or lost: the ledger at the
 * end closes, or says by how much it does not.
 */
#include "cli/account.h"
#include "cli/buffers.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/descriptors.h"
#include "cli/open_calls.h"
#include "cli/outputs.h"
#include "cli/outside.h"
#include "cli/printer.h"
#include "cli/priority.h"
#include "cli/privileges.h"
#include "cli/selection.h"
#include "cli/stop.h"
#include "cli/style.h"
#include "cli/trace_options.h"
#include "probes/probes.h"
#include "state/calls.h"
#include "state/cgroupfs.h"

#include <weir/weir.h>

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NSEC_PER_SEC	 1000000000ull
#define OUT_BUFFER_BYTES (256u << 10)
#define STOP_GRACE_MS	 400
#define POLL_MS		 200 /* how late a signal that came between two calls may be seen */
#define WATERMARK_EVERY_NS \
	NSEC_PER_SEC		 /* on an idle machine; while events flow, behind each batch */
#define MEMORY_BYTES (64u << 20) /* beside the rings: indexes, and what has to wait */

struct trace {
	struct trace_options opts;
	struct probes_selection selection;
	uint32_t pids[SELECTION_PIDS_MAX + 1];
	struct command command;
	char program[PATH_MAX];
	const char *name; /* COMMAND, as it was given */
	bool has_command, command_began;
	bool waiting_said;
	bool container_seen; /* of --container, when the trace began */
	struct buffers buffers;
	struct outputs outputs;

	struct weir_stream *stream;
	struct probes *probes;
	struct cgroupfs *cgroupfs;
	struct outside outside;
	struct calls *calls; /* NULL: enter and exit are printed apart */
	struct printer printer;
	struct style style;

	uint64_t drawn_ns; /* the table of -c, on a terminal */
	uint64_t printed;
	uint64_t last_watermark_ns; /* printed */
	bool printed_since_watermark;
};

#define SAY(...) say(&trace_command, __VA_ARGS__)

static bool is_json(const struct trace *t)
{
	return trace_options__is_json(&t->opts);
}

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

/*
 * A record whose payload makes no sense: counted, and a gap from before it to where the stream is, at
 * `now_ns`: of an enter that is later, when its exit has come.
 */
static void give_up_at(struct trace *t, const struct weir_event *event, uint64_t now_ns)
{
	struct weir_gap gap = {
		.from_ns = event->stamp_ns ? event->stamp_ns - 1 : 0,
		.to_ns = now_ns,
		.lost = 1,
		.cause = WEIR_LOST_BROKEN,
	};
	struct weir_event lost = *event;

	lost.kind = WEIR_KIND_GAP;
	lost.stamp_ns = now_ns;
	lost.data = &gap;
	lost.len = sizeof(gap);
	weir_stream__count_lost(t->stream, event->source, 1, WEIR_LOST_BROKEN);
	notice(t, &lost);
}

static void give_up(struct trace *t, const struct weir_event *event)
{
	give_up_at(t, event, event->stamp_ns);
}

static void filter_out(struct trace *t, const struct weir_event *event)
{
	weir_stream__count_filtered(t->stream, event->source, 1);
}

static int print_call(struct trace *t, const struct weir_call *call)
{
	/* The clone that a child returns from is its parent's call. */
	if (enough(t) || call->end == WEIR_CALL_BORN)
		return PRINTER_FILTERED;
	return printer__call(&t->printer, call);
}

static int on_call(void *ctx, const struct weir_call *call)
{
	const struct weir_event *halves[] = {call->found ? NULL : call->enter, call->exit};
	struct trace *t = ctx;
	int printed = print_call(t, call);

	if (!printed)
		count_printed(t);
	for (int i = 0; printed && i < 2; i++) {
		if (halves[i] && printed == PRINTER_FILTERED)
			filter_out(t, halves[i]);
		else if (halves[i])
			give_up_at(t, halves[i], call->stamp_ns);
	}
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

static bool selected(struct trace *t, const struct weir_event *event)
{
	if (event->type >= 32 || !(t->selection.types >> event->type & 1))
		return false;
	return !is_half_of_call(event) || !before_command(t, event);
}

static void account_for(struct trace *t, const struct weir_event *event, int printed)
{
	if (printed == PRINTER_FILTERED)
		filter_out(t, event);
	else if (printed)
		give_up(t, event);
	else
		count_printed(t);
}

static void print_record(struct trace *t, const struct weir_event *event)
{
	account_for(t, event, enough(t) ? PRINTER_FILTERED : printer__record(&t->printer, event));
}

static int decode_and_print(struct trace *t, const struct weir_event *event)
{
	struct weir_decoded decoded;
	int err = outside__decode(&t->outside, event, t->printer.tasks, &decoded);

	if (err)
		return err == OUTSIDE_FILTERED ? PRINTER_FILTERED : err;
	return printer__decoded(&t->printer, event, &decoded);
}

static void on_outside(struct trace *t, const struct weir_event *event)
{
	if (event->kind != WEIR_KIND_RECORD)
		notice(t, event);
	else
		account_for(t, event, enough(t) ? PRINTER_FILTERED : decode_and_print(t, event));
}

static int on_event(void *ctx, const struct weir_event *event)
{
	struct trace *t = ctx;
	struct weir_event own;
	struct weir_gap own_gap;
	bool wanted;
	int err;

	if (outside__owns(&t->outside, event, &own, &own_gap)) {
		on_outside(t, &own);
		return 0;
	}
	if (event->kind != WEIR_KIND_RECORD) {
		notice(t, event);
		err = t->calls ? calls__apply(t->calls, event) : 0;
		if (t->printer.fdnames)
			fdnames__apply(t->printer.fdnames, event);
		return err;
	}
	if (event->type <= WEIR_T_LIFE_MAX) {
		tasks__apply(t->printer.tasks, event);
		outside__follow(&t->outside, event);
	}
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

static bool selects_calls(const struct trace *t)
{
	return t->selection.types & (1u << WEIR_T_SYS_ENTER | 1u << WEIR_T_SYS_EXIT);
}

static bool select_events(struct trace *t)
{
	struct trace_options *opts = &t->opts;
	const char *otherwise = trace_options__default_events(opts, t->has_command);
	bool none = !opts->events.count;

	t->outside.filter = opts->tracepoint_filter;
	if (!outside__choose(&t->outside, &trace_command, &opts->events, &opts->maps))
		return false;
	/* Tracepoints or maps alone are all that is asked for. */
	if (opts->events.count || (none && otherwise)) {
		if (!selection__events(&trace_command, &opts->events, otherwise, &t->selection))
			return false;
	}
	if (filter__needs_calls(&opts->filter) && !selects_calls(t)) {
		SAY("%s selects system calls: add sys to -e", filter__of_calls(&opts->filter));
		return false;
	}
	if (outside__is_used(&t->outside))
		buffers__share(&t->buffers, t->selection.types >> (WEIR_T_LIFE_MAX + 1));
	return true;
}

static bool check_options(struct trace *t)
{
	struct trace_options *opts = &t->opts;

	if (!trace_options__check(opts) ||
	    !buffers__split(&trace_command, opts->buffer, &t->buffers))
		return false;
	/* -c is a sink of its own, which takes whole calls and nothing else. */
	t->printer.sink = sink__find(opts->summary_only ? "none" : opts->format);
	t->printer.filter = filter__is_set(&opts->filter) ? &opts->filter : NULL;
	t->selection.children = opts->children;
	t->selection.no_follow = opts->no_follow;
	t->selection.string_limit = (uint32_t)opts->string_limit;
	t->selection.has_uid = opts->filter.user;
	t->selection.uid = opts->filter.uid;
	if (!select_events(t) ||
	    !selection__pids(&trace_command, &opts->pids, t->pids, &t->selection))
		return false;
	/* A shell that waits for weir would be waited for. */
	opts->no_wait |= t->has_command && selection__has_ancestor(&t->selection);
	return true;
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

static bool writes_lines(const struct trace *t)
{
	return trace_options__counts(&t->opts) || strcmp(t->opts.format, "none") != 0;
}

static bool open_outputs(struct trace *t)
{
	t->outputs.trace_path = t->opts.output;
	t->outputs.ledger_path = t->opts.ledger;
	if (!outputs__open(&trace_command, &t->outputs,
			   t->has_command ? STDERR_FILENO : STDOUT_FILENO, writes_lines(t)))
		return false;
	t->printer.out = out__new(t->outputs.trace_fd, OUT_BUFFER_BYTES, &stop__requested,
				  STOP_GRACE_MS);
	if (!t->printer.out) {
		SAY("out of memory");
		return false;
	}
	style__fill(&t->style, t->opts.time, t->opts.color, t->outputs.trace_fd);
	out__set_style(t->printer.out, &t->style);
	return true;
}

static bool open_calls(struct trace *t)
{
	bool counted = trace_options__counts(&t->opts);

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
		.memory_bytes = MEMORY_BYTES + t->buffers.total,
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
	struct task_view view;

	tasks__seed(t->printer.tasks, seed, exe, cgroups);
	if (t->opts.filter.container && !t->container_seen)
		t->container_seen = tasks__find(t->printer.tasks, seed->id.tid, UINT64_MAX,
						&view) &&
				    filter__is_container(&t->opts.filter, view.container);
}

/* What is not there may come yet, or was mistyped. */
static void say_missing(const struct trace *t)
{
	const struct filter *filter = &t->opts.filter;

	if (filter->container && !t->container_seen)
		SAY("there is no container %s yet: waiting for it", filter->container);
	if (filter->cgroup && t->selection.cgroup_fd == -ENOENT)
		SAY("there is no cgroup %s yet: waiting for it", filter->cgroup);
}

static bool open_fdnames(struct trace *t)
{
	t->printer.shows_fds = t->opts.fds;
	if (!t->calls || !(t->opts.fds || filter__needs_fds(&t->opts.filter)))
		return true;
	t->printer.fdnames = fdnames__new(&t->selection);
	if (!t->printer.fdnames)
		SAY("out of memory");
	return t->printer.fdnames;
}

static void on_open_call(void *ctx, const struct weir_event *enter)
{
	calls__found(ctx, enter);
}

/*
 * What the processes have open and wait in. They are looked at once their events come: what they
 * close or leave from now on is told, and what they did between is told again.
 */
static void look_at_processes(struct trace *t)
{
	for (uint32_t i = 0; i < t->selection.nr_pids; i++) {
		if (t->printer.fdnames)
			fdnames__meet(t->printer.fdnames, t->pids[i]);
		/* COMMAND waits for us. */
		if (t->calls && !t->has_command)
			open_calls__find(&t->selection, t->pids[i], on_open_call, t->calls);
	}
}

static void say_start_failed(const char *why)
{
	if (strstr(why, strerror(EMFILE)) && descriptors__limit() < descriptors__needed())
		SAY("%s: this takes %llu here, and %llu are allowed; try ulimit -n %llu", why,
		    (unsigned long long)descriptors__needed(),
		    (unsigned long long)descriptors__limit(),
		    (unsigned long long)descriptors__needed());
	else
		SAY("%s", why);
}

/* Last, since these are written as soon as they are there. */
static bool connect_outside(struct trace *t)
{
	uint32_t command_pid = t->has_command ? (uint32_t)t->command.pid : 0;

	if (!outside__select(&t->outside, &t->selection, command_pid))
		return false;
	if (t->selection.children)
		outside__add_children(&t->outside, t->printer.tasks);
	return outside__connect(&t->outside, t->stream, t->buffers.outside_bytes);
}

static bool start(struct trace *t)
{
	char err[512];

	descriptors__raise_limit();
	if (!open_stream(t) || !open_fdnames(t))
		return false;
	/* On v1 hosts there is no such directory: then the paths that are known have to do. */
	if (t->opts.filter.cgroup && t->cgroupfs)
		t->selection.cgroup_fd = cgroupfs__open_dir(t->cgroupfs, t->opts.filter.cgroup);
	t->probes = probes__open(&t->selection, err, sizeof(err));
	if (t->selection.cgroup_fd > 0)
		close(t->selection.cgroup_fd);
	if (!t->probes ||
	    probes__connect(t->probes, t->stream, t->buffers.life_bytes, t->buffers.event_bytes,
			    err, sizeof(err)) ||
	    probes__attach(t->probes, on_seed, t, err, sizeof(err))) {
		say_start_failed(err);
		return false;
	}
	look_at_processes(t);
	if (!connect_outside(t))
		return false;
	priority__raise();
	if (privileges__drop()) {
		SAY("cannot give up privileges: %s", strerror(errno));
		return false;
	}
	say_missing(t);
	if (t->opts.verbose)
		SAY("tracing; rings a CPU: %zu bytes for events, %zu for fork, exec and exit",
		    t->buffers.event_bytes, t->buffers.life_bytes);
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

/* A prompt that does not come back looks like a hang. */
static void say_waiting(struct trace *t, uint64_t alive)
{
	if (t->waiting_said || !alive || !isatty(STDERR_FILENO))
		return;
	t->waiting_said = true;
	SAY("%s has ended; waiting for %llu more (Ctrl-C, or --no-wait)", t->name,
	    (unsigned long long)alive);
}

/* The processes that were asked for are gone. */
static bool all_ended(struct trace *t)
{
	bool command_ended = t->has_command && command__ended(&t->command);
	uint64_t alive;

	if (command_ended)
		stop__spare_no_more();
	if (!t->selection.nr_pids)
		return false;
	if (t->has_command && t->opts.no_wait)
		return command_ended;
	alive = probes__alive(t->probes);
	if (command_ended)
		say_waiting(t, alive);
	return !alive;
}

static bool over(struct trace *t, uint64_t end_ns)
{
	return stop__requested || enough(t) || now_ns() >= end_ns || out__error(t->printer.out) ||
	       all_ended(t);
}

/* The terminal is COMMAND's, too, if there is one. */
static bool is_live(const struct trace *t)
{
	return t->opts.summary_only && !t->has_command && !is_json(t) &&
	       isatty(t->outputs.trace_fd);
}

static void refresh(struct trace *t)
{
	uint64_t now = now_ns();

	if (!is_live(t) || now - t->drawn_ns < NSEC_PER_SEC)
		return;
	t->drawn_ns = now;
	counts__draw(t->printer.counts, t->stream, t->printer.out, t->outputs.trace_fd);
}

static int run(struct trace *t)
{
	uint64_t end_ns = t->opts.duration_ns ? now_ns() + t->opts.duration_ns : UINT64_MAX;

	if (t->opts.duration_ns)
		stop__at(end_ns);
	while (!over(t, end_ns)) {
		int count = weir_stream__poll(t->stream, poll_timeout_ms(end_ns));

		if (count < 0 && count != -EINTR)
			return count;
		out__flush(t->printer.out);
		refresh(t);
		if (stop__ledger_wanted())
			account__say(t->stream, is_json(t), t->outputs.trace_fd);
	}
	return 0;
}

static void count_unwritten(void *ctx, uint32_t source, uint64_t events)
{
	struct trace *t = ctx;

	weir_stream__count_lost(t->stream, source, events, WEIR_LOST_OUTPUT);
}

static void detach(void *probes)
{
	probes__detach(probes);
}

/* Everything that was published comes out, then the account is taken. */
static int finish(struct trace *t)
{
	int err;

	/* That takes grace periods, in which rings that are not the probes' go on being written. */
	fencing__read_while(&t->outside.fencing, t->stream, detach, t->probes);
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

/* Nobody ends it for us, and its parent is gone. */
static void say_running(struct trace *t)
{
	if (t->has_command && command__was_let_go(&t->command) && probes__alive(t->probes) &&
	    !command__ended(&t->command))
		SAY("%s (pid %d) still runs", t->name, (int)t->command.pid);
}

static bool reader_is_gone(const struct trace *t)
{
	return out__error(t->printer.out) == -EPIPE;
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
	say_running(t);
	account__say(t->stream, is_json(t), t->outputs.trace_fd);
	if (t->opts.ledger)
		ledger_err = account__write(t->stream, t->outputs.ledger_fd, ACCOUNT_JSON);
	if (ledger_err)
		SAY("%s: %s", t->opts.ledger, strerror(-ledger_err));
	return err ? err : ledger_err;
}

static void free_trace(struct trace *t)
{
	outputs__close(&t->outputs);
	command__abandon(&t->command);
	out__free(t->printer.out);
	probes__free(t->probes);
	outside__free(&t->outside);
	calls__free(t->calls);
	fdnames__free(t->printer.fdnames);
	counts__free(t->printer.counts);
	weir_stream__free(t->stream);
	tasks__free(t->printer.tasks);
	cgroupfs__close(t->cgroupfs);
	printer__free(&t->printer);
	filter__free(&t->opts.filter);
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
	return stop__signal ? 128 + stop__signal : EXIT_OK;
}

static int trace(struct trace *t, char **argv)
{
	int failed = t->has_command ? EXIT_WEIR_FAILED : EXIT_FAILED;
	bool bad;
	int err;

	if (!open_outputs(t) || !fork_command(t, argv))
		return failed;
	if (!t->selection.nr_pids && !t->opts.all && isatty(t->outputs.trace_fd))
		selection__leave_ancestors_out(t->pids, &t->selection);
	if (!start(t) || !outputs__empty(&trace_command, &t->outputs))
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
	if (t->opts.strict && account__is_loss(&trace_command, t->stream, reader_is_gone(t)))
		return EXIT_LOST;
	return t->has_command ? command_status(t) : EXIT_OK;
}

int cmd_trace(int argc, char **argv)
{
	static struct trace t = {.outputs = {.trace_fd = -1, .ledger_fd = -1}};
	int status, operand;

	operand = options__parse(&trace_command, argc, argv, &t.opts, &status);
	if (operand < 0)
		return status;
	if (t.opts.list) {
		if (operand < argc)
			return outside__list(&trace_command, argv + operand);
		selection__list();
		return EXIT_OK;
	}
	t.has_command = operand < argc;
	t.name = argv[operand];
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
