// SPDX-License-Identifier: BSD-2-Clause
/*
 * json.c - events as JSON lines: docs/schema/weir-trace.schema.json describes them.
 *
 * Owns: the form of a line. Promises: each line is one JSON object in valid UTF-8, whatever bytes
 * the event carries, and every string of a program's can be turned back into those bytes: a byte
 * that is no UTF-8 becomes \xNN, and every backslash of the data is doubled, always, so that \x can
 * stand for nothing else. Stamps are strings of digits: they pass 2^53, where JSON readers round.
 * Must not know: where events come from, what the descriptor is.
 *
 * A line is made in the buffer itself. Nothing is allocated, no format string is read: a million of
 * them have to fit into a second.
 */
#include "sinks/flags.h"
#include "sinks/json.h"
#include "sinks/out.h"
#include "sinks/put.h"
#include "sinks/sockaddr.h"
#include "sinks/table.h"

#include <weir/probes.h>

#include <errno.h>
#include <time.h>

#define STRING_STEP 512	 /* bytes of a string for which room is made at a time */
#define ESCAPE_MAX  6	 /* what one byte can become: \\xNN is 5, \u00NN 6 */
#define FIXED_MAX   1024 /* what a line has besides strings and arguments */

/*
 * The text of a second, "2025-09-09T10:05:45.". Events come in order, so it is made once a second
 * and not once a line.
 */
static char *put_second(char *p, int64_t sec)
{
	static __thread int64_t cached_sec = INT64_MIN;
	static __thread char cached[20];

	if (sec != cached_sec) {
		time_t when = sec;
		char *at = cached;
		struct tm tm;

		gmtime_r(&when, &tm);
		at = put_2(at, (uint32_t)(tm.tm_year + 1900) / 100);
		at = put_2(at, (uint32_t)(tm.tm_year + 1900) % 100);
		*at++ = '-';
		at = put_2(at, (uint32_t)tm.tm_mon + 1);
		*at++ = '-';
		at = put_2(at, (uint32_t)tm.tm_mday);
		*at++ = 'T';
		at = put_2(at, (uint32_t)tm.tm_hour);
		*at++ = ':';
		at = put_2(at, (uint32_t)tm.tm_min);
		*at++ = ':';
		at = put_2(at, (uint32_t)tm.tm_sec);
		*at = '.';
		cached_sec = sec;
	}
	memcpy(p, cached, sizeof(cached));
	return p + sizeof(cached);
}

/* Bytes of the UTF-8 sequence at s, which has `left` bytes and begins with 0x80 or above; 0: none. */
static unsigned utf8_len(const uint8_t *s, size_t left)
{
	uint8_t low = 0x80, high = 0xbf; /* of the second byte: no overlong form, no surrogate */
	unsigned len, i;

	if (s[0] >= 0xc2 && s[0] <= 0xdf) {
		len = 2;
	} else if (s[0] >= 0xe0 && s[0] <= 0xef) {
		len = 3;
		low = s[0] == 0xe0 ? 0xa0 : 0x80;
		high = s[0] == 0xed ? 0x9f : 0xbf;
	} else if (s[0] >= 0xf0 && s[0] <= 0xf4) {
		len = 4;
		low = s[0] == 0xf0 ? 0x90 : 0x80;
		high = s[0] == 0xf4 ? 0x8f : 0xbf;
	} else {
		return 0;
	}
	if (left < len || s[1] < low || s[1] > high)
		return 0;
	for (i = 2; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return len;
}

/* \u00NN, for control characters. */
static char *put_control(char *p, uint8_t c)
{
	return put_byte(PUT(p, "\\u00"), c);
}

static char *put_ascii(char *p, uint8_t c)
{
	switch (c) {
	case '"':
		return PUT(p, "\\\"");
	case '\\':
		return PUT(p, "\\\\\\\\");
	case '\n':
		return PUT(p, "\\n");
	case '\r':
		return PUT(p, "\\r");
	case '\t':
		return PUT(p, "\\t");
	}
	if (c < 0x20 || c == 0x7f)
		return put_control(p, c);
	*p = (char)c;
	return p + 1;
}

/*
 * One character of a string, at most ESCAPE_MAX for each byte of it. U+0080 to U+009F are control
 * characters that some terminals obey, so they go out as escapes, too.
 */
static char *put_char(char *p, const uint8_t *s, size_t left, unsigned *used)
{
	*used = 1;
	if (s[0] < 0x80)
		return put_ascii(p, s[0]);
	*used = utf8_len(s, left);
	if (*used == 2 && s[0] == 0xc2 && s[1] < 0xa0)
		return put_control(p, s[1]);
	if (*used) {
		memcpy(p, s, *used);
		return p + *used;
	}
	*used = 1;
	return put_byte(PUT(p, "\\\\x"), s[0]);
}

static char *put_step(char *p, const uint8_t *s, size_t left, size_t *used)
{
	const uint8_t *limit = s + (left < STRING_STEP ? left : STRING_STEP), *end = s + left,
		      *at = s;
	unsigned n;

	while (at < limit) {
		p = put_plain(p, &at, limit);
		if (at == limit)
			break;
		p = put_char(p, at, (size_t)(end - at), &n);
		at += n;
	}
	*used = (size_t)(at - s);
	return p;
}

void json__string(struct out *out, const char *bytes, size_t len)
{
	const uint8_t *s = (const uint8_t *)bytes;
	char *p = out__room(out, (STRING_STEP + 3) * ESCAPE_MAX + 2);
	size_t used;

	*p++ = '"';
	while (len) {
		p = put_step(p, s, len, &used);
		s += used;
		len -= used;
		if (len) {
			out__used(out, p);
			p = out__room(out, (STRING_STEP + 3) * ESCAPE_MAX + 2);
		}
	}
	*p++ = '"';
	out__used(out, p);
}

/* ,"key":"..." */
static void string_member(struct out *out, const char *key, const char *bytes, size_t len)
{
	out__str(out, key);
	json__string(out, bytes, len);
}

static void strings(struct out *out, const char *bytes, size_t len)
{
	out__char(out, '[');
	while (len) {
		size_t one = strnlen(bytes, len);
		size_t whole = one < len ? one + 1 : one; /* a cut one has lost its NUL */

		json__string(out, bytes, one);
		bytes += whole;
		len -= whole;
		if (len)
			out__char(out, ',');
	}
	out__char(out, ']');
}

static void raw_bytes(struct out *out, const char *bytes, size_t len)
{
	size_t i;

	out__str(out, "\"0x");
	for (i = 0; i < len; i++)
		out__used(out, put_byte(out__room(out, 2), (uint8_t)bytes[i]));
	out__char(out, '"');
}

static void ip_members(struct out *out, const struct sockaddr_parts *parts)
{
	string_member(out, ",\"addr\":", parts->addr, strlen(parts->addr));
	out__str(out, ",\"port\":");
	out__u64(out, parts->port);
	if (parts->scope) {
		out__str(out, ",\"scope\":");
		out__u64(out, parts->scope);
	}
}

static void netlink_members(struct out *out, const struct sockaddr_parts *parts)
{
	out__str(out, ",\"port\":");
	out__u64(out, parts->port);
	out__str(out, ",\"groups\":\"");
	out__hex(out, parts->groups);
	out__char(out, '"');
}

static void address(struct out *out, const char *bytes, size_t len)
{
	struct sockaddr_parts parts;

	sockaddr__parts(bytes, len, &parts);
	if (!parts.family[0]) {
		out__str(out, "{\"raw\":");
		raw_bytes(out, bytes, len);
		out__char(out, '}');
		return;
	}
	string_member(out, "{\"family\":", parts.family, strlen(parts.family));
	switch (parts.form) {
	case SOCKADDR_IP:
		ip_members(out, &parts);
		break;
	case SOCKADDR_PATH:
		string_member(out, ",\"path\":", parts.bytes, parts.len);
		break;
	case SOCKADDR_ABSTRACT:
		string_member(out, ",\"abstract\":", parts.bytes, parts.len);
		break;
	case SOCKADDR_UNNAMED:
		break;
	case SOCKADDR_NETLINK:
		netlink_members(out, &parts);
		break;
	case SOCKADDR_RAW:
		out__str(out, ",\"raw\":");
		raw_bytes(out, parts.bytes, parts.len);
		break;
	}
	out__char(out, '}');
}

static void hex_string(struct out *out, uint64_t value)
{
	char *p = out__room(out, PUT_HEX_MAX + 2);

	*p++ = '"';
	p = put_hex(p, value);
	*p++ = '"';
	out__used(out, p);
}

/* The address of what could not be read. Nobody reads at 0, so that means: not even that is known. */
static void unread(struct out *out, uint64_t address)
{
	if (address)
		hex_string(out, address);
	else
		out__str(out, "null");
}

static void value(struct out *out, const struct weir_arg *arg)
{
	if (arg->flags & WEIR_ARG_UNREAD) {
		unread(out, arg->u);
		return;
	}
	switch (arg->kind) {
	case WEIR_ARG_UINT:
		out__u64(out, arg->u);
		break;
	case WEIR_ARG_INT:
		out__i64(out, arg->i);
		break;
	case WEIR_ARG_HEX:
		hex_string(out, arg->u);
		break;
	case WEIR_ARG_BOOL:
		out__str(out, arg->u ? "true" : "false");
		break;
	case WEIR_ARG_TIMESPEC:
		out__str(out, "{\"tv_sec\":");
		out__i64(out, arg->i);
		out__str(out, ",\"tv_nsec\":");
		out__i64(out, (int64_t)arg->u);
		out__char(out, '}');
		break;
	case WEIR_ARG_WORD:
		json__string(out, arg->bytes, strlen(arg->bytes));
		break;
	case WEIR_ARG_STR:
		json__string(out, arg->bytes, arg->len);
		break;
	case WEIR_ARG_STRV:
		strings(out, arg->bytes, arg->len);
		break;
	case WEIR_ARG_SOCKADDR:
		address(out, arg->bytes, arg->len);
		break;
	}
}

static void name(struct out *out, const char *name)
{
	json__string(out, name, strlen(name));
}

/* The names of the arguments that have `flag`, as ,"key":[...]; nothing when there is none. */
static void flagged(struct out *out, const struct weir_decoded *d, uint32_t flag, const char *key)
{
	uint32_t i, n = 0;

	for (i = 0; i < d->nargs; i++) {
		if (!(d->args[i].flags & flag))
			continue;
		out__str(out, n++ ? "," : key);
		name(out, d->args[i].name);
	}
	if (n)
		out__char(out, ']');
}

static void args(struct out *out, const struct weir_decoded *d)
{
	uint32_t i, any = 0;

	out__str(out, ",\"args\":{");
	for (i = 0; i < d->nargs; i++) {
		if (i)
			out__char(out, ',');
		name(out, d->args[i].name);
		out__char(out, ':');
		value(out, &d->args[i]);
		any |= d->args[i].flags;
	}
	out__char(out, '}');
	if (any & WEIR_ARG_UNREAD)
		flagged(out, d, WEIR_ARG_UNREAD, ",\"unread\":[");
	if (any & WEIR_ARG_CUT)
		flagged(out, d, WEIR_ARG_CUT, ",\"cut\":[");
}

static char *put_head(char *p, uint64_t stamp_ns, int64_t wall_ns)
{
	uint32_t ns;
	int64_t sec = wall_sec(wall_ns, &ns);

	p = PUT(p, "{\"ts\":\"");
	p = put_u64(p, stamp_ns);
	p = PUT(p, "\",\"time\":\"");
	p = put_second(p, sec);
	p = put_9(p, ns);
	return PUT(p, "Z\"");
}

/* What every line of a source begins with: when, and on which CPU. */
static void head(struct out *out, const struct sink_event *se)
{
	char *p = put_head(out__room(out, FIXED_MAX), se->event->stamp_ns, se->wall_ns);

	if (se->event->cpu >= 0) {
		p = PUT(p, ",\"cpu\":");
		p = put_u64(p, (uint64_t)se->event->cpu);
	}
	out__used(out, p);
}

static void source(struct out *out, const struct sink_event *se)
{
	if (se->source)
		string_member(out, ",\"source\":", se->source, strlen(se->source));
}

static void task(struct out *out, const struct sink_event *se)
{
	char *p = out__room(out, FIXED_MAX);

	p = PUT(p, ",\"pid\":");
	p = put_u64(p, se->decoded->pid);
	p = PUT(p, ",\"tid\":");
	p = put_u64(p, se->decoded->tid);
	out__used(out, p);
	if (se->comm)
		string_member(out, ",\"comm\":", se->comm, strnlen(se->comm, 16));
}

static void syscall_members(struct out *out, const struct weir_decoded *d)
{
	out__str(out, ",\"syscall\":");
	if (d->syscall) {
		name(out, d->syscall);
	} else {
		out__str(out, "\"sys_");
		out__i64(out, d->nr);
		out__char(out, '"');
	}
	out__str(out, ",\"nr\":");
	out__i64(out, d->nr);
	if (d->abi)
		string_member(out, ",\"abi\":", d->abi, strlen(d->abi));
}

static void container(struct out *out, const struct sink_event *se)
{
	if (se->container)
		string_member(out, ",\"container\":", se->container, strlen(se->container));
}

/* Bytes of which nothing is known. */
static void raw_members(struct out *out, const struct weir_decoded *d)
{
	const uint8_t *bytes = d->raw;
	uint32_t i;

	out__str(out, ",\"len\":");
	out__u64(out, d->raw_len);
	out__str(out, ",\"hex\":\"");
	for (i = 0; i < d->raw_len; i++)
		out__used(out, put_byte(out__room(out, 2), bytes[i]));
	out__char(out, '"');
}

/* The name of what a call failed with. */
static void error(struct out *out, int64_t ret)
{
	const char *text = ret < 0 && ret >= -ERRNO_MAX ? flags__errno_name((int)-ret) : NULL;

	if (text)
		string_member(out, ",\"error\":", text, strlen(text));
}

static void record(struct out *out, const struct sink_event *se)
{
	const struct weir_decoded *d = se->decoded;
	char *p;

	head(out, se);
	if (!d->is_raw)
		task(out, se);
	string_member(out, ",\"event\":", d->name, strlen(d->name));
	if (d->group == WEIR_GROUP_SYS)
		syscall_members(out, d);
	source(out, se);
	p = PUT(out__room(out, FIXED_MAX), ",\"seq\":");
	out__used(out, put_u64(p, se->event->seq));
	if (d->is_raw) {
		raw_members(out, d);
		return;
	}
	args(out, d);
	if (se->event->type == WEIR_T_SYS_EXIT && d->nargs)
		error(out, d->args[0].i);
	container(out, se);
}

static char *put_stamp(char *p, uint64_t stamp_ns)
{
	*p++ = '"';
	p = put_u64(p, stamp_ns);
	*p++ = '"';
	return p;
}

/* Had the lost records numbers of their source's, so that seq is the first of them? */
static bool has_seq(const struct weir_event *event, const struct weir_gap *gap)
{
	if (event->source == WEIR_SOURCE_NONE || gap->bound != WEIR_BOUND_EXACT)
		return false;
	return gap->cause == WEIR_LOST_RESERVE_FAILED || gap->cause == WEIR_LOST_LATE ||
	       gap->cause == WEIR_LOST_HELD || gap->cause == WEIR_LOST_BROKEN;
}

static void gap(struct out *out, const struct sink_event *se, const struct weir_gap *gap)
{
	char *p;

	head(out, se);
	out__str(out, ",\"event\":\"gap\"");
	source(out, se);
	p = out__room(out, FIXED_MAX);
	if (has_seq(se->event, gap)) {
		p = put_u64(PUT(p, ",\"seq\":"), se->event->seq);
		p = put_u64(PUT(p, ",\"seq_end\":"),
			    gap->seq_end ? gap->seq_end : se->event->seq + gap->lost);
	}
	p = put_stamp(PUT(p, ",\"from\":"), gap->from_ns);
	p = put_stamp(PUT(p, ",\"to\":"), gap->to_ns);
	p = PUT(p, ",\"lost\":");
	if (gap->bound == WEIR_BOUND_UNKNOWN)
		p = PUT(p, "null");
	else
		p = put_u64(p, gap->lost);
	if (gap->bound == WEIR_BOUND_AT_MOST)
		p = PUT(p, ",\"bound\":\"at_most\"");
	out__used(out, p);
	out__str(out, ",\"cause\":");
	name(out, weir_cause__name(gap->cause));
}

static void clock_step(struct out *out, const struct sink_event *se,
		       const struct weir_clock_step *step)
{
	char *p;

	head(out, se);
	p = PUT(out__room(out, FIXED_MAX), ",\"event\":\"clock_step\",\"old_offset\":\"");
	p = put_i64(p, step->old_offset_ns);
	p = PUT(p, "\",\"new_offset\":\"");
	p = put_i64(p, step->new_offset_ns);
	p = PUT(p, "\",\"suspended\":\"");
	p = put_u64(p, step->suspended_ns);
	*p++ = '"';
	out__used(out, p);
}

static void marks(struct out *out, uint8_t mark)
{
	if (mark & WEIR_MARK_LATE)
		out__str(out, ",\"late\":true");
	if (mark & WEIR_MARK_AHEAD)
		out__str(out, ",\"ahead\":true");
}

static int json_event(struct out *out, const struct sink_event *se)
{
	const struct weir_event *event = se->event;

	switch (event->kind) {
	case WEIR_KIND_RECORD:
		record(out, se);
		break;
	case WEIR_KIND_GAP:
		gap(out, se, event->data);
		break;
	case WEIR_KIND_CLOCK_STEP:
		clock_step(out, se, event->data);
		break;
	default:
		return -EINVAL;
	}
	marks(out, event->mark);
	out__str(out, "}\n");
	out__end(out, event->kind == WEIR_KIND_RECORD, event->source);
	return out__error(out);
}

/* When it was entered, and for how long it ran: null where that half was not seen. */
static void call_times(struct out *out, const struct weir_call *call)
{
	char *p = PUT(out__room(out, FIXED_MAX), ",\"enter\":");

	p = call->enter && !call->found ? put_stamp(p, call->enter->stamp_ns) : PUT(p, "null");
	p = PUT(p, ",\"dur_ns\":");
	if (call->end == WEIR_CALL_RETURNED && !call->found)
		p = put_u64(p, call->exit->stamp_ns - call->enter->stamp_ns);
	else
		p = PUT(p, "null");
	out__used(out, p);
}

static void call_result(struct out *out, const struct weir_decoded *d, const struct weir_call *call)
{
	out__str(out, ",\"result\":");
	if (d->has_ret) {
		out__i64(out, d->ret);
		error(out, d->ret);
	} else {
		out__str(out, "null");
	}
	if (call->found)
		out__str(out, ",\"before\":true");
	if (call->end == WEIR_CALL_BROKEN)
		out__str(out, ",\"broken\":true");
	if (call->end == WEIR_CALL_OPEN || call->end == WEIR_CALL_NO_RETURN)
		out__str(out, call->end == WEIR_CALL_OPEN ? ",\"unfinished\":true"
							  : ",\"no_return\":true");
}

/* "fds": what the descriptors in args and result stand for; absent where none is known. */
static void call_fds(struct out *out, const struct weir_decoded *d, const struct sink_fds *fds)
{
	bool any = false;

	for (uint32_t i = 0; i <= d->nargs; i++) {
		const char *known = i < d->nargs ? fds->arg[i] : fds->result;

		if (!known)
			continue;
		out__str(out, any ? "," : ",\"fds\":{");
		name(out, i < d->nargs ? d->args[i].name : "result");
		out__char(out, ':');
		name(out, known);
		any = true;
	}
	if (any)
		out__char(out, '}');
}

/* One object a call. It has a seq only where it stands at a record of its own: at its exit. */
static int json_call(struct out *out, const struct sink_event *se, const struct weir_call *call)
{
	const struct weir_decoded *d = se->decoded;

	head(out, se);
	task(out, se);
	string_member(out, ",\"event\":", d->name, strlen(d->name));
	syscall_members(out, d);
	source(out, se);
	if (call->exit) {
		out__str(out, ",\"seq\":");
		out__u64(out, call->exit->seq);
	}
	call_times(out, call);
	call_result(out, d, call);
	if (d->has_args)
		args(out, d);
	else
		out__str(out, ",\"args\":null");
	if (se->fds)
		call_fds(out, d, se->fds);
	container(out, se);
	marks(out, se->event->mark);
	out__str(out, "}\n");
	sink__end_call(out, call);
	return out__error(out);
}

static int json_watermark(struct out *out, uint64_t watermark_ns, int64_t wall_ns,
			  enum weir_order order)
{
	char *p = put_head(out__room(out, FIXED_MAX), watermark_ns, wall_ns);

	p = PUT(p, ",\"event\":\"watermark\",\"order\":");
	p = order == WEIR_ORDER_EXACT ? PUT(p, "\"exact\"") : PUT(p, "\"estimated\"");
	p = PUT(p, "}\n");
	out__used(out, p);
	out__end(out, false, WEIR_SOURCE_NONE);
	return out__error(out);
}

const struct sink_ops sink_json = {
	.name = "json",
	.event = json_event,
	.call = json_call,
	.watermark = json_watermark,
};
