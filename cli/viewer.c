/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/viewer.h"

#include "cli/account.h"
#include "cli/stop.h"
#include "cli/style.h"

#include <errno.h>
#include <string.h>

#define OUT_BUFFER_BYTES (256u << 10)
#define STOP_GRACE_MS	 400

#define SAY(...) say(v->def, __VA_ARGS__)

/* ---- what the user asked for ------------------------------------------------------------------ */

#define AT(member) OPTION_AT(struct viewer_options, member)

const struct option_def viewer__options[] = {
	{'f', "format", OPTION_STRING, AT(format), "FORMAT",
	 "text (default), json (an object a line), or none (only count)"},
	{'y', "fds", OPTION_FLAG, AT(fds), NULL,
	 "print what descriptors stand for: paths, sockets, directories;\n"
	 "in JSON with --pair, which it implies"},
	{'c', "summary-only", OPTION_FLAG, AT(summary_only), NULL,
	 "count system calls instead of printing them: how many, how many\n"
	 "failed, how long they took (p50 and p99 may be up to 7 % more\n"
	 "than they were, never less). weir trace shows it each second on a\n"
	 "terminal, but for COMMAND's. Default events: sys"},
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

static bool counts(const struct viewer *v)
{
	return v->opts->summary || v->opts->summary_only;
}

bool viewer__is_json(const struct viewer *v)
{
	return !strcmp(v->opts->format, "json");
}

static bool check_format(struct viewer *v)
{
	struct viewer_options *opts = v->opts;

	if (!opts->format)
		opts->format = "text";
	if (!sink__find(opts->format)) {
		SAY("there is no format '%s': text, json or none%s", opts->format,
		    v->def->runs_command ? " (children are always followed)" : "");
		return false;
	}
	if (opts->summary && !opts->summary_only && viewer__is_json(v)) {
		SAY("-C prints lines for people; in JSON there is -c, one object");
		return false;
	}
	opts->pair |= opts->fds || opts->summary_only;
	if (filter__needs_calls(&opts->filter) && viewer__is_json(v) && !opts->pair) {
		SAY("-P, --failed, --errno and --min-duration ask for whole calls: add --pair");
		return false;
	}
	return style__words(v->def, opts->time, opts->color);
}

bool viewer__check(struct viewer *v)
{
	if (!check_format(v) || !filter__check(&v->opts->filter, v->def))
		return false;
	/* -c is a sink of its own, which takes whole calls and nothing else. */
	v->printer.sink = sink__find(v->opts->summary_only ? "none" : v->opts->format);
	v->printer.filter = filter__is_set(&v->opts->filter) ? &v->opts->filter : NULL;
	v->printer.shows_fds = v->opts->fds;
	return true;
}

/* ---- an event on its way to the sink ---------------------------------------------------------- */

static bool has_enough(const struct viewer *v)
{
	return v->opts->max_events && v->printed >= v->opts->max_events;
}

static void count_printed(struct viewer *v)
{
	v->has_news = true;
	v->printed++;
}

void viewer__notice(struct viewer *v, const struct weir_event *event)
{
	printer__notice(&v->printer, event);
	v->has_news = true;
}

/*
 * A record whose payload makes no sense: counted, and a gap from before it to where the stream is, at
 * `now_ns`: of an enter that is later, when its exit has come.
 */
static void give_up(struct viewer *v, const struct weir_event *event, uint64_t now_ns)
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
	weir_stream__count_lost(v->stream, event->source, 1, WEIR_LOST_BROKEN);
	viewer__notice(v, &lost);
}

static void filter_out(struct viewer *v, const struct weir_event *event)
{
	weir_stream__count_filtered(v->stream, event->source, 1);
}

/* Not printed, for this reason. */
static void account_for(struct viewer *v, const struct weir_event *event, int why, uint64_t now_ns)
{
	if (why == PRINTER_FILTERED)
		filter_out(v, event);
	else
		give_up(v, event, now_ns);
}

static int on_call(void *ctx, const struct weir_call *call)
{
	const struct weir_event *halves[] = {call->found ? NULL : call->enter, call->exit};
	struct viewer *v = ctx;
	int err = PRINTER_FILTERED;

	/* The clone that a child returns from is its parent's call. */
	if (!has_enough(v) && call->end != WEIR_CALL_BORN)
		err = printer__call(&v->printer, call);
	if (!err)
		count_printed(v);
	for (int i = 0; err && i < 2; i++)
		if (halves[i])
			account_for(v, halves[i], err, call->stamp_ns);
	return 0;
}

static void finish_record(struct viewer *v, const struct weir_event *event, int err)
{
	if (err)
		account_for(v, event, err, event->stamp_ns);
	else
		count_printed(v);
}

static void print_record(struct viewer *v, const struct weir_event *event)
{
	int err = has_enough(v) ? PRINTER_FILTERED : printer__record(&v->printer, event);

	finish_record(v, event, err);
}

void viewer__decoded(struct viewer *v, const struct weir_event *event, int err,
		     const struct weir_decoded *decoded)
{
	if (has_enough(v))
		err = PRINTER_FILTERED;
	finish_record(v, event, err ? err : printer__decoded(&v->printer, event, decoded));
}

static bool is_half_of_call(const struct weir_event *event)
{
	return event->type == WEIR_T_SYS_ENTER || event->type == WEIR_T_SYS_EXIT;
}

static bool wants(struct viewer *v, const struct weir_event *event)
{
	bool wanted = !v->wants || v->wants(v->ctx, event);

	return wanted && event->type < 32 && v->types >> event->type & 1;
}

static void apply_to_fds(struct viewer *v, const struct weir_event *event)
{
	if (v->printer.fdnames)
		fdnames__apply(v->printer.fdnames, event);
}

static int other_event(struct viewer *v, const struct weir_event *event)
{
	int err;

	viewer__notice(v, event);
	err = v->calls ? calls__apply(v->calls, event) : 0;
	apply_to_fds(v, event);
	return err;
}

int viewer__event(struct viewer *v, const struct weir_event *event)
{
	bool wanted;

	if (event->kind != WEIR_KIND_RECORD)
		return other_event(v, event);
	if (event->type <= WEIR_T_LIFE_MAX)
		tasks__apply(v->printer.tasks, event);
	wanted = wants(v, event);
	if (!wanted)
		filter_out(v, event);
	if (v->calls && (wanted || !is_half_of_call(event)) &&
	    calls__apply(v->calls, event) == -EBADMSG && wanted) {
		give_up(v, event, event->stamp_ns);
		return 0;
	}
	apply_to_fds(v, event);
	if (wanted && !(v->calls && is_half_of_call(event)))
		print_record(v, event);
	return 0;
}

/* ---- begin ------------------------------------------------------------------------------------ */

bool viewer__open_outputs(struct viewer *v, int otherwise)
{
	bool writes_lines = counts(v) || strcmp(v->opts->format, "none") != 0;

	v->outputs = (struct outputs){
		.trace_path = v->opts->output,
		.ledger_path = v->opts->ledger,
		.trace_fd = -1,
		.ledger_fd = -1,
	};
	if (!outputs__open(v->def, &v->outputs, otherwise, writes_lines))
		return false;
	v->printer.out = out__new(v->outputs.trace_fd, OUT_BUFFER_BYTES, &stop__requested,
				  STOP_GRACE_MS);
	if (!v->printer.out) {
		SAY("out of memory");
		return false;
	}
	style__fill(&v->style, v->opts->time, v->opts->color, v->outputs.trace_fd);
	out__set_style(v->printer.out, &v->style);
	return true;
}

static bool needs_calls(const struct viewer *v)
{
	return counts(v) || filter__needs_calls(&v->opts->filter) ||
	       (v->printer.sink->call && (!viewer__is_json(v) || v->opts->pair));
}

static bool open_calls(struct viewer *v, struct probes_selection *selection)
{
	if (counts(v) && !(v->printer.counts = counts__new()))
		return false;
	if (!needs_calls(v))
		return true;
	v->calls = calls__new(0, on_call, v);
	if (!v->calls || !(v->opts->fds || filter__needs_fds(&v->opts->filter)))
		return v->calls;
	v->printer.fdnames = fdnames__new(selection, !v->is_past);
	return v->printer.fdnames;
}

bool viewer__open(struct viewer *v, struct weir_stream *stream, struct tasks *tasks,
		  struct probes_selection *selection)
{
	v->printer.stream = v->stream = stream;
	v->printer.tasks = tasks;
	if (!open_calls(v, selection)) {
		SAY("out of memory");
		return false;
	}
	v->types = selection->types;
	return true;
}

/* ---- the run, and its end --------------------------------------------------------------------- */

bool viewer__is_done(const struct viewer *v)
{
	return has_enough(v) || out__error(v->printer.out);
}

void viewer__answer(const struct viewer *v)
{
	if (stop__ledger_wanted())
		account__say(v->stream, viewer__is_json(v), v->outputs.trace_fd);
}

static void count_unwritten(void *ctx, uint32_t source, uint64_t events)
{
	struct viewer *v = ctx;

	weir_stream__count_lost(v->stream, source, events, WEIR_LOST_OUTPUT);
}

void viewer__finish(struct viewer *v, uint64_t stamp_ns)
{
	struct printer *printer = &v->printer;

	if (v->calls)
		calls__finish(v->calls, stamp_ns);
	if (v->opts->summary && !v->opts->summary_only)
		out__char(printer->out, '\n');
	if (printer->counts)
		counts__print(printer->counts, v->stream, printer->out, viewer__is_json(v));
	out__flush(printer->out);
	out__unwritten(printer->out, count_unwritten, v);
}

/* Calls that were handed out unfinished, for they were too many to remember. */
static void say_evicted(const struct viewer *v)
{
	uint64_t evicted = v->calls ? calls__evicted(v->calls) : 0;

	if (evicted)
		SAY("more calls were open at once than can be remembered: %llu are marked unfinished",
		    (unsigned long long)evicted);
}

int viewer__report(struct viewer *v)
{
	int err = out__error(v->printer.out), ledger_err = 0;

	/* A reader that has gone away has what it wanted; a stop has cut the rest short. */
	if (err == -EPIPE || err == -ECANCELED)
		err = 0;
	if (err)
		SAY("%s: %s", v->opts->output ? v->opts->output : "the output", strerror(-err));
	say_evicted(v);
	account__say(v->stream, viewer__is_json(v), v->outputs.trace_fd);
	if (v->opts->ledger)
		ledger_err = account__write(v->stream, v->outputs.ledger_fd, ACCOUNT_JSON);
	if (ledger_err)
		SAY("%s: %s", v->opts->ledger, strerror(-ledger_err));
	return err ? err : ledger_err;
}

bool viewer__is_loss(const struct viewer *v)
{
	bool reader_is_gone = out__error(v->printer.out) == -EPIPE;

	return v->opts->strict && account__is_loss(v->def, v->stream, reader_is_gone);
}

void viewer__free(struct viewer *v)
{
	outputs__close(&v->outputs);
	calls__free(v->calls);
	fdnames__free(v->printer.fdnames);
	counts__free(v->printer.counts);
	out__free(v->printer.out);
	printer__free(&v->printer);
	filter__free(&v->opts->filter);
}
