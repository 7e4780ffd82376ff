// SPDX-License-Identifier: BSD-2-Clause
/*
 * select.c - from the names that a user gives to what the probes have to record.
 *
 * Owns no names: events and arguments are those of fields.h, calls those of syscalls.h. Promises
 * that what probes__list() shows is what probes__select() takes, and that an error names what was
 * not understood. Must not know how a command line is written.
 */
#include "probes/probes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "probes/classes.h"
#include "probes/fields.h"
#include "probes/nearest.h"
#include "probes/syscalls.h"

#define NAME_LEN_MAX 40 /* longer words are like no name */

static bool is_event(const struct record_desc *desc, const char *name)
{
	for (size_t i = 0; i < sizeof(desc->names) / sizeof(desc->names[0]); i++) {
		if (desc->names[i] && !strcmp(desc->names[i], name))
			return true;
	}
	return false;
}

static bool select_records(struct probes_selection *sel, enum weir_group group, const char *name,
			   bool wanted)
{
	bool found = false;

	for (unsigned int type = 0; type < FIELDS_TYPES; type++) {
		const struct record_desc *desc = fields__find(type);

		if (!desc || desc->group != group || (name && !is_event(desc, name)))
			continue;
		if (wanted)
			sel->types |= 1u << type;
		else
			sel->types &= ~(1u << type);
		found = true;
	}
	return found;
}

/* In every ABI of this machine: a 32-bit program's openat is an openat. */
static bool select_call(struct probes_selection *sel, const struct syscall_desc *call, bool wanted)
{
	bool found = false;

	for (unsigned int abi = 0; abi < SYSCALL_ABIS; abi++) {
		enum syscall_numbering numbering = syscalls__numbering(abi);
		int nr = numbering == SYSCALL_NO_NUMBERING ? -1 : call->nr[numbering];

		if (nr < 0)
			continue;
		if (wanted)
			sel->syscalls[abi][nr / 64] |= 1ull << (nr % 64);
		else
			sel->syscalls[abi][nr / 64] &= ~(1ull << (nr % 64));
		found = true;
	}
	return found;
}

/* A call whose arguments differ between ABIs has several descriptions, one behind the other. */
static bool select_calls(struct probes_selection *sel, const char *name, bool wanted)
{
	const struct syscall_desc *call, *end;
	bool found = false;
	size_t count;

	if (!name) {
		memset(sel->syscalls, wanted ? 0xff : 0, sizeof(sel->syscalls));
		return true;
	}
	end = syscalls__all(&count) + count;
	call = syscalls__by_name(name);
	for (; call && call < end && !strcmp(call->name, name); call++)
		found |= select_call(sel, call, wanted);
	return found;
}

static void select_class(struct probes_selection *sel, int class, bool wanted)
{
	const struct syscall_desc *calls;
	size_t count;

	calls = syscalls__all(&count);
	for (size_t i = 0; i < count; i++)
		if (classes__has(class, &calls[i]))
			select_call(sel, &calls[i], wanted);
}

static enum weir_group find_group(const char *name)
{
	for (unsigned int group = WEIR_GROUP_NONE + 1; group < WEIR_GROUPS; group++) {
		if (!strcmp(fields__group_name(group), name))
			return group;
	}
	return WEIR_GROUP_NONE;
}

static int list_records(probes_list_fn fn, void *ctx)
{
	const char *names[WEIR_ARGS_MAX];

	for (unsigned int type = 0; type < FIELDS_TYPES; type++) {
		const struct record_desc *desc = fields__find(type);
		struct probes_item item = {.args = names};
		int err;

		if (!desc || !desc->names[0])
			continue;
		item.group = fields__group_name(desc->group);
		item.event = desc->names[0];
		item.also = desc->names[1];
		for (unsigned int i = 0; i < desc->nr_fields; i++) {
			if (desc->fields[i].use & FIELD_ARG)
				names[item.nargs++] = desc->fields[i].name;
		}
		err = fn(ctx, &item);
		if (err)
			return err;
	}
	return 0;
}

/* The first ABI of this machine that has the call; SYSCALL_ABIS: none. */
static unsigned int first_abi(const struct syscall_desc *call)
{
	unsigned int abi;

	for (abi = 0; abi < SYSCALL_ABIS; abi++) {
		enum syscall_numbering numbering = syscalls__numbering(abi);

		if (numbering != SYSCALL_NO_NUMBERING && call->nr[numbering] >= 0)
			break;
	}
	return abi;
}

/* Of the `count` descriptions of one call, the one that the first ABI uses; NULL: none is. */
static const struct syscall_desc *first_of(const struct syscall_desc *calls, size_t count)
{
	const struct syscall_desc *first = NULL;

	for (size_t i = 0; i < count; i++) {
		if (first_abi(&calls[i]) < (first ? first_abi(first) : SYSCALL_ABIS))
			first = &calls[i];
	}
	return first;
}

static int list_call(const struct syscall_desc *call, probes_list_fn fn, void *ctx)
{
	const char *names[SYSCALL_ARGS_MAX];
	struct probes_item item = {
		.group = fields__group_name(WEIR_GROUP_SYS),
		.event = call->name,
		.abi = syscalls__abi_name(first_abi(call)),
		.nargs = call->nargs,
		.args = names,
	};

	for (unsigned int i = 0; i < call->nargs; i++)
		names[i] = call->args[i].name;
	return fn(ctx, &item);
}

static int list_calls(probes_list_fn fn, void *ctx)
{
	const struct syscall_desc *calls, *call;
	size_t count, same;
	int err;

	calls = syscalls__all(&count);
	for (size_t i = 0; i < count; i += same) {
		for (same = 1; i + same < count; same++) {
			if (strcmp(calls[i + same].name, calls[i].name) != 0)
				break;
		}
		call = first_of(&calls[i], same);
		err = call ? list_call(call, fn, ctx) : 0;
		if (err)
			return err;
	}
	return 0;
}

int probes__list(probes_list_fn fn, void *ctx)
{
	int err = list_records(fn, ctx);

	return err ? err : list_calls(fn, ctx);
}

/* The known name that looks most like what the user wrote. */
struct known {
	const char *group; /* look in this one only; NULL: in all */
	struct nearest nearest;
	char best[2 * NAME_LEN_MAX];
};

static void spell(char *out, size_t len, const char *group, const char *event)
{
	snprintf(out, len, "%s%s%s", group, event ? ":" : "", event ? event : "");
}

static void compare(struct known *known, const char *group, const char *event)
{
	if (nearest__is(&known->nearest, event ? event : group))
		spell(known->best, sizeof(known->best), group, event);
}

static int compare_item(void *ctx, const struct probes_item *item)
{
	struct known *known = ctx;

	if (known->group && strcmp(known->group, item->group) != 0)
		return 0;
	compare(known, item->group, item->event);
	if (item->also)
		compare(known, item->group, item->also);
	return 0;
}

static void compare_groups(struct known *known)
{
	for (unsigned int group = WEIR_GROUP_NONE + 1; group < WEIR_GROUPS; group++)
		compare(known, fields__group_name(group), NULL);
}

static int explain(const char *group, const char *name, char *err, size_t err_len)
{
	struct known known = {.nearest = nearest__to(name ? name : group)};
	char wanted[2 * NAME_LEN_MAX];

	if (find_group(group) != WEIR_GROUP_NONE)
		known.group = group;
	else if (!name)
		compare_groups(&known);
	probes__list(compare_item, &known);
	spell(wanted, sizeof(wanted), group, name);
	if (known.best[0])
		snprintf(err, err_len, "no event is called '%s'; did you mean '%s'?", wanted,
			 known.best);
	else
		snprintf(err, err_len, "no event is called '%s'", wanted);
	return -ENOENT;
}

static int explain_class(const char *class, char *err, size_t err_len)
{
	int len = snprintf(err, err_len, "there is no class '%s', but", class);

	for (unsigned int i = 0; classes__name(i); i++)
		if (len >= 0 && (size_t)len < err_len)
			len += snprintf(err + len, err_len - (size_t)len, " %%%s",
					classes__name(i));
	return -ENOENT;
}

/* "%file", or "sys:%file" */
static int choose_class(struct probes_selection *sel, const char *class, bool wanted, char *err,
			size_t err_len)
{
	int id = classes__find(class + 1);

	if (id < 0)
		return explain_class(class, err, err_len);
	select_class(sel, id, wanted);
	if (wanted) {
		select_records(sel, WEIR_GROUP_SYS, NULL, true);
		sel->groups |= 1u << WEIR_GROUP_SYS;
	}
	return 0;
}

int probes__choose(struct probes_selection *sel, const char *group, const char *name, bool wanted,
		   char *err, size_t err_len)
{
	enum weir_group id;

	if (group[0] == '%' && !name)
		return choose_class(sel, group, wanted, err, err_len);
	id = find_group(group);
	if (id == WEIR_GROUP_NONE)
		return explain(group, name, err, err_len);
	if (id == WEIR_GROUP_SYS && name && name[0] == '%')
		return choose_class(sel, name, wanted, err, err_len);
	if (id == WEIR_GROUP_SYS && !select_calls(sel, name, wanted))
		return explain(group, name, err, err_len);
	/* A call less is not the whole group less. */
	if (id != WEIR_GROUP_SYS || wanted || !name)
		if (!select_records(sel, id, id == WEIR_GROUP_SYS ? NULL : name, wanted))
			return explain(group, name, err, err_len);
	if (wanted)
		sel->groups |= 1u << id;
	return 0;
}

int probes__select(struct probes_selection *sel, const char *group, const char *name, char *err,
		   size_t err_len)
{
	return probes__choose(sel, group, name, true, err, err_len);
}
