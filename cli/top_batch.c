// SPDX-License-Identifier: BSD-2-Clause
/* top_batch.c - an interval as lines of text. */
#include "cli/top.h"
#include "sinks/out.h"
#include "sinks/style.h"

#include <weir/event.h>

#include <stdlib.h>
#include <string.h>

#define WIDTH	      160 /* all columns, and a name of 20 */
#define CMDLINE_WIDTH (TOP_LINE_MAX - 1)

#define BOLD  "\x1b[1m"
#define DIM   "\x1b[2m"
#define ALERT "\x1b[33m"
#define PLAIN "\x1b[0m"

static void put_line(struct out *out, const char *line, const char *paint)
{
	const struct style *style = out__style(out);
	bool painted = paint && style && style->color;

	if (painted)
		out__str(out, paint);
	out__str(out, line);
	if (painted)
		out__str(out, PLAIN);
	out__char(out, '\n');
}

static const char *paint_of(const struct top_line *line)
{
	if (line->group->row.kind == USAGE_GAP)
		return ALERT;
	if (line->group->row.kind != USAGE_THREAD || line->group->row.state == USAGE_EXITED)
		return DIM;
	return NULL;
}

/* As wide as it is told by $COLUMNS; a file or a pipe has room for all. */
static unsigned width(const struct top_view *view)
{
	const char *columns = getenv("COLUMNS");
	long n = columns ? strtol(columns, NULL, 10) : 0;

	return n >= 20 && n < TOP_LINE_MAX ? (unsigned)n : view->cmdline ? CMDLINE_WIDTH : WIDTH;
}

int top_batch__report(struct out *out, struct top_table *table, const struct top_view *view,
		      uint64_t max_rows, bool first)
{
	size_t count = top_table__first(table, max_rows);
	char line[TOP_LINE_MAX];

	top_table__ask(table, view, 0, count);
	if (!first)
		out__char(out, '\n');
	for (int i = 0; i < TOP_HEAD_LINES; i++) {
		top_cells__head(table, view, (enum top_head)i, line);
		put_line(out, line, NULL);
	}
	top_cells__titles(view, width(view), line);
	put_line(out, line, BOLD);
	if (table->count == table->nobodys) {
		top_cells__nobody(view, line);
		put_line(out, line, NULL);
	}
	for (size_t i = 0; i < count; i++) {
		top_cells__line(table, view, &table->lines[i], width(view), line);
		put_line(out, line, paint_of(&table->lines[i]));
	}
	out__end(out, false, WEIR_SOURCE_NONE);
	return out__flush(out);
}
