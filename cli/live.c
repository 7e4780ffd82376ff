// SPDX-License-Identifier: BSD-2-Clause
#include "cli/live.h"

#include "cli/clock.h"
#include "cli/descriptors.h"
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
#define POLL_MS		 200	     /* how late a signal that came between two calls may be seen */

#define SAY(...) say(live->def, __VA_ARGS__)

/* ---- what the user asked for ------------------------------------------------------------------ */

#define AT(member) OPTION_AT(struct live_options, member)

const struct option_def live__process_options[] = {
	{'p', "pid", OPTION_LIST, AT(pids), "PID[,PID]...",
	 "only these processes, and those that they fork from now on;\n"
	 "ends when the last of them has"},
	{0, "children", OPTION_FLAG, AT(children), NULL,
	 "with -p: also what they have forked before"},
	{0, "no-follow", OPTION_FLAG, AT(no_follow), NULL,
	 "with -p or COMMAND: not what they fork"},
	{0},
};

const struct option_def live__options[] = {
	{'d', "duration", OPTION_DURATION, AT(duration_ns), "TIME",
	 "stop after TIME: 10 (seconds), 1.5, 500ms, 2m"},
	{0, "no-wait", OPTION_FLAG, AT(no_wait), NULL,
	 "end when COMMAND ends, and not only when all that it started has"},
	{0, "buffer", OPTION_SIZE, AT(buffer), "SIZE",
	 "kernel buffers for the whole machine: 1/8 or less for fork,\n"
	 "exec and exit, the rest for events; each CPU's are powers of two.\n"
	 "Default: 9M a CPU (8M and 1M), less on a small machine"},
	{0, "string-limit", OPTION_COUNT, AT(string_limit), "N",
	 "keep at most N bytes (up to 4096) of each string. Default: 256"},
	{'v', "verbose", OPTION_FLAG, AT(verbose), NULL, "tell on standard error what is set up"},
	{0},
};

const char *live__default_events(const struct live *live)
{
	return live->has_command || live->opts->pids.count ? "process,signal,sys" : "process";
}

static bool check_string_limit(struct live *live)
{
	uint64_t limit = live->opts->string_limit ? live->opts->string_limit : DEFAULT_STRING;

	live->selection.string_limit = (uint32_t)limit;
	if (limit <= STRING_LIMIT_MAX)
		return true;
	SAY("--string-limit is at most %u", STRING_LIMIT_MAX);
	return false;
}

static bool select_events(struct live *live, const char *otherwise)
{
	const struct option_list *events = &live->opts->events;

	return (!events->count && !otherwise) ||
	       selection__events(live->def, events, otherwise, &live->selection);
}

static bool select_processes(struct live *live)
{
	if (live->opts->children && live->opts->no_follow) {
		SAY("--children and --no-follow exclude each other");
		return false;
	}
	live->selection.children = live->opts->children;
	live->selection.no_follow = live->opts->no_follow;
	if (live->filter) {
		live->selection.has_uid = live->filter->user;
		live->selection.uid = live->filter->uid;
	}
	if (!selection__pids(live->def, &live->opts->pids, live->pids, &live->selection))
		return false;
	/* A shell that waits for weir would be waited for. */
	live->opts->no_wait |= live->has_command && selection__has_ancestor(&live->selection);
	return true;
}

bool live__check(struct live *live, const char *otherwise)
{
	live->end_ns = UINT64_MAX;
	return check_string_limit(live) &&
	       buffers__split(live->def, live->opts->buffer, &live->buffers) &&
	       select_events(live, otherwise) && select_processes(live);
}

/* ---- COMMAND ---------------------------------------------------------------------------------- */

int live__find_program(struct live *live, const char *name)
{
	int err = command__find(name, live->program, sizeof(live->program));

	live->name = name;
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

void live__say_running(struct live *live)
{
	if (live->has_command && command__was_let_go(&live->command) &&
	    probes__alive(live->probes) && !command__ended(&live->command))
		SAY("%s (pid %d) still runs", live->name, (int)live->command.pid);
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
	return stop__signal ? 128 + stop__signal : EXIT_OK;
}

/* ---- probes and stream ------------------------------------------------------------------------ */

bool live__open(struct live *live, struct weir_stream_opts *opts)
{
	descriptors__raise_limit();
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
	const char *cgroup = live->filter ? live->filter->cgroup : NULL;

	/* On v1 hosts there is no such directory: then the paths that are known have to do. */
	if (cgroup && live->cgroupfs)
		live->selection.cgroup_fd = cgroupfs__open_dir(live->cgroupfs, cgroup);
	live->probes = probes__open(&live->selection, err, err_len);
	if (live->selection.cgroup_fd > 0)
		close(live->selection.cgroup_fd);
	return live->probes;
}

static void say_attach_failed(const struct live *live, const char *why)
{
	if (strstr(why, strerror(EMFILE)) && descriptors__limit() < descriptors__needed())
		SAY("%s: this takes %llu here, and %llu are allowed; try ulimit -n %llu", why,
		    (unsigned long long)descriptors__needed(),
		    (unsigned long long)descriptors__limit(),
		    (unsigned long long)descriptors__needed());
	else
		SAY("%s", why);
}

bool live__attach(struct live *live)
{
	char err[512];

	if (!open_probes(live, err, sizeof(err)) ||
	    probes__connect(live->probes, live->stream, live->buffers.life_bytes,
			    live->buffers.event_bytes, err, sizeof(err)) ||
	    probes__attach(live->probes, on_seed, live, err, sizeof(err))) {
		say_attach_failed(live, err);
		return false;
	}
	return true;
}

bool live__settle(struct live *live)
{
	priority__raise();
	if (privileges__drop()) {
		SAY("cannot give up privileges: %s", strerror(errno));
		return false;
	}
	if (live->filter && live->selection.cgroup_fd == -ENOENT)
		SAY("there is no cgroup %s yet: waiting for it", live->filter->cgroup);
	return true;
}

void live__say_ready(const struct live *live, const char *doing)
{
	if (live->opts->verbose)
		SAY("%s; rings a CPU: %zu bytes for events, %zu for fork, exec and exit", doing,
		    live->buffers.event_bytes, live->buffers.life_bytes);
}

/* ---- run -------------------------------------------------------------------------------------- */

bool live__start(struct live *live)
{
	int err;

	if (live->has_command) {
		if (stop__requested)
			return false;
		err = command__start(&live->command);
		if (err && err != -EINTR)
			SAY("%s: %s", live->name, strerror(-err));
		if (err)
			return false;
	}
	if (live->opts->duration_ns)
		live->end_ns = now_ns() + live->opts->duration_ns;
	return true;
}

/* A prompt that does not come back looks like a hang. */
static void say_waiting(struct live *live, uint64_t alive)
{
	if (live->said_waiting || !alive || !isatty(STDERR_FILENO))
		return;
	live->said_waiting = true;
	SAY("%s has ended; waiting for %llu more (Ctrl-C, or --no-wait)", live->name,
	    (unsigned long long)alive);
}

/* The processes that were asked for are gone. */
static bool all_ended(struct live *live)
{
	bool command_ended = live->has_command && command__ended(&live->command);
	uint64_t alive;

	if (command_ended)
		stop__spare_no_more();
	if (!live->selection.nr_pids)
		return false;
	if (live->has_command && live->opts->no_wait)
		return command_ended;
	alive = probes__alive(live->probes);
	if (command_ended)
		say_waiting(live, alive);
	return !alive;
}

bool live__is_over(struct live *live)
{
	return stop__requested || now_ns() >= live->end_ns || all_ended(live);
}

static int poll_timeout_ms(uint64_t end_ns)
{
	uint64_t now = now_ns();

	if (end_ns <= now)
		return 0;
	if (end_ns - now < POLL_MS * NSEC_PER_MSEC)
		return (int)((end_ns - now + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC);
	return POLL_MS;
}

int live__poll(struct live *live)
{
	int count = weir_stream__poll(live->stream, poll_timeout_ms(live->end_ns));

	return count < 0 && count != -EINTR ? count : 0;
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
