/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * text.h - the parts of a text line, shared by those who write one: text.c (gaps and the rest),
 * text_record.c (single records) and text_call.c (whole system calls). Nothing but printable ASCII
 * comes out of any of them, and colours where the style has them.
 */
#ifndef WEIR_SINKS_TEXT_H
#define WEIR_SINKS_TEXT_H

#include "sinks/out.h"
#include "sinks/sink.h"
#include "sinks/style.h"

enum text_paint {
	TEXT_PLAIN = 0,
	TEXT_DIM,   /* what is the same on many lines: times */
	TEXT_NAME,  /* of a call or event */
	TEXT_STR,   /* bytes of a program's */
	TEXT_BAD,   /* errors and violent ends */
	TEXT_ALERT, /* what is not there, and signals */
};

/*
 * A line is written through a pointer where it can be: the put_...() return how far they came. What may
 * be long is appended, and then there is room for the rest of a line again.
 */
#define TEXT_ROOM 2048

static inline char *text__begin(struct out *out)
{
	return out__room(out, TEXT_ROOM);
}

char *text__do_paint(char *p, enum text_paint paint);

static inline char *text__put_paint(char *p, const struct style *style, enum text_paint paint)
{
	return style && style->color ? text__do_paint(p, paint) : p;
}

static inline void text__paint(struct out *out, enum text_paint paint)
{
	const struct style *style = out__style(out);

	if (style && style->color)
		out__used(out, text__do_paint(text__begin(out), paint));
}

/* Time, CPU and task, and a space. */
char *text__put_head(char *p, struct style *style, const struct sink_event *se);
/* " container=..." where there is one. */
void text__container(struct out *out, const struct sink_event *se);
/* "buffer full", "dead event": what the cause of a loss is called for people. */
void text__cause(struct out *out, enum weir_cause cause);
/* " late", " ahead" */
void text__marks(struct out *out, const struct weir_event *event);

/* 1.234ms: three digits behind the point, of the unit that leaves fewest before it. */
#define TEXT_DURATION_MAX 20
char *text__put_duration(char *p, uint64_t ns);

void text__syscall_name(struct out *out, const struct weir_decoded *d);
void text__value(struct out *out, const struct weir_arg *arg);
void text__word(struct out *out, const char *str);
/* Bytes as they are, or as \xNN where a terminal might obey them. */
void text__safe(struct out *out, const char *bytes, size_t len);

void text__record(struct out *out, const struct sink_event *se);
int text__call(struct out *out, const struct sink_event *se, const struct weir_call *call);

#endif /* WEIR_SINKS_TEXT_H */
