/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * text_call.c - a system call as a line: name(argument: value, ...) = result <duration>.
 *
 * At home for readers of strace: flags and constants by their names, errors as -1 and their name, an
 * octal mode only where one is made use of. What weir did not see, it does not print a value for.
 */
#include "sinks/flags.h"
#include "sinks/kept.h"
#include "sinks/out.h"
#include "sinks/put.h"
#include "sinks/table.h"
#include "sinks/text.h"

#include <fcntl.h>
#include <string.h>

#define FIRST_PAGE 4096

static bool creates(const struct weir_decoded *d)
{
	for (uint32_t i = 0; i < d->nargs; i++)
		if (d->args[i].set && !strcmp(d->args[i].set, "open"))
			return d->args[i].u & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY));
	return true;
}

/* The mode of an open that makes no file is whatever the register held. */
static bool is_unused(const struct weir_decoded *d, const struct weir_arg *arg)
{
	return arg->tag == WEIR_TAG_PAD || (arg->tag == WEIR_TAG_MODE && !creates(d));
}

#define NUMBER_MAX 24 /* an octal one of 64 bits, the longest */

static char *put_octal(char *p, uint64_t mode)
{
	char digits[NUMBER_MAX], *at = digits + sizeof(digits);
	size_t len;

	do
		*--at = (char)('0' + (mode & 7));
	while (mode >>= 3);
	if (*at != '0')
		*--at = '0';
	len = (size_t)(digits + sizeof(digits) - at);
	memcpy(p, at, len);
	return p + len;
}

/* An id of all bits set is none at all. */
static char *put_id(char *p, uint32_t value)
{
	return value == UINT32_MAX ? PUT(p, "-1") : put_u64(p, value);
}

/* A register, by what the call makes of it: at most NUMBER_MAX. Most types are narrower than it. */
static char *put_register(char *p, const struct weir_arg *arg)
{
	switch (arg->tag) {
	case WEIR_TAG_INT:
	case WEIR_TAG_FD:
	case WEIR_TAG_PID:
		return put_i64(p, (int32_t)arg->u);
	case WEIR_TAG_DIRFD:
		return (int32_t)arg->u == AT_FDCWD ? PUT(p, "AT_FDCWD")
						   : put_i64(p, (int32_t)arg->u);
	case WEIR_TAG_UINT:
		return put_u64(p, (uint32_t)arg->u);
	case WEIR_TAG_UID:
	case WEIR_TAG_GID:
		return put_id(p, (uint32_t)arg->u);
	case WEIR_TAG_LONG:
	case WEIR_TAG_OFF:
		return put_i64(p, (int64_t)arg->u);
	case WEIR_TAG_SIZE:
	case WEIR_TAG_LO:
	case WEIR_TAG_HI:
		return put_u64(p, arg->u);
	case WEIR_TAG_MODE:
		return put_octal(p, (uint32_t)arg->u);
	case WEIR_TAG_NONE:
	case WEIR_TAG_HEX:
	case WEIR_TAG_DEV:
		return put_hex(p, arg->u);
	default:
		return arg->u ? put_hex(p, arg->u) : PUT(p, "NULL");
	}
}

static bool is_number(const struct weir_arg *arg)
{
	return arg->kind == WEIR_ARG_HEX && !(arg->flags & WEIR_ARG_UNREAD) &&
	       arg->tag != WEIR_TAG_SIG && arg->tag != WEIR_TAG_FLAGS && arg->tag != WEIR_TAG_ENUM;
}

static void other_value(struct out *out, const struct weir_arg *arg)
{
	if (arg->kind != WEIR_ARG_HEX || (arg->flags & WEIR_ARG_UNREAD))
		text__value(out, arg);
	else if (arg->tag == WEIR_TAG_SIG)
		flags__put_signal(out, (uint32_t)arg->u);
	else if (arg->tag == WEIR_TAG_FLAGS)
		flags__put(out, arg->set, arg->u);
	else
		flags__put_enum(out, arg->set, (uint32_t)arg->u);
}

static char *put_value(struct out *out, char *p, const struct weir_arg *arg)
{
	if (is_number(arg))
		return put_register(p, arg);
	out__used(out, p);
	other_value(out, arg);
	return text__begin(out);
}

/* </etc/passwd> */
static char *put_opened(struct out *out, char *p, const char *name)
{
	if (!name)
		return p;
	p = PUT(p, "<");
	out__used(out, text__put_paint(p, out__style(out), TEXT_STR));
	text__safe(out, name, strlen(name));
	p = text__put_paint(text__begin(out), out__style(out), TEXT_PLAIN);
	return PUT(p, ">");
}

/* Of a call: "read" and, of each argument, "fd: ". */
static bool make_shape(struct kept_shape *kept, const struct weir_decoded *d)
{
	bool fits = kept__print(kept->name, sizeof(kept->name), &kept->name_len, "%s%s%s",
				d->syscall, d->abi ? "/" : "", d->abi ? d->abi : "");

	for (uint32_t i = 0; fits && i < d->nargs; i++)
		fits = kept__print(kept->key[i], sizeof(kept->key[i]), &kept->key_len[i],
				   "%s: ", d->args[i].name);
	return fits;
}

static const struct kept_shape *shape_of(const struct weir_decoded *d)
{
	static __thread struct kept_shape shapes[KEPT_SHAPES];

	return d->shape ? kept_shape__find(shapes, d, make_shape) : NULL;
}

static char *put_name(struct out *out, char *p, const struct weir_decoded *d,
		      const struct kept_shape *shape)
{
	if (shape)
		return kept_shape__put_name(p, shape);
	out__used(out, p);
	text__syscall_name(out, d);
	return text__begin(out);
}

static char *put_key(struct out *out, char *p, const char *name)
{
	out__used(out, p);
	out__str(out, name);
	return PUT(text__begin(out), ": ");
}

static char *put_arguments(struct out *out, char *p, const struct sink_event *se,
			   const struct kept_shape *shape)
{
	const struct weir_decoded *d = se->decoded;
	bool any = false;

	p = PUT(p, "(");
	for (uint32_t i = 0; i < d->nargs; i++) {
		const struct weir_arg *arg = &d->args[i];

		if (is_unused(d, arg))
			continue;
		if (any)
			p = PUT(p, ", ");
		p = shape ? kept_shape__put_key(p, shape, i) : put_key(out, p, arg->name);
		p = put_value(out, p, arg);
		if (se->fds)
			p = put_opened(out, p, se->fds->arg[i]);
		any = true;
	}
	return PUT(p, ")");
}

static bool returns_address(const struct weir_decoded *d)
{
	static const char *const names[] = {"brk", "mmap", "mmap2", "mremap", "shmat"};

	/* None lies in the first page; most results do. */
	if (!d->syscall || (uint64_t)d->ret < FIRST_PAGE)
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(d->syscall, names[i]))
			return true;
	return false;
}

/* What it means in words is told by the C library. */
static char *put_error(char *p, const struct style *style, int err)
{
	const char *name = flags__errno_name(err);
	const char *text = name ? strerrordesc_np(err) : NULL;

	p = PUT(text__put_paint(p, style, TEXT_BAD), "-1 ");
	p = name ? stpcpy(p, name) : put_i64(PUT(p, "errno "), err);
	if (text)
		p = PUT(stpcpy(PUT(p, " ("), text), ")");
	return text__put_paint(p, style, TEXT_PLAIN);
}

static char *put_result(char *p, const struct style *style, const struct weir_decoded *d)
{
	p = PUT(p, " = ");
	if (d->ret < 0 && d->ret >= -ERRNO_MAX)
		return put_error(p, style, (int)-d->ret);
	return returns_address(d) ? put_hex(p, (uint64_t)d->ret) : put_i64(p, d->ret);
}

static char *put_took(char *p, const struct style *style, const struct weir_call *call)
{
	uint64_t ns = call->exit->stamp_ns - call->enter->stamp_ns;

	p = text__put_paint(p, style, TEXT_DIM);
	p = call->found ? PUT(p, " <over ") : PUT(p, " <");
	p = text__put_duration(p, ns);
	p = call->found ? PUT(p, ", from before the trace>") : PUT(p, ">");
	return text__put_paint(p, style, TEXT_PLAIN);
}

static char *put_lost(char *p, const struct style *style)
{
	p = PUT(text__put_paint(PUT(p, " = ?"), style, TEXT_ALERT), " <lost>");
	return text__put_paint(p, style, TEXT_PLAIN);
}

/* What stands behind the arguments, for each way in which a call can end. */
static char *put_ending(struct out *out, char *p, const struct sink_event *se,
			const struct weir_call *call)
{
	const struct style *style = out__style(out);
	const struct weir_decoded *d = se->decoded;

	switch (call->end) {
	case WEIR_CALL_RETURNED:
		p = put_result(p, style, d);
		if (se->fds)
			p = put_opened(out, p, se->fds->result);
		return put_took(p, style, call);
	case WEIR_CALL_BORN:
	case WEIR_CALL_NO_ENTER:
		return put_result(p, style, d);
	case WEIR_CALL_NO_RETURN:
		return PUT(p, " = ?");
	case WEIR_CALL_BROKEN:
		return put_lost(p, style);
	case WEIR_CALL_OPEN:
		return call->found ? PUT(p, " <unfinished, from before the trace>")
				   : PUT(p, " <unfinished>");
	}
	return p;
}

int text__call(struct out *out, const struct sink_event *se, const struct weir_call *call)
{
	const struct weir_decoded *d = se->decoded;
	const struct kept_shape *shape = shape_of(d);
	struct style *style = out__style(out);
	char *p = text__put_head(text__begin(out), style, se);

	p = put_name(out, text__put_paint(p, style, TEXT_NAME), d, shape);
	p = text__put_paint(p, style, TEXT_PLAIN);
	p = d->has_args ? put_arguments(out, p, se, shape) : PUT(p, "(?)");
	out__used(out, put_ending(out, p, se, call));
	text__container(out, se);
	text__marks(out, se->event);
	out__char(out, '\n');
	sink__end_call(out, call);
	return out__error(out);
}
