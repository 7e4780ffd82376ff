// SPDX-License-Identifier: BSD-2-Clause
/* top_json.c - an interval as one JSON object on a line: docs/schema/weir-top.schema.json. */
#include "cli/top.h"
#include "sinks/json.h"
#include "sinks/out.h"

#include <weir/event.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

/* What is being written, and whether a comma stands before what comes next. */
struct json {
	struct out *out;
	bool more;
};

/* NULL: of an array's element. */
static void key(struct json *json, const char *name)
{
	if (json->more)
		out__char(json->out, ',');
	json->more = true;
	if (!name)
		return;
	out__char(json->out, '"');
	out__str(json->out, name);
	out__str(json->out, "\":");
}

static void begin(struct json *json, const char *name, char bracket)
{
	key(json, name);
	out__char(json->out, bracket);
	json->more = false;
}

static void end(struct json *json, char bracket)
{
	out__char(json->out, bracket);
	json->more = true;
}

static void member_u64(struct json *json, const char *name, uint64_t value)
{
	key(json, name);
	out__u64(json->out, value);
}

static void member_i64(struct json *json, const char *name, int64_t value)
{
	key(json, name);
	out__i64(json->out, value);
}

/* Stamps have 19 digits, which are more than a JavaScript number keeps. */
static void member_stamp(struct json *json, const char *name, uint64_t ns)
{
	key(json, name);
	out__char(json->out, '"');
	out__u64(json->out, ns);
	out__char(json->out, '"');
}

static void member_text(struct json *json, const char *name, const char *text)
{
	key(json, name);
	json__string(json->out, text, strlen(text));
}

static void put_wall(struct json *json, int64_t wall_ns)
{
	time_t seconds = (time_t)(wall_ns / 1000000000);
	char text[64];
	struct tm tm;
	size_t len;

	gmtime_r(&seconds, &tm);
	len = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + len, sizeof(text) - len, ".%09lldZ", (long long)(wall_ns % 1000000000));
	member_text(json, "time", text);
}

/* counters: bits of those that there are. */
static void put_counts(struct json *json, const struct usage_counts *counts, uint32_t counters)
{
	static const char *const names[WEIR_LEAN_COUNTERS] = {
		[WEIR_LEAN_CYCLES] = "cycles",
		[WEIR_LEAN_INSTRUCTIONS] = "instructions",
		[WEIR_LEAN_CACHE_MISSES] = "cache_misses",
	};

	member_i64(json, "time_ns", counts->time_ns);
	member_u64(json, "voluntary", counts->voluntary);
	member_u64(json, "involuntary", counts->involuntary);
	member_u64(json, "migrations", counts->migrations);
	member_u64(json, "wait_ns", counts->wait_ns);
	member_u64(json, "waits_unknown", counts->waits_unknown);
	for (int i = 0; i < WEIR_LEAN_COUNTERS; i++)
		if (counters >> i & 1)
			member_u64(json, names[i], counts->counter[i]);
	if (counters)
		member_u64(json, "uncounted_slices", counts->uncounted);
}

static void put_delays(struct json *json, const struct delays *delays)
{
	if (!delays || !delays->count)
		return;
	begin(json, "waits", '{');
	member_u64(json, "count", delays->count);
	member_u64(json, "mean_ns", delays->total_ns / delays->count);
	member_u64(json, "p50_ns", delays__quantile_ns(delays, 500));
	member_u64(json, "p99_ns", delays__quantile_ns(delays, 990));
	member_u64(json, "max_ns", delays->max_ns);
	end(json, '}');
}

static const char *kind_name(enum usage_kind kind)
{
	switch (kind) {
	case USAGE_IDLE:
		return "idle";
	case USAGE_GAP:
		return "gap";
	case USAGE_GONE:
	case USAGE_GONE_THREADS:
		return "gone";
	default:
		return "tasks";
	}
}

static const char *state_name(enum usage_state state)
{
	static const char *const names[] = {
		[USAGE_SLEEPING] = "sleeping", [USAGE_RUNNING] = "running",
		[USAGE_WAITING] = "waiting",   [USAGE_BLOCKED] = "blocked",
		[USAGE_STOPPED] = "stopped",   [USAGE_EXITED] = "exited",
	};

	return names[state];
}

static void put_names(struct json *json, const struct usage_row *row, enum usage_by by)
{
	if (by == USAGE_BY_PROCESS || by == USAGE_BY_THREAD) {
		member_u64(json, "pid", row->pid);
		if (by == USAGE_BY_THREAD)
			member_u64(json, "tid", row->tid);
		if (row->start_ns)
			member_stamp(json, "start", row->start_ns);
		if (row->ppid)
			member_u64(json, "ppid", row->ppid);
		if (row->comm[0])
			member_text(json, "comm", row->comm);
		if (row->name[0])
			member_text(json, "name", row->name);
		if (row->exe)
			member_text(json, "exe", row->exe);
	}
	if (row->uid != TASKS_UID_UNKNOWN)
		member_u64(json, "uid", row->uid);
	if (row->cgroup)
		member_text(json, "cgroup", row->cgroup);
	if (row->container)
		member_text(json, "container", row->container);
	if (by == USAGE_BY_CPU && row->cpu >= 0)
		member_i64(json, "cpu", row->cpu);
}

/* An array of its words. */
static void put_cmdline(struct json *json, const struct top_cmdline *cmdline)
{
	begin(json, "cmdline", '[');
	for (size_t at = 0; at < cmdline->len;) {
		size_t len = strnlen(cmdline->bytes + at, cmdline->len - at);

		key(json, NULL);
		json__string(json->out, cmdline->bytes + at, len);
		at += len + 1;
	}
	end(json, ']');
}

static void put_row(struct json *json, const struct top_line *line, const struct top_view *view,
		    uint32_t counters)
{
	const struct usage_group *group = line->group;
	const struct usage_row *row = &group->row;

	begin(json, NULL, '{');
	member_text(json, "kind", kind_name(row->kind));
	if (row->kind == USAGE_THREAD) {
		put_names(json, row, view->by);
		if (line->proc && line->proc->cmdline)
			put_cmdline(json, line->proc->cmdline);
		if (view->by != USAGE_BY_CPU) {
			member_text(json, "state", state_name(row->state));
			member_u64(json, "threads", group->threads);
			member_u64(json, "processes", group->processes);
			member_u64(json, "exited_threads", group->exited);
		}
	}
	put_counts(json, &row->now, counters);
	put_delays(json, row->delays);
	if (line->proc && line->proc->rss_bytes)
		member_u64(json, "rss_bytes", line->proc->rss_bytes);
	begin(json, "total", '{');
	put_counts(json, &row->total, counters);
	end(json, '}');
	end(json, '}');
}

static void put_cpu(struct json *json, const struct usage_cpu_row *cpu)
{
	begin(json, NULL, '{');
	member_u64(json, "cpu", cpu->cpu);
	member_i64(json, "tasks_ns", cpu->tasks_ns);
	member_i64(json, "idle_ns", cpu->idle_ns);
	member_i64(json, "gap_ns", cpu->gap_ns);
	key(json, "online");
	out__str(json->out, cpu->away ? "false" : "true");
	end(json, '}');
}

static void put_identity(struct json *json, const struct usage_snapshot *snapshot)
{
	begin(json, "identity", '{');
	member_i64(json, "cpu_difference_ns", snapshot->cpu_difference_ns);
	member_i64(json, "rows_difference_ns", snapshot->rows_difference_ns);
	member_i64(json, "interval_difference_ns", snapshot->interval_difference_ns);
	end(json, '}');
}

static void put_account(struct json *json, const struct top_table *table)
{
	const struct usage_snapshot *snapshot = table->snapshot;
	const struct top_account *account = &table->account;

	begin(json, "switches", '{');
	member_u64(json, "interval", snapshot->switches);
	member_u64(json, "produced", account->produced);
	member_u64(json, "told", account->told);
	member_u64(json, "lost", account->lost);
	member_u64(json, "pending", account->pending);
	member_u64(json, "unseen", snapshot->trouble.unseen);
	member_u64(json, "steps_back", snapshot->trouble.steps_back);
	member_u64(json, "broken", snapshot->trouble.broken);
	end(json, '}');
	begin(json, "self", '{');
	member_u64(json, "cpu_ns", account->self_ns);
	member_u64(json, "rss_bytes", account->self_bytes);
	member_u64(json, "accounts_bytes", snapshot->bytes);
	member_u64(json, "evicted", snapshot->evicted);
	member_u64(json, "life_lost", account->life_lost);
	end(json, '}');
}

int top_json__report(struct out *out, struct top_table *table, const struct top_view *view,
		     uint64_t max_rows)
{
	const struct usage_snapshot *snapshot = table->snapshot;
	struct json json = {.out = out};
	size_t count = top_table__first(table, max_rows);

	top_table__ask(table, view, 0, count);
	begin(&json, NULL, '{');
	put_wall(&json, (int64_t)snapshot->to_ns + table->account.wall_offset_ns);
	member_stamp(&json, "begin", snapshot->begin_ns);
	member_stamp(&json, "from", snapshot->from_ns);
	member_stamp(&json, "to", snapshot->to_ns);
	member_text(&json, "by", top_by__name(view->by));
	put_identity(&json, snapshot);
	put_account(&json, table);
	begin(&json, "cpus", '[');
	for (size_t i = 0; i < snapshot->nr_cpus; i++)
		put_cpu(&json, &snapshot->cpus[i]);
	end(&json, ']');
	begin(&json, "rows", '[');
	for (size_t i = 0; i < count; i++)
		put_row(&json, &table->lines[i], view, snapshot->counters);
	end(&json, ']');
	member_u64(&json, "rows_left_out", table->count - count);
	end(&json, '}');
	out__char(out, '\n');
	out__end(out, false, WEIR_SOURCE_NONE);
	return out__flush(out);
}
