/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cgroups.h - which cgroups a task is in, and what their paths say.
 *
 * A task is in one cgroup of each hierarchy: one on a v2 host, a dozen on a v1 host, both on a
 * hybrid one. Tasks that are in the same ones share a set, as they do in the kernel (css_set), so
 * that a task pays for a pointer. An attach makes another set, in which one member is replaced:
 * what the other hierarchies say stays.
 */
#ifndef WEIR_STATE_CGROUPS_H
#define WEIR_STATE_CGROUPS_H

#include <stdbool.h>

#include "state/list.h"
#include "state/names.h"

#define CGROUP_V2 0 /* the number of the default hierarchy, as in /proc/PID/cgroup */

/* Hierarchies that a set has room for; Linux has 14 controllers. */
#define CGROUP_SET_MAX 32

struct cgroup {
	struct hash_node node;
	uint64_t id; /* 0: known by its path only */
	uint32_t hierarchy;
	uint32_t refs;		/* sets that have it */
	struct name *path;	/* NULL: unknown */
	struct name *container; /* NULL: none */
	struct name *unit;
	struct list_node idle; /* while no set has it */
};

struct cgroup_set {
	struct hash_node node;
	uint32_t refs;
	uint32_t nr;
	uint64_t epoch; /* the three below are as of then */
	const struct name *path, *container, *unit;
	struct cgroup *members[]; /* by hierarchy, v2 first */
};

/* tasks.h: tasks_cgroup_resolver */
typedef int (*cgroup_resolver)(void *ctx, uint64_t id, uint32_t hierarchy, char *buf, size_t len);

struct cgroups {
	struct budget *budget;
	struct names *names;
	struct hash by_id;
	struct hash sets;
	struct list_node idle; /* cgroups that no set has, the longest unused first */
	size_t nr_idle;
	uint64_t epoch; /* +1 whenever the path of a cgroup changes */
	cgroup_resolver resolve;
	void *resolve_ctx;
};

int cgroups__init(struct cgroups *cgroups, struct budget *budget, struct names *names);
void cgroups__free(struct cgroups *cgroups); /* after all sets were put */

/* The cgroup with this id; unknown ones are asked of the resolver, once. NULL: no memory. */
struct cgroup *cgroups__get(struct cgroups *cgroups, uint32_t hierarchy, uint64_t id);

/* The same, and this is its path from now on. id 0: unknown. NULL: no memory. */
struct cgroup *cgroups__learn(struct cgroups *cgroups, uint32_t hierarchy, uint64_t id,
			      const char *path, size_t len);

/* `set` with its member of that hierarchy replaced; a new reference. NULL: no memory. */
struct cgroup_set *cgroups__set_with(struct cgroups *cgroups, const struct cgroup_set *set,
				     struct cgroup *cgroup);
struct cgroup_set *cgroup_set__ref(struct cgroup_set *set); /* NULL is allowed, here and below */
void cgroups__put_set(struct cgroups *cgroups, struct cgroup_set *set);

/* Let go of the cgroup that has been without tasks for longest. false: there is none. */
bool cgroups__evict_idle(struct cgroups *cgroups);

void cgroups__describe_set(const struct cgroups *cgroups, struct cgroup_set *set);

/* path, container and unit of a set, brought up to date. */
static inline void cgroup_set__refresh(const struct cgroups *cgroups, struct cgroup_set *set)
{
	if (set->epoch != cgroups->epoch)
		cgroups__describe_set(cgroups, set);
}

#endif /* WEIR_STATE_CGROUPS_H */
