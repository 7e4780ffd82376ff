// SPDX-License-Identifier: BSD-2-Clause
/*
 * text.c - events as lines for people.
 *
 * Owns: what all lines share: times, columns, colours, values. Promises: one event, one line, of
 * nothing but printable ASCII, whatever bytes the event carries: a terminal obeys escape sequences,
 * and file names may hold them. The only sequences that go out are colours, where the style has them.
 * Wall times are of the local zone; the JSON has them in UTC. Must not know: where events come from.
 */
#include "sinks/out.h"
#include "sinks/put.h"
#include "sinks/sockaddr.h"
#include "sinks/style.h"
#include "sinks/table.h"
#include "sinks/text.h"

#include <weir/probes.h>

#include <errno.h>
#include <time.h>

#define STRING_STEP  512 /* bytes of a string for which room is made at a time */
#define ESCAPE_MAX   4	 /* what one byte can become: \xNN */
#define NSEC_PER_SEC 1000000000ull

void text__paint(struct out *out, enum text_paint paint)
{
	static const char *const codes[] = {
		[TEXT_PLAIN] = "\x1b[0m", [TEXT_DIM] = "\x1b[2m",  [TEXT_NAME] = "\x1b[1m",
		[TEXT_STR] = "\x1b[32m",  [TEXT_BAD] = "\x1b[31m", [TEXT_ALERT] = "\x1b[1;33m",
	};
	const struct style *style = out__style(out);

	if (style && style->color)
		out__str(out, codes[paint]);
}

/* HH:MM:SS.nnnnnnnnn; the part before the point is made once a second. */
static void clock_time(struct out *out, int64_t wall_ns)
{
	static __thread int64_t cached_sec = INT64_MIN;
	static __thread char cached[9];
	uint32_t ns;
	int64_t sec = wall_sec(wall_ns, &ns);
	char *p;

	if (sec != cached_sec) {
		time_t when = sec;
		struct tm tm;

		localtime_r(&when, &tm);
		p = put_2(cached, (uint32_t)tm.tm_hour);
		*p++ = ':';
		p = put_2(p, (uint32_t)tm.tm_min);
		*p++ = ':';
		p = put_2(p, (uint32_t)tm.tm_sec);
		*p = '.';
		cached_sec = sec;
	}
	p = out__room(out, sizeof(cached) + 9);
	memcpy(p, cached, sizeof(cached));
	out__used(out, put_9(p + sizeof(cached), ns));
}

static char *put_safe(char *p, uint8_t c)
{
	if (c < 0x20 || c > 0x7e)
		return put_byte(PUT(p, "\\x"), c);
	if (c == '"' || c == '\\')
		*p++ = '\\';
	*p++ = (char)c;
	return p;
}

void text__safe(struct out *out, const char *bytes, size_t len)
{
	while (len) {
		size_t step = len < STRING_STEP ? len : STRING_STEP, i;
		char *p = out__room(out, step * ESCAPE_MAX);

		for (i = 0; i < step; i++)
			p = put_safe(p, (uint8_t)bytes[i]);
		out__used(out, p);
		bytes += step;
		len -= step;
	}
}

static void quoted(struct out *out, const char *bytes, size_t len)
{
	out__char(out, '"');
	text__safe(out, bytes, len);
	out__char(out, '"');
}

void text__word(struct out *out, const char *str)
{
	text__safe(out, str, strlen(str));
}

static void strings(struct out *out, const char *bytes, size_t len)
{
	out__char(out, '[');
	while (len) {
		size_t one = strnlen(bytes, len);
		size_t whole = one < len ? one + 1 : one;

		quoted(out, bytes, one);
		bytes += whole;
		len -= whole;
		if (len)
			out__char(out, ' ');
	}
	out__char(out, ']');
}

static void ip(struct out *out, const struct sockaddr_parts *parts)
{
	bool six = strchr(parts->addr, ':');

	if (six)
		out__char(out, '[');
	out__str(out, parts->addr);
	if (parts->scope) {
		out__char(out, '%');
		out__u64(out, parts->scope);
	}
	if (six)
		out__char(out, ']');
	out__char(out, ':');
	out__u64(out, parts->port);
}

static void raw_bytes(struct out *out, const char *bytes, size_t len)
{
	size_t i;

	out__str(out, ":0x");
	for (i = 0; i < len; i++)
		out__used(out, put_byte(out__room(out, 2), (uint8_t)bytes[i]));
}

static void address(struct out *out, const char *bytes, size_t len)
{
	struct sockaddr_parts parts;

	sockaddr__parts(bytes, len, &parts);
	if (parts.form != SOCKADDR_IP)
		out__str(out, parts.family);
	switch (parts.form) {
	case SOCKADDR_IP:
		ip(out, &parts);
		break;
	case SOCKADDR_PATH:
		out__char(out, ':');
		quoted(out, parts.bytes, parts.len);
		break;
	case SOCKADDR_ABSTRACT:
		out__str(out, ":@");
		quoted(out, parts.bytes, parts.len);
		break;
	case SOCKADDR_UNNAMED:
		break;
	case SOCKADDR_NETLINK:
		out__char(out, ':');
		out__u64(out, parts.port);
		out__char(out, '/');
		out__hex(out, parts.groups);
		break;
	case SOCKADDR_RAW:
		raw_bytes(out, parts.bytes, parts.len);
		break;
	}
}

void text__value(struct out *out, const struct weir_arg *arg)
{
	if (arg->flags & WEIR_ARG_UNREAD) {
		/* Nobody reads at 0: then not even the address is known. */
		if (arg->u)
			out__hex(out, arg->u);
		out__char(out, '?');
		return;
	}
	if (arg->kind >= WEIR_ARG_STR)
		text__paint(out, TEXT_STR);
	switch (arg->kind) {
	case WEIR_ARG_UINT:
		out__u64(out, arg->u);
		break;
	case WEIR_ARG_INT:
		out__i64(out, arg->i);
		break;
	case WEIR_ARG_HEX:
		out__hex(out, arg->u);
		break;
	case WEIR_ARG_BOOL:
		out__str(out, arg->u ? "true" : "false");
		break;
	case WEIR_ARG_WORD:
		text__word(out, arg->bytes);
		break;
	case WEIR_ARG_STR:
		quoted(out, arg->bytes, arg->len);
		break;
	case WEIR_ARG_STRV:
		strings(out, arg->bytes, arg->len);
		break;
	case WEIR_ARG_SOCKADDR:
		address(out, arg->bytes, arg->len);
		break;
	}
	if (arg->kind >= WEIR_ARG_STR)
		text__paint(out, TEXT_PLAIN);
	if (arg->flags & WEIR_ARG_CUT)
		out__str(out, "...");
}

char *text__put_duration(char *p, uint64_t ns)
{
	static const struct {
		uint64_t ns;
		const char *name;
	} units[] = {{1000000000, "s"}, {1000000, "ms"}, {1000, "us"}};
	size_t u = 0;
	uint32_t part;

	while (u < 2 && ns < units[u].ns)
		u++;
	part = (uint32_t)(ns % units[u].ns / (units[u].ns / 1000));
	p = put_u64(p, ns / units[u].ns);
	*p++ = '.';
	*p++ = (char)('0' + part / 100);
	p = put_2(p, part % 100);
	return stpcpy(p, units[u].name);
}

void text__syscall_name(struct out *out, const struct weir_decoded *d)
{
	if (d->syscall) {
		text__word(out, d->syscall);
	} else {
		out__str(out, "sys_");
		out__i64(out, d->nr);
	}
	if (d->abi) {
		out__char(out, '/');
		text__word(out, d->abi);
	}
}

/* Seconds, right-aligned in `width`, and nine digits behind the point. */
static void seconds(struct out *out, uint64_t ns, unsigned int width)
{
	char digits[PUT_U64_MAX];
	size_t len = (size_t)(put_u64(digits, ns / NSEC_PER_SEC) - digits);

	for (; width > len; width--)
		out__char(out, ' ');
	out__bytes(out, digits, len);
	out__char(out, '.');
	out__used(out, put_9(out__room(out, 9), (uint32_t)(ns % NSEC_PER_SEC)));
}

/* Late events lie before the line before. */
static void delta(struct out *out, struct style *style, uint64_t stamp_ns)
{
	uint64_t last_ns = style->last_ns ? style->last_ns : stamp_ns;

	out__char(out, stamp_ns < last_ns ? '-' : '+');
	seconds(out, stamp_ns < last_ns ? last_ns - stamp_ns : stamp_ns - last_ns, 0);
	style->last_ns = stamp_ns;
}

static void when(struct out *out, const struct sink_event *se)
{
	struct style *style = out__style(out);

	switch (style ? style->time : STYLE_WALL) {
	case STYLE_WALL:
		clock_time(out, se->wall_ns);
		break;
	case STYLE_MONO:
		seconds(out, se->event->stamp_ns, 7);
		break;
	case STYLE_DELTA:
		delta(out, style, se->event->stamp_ns);
		break;
	case STYLE_NO_TIME:
		return;
	}
	out__char(out, ' ');
}

static void cpu(struct out *out, int32_t cpu)
{
	const struct style *style = out__style(out);
	unsigned int width = style ? style->cpu_width : 0;
	char text[PUT_U64_MAX] = "?";
	size_t len = cpu >= 0 ? (size_t)(put_u64(text, (uint64_t)cpu) - text) : 1;

	for (; width > len; width--)
		out__char(out, ' ');
	out__bytes(out, text, len);
	out__char(out, ' ');
}

static unsigned int columns(const char *bytes, size_t len)
{
	unsigned int n = 0;
	char text[ESCAPE_MAX];

	for (size_t i = 0; i < len; i++)
		n += (unsigned int)(put_safe(text, (uint8_t)bytes[i]) - text);
	return n;
}

static void task(struct out *out, const struct sink_event *se)
{
	const struct style *style = out__style(out);
	const char *comm = se->comm ? se->comm : "?";
	size_t comm_len = strnlen(comm, WEIR_COMM_LEN);
	char tid[PUT_U64_MAX];
	size_t tid_len = (size_t)(put_u64(tid, se->decoded->tid) - tid);
	unsigned int width = style ? style->task_width : 0;

	text__safe(out, comm, comm_len);
	out__char(out, '[');
	out__bytes(out, tid, tid_len);
	out__char(out, ']');
	if (!width)
		return;
	for (unsigned int n = columns(comm, comm_len) + (unsigned int)tid_len + 2; n < width; n++)
		out__char(out, ' ');
}

/* Ids are 64 digits long; the first twelve are what people call them by. */
static size_t short_len(const char *container)
{
	size_t len = strlen(container);

	return len == 64 && strspn(container, "0123456789abcdef") == len ? 12 : len;
}

void text__container(struct out *out, const struct sink_event *se)
{
	if (!se->container)
		return;
	out__str(out, " container=");
	text__safe(out, se->container, short_len(se->container));
}

void text__head(struct out *out, const struct sink_event *se)
{
	text__paint(out, TEXT_DIM);
	when(out, se);
	cpu(out, se->event->cpu);
	text__paint(out, TEXT_PLAIN);
	task(out, se);
	out__char(out, ' ');
}

/* "reserve failed" */
static void cause(struct out *out, enum weir_cause cause)
{
	const char *c;

	for (c = weir_cause__name(cause); *c; c++)
		out__char(out, *c == '_' ? ' ' : *c);
}

/* A time that a line speaks of, whatever the lines begin with. */
static void moment(struct out *out, uint64_t stamp_ns, int64_t wall_ns)
{
	const struct style *style = out__style(out);

	if (style && style->time == STYLE_MONO)
		seconds(out, stamp_ns, 0);
	else
		clock_time(out, wall_ns);
}

/* -- gap cpu0: 17 lost (reserve failed) in (12:00:00.000000001, 12:00:00.000000009] */
static void gap(struct out *out, const struct sink_event *se, const struct weir_gap *gap)
{
	text__paint(out, TEXT_ALERT);
	out__str(out, "-- gap ");
	text__word(out, se->source ? se->source : "all");
	out__str(out, ": ");
	if (gap->bound == WEIR_BOUND_UNKNOWN) {
		out__str(out, "unknown");
	} else {
		out__str(out, gap->bound == WEIR_BOUND_AT_MOST ? "at most " : "");
		out__u64(out, gap->lost);
	}
	out__str(out, " lost (");
	cause(out, gap->cause);
	out__str(out, ") in (");
	moment(out, gap->from_ns, (int64_t)((uint64_t)se->wall_ns - (gap->to_ns - gap->from_ns)));
	out__str(out, ", ");
	moment(out, gap->to_ns, se->wall_ns);
	out__char(out, ']');
	text__paint(out, TEXT_PLAIN);
}

/* -- clock step at 12:00:00.000000000: wall time moved by -3600.000000000 s */
static void clock_step(struct out *out, const struct sink_event *se,
		       const struct weir_clock_step *step)
{
	bool back = step->new_offset_ns < step->old_offset_ns;
	uint64_t from = (uint64_t)step->old_offset_ns, to = (uint64_t)step->new_offset_ns;

	text__paint(out, TEXT_ALERT);
	out__str(out, "-- clock step at ");
	moment(out, se->event->stamp_ns, se->wall_ns);
	out__str(out, ": wall time moved by ");
	out__char(out, back ? '-' : '+');
	seconds(out, back ? from - to : to - from, 0);
	out__str(out, " s");
	if (step->suspended_ns) {
		out__str(out, ", of it suspended ");
		seconds(out, step->suspended_ns, 0);
		out__str(out, " s");
	}
	text__paint(out, TEXT_PLAIN);
}

void text__marks(struct out *out, const struct weir_event *event)
{
	if (event->mark & WEIR_MARK_LATE)
		out__str(out, " late");
	if (event->mark & WEIR_MARK_AHEAD)
		out__str(out, " ahead");
}

static int text_event(struct out *out, const struct sink_event *se)
{
	const struct weir_event *event = se->event;

	switch (event->kind) {
	case WEIR_KIND_RECORD:
		text__record(out, se);
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
	text__marks(out, event);
	out__char(out, '\n');
	out__end(out, event->kind == WEIR_KIND_RECORD, event->source);
	return out__error(out);
}

static int text_watermark(struct out *out, uint64_t watermark_ns, int64_t wall_ns,
			  enum weir_order order)
{
	text__paint(out, TEXT_DIM);
	out__str(out, "-- complete up to ");
	moment(out, watermark_ns, wall_ns);
	out__str(out, order == WEIR_ORDER_EXACT ? " (exact)" : " (estimated)");
	text__paint(out, TEXT_PLAIN);
	out__char(out, '\n');
	out__end(out, false, WEIR_SOURCE_NONE);
	return out__error(out);
}

const struct sink_ops sink_text = {
	.name = "text",
	.event = text_event,
	.call = text__call,
	.watermark = text_watermark,
};
