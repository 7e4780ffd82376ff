// SPDX-License-Identifier: BSD-2-Clause
/*
 * cgroups.c - owns the cgroups by (hierarchy, id) and the sets of them that tasks are in. Promises
 * that a set changes only by being replaced. Knows nothing of tasks, and makes no system call: what
 * it does not know it asks of the caller's resolver.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "state/cgroups.h"
#include "state/container.h"

#define FIRST_BITS 6

/*
 * Cgroups without a task are kept, because one is made before the first task comes, and because
 * fork names a cgroup by nothing but its id. Their removal is not traced: this many are kept.
 */
#define IDLE_MAX 1024

int cgroups__init(struct cgroups *cgroups, struct budget *budget, struct names *names)
{
	int err;

	cgroups->budget = budget;
	cgroups->names = names;
	cgroups->epoch = 1; /* new sets are at 0: not described yet */
	list__init(&cgroups->idle);
	err = hash__init(&cgroups->by_id, budget, FIRST_BITS);
	return err ? err : hash__init(&cgroups->sets, budget, FIRST_BITS);
}

void cgroups__free(struct cgroups *cgroups)
{
	while (cgroups__evict_idle(cgroups))
		;
	hash__free(&cgroups->sets);
	hash__free(&cgroups->by_id);
}

static void set_idle(struct cgroups *cgroups, struct cgroup *cgroup)
{
	list__add_tail(&cgroups->idle, &cgroup->idle);
	if (++cgroups->nr_idle > IDLE_MAX)
		cgroups__evict_idle(cgroups);
}

static void ref_cgroup(struct cgroups *cgroups, struct cgroup *cgroup)
{
	if (cgroup->refs++)
		return;
	list__del(&cgroup->idle);
	cgroups->nr_idle--;
}

static void put_cgroup(struct cgroups *cgroups, struct cgroup *cgroup)
{
	if (!--cgroup->refs)
		set_idle(cgroups, cgroup);
}

static void drop_idle(struct cgroups *cgroups, struct cgroup *cgroup)
{
	list__del(&cgroup->idle);
	cgroups->nr_idle--;
	hash__remove(&cgroups->by_id, &cgroup->node);
	names__put(cgroups->names, cgroup->path);
	names__put(cgroups->names, cgroup->container);
	names__put(cgroups->names, cgroup->unit);
	budget__free(cgroups->budget, cgroup);
}

bool cgroups__evict_idle(struct cgroups *cgroups)
{
	if (list__empty(&cgroups->idle))
		return false;
	drop_idle(cgroups, list__entry(cgroups->idle.next, struct cgroup, idle));
	return true;
}

/* Ids are unique within a hierarchy only. */
static uint64_t key_of(uint32_t hierarchy, uint64_t id)
{
	return id ^ (uint64_t)hierarchy << 40;
}

static struct cgroup *find_cgroup(const struct cgroups *cgroups, uint32_t hierarchy, uint64_t key,
				  uint64_t id, const struct name *path)
{
	struct hash_node *node;

	for (node = hash__first(&cgroups->by_id, key); node; node = node->next) {
		struct cgroup *cgroup = (struct cgroup *)node;

		if (cgroup->hierarchy == hierarchy && cgroup->id == id &&
		    (id || cgroup->path == path))
			return cgroup;
	}
	return NULL;
}

static struct cgroup *add_cgroup(struct cgroups *cgroups, uint32_t hierarchy, uint64_t key,
				 uint64_t id)
{
	struct cgroup *cgroup = budget__alloc(cgroups->budget, sizeof(*cgroup));

	if (!cgroup)
		return NULL;
	cgroup->id = id;
	cgroup->hierarchy = hierarchy;
	hash__insert(&cgroups->by_id, &cgroup->node, key);
	hash__grow(&cgroups->by_id);
	set_idle(cgroups, cgroup);
	return cgroup;
}

typedef size_t (*extract_fn)(const char *path, size_t len, char out[CONTAINER_NAME_MAX]);

/* What `extract` finds in a path; *out NULL: nothing. */
static int extract_name(struct cgroups *cgroups, extract_fn extract, const struct name *path,
			struct name **out)
{
	char text[CONTAINER_NAME_MAX];
	size_t len = extract(path->text, path->len, text);

	*out = NULL;
	if (!len)
		return 0;
	*out = names__get(cgroups->names, text, len);
	return *out ? 0 : -ENOMEM;
}

/* Takes over the reference to `path`, also on failure, which changes nothing. */
static int set_path(struct cgroups *cgroups, struct cgroup *cgroup, struct name *path)
{
	struct name *container = NULL, *unit = NULL;

	if (path == cgroup->path) {
		names__put(cgroups->names, path);
		return 0;
	}
	if (extract_name(cgroups, container__id, path, &container) ||
	    extract_name(cgroups, container__unit, path, &unit)) {
		names__put(cgroups->names, container);
		names__put(cgroups->names, path);
		return -ENOMEM;
	}
	names__put(cgroups->names, cgroup->path);
	names__put(cgroups->names, cgroup->container);
	names__put(cgroups->names, cgroup->unit);
	cgroup->path = path;
	cgroup->container = container;
	cgroup->unit = unit;
	cgroups->epoch++;
	return 0;
}

/* What the resolver cannot tell stays unknown. */
static int resolve(struct cgroups *cgroups, struct cgroup *cgroup)
{
	char buf[PATH_MAX];
	struct name *path;
	int len;

	if (!cgroups->resolve)
		return 0;
	len = cgroups->resolve(cgroups->resolve_ctx, cgroup->id, cgroup->hierarchy, buf,
			       sizeof(buf));
	if (len <= 0 || (size_t)len > sizeof(buf))
		return 0;
	path = names__get(cgroups->names, buf, strnlen(buf, (size_t)len));
	return path ? set_path(cgroups, cgroup, path) : -ENOMEM;
}

struct cgroup *cgroups__get(struct cgroups *cgroups, uint32_t hierarchy, uint64_t id)
{
	uint64_t key = key_of(hierarchy, id);
	struct cgroup *cgroup = find_cgroup(cgroups, hierarchy, key, id, NULL);

	if (cgroup)
		return cgroup;
	cgroup = add_cgroup(cgroups, hierarchy, key, id);
	if (cgroup && resolve(cgroups, cgroup)) {
		/* To be asked for again: an entry without a path means that nobody knows. */
		drop_idle(cgroups, cgroup);
		return NULL;
	}
	return cgroup;
}

struct cgroup *cgroups__learn(struct cgroups *cgroups, uint32_t hierarchy, uint64_t id,
			      const char *path, size_t len)
{
	struct name *name = names__get(cgroups->names, path, len);
	struct cgroup *cgroup;
	uint64_t key;

	if (!name)
		return NULL;
	key = key_of(hierarchy, id ? id : name->node.key);
	cgroup = find_cgroup(cgroups, hierarchy, key, id, name);
	if (!cgroup)
		cgroup = add_cgroup(cgroups, hierarchy, key, id);
	if (!cgroup) {
		names__put(cgroups->names, name);
		return NULL;
	}
	if (set_path(cgroups, cgroup, name))
		return NULL;
	return cgroup;
}

static uint64_t key_of_members(struct cgroup *const *members, uint32_t nr)
{
	uint64_t key = nr;

	for (uint32_t i = 0; i < nr; i++)
		key = (key ^ (uintptr_t)members[i]) * UINT64_C(0xff51afd7ed558ccd) ^ key >> 29;
	return key;
}

static struct cgroup_set *find_set(const struct cgroups *cgroups, uint64_t key,
				   struct cgroup *const *members, uint32_t nr)
{
	struct hash_node *node;

	for (node = hash__first(&cgroups->sets, key); node; node = node->next) {
		struct cgroup_set *set = (struct cgroup_set *)node;

		if (node->key == key && set->nr == nr &&
		    !memcmp(set->members, members, nr * sizeof(*members)))
			return set;
	}
	return NULL;
}

static struct cgroup_set *add_set(struct cgroups *cgroups, uint64_t key,
				  struct cgroup *const *members, uint32_t nr)
{
	struct cgroup_set *set = budget__alloc(cgroups->budget,
					       sizeof(*set) + nr * sizeof(*members));

	if (!set)
		return NULL;
	set->refs = 1;
	set->nr = nr;
	for (uint32_t i = 0; i < nr; i++) {
		set->members[i] = members[i];
		ref_cgroup(cgroups, members[i]);
	}
	hash__insert(&cgroups->sets, &set->node, key);
	hash__grow(&cgroups->sets);
	return set;
}

/* The members of `set` with `cgroup` in its place; more hierarchies than there is room for: as is. */
static uint32_t merge(const struct cgroup_set *set, struct cgroup *cgroup,
		      struct cgroup *members[CGROUP_SET_MAX])
{
	uint32_t nr = set ? set->nr : 0;
	uint32_t at = 0;

	for (uint32_t i = 0; i < nr; i++)
		members[i] = set->members[i];
	while (at < nr && members[at]->hierarchy < cgroup->hierarchy)
		at++;
	if (at == nr || members[at]->hierarchy != cgroup->hierarchy) {
		if (nr == CGROUP_SET_MAX)
			return nr;
		memmove(&members[at + 1], &members[at], (nr - at) * sizeof(*members));
		nr++;
	}
	members[at] = cgroup;
	return nr;
}

struct cgroup_set *cgroups__set_with(struct cgroups *cgroups, const struct cgroup_set *set,
				     struct cgroup *cgroup)
{
	struct cgroup *members[CGROUP_SET_MAX];
	uint32_t nr = merge(set, cgroup, members);
	uint64_t key = key_of_members(members, nr);
	struct cgroup_set *found = find_set(cgroups, key, members, nr);

	return found ? cgroup_set__ref(found) : add_set(cgroups, key, members, nr);
}

struct cgroup_set *cgroup_set__ref(struct cgroup_set *set)
{
	if (set)
		set->refs++;
	return set;
}

void cgroups__put_set(struct cgroups *cgroups, struct cgroup_set *set)
{
	if (!set || --set->refs)
		return;
	hash__remove(&cgroups->sets, &set->node);
	for (uint32_t i = 0; i < set->nr; i++)
		put_cgroup(cgroups, set->members[i]);
	budget__free(cgroups->budget, set);
}

/* How much a cgroup tells of its tasks. */
static int weight(const struct cgroup *cgroup)
{
	if (cgroup->container)
		return 4;
	if (cgroup->unit)
		return 3;
	if (!cgroup->path)
		return 0;
	return strcmp(cgroup->path->text, "/") ? 2 : 1;
}

/*
 * One member speaks for the set: the one that tells most, v2 before v1. On hybrid hosts v2 often
 * has a container's tasks in its runtime's service, or in the root, and only v1 knows the container.
 */
void cgroups__describe_set(const struct cgroups *cgroups, struct cgroup_set *set)
{
	const struct cgroup *best = set->members[0];

	for (uint32_t i = 1; i < set->nr; i++) {
		if (weight(set->members[i]) > weight(best))
			best = set->members[i];
	}
	set->path = best->path;
	set->container = best->container;
	set->unit = best->unit;
	set->epoch = cgroups->epoch;
}
