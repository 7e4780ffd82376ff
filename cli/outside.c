/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/outside.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TP_SOURCE   "tp"
#define FILTER_MAX  4096	  /* the kernel takes a page */
#define INIT_PID_NS 0xeffffffcull /* PROC_PID_INIT_INO: the first pid namespace */
#define SELF	    3		  /* threads of weir's */
#define FIRST_NR    -2		  /* of rows of -c: what has no call's number */
#define SWITCH	    TRACEPOINTS_PREFIX "sched:sched_switch"

#define SAY(...) say(outside->command, __VA_ARGS__)

enum origin {
	ORIGIN_UNKNOWN = 0,
	ORIGIN_PROBES,
	ORIGIN_TRACEPOINTS,
	ORIGIN_MAP,
};

struct outside_source {
	enum origin origin;
	int map;
	uint64_t next_seq; /* of its records, delivered or known to be lost */
};

/* ---- what the user asked for ------------------------------------------------------------------ */

static bool choose(struct outside *outside, const char *pattern, bool wanted)
{
	char err[512];

	if (!outside->tracepoints)
		outside->tracepoints = tracepoints__new(NULL);
	if (!outside->tracepoints) {
		SAY("out of memory");
		return false;
	}
	if (!tracepoints__choose(outside->tracepoints, pattern, wanted, err, sizeof(err)))
		return true;
	SAY("%s", err);
	return false;
}

/* "tp:GROUP:NAME" or "!tp:GROUP:NAME": its pattern, or NULL. */
static const char *pattern_of(const char *word, bool *wanted)
{
	*wanted = word[0] != '!';
	word += !*wanted;
	if (strncmp(word, TRACEPOINTS_PREFIX, strlen(TRACEPOINTS_PREFIX)) != 0)
		return NULL;
	return word + strlen(TRACEPOINTS_PREFIX);
}

/* What is no tracepoint stays, in its order: it is moved to the front. */
static bool take_word(struct outside *outside, char *word)
{
	char *left = word, *next = word;

	while (next) {
		char *part = strsep(&next, ",");
		const char *pattern;
		size_t len = strlen(part);
		bool wanted;

		pattern = pattern_of(part, &wanted);
		if (pattern && !choose(outside, pattern, wanted))
			return false;
		if (pattern)
			continue;
		if (left != word)
			*left++ = ',';
		memmove(left, part, len);
		left += len;
	}
	*left = '\0';
	return true;
}

static bool has_pattern(const char *word)
{
	bool wanted;

	for (; word; word = strchr(word, ',')) {
		word += *word == ',';
		if (pattern_of(word, &wanted))
			return true;
	}
	return false;
}

static bool take_words(struct outside *outside, struct option_list *events)
{
	unsigned count = 0;

	for (unsigned i = 0; i < events->count; i++) {
		const char *word = events->at[i];

		if (has_pattern(word)) {
			outside->words[i] = strdup(word);
			if (!outside->words[i]) {
				SAY("out of memory");
				return false;
			}
			if (!take_word(outside, outside->words[i]))
				return false;
			word = outside->words[i];
		}
		if (*word)
			events->at[count++] = word;
	}
	events->count = count;
	return true;
}

static bool load(struct outside *outside)
{
	char err[512];

	if (!outside->tracepoints)
		return true;
	if (!tracepoints__count(outside->tracepoints)) {
		SAY("no tracepoint is left of those that -e has");
		return false;
	}
	if (!tracepoints__load(outside->tracepoints, err, sizeof(err)))
		return true;
	SAY("%s", err);
	return false;
}

bool outside__has_tracepoints(const struct outside *outside)
{
	return outside->tracepoints;
}

bool outside__is_used(const struct outside *outside)
{
	return outside->tracepoints || outside->maps.count;
}

bool outside__choose(struct outside *outside, const struct command_def *command,
		     struct option_list *events, const struct option_list *maps)
{
	outside->command = command;
	if (!take_words(outside, events) || !load(outside))
		return false;
	if (outside->filter && !outside->tracepoints) {
		SAY("--filter is for the fields of tracepoints: it needs -e tp:GROUP:NAME");
		return false;
	}
	return maps__open(command, maps, &outside->maps);
}

static void print_tracepoint(const struct tracepoints *tps, uint32_t index)
{
	const char *field;

	printf("%s", tracepoints__name(tps, index));
	for (uint32_t i = 0; (field = tracepoints__field(tps, index, i)); i++)
		printf("%s%s", i ? ", " : "\t", field);
	putchar('\n');
}

int outside__list(const struct command_def *command, char **operands)
{
	struct outside all = {.command = command}, *outside = &all;
	int status = EXIT_USAGE;
	bool wanted, fine = true;

	for (; *operands && fine; operands++) {
		const char *pattern = pattern_of(*operands, &wanted);

		if (pattern)
			fine = choose(outside, pattern, wanted);
		else
			SAY("--list takes tracepoints, such as 'tp:sched:*', and nothing else; not '%s'",
			    *operands);
		fine = fine && pattern;
	}
	if (fine && load(outside)) {
		for (uint32_t i = 0; i < tracepoints__count(all.tracepoints); i++)
			print_tracepoint(all.tracepoints, i);
		status = EXIT_OK;
	}
	outside__free(outside);
	return status;
}

/* ---- whose events ----------------------------------------------------------------------------- */

bool outside__select(struct outside *outside, const struct probes_selection *selection,
		     uint32_t command_pid)
{
	/* COMMAND's process comes in with its exec. */
	uint32_t count = command_pid ? 0 : selection->nr_pids;

	outside->left_out = selection->left_out;
	outside->nr_left_out = selection->nr_left_out;
	outside->command_pid = command_pid;
	outside->picked.follow = !selection->no_follow;
	if (!outside->tracepoints || !selection->nr_pids)
		return true;
	if (picked__begin(&outside->picked, selection->pids, count))
		return true;
	SAY("out of memory");
	return false;
}

struct family {
	struct picked *picked;
	bool grown;
};

static void add_child(void *ctx, const struct weir_seed *seed, const char *exe, const char *cgroups)
{
	struct family *family = ctx;

	(void)exe;
	(void)cgroups;
	if (picked__has(family->picked, seed->id.pid) || !picked__has(family->picked, seed->ppid))
		return;
	picked__add(family->picked, seed->id.pid);
	family->grown = true;
}

void outside__add_children(struct outside *outside, struct tasks *tasks)
{
	struct family family = {.picked = &outside->picked, .grown = outside->picked.pids};

	/* In no order: a generation a round, at the least. */
	while (family.grown) {
		family.grown = false;
		tasks__each(tasks, add_child, &family);
	}
}

void outside__follow(struct outside *outside, const struct weir_event *event)
{
	const struct weir_task_id *id = event->data;

	if (!outside->picked.pids)
		return;
	if (event->type == WEIR_T_EXEC && event->len >= sizeof(*id) && outside->command_pid &&
	    id->pid == outside->command_pid) {
		picked__add(&outside->picked, id->pid);
		outside->command_pid = 0;
	}
	picked__wants(&outside->picked, event);
}

static bool is_left_out(const struct outside *outside, uint32_t pid)
{
	for (uint32_t i = 0; i < outside->nr_left_out; i++)
		if (outside->left_out[i] == pid)
			return true;
	return false;
}

static bool is_asked_for(const struct outside *outside, uint32_t pid)
{
	if (outside->picked.pids)
		return picked__has(&outside->picked, pid);
	return !is_left_out(outside, pid);
}

/* ---- weir's own events ------------------------------------------------------------------------ */

/* Numbers of threads are another namespace's to the kernel's filters. */
static bool knows_own_ids(void)
{
	struct stat ns;

	return !stat("/proc/self/ns/pid", &ns) && ns.st_ino == INIT_PID_NS;
}

static size_t put_unlike(char *at, size_t room, const char *field, const uint32_t *tids,
			 unsigned count)
{
	size_t len = 0;

	for (unsigned i = 0; i < count; i++)
		len += (size_t)snprintf(at + len, room - len, "%s%s != %u", i ? " && " : "", field,
					tids[i]);
	return len;
}

static bool is_wakeup(const char *name)
{
	static const char *const names[] = {"sched_waking", "sched_wakeup", "sched_wakeup_new"};
	static const char group[] = TRACEPOINTS_PREFIX "sched:";

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(name, group, strlen(group)) && !strcmp(name + strlen(group), names[i]))
			return true;
	return false;
}

/*
 * All but what weir's threads do, by the rules of the probes: a switch between one of them and another
 * thread is the other's, too, and a wakeup of one is weir's. Left out in the kernel, for otherwise
 * writing a line would be the next line.
 */
static void put_not_self(char *text, size_t size, const char *name, const uint32_t *tids)
{
	size_t len = 0;

	if (!strcmp(name, SWITCH)) {
		len += (size_t)snprintf(text, size, "(");
		len += put_unlike(text + len, size - len, "prev_pid", tids, SELF + 1);
		len += (size_t)snprintf(text + len, size - len, ") || (");
		len += put_unlike(text + len, size - len, "next_pid", tids, SELF + 1);
		snprintf(text + len, size - len, ")");
		return;
	}
	len += put_unlike(text, size, "common_pid", tids, SELF);
	if (is_wakeup(name)) {
		len += (size_t)snprintf(text + len, size - len, " && ");
		put_unlike(text + len, size - len, "pid", tids, SELF);
	}
}

/* NULL: no memory. "": none is needed. */
static char *make_filter(const struct outside *outside, const char *name)
{
	/* The last is the idle task's. */
	const uint32_t tids[SELF + 1] = {(uint32_t)getpid(), outside->fencing.fence.tid,
					 outside->fencing.other.tid, 0};
	char self[512] = "", *filter;

	if (knows_own_ids())
		put_not_self(self, sizeof(self), name, tids);
	if (!outside->filter)
		return strdup(self);
	if (!self[0])
		return strdup(outside->filter);
	return asprintf(&filter, "(%s) && (%s)", outside->filter, self) < 0 ? NULL : filter;
}

/* ---- tracepoints into the stream -------------------------------------------------------------- */

static void say_bad_filter(const struct outside *outside, uint32_t index, int err)
{
	char fields[512];
	const char *field;
	size_t len = 0;

	fields[0] = '\0';
	for (uint32_t i = 0; (field = tracepoints__field(outside->tracepoints, index, i)); i++)
		if (len < sizeof(fields))
			len += (size_t)snprintf(fields + len, sizeof(fields) - len, "%s%s",
						i ? ", " : "", field);
	SAY("the kernel does not take --filter '%s' for %s: %s; its fields are %s", outside->filter,
	    tracepoints__name(outside->tracepoints, index), strerror(-err), fields);
}

/*
 * The user's words alone, on an event that counts nothing: what the kernel says of them is said of what
 * the user wrote. Where such an event cannot be had, the true ones will tell.
 */
static int try_filter(uint32_t id, const char *filter)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_TRACEPOINT,
		.config = id,
		.disabled = 1,
		.sample_period = 1,
	};
	int fd, err = 0;

	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return 0;
	if (ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter))
		err = -errno;
	close(fd);
	return err;
}

static bool check_filter(struct outside *outside)
{
	for (uint32_t i = 0; outside->filter && i < tracepoints__count(outside->tracepoints); i++) {
		int err = try_filter(tracepoints__id(outside->tracepoints, i), outside->filter);

		if (!err)
			continue;
		say_bad_filter(outside, i, err);
		return false;
	}
	return true;
}

static const char *bare_name(const struct outside *outside, uint32_t index)
{
	return tracepoints__name(outside->tracepoints, index) + strlen(TRACEPOINTS_PREFIX);
}

static void free_events(struct weir_perf_event *events, uint32_t count)
{
	for (uint32_t i = 0; events && i < count; i++)
		free((char *)events[i].filter);
	free(events);
}

static struct weir_perf_event *make_events(const struct outside *outside, uint32_t count)
{
	struct weir_perf_event *events = calloc(count, sizeof(*events));

	for (uint32_t i = 0; events && i < count; i++) {
		char *filter = make_filter(outside, tracepoints__name(outside->tracepoints, i));

		if (!filter) {
			free_events(events, count);
			return NULL;
		}
		events[i].tracepoint = bare_name(outside, i);
		events[i].filter = filter;
		if (*filter)
			continue;
		free(filter);
		events[i].filter = NULL;
	}
	return events;
}

static bool add_tracepoints(struct outside *outside, size_t ring_bytes)
{
	uint32_t count = tracepoints__count(outside->tracepoints);
	struct weir_perf_event *events = make_events(outside, count);
	char err[512] = "";
	const struct weir_perf_opts opts = {
		.sz = sizeof(opts),
		.name = TP_SOURCE,
		.events = events,
		.nr_events = count,
		.ring_bytes = ring_bytes,
		.err = err,
		.err_len = sizeof(err),
	};
	int code = events ? weir_stream__add_perf(outside->stream, &opts) : -ENOMEM;

	free_events(events, count);
	if (code)
		SAY("%s", err[0] ? err : strerror(-code));
	return !code;
}

bool outside__connect(struct outside *outside, struct weir_stream *stream, size_t ring_bytes)
{
	int err;

	outside->stream = stream;
	if (!outside__is_used(outside))
		return true;
	err = fencing__start(&outside->fencing);
	if (err) {
		SAY("cannot start a thread: %s", strerror(-err));
		return false;
	}
	if (outside->tracepoints &&
	    (!check_filter(outside) || !add_tracepoints(outside, ring_bytes)))
		return false;
	if (!maps__connect(outside->command, &outside->maps, stream, ring_bytes))
		return false;
	fencing__serve(&outside->fencing, weir_stream__fence(stream));
	return true;
}

/* ---- their events ----------------------------------------------------------------------------- */

static void find_origin(const struct outside *outside, uint32_t index,
			struct outside_source *source)
{
	struct weir_source_info info;
	size_t len = strlen(TP_SOURCE);

	source->origin = ORIGIN_PROBES;
	if (weir_stream__source(outside->stream, index, &info))
		return;
	source->map = maps__find(&outside->maps, info.name);
	if (source->map >= 0)
		source->origin = ORIGIN_MAP;
	else if (!strncmp(info.name, TP_SOURCE, len) && info.name[len] >= '0' &&
		 info.name[len] <= '9')
		source->origin = ORIGIN_TRACEPOINTS;
}

/* NULL: of the whole machine, or no memory. */
static struct outside_source *source_of(struct outside *outside, uint32_t index)
{
	struct outside_source *grown;

	if (index == WEIR_SOURCE_NONE)
		return NULL;
	if (index >= outside->nr_sources) {
		grown = reallocarray(outside->sources, index + 1, sizeof(*grown));
		if (!grown)
			return NULL;
		memset(grown + outside->nr_sources, 0,
		       (index + 1 - outside->nr_sources) * sizeof(*grown));
		outside->sources = grown;
		outside->nr_sources = index + 1;
	}
	if (outside->sources[index].origin == ORIGIN_UNKNOWN)
		find_origin(outside, index, &outside->sources[index]);
	return &outside->sources[index];
}

/* Those that were written, or would have been, and not what never came to be a record. */
static bool had_numbers(const struct weir_gap *gap)
{
	return gap->bound == WEIR_BOUND_EXACT &&
	       (gap->cause == WEIR_LOST_RESERVE_FAILED || gap->cause == WEIR_LOST_LATE ||
		gap->cause == WEIR_LOST_HELD || gap->cause == WEIR_LOST_BROKEN);
}

/* Its numbers are places in the ring: here are those of its records, as other sources have them. */
static void number(struct outside_source *source, const struct weir_event *event,
		   struct weir_event *own, struct weir_gap *gap)
{
	*own = *event;
	own->seq = source->next_seq;
	if (event->kind == WEIR_KIND_RECORD)
		source->next_seq++;
	if (event->kind != WEIR_KIND_GAP)
		return;
	*gap = *(const struct weir_gap *)event->data;
	gap->seq_end = 0;
	own->data = gap;
	if (had_numbers(gap))
		source->next_seq += gap->lost;
}

bool outside__owns(struct outside *outside, const struct weir_event *event, struct weir_event *own,
		   struct weir_gap *gap)
{
	struct outside_source *source;

	if (!outside__is_used(outside))
		return false;
	source = source_of(outside, event->source);
	if (!source || source->origin == ORIGIN_PROBES)
		return false;
	number(source, event, own, gap);
	return true;
}

static int decode_tracepoint(struct outside *outside, const struct weir_event *event,
			     struct tasks *tasks, struct weir_decoded *out)
{
	struct weir_perf_sample sample;
	struct task_view task;
	int err = weir_stream__parse_perf(outside->stream, event, &sample);

	if (!err)
		err = tracepoints__decode(outside->tracepoints, sample.event, &sample, out);
	if (err)
		return -EBADMSG;
	out->nr = FIRST_NR - MAPS_MAX - (int32_t)sample.event;
	/* In the namespace of who asks, and of a thread that is nearly gone there is none. */
	if (tasks__find(tasks, out->tid, event->stamp_ns, &task))
		out->pid = task.pid;
	else if (sample.tid == out->tid)
		out->pid = sample.pid;
	return is_asked_for(outside, out->pid) ? 0 : OUTSIDE_FILTERED;
}

int outside__decode(struct outside *outside, const struct weir_event *event, struct tasks *tasks,
		    struct weir_decoded *out)
{
	const struct outside_source *source = &outside->sources[event->source];

	if (source->origin == ORIGIN_TRACEPOINTS)
		return decode_tracepoint(outside, event, tasks, out);
	maps__decode(&outside->maps, source->map, event, out);
	out->nr = FIRST_NR - source->map;
	return 0;
}

/* ---- the end ---------------------------------------------------------------------------------- */

void outside__stop(struct outside *outside)
{
	fencing__stop(&outside->fencing);
}

void outside__free(struct outside *outside)
{
	outside__stop(outside);
	tracepoints__free(outside->tracepoints);
	maps__close(&outside->maps);
	picked__free(&outside->picked);
	for (unsigned i = 0; i < OPTION_LIST_MAX; i++)
		free(outside->words[i]);
	free(outside->sources);
}
