// SPDX-License-Identifier: BSD-2-Clause
/*
 * top_cells.c - numbers -> columns of text. Owns which columns there are, how wide each is, and which go
 * first where a line is narrow. Nothing but printable ASCII comes out.
 */
#include "cli/top.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NSEC_PER_SEC 1000000000
/* Columns that a name has at least. A path needs more, and its end says most; so does a command line. */
#define NAME_LEAST   12
#define LONG_LEAST   32

struct row {
	const struct top_table *table;
	const struct top_view *view;
	const struct top_line *line;
	const struct usage_row *usage;
};

/* ---- numbers ------------------------------------------------------------------------------------ */

/* Three digits, of which as many behind the point as fit. */
static void put_3(char *out, size_t size, uint64_t whole, uint64_t thousandths, const char *unit)
{
	if (whole >= 100)
		snprintf(out, size, "%" PRIu64 "%s", whole, unit);
	else if (whole >= 10)
		snprintf(out, size, "%" PRIu64 ".%" PRIu64 "%s", whole, thousandths / 100, unit);
	else
		snprintf(out, size, "%" PRIu64 ".%02" PRIu64 "%s", whole, thousandths / 10, unit);
}

void top_cells__duration(char *out, size_t size, uint64_t ns)
{
	static const struct {
		uint64_t ns;
		const char *unit;
	} units[] = {{NSEC_PER_SEC, "s"}, {1000000, "ms"}, {1000, "us"}};

	for (unsigned i = 0; i < 3; i++) {
		if (ns >= units[i].ns) {
			put_3(out, size, ns / units[i].ns, ns % units[i].ns * 1000 / units[i].ns,
			      units[i].unit);
			return;
		}
	}
	snprintf(out, size, "%" PRIu64 "ns", ns);
}

static void put_count(char *out, size_t size, uint64_t count)
{
	static const char *const units[] = {"k", "M", "G", "T", "P"};
	uint64_t unit = 1000, i = 0;

	if (count < 1000000) {
		snprintf(out, size, "%" PRIu64, count);
		return;
	}
	while (count / unit >= 1000 && i < 4) {
		unit *= 1000;
		i++;
	}
	put_3(out, size, count / unit, count % unit / (unit / 1000), units[i]);
}

static void put_bytes(char *out, size_t size, uint64_t bytes)
{
	static const char units[] = "KMGTP";
	uint64_t unit = 1024, i = 0;
	char one[2] = {0};

	while (bytes / unit >= 1024 && i < 4) {
		unit *= 1024;
		i++;
	}
	one[0] = units[i];
	put_3(out, size, bytes / unit, (bytes % unit) / (unit / 1024) * 1000 / 1024, one);
}

/* Of one CPU: 100 is all of it. */
static void put_percent(char *out, size_t size, int64_t ns, uint64_t of_ns)
{
	double percent = of_ns ? 100.0 * (double)ns / (double)of_ns : 0.0;

	snprintf(out, size, percent >= 999.995 ? "%.1f" : "%.2f", percent);
}

/* ---- names -------------------------------------------------------------------------------------- */

/* What a terminal might obey comes as \xNN. */
static void printable(char *out, size_t size, const char *text, size_t len)
{
	size_t used = 0;

	for (size_t i = 0; i < len && text[i]; i++) {
		unsigned char c = (unsigned char)text[i];
		bool plain = c >= ' ' && c < 0x7f && c != '\\';

		if (used + (plain ? 2 : 5) > size)
			break;
		if (plain)
			out[used++] = (char)c;
		else
			used += (size_t)snprintf(out + used, size - used, "\\x%02x", c);
	}
	out[used] = '\0';
}

/* Of few users again and again: the last answers are kept. */
static const char *user_name(uint32_t uid)
{
	static struct {
		uint32_t uid;
		bool known;
		char name[32];
	} cache[64];
	unsigned slot = uid % 64;
	const struct passwd *user;

	if (uid == TASKS_UID_UNKNOWN)
		return "?";
	if (cache[slot].known && cache[slot].uid == uid)
		return cache[slot].name;
	user = getpwuid(uid);
	cache[slot].uid = uid;
	cache[slot].known = true;
	if (user)
		printable(cache[slot].name, sizeof(cache[slot].name), user->pw_name, SIZE_MAX);
	else
		snprintf(cache[slot].name, sizeof(cache[slot].name), "%u", uid);
	return cache[slot].name;
}

static void put_name(char *out, size_t size, const struct usage_row *row)
{
	const char *text = row->name[0] ? row->name : row->comm;

	if (row->tid != row->pid && row->comm[0])
		text = row->comm;
	if (text[0])
		printable(out, size, text, WEIR_COMM_LEN);
	else
		snprintf(out, size, "?");
}

/* The words with a blank between them. */
static void put_cmdline(char *out, size_t size, const struct top_cmdline *cmdline)
{
	size_t used = 0;

	for (size_t at = 0; at < cmdline->len && used + 1 < size;) {
		size_t len = strnlen(cmdline->bytes + at, cmdline->len - at);

		if (at)
			out[used++] = ' ';
		printable(out + used, size - used, cmdline->bytes + at, len);
		used += strlen(out + used);
		at += len + 1;
	}
}

static void put_path(char *out, size_t size, const char *path, const char *otherwise)
{
	printable(out, size, path ? path : otherwise, SIZE_MAX);
}

static void row_name(const struct row *row, char *out, size_t size)
{
	const struct usage_row *usage = row->usage;

	if (usage->kind == USAGE_IDLE)
		snprintf(out, size, "[idle]");
	else if (usage->kind == USAGE_GAP)
		snprintf(out, size, "[gap]");
	else if (usage->kind == USAGE_GONE)
		snprintf(out, size, "[others, gone]");
	else if (row->view->cmdline && row->line->proc && row->line->proc->cmdline)
		put_cmdline(out, size, row->line->proc->cmdline);
	else if (row->view->by == USAGE_BY_CGROUP)
		put_path(out, size, usage->cgroup, "(no cgroup known)");
	else if (row->view->by == USAGE_BY_CONTAINER)
		put_path(out, size, usage->container, "(no container)");
	else if (row->view->by == USAGE_BY_USER)
		snprintf(out, size, "%s", user_name(usage->uid));
	else if (row->view->by == USAGE_BY_CPU)
		snprintf(out, size, "CPU %d", usage->cpu);
	else
		put_name(out, size, usage);
}

/* ---- columns ------------------------------------------------------------------------------------ */

static bool is_task(const struct row *row)
{
	return row->usage->kind != USAGE_IDLE && row->usage->kind != USAGE_GAP;
}

static void cell_pid(const struct row *row, char *out, size_t size)
{
	if (row->usage->kind == USAGE_THREAD)
		snprintf(out, size, "%u",
			 row->view->by == USAGE_BY_THREAD ? row->usage->tid : row->usage->pid);
}

static void cell_user(const struct row *row, char *out, size_t size)
{
	if (row->usage->kind == USAGE_THREAD)
		snprintf(out, size, "%.8s", user_name(row->usage->uid));
}

static void cell_state(const struct row *row, char *out, size_t size)
{
	static const char letters[] = {
		[USAGE_SLEEPING] = 'S', [USAGE_RUNNING] = 'R', [USAGE_WAITING] = 'W',
		[USAGE_BLOCKED] = 'D',	[USAGE_STOPPED] = 'T', [USAGE_EXITED] = 'X',
	};

	if (row->usage->kind == USAGE_THREAD && row->view->by != USAGE_BY_CPU)
		snprintf(out, size, "%c", letters[row->usage->state]);
}

static void cell_tasks(const struct row *row, char *out, size_t size)
{
	const struct usage_group *group = row->line->group;

	if (row->usage->kind == USAGE_THREAD)
		put_count(out, size,
			  row->view->by == USAGE_BY_PROCESS ? group->threads : group->processes);
}

static void cell_cpu(const struct row *row, char *out, size_t size)
{
	put_percent(out, size, row->usage->now.time_ns, top_table__interval_ns(row->table));
}

/* 1:02.345 */
static void cell_total(const struct row *row, char *out, size_t size)
{
	int64_t ms = row->usage->total.time_ns / 1000000;
	const char *sign = ms < 0 ? "-" : "";

	ms = ms < 0 ? -ms : ms;
	snprintf(out, size, "%s%" PRId64 ":%02d.%03d", sign, ms / 60000, (int)(ms / 1000 % 60),
		 (int)(ms % 1000));
}

static void cell_voluntary(const struct row *row, char *out, size_t size)
{
	if (is_task(row))
		put_count(out, size, row->usage->now.voluntary);
}

static void cell_involuntary(const struct row *row, char *out, size_t size)
{
	if (is_task(row))
		put_count(out, size, row->usage->now.involuntary);
}

static void cell_migrations(const struct row *row, char *out, size_t size)
{
	if (is_task(row))
		put_count(out, size, row->usage->now.migrations);
}

static const struct delays *delays_of(const struct row *row)
{
	return row->usage->delays && row->usage->delays->count ? row->usage->delays : NULL;
}

static void cell_mean(const struct row *row, char *out, size_t size)
{
	const struct delays *delays = delays_of(row);

	if (delays)
		top_cells__duration(out, size, delays->total_ns / delays->count);
}

/* What lies in the first bucket is known to be below its end, and no more. */
static void put_quantile(const struct row *row, char *out, size_t size, unsigned per_mille)
{
	const struct delays *delays = delays_of(row);
	uint64_t ns = delays ? delays__quantile_ns(delays, per_mille) : 0;

	if (delays && ns < DELAYS_LEAST_NS)
		snprintf(out, size, "<%uns", DELAYS_LEAST_NS);
	else if (delays)
		top_cells__duration(out, size, ns);
}

static void cell_p50(const struct row *row, char *out, size_t size)
{
	put_quantile(row, out, size, 500);
}

static void cell_p99(const struct row *row, char *out, size_t size)
{
	put_quantile(row, out, size, 990);
}

static void cell_max(const struct row *row, char *out, size_t size)
{
	if (delays_of(row))
		top_cells__duration(out, size, delays_of(row)->max_ns);
}

static void cell_rss(const struct row *row, char *out, size_t size)
{
	if (row->line->proc && row->line->proc->rss_bytes)
		put_bytes(out, size, row->line->proc->rss_bytes);
}

/* Of slices that could not be counted nothing is known: what there is, is at least that. */
static bool has_counts(const struct row *row)
{
	return row->usage->now.counter[WEIR_LEAN_CYCLES] && !row->usage->now.uncounted;
}

static void cell_cycles(const struct row *row, char *out, size_t size)
{
	if (has_counts(row))
		put_count(out, size, row->usage->now.counter[WEIR_LEAN_CYCLES]);
}

static void cell_ipc(const struct row *row, char *out, size_t size)
{
	const uint64_t *counter = row->usage->now.counter;

	if (has_counts(row) && row->table->snapshot->counters >> WEIR_LEAN_INSTRUCTIONS & 1)
		snprintf(out, size, "%.2f",
			 (double)counter[WEIR_LEAN_INSTRUCTIONS] /
				 (double)counter[WEIR_LEAN_CYCLES]);
}

#define ALONE	(1u << USAGE_BY_PROCESS | 1u << USAGE_BY_THREAD)
#define GROUPED (1u << USAGE_BY_CGROUP | 1u << USAGE_BY_CONTAINER | 1u << USAGE_BY_USER)
#define ALL	(ALONE | GROUPED | 1u << USAGE_BY_CPU)

struct column {
	const char *title;
	int width;
	bool left;
	unsigned by;   /* bits of the groups that have it */
	unsigned need; /* the higher, the earlier it goes where a line is narrow */
	bool counters;
	void (*cell)(const struct row *row, char *out, size_t size);
};

static const struct column columns[] = {
	{"PID", 7, false, ALONE, 0, false, cell_pid},
	{"USER", 8, true, ALONE, 5, false, cell_user},
	{"S", 1, true, ALONE | GROUPED, 2, false, cell_state},
	{"THR", 4, false, 1u << USAGE_BY_PROCESS, 12, false, cell_tasks},
	{"PROCS", 5, false, GROUPED, 3, false, cell_tasks},
	{"%CPU", 6, false, ALL, 0, false, cell_cpu},
	{"TOTAL", 9, false, ALL, 9, false, cell_total},
	{"VOL", 6, false, ALL, 4, false, cell_voluntary},
	{"INVOL", 6, false, ALL, 4, false, cell_involuntary},
	{"MIGR", 6, false, ALL, 10, false, cell_migrations},
	{"MEAN", 6, false, ALL, 11, false, cell_mean},
	{"P50", 6, false, ALL, 8, false, cell_p50},
	{"P99", 6, false, ALL, 3, false, cell_p99},
	{"MAX", 6, false, ALL, 6, false, cell_max},
	{"CYCLES", 6, false, ALL, 7, true, cell_cycles},
	{"IPC", 5, false, ALL, 6, true, cell_ipc},
	{"RSS", 6, false, ALONE, 7, false, cell_rss},
};
#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))

static bool is_there(const struct column *column, const struct top_view *view)
{
	return column->by >> view->by & 1 && (!column->counters || view->counters);
}

static bool is_long(const struct top_view *view)
{
	return view->by == USAGE_BY_CGROUP || view->by == USAGE_BY_CONTAINER ||
	       (view->cmdline && ALONE >> view->by & 1);
}

/* How much need a column may have: the most with which all that have no more fit. */
static unsigned need_that_fits(const struct top_view *view, unsigned width)
{
	for (unsigned need = 16; need > 0; need--) {
		unsigned sum = is_long(view) ? LONG_LEAST : NAME_LEAST;

		for (unsigned i = 0; i < N_COLUMNS; i++)
			if (is_there(&columns[i], view) && columns[i].need <= need)
				sum += (unsigned)columns[i].width + 1;
		if (sum <= width)
			return need;
	}
	return 0;
}

/* Blanks to the column's width; what is too long pushes the rest, and is not cut: it is a number. */
static size_t put_cell(char *out, size_t used, const struct column *column, const char *text)
{
	int len = snprintf(out + used, TOP_LINE_MAX - used, column->left ? "%-*s " : "%*s ",
			   column->width, text);

	used += len > 0 ? (size_t)len : 0;
	return used < TOP_LINE_MAX ? used : TOP_LINE_MAX - 1;
}

static void put_rest(char *out, size_t used, unsigned width, const char *text)
{
	size_t room = width < TOP_LINE_MAX ? width : TOP_LINE_MAX - 1;

	if (used < room)
		snprintf(out + used, room - used + 1, "%s", text);
	else
		out[room] = '\0';
}

/* "...scope/init": of what is too long, as much as fits. */
static void keep_end(char *text, size_t room)
{
	size_t len = strlen(text);

	if (len <= room || room < 4)
		return;
	memmove(text + 3, text + len - (room - 3), room - 3 + 1);
	memcpy(text, "...", 3);
}

void top_cells__titles(const struct top_view *view, unsigned width, char out[TOP_LINE_MAX])
{
	static const char *const names[] = {
		[USAGE_BY_PROCESS] = "COMMAND", [USAGE_BY_THREAD] = "THREAD",
		[USAGE_BY_CGROUP] = "CGROUP",	[USAGE_BY_CONTAINER] = "CONTAINER",
		[USAGE_BY_USER] = "USER",	[USAGE_BY_CPU] = "CPU",
	};
	unsigned need = need_that_fits(view, width);
	size_t used = 0;

	for (unsigned i = 0; i < N_COLUMNS; i++)
		if (is_there(&columns[i], view) && columns[i].need <= need)
			used = put_cell(out, used, &columns[i], columns[i].title);
	put_rest(out, used, width, names[view->by]);
}

void top_cells__line(const struct top_table *table, const struct top_view *view,
		     const struct top_line *line, unsigned width, char out[TOP_LINE_MAX])
{
	struct row row = {table, view, line, &line->group->row};
	unsigned need = need_that_fits(view, width), depth = line->depth;
	char text[TOP_LINE_MAX / 2], name[TOP_LINE_MAX];
	size_t used = 0;

	for (unsigned i = 0; i < N_COLUMNS; i++) {
		if (!is_there(&columns[i], view) || columns[i].need > need)
			continue;
		text[0] = '\0';
		columns[i].cell(&row, text, sizeof(text));
		used = put_cell(out, used, &columns[i], text[0] ? text : "-");
	}
	row_name(&row, text, sizeof(text));
	if (view->by == USAGE_BY_CGROUP && used < width)
		keep_end(text, width - used);
	snprintf(name, sizeof(name), "%*s%s", (int)(2 * depth), "", text);
	put_rest(out, used, width, name);
}

/* ---- above and below ---------------------------------------------------------------------------- */

/* 1.234567891s, to the nanosecond. */
static void put_exact(char *out, size_t size, int64_t ns)
{
	uint64_t abs_ns = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;

	snprintf(out, size, "%s%" PRIu64 ".%09" PRIu64 "s", ns < 0 ? "-" : "",
		 abs_ns / NSEC_PER_SEC, abs_ns % NSEC_PER_SEC);
}

struct sums {
	int64_t tasks_ns, idle_ns, gap_ns;
};

static struct sums sums_now(const struct usage_snapshot *snapshot)
{
	struct sums sums = {0};

	for (size_t i = 0; i < snapshot->nr_cpus; i++) {
		sums.tasks_ns += snapshot->cpus[i].tasks_ns;
		sums.idle_ns += snapshot->cpus[i].idle_ns;
		sums.gap_ns += snapshot->cpus[i].gap_ns;
	}
	return sums;
}

static struct sums sums_in_all(const struct usage_snapshot *snapshot)
{
	struct sums sums = {0};

	for (size_t i = 0; i < snapshot->nr_rows; i++) {
		const struct usage_row *row = &snapshot->rows[i];

		if (row->kind == USAGE_IDLE)
			sums.idle_ns += row->total.time_ns;
		else if (row->kind == USAGE_GAP)
			sums.gap_ns += row->total.time_ns;
		else
			sums.tasks_ns += row->total.time_ns;
	}
	return sums;
}

int64_t top_cells__difference_ns(const struct usage_snapshot *snapshot)
{
	if (snapshot->cpu_difference_ns)
		return snapshot->cpu_difference_ns;
	return snapshot->rows_difference_ns ? snapshot->rows_difference_ns
					    : snapshot->interval_difference_ns;
}

/* 2 CPUs x 1.0s = tasks ... + idle ... + gap ..., difference 0 */
static void put_identity(char *out, size_t size, size_t cpus, uint64_t elapsed_ns,
			 const struct sums *sums, int64_t difference)
{
	char elapsed[32], tasks[32], idle[32], gap[32];

	put_exact(elapsed, sizeof(elapsed), (int64_t)elapsed_ns);
	put_exact(tasks, sizeof(tasks), sums->tasks_ns);
	put_exact(idle, sizeof(idle), sums->idle_ns);
	if (sums->gap_ns)
		put_exact(gap, sizeof(gap), sums->gap_ns);
	else
		snprintf(gap, sizeof(gap), "0");
	snprintf(out, size, "%zu x %s = %s + idle %s + gap %s", cpus, elapsed, tasks, idle, gap);
	if (difference)
		snprintf(out + strlen(out), size - strlen(out), ", WRONG BY %" PRId64 " ns",
			 difference);
}

static void head_time(const struct top_table *table, const struct top_view *view, char *out)
{
	const struct usage_snapshot *snapshot = table->snapshot;
	int64_t wall_ns = (int64_t)snapshot->to_ns + table->account.wall_offset_ns;
	time_t seconds = (time_t)(wall_ns / NSEC_PER_SEC);
	char interval[16], clock[16];
	struct tm tm;

	localtime_r(&seconds, &tm);
	strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	top_cells__duration(interval, sizeof(interval), top_table__interval_ns(table));
	snprintf(out, TOP_LINE_MAX,
		 "weir top %s, last %s by %s: %zu processes, %zu threads, %zu ended", clock,
		 interval, top_by__name(view->by), table->processes, table->threads, table->exited);
}

/* On the scale of the rows, so that all of them together are this line. */
static void head_percent(const struct top_table *table, char *out)
{
	const struct usage_snapshot *snapshot = table->snapshot;
	uint64_t interval_ns = top_table__interval_ns(table);
	int64_t difference = top_cells__difference_ns(snapshot);
	struct sums sums = sums_now(snapshot);
	char tasks[16], idle[16], gap[16], sum[48] = "adds up to the ns";

	put_percent(tasks, sizeof(tasks), sums.tasks_ns, interval_ns);
	put_percent(idle, sizeof(idle), sums.idle_ns, interval_ns);
	put_percent(gap, sizeof(gap), sums.gap_ns, interval_ns);
	if (difference)
		snprintf(sum, sizeof(sum), "WRONG BY %" PRId64 " ns", difference);
	snprintf(out, TOP_LINE_MAX, "%%CPU: tasks %s, idle %s, gap %s of %zu (%zu CPU%s); %s",
		 tasks, idle, gap, 100 * snapshot->nr_cpus, snapshot->nr_cpus,
		 snapshot->nr_cpus == 1 ? "" : "s", sum);
}

static void head_account(const struct top_table *table, char *out)
{
	const struct usage_snapshot *snapshot = table->snapshot;
	const struct top_account *now = &table->account;
	char self[16], bytes[16], switches[16];

	put_count(switches, sizeof(switches), snapshot->switches);
	snprintf(out, TOP_LINE_MAX, "Switches: %s; in all lost %" PRIu64 ", unseen %" PRIu64,
		 switches, snapshot->trouble.lost, snapshot->trouble.unseen);
	if (table->live) {
		put_percent(self, sizeof(self), (int64_t)(now->self_ns - table->before.self_ns),
			    top_table__interval_ns(table));
		put_bytes(bytes, sizeof(bytes), now->self_bytes);
		snprintf(out + strlen(out), TOP_LINE_MAX - strlen(out), "; weir: %s %% CPU, %sB",
			 self, bytes);
	}
	if (snapshot->trouble.steps_back || snapshot->trouble.broken)
		snprintf(out + strlen(out), TOP_LINE_MAX - strlen(out),
			 "; stamps that stepped back %" PRIu64 ", broken %" PRIu64,
			 snapshot->trouble.steps_back, snapshot->trouble.broken);
	if (now->life_lost)
		snprintf(out + strlen(out), TOP_LINE_MAX - strlen(out), "; names lost %" PRIu64,
			 now->life_lost);
}

void top_cells__head(const struct top_table *table, const struct top_view *view,
		     enum top_head which, char out[TOP_LINE_MAX])
{
	const struct usage_snapshot *snapshot = table->snapshot;
	struct sums sums = sums_now(snapshot);

	out[0] = '\0';
	switch (which) {
	case TOP_HEAD_TIME:
		head_time(table, view, out);
		break;
	case TOP_HEAD_PERCENT:
		head_percent(table, out);
		break;
	case TOP_HEAD_IDENTITY:
		put_identity(out, TOP_LINE_MAX, snapshot->nr_cpus, top_table__interval_ns(table),
			     &sums, top_cells__difference_ns(snapshot));
		break;
	case TOP_HEAD_SWITCHES:
		head_account(table, out);
		break;
	case TOP_HEAD_LINES:
		break;
	}
}

void top_cells__nobody(const struct top_view *view, char out[TOP_LINE_MAX])
{
	const struct filter *filter = view->filter;
	const char *what = filter->container ? "in container " : filter->cgroup ? "in cgroup " : "";
	const char *name = filter->container ? filter->container : filter->cgroup;
	size_t used = (size_t)snprintf(out, TOP_LINE_MAX, "  nobody %s", what);

	put_path(out + used, TOP_LINE_MAX - used, name, "that was asked for");
}

void top_cells__end(const struct usage_snapshot *snapshot, const struct top_account *account,
		    char out[TOP_LINE_MAX])
{
	struct sums sums = sums_in_all(snapshot);
	char self[16];

	put_identity(out, TOP_LINE_MAX, snapshot->nr_cpus, snapshot->to_ns - snapshot->begin_ns,
		     &sums, top_cells__difference_ns(snapshot));
	top_cells__duration(self, sizeof(self), account->self_ns);
	snprintf(out + strlen(out), TOP_LINE_MAX - strlen(out),
		 "; switches: produced %" PRIu64 " = told %" PRIu64 " + lost %" PRIu64
		 " + pending %" PRIu64 "; unseen %" PRIu64,
		 account->produced, account->told, account->lost, account->pending,
		 snapshot->trouble.unseen);
	if (account->self_ns)
		snprintf(out + strlen(out), TOP_LINE_MAX - strlen(out), "; weir %s CPU", self);
}
