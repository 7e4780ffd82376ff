/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * calls.h - system calls, put together from their two halves.
 *
 * Fed with events in stream order, it gives each call once: at its exit, or at the moment from which
 * on its exit can't be trusted to come. A call belongs to a thread; the halves may come from two
 * sources, since threads move between CPUs.
 *
 * Promises: every sys_enter and every sys_exit that was fed comes out in exactly one call; nothing
 * is guessed across a gap; at most `max_open` calls are kept, the oldest go first and are counted.
 * Events in, calls out: no I/O, no names, no clock.
 */
#ifndef WEIR_STATE_CALLS_H
#define WEIR_STATE_CALLS_H

#include <weir/decode.h>
#include <weir/event.h>
#include <weir/probes.h>

struct calls;

/* The call is borrowed: valid in the callback only. */
typedef int (*calls_fn)(void *ctx, const struct weir_call *call);

/* max_open 0: 65,536. NULL: ENOMEM. */
struct calls *calls__new(size_t max_open, calls_fn fn, void *ctx);
void calls__free(struct calls *calls); /* drops what is open: call calls__finish() before */

/*
 * Feed any event: sys_enter, sys_exit, fork, exec, exit and gaps mean something, the others nothing. Calls
 * that this ends are handed to the callback before it returns; its error is passed on. Errors of its
 * own: EBADMSG, the payload is too short, nothing was changed; ENOMEM: the call is handed out at once
 * as WEIR_CALL_OPEN.
 */
int calls__apply(struct calls *calls, const struct weir_event *event);

/*
 * A thread was found in a call: its enter, made up from that, with the time of the look as its stamp
 * and WEIR_SOURCE_NONE. To be told before the first event; what the stream says of the thread counts
 * more. -ENOMEM: the call is not known.
 */
int calls__found(struct calls *calls, const struct weir_event *enter);

/* The trace ends at stamp_ns: hand out what is open, oldest first. */
int calls__finish(struct calls *calls, uint64_t stamp_ns);

uint64_t calls__evicted(const struct calls *calls);

#endif /* WEIR_STATE_CALLS_H */
