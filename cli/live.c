// SPDX-License-Identifier: BSD-2-Clause
#include "cli/live.h"

#include "cli/filter.h"
#include "cli/priority.h"
#include "cli/privileges.h"
#include "cli/stop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_STRING	 256u
#define STRING_LIMIT_MAX 4096u
#define MEMORY_BYTES	 (64u << 20) /* beside the rings: indexes, and what has to wait */

#define SAY(...) say(live->def, __VA_ARGS__)

/* ---- what the user asked for ------------------------------------------------------------------ */

static const char *default_events(const struct live *live, const struct live_options *opts)
{
	return live->has_command || opts->pids.count ? "process,signal,sys" : "process";
}

/* The user and the cgroup, as the filters of trace take them. */
static bool check_filter(struct live *live, const struct live_options *opts)
{
	struct filter filter = {.user = opts->user, .cgroup = opts->cgroup};

	if (!filter__check(&filter, live->def))
		return false;
	live->selection.has_uid = filter.user;
	live->selection.uid = filter.uid;
	live->cgroup = filter.cgroup;
	return true;
}

bool live__check(struct live *live, const struct live_options *opts)
{
	uint64_t string_limit = opts->string_limit ? opts->string_limit : DEFAULT_STRING;

	if (opts->children && opts->no_follow) {
		SAY("--children and --no-follow exclude each other");
		return false;
	}
	if (string_limit > STRING_LIMIT_MAX) {
		SAY("--string-limit is at most %u", STRING_LIMIT_MAX);
		return false;
	}
	live->no_wait = opts->no_wait;
	live->selection.children = opts->children;
	live->selection.no_follow = opts->no_follow;
	live->selection.string_limit = (uint32_t)string_limit;
	if (!check_filter(live, opts) || !buffers__split(live->def, opts->buffer, &live->buffers) ||
	    !selection__events(live->def, &opts->events, default_events(live, opts),
			       &live->selection) ||
	    !selection__pids(live->def, &opts->pids, live->pids, &live->selection))
		return false;
	/* A shell that waits for weir would be waited for. */
	live->no_wait |= live->has_command && selection__has_ancestor(&live->selection);
	return true;
}

/* ---- COMMAND ---------------------------------------------------------------------------------- */

int live__find_program(struct live *live, const char *name)
{
	int err = command__find(name, live->program, sizeof(live->program));

	if (!err)
		return EXIT_OK;
	SAY("%s: %s", name, strerror(-err));
	return err == -ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUN;
}

bool live__fork_command(struct live *live, char **argv)
{
	int err;

	if (!live->has_command)
		return true;
	err = command__fork(&live->command, live->program, argv);
	if (err) {
		SAY("cannot fork: %s", strerror(-err));
		return false;
	}
	live->pids[live->selection.nr_pids++] = (uint32_t)live->command.pid;
	live->selection.pids = live->pids;
	return true;
}

bool live__start_command(struct live *live, const char *name)
{
	int err;

	if (!live->has_command)
		return true;
	if (stop__requested)
		return false;
	err = command__start(&live->command);
	if (err && err != -EINTR)
		SAY("%s: %s", name, strerror(-err));
	return !err;
}

bool live__is_before_command(struct live *live, const struct weir_event *event)
{
	const struct weir_task_id *id = event->data;

	if (!live->has_command || live->command_began ||
	    (event->type != WEIR_T_SYS_ENTER && event->type != WEIR_T_SYS_EXIT) ||
	    event->len < sizeof(*id) || id->pid != (uint32_t)live->command.pid)
		return false;
	/* It returns from waiting to be let go; the next thing that it does is its exec. */
	live->command_began = event->type == WEIR_T_SYS_ENTER;
	return !live->command_began;
}

bool live__all_ended(struct live *live)
{
	if (live->has_command && command__ended(&live->command))
		stop__spare_no_more();
	if (!live->selection.nr_pids)
		return false;
	if (live->has_command && live->no_wait)
		return command__ended(&live->command);
	return !probes__alive(live->probes);
}

int live__command_status(struct live *live)
{
	/* Stopped before that: what did not run is not to be taken for what succeeded. */
	if (!command__was_let_go(&live->command))
		return EXIT_WEIR_FAILED;
	/* The probes see it end before its parent can. */
	if (!probes__alive(live->probes))
		command__wait(&live->command);
	if (command__ended(&live->command))
		return command__status(&live->command);
	/* It outlives the trace: there is nothing to say of it but why we stopped looking. */
	return stop__requested ? 128 + stop__signal : EXIT_OK;
}

/* ---- probes and stream ------------------------------------------------------------------------ */

bool live__open(struct live *live, struct weir_stream_opts *opts)
{
	opts->memory_bytes = MEMORY_BYTES + live->buffers.total;
	live->stream = weir_stream__new(opts);
	live->tasks = live->stream ? tasks__new(0) : NULL;
	if (!live->tasks) {
		SAY("cannot make the stream: %s", strerror(errno));
		return false;
	}
	live->cgroupfs = cgroupfs__open(NULL);
	if (live->cgroupfs)
		tasks__set_cgroup_resolver(live->tasks, cgroupfs__resolve, live->cgroupfs);
	return true;
}

static void on_seed(void *ctx, const struct weir_seed *seed, const char *exe, const char *cgroups)
{
	struct live *live = ctx;

	tasks__seed(live->tasks, seed, exe, cgroups);
	if (live->seeded)
		live->seeded(live->ctx, seed);
}

static bool open_probes(struct live *live, char *err, size_t err_len)
{
	/* On v1 hosts there is no such directory. */
	if (live->cgroup && live->cgroupfs)
		live->selection.cgroup_fd = cgroupfs__open_dir(live->cgroupfs, live->cgroup);
	live->probes = probes__open(&live->selection, err, err_len);
	if (live->selection.cgroup_fd > 0)
		close(live->selection.cgroup_fd);
	return live->probes &&
	       !probes__connect(live->probes, live->stream, live->buffers.life_bytes,
				live->buffers.event_bytes, err, err_len);
}

bool live__attach(struct live *live)
{
	char err[512];

	if (!open_probes(live, err, sizeof(err)) ||
	    probes__attach(live->probes, on_seed, live, err, sizeof(err))) {
		SAY("%s", err);
		return false;
	}
	priority__raise();
	if (privileges__drop()) {
		SAY("cannot give up privileges: %s", strerror(errno));
		return false;
	}
	return true;
}

int live__close(struct live *live)
{
	probes__detach(live->probes);
	return weir_stream__close(live->stream);
}

void live__free(struct live *live)
{
	command__abandon(&live->command);
	probes__free(live->probes);
	weir_stream__free(live->stream);
	tasks__free(live->tasks);
	cgroupfs__close(live->cgroupfs);
}
