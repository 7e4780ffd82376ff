/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/viewer.h"

#include <errno.h>

bool viewer__has_enough(const struct viewer *v)
{
	return v->max_events && v->printed >= v->max_events;
}

/* A record whose payload makes no sense: counted, and its place shown. */
static void give_up(struct viewer *v, const struct weir_event *event)
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
	weir_stream__count_lost(v->stream, event->source, 1, WEIR_LOST_BROKEN);
	printer__notice(&v->printer, &lost);
}

static void filter_out(struct viewer *v, const struct weir_event *event)
{
	weir_stream__count_filtered(v->stream, event->source, 1);
}

static int on_call(void *ctx, const struct weir_call *call)
{
	const struct weir_event *halves[] = {call->enter, call->exit};
	struct viewer *v = ctx;
	int printed = PRINTER_FILTERED;

	/* The clone that a child returns from is its parent's call. */
	if (!viewer__has_enough(v) && call->end != WEIR_CALL_BORN)
		printed = printer__call(&v->printer, call);
	v->printed += !printed;
	for (int i = 0; printed && i < 2; i++) {
		if (halves[i] && printed == PRINTER_FILTERED)
			filter_out(v, halves[i]);
		else if (halves[i])
			give_up(v, halves[i]);
	}
	return 0;
}

static bool is_half_of_call(const struct weir_event *event)
{
	return event->type == WEIR_T_SYS_ENTER || event->type == WEIR_T_SYS_EXIT;
}

static void print_record(struct viewer *v, const struct weir_event *event)
{
	int printed = viewer__has_enough(v) ? PRINTER_FILTERED
					    : printer__record(&v->printer, event);

	if (printed == PRINTER_FILTERED)
		filter_out(v, event);
	else if (printed)
		give_up(v, event);
	else
		v->printed++;
}

static bool wants(struct viewer *v, const struct weir_event *event)
{
	bool wanted = !v->wants || v->wants(v->ctx, event);

	return wanted && event->type < 32 && v->types >> event->type & 1;
}

int viewer__event(struct viewer *v, const struct weir_event *event)
{
	bool wanted;

	if (event->kind != WEIR_KIND_RECORD) {
		printer__notice(&v->printer, event);
		return v->calls ? calls__apply(v->calls, event) : 0;
	}
	if (event->type <= WEIR_T_LIFE_MAX)
		tasks__apply(v->printer.tasks, event);
	wanted = wants(v, event);
	if (!wanted)
		filter_out(v, event);
	if (v->calls && (wanted || !is_half_of_call(event)) &&
	    calls__apply(v->calls, event) == -EBADMSG && wanted) {
		give_up(v, event);
		return 0;
	}
	if (wanted && !(v->calls && is_half_of_call(event)))
		print_record(v, event);
	return 0;
}

void viewer__finish(struct viewer *v, uint64_t stamp_ns)
{
	if (v->calls)
		calls__finish(v->calls, stamp_ns);
}

bool viewer__open(struct viewer *v, bool calls)
{
	if (calls)
		v->calls = calls__new(0, on_call, v);
	return !calls || v->calls;
}

void viewer__close(struct viewer *v)
{
	calls__free(v->calls);
	printer__free(&v->printer);
}
