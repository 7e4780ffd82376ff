// SPDX-License-Identifier: BSD-2-Clause
#include "cli/trace_line.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

bool json__has_type(struct json_object *value, enum json_type type)
{
	return value && json_object_is_type(value, type);
}

bool json__get_u64(struct json_object *value, uint64_t *out)
{
	if (!json__has_type(value, json_type_int) || json_object_get_int64(value) < 0)
		return false;
	*out = json_object_get_uint64(value);
	return true;
}

/* A stamp is a string of digits: no sign, no leading zero, no more than 64 bits. */
static bool get_stamp(struct json_object *value, uint64_t *out)
{
	const char *text = json__has_type(value, json_type_string) ? json_object_get_string(value)
								   : "";
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

	if (!json__has_type(value, json_type_string) ||
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

	return json__get_u64(value, &ignored);
}

/* A string without NULs: what follows one would not be compared. */
bool json__is_string(struct json_object *value)
{
	return json__has_type(value, json_type_string) &&
	       strlen(json_object_get_string(value)) == (size_t)json_object_get_string_len(value);
}

static bool is_bytes(struct json_object *value)
{
	return json__has_type(value, json_type_string);
}

static bool is_name(struct json_object *value)
{
	return json__is_string(value) && json_object_get_string_len(value);
}

/* The last number of all is left out, so that one more can be counted. */
static bool is_seq(struct json_object *value)
{
	uint64_t seq;

	return json__get_u64(value, &seq) && seq != UINT64_MAX;
}

static bool is_at_most(struct json_object *value)
{
	return json__is_string(value) && !strcmp(json_object_get_string(value), "at_most");
}

static bool is_true(struct json_object *value)
{
	return json__has_type(value, json_type_boolean) && json_object_get_boolean(value);
}

bool json__is_array(struct json_object *value)
{
	return json__has_type(value, json_type_array);
}

/* Keys that a line may have: where they are there, they have to be like this. */
static const struct {
	const char *key;
	bool (*is_good)(struct json_object *value);
	const char *what;
} may_have[] = {
	{"cpu", is_u64, "a number"},
	{"pid", is_u64, "a number"},
	{"tid", is_u64, "a number"},
	{"comm", is_bytes, "a string"},
	{"source", is_name, "a name"},
	{"seq", is_seq, "a number of 64 bits"},
	{"container", is_bytes, "a string"},
	{"late", is_true, "true"},
	{"ahead", is_true, "true"},
	{"bound", is_at_most, "\"at_most\""},
	{"unread", json__is_array, "an array"},
	{"cut", json__is_array, "an array"},
	{"broken", is_true, "true"},
	{"unfinished", is_true, "true"},
	{"no_return", is_true, "true"},
};

bool json__wrong(char *why, size_t len, const char *key, const char *what)
{
	snprintf(why, len, "\"%s\" is missing, or is not %s", key, what);
	return false;
}

struct json_object *json__get(struct json_object *object, const char *key)
{
	return json_object_object_get(object, key);
}

static bool read_common(struct json_object *object, struct judge_line *line, char *why, size_t len)
{
	size_t i;

	if (!get_stamp(json__get(object, "ts"), &line->stamp_ns))
		return json__wrong(why, len, "ts", "a string of digits of at most 64 bits");
	if (!is_time(json__get(object, "time")))
		return json__wrong(why, len, "time", "an RFC 3339 time in UTC with nine digits");
	if (!json__is_string(json__get(object, "event")))
		return json__wrong(why, len, "event", "a string");
	for (i = 0; i < sizeof(may_have) / sizeof(may_have[0]); i++) {
		struct json_object *value;

		if (json_object_object_get_ex(object, may_have[i].key, &value) &&
		    !may_have[i].is_good(value))
			return json__wrong(why, len, may_have[i].key, may_have[i].what);
	}
	line->source = json_object_get_string(json__get(object, "source"));
	line->has_seq = json__get_u64(json__get(object, "seq"), &line->seq);
	line->late = json__get(object, "late");
	line->ahead = json__get(object, "ahead");
	return true;
}

static bool read_syscall(struct json_object *object, char *why, size_t len)
{
	if (!json__is_string(json__get(object, "syscall")))
		return json__wrong(why, len, "syscall", "a string");
	if (!json__has_type(json__get(object, "nr"), json_type_int))
		return json__wrong(why, len, "nr", "a number");
	return true;
}

static bool read_record(struct json_object *object, struct judge_line *line, const char *event,
			char *why, size_t len)
{
	line->kind = JUDGE_RECORD;
	if (!line->source)
		return json__wrong(why, len, "source", "a name");
	if (!line->has_seq)
		return json__wrong(why, len, "seq", "a number");
	if (!json__has_type(json__get(object, "args"), json_type_object) &&
	    (strncmp(event, "map:", 4) || !json__is_string(json__get(object, "hex"))))
		return json__wrong(why, len, "args", "an object");
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
		return json__wrong(why, len, "enter",
				   "a string of digits of at most 64 bits, or null");
	if (!json_object_object_get_ex(object, "dur_ns", &duration) ||
	    (duration && !json__get_u64(duration, &dur_ns)))
		return json__wrong(why, len, "dur_ns", "a number or null");
	if (!duration != !(enter && line->has_seq))
		return json__wrong(why, len, "dur_ns", "there just when both enter and exit are");
	if (duration && (enter_ns > line->stamp_ns || line->stamp_ns - enter_ns != dur_ns))
		return json__wrong(why, len, "dur_ns", "the time from \"enter\" to \"ts\"");
	return true;
}

/* A call without its exit says why, and has no result; one without its enter has no arguments. */
static bool read_halves(struct json_object *object, const struct judge_line *line, char *why,
			size_t len)
{
	static const char *const ends[] = {"broken", "unfinished", "no_return"};
	struct json_object *result, *args;
	bool has_args = line->entered || json__get(object, "before");
	unsigned int said = 0;

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		said += json__get(object, ends[i]) != NULL;
	if (said != !line->has_seq)
		return json__wrong(why, len, "seq", "there just when the call returned");
	if (!json_object_object_get_ex(object, "result", &result) ||
	    (result ? !json__has_type(result, json_type_int) || said : !said))
		return json__wrong(why, len, "result",
				   "a number where the call returned, else null");
	if (!json_object_object_get_ex(object, "args", &args) ||
	    (args ? !json__has_type(args, json_type_object) || !has_args
		  : has_args || !line->has_seq))
		return json__wrong(why, len, "args",
				   "an object where the call was entered, else null");
	return true;
}

/* Both halves of a system call in one line. It has a number, of its exit, only where it returned. */
static bool read_call(struct json_object *object, struct judge_line *line, char *why, size_t len)
{
	line->kind = JUDGE_RECORD;
	line->entered = json__get(object, "enter");
	if (line->has_seq && !line->source)
		return json__wrong(why, len, "source", "a name");
	return read_syscall(object, why, len) && read_duration(object, line, why, len) &&
	       read_halves(object, line, why, len);
}

static bool get_cause(struct json_object *value, enum weir_cause *out)
{
	int cause;

	for (cause = 0; json__is_string(value) && cause < WEIR_LOST_CAUSES; cause++) {
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
	if (!get_stamp(json__get(object, "from"), &line->gap.from_ns))
		return json__wrong(why, len, "from", "a string of digits of at most 64 bits");
	if (!get_stamp(json__get(object, "to"), &line->gap.to_ns))
		return json__wrong(why, len, "to", "a string of digits of at most 64 bits");
	if (!get_cause(json__get(object, "cause"), &line->gap.cause))
		return json__wrong(why, len, "cause", "the name of a cause");
	if (!json_object_object_get_ex(object, "lost", &lost) ||
	    (lost && !json__get_u64(lost, &line->gap.lost)))
		return json__wrong(why, len, "lost", "a number or null");
	line->gap.bound = WEIR_BOUND_EXACT;
	if (!lost)
		line->gap.bound = WEIR_BOUND_UNKNOWN;
	else if (json__get(object, "bound"))
		line->gap.bound = WEIR_BOUND_AT_MOST;
	if (!line->has_seq)
		return true;
	if (!line->source || line->gap.bound != WEIR_BOUND_EXACT)
		return json__wrong(why, len, "seq", "of a source, with an exact count");
	if (!json__get_u64(json__get(object, "seq_end"), &line->gap.seq_end))
		return json__wrong(why, len, "seq_end", "a number of 64 bits");
	return true;
}

static bool is_offset(struct json_object *value)
{
	const char *text = json__is_string(value) ? json_object_get_string(value) : "";
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
	if (!is_offset(json__get(object, "old_offset")))
		return json__wrong(why, len, "old_offset", "a signed number in a string");
	if (!is_offset(json__get(object, "new_offset")))
		return json__wrong(why, len, "new_offset", "a signed number in a string");
	if (!get_stamp(json__get(object, "suspended"), &suspended_ns))
		return json__wrong(why, len, "suspended", "a string of digits of at most 64 bits");
	return true;
}

static bool read_watermark(struct json_object *object, struct judge_line *line, char *why,
			   size_t len)
{
	struct json_object *order = json__get(object, "order");
	const char *text = json__is_string(order) ? json_object_get_string(order) : "";

	line->kind = JUDGE_WATERMARK;
	if (strcmp(text, "exact") && strcmp(text, "estimated"))
		return json__wrong(why, len, "order", "\"exact\" or \"estimated\"");
	return true;
}

/* false: the line is not of the form that its event has, `why` says what is wrong. */
bool trace_line__read(struct json_object *object, struct judge_line *line, char *why, size_t len)
{
	const char *event;

	if (!json__has_type(object, json_type_object)) {
		snprintf(why, len, "not a JSON object");
		return false;
	}
	if (!read_common(object, line, why, len))
		return false;
	event = json_object_get_string(json__get(object, "event"));
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
struct json_object *json__parse(struct json_tokener *tokener, const char *text, size_t text_len,
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

struct json_tokener *json__new_tokener(int depth)
{
	struct json_tokener *tokener = json_tokener_new_ex(depth);

	if (tokener)
		json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	return tokener;
}
