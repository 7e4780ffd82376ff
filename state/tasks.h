/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tasks.h - who was who: threads and processes as they were at a stamp.
 *
 * Events in, table out. Fed with lifecycle records in stream order (and a seed of what ran before),
 * so that a lookup during an event's callback tells what was true at that event's stamp. Keyed by
 * (tid, start time): a reused pid is another task. Never grows past its cap: exited entries go
 * first, the oldest before the others, then the least recently used; evictions are counted.
 *
 * A task whose fork was lost is made from the first event that names it, with what that event
 * tells. A fact is replaced only by one that is not older, so that a late event does no harm.
 */
#ifndef WEIR_TASKS_H
#define WEIR_TASKS_H

#include <weir/event.h>
#include <weir/probes.h>

struct tasks;

struct tasks_stats {
	uint64_t entries; /* threads, those that have exited and still wait included */
	uint64_t bytes;	  /* all memory of the table, as the heap rounds it; never above the cap */
	uint64_t evicted; /* entries that left for want of room */
	uint64_t retired; /* entries that left because their task was over */
};

#define TASKS_UID_UNKNOWN UINT32_MAX

/* What is known of a thread; strings belong to the table and live until the next change to it. */
struct task_view {
	uint32_t pid, tid;
	uint64_t start_ns;     /* 0: unknown */
	const char *comm;      /* of the thread; NULL: unknown */
	const char *name;      /* of the process: its leader's comm; NULL: unknown */
	const char *exe;       /* of the process; NULL: unknown */
	const char *cgroup;    /* path, "/..." ; NULL: unknown */
	const char *container; /* full id, or name; NULL: none */
	const char *unit;      /* innermost systemd unit, a container's own included; NULL: none */
	uint32_t ppid;	       /* at the last fork or exec; 0: unknown or none */
	uint32_t uid;	       /* effective, at the last exec; TASKS_UID_UNKNOWN */
	bool exited;	       /* at or before the stamp that was asked for */
};

/* cap_bytes: at least 64 KiB; 0: 64 MiB. NULL and errno (EINVAL, ENOMEM) on failure. */
struct tasks *tasks__new(size_t cap_bytes);
void tasks__free(struct tasks *tasks);

/*
 * Fork and exec name a v2 cgroup by its id only. Where no event and no seed has told its path, ask
 * fn for it: once for each id, from within tasks__apply() and tasks__seed(). It writes the path
 * (no NUL needed) and returns its length, or a negative errno: then the path stays unknown.
 */
typedef int (*tasks_cgroup_resolver)(void *ctx, uint64_t cgroup_id, uint32_t hierarchy, char *buf,
				     size_t len);
void tasks__set_cgroup_resolver(struct tasks *tasks, tasks_cgroup_resolver fn, void *ctx);

/*
 * One thread that ran before the trace. exe, cgroups: NULL when unknown. cgroups is the path of
 * seed->cgroup ("/..."), or all lines of /proc/PID/cgroup, which v1 and hybrid hosts need. Errors:
 * ENOMEM.
 */
int tasks__seed(struct tasks *tasks, const struct weir_seed *seed, const char *exe,
		const char *cgroups);

/*
 * Feed any event in stream order; those that carry no state are ignored. Errors: EBADMSG, the
 * record's bytes make no sense and nothing was changed; ENOMEM, even with nothing left to evict: the
 * event is known in part or not at all.
 */
int tasks__apply(struct tasks *tasks, const struct weir_event *event);

/*
 * The watermark passed: entries of tasks whose exit lies a second or more before it go. Amortised
 * O(1) an entry.
 */
void tasks__retire(struct tasks *tasks, uint64_t watermark_ns);

/* Who had this tid at stamp_ns? false: nobody known. One hash probe; allocates nothing. */
bool tasks__find(struct tasks *tasks, uint32_t tid, uint64_t stamp_ns, struct task_view *out);

/*
 * Every thread that runs, as tasks__seed() takes it: what a table made from these knows is what this one
 * does. exe, cgroups: NULL where unknown; valid during the call only. fn must not change the table.
 */
typedef void (*tasks_each_fn)(void *ctx, const struct weir_seed *seed, const char *exe,
			      const char *cgroups);
void tasks__each(struct tasks *tasks, tasks_each_fn fn, void *ctx);

void tasks__stats(const struct tasks *tasks, struct tasks_stats *out);

#endif /* WEIR_TASKS_H */
