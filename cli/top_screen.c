// SPDX-License-Identifier: BSD-2-Clause
/*
 * top_screen.c - owns the terminal while there is a screen, its keys, and what they change of the view.
 * Knows nothing of where figures come from.
 */
#include "cli/top.h"

#include <curses.h>
#include <poll.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LEAST_ROWS   6
#define ROWS_LEAST   4 /* of the list */
#define LEAST_COLS   30
#define METER_COLS   26 /* of one CPU, at least */
#define KEY_ESCAPE   27
#define KEY_ERASE    127
#define KEY_CTRL_C   3
#define KEY_CTRL_L   12
#define ESC_DELAY_MS 50
#define MOVE_FAR     (1L << 40) /* beyond any list */

/* How long a report of a capture stays. */
#define DEFAULT_PACE_NS 2000000000u
#define LEAST_PACE_NS	50000000u
#define MOST_PACE_NS	64000000000u

enum paint {
	PAINT_TITLE = 1,
	PAINT_BUSY,
	PAINT_ALERT,
	PAINT_DIM,
	PAINT_KEY,
};

enum asking {
	ASKING_NOTHING = 0,
	ASKING_FILTER,
	ASKING_SEARCH,
	ASKING_USER,
	ASKING_INTERVAL,
};

static const char *const questions[] = {
	[ASKING_FILTER] = "only with (name, pid, cgroup; empty: all): ",
	[ASKING_SEARCH] = "look for: ",
	[ASKING_USER] = "only of user (empty: all): ",
	[ASKING_INTERVAL] = "seconds a report: ",
};

struct top_screen {
	struct top_view *view;
	uint64_t *interval_ns;
	struct top_table *table; /* the last that was shown; NULL: none yet */
	SCREEN *terminal;
	size_t cursor, first; /* of lines: marked, and the first on the screen */
	bool color, frozen, help, no_meters;
	bool replay;
	int steps;	  /* reports on that were asked for, and not taken yet */
	uint64_t pace_ns; /* a report stays that long */
	bool marked;	  /* the cursor was used: it is shown */
	enum asking asking;
	char answer[TOP_TEXT_MAX];
	char search[TOP_TEXT_MAX];
	char message[TOP_TEXT_MAX * 2]; /* until the next key */
};

static const char *const help_lines[] = {
	"Keys",
	"  q            end                       h ?        this",
	"  space        freeze, and go on         d s        time that a report covers",
	"  P M T N      sort by CPU, RSS, total time, PID",
	"  < >          sort by the next key      R          turn the order round",
	"  b            next grouping: process, thread, cgroup, container, user, CPU",
	"  H            threads or processes      V          tree of processes",
	"  i            without who had no CPU    X          without who has ended",
	"  1            meters of CPUs            a          account: idle and gap rows",
	"  f            only rows with a text     u          only of a user",
	"  / n          look for a text, again    c          command lines",
	"  up down PgUp PgDn Home End             move the mark",
	"  left right   a report of --replay on   + -        faster, slower",
	"Columns, of the last interval",
	"  %CPU         of one CPU                TOTAL      CPU time since weir began",
	"  VOL INVOL    switches away: it slept; it could have gone on",
	"  MIGR         moves to another CPU",
	"  P50 P99 MAX  waiting for a CPU: half and 99 % waited no longer; the longest",
	"  S            R runs, W waits for a CPU, S sleeps, D blocked, T stopped,",
	"               X has ended",
	"",
	"  idle: CPU time that nobody had. gap: of which nobody knows, for switches were",
	"  lost or a CPU was away. With all rows that is all time of all CPUs.",
};
#define N_HELP_LINES (int)(sizeof(help_lines) / sizeof(help_lines[0]))

/* ---- paint -------------------------------------------------------------------------------------- */

/* Without colours there is still bold and reverse; what is dim in colour is plain then. */
static attr_t attr_of(const struct top_screen *screen, enum paint paint)
{
	if (!screen->color)
		return paint == PAINT_TITLE			    ? A_REVERSE
		       : paint == PAINT_ALERT || paint == PAINT_KEY ? A_BOLD
								    : A_NORMAL;
	switch (paint) {
	case PAINT_TITLE:
		return A_REVERSE;
	case PAINT_DIM:
		return A_DIM;
	default:
		return (attr_t)COLOR_PAIR(paint);
	}
}

static void put(const struct top_screen *screen, int y, int x, const char *text, enum paint paint)
{
	attr_t attr = paint ? attr_of(screen, paint) : A_NORMAL;

	if (y >= LINES || x >= COLS)
		return;
	attron(attr);
	mvaddnstr(y, x, text, COLS - x);
	attroff(attr);
}

/* ---- the parts of the screen -------------------------------------------------------------------- */

static int meters_per_line(const struct top_screen *screen)
{
	int n = COLS / METER_COLS, cpus = (int)screen->table->snapshot->nr_cpus;

	if (n > cpus)
		n = cpus;
	return n < 1 ? 1 : n > 4 ? 4 : n;
}

/*
 * Lines that are there before rows get what is left: what is above the rows goes where there are few,
 * meters first.
 */
static int room_above(void)
{
	int room = LINES - ROWS_LEAST - 2;

	return room > 0 ? room : 0;
}

/* Is the account shown to the nanosecond? Where it doesn't add up, in any case. */
static bool has_identity(const struct top_screen *screen)
{
	return screen->view->account || top_cells__difference_ns(screen->table->snapshot);
}

/* The percentages stay longest: gaps are among them. */
static bool is_head_shown(const struct top_screen *screen, enum top_head head)
{
	static const int rank[] = {
		[TOP_HEAD_PERCENT] = 0,
		[TOP_HEAD_TIME] = 1,
		[TOP_HEAD_SWITCHES] = 2,
		[TOP_HEAD_IDENTITY] = 3,
	};

	return rank[head] < room_above() && (head != TOP_HEAD_IDENTITY || has_identity(screen));
}

static int head_lines(const struct top_screen *screen)
{
	int lines = 0;

	for (int head = 0; head < TOP_HEAD_LINES; head++)
		lines += is_head_shown(screen, (enum top_head)head);
	return lines;
}

/* At most a quarter of the screen. */
static int meter_lines(const struct top_screen *screen)
{
	int per_line = meters_per_line(screen), room = room_above() - head_lines(screen);
	int cpus = (int)screen->table->snapshot->nr_cpus;
	int lines = (cpus + per_line - 1) / per_line;

	if (screen->no_meters)
		return 0;
	if (lines > LINES / 4)
		lines = LINES / 4;
	return lines < room ? lines : room;
}

/* cpu0 [|||||??     45.1]: tasks, gap, idle. */
static void draw_meter(const struct top_screen *screen, int y, int x, int width,
		       const struct usage_cpu_row *cpu)
{
	uint64_t of_ns = top_table__interval_ns(screen->table);
	double tasks = of_ns ? (double)cpu->tasks_ns / (double)of_ns : 0;
	double gap = of_ns ? (double)cpu->gap_ns / (double)of_ns : 0;
	int inside = width - 10, busy, unknown;
	char text[32];

	busy = (int)(tasks * inside + 0.5);
	unknown = (int)(gap * inside + 0.5);
	if (!unknown && cpu->gap_ns > 0)
		unknown = 1;
	snprintf(text, sizeof(text), "%3u [", cpu->cpu);
	put(screen, y, x, text, PAINT_KEY);
	for (int i = 0; i < inside; i++)
		put(screen, y, x + 5 + i,
		    i < busy		 ? "|"
		    : i < busy + unknown ? "?"
					 : " ",
		    i < busy ? PAINT_BUSY : PAINT_ALERT);
	snprintf(text, sizeof(text), cpu->away ? "  off" : "%5.1f", 100.0 * tasks);
	put(screen, y, x + 5 + inside - 5, text, 0);
	put(screen, y, x + 5 + inside, "]", PAINT_KEY);
}

static int draw_meters(const struct top_screen *screen, int y)
{
	const struct usage_snapshot *snapshot = screen->table->snapshot;
	int per_line = meters_per_line(screen), lines = meter_lines(screen);
	int width = COLS / per_line;
	size_t fit = (size_t)(lines * per_line);

	for (size_t i = 0; i < snapshot->nr_cpus && i < fit; i++)
		draw_meter(screen, y + (int)i / per_line, (int)i % per_line * width, width,
			   &snapshot->cpus[i]);
	return y + lines;
}

static bool is_alert(const struct usage_snapshot *snapshot, enum top_head head)
{
	switch (head) {
	case TOP_HEAD_PERCENT:
	case TOP_HEAD_IDENTITY:
		return top_cells__difference_ns(snapshot);
	case TOP_HEAD_SWITCHES:
		return snapshot->trouble.lost || snapshot->trouble.unseen;
	default:
		return false;
	}
}

static int draw_head(const struct top_screen *screen, int y)
{
	char line[TOP_LINE_MAX];

	for (int i = 0; i < TOP_HEAD_LINES; i++) {
		enum top_head head = (enum top_head)i;

		if (!is_head_shown(screen, head))
			continue;
		top_cells__head(screen->table, screen->view, head, line);
		put(screen, y++, 0, line,
		    is_alert(screen->table->snapshot, head) ? PAINT_ALERT : 0);
	}
	return y;
}

static int list_rows(const struct top_screen *screen)
{
	int rows = LINES - head_lines(screen) - meter_lines(screen) - 2;

	return rows < 1 ? 1 : rows;
}

static void keep_cursor_in_sight(struct top_screen *screen)
{
	size_t rows = (size_t)list_rows(screen), count = screen->table->count;

	if (screen->cursor >= count)
		screen->cursor = count ? count - 1 : 0;
	if (screen->cursor < screen->first)
		screen->first = screen->cursor;
	if (screen->cursor >= screen->first + rows)
		screen->first = screen->cursor - rows + 1;
	if (screen->first + rows > count)
		screen->first = count > rows ? count - rows : 0;
}

static enum paint paint_of(const struct usage_row *row)
{
	if (row->kind == USAGE_GAP)
		return PAINT_ALERT;
	return row->kind != USAGE_THREAD || row->state == USAGE_EXITED ? PAINT_DIM : 0;
}

/* Blanks to the end of the line, so that a bar is as wide as the screen. */
static void fill_line(char line[TOP_LINE_MAX])
{
	size_t len = strlen(line);

	while (len < (size_t)COLS && len < TOP_LINE_MAX - 1)
		line[len++] = ' ';
	line[len] = '\0';
}

static void draw_row(const struct top_screen *screen, int y, size_t at)
{
	const struct top_line *line = &screen->table->lines[at];
	bool marked = screen->marked && at == screen->cursor;
	char text[TOP_LINE_MAX];

	top_cells__line(screen->table, screen->view, line, (unsigned)COLS, text);
	if (marked) {
		fill_line(text);
		attron(A_REVERSE);
	}
	put(screen, y, 0, text, paint_of(&line->group->row));
	attroff(A_REVERSE);
}

static void draw_list(struct top_screen *screen, int y)
{
	char titles[TOP_LINE_MAX];
	size_t rows;

	top_cells__titles(screen->view, (unsigned)COLS, titles);
	fill_line(titles);
	put(screen, y++, 0, titles, PAINT_TITLE);
	keep_cursor_in_sight(screen);
	rows = (size_t)list_rows(screen);
	top_table__ask(screen->table, screen->view, screen->first, rows);
	for (size_t i = screen->first; i < screen->table->count && i < screen->first + rows; i++)
		draw_row(screen, y++, i);
	if (screen->table->count == screen->table->nobodys) {
		top_cells__nobody(screen->view, titles);
		put(screen, y, 0, titles, PAINT_DIM);
	}
}

static void draw_foot(const struct top_screen *screen)
{
	const struct top_view *view = screen->view;
	char text[TOP_LINE_MAX], pace[16] = "";

	if (screen->asking) {
		snprintf(text, sizeof(text), "%s%s_", questions[screen->asking], screen->answer);
		put(screen, LINES - 1, 0, text, PAINT_KEY);
		return;
	}
	if (screen->message[0]) {
		put(screen, LINES - 1, 0, screen->message, PAINT_ALERT);
		return;
	}
	if (screen->replay && !screen->frozen)
		top_cells__duration(pace, sizeof(pace), screen->pace_ns);
	snprintf(text, sizeof(text),
		 "%s%s%ssorted by %s%s%s%s%s%s%s%s%s; %zu rows; h: help, q: end",
		 screen->frozen ? "FROZEN (space: go on); " : "", pace,
		 pace[0] ? " a report; " : "", top_sort__name(view->sort),
		 view->reverse ? ", least first" : "", view->no_idle ? "; without idle ones" : "",
		 view->no_ended ? "; without ended ones" : "", view->has_uid ? "; of one user" : "",
		 view->filter->container ? "; of one container"
		 : view->filter->cgroup	 ? "; of one cgroup"
					 : "",
		 view->text[0] ? "; only with '" : "", view->text, view->text[0] ? "'" : "",
		 screen->table ? screen->table->count : (size_t)0);
	put(screen, LINES - 1, 0, text, screen->frozen ? PAINT_ALERT : PAINT_DIM);
}

static void draw_help(const struct top_screen *screen)
{
	for (int i = 0; i < N_HELP_LINES && i < LINES - 1; i++)
		put(screen, i, 0, help_lines[i], help_lines[i][0] > ' ' ? PAINT_KEY : 0);
	put(screen, LINES - 1, 0, "any key: back", PAINT_DIM);
}

static void draw(struct top_screen *screen)
{
	int y;

	erase();
	if (LINES < LEAST_ROWS || COLS < LEAST_COLS) {
		put(screen, 0, 0, "weir top: too small a terminal", PAINT_ALERT);
	} else if (screen->help) {
		draw_help(screen);
	} else if (!screen->table) {
		put(screen, 0, 0, "weir top: a report is on its way", 0);
	} else {
		y = draw_head(screen, 0);
		y = draw_meters(screen, y);
		draw_list(screen, y);
		draw_foot(screen);
	}
	refresh();
}

/* ---- what keys change --------------------------------------------------------------------------- */

static void say_here(struct top_screen *screen, const char *text)
{
	snprintf(screen->message, sizeof(screen->message), "%s", text);
}

static void refill(struct top_screen *screen)
{
	if (screen->table && top_table__fill(screen->table, screen->view))
		say_here(screen, "out of memory");
}

static bool matches(const struct top_screen *screen, size_t at)
{
	char text[TOP_LINE_MAX];

	if (screen->view->cmdline)
		top_table__ask(screen->table, screen->view, at, 1);
	top_cells__line(screen->table, screen->view, &screen->table->lines[at], TOP_LINE_MAX - 1,
			text);
	return strstr(text, screen->search);
}

static void search(struct top_screen *screen)
{
	size_t count = screen->table ? screen->table->count : 0;

	for (size_t i = 1; i <= count && screen->search[0]; i++) {
		size_t at = (screen->cursor + i) % count;

		if (matches(screen, at)) {
			screen->cursor = at;
			screen->marked = true;
			return;
		}
	}
	if (screen->search[0])
		say_here(screen, "there is none");
}

/* A name, or a number. */
static void set_user(struct top_screen *screen)
{
	const struct passwd *user = getpwnam(screen->answer);
	unsigned long uid;
	char *end;

	screen->view->has_uid = false;
	if (!screen->answer[0])
		return;
	uid = user ? user->pw_uid : strtoul(screen->answer, &end, 10);
	if (!user && (*end || uid >= TASKS_UID_UNKNOWN)) {
		say_here(screen, "there is no such user");
		return;
	}
	screen->view->has_uid = true;
	screen->view->uid = (uint32_t)uid;
}

static void set_interval(struct top_screen *screen)
{
	char *end;
	double seconds = strtod(screen->answer, &end);

	if (*end || seconds < 0.1 || seconds > 86400)
		say_here(screen, "a number of seconds, at least 0.1");
	else
		*screen->interval_ns = (uint64_t)(seconds * 1e9);
}

static void answered(struct top_screen *screen)
{
	switch (screen->asking) {
	case ASKING_FILTER:
		snprintf(screen->view->text, sizeof(screen->view->text), "%s", screen->answer);
		break;
	case ASKING_SEARCH:
		snprintf(screen->search, sizeof(screen->search), "%s", screen->answer);
		search(screen);
		break;
	case ASKING_USER:
		set_user(screen);
		break;
	case ASKING_INTERVAL:
		set_interval(screen);
		break;
	case ASKING_NOTHING:
		break;
	}
	screen->asking = ASKING_NOTHING;
	refill(screen);
}

static void answer_key(struct top_screen *screen, int key)
{
	size_t len = strlen(screen->answer);

	if (key == '\n' || key == '\r' || key == KEY_ENTER) {
		answered(screen);
	} else if (key == KEY_ESCAPE) {
		screen->asking = ASKING_NOTHING;
	} else if (key == KEY_BACKSPACE || key == KEY_ERASE || key == '\b') {
		if (len)
			screen->answer[len - 1] = '\0';
	} else if (key >= ' ' && key < KEY_ERASE && len + 1 < sizeof(screen->answer)) {
		screen->answer[len] = (char)key;
		screen->answer[len + 1] = '\0';
	}
}

static void ask(struct top_screen *screen, enum asking asking)
{
	screen->asking = asking;
	screen->answer[0] = '\0';
}

static void sort_by(struct top_screen *screen, enum top_sort sort)
{
	screen->view->sort = sort;
	screen->view->reverse = false;
	refill(screen);
}

/* The next that has a column. */
static void sort_next(struct top_screen *screen, int step)
{
	int sort = (int)screen->view->sort;

	do
		sort = (sort + step + TOP_SORTS) % TOP_SORTS;
	while (!screen->view->counters && (sort == TOP_SORT_CYCLES || sort == TOP_SORT_IPC));
	sort_by(screen, (enum top_sort)sort);
}

static void group_by(struct top_screen *screen, enum usage_by by)
{
	screen->view->by = by;
	screen->cursor = screen->first = 0;
	screen->marked = false;
	snprintf(screen->message, sizeof(screen->message), "a row for each %s", top_by__name(by));
	refill(screen);
}

static void toggle(struct top_screen *screen, bool *what)
{
	*what = !*what;
	refill(screen);
}

static void move_by(struct top_screen *screen, long by)
{
	size_t count = screen->table ? screen->table->count : 0;

	screen->marked = true;
	if (by < 0 && (size_t)-by > screen->cursor)
		screen->cursor = 0;
	else
		screen->cursor += (size_t)by;
	if (count && screen->cursor >= count)
		screen->cursor = count - 1;
}

static bool is_move(struct top_screen *screen, int key)
{
	long page = screen->table ? list_rows(screen) : 1;

	switch (key) {
	case KEY_UP:
	case 'k':
		move_by(screen, -1);
		return true;
	case KEY_DOWN:
	case 'j':
		move_by(screen, 1);
		return true;
	case KEY_PPAGE:
		move_by(screen, -page);
		return true;
	case KEY_NPAGE:
		move_by(screen, page);
		return true;
	case KEY_HOME:
		move_by(screen, -MOVE_FAR);
		return true;
	case KEY_END:
		move_by(screen, MOVE_FAR);
		return true;
	default:
		return false;
	}
}

static bool is_sort(struct top_screen *screen, int key)
{
	switch (key) {
	case 'P':
		sort_by(screen, TOP_SORT_TIME);
		return true;
	case 'M':
		sort_by(screen, TOP_SORT_RSS);
		return true;
	case 'T':
		sort_by(screen, TOP_SORT_TOTAL);
		return true;
	case 'N':
		sort_by(screen, TOP_SORT_PID);
		return true;
	case '<':
		sort_next(screen, -1);
		return true;
	case '>':
		sort_next(screen, 1);
		return true;
	case 'R':
		toggle(screen, &screen->view->reverse);
		return true;
	default:
		return false;
	}
}

/* A report of a capture stays when it was asked for. */
static void step(struct top_screen *screen, int steps)
{
	screen->steps += steps;
	screen->frozen = true;
}

static void set_pace(struct top_screen *screen, uint64_t pace_ns)
{
	if (pace_ns >= LEAST_PACE_NS && pace_ns <= MOST_PACE_NS)
		screen->pace_ns = pace_ns;
}

static bool is_replay(struct top_screen *screen, int key)
{
	if (!screen->replay)
		return false;
	switch (key) {
	case KEY_LEFT:
		step(screen, -1);
		return true;
	case KEY_RIGHT:
		step(screen, 1);
		return true;
	case '+':
		set_pace(screen, screen->pace_ns / 2);
		return true;
	case '-':
		set_pace(screen, screen->pace_ns * 2);
		return true;
	default:
		return false;
	}
}

static bool is_question(struct top_screen *screen, int key)
{
	switch (key) {
	case 'f':
	case '\\':
		ask(screen, ASKING_FILTER);
		return true;
	case '/':
		ask(screen, ASKING_SEARCH);
		return true;
	case 'u':
		ask(screen, ASKING_USER);
		return true;
	case 'd':
	case 's':
		ask(screen, ASKING_INTERVAL);
		return true;
	default:
		return false;
	}
}

static void view_key(struct top_screen *screen, int key)
{
	struct top_view *view = screen->view;

	switch (key) {
	case 'h':
	case '?':
		screen->help = true;
		break;
	case ' ':
		screen->frozen = !screen->frozen;
		break;
	case 'n':
		search(screen);
		break;
	case 'b':
		group_by(screen, (enum usage_by)((view->by + 1) % (USAGE_BY_CPU + 1)));
		break;
	case 'H':
		group_by(screen, view->by == USAGE_BY_THREAD ? USAGE_BY_PROCESS : USAGE_BY_THREAD);
		break;
	case 'V':
		toggle(screen, &view->tree);
		break;
	case 'i':
		toggle(screen, &view->no_idle);
		break;
	case 'c':
		toggle(screen, &view->cmdline);
		break;
	case 'X':
		toggle(screen, &view->no_ended);
		break;
	case 'a':
		toggle(screen, &view->account);
		break;
	case '1':
		screen->no_meters = !screen->no_meters;
		break;
	default:
		say_here(screen, "no such key; h: help");
		break;
	}
}

/* false: that was the end. */
static bool on_key(struct top_screen *screen, int key)
{
	if (key == KEY_CTRL_L)
		clearok(curscr, TRUE);
	if (key == KEY_CTRL_L || key == KEY_RESIZE)
		return true;
	screen->message[0] = '\0';
	if (screen->asking) {
		answer_key(screen, key);
		return true;
	}
	if (screen->help) {
		screen->help = false;
		return true;
	}
	if (key == 'q' || key == KEY_CTRL_C)
		return false;
	if (!is_move(screen, key) && !is_sort(screen, key) && !is_question(screen, key) &&
	    !is_replay(screen, key))
		view_key(screen, key);
	return true;
}

bool top_screen__keys(struct top_screen *screen, short revents)
{
	bool any = false;
	int key;

	if (revents & (POLLHUP | POLLERR | POLLNVAL))
		return false;
	/* Also when a signal came: that may have been a resize, which is a key here. */
	while ((key = getch()) != ERR) {
		any = true;
		if (!on_key(screen, key))
			return false;
	}
	if (any)
		draw(screen);
	return true;
}

bool top_screen__is_frozen(const struct top_screen *screen)
{
	return screen->frozen;
}

void top_screen__show(struct top_screen *screen, struct top_table *table)
{
	screen->table = table;
	draw(screen);
}

void top_screen__forget(struct top_screen *screen)
{
	if (screen)
		screen->table = NULL;
}

int top_screen__steps(struct top_screen *screen)
{
	int steps = screen->steps;

	screen->steps = 0;
	return steps;
}

uint64_t top_screen__pace_ns(const struct top_screen *screen)
{
	return screen->pace_ns;
}

void top_screen__say(struct top_screen *screen, const char *text)
{
	say_here(screen, text);
	draw(screen);
}

/* ---- the terminal ------------------------------------------------------------------------------- */

static void start_colors(struct top_screen *screen)
{
	screen->color = screen->color && has_colors() && start_color() != ERR;
	if (!screen->color)
		return;
	use_default_colors();
	init_pair(PAINT_BUSY, COLOR_GREEN, -1);
	init_pair(PAINT_ALERT, COLOR_YELLOW, -1);
	init_pair(PAINT_KEY, COLOR_CYAN, -1);
}

/* A screen that nothing can be put to a place of would stay empty: curses takes it all the same. */
static bool can_move(const char *term)
{
	return term && *term && strcmp(term, "dumb") != 0;
}

static void say_why_not(const char *term)
{
	if (!term || !*term)
		say(&top_command, "TERM is not set: set it, or use -b");
	else if (!can_move(term))
		say(&top_command, "a terminal that is '%s' can't keep a screen: use -b", term);
	else
		say(&top_command, "the terminal '%s' is not known here: set TERM, or use -b", term);
}

struct top_screen *top_screen__open(struct top_view *view, uint64_t *interval_ns, bool color,
				    bool replay)
{
	struct top_screen *screen = calloc(1, sizeof(*screen));
	const char *term = getenv("TERM");

	if (!screen) {
		say(&top_command, "out of memory");
		return NULL;
	}
	screen->terminal = can_move(term) ? newterm(NULL, stdout, stdin) : NULL;
	if (!screen->terminal) {
		say_why_not(term);
		free(screen);
		return NULL;
	}
	set_term(screen->terminal);
	screen->view = view;
	screen->interval_ns = interval_ns;
	screen->color = color;
	screen->replay = replay;
	screen->pace_ns = *interval_ns < DEFAULT_PACE_NS ? *interval_ns : DEFAULT_PACE_NS;
	set_escdelay(ESC_DELAY_MS);
	cbreak();
	noecho();
	nonl();
	curs_set(0);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	start_colors(screen);
	draw(screen);
	return screen;
}

void top_screen__close(struct top_screen *screen)
{
	if (!screen)
		return;
	endwin();
	delscreen(screen->terminal);
	free(screen);
}
