// SPDX-License-Identifier: BSD-2-Clause
/*
 * seed.c - what ran before the trace: BPF's task iterator, and /proc for what only /proc knows.
 *
 * Also brings the set of selected processes up to date: descendants that were born before the
 * lifecycle probes were attached come in, processes that had gone by then go out.
 */
#include "probes/loaded.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probes.skel.h"

typedef int (*task_fn)(void *ctx, const struct weir_seed *seed);

static int open_iterator(struct probes *probes, struct bpf_link **link)
{
	int fd;

	*link = bpf_program__attach_iter(probes->skel->progs.seed_tasks, NULL);
	if (!*link)
		return -errno;
	fd = bpf_iter_create(bpf_link__fd(*link));
	if (fd >= 0)
		return fd;
	bpf_link__destroy(*link);
	return fd;
}

/* A read may end inside a record: `have` bytes of it wait for the rest. */
static int for_each_record(int fd, task_fn fn, void *ctx)
{
	struct weir_seed seeds[256];
	size_t have = 0;

	for (;;) {
		ssize_t n = read(fd, (char *)seeds + have, sizeof(seeds) - have);
		size_t whole;

		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		have += (size_t)n;
		whole = have / sizeof(seeds[0]);
		for (size_t i = 0; i < whole; i++) {
			int err = fn(ctx, &seeds[i]);

			if (err)
				return err;
		}
		have -= whole * sizeof(seeds[0]);
		memmove(seeds, &seeds[whole], have);
	}
}

static int for_each_task(struct probes *probes, task_fn fn, void *ctx)
{
	struct bpf_link *link;
	int err, fd = open_iterator(probes, &link);

	if (fd < 0)
		return fd;
	err = for_each_record(fd, fn, ctx);
	close(fd);
	bpf_link__destroy(link);
	return err;
}

/* The set of selected processes, while it is compared with what runs. */
struct census {
	int pids_fd;
	__u64 *alive; /* the BPF side's count of the set */
	const struct probes *probes;
	bool *running; /* each of probes->pids */
	unsigned long added;
};

static bool has(const struct census *census, uint32_t tgid)
{
	uint8_t yes;

	return bpf_map_lookup_elem(census->pids_fd, &tgid, &yes) == 0;
}

/* The map says whether an entry came or went by this call, so that each is counted once. */
static int add(struct census *census, uint32_t tgid)
{
	uint8_t yes = 1;
	int err = bpf_map_update_elem(census->pids_fd, &tgid, &yes, BPF_NOEXIST);

	if (err == -EEXIST)
		return 0;
	if (err)
		return err;
	__atomic_fetch_add(census->alive, 1, __ATOMIC_RELAXED);
	census->added++;
	return 0;
}

static void drop(struct census *census, uint32_t tgid)
{
	if (bpf_map_delete_elem(census->pids_fd, &tgid) == 0)
		__atomic_fetch_sub(census->alive, 1, __ATOMIC_RELAXED);
}

static int meet(void *ctx, const struct weir_seed *seed)
{
	struct census *census = ctx;
	uint32_t tgid = seed->id.pid;

	for (uint32_t i = 0; i < census->probes->nr_pids; i++) {
		if (census->probes->pids[i] == tgid)
			census->running[i] = true;
	}
	if (!census->probes->children || has(census, tgid) || !has(census, seed->ppid))
		return 0;
	return add(census, tgid);
}

/*
 * A descendant that is not in the set yet may fork until it is, and the iterator may have passed its
 * child's place: go round until a round finds nobody. Who was selected and is not there had its exit
 * before the probes could see it: nobody else would take it out.
 */
static int take_census(struct probes *probes)
{
	struct census census = {
		.pids_fd = bpf_map__fd(probes->skel->maps.weir_pids),
		.alive = &probes->skel->bss->weir_alive,
		.probes = probes,
		.running = calloc(probes->nr_pids, sizeof(bool)),
	};
	int err = census.running ? 0 : -ENOMEM;

	while (!err) {
		census.added = 0;
		err = for_each_task(probes, meet, &census);
		if (!census.added)
			break;
	}
	for (uint32_t i = 0; !err && i < probes->nr_pids; i++) {
		if (!census.running[i])
			drop(&census, probes->pids[i]);
	}
	free(census.running);
	return err;
}

/* What /proc knows of a process. Threads of one mostly stand together: the last answer is kept. */
struct caller {
	probes_seed_fn fn;
	void *ctx;
	const struct probes *probes;
	uint32_t pid; /* whose the two are; 0: nobody's */
	char exe[PATH_MAX];
	char cgroups[8192];
};

static void read_exe(struct caller *caller)
{
	char path[64];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%u/exe", caller->pid);
	len = readlink(path, caller->exe, sizeof(caller->exe) - 1);
	caller->exe[len < 0 ? 0 : len] = '\0';
}

static void read_cgroups(struct caller *caller)
{
	char path[64];
	ssize_t len;
	int fd;

	caller->cgroups[0] = '\0';
	snprintf(path, sizeof(path), "/proc/%u/cgroup", caller->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	len = read(fd, caller->cgroups, sizeof(caller->cgroups) - 1);
	caller->cgroups[len < 0 ? 0 : len] = '\0';
	close(fd);
}

static int call(void *ctx, const struct weir_seed *seed)
{
	struct caller *caller = ctx;
	bool known = !seed->kthread && !caller->probes->foreign_pids;

	if (known && caller->pid != seed->id.pid) {
		caller->pid = seed->id.pid;
		read_exe(caller);
		read_cgroups(caller);
	}
	caller->fn(caller->ctx, seed, known && caller->exe[0] ? caller->exe : NULL,
		   known && caller->cgroups[0] ? caller->cgroups : NULL);
	return 0;
}

int seed__take(struct probes *probes, probes_seed_fn fn, void *ctx)
{
	struct caller *caller;
	int err = probes->has_pids ? take_census(probes) : 0;

	if (err || !fn)
		return err;
	caller = calloc(1, sizeof(*caller));
	if (!caller)
		return -ENOMEM;
	caller->fn = fn;
	caller->ctx = ctx;
	caller->probes = probes;
	err = for_each_task(probes, call, caller);
	free(caller);
	return err;
}
