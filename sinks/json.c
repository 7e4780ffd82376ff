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
 * A line is made in the buffer itself, through a pointer: a million of them have to fit into a second.
 * The put_...() return how far they came, and leave room behind that for the rest of a line, but for
 * its strings: whatever may be long makes room for itself and for the rest anew.
 */
#include "sinks/flags.h"
#include "sinks/json.h"
#include "sinks/kept.h"
#include "sinks/out.h"
#include "sinks/put.h"
#include "sinks/sockaddr.h"
#include "sinks/table.h"

#include <weir/probes.h>

#include <errno.h>
#include <time.h>

#define NSEC_PER_SEC 1000000000ull
#define STRING_STEP  448  /* bytes of a string for which there is room at a time */
#define ESCAPE_MAX   6	  /* what one byte can become: \\xNN is 5, \u00NN 6 */
#define FIXED_MAX    1024 /* what stands between two strings */
#define LINE_ROOM    (FIXED_MAX + (STRING_STEP + 3) * ESCAPE_MAX + 2)
_Static_assert(LINE_ROOM <= OUT_ROOM_MAX, "what is there in any case");

static char *line_begin(struct out *out)
{
	return out__room(out, LINE_ROOM);
}

static char *line_more(struct out *out, char *p)
{
	out__used(out, p);
	return line_begin(out);
}

/* The part of a time that stays for a second. Events come in order, so it is not made for each line. */
struct second {
	int64_t sec;
	uint32_t len;
	char text[PUT_STEPS(32)];
};

static char *put_stamp_digits(char *p, uint64_t stamp_ns)
{
	static __thread struct second kept = {1, 1, "1"};
	int64_t sec = (int64_t)(stamp_ns / NSEC_PER_SEC);
	uint32_t part = (uint32_t)(stamp_ns % NSEC_PER_SEC);

	if (!sec)
		return put_u64(p, part);
	if (kept.sec != sec) {
		kept.sec = sec;
		kept.len = (uint32_t)(put_u64(kept.text, (uint64_t)sec) - kept.text);
	}
	return put_9(put_steps(p, kept.text, kept.len), part);
}

/* 2025-09-09T10:05:45. */
static __attribute__((cold)) void make_second(struct second *kept, int64_t sec)
{
	time_t when = sec;
	struct tm tm;

	gmtime_r(&when, &tm);
	kept->sec = sec;
	kept->len = (uint32_t)strftime(kept->text, sizeof(kept->text), "%Y-%m-%dT%H:%M:%S.", &tm);
}

static char *put_time(char *p, int64_t wall_ns)
{
	static __thread struct second kept = {0, 20, "1970-01-01T00:00:00."};
	uint32_t part;
	int64_t sec = wall_sec(wall_ns, &part);

	if (kept.sec != sec)
		make_second(&kept, sec);
	return put_9(put_steps(p, kept.text, kept.len), part);
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

static char *put_string(struct out *out, char *p, const char *bytes, size_t len)
{
	const uint8_t *s = (const uint8_t *)bytes;
	size_t used;

	*p++ = '"';
	do {
		p = line_more(out, put_step(p, s, len, &used));
		s += used;
		len -= used;
	} while (len);
	*p++ = '"';
	return p;
}

static char *put_name(struct out *out, char *p, const char *name)
{
	return put_string(out, p, name, strlen(name));
}

void json__string(struct out *out, const char *bytes, size_t len)
{
	out__used(out, put_string(out, line_begin(out), bytes, len));
}

static char *put_strings(struct out *out, char *p, const char *bytes, size_t len)
{
	*p++ = '[';
	while (len) {
		size_t one = strnlen(bytes, len);
		size_t whole = one < len ? one + 1 : one; /* a cut one has lost its NUL */

		p = put_string(out, p, bytes, one);
		bytes += whole;
		len -= whole;
		if (len)
			*p++ = ',';
	}
	*p++ = ']';
	return p;
}

static char *put_bytes(struct out *out, char *p, const void *bytes, size_t len)
{
	const uint8_t *s = bytes;

	for (size_t i = 0; i < len; i++) {
		if (i % STRING_STEP == 0)
			p = line_more(out, p);
		p = put_byte(p, s[i]);
	}
	return line_more(out, p);
}

static char *put_raw(struct out *out, char *p, const char *bytes, size_t len)
{
	return PUT(put_bytes(out, PUT(p, "\"0x"), bytes, len), "\"");
}

static char *put_ip(struct out *out, char *p, const struct sockaddr_parts *parts)
{
	p = put_name(out, PUT(p, ",\"addr\":"), parts->addr);
	p = put_u64(PUT(p, ",\"port\":"), parts->port);
	return parts->scope ? put_u64(PUT(p, ",\"scope\":"), parts->scope) : p;
}

static char *put_netlink(char *p, const struct sockaddr_parts *parts)
{
	p = put_u64(PUT(p, ",\"port\":"), parts->port);
	p = put_hex(PUT(p, ",\"groups\":\""), parts->groups);
	return PUT(p, "\"");
}

static char *put_address(struct out *out, char *p, const char *bytes, size_t len)
{
	struct sockaddr_parts parts;

	sockaddr__parts(bytes, len, &parts);
	if (!parts.family[0])
		return PUT(put_raw(out, PUT(p, "{\"raw\":"), bytes, len), "}");
	p = put_name(out, PUT(p, "{\"family\":"), parts.family);
	switch (parts.form) {
	case SOCKADDR_IP:
		p = put_ip(out, p, &parts);
		break;
	case SOCKADDR_PATH:
		p = put_string(out, PUT(p, ",\"path\":"), parts.bytes, parts.len);
		break;
	case SOCKADDR_ABSTRACT:
		p = put_string(out, PUT(p, ",\"abstract\":"), parts.bytes, parts.len);
		break;
	case SOCKADDR_UNNAMED:
		break;
	case SOCKADDR_NETLINK:
		p = put_netlink(p, &parts);
		break;
	case SOCKADDR_RAW:
		p = put_raw(out, PUT(p, ",\"raw\":"), parts.bytes, parts.len);
		break;
	}
	return PUT(p, "}");
}

static char *put_hex_string(char *p, uint64_t value)
{
	*p++ = '"';
	p = put_hex(p, value);
	*p++ = '"';
	return p;
}

/* The address of what could not be read. Nobody reads at 0, so that means: not even that is known. */
static char *put_unread(char *p, uint64_t address)
{
	return address ? put_hex_string(p, address) : PUT(p, "null");
}

static char *put_value(struct out *out, char *p, const struct weir_arg *arg)
{
	if (arg->flags & WEIR_ARG_UNREAD)
		return put_unread(p, arg->u);
	switch (arg->kind) {
	case WEIR_ARG_UINT:
		return put_u64(p, arg->u);
	case WEIR_ARG_INT:
		return put_i64(p, arg->i);
	case WEIR_ARG_HEX:
		return put_hex_string(p, arg->u);
	case WEIR_ARG_BOOL:
		return arg->u ? PUT(p, "true") : PUT(p, "false");
	case WEIR_ARG_TIMESPEC:
		p = put_i64(PUT(p, "{\"tv_sec\":"), arg->i);
		p = put_i64(PUT(p, ",\"tv_nsec\":"), (int64_t)arg->u);
		return PUT(p, "}");
	case WEIR_ARG_WORD:
		return put_name(out, p, arg->bytes);
	case WEIR_ARG_STR:
		return put_string(out, p, arg->bytes, arg->len);
	case WEIR_ARG_STRV:
		return put_strings(out, p, arg->bytes, arg->len);
	case WEIR_ARG_SOCKADDR:
		return put_address(out, p, arg->bytes, arg->len);
	}
	return p;
}

/* The names of the arguments that have `flag`, as ,"key":[...]. */
static char *put_flagged(struct out *out, char *p, const struct weir_decoded *d, uint32_t flag,
			 const char *key)
{
	const char *before = "[";

	p = stpcpy(p, key);
	for (uint32_t i = 0; i < d->nargs; i++) {
		if (!(d->args[i].flags & flag))
			continue;
		p = put_name(out, stpcpy(p, before), d->args[i].name);
		before = ",";
	}
	return PUT(p, "]");
}

/* Of a call: ,"event":"sys_enter","syscall":"read","nr":0 and, of each argument, "fd": */
static bool make_shape(struct kept_shape *kept, const struct weir_decoded *d)
{
	bool fits = kept__print(kept->name, sizeof(kept->name), &kept->name_len,
				",\"event\":\"%s\",\"syscall\":\"%s\",\"nr\":%d%s%s%s", d->name,
				d->syscall, d->nr, d->abi ? ",\"abi\":\"" : "",
				d->abi ? d->abi : "", d->abi ? "\"" : "");

	for (uint32_t i = 0; fits && i < d->nargs; i++)
		fits = kept__print(kept->key[i], sizeof(kept->key[i]), &kept->key_len[i],
				   "%s\"%s\":", i ? "," : "", d->args[i].name);
	return fits;
}

static const struct kept_shape *shape_of(const struct weir_decoded *d)
{
	static __thread struct kept_shape kept[KEPT_SHAPES];

	return d->shape ? kept_shape__find(kept, d, make_shape) : NULL;
}

static char *put_key(struct out *out, char *p, const char *name, uint32_t i)
{
	if (i)
		*p++ = ',';
	return PUT(put_name(out, p, name), ":");
}

static char *put_args(struct out *out, char *p, const struct weir_decoded *d,
		      const struct kept_shape *shape)
{
	uint32_t any = 0;

	p = PUT(p, ",\"args\":{");
	for (uint32_t i = 0; i < d->nargs; i++) {
		p = shape ? kept_shape__put_key(p, shape, i) : put_key(out, p, d->args[i].name, i);
		p = put_value(out, p, &d->args[i]);
		any |= d->args[i].flags;
	}
	p = PUT(p, "}");
	if (any & WEIR_ARG_UNREAD)
		p = put_flagged(out, p, d, WEIR_ARG_UNREAD, ",\"unread\":");
	if (any & WEIR_ARG_CUT)
		p = put_flagged(out, p, d, WEIR_ARG_CUT, ",\"cut\":");
	return p;
}

static char *put_when(char *p, uint64_t stamp_ns, int64_t wall_ns)
{
	p = put_stamp_digits(PUT(p, "{\"ts\":\""), stamp_ns);
	p = put_time(PUT(p, "\",\"time\":\""), wall_ns);
	return PUT(p, "Z\"");
}

/* What every line of a source begins with: when, and on which CPU. */
static char *put_head(char *p, const struct sink_event *se)
{
	p = put_when(p, se->event->stamp_ns, se->wall_ns);
	if (se->event->cpu < 0)
		return p;
	return put_u64(PUT(p, ",\"cpu\":"), (uint64_t)se->event->cpu);
}

static char *put_new_source(struct out *out, char *p, const char *source)
{
	return put_name(out, PUT(p, ",\"source\":"), source);
}

/* false: its name is longer than most. */
static __attribute__((cold)) bool make_source(struct kept_source *kept, const char *source)
{
	size_t len = strlen(source), used;
	char *p = PUT(kept->text, ",\"source\":\"");

	if (len >= sizeof(kept->name))
		return false;
	memcpy(kept->name, source, len + 1);
	p = PUT(put_step(p, (const uint8_t *)source, len, &used), "\"");
	kept->len = (uint32_t)(p - kept->text);
	return true;
}

static char *put_source(struct out *out, char *p, const struct sink_event *se)
{
	static __thread struct kept_source sources[KEPT_SOURCES];
	struct kept_source *kept = &sources[se->event->source % KEPT_SOURCES];

	if (!se->source)
		return p;
	if (strcmp(kept->name, se->source) && !make_source(kept, se->source))
		return put_new_source(out, p, se->source);
	return put_steps(p, kept->text, kept->len);
}

static char *put_ids(char *p, const struct weir_decoded *d)
{
	p = put_u64(PUT(p, ",\"pid\":"), d->pid);
	return put_u64(PUT(p, ",\"tid\":"), d->tid);
}

static __attribute__((cold)) char *put_new_task(char *p, const struct sink_event *se)
{
	const uint8_t *comm = (const uint8_t *)se->comm;
	size_t used;

	p = PUT(put_ids(p, se->decoded), ",\"comm\":\"");
	p = put_step(p, comm, strnlen(se->comm, WEIR_COMM_LEN), &used);
	return PUT(p, "\"");
}

static char *put_task(char *p, const struct sink_event *se)
{
	static __thread struct kept_task tasks[KEPT_TASKS];
	uint64_t numbers = (uint64_t)se->decoded->pid << 32 | se->decoded->tid;
	struct kept_task *kept = &tasks[se->decoded->tid % KEPT_TASKS];

	if (!se->comm)
		return put_ids(p, se->decoded);
	if (!kept_task__is(kept, se->comm, numbers))
		kept_task__set(kept, se->comm, numbers, put_new_task(kept->text, se));
	return kept_task__put(p, kept);
}

static char *put_call_names(struct out *out, char *p, const struct weir_decoded *d)
{
	p = PUT(p, ",\"syscall\":");
	if (d->syscall)
		p = put_name(out, p, d->syscall);
	else
		p = PUT(put_i64(PUT(p, "\"sys_"), d->nr), "\"");
	p = put_i64(PUT(p, ",\"nr\":"), d->nr);
	return d->abi ? put_name(out, PUT(p, ",\"abi\":"), d->abi) : p;
}

static char *put_names(struct out *out, char *p, const struct weir_decoded *d,
		       const struct kept_shape *shape)
{
	if (shape)
		return kept_shape__put_name(p, shape);
	p = put_name(out, PUT(p, ",\"event\":"), d->name);
	return d->group == WEIR_GROUP_SYS ? put_call_names(out, p, d) : p;
}

static char *put_container(struct out *out, char *p, const struct sink_event *se)
{
	return se->container ? put_name(out, PUT(p, ",\"container\":"), se->container) : p;
}

static char *put_seq(char *p, uint64_t seq)
{
	return put_u64(PUT(p, ",\"seq\":"), seq);
}

/* Bytes of which nothing is known. */
static char *put_unknown(struct out *out, char *p, const struct weir_decoded *d)
{
	p = put_u64(PUT(p, ",\"len\":"), d->raw_len);
	return PUT(put_bytes(out, PUT(p, ",\"hex\":\""), d->raw, d->raw_len), "\"");
}

/* The name of what a call failed with. */
static char *put_error(struct out *out, char *p, int64_t ret)
{
	const char *name = ret < 0 && ret >= -ERRNO_MAX ? flags__errno_name((int)-ret) : NULL;

	return name ? put_name(out, PUT(p, ",\"error\":"), name) : p;
}

static char *put_record(struct out *out, char *p, const struct sink_event *se)
{
	const struct weir_decoded *d = se->decoded;
	const struct kept_shape *shape = shape_of(d);

	p = put_head(p, se);
	if (!d->is_raw)
		p = put_task(p, se);
	p = put_names(out, p, d, shape);
	p = put_seq(put_source(out, p, se), se->event->seq);
	if (d->is_raw)
		return put_unknown(out, p, d);
	p = put_args(out, p, d, shape);
	if (se->event->type == WEIR_T_SYS_EXIT && d->nargs)
		p = put_error(out, p, d->args[0].i);
	return put_container(out, p, se);
}

static char *put_stamp(char *p, uint64_t stamp_ns)
{
	*p++ = '"';
	p = put_stamp_digits(p, stamp_ns);
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

static char *put_gap(struct out *out, char *p, const struct sink_event *se,
		     const struct weir_gap *gap)
{
	p = PUT(put_head(p, se), ",\"event\":\"gap\"");
	p = put_source(out, p, se);
	if (has_seq(se->event, gap)) {
		p = put_seq(p, se->event->seq);
		p = put_u64(PUT(p, ",\"seq_end\":"),
			    gap->seq_end ? gap->seq_end : se->event->seq + gap->lost);
	}
	p = put_stamp(PUT(p, ",\"from\":"), gap->from_ns);
	p = put_stamp(PUT(p, ",\"to\":"), gap->to_ns);
	p = PUT(p, ",\"lost\":");
	p = gap->bound == WEIR_BOUND_UNKNOWN ? PUT(p, "null") : put_u64(p, gap->lost);
	if (gap->bound == WEIR_BOUND_AT_MOST)
		p = PUT(p, ",\"bound\":\"at_most\"");
	return put_name(out, PUT(p, ",\"cause\":"), weir_cause__name(gap->cause));
}

static char *put_clock_step(char *p, const struct sink_event *se,
			    const struct weir_clock_step *step)
{
	p = PUT(put_head(p, se), ",\"event\":\"clock_step\",\"old_offset\":\"");
	p = put_i64(p, step->old_offset_ns);
	p = put_i64(PUT(p, "\",\"new_offset\":\""), step->new_offset_ns);
	p = put_u64(PUT(p, "\",\"suspended\":\""), step->suspended_ns);
	return PUT(p, "\"");
}

static char *put_end(char *p, uint8_t mark)
{
	if (mark & WEIR_MARK_LATE)
		p = PUT(p, ",\"late\":true");
	if (mark & WEIR_MARK_AHEAD)
		p = PUT(p, ",\"ahead\":true");
	return PUT(p, "}\n");
}

static int json_event(struct out *out, const struct sink_event *se)
{
	const struct weir_event *event = se->event;
	char *p = line_begin(out);

	switch (event->kind) {
	case WEIR_KIND_RECORD:
		p = put_record(out, p, se);
		break;
	case WEIR_KIND_GAP:
		p = put_gap(out, p, se, event->data);
		break;
	case WEIR_KIND_CLOCK_STEP:
		p = put_clock_step(p, se, event->data);
		break;
	default:
		return -EINVAL;
	}
	out__used(out, put_end(p, event->mark));
	out__end(out, event->kind == WEIR_KIND_RECORD, event->source);
	return out__error(out);
}

/* When it was entered, and for how long it ran: null where that half was not seen. */
static char *put_call_times(char *p, const struct weir_call *call)
{
	p = PUT(p, ",\"enter\":");
	p = call->enter && !call->found ? put_stamp(p, call->enter->stamp_ns) : PUT(p, "null");
	p = PUT(p, ",\"dur_ns\":");
	if (call->end == WEIR_CALL_RETURNED && !call->found)
		return put_u64(p, call->exit->stamp_ns - call->enter->stamp_ns);
	return PUT(p, "null");
}

static char *put_result(struct out *out, char *p, const struct weir_decoded *d,
			const struct weir_call *call)
{
	p = PUT(p, ",\"result\":");
	p = d->has_ret ? put_error(out, put_i64(p, d->ret), d->ret) : PUT(p, "null");
	if (call->found)
		p = PUT(p, ",\"before\":true");
	if (call->end == WEIR_CALL_BROKEN)
		p = PUT(p, ",\"broken\":true");
	if (call->end == WEIR_CALL_OPEN)
		p = PUT(p, ",\"unfinished\":true");
	if (call->end == WEIR_CALL_NO_RETURN)
		p = PUT(p, ",\"no_return\":true");
	return p;
}

/* "fds": what the descriptors in args and result stand for; absent where none is known. */
static char *put_fds(struct out *out, char *p, const struct weir_decoded *d,
		     const struct sink_fds *fds)
{
	uint32_t any = 0;

	for (uint32_t i = 0; i <= d->nargs; i++) {
		const char *known = i < d->nargs ? fds->arg[i] : fds->result;

		if (!known)
			continue;
		if (!any)
			p = PUT(p, ",\"fds\":{");
		p = put_key(out, p, i < d->nargs ? d->args[i].name : "result", any++);
		p = put_name(out, p, known);
	}
	return any ? PUT(p, "}") : p;
}

/* One object a call. It has a seq only where it stands at a record of its own: at its exit. */
static int json_call(struct out *out, const struct sink_event *se, const struct weir_call *call)
{
	const struct weir_decoded *d = se->decoded;
	const struct kept_shape *shape = shape_of(d);
	char *p = put_task(put_head(line_begin(out), se), se);

	p = put_source(out, put_names(out, p, d, shape), se);
	if (call->exit)
		p = put_seq(p, call->exit->seq);
	p = put_result(out, put_call_times(p, call), d, call);
	p = d->has_args ? put_args(out, p, d, shape) : PUT(p, ",\"args\":null");
	if (se->fds)
		p = put_fds(out, p, d, se->fds);
	out__used(out, put_end(put_container(out, p, se), se->event->mark));
	sink__end_call(out, call);
	return out__error(out);
}

static int json_watermark(struct out *out, uint64_t watermark_ns, int64_t wall_ns,
			  enum weir_order order)
{
	char *p = put_when(line_begin(out), watermark_ns, wall_ns);

	p = PUT(p, ",\"event\":\"watermark\",\"order\":");
	p = order == WEIR_ORDER_EXACT ? PUT(p, "\"exact\"") : PUT(p, "\"estimated\"");
	out__used(out, PUT(p, "}\n"));
	out__end(out, false, WEIR_SOURCE_NONE);
	return out__error(out);
}

const struct sink_ops sink_json = {
	.name = "json",
	.event = json_event,
	.call = json_call,
	.watermark = json_watermark,
};
