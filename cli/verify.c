// SPDX-License-Identifier: BSD-2-Clause
/*
 * verify.c - weir verify: is this trace what it claims to be?
 *
 * Owns: reading lines, JSON into numbers, the ledger's comparison, what is said at the end.
 * Promises: any bytes at all end in one of three exit statuses, in memory that does not grow with
 * the trace. Must not know: the rules (judge.c), nor anything of how a trace is made: it judges weir,
 * so it shares no code with what it judges, but for the names of causes.
 */
#include "cli/capture_verify.h"
#include "cli/commands.h"
#include "cli/judge.h"
#include "cli/lines.h"
#include "cli/options.h"

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

/* ---- JSON into numbers ---------------------------------------------------------------------- */

static bool has_type(struct json_object *value, enum json_type type)
{
	return value && json_object_is_type(value, type);
}

static bool get_u64(struct json_object *value, uint64_t *out)
{
	if (!has_type(value, json_type_int) || json_object_get_int64(value) < 0)
		return false;
	*out = json_object_get_uint64(value);
	return true;
}

/* A stamp is a string of digits: no sign, no leading zero, no more than 64 bits. */
static bool get_stamp(struct json_object *value, uint64_t *out)
{
	const char *text = has_type(value, json_type_string) ? json_object_get_string(value) : "";
	size_t len = strlen(text), i;

	*out = 0;
	if (!len || (text[0] == '0' && len > 1))
		return false;
	for (i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(*out, 10u, out) ||
		    __builtin_add_overflow(*out, (unsigned)(text[i] - '0'), out))
			return false;
	}
	return len == (size_t)json_object_get_string_len(value);
}

/* 2025-09-09T10:05:45.123456789Z */
static bool is_time(struct json_object *value)
{
	static const char shape[] = "dddd-dd-ddTdd:dd:dd.dddddddddZ";
	const char *text;
	size_t i;

	if (!has_type(value, json_type_string) ||
	    json_object_get_string_len(value) != sizeof(shape) - 1)
		return false;
	text = json_object_get_string(value);
	for (i = 0; i < sizeof(shape) - 1; i++)
		if (shape[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != shape[i])
			return false;
	return true;
}

static bool is_u64(struct json_object *value)
{
	uint64_t ignored;

	return get_u64(value, &ignored);
}

/* A string without NULs: what follows one would not be compared. */
static bool is_string(struct json_object *value)
{
	return has_type(value, json_type_string) &&
	       strlen(json_object_get_string(value)) == (size_t)json_object_get_string_len(value);
}

static bool is_bytes(struct json_object *value)
{
	return has_type(value, json_type_string);
}

static bool is_name(struct json_object *value)
{
	return is_string(value) && json_object_get_string_len(value);
}

/* The last number of all is left out, so that one more can be counted. */
static bool is_seq(struct json_object *value)
{
	uint64_t seq;

	return get_u64(value, &seq) && seq != UINT64_MAX;
}

static bool is_at_most(struct json_object *value)
{
	return is_string(value) && !strcmp(json_object_get_string(value), "at_most");
}

static bool is_true(struct json_object *value)
{
	return has_type(value, json_type_boolean) && json_object_get_boolean(value);
}

static bool is_array(struct json_object *value)
{
	return has_type(value, json_type_array);
}

/* Keys that a line may have: where they are there, they have to be like this. */
static const struct {
	const char *key;
	bool (*is_good)(struct json_object *value);
	const char *what;
} may_have[] = {
	{"cpu", is_u64, "a number"},	     {"pid", is_u64, "a number"},
	{"tid", is_u64, "a number"},	     {"comm", is_bytes, "a string"},
	{"source", is_name, "a name"},	     {"seq", is_seq, "a number of 64 bits"},
	{"container", is_bytes, "a string"}, {"late", is_true, "true"},
	{"ahead", is_true, "true"},	     {"bound", is_at_most, "\"at_most\""},
	{"unread", is_array, "an array"},    {"cut", is_array, "an array"},
	{"broken", is_true, "true"},	     {"unfinished", is_true, "true"},
	{"no_return", is_true, "true"},
};

static bool wrong(char *why, size_t len, const char *key, const char *what)
{
	snprintf(why, len, "\"%s\" is missing, or is not %s", key, what);
	return false;
}

static struct json_object *get(struct json_object *object, const char *key)
{
	return json_object_object_get(object, key);
}

static bool read_common(struct json_object *object, struct judge_line *line, char *why, size_t len)
{
	size_t i;

	if (!get_stamp(get(object, "ts"), &line->stamp_ns))
		return wrong(why, len, "ts", "a string of digits of at most 64 bits");
	if (!is_time(get(object, "time")))
		return wrong(why, len, "time", "an RFC 3339 time in UTC with nine digits");
	if (!is_string(get(object, "event")))
		return wrong(why, len, "event", "a string");
	for (i = 0; i < sizeof(may_have) / sizeof(may_have[0]); i++) {
		struct json_object *value;

		if (json_object_object_get_ex(object, may_have[i].key, &value) &&
		    !may_have[i].is_good(value))
			return wrong(why, len, may_have[i].key, may_have[i].what);
	}
	line->source = json_object_get_string(get(object, "source"));
	line->has_seq = get_u64(get(object, "seq"), &line->seq);
	line->late = get(object, "late");
	line->ahead = get(object, "ahead");
	return true;
}

static bool read_syscall(struct json_object *object, char *why, size_t len)
{
	if (!is_string(get(object, "syscall")))
		return wrong(why, len, "syscall", "a string");
	if (!has_type(get(object, "nr"), json_type_int))
		return wrong(why, len, "nr", "a number");
	return true;
}

static bool read_record(struct json_object *object, struct judge_line *line, const char *event,
			char *why, size_t len)
{
	line->kind = JUDGE_RECORD;
	if (!line->source)
		return wrong(why, len, "source", "a name");
	if (!line->has_seq)
		return wrong(why, len, "seq", "a number");
	if (!has_type(get(object, "args"), json_type_object) &&
	    (strncmp(event, "map:", 4) || !is_string(get(object, "hex"))))
		return wrong(why, len, "args", "an object");
	if (strcmp(event, "sys_enter") && strcmp(event, "sys_exit"))
		return true;
	return read_syscall(object, why, len);
}

/* Of a call that was entered: for how long it ran, if its exit is there. */
static bool read_duration(struct json_object *object, const struct judge_line *line, char *why,
			  size_t len)
{
	struct json_object *enter, *duration;
	uint64_t enter_ns, dur_ns;

	if (!json_object_object_get_ex(object, "enter", &enter) ||
	    (enter && !get_stamp(enter, &enter_ns)))
		return wrong(why, len, "enter", "a string of digits of at most 64 bits, or null");
	if (!json_object_object_get_ex(object, "dur_ns", &duration) ||
	    (duration && !get_u64(duration, &dur_ns)))
		return wrong(why, len, "dur_ns", "a number or null");
	if (!duration != !(enter && line->has_seq))
		return wrong(why, len, "dur_ns", "there just when both enter and exit are");
	if (duration && (enter_ns > line->stamp_ns || line->stamp_ns - enter_ns != dur_ns))
		return wrong(why, len, "dur_ns", "the time from \"enter\" to \"ts\"");
	return true;
}

/* A call without its exit says why, and has no result; one without its enter has no arguments. */
static bool read_halves(struct json_object *object, const struct judge_line *line, char *why,
			size_t len)
{
	static const char *const ends[] = {"broken", "unfinished", "no_return"};
	struct json_object *result, *args;
	bool has_args = line->entered || get(object, "before");
	unsigned int said = 0;

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		said += get(object, ends[i]) != NULL;
	if (said != !line->has_seq)
		return wrong(why, len, "seq", "there just when the call returned");
	if (!json_object_object_get_ex(object, "result", &result) ||
	    (result ? !has_type(result, json_type_int) || said : !said))
		return wrong(why, len, "result", "a number where the call returned, else null");
	if (!json_object_object_get_ex(object, "args", &args) ||
	    (args ? !has_type(args, json_type_object) || !has_args : has_args || !line->has_seq))
		return wrong(why, len, "args", "an object where the call was entered, else null");
	return true;
}

/* Both halves of a system call in one line. It has a number, of its exit, only where it returned. */
static bool read_call(struct json_object *object, struct judge_line *line, char *why, size_t len)
{
	line->kind = JUDGE_RECORD;
	line->entered = get(object, "enter");
	if (line->has_seq && !line->source)
		return wrong(why, len, "source", "a name");
	return read_syscall(object, why, len) && read_duration(object, line, why, len) &&
	       read_halves(object, line, why, len);
}

static bool get_cause(struct json_object *value, enum weir_cause *out)
{
	int cause;

	for (cause = 0; is_string(value) && cause < WEIR_LOST_CAUSES; cause++) {
		*out = cause;
		if (!strcmp(json_object_get_string(value), weir_cause__name(cause)))
			return true;
	}
	return false;
}

static bool read_gap(struct json_object *object, struct judge_line *line, char *why, size_t len)
{
	struct json_object *lost;

	line->kind = JUDGE_GAP;
	if (!get_stamp(get(object, "from"), &line->gap.from_ns))
		return wrong(why, len, "from", "a string of digits of at most 64 bits");
	if (!get_stamp(get(object, "to"), &line->gap.to_ns))
		return wrong(why, len, "to", "a string of digits of at most 64 bits");
	if (!get_cause(get(object, "cause"), &line->gap.cause))
		return wrong(why, len, "cause", "the name of a cause");
	if (!json_object_object_get_ex(object, "lost", &lost) ||
	    (lost && !get_u64(lost, &line->gap.lost)))
		return wrong(why, len, "lost", "a number or null");
	line->gap.bound = WEIR_BOUND_EXACT;
	if (!lost)
		line->gap.bound = WEIR_BOUND_UNKNOWN;
	else if (get(object, "bound"))
		line->gap.bound = WEIR_BOUND_AT_MOST;
	if (!line->has_seq)
		return true;
	if (!line->source || line->gap.bound != WEIR_BOUND_EXACT)
		return wrong(why, len, "seq", "of a source, with an exact count");
	if (!get_u64(get(object, "seq_end"), &line->gap.seq_end))
		return wrong(why, len, "seq_end", "a number of 64 bits");
	return true;
}

static bool is_offset(struct json_object *value)
{
	const char *text = is_string(value) ? json_object_get_string(value) : "";
	char *end;

	errno = 0;
	strtoll(text, &end, 10);
	return *text && !*end && !errno;
}

static bool read_clock_step(struct json_object *object, struct judge_line *line, char *why,
			    size_t len)
{
	uint64_t suspended_ns;

	line->kind = JUDGE_CLOCK_STEP;
	line->has_seq = false;
	if (!is_offset(get(object, "old_offset")))
		return wrong(why, len, "old_offset", "a signed number in a string");
	if (!is_offset(get(object, "new_offset")))
		return wrong(why, len, "new_offset", "a signed number in a string");
	if (!get_stamp(get(object, "suspended"), &suspended_ns))
		return wrong(why, len, "suspended", "a string of digits of at most 64 bits");
	return true;
}

static bool read_watermark(struct json_object *object, struct judge_line *line, char *why,
			   size_t len)
{
	struct json_object *order = get(object, "order");
	const char *text = is_string(order) ? json_object_get_string(order) : "";

	line->kind = JUDGE_WATERMARK;
	if (strcmp(text, "exact") && strcmp(text, "estimated"))
		return wrong(why, len, "order", "\"exact\" or \"estimated\"");
	return true;
}

/* false: the line is not of the form that its event has, `why` says what is wrong. */
static bool read_line(struct json_object *object, struct judge_line *line, char *why, size_t len)
{
	const char *event;

	if (!has_type(object, json_type_object)) {
		snprintf(why, len, "not a JSON object");
		return false;
	}
	if (!read_common(object, line, why, len))
		return false;
	event = json_object_get_string(get(object, "event"));
	if (!strcmp(event, "gap"))
		return read_gap(object, line, why, len);
	if (!strcmp(event, "watermark"))
		return read_watermark(object, line, why, len);
	if (!strcmp(event, "clock_step"))
		return read_clock_step(object, line, why, len);
	if (!strcmp(event, "syscall"))
		return read_call(object, line, why, len);
	return read_record(object, line, event, why, len);
}

/* The whole of `text` as one JSON value; NULL: `why` says what is wrong. */
static struct json_object *parse(struct json_tokener *tokener, const char *text, size_t text_len,
				 char *why, size_t len)
{
	struct json_object *value;

	json_tokener_reset(tokener);
	value = json_tokener_parse_ex(tokener, text, (int)text_len);
	if (value && json_tokener_get_parse_end(tokener) == text_len)
		return value;
	if (value) {
		snprintf(why, len, "not one JSON value: more follows at byte %zu",
			 json_tokener_get_parse_end(tokener) + 1);
		json_object_put(value);
	} else if (json_tokener_get_error(tokener) == json_tokener_continue) {
		snprintf(why, len, "not JSON: it ends too early");
	} else if (json_tokener_get_error(tokener) == json_tokener_success) {
		snprintf(why, len, "not a JSON object");
	} else {
		snprintf(why, len, "not JSON: %s at byte %zu",
			 json_tokener_error_desc(json_tokener_get_error(tokener)),
			 json_tokener_get_parse_end(tokener) + 1);
	}
	return NULL;
}

static struct json_tokener *new_tokener(int depth)
{
	struct json_tokener *tokener = json_tokener_new_ex(depth);

	if (tokener)
		json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	return tokener;
}

/* ---- the verdict ---------------------------------------------------------------------------- */

/* What a trace says may hold anything, and standard error is often a terminal. */
static void make_printable(char *text)
{
	for (; *text; text++)
		if (*text < 0x20 || *text > 0x7e)
			*text = '?';
}

static void say_broken(const char *file, struct judge_verdict *verdict)
{
	make_printable(verdict->text);
	if (verdict->line)
		fprintf(stderr, "%s:%" PRIu64 ": %s: %s\n", file, verdict->line, verdict->promise,
			verdict->text);
	else
		fprintf(stderr, "%s: %s: %s\n", file, verdict->promise, verdict->text);
}

static enum status say_unreadable(const char *file)
{
	SAY("%s: %s", file, strerror(errno));
	return NO_VERDICT;
}

/* An account that went the same way as the trace: no event, and --ledger's to judge. */
static bool is_account(struct json_object *object)
{
	struct json_object *event = has_type(object, json_type_object) ? get(object, "event")
								       : NULL;

	return event && is_string(event) && !strcmp(json_object_get_string(event), "account");
}

static bool take_line(struct judge *judge, struct json_tokener *tokener, uint64_t no,
		      const char *text, size_t len, struct judge_verdict *verdict)
{
	struct judge_line line = {.no = no};
	struct json_object *object;
	bool good;

	verdict->promise = "format";
	verdict->line = no;
	object = parse(tokener, text, len, verdict->text, sizeof(verdict->text));
	if (!object)
		return false;
	good = is_account(object) ||
	       (read_line(object, &line, verdict->text, sizeof(verdict->text)) &&
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
	struct json_tokener *tokener = new_tokener(DEPTH_MAX);
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
	if (has_type(account, json_type_object) && get_u64(get(account, key), out))
		return true;
	check->verdict.promise = "format";
	check->verdict.line = 0;
	return wrong(check->verdict.text, sizeof(check->verdict.text), key, "a number");
}

/* Does the account close, by its own numbers? */
static bool check_closes(struct ledger_check *check, struct json_object *account, const char *whose)
{
	uint64_t produced, delivered, filtered, pending, sum;
	struct json_object *lost = get(account, "lost");

	if (!account_u64(check, account, "produced", &produced) ||
	    !account_u64(check, account, "delivered", &delivered) ||
	    !account_u64(check, account, "filtered", &filtered) ||
	    !account_u64(check, account, "pending", &pending))
		return false;
	sum = delivered + filtered + pending;
	if (!has_type(lost, json_type_object))
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
		if (!check_cause(check, get(account, "lost"), whose, count, cause))
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
	struct json_object *name = has_type(source, json_type_object) ? get(source, "name") : NULL;
	uint64_t missing, enters = 0, filtered, output = 0;
	const char *whose;

	if (!is_string(name))
		return differs(check, "a source has no name");
	whose = json_object_get_string(name);
	if (!check_account(check, source, whose, judge__find(check->judge, whose)) ||
	    !check_delivered(check, source, whose, &enters))
		return false;
	missing = judge__missing(check->judge, whose);
	get_u64(get(get(source, "lost"), weir_cause__name(WEIR_LOST_OUTPUT)), &output);
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

	if (!has_type(ledger, json_type_object))
		return differs(check, "not a JSON object");
	sources = get(ledger, "sources");
	if (!is_array(sources))
		return differs(check, "\"sources\" is missing, or is not an array");
	check->output_lost = get(get(ledger, "lost"), weir_cause__name(WEIR_LOST_OUTPUT));
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
	struct json_tokener *tokener = new_tokener(DEPTH_MAX);
	struct json_object *ledger = NULL;
	size_t len;
	char *text = slurp(opts->ledger, &len);
	enum status status;

	if (!text || !tokener) {
		status = say_unreadable(opts->ledger);
	} else {
		check.verdict = (struct judge_verdict){"format", 0, ""};
		ledger = parse(tokener, text, len, check.verdict.text, sizeof(check.verdict.text));
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
	judge = judge__new();
	if (!judge)
		return say_unreadable(opts.label);
	status = verify(judge, &opts);
	judge__free(judge);
	return status;
}
