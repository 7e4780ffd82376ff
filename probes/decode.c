// SPDX-License-Identifier: BSD-2-Clause
/*
 * decode.c - the bytes of a record as a name and named arguments.
 *
 * Owns nothing: what it hands out points into the record or into constant tables. Promises that no
 * record, however broken, makes it read a byte outside event->data (G8); what it can't explain is
 * -EBADMSG as a whole, never half an event. What the bytes mean is told by fields.h and syscalls.h
 * alone. Must not know how arguments are printed.
 */
#include "probes/probes.h"

#include <errno.h>
#include <string.h>

#include "probes/fields.h"
#include "probes/syscalls.h"

#define ALIGN8(offset) (((offset) + 7) & ~(size_t)7)

static const char *const raw_names[SYSCALL_ARGS_MAX] = {
	"arg0", "arg1", "arg2", "arg3", "arg4", "arg5",
};

struct decoding {
	const struct record_desc *desc;
	const char *payload;
	size_t len;
	size_t tail; /* <= len: what lies before it has been taken */
	struct weir_decoded *out;
	const struct syscall_desc *call; /* NULL: unknown */
	unsigned int nr_call_args;
	unsigned int first_call_arg; /* its index in out->args ... */
	bool has_call_args;	     /* ... where the record has them */
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

static int decode_abi(struct decoding *d, unsigned int abi)
{
	if (syscalls__numbering(abi) == SYSCALL_NO_NUMBERING)
		return -EBADMSG;
	d->out->abi = syscalls__abi_name(abi);
	d->call = syscalls__find(abi, (uint32_t)d->out->nr);
	d->out->syscall = d->call ? d->call->name : NULL;
	d->nr_call_args = d->call ? d->call->nargs : SYSCALL_ARGS_MAX;
	return 0;
}

/* The i-th argument of the call: its name, and what the table knows of it. */
static struct weir_arg *push_call_arg(struct decoding *d, unsigned int i)
{
	struct weir_arg *arg;

	if (!d->call)
		return push(d, raw_names[i], WEIR_ARG_HEX);
	arg = push(d, d->call->args[i].name, WEIR_ARG_HEX);
	arg->tag = d->call->args[i].tag;
	arg->set = d->call->args[i].set;
	return arg;
}

static void decode_call_args(struct decoding *d, const struct field *field)
{
	uint64_t raw[SYSCALL_ARGS_MAX];

	memcpy(raw, d->payload + field->offset, sizeof(raw));
	d->has_call_args = true;
	d->first_call_arg = d->out->nargs;
	for (unsigned int i = 0; i < d->nr_call_args; i++)
		push_call_arg(d, i)->u = raw[i];
}

/* At a call's entry the argument is there already, as an address; at its exit it is not. */
static struct weir_arg *blob_arg(struct decoding *d, unsigned int i)
{
	if (d->has_call_args)
		return &d->out->args[d->first_call_arg + i];
	return push_call_arg(d, i);
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
	if (blob.arg >= d->nr_call_args || (*seen & (1u << blob.arg)))
		return -EBADMSG;
	*seen |= 1u << blob.arg;
	bytes = take(d, blob.len);
	if (!bytes)
		return -EBADMSG;
	return set_blob(blob_arg(d, blob.arg), &blob, bytes);
}

static int decode_blobs(struct decoding *d, uint64_t count)
{
	unsigned int seen = 0;
	int err;

	for (uint64_t i = 0; i < count; i++) {
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

static int decode_call(struct decoding *d, const struct field *field, uint64_t value)
{
	if (field->use & FIELD_NR)
		d->out->nr = (int32_t)value;
	if (field->use & FIELD_ABI)
		return decode_abi(d, (unsigned int)value);
	if (field->use & FIELD_CALL_ARGS)
		decode_call_args(d, field);
	if (field->use & FIELD_BLOBS)
		return decode_blobs(d, value);
	return 0;
}

static int decode_field(struct decoding *d, const struct field *field)
{
	uint64_t value = fields__value(field, d->payload);

	if (field->use & FIELD_TASK)
		decode_task(d, field, value);
	if (field->use & FIELD_CALL)
		return decode_call(d, field, value);
	if (field->use & FIELD_TAIL)
		return decode_tail(d, field, value);
	if ((field->use & FIELD_ARG) && (value || !(field->use & FIELD_NONZERO)))
		decode_arg(d, field, value);
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
}

int probes__decode(const struct weir_event *event, struct weir_decoded *out)
{
	const struct record_desc *desc = fields__find(event->type);
	struct decoding d = {
		.desc = desc,
		.payload = event->data,
		.len = event->len,
		.out = out,
	};
	int err;

	if (event->kind != WEIR_KIND_RECORD || !desc || event->len < desc->len)
		return -EBADMSG;
	begin(out, desc);
	d.tail = desc->len;
	for (unsigned int i = 0; i < desc->nr_fields; i++) {
		if (!desc->fields[i].use)
			continue;
		err = decode_field(&d, &desc->fields[i]);
		if (err)
			return err;
	}
	return 0;
}

static struct weir_arg *arg_by_name(struct weir_decoded *d, const char *name)
{
	for (uint32_t i = 0; i < d->nargs; i++)
		if (!strcmp(d->args[i].name, name))
			return &d->args[i];
	return NULL;
}

/* The exit's result, and the strings that it could read and the enter could not. */
static void merge_exit(struct weir_decoded *out, const struct weir_decoded *exit)
{
	out->has_ret = true;
	out->ret = exit->args[0].i;
	for (uint32_t i = 1; i < exit->nargs; i++) {
		struct weir_arg *arg = arg_by_name(out, exit->args[i].name);

		if (arg)
			*arg = exit->args[i];
	}
}

int probes__decode_call(const struct weir_call *call, struct weir_decoded *out)
{
	struct weir_decoded exit;
	int err;

	if (call->exit) {
		err = probes__decode(call->exit, &exit);
		if (err || call->exit->type != WEIR_T_SYS_EXIT)
			return err ? err : -EBADMSG;
	}
	err = probes__decode(call->enter ? call->enter : call->exit, out);
	if (err)
		return err;
	out->name = "syscall";
	if (!call->enter) {
		out->nargs = 0;
		out->has_args = false;
	}
	if (call->exit)
		merge_exit(out, &exit);
	return 0;
}
