// SPDX-License-Identifier: BSD-2-Clause
/*
 * verify.c - weir verify: is this trace what it claims to be?
 *
 * Owns: reading lines, the ledger's comparison, what is said at the end.
 * Promises: any bytes at all end in one of three exit statuses, in memory that does not grow with
 * the trace. Must not know: the rules (judge.c), nor anything of how a trace is made: it judges weir,
 * so it shares no code with what it judges, but for the names of causes.
 */
#include "cli/capture_verify.h"
#include "cli/commands.h"
#include "cli/judge.h"
#include "cli/lines.h"
#include "cli/options.h"
#include "cli/trace_line.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_MAX_BYTES	 (8u << 20) /* a record is 64 KiB, and a byte of it at most 6 of JSON */
#define LEDGER_MAX_BYTES (64u << 20)
#define DEPTH_MAX	 8 /* a line nests three deep */

enum status {
	GOOD = 0,
	BROKEN = 1,
	NO_VERDICT = EXIT_USAGE,
	EMPTY = 3,
};

struct verify_options {
	const char *ledger;
	bool complete, repair, quiet;
	const char *file, *label; /* the operand, and what messages call it */
};

static const struct option_def verify_options[] = {
	{0, "ledger", OPTION_STRING, OPTION_AT(struct verify_options, ledger), "FILE",
	 "compare with the account that weir trace --ledger FILE wrote"},
	{0, "complete", OPTION_FLAG, OPTION_AT(struct verify_options, complete), NULL,
	 "every number of every source has to be there (see below)"},
	{0, "repair", OPTION_FLAG, OPTION_AT(struct verify_options, repair), NULL,
	 "of a capture: first cut off what a kill or a full disk has torn at\n"
	 "its files' ends, so that other readers open it, and say what"},
	{'q', "quiet", OPTION_FLAG, OPTION_AT(struct verify_options, quiet), NULL,
	 "no summary; a broken promise is still named"},
	{0},
};

static const struct command_def verify_command = {
	.name = "verify",
	.synopsis = "[OPTION]... [FILE|-|DIR]",
	.about =
		"Reads a trace (weir trace --format json) from FILE or standard input and checks it\n"
		"against what weir promises. Stops at the first line that breaks a promise, and says\n"
		"which one. Of a capture (weir record), DIR, it checks each packet first, names all that\n"
		"is wrong, and then checks what comes out of it.",
	.after =
		"What is checked:\n"
		"  format        Each line is one JSON object with the keys that its kind of\n"
		"                event has.\n"
		"  G1 order      Lines never step back in (ts, source, seq), but for those with\n"
		"                \"late\" or \"ahead\"; a call cut short has no seq. With equal ts,\n"
		"                life rings go before cpu rings, then the number in the source's\n"
		"                name decides.\n"
		"  G2 watermark  Watermarks (weir trace --watermarks) never go back, and nothing\n"
		"                comes from behind one without being flagged late. What is\n"
		"                flagged late is not beyond the next.\n"
		"  G4 loss       Each number (seq) of a source comes once, and a source's gaps\n"
		"                never lose more numbers than are missing.\n"
		"\n"
		"A missing number is no error by itself. Losses have gaps, but an event that your selection\n"
		"turned away after it had its number leaves a hole and no gap, and so does the enter of a\n"
		"system call in a trace with --pair (its line counts as two events, and has the number of\n"
		"the exit; its enter's source is not told, only how many there are). Two ways to prove that\n"
		"nothing else is missing:\n"
		"  --ledger      What was delivered and lost is what the account says, by source\n"
		"                and by cause; the account closes; and no source misses more\n"
		"                numbers than the account has as filtered.\n"
		"  --complete    For a trace that nothing was turned away from: each number from\n"
		"                0 on is delivered or in a gap, but for as many as are enters.\n"
		"                (Life rings also carry what only weir itself needs, names and\n"
		"                cgroups: of use without the process group.)\n"
		"\n"
		"Numbers of one source may step back: an interrupt that comes between a record's number and\n"
		"its stamp gives later numbers earlier stamps. A number that comes twice is noticed among\n"
		"the last 16384 of its source; totals are exact over any distance.\n"
		"\n"
		"What is checked of a capture: packets are whole, follow each other in number and time, and\n"
		"hold records in order; each file begins with an empty one; what other readers are told\n"
		"was lost is what the gaps say; and where it was closed, each source's account is what is\n"
		"there. One that was cut off by a kill is no error by itself; a torn packet is one.\n"
		"\n"
		"Examples:\n"
		"  sudo weir trace --format json --duration 5 | weir verify\n"
		"  sudo weir trace --format json -o t.json --ledger l.json --duration 5\n"
		"  weir verify --ledger l.json t.json\n"
		"  weir verify --repair capture\n"
		"\n"
		"Exit status: 0 all promises kept; 1 one is broken (FILE:LINE and which, on standard error);\n"
		"2 no verdict: wrong usage, or a file that can't be read; 3 there is nothing in it.",
	.options = verify_options,
};

#define SAY(...) say(&verify_command, __VA_ARGS__)

/* ---- the verdict ---------------------------------------------------------------------------- */

static void say_broken(const char *file, const struct judge_verdict *verdict)
{
	fputs(file, stderr);
	if (verdict->line)
		fprintf(stderr, ":%" PRIu64, verdict->line);
	fprintf(stderr, ": %s: ", verdict->promise);
	say_safely(verdict->text);
	fputc('\n', stderr);
}

static enum status say_unreadable(const char *file)
{
	SAY("%s: %s", file, strerror(errno));
	return NO_VERDICT;
}

/* An account that went the same way as the trace: no event, and --ledger's to judge. */
static bool is_account(struct json_object *object)
{
	struct json_object *event = json__has_type(object, json_type_object)
					    ? json__get(object, "event")
					    : NULL;

	return event && json__is_string(event) && !strcmp(json_object_get_string(event), "account");
}

static bool take_line(struct judge *judge, struct json_tokener *tokener, uint64_t no,
		      const char *text, size_t len, struct judge_verdict *verdict)
{
	struct judge_line line = {.no = no};
	struct json_object *object;
	bool good;

	verdict->promise = "format";
	verdict->line = no;
	object = json__parse(tokener, text, len, verdict->text, sizeof(verdict->text));
	if (!object)
		return false;
	good = is_account(object) ||
	       (trace_line__read(object, &line, verdict->text, sizeof(verdict->text)) &&
		judge__line(judge, &line, verdict));
	json_object_put(object);
	return good;
}

/* Nothing is what breaks no promise; but whoever asks has made a trace, or thinks so. */
static enum status say_empty(const char *file)
{
	SAY("%s is empty: there is nothing to check", file);
	return EMPTY;
}

static enum status take_lines(struct judge *judge, struct json_tokener *tokener,
			      struct lines *lines, const char *file)
{
	struct judge_verdict verdict;
	const char *text;
	uint64_t no = 0;
	size_t len;

	for (;;) {
		enum lines_next got = lines__next(lines, LINE_MAX_BYTES, &text, &len);

		no++;
		if (got == LINES_END)
			return no > 1 ? GOOD : EMPTY;
		if (got == LINES_ERROR)
			return say_unreadable(file);
		if (got == LINES_TOO_LONG) {
			verdict = (struct judge_verdict){"format", no, ""};
			snprintf(verdict.text, sizeof(verdict.text), "longer than %u bytes",
				 LINE_MAX_BYTES);
			say_broken(file, &verdict);
			return BROKEN;
		}
		if (!take_line(judge, tokener, no, text, len, &verdict)) {
			say_broken(file, &verdict);
			return BROKEN;
		}
	}
}

static int open_file(const char *file)
{
	return strcmp(file, "-") ? open(file, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
}

static enum status judge_file(struct judge *judge, const struct verify_options *opts)
{
	struct json_tokener *tokener = json__new_tokener(DEPTH_MAX);
	struct lines lines = {.fd = open_file(opts->file)};
	enum status status;

	if (!tokener || lines.fd < 0)
		status = say_unreadable(opts->label);
	else
		status = take_lines(judge, tokener, &lines, opts->label);
	lines__free(&lines);
	if (lines.fd > STDIN_FILENO)
		close(lines.fd);
	if (tokener)
		json_tokener_free(tokener);
	return status;
}

/* ---- the ledger ----------------------------------------------------------------------------- */

struct ledger_check {
	const struct judge *judge;
	const char *trace;    /* its file */
	bool output_lost;     /* lines did not get out, so gaps may be among them */
	uint64_t enters_left; /* of calls, that no source has yet */
	struct judge_verdict verdict;
};

__attribute__((format(printf, 2, 3))) static bool differs(struct ledger_check *check,
							  const char *format, ...)
{
	va_list args;

	check->verdict.promise = "G4 loss";
	check->verdict.line = 0;
	va_start(args, format);
	vsnprintf(check->verdict.text, sizeof(check->verdict.text), format, args);
	va_end(args);
	return false;
}

static bool account_u64(struct ledger_check *check, struct json_object *account, const char *key,
			uint64_t *out)
{
	if (json__has_type(account, json_type_object) &&
	    json__get_u64(json__get(account, key), out))
		return true;
	check->verdict.promise = "format";
	check->verdict.line = 0;
	return json__wrong(check->verdict.text, sizeof(check->verdict.text), key, "a number");
}

/* Does the account close, by its own numbers? */
static bool check_closes(struct ledger_check *check, struct json_object *account, const char *whose)
{
	uint64_t produced, delivered, filtered, pending, sum;
	struct json_object *lost = json__get(account, "lost");

	if (!account_u64(check, account, "produced", &produced) ||
	    !account_u64(check, account, "delivered", &delivered) ||
	    !account_u64(check, account, "filtered", &filtered) ||
	    !account_u64(check, account, "pending", &pending))
		return false;
	sum = delivered + filtered + pending;
	if (!json__has_type(lost, json_type_object))
		return differs(check, "%s: \"lost\" is missing", whose);
	json_object_object_foreach(lost, cause, count)
	{
		uint64_t n;

		if (!count)
			continue; /* unknown */
		if (!account_u64(check, lost, cause, &n))
			return false;
		sum += n;
	}
	if (sum != produced)
		return differs(check,
			       "%s: the account does not close: %" PRIu64 " produced, %" PRIu64
			       " delivered, filtered, pending and lost",
			       whose, produced, sum);
	return true;
}

/* What gaps say of one cause, against the account. */
static bool check_cause(struct ledger_check *check, struct json_object *lost, const char *whose,
			const struct judge_count *count, int cause)
{
	const char *name = weir_cause__name(cause);
	struct json_object *value;
	uint64_t n = 0;
	bool is_there = json_object_object_get_ex(lost, name, &value);

	/* What could not be written out is not in the trace, nor is a gap that says so. */
	if (cause == WEIR_LOST_OUTPUT)
		return true;
	if (is_there && value && !account_u64(check, lost, name, &n))
		return false;
	if (is_there && !value) /* a ring whose writers count nothing has no gap either */
		return count->unknown[cause] || check->output_lost ||
		       cause == WEIR_LOST_RESERVE_FAILED ||
		       differs(check, "%s: lost by %s is unknown, and %s has no such gap", whose,
			       name, check->trace);
	if (count->lost[cause] == n || (check->output_lost && count->lost[cause] < n))
		return true;
	return differs(check, "%s: %" PRIu64 " lost by %s, and %" PRIu64 " by the gaps of %s",
		       whose, n, name, count->lost[cause], check->trace);
}

static bool check_account(struct ledger_check *check, struct json_object *account,
			  const char *whose, const struct judge_count *count)
{
	static const struct judge_count nothing;
	uint64_t late;
	int cause;

	if (!count)
		count = &nothing;
	if (!check_closes(check, account, whose) || !account_u64(check, account, "late", &late))
		return false;
	/* More may be: late events that were turned away after all, or did not get out. */
	if (late < count->late)
		return differs(check, "%s: %" PRIu64 " late, and %s has %" PRIu64, whose, late,
			       check->trace, count->late);
	for (cause = 0; cause < WEIR_LOST_CAUSES; cause++)
		if (!check_cause(check, json__get(account, "lost"), whose, count, cause))
			return false;
	return true;
}

static bool differs_in_events(struct ledger_check *check, const char *whose, uint64_t delivered,
			      uint64_t events)
{
	return differs(check, "%s: %" PRIu64 " delivered, and %s has %" PRIu64 " events", whose,
		       delivered, check->trace, events);
}

/*
 * What was delivered of one source is what the trace has of it, and so many enters of calls, whose
 * source it does not tell: never more of them than are left after the sources before.
 */
static bool check_delivered(struct ledger_check *check, struct json_object *source,
			    const char *whose, uint64_t *enters)
{
	const struct judge_count *count = judge__find(check->judge, whose);
	uint64_t delivered, events = count ? count->events : 0;

	if (!account_u64(check, source, "delivered", &delivered))
		return false;
	if (delivered < events || delivered - events > check->enters_left)
		return differs_in_events(check, whose, delivered, events);
	*enters = delivered - events;
	check->enters_left -= *enters;
	return true;
}

static bool check_source(struct ledger_check *check, struct json_object *source)
{
	struct json_object *name = json__has_type(source, json_type_object)
					   ? json__get(source, "name")
					   : NULL;
	uint64_t missing, enters = 0, filtered, output = 0;
	const char *whose;

	if (!json__is_string(name))
		return differs(check, "a source has no name");
	whose = json_object_get_string(name);
	if (!check_account(check, source, whose, judge__find(check->judge, whose)) ||
	    !check_delivered(check, source, whose, &enters))
		return false;
	missing = judge__missing(check->judge, whose);
	json__get_u64(json__get(json__get(source, "lost"), weir_cause__name(WEIR_LOST_OUTPUT)),
		      &output);
	if (!account_u64(check, source, "filtered", &filtered))
		return false;
	if (missing > filtered + output + enters && !check->output_lost)
		return differs(check,
			       "%s: %" PRIu64
			       " numbers are neither delivered nor in a gap of %s, and "
			       "only %" PRIu64 " were filtered",
			       whose, missing, check->trace, filtered);
	return true;
}

static bool check_ledger(struct ledger_check *check, struct json_object *ledger)
{
	const struct judge_count *total = judge__total(check->judge);
	struct json_object *sources;
	uint64_t delivered, of_source, sum = 0;
	size_t i;

	if (!json__has_type(ledger, json_type_object))
		return differs(check, "not a JSON object");
	sources = json__get(ledger, "sources");
	if (!json__is_array(sources))
		return differs(check, "\"sources\" is missing, or is not an array");
	check->output_lost = json__get(json__get(ledger, "lost"),
				       weir_cause__name(WEIR_LOST_OUTPUT));
	if (!account_u64(check, ledger, "delivered", &delivered))
		return false;
	if (delivered != total->events + total->enters)
		return differs_in_events(check, "all", delivered, total->events + total->enters);
	if (!check_account(check, ledger, "all", total))
		return false;
	check->enters_left = total->enters;
	for (i = 0; i < json_object_array_length(sources); i++) {
		struct json_object *source = json_object_array_get_idx(sources, i);

		if (!check_source(check, source) ||
		    !account_u64(check, source, "delivered", &of_source))
			return false;
		sum += of_source;
	}
	/* Also what finds a source that is named twice, or not at all. */
	return sum == delivered ||
	       differs(check, "%" PRIu64 " delivered, and %" PRIu64 " by its sources", delivered,
		       sum);
}

/* The whole of a file, without the space behind it. NULL: errno. */
static char *slurp(const char *file, size_t *len)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	char *text = fd >= 0 ? lines__all(fd, LEDGER_MAX_BYTES, len) : NULL;

	if (fd >= 0)
		close(fd);
	while (text && *len && (text[*len - 1] == '\n' || text[*len - 1] == ' '))
		--*len;
	return text;
}

static enum status judge_ledger(const struct judge *judge, const struct verify_options *opts)
{
	struct ledger_check check = {.judge = judge, .trace = opts->label};
	struct json_tokener *tokener = json__new_tokener(DEPTH_MAX);
	struct json_object *ledger = NULL;
	size_t len;
	char *text = slurp(opts->ledger, &len);
	enum status status;

	if (!text || !tokener) {
		status = say_unreadable(opts->ledger);
	} else {
		check.verdict = (struct judge_verdict){"format", 0, ""};
		ledger = json__parse(tokener, text, len, check.verdict.text,
				     sizeof(check.verdict.text));
		status = ledger && check_ledger(&check, ledger) ? GOOD : BROKEN;
		if (status == BROKEN)
			say_broken(opts->ledger, &check.verdict);
	}
	json_object_put(ledger);
	free(text);
	if (tokener)
		json_tokener_free(tokener);
	return status;
}

/* ---- the command ---------------------------------------------------------------------------- */

static void say_good(const struct judge *judge, const struct verify_options *opts)
{
	const struct judge_count *total = judge__total(judge);
	uint64_t lost = 0;
	bool at_most = false, unknown = false;
	int cause;

	for (cause = 0; cause < WEIR_LOST_CAUSES; cause++) {
		lost += total->lost[cause];
		at_most |= total->at_most[cause];
		unknown |= total->unknown[cause];
	}
	printf("%s: %" PRIu64 " events, %" PRIu64 " gaps, %s%" PRIu64 " lost%s, %" PRIu64
	       " late, %" PRIu64 " watermarks: %s\n",
	       opts->label, total->events + total->enters, total->gaps, at_most ? "at most " : "",
	       lost, unknown ? " and an unknown number" : "", total->late, total->watermarks,
	       opts->ledger ? "all promises kept, and the ledger agrees" : "all promises kept");
}

static enum status verify(struct judge *judge, const struct verify_options *opts)
{
	struct judge_verdict verdict;
	enum status status = judge_file(judge, opts);

	/* With an account, that may be as it should. */
	if (status == EMPTY && !opts->ledger)
		return say_empty(opts->label);
	if (status != GOOD && status != EMPTY)
		return status;
	if (opts->complete && !judge__complete(judge, &verdict)) {
		say_broken(opts->label, &verdict);
		return BROKEN;
	}
	if (opts->ledger)
		status = judge_ledger(judge, opts);
	if (status == GOOD && !opts->quiet)
		say_good(judge, opts);
	return status;
}

static bool is_folder(const char *file)
{
	struct stat st;

	return strcmp(file, "-") != 0 && !stat(file, &st) && S_ISDIR(st.st_mode);
}

static int verify_capture(const struct verify_options *opts)
{
	const struct capture_verify_options capture = {
		.complete = opts->complete, .repair = opts->repair, .quiet = opts->quiet};

	if (!opts->ledger)
		return capture_verify(&verify_command, opts->file, &capture);
	SAY("--ledger is for traces in JSON: a capture has its own account");
	return NO_VERDICT;
}

int cmd_verify(int argc, char **argv)
{
	struct verify_options opts = {0};
	struct judge *judge;
	int status, operand;

	operand = options__parse(&verify_command, argc, argv, &opts, &status);
	if (operand < 0)
		return status;
	if (argc - operand > 1) {
		SAY("one file at a time: '%s' is one too many", argv[operand + 1]);
		return NO_VERDICT;
	}
	opts.file = operand < argc ? argv[operand] : "-";
	opts.label = strcmp(opts.file, "-") ? opts.file : "standard input";
	if (is_folder(opts.file))
		return verify_capture(&opts);
	if (opts.repair) {
		SAY("--repair is for captures: %s is no folder", opts.label);
		return NO_VERDICT;
	}
	if (operand == argc && isatty(STDIN_FILENO))
		SAY("reading standard input");
	judge = judge__new();
	if (!judge)
		return say_unreadable(opts.label);
	status = verify(judge, &opts);
	judge__free(judge);
	return status;
}
