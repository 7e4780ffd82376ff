/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fence.h - what proves that nothing stamped at or before T is still to be published, for writers
 * that stamp first and publish later inside one RCU read section or with preemption off: a grace
 * period.
 *
 * A fence is a ticket: T is taken before the wait, and is good after it. Records stamped at or
 * before T lie below any ring's head that is read after fence__newest_ns() has said T.
 *
 * One fence serves all sources of a stream, and at most one ticket is in flight. Two threads may
 * use it: the stream's, and one that is in weir_fence__run(). Knows nothing of rings or order.
 */
#ifndef WEIR_SOURCE_FENCE_H
#define WEIR_SOURCE_FENCE_H

#include <weir/fence.h>

#include "source/clock.h"

#include <stdbool.h>
#include <stdint.h>

/* How to wait for a grace period. */
enum fence_door {
	FENCE_AUTO = 0,	  /* rcu, and membarrier where bpf(2) is refused */
	FENCE_RCU,	  /* update an element of a map of maps; needs CAP_BPF */
	FENCE_MEMBARRIER, /* membarrier(GLOBAL): at least two CPUs online, and no nohz_full */
	FENCE_CUSTOM,	  /* fence__open_custom() */
};

/* How long tickets took, from T on. Quantiles are the reader's to make, of each last_ns. */
struct fence_delay {
	uint64_t count;
	uint64_t last_ns, max_ns, sum_ns;
};

struct fence {
	enum fence_door door;
	int (*wait)(void *ctx); /* one grace period: 0, or a negative errno */
	void *ctx;
	const struct weir_clock *clock;
	int maps_fd, map_fd; /* rcu: the map of maps, and what its only element is */
	int event_fd;	     /* written whenever the stream should look again */
	int expedited_fd;    /* holds the lock on what fence__expedite() changed; -1: nothing */

	uint32_t word; /* FENCE_* bits of fence.c, and a futex */
	uint64_t newest_ns;
	struct fence_delay delay; /* written by whoever has the ticket */
};

/*
 * Borrows the clock until fence__close(); either thread may read it. Errors: EOPNOTSUPP, where
 * membarrier proves nothing (one CPU online, or nohz_full); bpf(2)'s, eventfd(2)'s. FENCE_AUTO
 * says what rcu said when both fail.
 */
int fence__open(struct fence *f, enum fence_door door, const struct weir_clock *clock);

/* With a door of the caller's: wait(ctx) returns after a grace period, or a negative errno. */
int fence__open_custom(struct fence *f, int (*wait)(void *ctx), void *ctx,
		       const struct weir_clock *clock);

/*
 * Stops the thread that serves and waits until it has left, which takes as long as its ticket.
 * Undoes fence__expedite().
 */
void fence__close(struct fence *f);

/* "rcu", "membarrier", "custom": what was opened, never "auto". */
const char *fence__door_name(const struct fence *f);

/*
 * One ticket, here and now: blocks. If a thread serves, it is asked instead and this returns 0 at
 * once, so that whoever looked at fence__is_served() just before the thread came is right as well.
 * Errors: EAGAIN, one CPU is online and the door is membarrier: nothing is proved, later may do;
 * else the door's.
 */
int fence__run(struct fence *f);

/* T of the newest ticket that is done; 0: none yet. Acquire: load heads after it. Never falls. */
uint64_t fence__newest_ns(const struct fence *f);

/* Does a thread serve? Then use fence__request(), never wait. */
bool fence__is_served(const struct fence *f);

/*
 * Ask the thread for a ticket whose T is taken after this call. Never blocks. Requests join,
 * except that one made while a ticket is in flight gets another right after it: that one's T is
 * too old.
 */
void fence__request(struct fence *f);

/*
 * For an edge-triggered epoll: an edge when a ticket of the thread's is done, and when the thread
 * has left, which may leave a request unanswered. Needs no read.
 */
static inline int fence__fd(const struct fence *f)
{
	return f->event_fd;
}

void fence__delay(const struct fence *f, struct fence_delay *out);

/* The rcu door alone, for who has a map of maps and waits once: its element stays what it is. */
int fence__update(int maps_fd, uint32_t key, int map_fd);

/*
 * Have the kernel hurry all its grace periods while this fence is open
 * (/sys/kernel/rcu_expedited): tickets get much shorter, and each interrupts all CPUs. To be
 * asked for by the administrator.
 *
 * The switch is the whole machine's and no counter, so one fence at a time owns it, by a lock on
 * the file. It is set to FENCE_EXPEDITED, and to 0 by fence__close(). A process that is killed
 * cannot do that: the lock goes with it, the value stays, and says by itself who left it there.
 * The next fence that is expedited takes it over and so puts it right.
 *
 * 0: it is on, by us or because the administrator has it on, who keeps it then. Errors: EBUSY,
 * somebody else has the lock, and grace periods are fast for as long as that one has use for it;
 * EACCES or another of open(2) or write(2). With /sys/kernel/rcu_normal on it does nothing.
 */
int fence__expedite(struct fence *f);

#define FENCE_EXPEDITED WEIR_EXPEDITED /* any value but 0 means on; this one says "weir" */

/* The public handle of a fence. */
static inline struct weir_fence *fence__handle(struct fence *f)
{
	return (struct weir_fence *)f;
}

static inline struct fence *fence__of(struct weir_fence *handle)
{
	return (struct fence *)handle;
}

#endif /* WEIR_SOURCE_FENCE_H */
