/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/counts.h"

#include "cli/account.h"
#include "sinks/summary.h"
#include "state/summary.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#define HOME_AND_CLEAR "\x1b[H\x1b[J"
#define DEFAULT_ROWS   24
#define TOP_PROCESSES  10
/* Both heads, the sum, a line between, two "and N more", the account in two lines. */
#define LINES_BESIDE   10

struct counts {
	struct summary *summary;
	uint64_t not_counted; /* for want of memory */
};

struct counts *counts__new(void)
{
	struct counts *counts = calloc(1, sizeof(*counts));

	if (!counts)
		return NULL;
	counts->summary = summary__new(0);
	if (!counts->summary) {
		free(counts);
		return NULL;
	}
	return counts;
}

void counts__free(struct counts *counts)
{
	if (!counts)
		return;
	summary__free(counts->summary);
	free(counts);
}

void counts__add(struct counts *counts, const struct weir_call *call, const struct sink_event *item)
{
	if (summary__add(counts->summary, call, item->decoded, item->comm))
		counts->not_counted++;
}

void counts__add_event(struct counts *counts, const struct sink_event *item)
{
	const struct weir_call untimed = {.end = WEIR_CALL_OPEN};
	const struct weir_decoded named = {
		.syscall = item->decoded->name,
		.nr = item->decoded->nr,
		.pid = item->decoded->pid,
	};

	if (summary__add(counts->summary, &untimed, &named, item->comm))
		counts->not_counted++;
}

static void call_row(struct sink_summary_call *row, const struct summary_call *call)
{
	*row = (struct sink_summary_call){
		.name = call->name,
		.calls = call->calls,
		.errors = call->errors,
		.timed = call->times.count,
		.total_ns = call->times.total_ns,
		.p50_ns = histogram__quantile_ns(&call->times, 500),
		.p99_ns = histogram__quantile_ns(&call->times, 990),
		.max_ns = call->times.max_ns,
	};
}

static void process_row(struct sink_summary_process *row, const struct summary_process *process)
{
	*row = (struct sink_summary_process){
		.pid = process->pid,
		.comm = process->comm,
		.calls = process->calls,
		.errors = process->errors,
		.timed = process->timed,
		.total_ns = process->total_ns,
	};
}

/* Rows of our own, which fn shows; nothing is shown without memory for them. */
static void with_rows(struct counts *counts,
		      void (*fn)(void *ctx, const struct sink_summary *summary), void *ctx)
{
	const struct summary_process *others = summary__others(counts->summary);
	const struct summary_process *const *processes;
	const struct summary_call *const *calls;
	struct sink_summary_process *process_rows;
	struct sink_summary_call *call_rows;
	struct sink_summary summary = {0};
	size_t nr_processes;

	calls = summary__calls(counts->summary, &summary.nr_calls);
	processes = summary__processes(counts->summary, &nr_processes);
	call_rows = calloc(summary.nr_calls + 1, sizeof(*call_rows));
	process_rows = calloc(nr_processes + 1, sizeof(*process_rows));
	if (call_rows && process_rows) {
		for (size_t i = 0; i < summary.nr_calls; i++)
			call_row(&call_rows[i], calls[i]);
		for (size_t i = 0; i < nr_processes; i++)
			process_row(&process_rows[i], processes[i]);
		if (others->calls)
			process_row(&process_rows[nr_processes], others);
		summary.calls = call_rows;
		summary.processes = process_rows;
		summary.nr_processes = nr_processes + !!others->calls;
		fn(ctx, &summary);
	}
	free(call_rows);
	free(process_rows);
}

struct view {
	struct counts *counts;
	const struct weir_stream *stream;
	struct out *out;
	size_t max_calls, max_processes;
};

/* What has no row is said. */
static void not_counted(const struct view *view)
{
	if (!view->counts->not_counted)
		return;
	out__u64(view->out, view->counts->not_counted);
	out__str(view->out, " calls are in no row: out of memory\n");
}

static void as_text(void *ctx, const struct sink_summary *summary)
{
	const struct view *view = ctx;

	sink__summary_text(view->out, summary, view->max_calls, view->max_processes);
	not_counted(view);
}

static void as_json(void *ctx, const struct sink_summary *summary)
{
	const struct view *view = ctx;

	out__char(view->out, '{');
	sink__summary_json(view->out, summary);
	out__str(view->out, ",\"not_counted\":");
	out__u64(view->out, view->counts->not_counted);
	out__str(view->out, ",\"ledger\":");
	account__put(view->stream, view->out, true);
	out__str(view->out, "}\n");
}

void counts__print(struct counts *counts, const struct weir_stream *stream, struct out *out,
		   bool json)
{
	struct view view = {
		.counts = counts,
		.stream = stream,
		.out = out,
		.max_calls = SIZE_MAX,
		.max_processes = TOP_PROCESSES,
	};

	with_rows(counts, json ? as_json : as_text, &view);
	out__end(out, false, WEIR_SOURCE_NONE);
}

void counts__wipe(struct out *out)
{
	out__str(out, HOME_AND_CLEAR);
}

void counts__draw(struct counts *counts, const struct weir_stream *stream, struct out *out, int fd)
{
	struct view view = {.counts = counts, .stream = stream, .out = out};
	struct winsize size = {0};
	size_t rows;

	if (ioctl(fd, TIOCGWINSZ, &size) || !size.ws_row)
		size.ws_row = DEFAULT_ROWS;
	rows = size.ws_row > LINES_BESIDE ? size.ws_row - LINES_BESIDE : 2;
	view.max_processes = rows / 3 < TOP_PROCESSES ? rows / 3 : TOP_PROCESSES;
	view.max_calls = rows - view.max_processes;
	counts__wipe(out);
	with_rows(counts, as_text, &view);
	account__put(stream, out, false);
	out__char(out, '\n');
	out__end(out, false, WEIR_SOURCE_NONE);
	out__flush(out);
}
