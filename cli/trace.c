/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace.c - `weir trace`: the live kernel's events in true time order.
 *
 * Puts the rooms together: the live kernel tells (live.h), and what is not weir's (outside.h); the
 * viewer makes lines of it. Here is what only a trace has: tracepoints and maps among the rest,
 * watermarks, and a table that is drawn while it is counted.
 */
#include "cli/account.h"
#include "cli/clock.h"
#include "cli/commands.h"
#include "cli/live.h"
#include "cli/open_calls.h"
#include "cli/outside.h"
#include "cli/stop.h"
#include "cli/trace_options.h"
#include "cli/viewer.h"

#include <weir/weir.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define DRAW_EVERY_NS	   NSEC_PER_SEC
/* On an idle machine; while events flow, behind each batch. */
#define WATERMARK_EVERY_NS NSEC_PER_SEC

struct trace {
	struct trace_options opts;
	struct live live;
	struct outside outside;
	struct viewer viewer;

	bool container_seen;	    /* of --container, when the trace began */
	uint64_t last_watermark_ns; /* printed */
	uint64_t drawn_ns;	    /* the table of -c, on a terminal */
};

#define SAY(...) say(&trace_command, __VA_ARGS__)

/* ---- events ----------------------------------------------------------------------------------- */

static void on_outside(struct trace *t, const struct weir_event *event)
{
	struct weir_decoded decoded;
	int err;

	if (event->kind != WEIR_KIND_RECORD) {
		viewer__notice(&t->viewer, event);
		return;
	}
	err = outside__decode(&t->outside, event, t->live.tasks, &decoded);
	viewer__decoded(&t->viewer, event, err == OUTSIDE_FILTERED ? PRINTER_FILTERED : err,
			&decoded);
}

static int on_event(void *ctx, const struct weir_event *event)
{
	struct trace *t = ctx;
	struct weir_event own;
	struct weir_gap own_gap;

	if (outside__owns(&t->outside, event, &own, &own_gap)) {
		on_outside(t, &own);
		return 0;
	}
	if (event->kind == WEIR_KIND_RECORD && event->type <= WEIR_T_LIFE_MAX)
		outside__follow(&t->outside, event);
	return viewer__event(&t->viewer, event);
}

static bool wants(void *ctx, const struct weir_event *event)
{
	struct trace *t = ctx;

	return !live__is_before_command(&t->live, event);
}

static void on_watermark(void *ctx, uint64_t watermark_ns, enum weir_order order)
{
	struct trace *t = ctx;

	tasks__retire(t->live.tasks, watermark_ns);
	if (!t->opts.watermarks)
		return;
	if (!t->viewer.has_news && watermark_ns - t->last_watermark_ns < WATERMARK_EVERY_NS)
		return;
	printer__watermark(&t->viewer.printer, watermark_ns, order);
	t->viewer.has_news = false;
	t->last_watermark_ns = watermark_ns;
}

/* ---- what the user asked for ------------------------------------------------------------------ */

static bool selects_calls(const struct trace *t)
{
	return t->live.selection.types & (1u << WEIR_T_SYS_ENTER | 1u << WEIR_T_SYS_EXIT);
}

static bool select_events(struct trace *t)
{
	const char *otherwise = trace_options__default_events(&t->opts, &t->live);
	struct option_list *events = &t->opts.live.events;
	const struct filter *filter = &t->opts.viewer.filter;
	bool none = !events->count;

	t->outside.filter = t->opts.tracepoint_filter;
	if (!outside__choose(&t->outside, &trace_command, events, &t->opts.maps))
		return false;
	/* Tracepoints or maps alone are all that is asked for. */
	if (!events->count && !none)
		otherwise = NULL;
	if (!live__check(&t->live, otherwise))
		return false;
	if (filter__needs_calls(filter) && !selects_calls(t)) {
		SAY("%s selects system calls: add sys to -e", filter__of_calls(filter));
		return false;
	}
	if (outside__is_used(&t->outside))
		buffers__share(&t->live.buffers, t->live.selection.types >> (WEIR_T_LIFE_MAX + 1));
	return true;
}

/* ---- set up ----------------------------------------------------------------------------------- */

static void on_seeded(void *ctx, const struct weir_seed *seed)
{
	struct trace *t = ctx;
	const struct filter *filter = &t->opts.viewer.filter;
	struct task_view view;

	if (filter->container && !t->container_seen)
		t->container_seen = tasks__find(t->live.tasks, seed->id.tid, UINT64_MAX, &view) &&
				    filter__is_container(filter, view.container);
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
	const struct probes_selection *selection = &t->live.selection;

	for (uint32_t i = 0; i < selection->nr_pids; i++) {
		if (t->viewer.printer.fdnames)
			fdnames__meet(t->viewer.printer.fdnames, selection->pids[i]);
		/* COMMAND waits for us. */
		if (t->viewer.calls && !t->live.has_command)
			open_calls__find(selection, selection->pids[i], on_open_call,
					 t->viewer.calls);
	}
}

/* Last, since these are written as soon as they are there. */
static bool connect_outside(struct trace *t)
{
	uint32_t command_pid = t->live.has_command ? (uint32_t)t->live.command.pid : 0;

	if (!outside__select(&t->outside, &t->live.selection, command_pid))
		return false;
	if (t->live.selection.children)
		outside__add_children(&t->outside, t->live.tasks);
	return outside__connect(&t->outside, t->live.stream, t->live.buffers.outside_bytes);
}

static bool start(struct trace *t)
{
	struct weir_stream_opts opts = {
		.sz = sizeof(opts),
		.on_event = on_event,
		.on_watermark = on_watermark,
		.ctx = t,
	};
	const char *container = t->opts.viewer.filter.container;
	struct live *live = &t->live;

	if (!live__open(live, &opts) ||
	    !viewer__open(&t->viewer, live->stream, live->tasks, &live->selection) ||
	    !live__attach(live))
		return false;
	look_at_processes(t);
	if (!connect_outside(t) || !live__settle(live))
		return false;
	/* It may come yet, or was mistyped. */
	if (container && !t->container_seen)
		SAY("there is no container %s yet: waiting for it", container);
	live__say_ready(live, "tracing");
	return true;
}

/* ---- run -------------------------------------------------------------------------------------- */

/* The terminal is COMMAND's, too, if there is one. */
static bool draws(const struct trace *t)
{
	return t->opts.viewer.summary_only && !t->live.has_command &&
	       !viewer__is_json(&t->viewer) && isatty(t->viewer.outputs.trace_fd);
}

static void draw(struct trace *t)
{
	const struct printer *printer = &t->viewer.printer;
	uint64_t now = now_ns();

	if (!draws(t) || now - t->drawn_ns < DRAW_EVERY_NS)
		return;
	t->drawn_ns = now;
	counts__draw(printer->counts, printer->stream, printer->out, t->viewer.outputs.trace_fd);
}

static int run(struct trace *t)
{
	if (t->opts.live.duration_ns)
		stop__at(t->live.end_ns);
	while (!viewer__is_done(&t->viewer) && !live__is_over(&t->live)) {
		int err = live__poll(&t->live);

		if (err)
			return err;
		out__flush(t->viewer.printer.out);
		draw(t);
		viewer__answer(&t->viewer);
	}
	return 0;
}

static void detach(void *probes)
{
	probes__detach(probes);
}

/* Everything that was published comes out, then the account is taken. */
static int finish(struct trace *t)
{
	int err, report_err;

	/* That takes grace periods, in which rings that are not the probes' go on being written. */
	fencing__read_while(&t->outside.fencing, t->live.stream, detach, t->live.probes);
	err = live__close(&t->live);
	if (err)
		SAY("the last events could not be read: %s", strerror(-err));
	if (draws(t))
		counts__wipe(t->viewer.printer.out);
	viewer__finish(&t->viewer, now_ns());
	live__say_running(&t->live);
	report_err = viewer__report(&t->viewer);
	return err ? err : report_err;
}

static int trace(struct trace *t, char **argv)
{
	int otherwise = t->live.has_command ? STDERR_FILENO : STDOUT_FILENO;
	int failed = t->live.has_command ? EXIT_WEIR_FAILED : EXIT_FAILED;
	struct viewer *viewer = &t->viewer;
	struct live *live = &t->live;
	int err = 0;

	if (!viewer__open_outputs(viewer, otherwise) || !live__fork_command(live, argv))
		return failed;
	if (!live->selection.nr_pids && !t->opts.all && isatty(viewer->outputs.trace_fd))
		selection__leave_ancestors_out(live->pids, &live->selection);
	if (!start(t) || !outputs__empty(&trace_command, &viewer->outputs))
		return failed;
	if (live__start(live))
		err = run(t);
	if (err)
		SAY("%s", strerror(-err));
	if (finish(t) || err)
		return failed;
	if (viewer__is_loss(viewer))
		return EXIT_LOST;
	return live->has_command ? live__command_status(live) : EXIT_OK;
}

static void free_trace(struct trace *t)
{
	outside__free(&t->outside); /* while there is a stream */
	live__free(&t->live);
	viewer__free(&t->viewer);
}

int cmd_trace(int argc, char **argv)
{
	static struct trace t;
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
	t.viewer.def = t.live.def = &trace_command;
	t.viewer.opts = &t.opts.viewer;
	t.viewer.wants = wants;
	t.live.opts = &t.opts.live;
	t.live.filter = &t.opts.viewer.filter;
	t.live.seeded = on_seeded;
	t.viewer.ctx = t.live.ctx = &t;
	t.live.has_command = operand < argc;
	if (!viewer__check(&t.viewer) || !select_events(&t))
		return EXIT_USAGE;
	status = t.live.has_command ? live__find_program(&t.live, argv[operand]) : EXIT_OK;
	if (status != EXIT_OK)
		return status;
	if (stop__install(t.live.has_command)) {
		SAY("cannot catch signals: %s", strerror(errno));
		return t.live.has_command ? EXIT_WEIR_FAILED : EXIT_FAILED;
	}
	status = trace(&t, argv + operand);
	free_trace(&t);
	return status;
}
