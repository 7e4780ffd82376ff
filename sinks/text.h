/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * text.h - the parts of a text line, shared by those who write one: text.c (records, gaps) and
 * text_call.c (whole system calls). Nothing but printable ASCII comes out of any of them.
 */
#ifndef WEIR_SINKS_TEXT_H
#define WEIR_SINKS_TEXT_H

#include "sinks/sink.h"

/* Time, CPU and task, and a space. */
void text__head(struct out *out, const struct sink_event *se);
/* " container=..." where there is one. */
void text__container(struct out *out, const struct sink_event *se);
/* " late", " ahead" */
void text__marks(struct out *out, const struct weir_event *event);

void text__syscall_name(struct out *out, const struct weir_decoded *d);
void text__value(struct out *out, const struct weir_arg *arg);
/* Bytes as they are, or as \xNN where a terminal might obey them. */
void text__safe(struct out *out, const char *bytes, size_t len);

int text__call(struct out *out, const struct sink_event *se, const struct weir_call *call);

#endif /* WEIR_SINKS_TEXT_H */
