// SPDX-License-Identifier: BSD-2-Clause
/*
 * top.c - `weir top`: who has the CPUs, to the nanosecond.
 *
 * Puts the rooms together: a source tells switches, accounts add them up, and each interval a table of
 * them is shown on a screen, as lines, or as JSON. At the end, whatever ends it, one line says what
 * all of it came to.
 */
#include "cli/clock.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/selection.h"
#include "cli/stop.h"
#include "cli/style.h"
#include "cli/top.h"
#include "sinks/out.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_INTERVAL_NS (2 * NSEC_PER_SEC)
#define LEAST_INTERVAL_NS   (NSEC_PER_SEC / 10)
/* A screen that stays empty for a whole interval looks as if it hung. */
#define FIRST_SCREEN_NS	    (NSEC_PER_SEC / 2)
#define OUT_BUFFER_BYTES    (256u << 10)
#define STOP_GRACE_MS	    400
#define LEAST_PAUSE_MS	    1 /* between two looks at rings that fill up */

#define AT(member) OPTION_AT(struct top_options, member)

static const struct option_def top_options[] = {
	{'b', "batch", OPTION_FLAG, AT(batch), NULL,
	 "print reports instead of keeping a screen; what happens anyway\n"
	 "when the output is no terminal"},
	{'n', "count", OPTION_COUNT, AT(count), "N", "end after N reports"},
	{'d', "interval", OPTION_DURATION, AT(interval_ns), "TIME",
	 "time that a report covers, from 0.1: 5 (seconds), 500ms. Default: 2"},
	{0, "once", OPTION_FLAG, AT(once), NULL, "one report, as -b -n 1"},
	{'H', "threads", OPTION_FLAG, AT(threads), NULL, "a row for each thread, as --by thread"},
	{0, "by", OPTION_STRING, AT(by), "WHAT",
	 "a row for each process (default), thread, cgroup, container,\n"
	 "user or cpu"},
	{'o', "sort", OPTION_STRING, AT(sort), "KEY",
	 "cpu (default), total, vol, invol, migr, wait, p50, p99, max, rss,\n"
	 "cycles, ipc, pid or name; the most first; - in front turns it round"},
	{'u', "uid", OPTION_STRING, AT(filter.user), "USER",
	 "only of USER's (name or number) processes"},
	{'p', "pid", OPTION_LIST, AT(pids), "PID[,PID]...", "only of these processes"},
	{0, "comm", OPTION_LIST, AT(filter.comms), "GLOB",
	 "only of threads or processes whose name matches; repeat for more"},
	{0, "container", OPTION_STRING, AT(filter.container), "ID",
	 "only in this container: its id or name, or how that begins"},
	{0, "cgroup", OPTION_STRING, AT(filter.cgroup), "PATH",
	 "only in this cgroup and those below it"},
	{'i', "no-idle", OPTION_FLAG, AT(no_idle), NULL,
	 "leave out who did not have a CPU in the interval"},
	{0, "account", OPTION_FLAG, AT(account), NULL,
	 "also rows of idle time and of gaps; --json has them anyway"},
	{'c', "cmdline", OPTION_FLAG, AT(cmdline), NULL,
	 "command lines instead of names; --json has them anyway"},
	{0, "tree", OPTION_FLAG, AT(tree), NULL, "processes below their parents"},
	{0, "rows", OPTION_COUNT, AT(rows), "N",
	 "with -b or --json: the first N rows of each report"},
	{0, "json", OPTION_FLAG, AT(json), NULL, "an object a report (see docs/schema)"},
	{0, "counters", OPTION_FLAG, AT(counters), NULL,
	 "also cycles, instructions and cache misses, where the machine\n"
	 "counts them"},
	{0, "replay", OPTION_STRING, AT(replay), "DIR",
	 "reports on a capture (of weir record -e process,sched) instead of\n"
	 "the live kernel; on a screen they pass by, and left and right go\n"
	 "from one to the other"},
	{0, "color", OPTION_STRING, AT(color), "WHEN",
	 "auto (default: on a terminal, unless NO_COLOR is set), always or\n"
	 "never"},
	{0, "buffer", OPTION_SIZE, AT(buffer), "SIZE",
	 "room for switches that were not read yet, for the whole machine.\n"
	 "Default: 5M a CPU"},
	{0, "strict", OPTION_FLAG, AT(strict), NULL, "exit with 3 if anything was lost"},
	{'v', "verbose", OPTION_FLAG, AT(verbose), NULL, "tell on standard error what is set up"},
	{0},
};

const struct command_def top_command = {
	.name = "top",
	.synopsis = "[OPTION]...",
	.about =
		"Shows who has the CPUs, for how long, and how long they waited for them: from each\n"
		"single switch, so processes that lived for a millisecond are there, and those that\n"
		"have ended. Time in which a switch was lost is a gap, and nobody's: tasks + idle +\n"
		"gap is the time that went by, to the nanosecond. Needs root, or CAP_BPF and\n"
		"CAP_PERFMON. On the screen, h shows the keys.",
	.after = "Examples:\n"
		 "  weir top                      a screen\n"
		 "  weir top -d 10 --once -i      who had a CPU in the next ten seconds\n"
		 "  weir top --by container       containers instead of processes\n"
		 "  weir top -H -p 123 -o p99     who of 123's threads waits longest for a CPU\n"
		 "  weir top --json -n 5 -d 1     five reports for a program\n"
		 "  weir top --replay cap -bd 60  a capture, a minute a report\n\n"
		 "Exit status: 0 done, 1 failed, 2 wrong usage, 3 something was lost (--strict).",
	.options = top_options,
};

#define SAY(...) say(&top_command, __VA_ARGS__)

struct top {
	struct top_options opts;
	struct top_view view;
	struct top_source *source;
	struct top_table table;
	struct top_screen *screen; /* NULL: reports are printed */
	struct out *out;
	struct style style;
	uint64_t shown;
	/* Of a capture. */
	bool lost;	  /* something was */
	bool again;	  /* from its begin */
	uint64_t from_ns; /* reports that end before that are not shown */
};

/* ---- what the user asked for -------------------------------------------------------------------- */

static bool check_by(struct top *t)
{
	if (t->opts.threads)
		t->view.by = USAGE_BY_THREAD;
	if (t->opts.by && !top_by__find(t->opts.by, &t->view.by)) {
		SAY("there is no --by '%s': process, thread, cgroup, container, user or cpu",
		    t->opts.by);
		return false;
	}
	if (t->opts.by && t->opts.threads && t->view.by != USAGE_BY_THREAD) {
		SAY("-H and --by %s exclude each other", t->opts.by);
		return false;
	}
	return true;
}

static bool check_sort(struct top *t)
{
	const char *word = t->opts.sort;

	if (!word)
		return true;
	t->view.reverse = *word == '-';
	if (top_sort__find(word + t->view.reverse, &t->view.sort))
		return true;
	SAY("there is no --sort '%s': cpu, total, vol, invol, migr, wait, p50, p99, max, rss, "
	    "cycles, ipc, pid or name",
	    word);
	return false;
}

/* In a capture there may be processes of any number. */
static bool add_pid(struct top *t, const char *word, char **end)
{
	unsigned long pid;

	errno = 0;
	pid = strtoul(word, end, 10);
	if (*word < '0' || *word > '9' || errno || !pid || pid > INT32_MAX ||
	    (**end && **end != ',') || t->view.nr_pids == SELECTION_PIDS_MAX)
		return false;
	t->view.pids[t->view.nr_pids++] = (uint32_t)pid;
	return true;
}

static bool check_replayed_pids(struct top *t)
{
	for (unsigned i = 0; i < t->opts.pids.count; i++) {
		const char *word = t->opts.pids.at[i];
		char *end;

		do {
			if (!add_pid(t, word, &end)) {
				SAY("-p takes at most %d process ids, not '%s'", SELECTION_PIDS_MAX,
				    t->opts.pids.at[i]);
				return false;
			}
			word = end + 1;
		} while (*end);
	}
	return true;
}

static bool check_pids(struct top *t)
{
	struct probes_selection selection = {0};

	if (t->opts.replay)
		return check_replayed_pids(t);
	if (!selection__pids(&top_command, &t->opts.pids, t->view.pids, &selection))
		return false;
	t->view.nr_pids = selection.nr_pids;
	return true;
}

static bool check_filter(struct top *t)
{
	struct filter *filter = &t->opts.filter;

	if (!filter__check(filter, &top_command))
		return false;
	t->view.filter = filter;
	t->view.has_uid = filter->user;
	t->view.uid = filter->uid;
	return true;
}

static bool check_options(struct top *t)
{
	struct top_options *opts = &t->opts;
	bool no_screen;

	if (!opts->interval_ns)
		opts->interval_ns = DEFAULT_INTERVAL_NS;
	if (opts->interval_ns < LEAST_INTERVAL_NS) {
		SAY("--interval is at least 0.1 (seconds)");
		return false;
	}
	if (opts->once)
		opts->count = 1;
	no_screen = !opts->batch && !opts->once && !opts->json &&
		    (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO));
	opts->batch |= opts->once || opts->json || no_screen;
	if (opts->replay && opts->cmdline) {
		SAY("a capture has no command lines");
		return false;
	}
	if (opts->rows && !opts->batch) {
		SAY("--rows is for -b and --json: a screen has as many as fit");
		return false;
	}
	if (opts->replay && opts->counters) {
		SAY("a capture has no --counters");
		return false;
	}
	t->table.live = !opts->replay;
	t->view.no_idle = opts->no_idle;
	t->view.cmdline = opts->cmdline || opts->json;
	t->view.tree = opts->tree;
	t->view.account = opts->account || opts->json;
	t->view.counters = opts->counters;
	if (!check_by(t) || !check_sort(t) || !check_pids(t) || !check_filter(t) ||
	    !style__words(&top_command, NULL, opts->color))
		return false;
	if (no_screen && !opts->replay)
		SAY("the %s is no terminal: printing reports, as with -b",
		    isatty(STDOUT_FILENO) ? "input" : "output");
	return true;
}

/* ---- run ---------------------------------------------------------------------------------------- */

static int show(struct top *t)
{
	int err = top_table__fill(&t->table, &t->view);

	if (err)
		return err;
	if (t->screen) {
		top_screen__show(t->screen, &t->table);
		return 0;
	}
	if (t->opts.json)
		return top_json__report(t->out, &t->table, &t->view, t->opts.rows);
	return top_batch__report(t->out, &t->table, &t->view, t->opts.rows, !t->shown);
}

/* The interval ends here. */
static int take(struct top *t, bool shown)
{
	int err;

	t->table.snapshot = top_source__take(t->source);
	if (!t->table.snapshot) {
		SAY("out of memory");
		return -ENOMEM;
	}
	t->table.before = t->table.account;
	top_source__account(t->source, &t->table.account);
	if (!shown)
		return 0;
	err = show(t);
	t->shown++;
	return err;
}

static bool is_enough(const struct top *t)
{
	return stop__requested || (t->opts.count && t->shown >= t->opts.count);
}

/* The first of `fds` is where keys come from. false: the user has had enough. */
static bool wait_until(struct top *t, uint64_t until_ns, struct pollfd *fds, unsigned count)
{
	uint64_t now = now_ns(), ns = until_ns > now ? until_ns - now : 0;
	struct timespec timeout = {
		.tv_sec = (time_t)(ns / NSEC_PER_SEC),
		.tv_nsec = (long)(ns % NSEC_PER_SEC),
	};

	fds[0].fd = t->screen ? STDIN_FILENO : -1;
	for (unsigned i = 0; i < count; i++)
		fds[i].events = POLLIN;
	if (ppoll(fds, count, &timeout, NULL) < 0)
		for (unsigned i = 0; i < count; i++)
			fds[i].revents = 0;
	return !t->screen || top_screen__keys(t->screen, fds[0].revents);
}

/* Or until there is something to do. */
static bool wait_for_report(struct top *t, uint64_t until_ns)
{
	struct pollfd fds[1 + TOP_WAKE_FDS];
	int wake_fds[TOP_WAKE_FDS];
	bool go_on;

	top_source__wake_fds(t->source, wake_fds);
	for (int i = 0; i < TOP_WAKE_FDS; i++)
		fds[1 + i].fd = wake_fds[i];
	go_on = wait_until(t, until_ns, fds, 1 + TOP_WAKE_FDS);
	/* Small rings fill up as fast as they are read: each look is a switch more for who is seen. */
	if (fds[1 + TOP_WAKE_RINGS].revents)
		poll(NULL, 0, LEAST_PAUSE_MS);
	return go_on;
}

/* From the plan, not from now: intervals don't grow. One that was late takes half of the next at most. */
static uint64_t plan_next(const struct top *t, uint64_t next_ns)
{
	uint64_t now = now_ns();

	while (next_ns < now + t->opts.interval_ns / 2)
		next_ns += t->opts.interval_ns;
	return next_ns;
}

/* The end of an interval with which showing begins. */
static uint64_t plan_first(const struct top *t)
{
	bool soon = t->screen && t->opts.interval_ns > FIRST_SCREEN_NS;

	return now_ns() + (soon ? FIRST_SCREEN_NS : t->opts.interval_ns);
}

static bool is_frozen(const struct top *t)
{
	return t->screen && top_screen__is_frozen(t->screen);
}

/* The interval that was frozen ends unseen: it would be about minutes, and says little of now. */
static int go_on(struct top *t)
{
	top_screen__forget(t->screen);
	return take(t, false);
}

static int run(struct top *t)
{
	uint64_t next_ns = plan_first(t);
	bool frozen = false;
	int err = 0;

	top_source__account(t->source, &t->table.account);
	while (!err && !is_enough(t) && wait_for_report(t, next_ns)) {
		err = top_source__poll(t->source);
		if (!err && frozen && !is_frozen(t)) {
			err = go_on(t);
			next_ns = plan_first(t);
		}
		frozen = is_frozen(t);
		if (err || now_ns() < next_ns)
			continue;
		if (!frozen)
			err = take(t, true);
		next_ns = plan_next(t, next_ns);
	}
	return err;
}

/* A reader that has gone away has what it wanted; a stop has cut the rest short. */
static bool is_bad(int err)
{
	return err && err != -EPIPE && err != -ECANCELED;
}

static bool is_lost(const struct top *t)
{
	const struct usage_snapshot *snapshot = t->table.snapshot;

	return t->table.account.lost || snapshot->trouble.unseen || snapshot->trouble.steps_back ||
	       snapshot->trouble.broken || snapshot->cpu_difference_ns ||
	       snapshot->rows_difference_ns || snapshot->interval_difference_ns;
}

/*
 * The last interval was cut short. It is a report all the same, unless as many as were asked for are
 * there: so a sum over reports is the whole. What all came to is one line on standard error.
 */
static int finish(struct top *t)
{
	char line[TOP_LINE_MAX];
	bool enough = t->opts.count && t->shown >= t->opts.count;
	int err = top_source__close(t->source), take_err;

	if (err < 0)
		SAY("the last switches could not be read: %s", strerror(-err));
	take_err = take(t, t->opts.batch && !enough);
	if (!t->table.snapshot)
		return EXIT_FAILED;
	top_cells__end(t->table.snapshot, &t->table.account, line);
	fprintf(stderr, "%s\n", line);
	if (err < 0 || is_bad(take_err))
		return EXIT_FAILED;
	return t->opts.strict && is_lost(t) ? EXIT_LOST : EXIT_OK;
}

static bool open_output(struct top *t)
{
	style__fill(&t->style, NULL, t->opts.color, STDOUT_FILENO);
	if (!t->opts.batch) {
		t->screen = top_screen__open(&t->view, &t->opts.interval_ns, t->style.color,
					     t->opts.replay);
		return t->screen;
	}
	t->out = out__new(STDOUT_FILENO, OUT_BUFFER_BYTES, &stop__requested, STOP_GRACE_MS);
	if (!t->out)
		SAY("out of memory");
	else
		out__set_style(t->out, &t->style);
	return t->out;
}

/* ---- a capture ---------------------------------------------------------------------------------- */

/* Again from its begin, up to the report that ends there. Accounts can't be turned back. */
static int go_to(struct top *t, uint64_t to_ns)
{
	t->again = true;
	/* Below the first there is none. */
	t->from_ns = (int64_t)to_ns < 0 ? 0 : to_ns;
	return -ECANCELED;
}

/* A report on the screen: until its time is over, or the user wants another one. */
static int play(struct top *t, const struct usage_snapshot *snapshot, bool last)
{
	uint64_t begin_ns = now_ns(), interval_ns = t->opts.interval_ns;

	if (last)
		top_screen__say(t->screen, "the end of the capture; left: back, q: end");
	for (;;) {
		bool stays = last || top_screen__is_frozen(t->screen);
		uint64_t end_ns = begin_ns + top_screen__pace_ns(t->screen);
		struct pollfd in;
		int steps;

		if (!wait_until(t, stays ? now_ns() + NSEC_PER_SEC : end_ns, &in, 1) ||
		    stop__requested)
			return -ECANCELED;
		steps = top_screen__steps(t->screen);
		if (steps < 0)
			return go_to(t, snapshot->from_ns - (uint64_t)(-steps - 1) * interval_ns);
		if (t->opts.interval_ns != interval_ns)
			return go_to(t, snapshot->to_ns);
		if (last)
			continue;
		if (steps > 0)
			t->from_ns = snapshot->to_ns + (uint64_t)steps * interval_ns;
		if (steps > 0 || (!top_screen__is_frozen(t->screen) && now_ns() >= end_ns))
			return 0;
	}
}

static int on_interval(void *ctx, const struct usage_snapshot *snapshot,
		       const struct top_account *account, bool last)
{
	struct top *t = ctx;
	int err;

	t->table.snapshot = snapshot;
	t->table.account = *account;
	t->lost = is_lost(t);
	if (snapshot->to_ns < t->from_ns && !last)
		return 0;
	err = show(t);
	t->shown++;
	if (!err && is_enough(t))
		return -ECANCELED;
	return !err && t->screen ? play(t, snapshot, last) : err;
}

static bool catch_signals(void)
{
	int err = stop__install(0);

	if (err)
		SAY("cannot catch signals: %s", strerror(-err));
	return !err;
}

/* Signals: until a capture is open they end us, however long that takes. */
static bool open_replay_output(struct top *t)
{
	return t->screen || (catch_signals() && open_output(t));
}

static int replay(struct top *t)
{
	struct top_replay *replay = NULL;
	int err = 0, status = EXIT_OK;

	do {
		top_replay__free(replay);
		replay = top_replay__open(&t->opts);
		t->again = false;
		if (replay && open_replay_output(t))
			err = top_replay__run(replay, on_interval, t);
		else
			status = EXIT_FAILED;
		top_screen__forget(t->screen);
	} while (t->again);
	top_screen__close(t->screen);
	if (status == EXIT_OK) {
		top_replay__say_flaws(replay);
		t->lost |= top_replay__is_loss(replay);
	}
	top_replay__free(replay);
	if (is_bad(err)) {
		SAY("%s: %s", t->opts.replay, strerror(-err));
		status = EXIT_FAILED;
	}
	return status == EXIT_OK && t->opts.strict && t->lost ? EXIT_LOST : status;
}

static int top(struct top *t)
{
	int err, status;

	t->source = top_source__open(&t->opts);
	if (!t->source || !open_output(t))
		return EXIT_FAILED;
	if (t->opts.verbose)
		SAY("counting switches");
	err = run(t);
	top_screen__close(t->screen);
	if (is_bad(err))
		SAY("%s", strerror(-err));
	status = finish(t);
	return is_bad(err) ? EXIT_FAILED : status;
}

int cmd_top(int argc, char **argv)
{
	static struct top t;
	int status, operand = options__parse(&top_command, argc, argv, &t.opts, &status);

	if (operand < 0)
		return status;
	if (operand < argc) {
		SAY("there is no operand '%s'", argv[operand]);
		return EXIT_USAGE;
	}
	if (!check_options(&t))
		return EXIT_USAGE;
	if (!t.opts.replay && !catch_signals())
		return EXIT_FAILED;
	status = t.opts.replay ? replay(&t) : top(&t);
	top_table__free(&t.table);
	top_source__free(t.source);
	out__free(t.out);
	return status;
}
