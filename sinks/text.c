// SPDX-License-Identifier: BSD-2-Clause
/*
 * text.c - events as lines for people.
 *
 * Owns: what all lines share: times, columns, colours, values. Promises: one event, one line, of
 * nothing but printable ASCII, whatever bytes the event carries: a terminal obeys escape sequences,
 * and file names may hold them. The only sequences that go out are colours, where the style has them.
 * Wall times are of the local zone; the JSON has them in UTC. Must not know: where events come from.
 */
#include "sinks/kept.h"
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

char *text__do_paint(char *p, enum text_paint paint)
{
	static const char *const codes[] = {
		[TEXT_PLAIN] = "\x1b[0m", [TEXT_DIM] = "\x1b[2m",  [TEXT_NAME] = "\x1b[1m",
		[TEXT_STR] = "\x1b[32m",  [TEXT_BAD] = "\x1b[31m", [TEXT_ALERT] = "\x1b[1;33m",
	};

	return stpcpy(p, codes[paint]);
}

#define CLOCK_LEN 18 /* HH:MM:SS.nnnnnnnnn */

struct second {
	int64_t sec;
	char text[PUT_STEPS(9)];
};

static __attribute__((cold)) void make_second(struct second *kept, int64_t sec)
{
	time_t when = sec;
	struct tm tm;

	localtime_r(&when, &tm);
	kept->sec = sec;
	strftime(kept->text, sizeof(kept->text), "%H:%M:%S.", &tm);
}

/* The part before the point is made once a second, for events come in order. */
static char *put_clock(char *p, int64_t wall_ns)
{
	static __thread struct second kept = {.sec = INT64_MIN};
	uint32_t part;
	int64_t sec = wall_sec(wall_ns, &part);

	if (kept.sec != sec)
		make_second(&kept, sec);
	return put_9(put_steps(p, kept.text, strlen("HH:MM:SS.")), part);
}

static void clock_time(struct out *out, int64_t wall_ns)
{
	out__used(out, put_clock(out__room(out, CLOCK_LEN), wall_ns));
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

static char *put_all_safe(char *p, const char *bytes, size_t len)
{
	const uint8_t *at = (const uint8_t *)bytes, *end = at + len;

	for (;;) {
		p = put_plain(p, &at, end);
		if (at == end)
			return p;
		p = put_safe(p, *at++);
	}
}

void text__safe(struct out *out, const char *bytes, size_t len)
{
	while (len) {
		size_t step = len < STRING_STEP ? len : STRING_STEP;

		out__used(out, put_all_safe(out__room(out, step * ESCAPE_MAX), bytes, step));
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
	case WEIR_ARG_TIMESPEC:
		out__str(out, "{tv_sec=");
		out__i64(out, arg->i);
		out__str(out, ", tv_nsec=");
		out__i64(out, (int64_t)arg->u);
		out__char(out, '}');
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

/* Each unit apart: a division by a constant is a multiplication. */
char *text__put_duration(char *p, uint64_t ns)
{
	const char *unit = "us";
	uint64_t whole = ns / 1000, part = ns % 1000;

	if (ns >= NSEC_PER_SEC) {
		unit = "s";
		whole = ns / NSEC_PER_SEC;
		part = ns / 1000000 % 1000;
	} else if (ns >= 1000000) {
		unit = "ms";
		part = whole % 1000;
		whole /= 1000;
	}
	p = put_u64(p, whole);
	*p++ = '.';
	p = put_3(p, (uint32_t)part);
	memcpy(p, unit, 2);
	return p + 1 + (unit[1] != 0);
}

void text__syscall_name(struct out *out, const struct weir_decoded *d)
{
	if (d->syscall) {
		out__str(out, d->syscall);
	} else {
		out__str(out, "sys_");
		out__i64(out, d->nr);
	}
	if (d->abi) {
		out__char(out, '/');
		text__word(out, d->abi);
	}
}

static char *put_spaces(char *p, unsigned int n)
{
	memset(p, ' ', n);
	return p + n;
}

#define SECONDS_MAX (PUT_U64_MAX + 10)
#define MONO_WIDTH  7 /* of the seconds since boot: 115 days */

/* Seconds, right-aligned in `width` (at most PUT_U64_MAX), and nine digits behind the point. */
static char *put_seconds(char *p, uint64_t ns, unsigned int width)
{
	char digits[PUT_U64_MAX];
	unsigned int len = (unsigned int)(put_u64(digits, ns / NSEC_PER_SEC) - digits);

	if (len < width)
		p = put_spaces(p, width - len);
	memcpy(p, digits, len);
	p += len;
	*p++ = '.';
	return put_9(p, (uint32_t)(ns % NSEC_PER_SEC));
}

static void seconds(struct out *out, uint64_t ns)
{
	out__used(out, put_seconds(out__room(out, SECONDS_MAX), ns, 0));
}

/* Late events lie before the line before. */
static char *put_delta(char *p, struct style *style, uint64_t stamp_ns)
{
	uint64_t last_ns = style->last_ns ? style->last_ns : stamp_ns;

	style->last_ns = stamp_ns;
	*p++ = stamp_ns < last_ns ? '-' : '+';
	return put_seconds(p, stamp_ns < last_ns ? last_ns - stamp_ns : stamp_ns - last_ns, 0);
}

/* At most SECONDS_MAX + 2. */
static char *put_when(char *p, struct style *style, const struct sink_event *se)
{
	switch (style ? style->time : STYLE_WALL) {
	case STYLE_WALL:
		p = put_clock(p, se->wall_ns);
		break;
	case STYLE_MONO:
		p = put_seconds(p, se->event->stamp_ns, MONO_WIDTH);
		break;
	case STYLE_DELTA:
		p = put_delta(p, style, se->event->stamp_ns);
		break;
	case STYLE_NO_TIME:
		return p;
	}
	*p++ = ' ';
	return p;
}

#define COLUMN_MAX 64 /* of those that a style may ask for */

static unsigned int at_most(unsigned int width)
{
	return width < COLUMN_MAX ? width : COLUMN_MAX;
}

/* At most COLUMN_MAX + 1. */
static char *put_cpu(char *p, const struct style *style, int32_t cpu)
{
	unsigned int width = style ? at_most(style->cpu_width) : 0;
	char text[PUT_U64_MAX] = "?";
	unsigned int len = 1;

	if (cpu >= 0)
		len = (unsigned int)(put_u64(text, (uint64_t)cpu) - text);
	if (len < width)
		p = put_spaces(p, width - len);
	memcpy(p, text, 16); /* more digits than a number of 32 bits has */
	p[len] = ' ';
	return p + len + 1;
}

/* comm[tid] and a space */
static __attribute__((cold)) char *put_new_task(char *p, const char comm[WEIR_COMM_LEN],
						uint32_t tid, unsigned int width)
{
	char *begin = p;
	unsigned int len;

	p = put_all_safe(p, comm, strnlen(comm, WEIR_COMM_LEN));
	*p++ = '[';
	p = put_u64(p, tid);
	*p++ = ']';
	len = (unsigned int)(p - begin);
	return put_spaces(p, (len < width ? width - len : 0) + 1);
}

static char *put_task(char *p, const struct sink_event *se, unsigned int width)
{
	static __thread struct kept_task tasks[KEPT_TASKS];
	static const char unknown[WEIR_COMM_LEN] = "?";
	uint32_t tid = se->decoded->tid;
	uint64_t numbers = (uint64_t)width << 32 | tid;
	struct kept_task *kept = &tasks[tid % KEPT_TASKS];
	const char *comm = se->comm ? se->comm : unknown;

	if (!kept_task__is(kept, comm, numbers))
		kept_task__set(kept, comm, numbers, put_new_task(kept->text, comm, tid, width));
	return kept_task__put(p, kept);
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

char *text__put_head(char *p, struct style *style, const struct sink_event *se)
{
	p = put_when(text__put_paint(p, style, TEXT_DIM), style, se);
	p = text__put_paint(put_cpu(p, style, se->event->cpu), style, TEXT_PLAIN);
	return se->decoded->is_raw ? p : put_task(p, se, style ? at_most(style->task_width) : 0);
}

/* The name of the first is that of a call of the kernel's. */
void text__cause(struct out *out, enum weir_cause cause)
{
	const char *c;

	if (cause == WEIR_LOST_RESERVE_FAILED) {
		out__str(out, "buffer full");
		return;
	}
	for (c = weir_cause__name(cause); *c; c++)
		out__char(out, *c == '_' ? ' ' : *c);
}

/* A time that a line speaks of, whatever the lines begin with. */
static void moment(struct out *out, uint64_t stamp_ns, int64_t wall_ns)
{
	const struct style *style = out__style(out);

	if (style && style->time == STYLE_MONO)
		seconds(out, stamp_ns);
	else
		clock_time(out, wall_ns);
}

static void gap_start(struct out *out, const struct sink_event *se, const struct weir_gap *gap)
{
	moment(out, gap->from_ns, (int64_t)((uint64_t)se->wall_ns - (gap->to_ns - gap->from_ns)));
}

/* Each ring of a CPU tells that it was away. It was back with the first of them. */
static bool is_told(struct style *style, const struct sink_event *se, const struct weir_gap *gap)
{
	if (!style)
		return false;
	if (style->away_cpu == se->event->cpu && gap->from_ns < style->away_to_ns)
		return true;
	style->away_cpu = se->event->cpu;
	style->away_to_ns = gap->to_ns;
	return false;
}

/* -- CPU 1 was offline from 12:00:00.000000001 to 12:00:00.000000009 */
static void offline(struct out *out, const struct sink_event *se, const struct weir_gap *gap)
{
	text__paint(out, TEXT_ALERT);
	out__str(out, "-- CPU ");
	out__u64(out, se->event->cpu);
	out__str(out, " was offline from ");
	gap_start(out, se, gap);
	out__str(out, " to ");
	moment(out, gap->to_ns, se->wall_ns);
	text__paint(out, TEXT_PLAIN);
}

/* -- gap cpu0: 17 lost (buffer full) in (12:00:00.000000001, 12:00:00.000000009] */
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
	text__cause(out, gap->cause);
	out__str(out, ") in (");
	gap_start(out, se, gap);
	out__str(out, ", ");
	moment(out, gap->to_ns, se->wall_ns);
	out__char(out, ']');
	text__paint(out, TEXT_PLAIN);
}

static bool is_offline(const struct weir_gap *gap)
{
	return gap->cause == WEIR_LOST_OFFLINE && !gap->lost && gap->bound == WEIR_BOUND_EXACT;
}

static void gap_line(struct out *out, const struct sink_event *se, const struct weir_gap *what)
{
	if (is_offline(what))
		offline(out, se, what);
	else
		gap(out, se, what);
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
	seconds(out, back ? from - to : to - from);
	out__str(out, " s");
	if (step->suspended_ns) {
		out__str(out, ", of it suspended ");
		seconds(out, step->suspended_ns);
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
		if (is_offline(event->data) && is_told(out__style(out), se, event->data))
			return out__error(out);
		gap_line(out, se, event->data);
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
