/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * text_call.c - a system call as a line: name(argument: value, ...) = result <duration>.
 *
 * At home for readers of strace: flags and constants by their names, errors as -1 and their name, an
 * octal mode only where one is made use of. What weir did not see, it does not print a value for.
 */
#include "sinks/flags.h"
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

/* false: it is a number, and stands for no name. */
static bool has_name(struct out *out, const struct weir_arg *arg)
{
	switch (arg->tag) {
	case WEIR_TAG_SIG:
		flags__put_signal(out, (uint32_t)arg->u);
		return true;
	case WEIR_TAG_FLAGS:
		flags__put(out, arg->set, arg->u);
		return true;
	case WEIR_TAG_ENUM:
		flags__put_enum(out, arg->set, (uint32_t)arg->u);
		return true;
	default:
		return false;
	}
}

/* </etc/passwd> */
static void opened(struct out *out, const char *name)
{
	if (!name)
		return;
	out__char(out, '<');
	text__paint(out, TEXT_STR);
	text__safe(out, name, strlen(name));
	text__paint(out, TEXT_PLAIN);
	out__char(out, '>');
}

static void value(struct out *out, const struct weir_arg *arg)
{
	if (arg->kind != WEIR_ARG_HEX || (arg->flags & WEIR_ARG_UNREAD))
		text__value(out, arg);
	else if (!has_name(out, arg))
		out__used(out, put_register(out__room(out, NUMBER_MAX), arg));
}

static void arguments(struct out *out, const struct weir_decoded *d, const struct sink_fds *fds)
{
	const char *between = "";

	for (uint32_t i = 0; i < d->nargs; i++) {
		const struct weir_arg *arg = &d->args[i];

		if (is_unused(d, arg))
			continue;
		out__short(out, between);
		out__short(out, arg->name);
		out__str(out, ": ");
		value(out, arg);
		if (fds)
			opened(out, fds->arg[i]);
		between = ", ";
	}
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

static void error(struct out *out, int err)
{
	const char *name = flags__errno_name(err);
	const char *text = name ? strerrordesc_np(err) : NULL;

	text__paint(out, TEXT_BAD);
	out__str(out, "-1 ");
	if (name) {
		out__str(out, name);
	} else {
		out__str(out, "errno ");
		out__i64(out, err);
	}
	if (text) {
		out__str(out, " (");
		out__str(out, text);
		out__char(out, ')');
	}
	text__paint(out, TEXT_PLAIN);
}

static void result(struct out *out, const struct weir_decoded *d)
{
	out__str(out, " = ");
	if (d->ret < 0 && d->ret >= -ERRNO_MAX)
		error(out, (int)-d->ret);
	else if (returns_address(d))
		out__hex(out, (uint64_t)d->ret);
	else
		out__i64(out, d->ret);
}

static void duration(struct out *out, const struct weir_call *call)
{
	uint64_t ns = call->exit->stamp_ns - call->enter->stamp_ns;

	text__paint(out, TEXT_DIM);
	out__str(out, call->found ? " <over " : " <");
	out__used(out, text__put_duration(out__room(out, TEXT_DURATION_MAX), ns));
	out__str(out, call->found ? ", from before the trace>" : ">");
	text__paint(out, TEXT_PLAIN);
}

/* What stands behind the arguments, for each way in which a call can end. */
static void ending(struct out *out, const struct sink_event *se, const struct weir_call *call)
{
	const struct weir_decoded *d = se->decoded;

	switch (call->end) {
	case WEIR_CALL_RETURNED:
		result(out, d);
		if (se->fds)
			opened(out, se->fds->result);
		duration(out, call);
		break;
	case WEIR_CALL_BORN:
	case WEIR_CALL_NO_ENTER:
		result(out, d);
		break;
	case WEIR_CALL_NO_RETURN:
		out__str(out, " = ?");
		break;
	case WEIR_CALL_BROKEN:
		out__str(out, " = ?");
		text__paint(out, TEXT_ALERT);
		out__str(out, " <lost>");
		text__paint(out, TEXT_PLAIN);
		break;
	case WEIR_CALL_OPEN:
		out__str(out,
			 call->found ? " <unfinished, from before the trace>" : " <unfinished>");
		break;
	}
}

int text__call(struct out *out, const struct sink_event *se, const struct weir_call *call)
{
	const struct weir_decoded *d = se->decoded;

	text__head(out, se);
	text__paint(out, TEXT_NAME);
	text__syscall_name(out, d);
	text__paint(out, TEXT_PLAIN);
	if (d->has_args) {
		out__char(out, '(');
		arguments(out, d, se->fds);
		out__char(out, ')');
	} else {
		out__str(out, "(?)");
	}
	ending(out, se, call);
	text__container(out, se);
	text__marks(out, se->event);
	out__char(out, '\n');
	sink__end_call(out, call);
	return out__error(out);
}
