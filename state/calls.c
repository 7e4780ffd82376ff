/* SPDX-License-Identifier: BSD-2-Clause */
#include "state/calls.h"

#include "state/budget.h"
#include "state/hash.h"
#include "state/list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_MAX_OPEN 65536
#define FIRST_BITS	 8
#define PLAIN_BYTES	 sizeof(struct weir_sys_enter) /* a call without strings */

/*
 * A thread that has been seen in a call. It stays when its call ends, with its buffer: so a call
 * costs no allocation, only a thread's first one does.
 */
struct thread {
	struct hash_node node; /* by tid */
	struct list_node
		order; /* by enter, oldest first; those without an open call stand behind */
	struct weir_event enter;
	bool open;
	bool found; /* the open call has no record that it was entered by */
	bool newborn;
	uint32_t cap; /* bytes at payload */
	void *payload;
};

struct calls {
	struct budget budget;
	struct hash threads;
	struct list_node open, idle;
	size_t nr_open, max_open;
	uint64_t evicted;
	calls_fn fn;
	void *ctx;
};

struct calls *calls__new(size_t max_open, calls_fn fn, void *ctx)
{
	struct calls *calls = calloc(1, sizeof(*calls));

	if (!calls)
		return NULL;
	calls->budget.cap = SIZE_MAX;
	calls->max_open = max_open ? max_open : DEFAULT_MAX_OPEN;
	calls->fn = fn;
	calls->ctx = ctx;
	list__init(&calls->open);
	list__init(&calls->idle);
	if (hash__init(&calls->threads, &calls->budget, FIRST_BITS)) {
		free(calls);
		errno = ENOMEM;
		return NULL;
	}
	return calls;
}

static struct thread *thread_of(struct list_node *node)
{
	return list__entry(node, struct thread, order);
}

static void forget(struct calls *calls, struct thread *thread)
{
	if (thread->open)
		calls->nr_open--;
	hash__remove(&calls->threads, &thread->node);
	list__del(&thread->order);
	budget__free(&calls->budget, thread->payload);
	budget__free(&calls->budget, thread);
}

void calls__free(struct calls *calls)
{
	if (!calls)
		return;
	while (!list__empty(&calls->open))
		forget(calls, thread_of(calls->open.next));
	while (!list__empty(&calls->idle))
		forget(calls, thread_of(calls->idle.next));
	hash__free(&calls->threads);
	free(calls);
}

static struct thread *find(struct calls *calls, uint32_t tid)
{
	struct hash_node *node = hash__first(&calls->threads, tid);

	while (node && node->key != tid)
		node = node->next;
	return (struct thread *)node;
}

static struct thread *find_or_add(struct calls *calls, uint32_t tid)
{
	struct thread *thread = find(calls, tid);

	if (thread)
		return thread;
	thread = budget__alloc(&calls->budget, sizeof(*thread));
	if (!thread)
		return NULL;
	hash__insert(&calls->threads, &thread->node, tid);
	hash__grow(&calls->threads);
	list__init(&thread->order);
	list__add_tail(&calls->idle, &thread->order);
	return thread;
}

static void close_call(struct calls *calls, struct thread *thread)
{
	thread->open = false;
	calls->nr_open--;
	list__del(&thread->order);
	list__add_tail(&calls->idle, &thread->order);
}

/* Hand an open call out, and close it: it stands where the event does that ended it. */
static int end_call(struct calls *calls, struct thread *thread, enum weir_call_end end,
		    const struct weir_event *at)
{
	struct weir_call view = {
		.end = end,
		.enter = &thread->enter,
		.exit = end == WEIR_CALL_RETURNED ? at : NULL,
		.stamp_ns = at->stamp_ns,
		.source = at->source,
		.mark = at->mark,
		.found = thread->found,
	};

	close_call(calls, thread);
	return calls->fn(calls->ctx, &view);
}

/* Threads that are in no call are only a saving: as many as may be open are kept. */
static void trim_idle(struct calls *calls)
{
	while (calls->threads.count > calls->max_open && !list__empty(&calls->idle))
		forget(calls, thread_of(calls->idle.next));
}

static int make_room(struct calls *calls, const struct weir_event *event)
{
	int err = 0;

	while (calls->nr_open >= calls->max_open && !err) {
		calls->evicted++;
		err = end_call(calls, thread_of(calls->open.next), WEIR_CALL_OPEN, event);
	}
	trim_idle(calls);
	return err;
}

static int keep(struct calls *calls, struct thread *thread, const struct weir_event *event)
{
	uint32_t cap = event->len > PLAIN_BYTES ? event->len : PLAIN_BYTES;

	if (cap > thread->cap) {
		void *grown = budget__alloc(&calls->budget, cap);

		if (!grown)
			return -ENOMEM;
		budget__free(&calls->budget, thread->payload);
		thread->payload = grown;
		thread->cap = cap;
	}
	memcpy(thread->payload, event->data, event->len);
	thread->enter = *event;
	thread->enter.data = thread->payload;
	thread->open = true;
	thread->found = false;
	thread->newborn = false;
	calls->nr_open++;
	list__del(&thread->order);
	list__add_tail(&calls->open, &thread->order);
	return 0;
}

static int hand_out_at_once(struct calls *calls, const struct weir_event *event)
{
	struct weir_call view = {
		.end = WEIR_CALL_OPEN,
		.enter = event,
		.stamp_ns = event->stamp_ns,
		.source = event->source,
		.mark = event->mark,
	};
	int err = calls->fn(calls->ctx, &view);

	return err ? err : -ENOMEM;
}

static int on_enter(struct calls *calls, const struct weir_event *event)
{
	const struct weir_sys_enter *enter = event->data;
	struct thread *thread;
	int err;

	err = make_room(calls, event);
	if (err)
		return err;
	thread = find_or_add(calls, enter->id.tid);
	if (!thread)
		return hand_out_at_once(calls, event);
	/* It can't be in two calls: the exit of the first never came, or it was found in this one. */
	if (thread->open && thread->found)
		close_call(calls, thread);
	else if (thread->open)
		err = end_call(calls, thread, WEIR_CALL_BROKEN, event);
	if (err)
		return err;
	return keep(calls, thread, event) ? hand_out_at_once(calls, event) : 0;
}

#define NR_NONE 0xffffffffu /* what the kernel has for a call's number once sigreturn has run */

static bool belongs(const struct thread *thread, const struct weir_event *event)
{
	const struct weir_sys_enter *enter = thread->enter.data;
	const struct weir_sys_exit *exit = event->data;

	/* Only a late one, or one after a stamp that was ahead of the clock, can lie before its enter. */
	if (event->stamp_ns < thread->enter.stamp_ns)
		return false;
	return exit->nr == NR_NONE || (enter->nr == exit->nr && enter->abi == exit->abi);
}

int calls__found(struct calls *calls, const struct weir_event *enter)
{
	const struct weir_sys_enter *record = enter->data;
	struct thread *thread = find_or_add(calls, record->id.tid);

	if (!thread || keep(calls, thread, enter))
		return -ENOMEM;
	thread->found = true;
	return 0;
}

/*
 * Does this exit leave the found call untouched? It is of an earlier one, if it lies before the look;
 * another call after the look means that what was found was over by then.
 */
static bool passes_found(struct calls *calls, struct thread *thread, const struct weir_event *event)
{
	if (!thread->open || !thread->found)
		return false;
	if (event->stamp_ns < thread->enter.stamp_ns)
		return true;
	if (belongs(thread, event))
		return false;
	close_call(calls, thread);
	return true;
}

static int on_exit_of_call(struct calls *calls, const struct weir_event *event)
{
	const struct weir_sys_exit *exit = event->data;
	struct thread *thread = find(calls, exit->id.tid);
	struct weir_call alone = {
		.end = thread && thread->newborn ? WEIR_CALL_BORN : WEIR_CALL_NO_ENTER,
		.exit = event,
		.stamp_ns = event->stamp_ns,
		.source = event->source,
		.mark = event->mark,
	};
	int err = 0;

	if (thread)
		thread->newborn = false;
	if (thread && passes_found(calls, thread, event))
		return calls->fn(calls->ctx, &alone);
	if (thread && thread->open && belongs(thread, event))
		return end_call(calls, thread, WEIR_CALL_RETURNED, event);
	if (thread && thread->open)
		err = end_call(calls, thread, WEIR_CALL_BROKEN, event);
	return err ? err : calls->fn(calls->ctx, &alone);
}

/* A child begins in the middle of the call that made it. */
static int on_fork(struct calls *calls, const struct weir_event *event)
{
	const struct weir_fork *fork = event->data;
	struct thread *child;
	int err = 0;

	trim_idle(calls);
	child = find_or_add(calls, fork->child.tid);
	if (!child)
		return -ENOMEM;
	if (child->open)
		err = end_call(calls, child, WEIR_CALL_BROKEN, event);
	child->newborn = true;
	return err;
}

/* The thread that calls exec goes on under its leader's tid, and so does its call. */
static int on_exec(struct calls *calls, const struct weir_event *event)
{
	const struct weir_exec *exec = event->data;
	struct thread *caller, *leader;
	int err = 0;

	if (exec->old_tid == exec->id.tid)
		return 0;
	leader = find(calls, exec->id.tid);
	if (leader && leader->open)
		err = end_call(calls, leader, WEIR_CALL_NO_RETURN, event);
	if (leader)
		forget(calls, leader);
	caller = find(calls, exec->old_tid);
	if (!caller)
		return err;
	hash__remove(&calls->threads, &caller->node);
	hash__insert(&calls->threads, &caller->node, exec->id.tid);
	return err;
}

static int on_thread_end(struct calls *calls, const struct weir_event *event)
{
	const struct weir_exit *exit = event->data;
	struct thread *thread = find(calls, exit->id.tid);
	int err = 0;

	if (!thread)
		return 0;
	if (thread->open)
		err = end_call(calls, thread, WEIR_CALL_NO_RETURN, event);
	forget(calls, thread);
	return err;
}

/* What a gap swallowed may be the exit of any call that was open there. */
static int on_gap(struct calls *calls, const struct weir_event *event)
{
	const struct weir_gap *gap = event->data;
	struct list_node *node = calls->open.next;
	int err = 0;

	if (!gap->lost && gap->bound == WEIR_BOUND_EXACT)
		return 0;
	while (node != &calls->open && !err) {
		struct thread *thread = thread_of(node);

		node = node->next;
		if (event->source == WEIR_SOURCE_NONE || thread->enter.source == event->source ||
		    thread->found)
			err = end_call(calls, thread, WEIR_CALL_BROKEN, event);
	}
	return err;
}

int calls__apply(struct calls *calls, const struct weir_event *event)
{
	static const struct {
		uint16_t type;
		uint32_t least;
		int (*apply)(struct calls *calls, const struct weir_event *event);
	} kinds[] = {
		{WEIR_T_SYS_ENTER, sizeof(struct weir_sys_enter), on_enter},
		{WEIR_T_SYS_EXIT, sizeof(struct weir_sys_exit), on_exit_of_call},
		{WEIR_T_FORK, sizeof(struct weir_fork), on_fork},
		{WEIR_T_EXEC, sizeof(struct weir_exec), on_exec},
		{WEIR_T_EXIT, sizeof(struct weir_exit), on_thread_end},
	};

	if (event->kind == WEIR_KIND_GAP)
		return on_gap(calls, event);
	if (event->kind != WEIR_KIND_RECORD)
		return 0;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (kinds[i].type != event->type)
			continue;
		if (event->len < kinds[i].least)
			return -EBADMSG;
		return kinds[i].apply(calls, event);
	}
	return 0;
}

int calls__finish(struct calls *calls, uint64_t stamp_ns)
{
	/* Of the whole machine: all have one stamp, and the oldest need not be of the lowest source. */
	const struct weir_event end = {.stamp_ns = stamp_ns, .source = WEIR_SOURCE_NONE};
	int err = 0;

	while (!list__empty(&calls->open) && !err) {
		err = end_call(calls, thread_of(calls->open.next), WEIR_CALL_OPEN, &end);
	}
	return err;
}

uint64_t calls__evicted(const struct calls *calls)
{
	return calls->evicted;
}
