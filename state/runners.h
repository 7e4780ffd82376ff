/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * runners.h - the threads that have accounts, their processes, and what is left of those that are gone.
 *
 * A thread is (tid, start time), a process (pid, its leader's start). An account is never dropped: that
 * of a thread that leaves goes to its process, that of a process to all that were like it (user,
 * cgroup, container), so the sums of any two levels agree. Bytes stay under the cap: who has
 * ended leaves first, the oldest before the others, then who has not run for longest.
 */
#ifndef WEIR_STATE_RUNNERS_H
#define WEIR_STATE_RUNNERS_H

#include <stdbool.h>

#include "state/counts.h"
#include "state/list.h"
#include "state/names.h"
#include "state/tasks.h"

/* struct runner.flags */
#define RUNNER_USED	  (1u << 0) /* since it was last passed over for eviction */
#define RUNNER_NAMED	  (1u << 1) /* the task table has told who it is */
#define RUNNER_END_TOLD	  (1u << 2) /* a snapshot has shown it as ended */
#define RUNNER_HAS_TOTALS (1u << 3)

/* Who and where, as of the last event that told. */
struct runner_who {
	uint32_t uid;			 /* TASKS_UID_UNKNOWN */
	uint32_t ppid;			 /* 0: unknown or none */
	char name[WEIR_COMM_LEN];	 /* of the process; "": unknown */
	struct name *exe;		 /* NULL: unknown */
	struct name *cgroup, *container; /* NULL: unknown, none */
};

struct runner_proc {
	struct hash_node node; /* key: pid */
	struct account gone;   /* of its threads that have no entry any more */
	struct runner_who who;
	uint64_t start_ns; /* its leader's; 0: unknown */
	uint32_t pid;
	uint32_t threads; /* entries */
	uint32_t ended;	  /* of these */
	uint64_t end_ns;  /* the last end of a thread */
	struct list_node all;
};

struct runner {
	struct hash_node node; /* key: tid */
	struct account account;
	struct runner_proc *proc;
	uint64_t start_ns; /* 0: unknown */
	uint64_t exit_ns;  /* 0: it has not ended */
	uint64_t alive_ns; /* ends before that were another's */
	uint64_t left_ns;  /* its last switch away */
	uint64_t wait_ns;  /* runnable and waiting since, where wake-ups are told; 0: not */
	/* Of the settled switches away, the last: see waits.h. */
	uint64_t totals, totals_ns;
	uint32_t chains, chain; /* not settled: the first, and the last that was told; 0: none */
	uint32_t cpus;		/* that have it as their open slice */
	uint32_t tid;
	int32_t last_cpu; /* -1: has not run */
	uint8_t left;	  /* how: enum usage_state */
	uint16_t flags;
	char comm[WEIR_COMM_LEN];
	struct list_node life; /* running or ended */
};

/* What is left of processes of one kind. */
struct remains {
	struct hash_node node;
	struct account account;
	uint32_t uid;
	struct name *cgroup, *container;
	struct list_node all;
};

struct runners {
	struct budget budget;
	struct names names;
	struct delays_pool pool;
	struct hash by_tid, by_pid, remains;
	struct list_node running, ended, procs, remainders;
	struct runner others; /* those that there is no memory for */
	struct runner_proc others_proc;
	struct remains rest; /* of kinds that there is no memory for */
	struct tasks *tasks; /* who is who; borrowed; NULL: nobody tells */
	uint64_t evicted;
};

int runners__init(struct runners *runners, size_t cap_bytes, size_t taken_bytes,
		  struct tasks *tasks);
void runners__free(struct runners *runners);

/*
 * The thread with this start time, made if it is not known. pid 0: ask the task table, as of stamp_ns.
 * Never NULL: without memory it is `others`.
 */
struct runner *runners__get(struct runners *runners, uint32_t tid, uint32_t pid, uint64_t start_ns,
			    uint64_t stamp_ns);

/* Who has that tid now, whenever it began; made if nobody has. */
struct runner *runners__now(struct runners *runners, uint32_t tid, uint32_t pid, uint64_t stamp_ns);

/* NULL: not known. */
struct runner *runners__find(const struct runners *runners, uint32_t tid, uint64_t start_ns);

/* What the task table says of it at that stamp. */
void runners__describe(struct runners *runners, struct runner *runner, uint64_t stamp_ns);

void runners__end(struct runners *runners, struct runner *runner, uint64_t stamp_ns);

/* It goes on after all: another thread of its process has taken its place by exec. */
void runners__revive(struct runners *runners, struct runner *runner, uint64_t stamp_ns);

/* Let go of who ended before that time, has been told as ended, and is on no CPU. */
void runners__retire(struct runners *runners, uint64_t before_ns);

/* Let go of somebody, so that there is memory for others. false: there is nobody to let go of. */
bool runners__evict(struct runners *runners);

/* Zeroed. Without memory, who can leave does. NULL: nobody is left. */
void *runners__alloc(struct runners *runners, size_t size);

static inline bool runner__leads(const struct runner *runner)
{
	return runner->tid == runner->proc->pid;
}

static inline bool proc__ended(const struct runner_proc *proc)
{
	return proc->threads && proc->ended == proc->threads;
}

#endif /* WEIR_STATE_RUNNERS_H */
