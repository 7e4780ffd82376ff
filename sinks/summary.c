// SPDX-License-Identifier: BSD-2-Clause
/*
 * summary.c - what all calls come to, as a table and as JSON.
 *
 * Promises: nothing unprintable; a time that nobody knows is '-' or null, never 0. Must not know: how
 * it was counted.
 */
#include "sinks/summary.h"

#include "sinks/json.h"
#include "sinks/out.h"
#include "sinks/put.h"
#include "sinks/text.h"

#include <stdbool.h>

#include <string.h>

/* So that names of 19 letters fit into 80 columns. */
#define SHARE_WIDTH  5 /* 100.0 */
#define CALLS_WIDTH  8
#define ERRORS_WIDTH 7
#define TIME_WIDTH   8 /* 999.9ms, and a gap */
#define TIME_DIGITS  4

/* ---- text ------------------------------------------------------------------------------------- */

static void right(struct out *out, const char *text, size_t len, size_t width)
{
	for (; width > len; width--)
		out__char(out, ' ');
	out__bytes(out, text, len);
}

/* Not the first of its line: what is too long for it still has a gap before it. */
static void cell(struct out *out, const char *text, size_t len, size_t width)
{
	out__char(out, ' ');
	right(out, text, len, width - 1);
}

static void word(struct out *out, const char *text, size_t width)
{
	cell(out, text, strlen(text), width);
}

static void number(struct out *out, uint64_t n, size_t width)
{
	char text[PUT_U64_MAX];

	cell(out, text, (size_t)(put_u64(text, n) - text), width);
}

/* 1.234s, 12.34ms, 123.4us: as many digits behind the point as there is room for. */
static char *put_short_duration(char *p, uint64_t ns)
{
	char text[TEXT_DURATION_MAX], *end = text__put_duration(text, ns);
	char *point = memchr(text, '.', (size_t)(end - text));
	size_t whole = (size_t)(point - text),
	       behind = whole < TIME_DIGITS ? TIME_DIGITS - whole : 0;

	memcpy(p, text, whole);
	p += whole;
	if (behind) {
		memcpy(p, point, 1 + behind);
		p += 1 + behind;
	}
	point += 4; /* the unit */
	memcpy(p, point, (size_t)(end - point));
	return p + (end - point);
}

static void time(struct out *out, uint64_t ns, bool known)
{
	char text[TEXT_DURATION_MAX];

	if (known)
		cell(out, text, (size_t)(put_short_duration(text, ns) - text), TIME_WIDTH);
	else
		word(out, "-", TIME_WIDTH);
}

/* Of all time, in per cent. */
static void share(struct out *out, uint64_t ns, uint64_t all_ns, bool known)
{
	uint64_t tenths = all_ns ? (uint64_t)(1000.0 * (double)ns / (double)all_ns + 0.5) : 0;
	char text[PUT_U64_MAX + 2], *end;

	if (!known) {
		right(out, "-", 1, SHARE_WIDTH);
		return;
	}
	end = put_u64(text, tenths / 10);
	*end++ = '.';
	*end++ = (char)('0' + tenths % 10);
	right(out, text, (size_t)(end - text), SHARE_WIDTH);
}

static void errors(struct out *out, uint64_t n)
{
	if (n)
		text__paint(out, TEXT_BAD);
	number(out, n, ERRORS_WIDTH);
	if (n)
		text__paint(out, TEXT_PLAIN);
}

static void head(struct out *out, const char *const *times, size_t nr_times, const char *name)
{
	text__paint(out, TEXT_DIM);
	right(out, "%time", 5, SHARE_WIDTH);
	word(out, "calls", CALLS_WIDTH);
	word(out, "errors", ERRORS_WIDTH);
	for (size_t i = 0; i < nr_times; i++)
		word(out, times[i], TIME_WIDTH);
	out__char(out, ' ');
	out__str(out, name);
	text__paint(out, TEXT_PLAIN);
	out__char(out, '\n');
}

static void call_row(struct out *out, const struct sink_summary_call *row, uint64_t all_ns)
{
	bool known = row->timed;

	share(out, row->total_ns, all_ns, known);
	number(out, row->calls, CALLS_WIDTH);
	errors(out, row->errors);
	time(out, row->total_ns, known);
	time(out, known ? row->total_ns / row->timed : 0, known);
	time(out, row->p50_ns, known);
	time(out, row->p99_ns, known);
	time(out, row->max_ns, known);
	out__char(out, ' ');
	text__paint(out, TEXT_NAME);
	text__word(out, row->name);
	text__paint(out, TEXT_PLAIN);
	out__char(out, '\n');
}

static void process_row(struct out *out, const struct sink_summary_process *row, uint64_t all_ns)
{
	share(out, row->total_ns, all_ns, row->timed);
	number(out, row->calls, CALLS_WIDTH);
	errors(out, row->errors);
	time(out, row->total_ns, row->timed);
	out__char(out, ' ');
	if (row->pid) {
		text__word(out, *row->comm ? row->comm : "?");
		out__char(out, '[');
		out__u64(out, row->pid);
		out__char(out, ']');
	} else {
		out__str(out, "others");
	}
	out__char(out, '\n');
}

static void beyond(struct out *out, size_t count, size_t max)
{
	if (count <= max)
		return;
	text__paint(out, TEXT_DIM);
	word(out, "...", SHARE_WIDTH + CALLS_WIDTH);
	out__str(out, " and ");
	out__u64(out, count - max);
	out__str(out, " more");
	text__paint(out, TEXT_PLAIN);
	out__char(out, '\n');
}

static struct sink_summary_call sum(const struct sink_summary *summary)
{
	struct sink_summary_call all = {0};

	for (size_t i = 0; i < summary->nr_calls; i++) {
		all.calls += summary->calls[i].calls;
		all.errors += summary->calls[i].errors;
		all.timed += summary->calls[i].timed;
		all.total_ns += summary->calls[i].total_ns;
	}
	return all;
}

static void call_total(struct out *out, const struct sink_summary_call *all)
{
	share(out, all->total_ns, all->total_ns, all->timed);
	number(out, all->calls, CALLS_WIDTH);
	errors(out, all->errors);
	time(out, all->total_ns, all->timed);
	time(out, all->timed ? all->total_ns / all->timed : 0, all->timed);
	for (int i = 0; i < 3; i++)
		word(out, "", TIME_WIDTH);
	out__str(out, " all\n");
}

void sink__summary_text(struct out *out, const struct sink_summary *summary, size_t max_calls,
			size_t max_processes)
{
	static const char *const times[] = {"total", "mean", "p50", "p99", "max"};
	struct sink_summary_call all = sum(summary);

	head(out, times, sizeof(times) / sizeof(times[0]), "call");
	for (size_t i = 0; i < summary->nr_calls && i < max_calls; i++)
		call_row(out, &summary->calls[i], all.total_ns);
	beyond(out, summary->nr_calls, max_calls);
	call_total(out, &all);
	out__char(out, '\n');
	head(out, times, 1, "process");
	for (size_t i = 0; i < summary->nr_processes && i < max_processes; i++)
		process_row(out, &summary->processes[i], all.total_ns);
	beyond(out, summary->nr_processes, max_processes);
}

/* ---- JSON ------------------------------------------------------------------------------------- */

static void member(struct out *out, const char *key, uint64_t n, bool known)
{
	out__str(out, key);
	if (known)
		out__u64(out, n);
	else
		out__str(out, "null");
}

static void call_object(struct out *out, const struct sink_summary_call *row)
{
	bool known = row->timed;

	out__str(out, "{\"call\":");
	json__string(out, row->name, strlen(row->name));
	member(out, ",\"calls\":", row->calls, true);
	member(out, ",\"errors\":", row->errors, true);
	member(out, ",\"timed\":", row->timed, true);
	member(out, ",\"total_ns\":", row->total_ns, known);
	member(out, ",\"mean_ns\":", known ? row->total_ns / row->timed : 0, known);
	member(out, ",\"p50_ns\":", row->p50_ns, known);
	member(out, ",\"p99_ns\":", row->p99_ns, known);
	member(out, ",\"max_ns\":", row->max_ns, known);
	out__char(out, '}');
}

/* Of others there is no pid. */
static void process_object(struct out *out, const struct sink_summary_process *row)
{
	member(out, "{\"pid\":", row->pid, row->pid);
	if (row->pid && *row->comm) {
		out__str(out, ",\"comm\":");
		json__string(out, row->comm, strlen(row->comm));
	}
	member(out, ",\"calls\":", row->calls, true);
	member(out, ",\"errors\":", row->errors, true);
	member(out, ",\"timed\":", row->timed, true);
	member(out, ",\"total_ns\":", row->total_ns, row->timed);
	out__char(out, '}');
}

void sink__summary_json(struct out *out, const struct sink_summary *summary)
{
	out__str(out, "\"calls\":[");
	for (size_t i = 0; i < summary->nr_calls; i++) {
		if (i)
			out__char(out, ',');
		call_object(out, &summary->calls[i]);
	}
	out__str(out, "],\"processes\":[");
	for (size_t i = 0; i < summary->nr_processes; i++) {
		if (i)
			out__char(out, ',');
		process_object(out, &summary->processes[i]);
	}
	out__char(out, ']');
}
