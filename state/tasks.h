/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tasks.h - who was who: threads and processes as they were at a stamp.
 *
 * Events in, table out. Fed with lifecycle records in stream order (and a seed of what ran before),
 * so that a lookup during an event's callback tells what was true at that event's stamp. Keyed by
 * (tid, start time): a reused pid is another task. Never grows past its cap: the oldest retired
 * entries go first, then the least recently used; evictions are counted.
 */
#ifndef WEIR_TASKS_H
#define WEIR_TASKS_H

#include <weir/event.h>
#include <weir/probes.h>

struct tasks;

struct tasks_stats {
	uint64_t entries, bytes, evicted, retired;
};

/* What is known of a thread; strings belong to the table and live until the next change to it. */
struct task_view {
	uint32_t pid, tid;
	uint64_t start_ns;
	const char *comm;      /* of the thread; NULL: unknown */
	const char *exe;       /* of the process; NULL: unknown */
	const char *cgroup;    /* path, "/..." ; NULL: unknown */
	const char *container; /* NULL: none */
	uint32_t ppid, uid;
	bool exited;
};

struct tasks *tasks__new(size_t cap_bytes); /* 0: 64 MiB. NULL and errno on failure */
void tasks__free(struct tasks *tasks);

/* One thread that ran before the trace. exe, cgroup_path: NULL when unknown. */
int tasks__seed(struct tasks *tasks, const struct weir_seed *seed, const char *exe,
		const char *cgroup_path);

/* Feed any event in stream order; those that carry no state are ignored. */
int tasks__apply(struct tasks *tasks, const struct weir_event *event);

/* The watermark passed: entries of tasks that exited long enough before it go. */
void tasks__retire(struct tasks *tasks, uint64_t watermark_ns);

/* Who had this tid at stamp_ns? false: nobody known. */
bool tasks__find(struct tasks *tasks, uint32_t tid, uint64_t stamp_ns, struct task_view *out);

void tasks__stats(const struct tasks *tasks, struct tasks_stats *out);

#endif /* WEIR_TASKS_H */
