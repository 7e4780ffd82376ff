/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * table.h - threads and processes: which identities there are, and how long each lives.
 *
 * An identity is a thread from its start to its end. Several can have had the same tid; those stand
 * in one hash chain, newest first. What they are called, and by which event, is not decided here.
 *
 * Invariants:
 *  - a process has a leader, the identity with tid == pid, for as long as it has any thread. The
 *    kernel keeps a leader that exited first as a zombie; and where the leader is not known, one
 *    without a start time stands in;
 *  - of the identities of a tid, only the newest can be running;
 *  - a thread is on one of two lists: `running`, the least recently used first, or `ended`, in the
 *    order in which their ends became known. A leader ends with its process.
 */
#ifndef WEIR_STATE_TABLE_H
#define WEIR_STATE_TABLE_H

#include <stdbool.h>

#include <weir/probes.h>

#include "state/cgroups.h"

/*
 * How long an entry is kept after its exit event. A task is not done with it: it still sends SIGCHLD
 * to its parent, a traced system call or a wake-up can name it, and its last switch-out comes when
 * the scheduler takes it off the CPU: at once as a rule, later by the length of the theft where a
 * virtual CPU is stolen (145 ms seen). A second is beyond all of these and short of any reuse of the
 * tid, except for a counter of pids that has wrapped, which a new identity tells by itself.
 */
#define TABLE_LINGER_NS UINT64_C(1000000000)

#define TABLE_NEVER_NS UINT64_MAX /* end of what has not ended */

struct thread;

struct proc {
	uint32_t pid, ppid, uid;
	uint32_t nr_threads; /* entries */
	uint32_t nr_running; /* of these, not ended */
	struct name *exe;
	uint64_t image_ns; /* stamp of exe, uid and ppid: of the last fork or exec */
	uint64_t end_ns;
	struct thread *leader;
	struct list_node threads;
};

/* struct thread.flags */
#define THREAD_USED	(1u << 0) /* since it was last passed over for eviction */
#define THREAD_HAS_COMM (1u << 1)
#define THREAD_STARTED	(1u << 2) /* start_ns is known */

/* What a lookup reads stands in front. */
struct thread {
	struct hash_node node; /* key: tid */
	uint64_t from_ns;      /* its start, or the first stamp at which it was seen */
	uint64_t exit_ns;
	struct proc *proc;
	struct cgroup_set *cgroups; /* NULL: unknown */
	char comm[WEIR_COMM_LEN];   /* the last byte is NUL */
	uint32_t flags;
	uint32_t tid;
	uint64_t start_ns;
	uint64_t comm_ns, cgroups_ns; /* stamps of these facts; a seed's is 0 */
	struct list_node life;	      /* running or ended */
	struct list_node sibling;     /* proc->threads */
};

struct table {
	struct budget budget;
	struct names names;
	struct cgroups cgroups;
	struct hash by_tid;
	struct list_node running, ended;
	uint64_t evicted, retired;
};

/* taken_bytes: what the caller has allocated already, and counts here. */
int table__init(struct table *table, size_t cap_bytes, size_t taken_bytes);
void table__free(struct table *table);

/* Evict until `bytes` more fit. Only here do entries go for want of room. -ENOMEM: they never fit. */
int table__make_room(struct table *table, size_t bytes);

/* Who had tid at that stamp, running or not longer gone than the linger. NULL: nobody known. */
struct thread *table__at(const struct table *table, uint32_t tid, uint64_t stamp_ns);

/* The newest identity that began at or before that stamp, however long gone. */
struct thread *table__begun(const struct table *table, uint32_t tid, uint64_t stamp_ns);

/*
 * The identity of this process and tid that has this start time; or that was seen before anybody
 * told its start, and has it from now on. NULL: neither.
 */
struct thread *table__started(const struct table *table, const struct weir_task_id *id,
			      uint64_t start_ns);

/*
 * A new identity, from its start on, or from seen_ns if start_ns is 0: unknown. With proc NULL it
 * leads a process of its own. The older identity of the tid has ended by now, if nobody had told;
 * and where a newer one is known, the new identity has ended as that one began. NULL: no memory.
 */
struct thread *table__add(struct table *table, struct proc *proc, uint32_t tid, uint64_t start_ns,
			  uint64_t seen_ns);

/* What has ended already keeps its end. */
void table__end_thread(struct table *table, struct thread *thread, uint64_t stamp_ns);
void table__end_proc(struct table *table, struct proc *proc, uint64_t stamp_ns);

/* The leader runs after all, unless its tid has gone to another identity. */
void table__revive_leader(struct table *table, struct proc *proc);

void table__retire(struct table *table, uint64_t watermark_ns);

static inline bool thread__leads(const struct thread *thread)
{
	return thread->proc->leader == thread;
}

/* When its tid became free: a leader's is not before its whole process is gone. */
static inline uint64_t thread__end_ns(const struct thread *thread)
{
	return thread__leads(thread) ? thread->proc->end_ns : thread->exit_ns;
}

/* The last stamp at which events may still name it. */
static inline uint64_t thread__gone_ns(const struct thread *thread)
{
	uint64_t end_ns = thread__end_ns(thread);

	return end_ns > TABLE_NEVER_NS - TABLE_LINGER_NS ? TABLE_NEVER_NS
							 : end_ns + TABLE_LINGER_NS;
}

#endif /* WEIR_STATE_TABLE_H */
