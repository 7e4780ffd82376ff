// SPDX-License-Identifier: BSD-2-Clause
/*
 * sinks.c - which sinks there are.
 *
 * Owns: the table. Promises: every name is found once. Must not know: what a sink does.
 */
#include "sinks/out.h"
#include "sinks/table.h"

#include <stddef.h>
#include <string.h>

static const struct sink_ops *const sinks[] = {&sink_text, &sink_json, &sink_none};

const struct sink_ops *sink__find(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(sinks) / sizeof(sinks[0]); i++)
		if (!strcmp(sinks[i]->name, name))
			return sinks[i];
	return NULL;
}

void sink__end_call(struct out *out, const struct weir_call *call)
{
	const struct weir_event *enter = call->found ? NULL : call->enter;

	if (enter && call->exit)
		out__also(out, enter->source);
	if (enter || call->exit)
		out__end(out, true, (call->exit ? call->exit : enter)->source);
	else
		out__end(out, false, WEIR_SOURCE_NONE);
}
