/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/printer.h"

#include "probes/probes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *new_source_name(struct printer *printer, uint32_t source)
{
	struct weir_source_info info;

	if (source == WEIR_SOURCE_NONE)
		return NULL;
	if (source >= printer->nr_sources) {
		const char **grown = realloc(printer->source_names, (source + 1) * sizeof(*grown));

		if (!grown)
			return NULL;
		memset(grown + printer->nr_sources, 0,
		       (source + 1 - printer->nr_sources) * sizeof(*grown));
		printer->source_names = grown;
		printer->nr_sources = source + 1;
	}
	if (!weir_stream__source(printer->stream, source, &info))
		printer->source_names[source] = info.name;
	return printer->source_names[source];
}

static const char *source_name(struct printer *printer, uint32_t source)
{
	if (source < printer->nr_sources && printer->source_names[source])
		return printer->source_names[source];
	return new_source_name(printer, source);
}

static struct sink_event make_item(struct printer *printer, const struct weir_event *event)
{
	return (struct sink_event){
		.event = event,
		.wall_ns = weir_stream__wall_ns(printer->stream, event->stamp_ns),
		.source = source_name(printer, event->source),
	};
}

/*
 * Who it is of, as it was then; *task is that one, or NULL. `idle` is room for the idle task's name,
 * which no record carries.
 */
static void add_task(struct printer *printer, struct sink_event *item,
		     const struct weir_decoded *decoded, char idle[WEIR_COMM_LEN],
		     struct task_view **task)
{
	struct task_view *known = *task;

	*task = NULL;
	item->decoded = decoded;
	if (decoded->is_raw)
		return;
	item->comm = decoded->comm;
	if (!decoded->tid) {
		memset(idle, 0, WEIR_COMM_LEN);
		snprintf(idle, WEIR_COMM_LEN, "swapper/%d", item->event->cpu);
		item->comm = idle;
		return;
	}
	if (!tasks__find(printer->tasks, decoded->tid, item->event->stamp_ns, known))
		return;
	*task = known;
	if (!item->comm)
		item->comm = known->comm;
	item->container = known->container;
}

static bool wanted(const struct printer *printer, const struct sink_event *item,
		   const struct task_view *task, const struct weir_call *call,
		   const struct sink_fds *fds)
{
	struct filter_places places = {.fds = fds};

	if (!printer->filter)
		return true;
	if (fds)
		places.cwd = fdnames__cwd(printer->fdnames);
	return filter__wants(printer->filter, item, task, call, &places);
}

int printer__record(struct printer *printer, const struct weir_event *event)
{
	struct weir_decoded decoded;
	int err;

	if (!printer->sink->event && !printer->filter)
		return 0;
	err = probes__decode(event, &decoded);
	return err ? err : printer__decoded(printer, event, &decoded);
}

int printer__decoded(struct printer *printer, const struct weir_event *event,
		     const struct weir_decoded *decoded)
{
	struct task_view view, *task = &view;
	struct sink_event item = make_item(printer, event);
	char idle[WEIR_COMM_LEN];

	add_task(printer, &item, decoded, idle, &task);
	if (!wanted(printer, &item, task, NULL, NULL))
		return PRINTER_FILTERED;
	if (printer->counts && decoded->nr < -1)
		counts__add_event(printer->counts, &item);
	if (printer->sink->event)
		printer->sink->event(printer->out, &item);
	return 0;
}

int printer__call(struct printer *printer, const struct weir_call *call)
{
	struct weir_event event = call->exit ? *call->exit : *call->enter;
	const struct sink_fds *fds = NULL;
	struct weir_decoded decoded;
	struct task_view view, *task = &view;
	struct sink_event item;
	char idle[WEIR_COMM_LEN];
	int err;

	if (!printer->sink->call && !printer->counts && !printer->filter)
		return 0;
	err = probes__decode_call(call, &decoded);
	if (err)
		return err;
	event.stamp_ns = call->stamp_ns;
	event.source = call->source;
	event.mark = call->mark;
	item = make_item(printer, &event);
	if (printer->fdnames) {
		fds = fdnames__call(printer->fdnames, call, &decoded);
		item.fds = printer->shows_fds ? fds : NULL;
		if (!fdnames__shows(printer->fdnames, call))
			return PRINTER_FILTERED;
	}
	add_task(printer, &item, &decoded, idle, &task);
	if (!wanted(printer, &item, task, call, fds))
		return PRINTER_FILTERED;
	if (printer->counts)
		counts__add(printer->counts, call, &item);
	if (printer->sink->call)
		printer->sink->call(printer->out, &item, call);
	return 0;
}

void printer__notice(struct printer *printer, const struct weir_event *event)
{
	struct sink_event item = make_item(printer, event);

	if (printer->sink->event)
		printer->sink->event(printer->out, &item);
}

void printer__watermark(struct printer *printer, uint64_t watermark_ns, enum weir_order order)
{
	if (printer->sink->watermark)
		printer->sink->watermark(printer->out, watermark_ns,
					 weir_stream__wall_ns(printer->stream, watermark_ns),
					 order);
}

void printer__free(struct printer *printer)
{
	free(printer->source_names);
}
