// SPDX-License-Identifier: BSD-2-Clause
/*
 * decode.c - the bytes of a record as a name and named arguments.
 *
 * Owns nothing: what it hands out points into the record or into constant tables. Promises that no
 * record, however broken, makes it read a byte outside event->data (G8); what it can't explain is
 * -EBADMSG as a whole, never half an event. What the bytes mean is told by fields.h and syscalls.h;
 * but the two halves of a system call, which are most of what there is, are taken apart as the structs
 * that they are, which costs a quarter. Must not know how arguments are printed.
 */
#include "probes/probes.h"

#include <errno.h>
#include <string.h>

#include "probes/fields.h"
#include "probes/syscalls.h"

#define ALIGN8(offset) (((offset) + 7) & ~(size_t)7)

/* A call that is in no table. */
static const struct syscall_desc unknown_call = {
	.nargs = SYSCALL_ARGS_MAX,
	.args = {{"arg0"}, {"arg1"}, {"arg2"}, {"arg3"}, {"arg4"}, {"arg5"}},
};

struct decoding {
	const struct record_desc *desc;
	const char *payload;
	size_t len;
	size_t tail; /* <= len: what lies before it has been taken */
	struct weir_decoded *out;
	const struct syscall_desc *call;
	bool has_call_args; /* they are out->args */
};

/*
 * No check against WEIR_ARGS_MAX: a record's arguments are those of its table, and at most one for
 * each argument of a call.
 */
static struct weir_arg *push(struct decoding *d, const char *name, enum weir_arg_kind kind)
{
	struct weir_arg *arg = &d->out->args[d->out->nargs++];

	*arg = (struct weir_arg){.name = name, .kind = kind};
	return arg;
}

static const char *take(struct decoding *d, size_t len)
{
	const char *bytes = d->payload + d->tail;

	if (len > d->len - d->tail)
		return NULL;
	d->tail += len;
	return bytes;
}

static void set_bytes(struct weir_arg *arg, const char *bytes, size_t len)
{
	arg->bytes = bytes;
	arg->len = (uint32_t)len;
}

/* Each string of a vector has its NUL, so that a reader of them stops in time; a cut one may not. */
static bool is_vector(const char *bytes, size_t len, uint32_t flags)
{
	return !len || !bytes[len - 1] || (flags & WEIR_ARG_CUT);
}

static uint32_t record_flags(const struct decoding *d)
{
	uint32_t flags;

	memcpy(&flags, d->payload + d->desc->flags_offset, sizeof(flags));
	return flags;
}

static int decode_tail(struct decoding *d, const struct field *field, uint64_t len)
{
	struct weir_arg *arg = push(d, field->name, field->kind);
	const char *bytes = take(d, len);

	if (!bytes)
		return -EBADMSG;
	if (field->cut && (record_flags(d) & field->cut))
		arg->flags |= WEIR_ARG_CUT;
	if (field->unread && (record_flags(d) & field->unread))
		arg->flags |= WEIR_ARG_UNREAD;
	if (len && (arg->flags & WEIR_ARG_UNREAD))
		return -EBADMSG;
	if (field->kind == WEIR_ARG_STRV && !is_vector(bytes, len, arg->flags))
		return -EBADMSG;
	set_bytes(arg, bytes, len);
	return 0;
}

static void decode_arg(struct decoding *d, const struct field *field, uint64_t value)
{
	const char *bytes = d->payload + field->offset;
	struct weir_arg *arg = push(d, field->name, field->kind);

	switch (field->kind) {
	case WEIR_ARG_WORD:
		bytes = fields__word(field, value);
		set_bytes(arg, bytes, strlen(bytes));
		break;
	case WEIR_ARG_STR:
		set_bytes(arg, bytes, strnlen(bytes, field->size));
		break;
	case WEIR_ARG_INT:
		arg->i = (int64_t)value;
		break;
	default:
		arg->u = value;
	}
}

static void set_call_arg(struct weir_arg *arg, const struct syscall_arg *known, uint64_t value)
{
	*arg = (struct weir_arg){
		.name = known->name,
		.kind = WEIR_ARG_HEX,
		.tag = known->tag,
		.set = known->set,
		.u = value,
	};
}

/* At a call's entry the argument is there already, as an address; at its exit it is not. */
static struct weir_arg *blob_arg(struct decoding *d, unsigned int i)
{
	struct weir_arg *arg = &d->out->args[i];

	if (d->has_call_args)
		return arg;
	arg = &d->out->args[d->out->nargs++];
	set_call_arg(arg, &d->call->args[i], 0);
	return arg;
}

static int set_timespec(struct weir_arg *arg, const char *bytes, size_t len)
{
	int64_t time[2];

	if (len != sizeof(time))
		return -EBADMSG;
	memcpy(time, bytes, sizeof(time));
	arg->kind = WEIR_ARG_TIMESPEC;
	arg->i = time[0];
	arg->u = (uint64_t)time[1];
	return 0;
}

static int set_blob(struct weir_arg *arg, const struct weir_blob *blob, const char *bytes)
{
	static const enum weir_arg_kind kinds[] = {
		[WEIR_BLOB_STR] = WEIR_ARG_STR,
		[WEIR_BLOB_STRV] = WEIR_ARG_STRV,
		[WEIR_BLOB_SOCKADDR] = WEIR_ARG_SOCKADDR,
	};

	if (blob->flags & WEIR_BLOB_CUT)
		arg->flags |= WEIR_ARG_CUT;
	if (blob->flags & WEIR_BLOB_UNREAD) {
		arg->flags |= WEIR_ARG_UNREAD;
		return blob->len ? -EBADMSG : 0;
	}
	if (blob->kind == WEIR_BLOB_TIMESPEC)
		return set_timespec(arg, bytes, blob->len);
	if (blob->kind < WEIR_BLOB_STR || blob->kind > WEIR_BLOB_SOCKADDR)
		return -EBADMSG;
	arg->kind = kinds[blob->kind];
	if (arg->kind == WEIR_ARG_STRV && !is_vector(bytes, blob->len, arg->flags))
		return -EBADMSG;
	set_bytes(arg, bytes, blob->len);
	return 0;
}

static int decode_blob(struct decoding *d, unsigned int *seen)
{
	struct weir_blob blob;
	const char *bytes;

	bytes = take(d, sizeof(blob));
	if (!bytes)
		return -EBADMSG;
	memcpy(&blob, bytes, sizeof(blob));
	if (blob.arg >= d->call->nargs || (*seen & (1u << blob.arg)))
		return -EBADMSG;
	*seen |= 1u << blob.arg;
	bytes = take(d, blob.len);
	if (!bytes)
		return -EBADMSG;
	return set_blob(blob_arg(d, blob.arg), &blob, bytes);
}

static int decode_blobs(struct decoding *d, unsigned int count)
{
	unsigned int seen = 0;
	int err;

	for (unsigned int i = 0; i < count; i++) {
		if (!take(d, ALIGN8(d->tail) - d->tail))
			return -EBADMSG;
		err = decode_blob(d, &seen);
		if (err)
			return err;
	}
	return 0;
}

static void decode_task(struct decoding *d, const struct field *field, uint64_t value)
{
	if (field->use & FIELD_PID)
		d->out->pid = (uint32_t)value;
	if (field->use & FIELD_TID)
		d->out->tid = (uint32_t)value;
	if (field->use & FIELD_COMM)
		d->out->comm = d->payload + field->offset;
}

static int decode_field(struct decoding *d, const struct field *field)
{
	uint64_t value = fields__value(field, d->payload);

	if (field->use & FIELD_TASK)
		decode_task(d, field, value);
	if (field->use & FIELD_TAIL)
		return decode_tail(d, field, value);
	if ((field->use & FIELD_ARG) && (value || !(field->use & FIELD_NONZERO)))
		decode_arg(d, field, value);
	return 0;
}

static int decode_fields(struct decoding *d)
{
	for (unsigned int i = 0; i < d->desc->nr_fields; i++) {
		int err = d->desc->fields[i].use ? decode_field(d, &d->desc->fields[i]) : 0;

		if (err)
			return err;
	}
	return 0;
}

static void begin(struct weir_decoded *out, const struct record_desc *desc)
{
	out->name = desc->event;
	out->group = desc->group;
	out->pid = 0;
	out->tid = 0;
	out->comm = NULL;
	out->syscall = NULL;
	out->nr = -1;
	out->abi = NULL;
	out->nargs = 0;
	out->has_args = true;
	out->has_ret = false;
	out->ret = 0;
	out->shape = 0;
	out->is_raw = false;
}

/* The numbers of shapes: by ABI and number of the call, and by what is there of it. */
#define SHAPE_EXIT  1u
#define SHAPE_WHOLE 2u

static uint32_t shape_of_enter(unsigned int abi, uint32_t nr)
{
	return (abi * SYSCALL_NR_MAX + nr + 1) << 2;
}

/* What both halves of a call begin with. NULL: there is no such ABI. */
static const struct syscall_desc *decode_call(struct weir_decoded *out,
					      const struct weir_task_id *id, uint32_t nr,
					      unsigned int abi)
{
	enum syscall_numbering numbering = syscalls__numbering(abi);
	const struct syscall_desc *known = syscalls__find_in(numbering, nr);

	out->pid = id->pid;
	out->tid = id->tid;
	out->nr = (int32_t)nr;
	out->abi = syscalls__abi_name(abi);
	if (!known)
		return numbering == SYSCALL_NO_NUMBERING ? NULL : &unknown_call;
	out->syscall = known->name;
	out->shape = shape_of_enter(abi, nr);
	return known;
}

static int decode_call_blobs(const struct weir_event *event, const struct record_desc *desc,
			     const struct syscall_desc *call, unsigned int count,
			     struct weir_decoded *out)
{
	struct decoding d = {
		.payload = event->data,
		.len = event->len,
		.tail = desc->len,
		.out = out,
		.call = call,
		.has_call_args = event->type == WEIR_T_SYS_ENTER,
	};

	return decode_blobs(&d, count);
}

static int decode_enter(const struct weir_event *event, const struct record_desc *desc,
			struct weir_decoded *out)
{
	const struct syscall_desc *call;
	struct weir_sys_enter enter;

	memcpy(&enter, event->data, sizeof(enter));
	call = decode_call(out, &enter.id, enter.nr, enter.abi);
	if (!call)
		return -EBADMSG;
	for (unsigned int i = 0; i < call->nargs; i++)
		set_call_arg(&out->args[i], &call->args[i], enter.args[i]);
	out->nargs = call->nargs;
	return enter.blobs ? decode_call_blobs(event, desc, call, enter.blobs, out) : 0;
}

static int decode_exit(const struct weir_event *event, const struct record_desc *desc,
		       struct weir_decoded *out)
{
	const struct syscall_desc *call;
	struct weir_sys_exit exit;

	memcpy(&exit, event->data, sizeof(exit));
	call = decode_call(out, &exit.id, exit.nr, exit.abi);
	if (!call)
		return -EBADMSG;
	out->args[0] = (struct weir_arg){.name = "ret", .kind = WEIR_ARG_INT, .i = exit.ret};
	out->nargs = 1;
	if (out->shape)
		out->shape |= SHAPE_EXIT;
	if (!exit.blobs)
		return 0;
	out->shape = 0; /* which strings there are is not the same each time */
	return decode_call_blobs(event, desc, call, exit.blobs, out);
}

static int decode_other(const struct weir_event *event, const struct record_desc *desc,
			struct weir_decoded *out)
{
	struct decoding d = {
		.desc = desc,
		.payload = event->data,
		.len = event->len,
		.tail = desc->len,
		.out = out,
	};

	return decode_fields(&d);
}

int probes__decode(const struct weir_event *event, struct weir_decoded *out)
{
	const struct record_desc *desc = fields__find(event->type);

	if (event->kind != WEIR_KIND_RECORD || !desc || event->len < desc->len)
		return -EBADMSG;
	begin(out, desc);
	switch (event->type) {
	case WEIR_T_SYS_ENTER:
		return decode_enter(event, desc, out);
	case WEIR_T_SYS_EXIT:
		return decode_exit(event, desc, out);
	default:
		return decode_other(event, desc, out);
	}
}

static struct weir_arg *arg_by_name(struct weir_decoded *d, const char *name)
{
	for (uint32_t i = 0; i < d->nargs; i++)
		if (!strcmp(d->args[i].name, name))
			return &d->args[i];
	return NULL;
}

/* The strings that the exit could read and the enter could not. */
static void merge_strings(struct weir_decoded *out, const struct weir_decoded *exit)
{
	for (uint32_t i = 1; i < exit->nargs; i++) {
		struct weir_arg *arg = arg_by_name(out, exit->args[i].name);

		if (arg)
			*arg = exit->args[i];
	}
}

/* A whole call is its enter and a result; an exit alone has no arguments that are known. */
static int decode_whole(const struct weir_call *call, struct weir_decoded *out)
{
	struct weir_decoded exit;
	struct weir_sys_exit fixed;
	int err;

	err = probes__decode(call->enter, out);
	if (err || !call->exit)
		return err;
	if (call->exit->type != WEIR_T_SYS_EXIT || call->exit->len < sizeof(fixed))
		return -EBADMSG;
	memcpy(&fixed, call->exit->data, sizeof(fixed));
	out->has_ret = true;
	out->ret = fixed.ret;
	if (!fixed.blobs)
		return 0;
	err = probes__decode(call->exit, &exit);
	if (!err)
		merge_strings(out, &exit);
	return err;
}

static int decode_exit_alone(const struct weir_event *exit, struct weir_decoded *out)
{
	int err = probes__decode(exit, out);

	if (err || exit->type != WEIR_T_SYS_EXIT)
		return err ? err : -EBADMSG;
	out->has_ret = true;
	out->ret = out->args[0].i;
	out->nargs = 0;
	out->has_args = false;
	return 0;
}

int probes__decode_call(const struct weir_call *call, struct weir_decoded *out)
{
	int err = call->enter ? decode_whole(call, out) : decode_exit_alone(call->exit, out);

	out->name = "syscall";
	if (!err && out->shape)
		out->shape |= SHAPE_WHOLE;
	return err;
}
