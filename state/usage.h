/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage.h - who had the CPUs, for how long, and who waited for them.
 *
 * Switches in, table out. Fed by the lean probe CPU by CPU, or by a stream with WEIR_T_SWITCH and
 * WEIR_T_WAKEUP records; never by both. At each snapshot, for each CPU,
 *
 *	tasks + idle + gap = elapsed
 *
 * to the nanosecond, and the sum over all rows is that over all CPUs: both are checked, and the
 * differences told. Time in which something was lost, a CPU was away or the kernel has hidden a switch
 * is a gap, and nobody's.
 *
 * A thread is (tid, start time). One that has ended stays until a snapshot has shown it, and its time
 * stays for ever: what leaves, for that or for want of memory, is summed up in rows of its kind.
 *
 * No system call, no clock; no allocation for a switch, unless it brings a thread that was not known.
 */
#ifndef WEIR_USAGE_H
#define WEIR_USAGE_H

#include <weir/event.h>
#include <weir/lean.h>
#include <weir/probes.h>

#include "state/counts.h"
#include "state/tasks.h"

struct usage;

#define USAGE_CPUS_MAX 8192

/*
 * tasks: asked for names, and for start times where switches don't tell them; borrowed, may be NULL.
 * cap_bytes 0: 64 MiB, least 256 KiB. NULL and errno (EINVAL, ENOMEM).
 */
struct usage *usage__new(struct tasks *tasks, size_t cap_bytes);
void usage__free(struct usage *usage);

/* Accounts begin at that stamp. Before anything is fed. */
void usage__begin(struct usage *usage, uint64_t begin_ns);

/* A thread that is there: it has a row before it runs. */
void usage__seed(struct usage *usage, const struct weir_seed *seed);

/*
 * Any event in stream order, after tasks__apply(): fork and exit keep what the task table knows of a
 * thread for as long as its account lives.
 */
void usage__apply(struct usage *usage, const struct weir_event *event);

/* ---- the lean probe: as struct weir_lanes_reader has it --------------------------------------- */

void usage__records(struct usage *usage, int cpu, const struct weir_record *first, size_t stride,
		    size_t count);
void usage__gap(struct usage *usage, int cpu, uint64_t from_ns, uint64_t to_ns, uint64_t lost);
void usage__watermark(struct usage *usage, int cpu, uint64_t watermark_ns, bool away);

/* All CPUs were read once. */
void usage__polled(struct usage *usage);

/* ---- a stream --------------------------------------------------------------------------------- */

/* Any event in stream order, after usage__apply(). Errors: EBADMSG, the payload is too short. */
int usage__sched(struct usage *usage, const struct weir_event *event);

/* The stream's watermark: of all CPUs. */
void usage__passed(struct usage *usage, uint64_t watermark_ns);

/* A CPU that may have no event at all. */
void usage__cpu(struct usage *usage, uint32_t cpu);

/* ---- what it comes to ------------------------------------------------------------------------- */

enum usage_kind {
	USAGE_THREAD = 0,
	USAGE_GONE_THREADS, /* of a process that goes on, summed up */
	USAGE_GONE, /* of processes that are over, summed up: of one user, cgroup and container */
	USAGE_IDLE, /* of one CPU */
	USAGE_GAP,  /* of one CPU */
};

enum usage_state {
	USAGE_SLEEPING = 0,
	USAGE_RUNNING,
	USAGE_WAITING, /* it could run */
	USAGE_BLOCKED, /* uninterruptible */
	USAGE_STOPPED,
	USAGE_EXITED,
};

struct usage_row {
	enum usage_kind kind;
	enum usage_state state;
	bool ended;	   /* and it had not at the last snapshot */
	uint32_t pid, tid; /* of a thread; pid: of USAGE_GONE_THREADS, too */
	int32_t cpu;	   /* of USAGE_IDLE and USAGE_GAP; of a thread, where it ran last; -1 */
	uint32_t uid;	   /* TASKS_UID_UNKNOWN */
	uint32_t ppid;	   /* 0: unknown or none */
	uint64_t start_ns, process_start_ns; /* 0: unknown */
	char comm[WEIR_COMM_LEN];	     /* of the thread; "": unknown */
	char name[WEIR_COMM_LEN];	     /* of its process */
	const char *exe;		     /* of its process; NULL: unknown */
	const char *cgroup, *container;	     /* NULL: unknown, none */
	struct usage_counts now; /* in the interval; time_ns can be negative: see slices.h */
	struct usage_counts total;
	struct delays *delays; /* in the interval; NULL: none */
};

struct usage_cpu_row {
	uint32_t cpu;
	bool away;
	int64_t tasks_ns, idle_ns, gap_ns; /* in the interval */
	struct usage_counts now, total;	   /* of all tasks on it */
	struct delays *delays;
};

struct usage_trouble {
	uint64_t lost;	     /* switches that had no room */
	uint64_t unseen;     /* switches that the kernel did not show */
	uint64_t steps_back; /* stamps that can't be */
	uint64_t broken;     /* records that make no sense */
};

/* Valid until the next call that takes one, or frees. */
struct usage_snapshot {
	uint64_t begin_ns, from_ns, to_ns; /* of all accounts; of the interval (from, to] */
	const struct usage_row *rows;
	size_t nr_rows;
	const struct usage_cpu_row *cpus;
	size_t nr_cpus;
	/*
	 * tasks + idle + gap less elapsed, of the CPU where that is farthest from 0; and the sum of all
	 * rows less that of all CPUs. Since the beginning and in the interval. All 0, or a fault of ours.
	 */
	int64_t cpu_difference_ns, rows_difference_ns, interval_difference_ns;
	uint64_t switches;	      /* told, in the interval */
	uint32_t counters;	      /* bits of those that could be read, anywhere at any time */
	struct usage_trouble trouble; /* since the beginning */
	uint64_t evicted; /* rows that were summed up for want of memory, since the beginning */
	size_t bytes;
};

/*
 * The interval from the last snapshot to the watermark, or to the last stamp if that is later. NULL:
 * no memory; nothing is lost, the interval goes on.
 */
const struct usage_snapshot *usage__take(struct usage *usage);

/* ---- rows, put together ----------------------------------------------------------------------- */

enum usage_by {
	USAGE_BY_PROCESS = 0,
	USAGE_BY_THREAD,
	USAGE_BY_CGROUP,
	USAGE_BY_CONTAINER,
	USAGE_BY_USER,
	USAGE_BY_CPU,
};

struct usage_group {
	struct usage_row row; /* kind, state, names and ids: of the group, as far as it has them */
	uint32_t threads, processes; /* that have an entry */
	uint32_t exited;	     /* of these threads */
};

/* Valid until it is grouped again. Owns its memory; borrows the snapshot, which has to live as long. */
struct usage_groups {
	struct usage_group *at;
	size_t count;
	size_t room;
	uint32_t *slots;
	struct budget budget;
	struct delays_pool pool; /* of groups that have waited */
};

/* Does a row belong? NULL: all do. Idle and gaps are not asked for. */
typedef bool (*usage_filter)(const void *ctx, const struct usage_row *row);

/*
 * One group for each thread, process, ...; and in front of them one for all idle time and one for all
 * gaps (by CPU: tasks alone, each CPU has its own idle and gap in the snapshot). 0 or -ENOMEM.
 */
int usage__group(struct usage_groups *groups, const struct usage_snapshot *snapshot,
		 enum usage_by by, usage_filter filter, const void *ctx);
void usage__free_groups(struct usage_groups *groups);

#endif /* WEIR_USAGE_H */
