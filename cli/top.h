/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * top.h - what the parts of `weir top` share: the options, an interval as it is shown, and those who show
 * it.
 */
#ifndef WEIR_CLI_TOP_H
#define WEIR_CLI_TOP_H

#include "cli/filter.h"
#include "cli/options.h"
#include "cli/selection.h"
#include "state/usage.h"

extern const struct command_def top_command;

struct top_options {
	struct option_list pids;
	struct filter filter; /* comms, user, cgroup, container */
	const char *by, *sort, *color, *replay;
	uint64_t interval_ns, count, rows, buffer;
	bool batch, threads, no_idle, json, once, counters, tree, account, cmdline, strict, verbose;
};

enum top_sort {
	TOP_SORT_TIME = 0,
	TOP_SORT_TOTAL,
	TOP_SORT_VOLUNTARY,
	TOP_SORT_INVOLUNTARY,
	TOP_SORT_MIGRATIONS,
	TOP_SORT_WAIT,
	TOP_SORT_P50,
	TOP_SORT_P99,
	TOP_SORT_MAX,
	TOP_SORT_RSS,
	TOP_SORT_CYCLES,
	TOP_SORT_IPC,
	TOP_SORT_PID,
	TOP_SORT_NAME,
	TOP_SORTS
};

/* NULL: no such. The name is --sort's word. */
const char *top_sort__name(enum top_sort sort);
const char *top_by__name(enum usage_by by);
bool top_sort__find(const char *word, enum top_sort *out);
bool top_by__find(const char *word, enum usage_by *out);

#define TOP_TEXT_MAX 64

/* What of an interval is shown, and in which order. */
struct top_view {
	enum usage_by by;
	enum top_sort sort;
	bool reverse, tree, no_idle, no_ended, counters;
	bool cmdline; /* of processes and threads, instead of their names */
	bool account; /* also rows of idle time and of gaps */
	bool has_uid;
	uint32_t uid;
	uint32_t pids[SELECTION_PIDS_MAX];
	uint32_t nr_pids;
	const struct filter *filter; /* checked; its user is above */
	char text[TOP_TEXT_MAX];     /* part of a name or pid; "": any */
};

/* What weir itself has lost and cost, since the beginning. */
struct top_account {
	uint64_t produced, told, lost, pending; /* switches, as the kernel's side counted them */
	uint64_t life_lost;			/* forks, execs, exits: names may be missing */
	uint64_t self_ns, self_bytes;		/* weir's own CPU time and RSS */
	int64_t wall_offset_ns;			/* wall clock = stamp + that */
};

/* What a process was started with: words, each but the last with a NUL behind it. */
#define TOP_CMDLINE_MAX 1024
struct top_cmdline {
	size_t len;
	char bytes[];
};

/* What only /proc tells of a process. */
struct top_proc {
	uint64_t rss_bytes;	     /* 0: unknown, or nothing */
	struct top_cmdline *cmdline; /* NULL: unknown, none, or nobody has asked */
};

/* Of processes that were asked for while they ran. */
struct top_procs;

/* NULL: no memory. */
struct top_procs *top_procs__new(void);
void top_procs__free(struct top_procs *procs);
/*
 * Of a row's process, in the interval that ends there. time_ns: CPU time that it has had, or anything that
 * differs when it has run. NULL: nothing is known. Valid while that is the interval.
 */
const struct top_proc *top_procs__ask(struct top_procs *procs, const struct usage_row *row,
				      int64_t time_ns, bool cmdline, uint64_t to_ns);
/* What a small file of a process's holds, with a NUL behind it; 0: it can't be read. */
size_t top_procs__read(uint32_t pid, const char *name, char *out, size_t size);

/* One line: a group, with what is asked of the kernel for it. */
struct top_line {
	struct usage_group *group;
	const struct top_proc *proc; /* NULL: nothing is known, or it was not asked for */
	uint32_t depth;		     /* in the tree */
};

/* An interval, ready to be shown. */
struct top_table {
	const struct usage_snapshot *snapshot; /* NULL: there is none yet */
	struct top_account account;
	struct top_account before; /* at the interval's beginning */
	struct usage_groups groups;
	struct top_line *lines;
	size_t count, room;
	size_t nobodys; /* of these, in front: idle time and gaps, if they are shown at all */
	size_t processes, threads, exited;
	struct top_procs *procs; /* NULL: nobody was asked for yet */
	bool live;		 /* of this machine, now: /proc knows more */
};

/* Lines of the snapshot, as the view has them. 0 or -ENOMEM. */
int top_table__fill(struct top_table *table, const struct top_view *view);
void top_table__free(struct top_table *table);

/* Lines up to the `rows`th that is somebody's; 0: all. */
static inline size_t top_table__first(const struct top_table *table, uint64_t rows)
{
	return rows && rows < table->count - table->nobodys ? rows + table->nobodys : table->count;
}

/*
 * Of those lines that are about to be shown what only /proc knows: RSS, command lines, and names that no event
 * has told.
 */
void top_table__ask(struct top_table *table, const struct top_view *view, size_t first,
		    size_t count);

static inline uint64_t top_table__interval_ns(const struct top_table *table)
{
	return table->snapshot->to_ns - table->snapshot->from_ns;
}

/* ---- cells ------------------------------------------------------------------------------------ */

#define TOP_LINE_MAX 512

/* Columns that fit into `width`, with a name behind them: the line of titles, or of one row. */
void top_cells__titles(const struct top_view *view, unsigned width, char out[TOP_LINE_MAX]);
void top_cells__line(const struct top_table *table, const struct top_view *view,
		     const struct top_line *line, unsigned width, char out[TOP_LINE_MAX]);
/* In place of rows, where there are none: what was asked for may come yet, or was mistyped. */
void top_cells__nobody(const struct top_view *view, char out[TOP_LINE_MAX]);
/* A line above the table. */
enum top_head {
	TOP_HEAD_TIME = 0,
	TOP_HEAD_PERCENT,
	TOP_HEAD_IDENTITY, /* what the line before says, to the nanosecond */
	TOP_HEAD_SWITCHES,
	TOP_HEAD_LINES
};
void top_cells__head(const struct top_table *table, const struct top_view *view,
		     enum top_head which, char out[TOP_LINE_MAX]);
/* By how much the accounts don't add up: 0, or a fault of ours. */
int64_t top_cells__difference_ns(const struct usage_snapshot *snapshot);
/* What all came to, at the end. */
void top_cells__end(const struct usage_snapshot *snapshot, const struct top_account *account,
		    char out[TOP_LINE_MAX]);
/* 12.3us, at most 6 columns. */
void top_cells__duration(char *out, size_t size, uint64_t ns);

/* ---- where figures come from, and go ---------------------------------------------------------- */

struct top_source;

/* NULL, and why was said. */
struct top_source *top_source__open(const struct top_options *opts);
/* Read what there is. 0 or -errno. */
int top_source__poll(struct top_source *source);
/* The interval up to now. NULL: no memory. */
const struct usage_snapshot *top_source__take(struct top_source *source);
void top_source__account(struct top_source *source, struct top_account *out);
/* No more switches; what there was is read. */
int top_source__close(struct top_source *source);
void top_source__free(struct top_source *source);

/* One of them is readable when it wants to be read. */
enum { TOP_WAKE_STREAM = 0, TOP_WAKE_RINGS, TOP_WAKE_FDS };
void top_source__wake_fds(const struct top_source *source, int fds[TOP_WAKE_FDS]);

/* An interval of a capture. Other than 0 ends it. */
typedef int (*top_interval_fn)(void *ctx, const struct usage_snapshot *snapshot,
			       const struct top_account *account, bool last);

struct top_replay;

/* NULL, and why was said. */
struct top_replay *top_replay__open(const struct top_options *opts);
/* Once, from the capture's begin. The last interval may be shorter. 0, what fn returned, or -errno. */
int top_replay__run(struct top_replay *replay, top_interval_fn fn, void *ctx);
/* What the capture lacks: missing metadata, damage, and, where all was read, its end. */
void top_replay__say_flaws(const struct top_replay *replay);
/* Of what was read, is something missing? */
bool top_replay__is_loss(const struct top_replay *replay);
void top_replay__free(struct top_replay *replay);

struct out;

/* One report; its rows are asked for RSS. 0, or the output's error. */
int top_batch__report(struct out *out, struct top_table *table, const struct top_view *view,
		      uint64_t max_rows, bool first);
int top_json__report(struct out *out, struct top_table *table, const struct top_view *view,
		     uint64_t max_rows);

struct top_screen;

/* Takes the terminal. NULL: it can't be used, and why was said. */
struct top_screen *top_screen__open(struct top_view *view, uint64_t *interval_ns, bool color,
				    bool replay);
/* Keys that came; `revents` is what poll(2) said of standard input. false: the user has had enough. */
bool top_screen__keys(struct top_screen *screen, short revents);
/* Is an interval wanted at all? Not while frozen. */
bool top_screen__is_frozen(const struct top_screen *screen);
void top_screen__show(struct top_screen *screen, struct top_table *table);
/* Of a capture: how many reports on (or back, below 0) the user wants, since the last call. */
int top_screen__steps(struct top_screen *screen);
/* Of a capture: how long a report stays. */
uint64_t top_screen__pace_ns(const struct top_screen *screen);
/* Instead of the line at the foot, until the next key. */
void top_screen__say(struct top_screen *screen, const char *text);
/* The table is none any more; what is on the terminal stays until the next. NULL is allowed. */
void top_screen__forget(struct top_screen *screen);
/* Gives the terminal back. */
void top_screen__close(struct top_screen *screen);

#endif /* WEIR_CLI_TOP_H */
