/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace.c - `weir trace`: the live kernel's events in true time order.
 *
 * Puts the rooms together: probes write, the stream orders, the task table says who, a sink prints.
 * Every record that the stream delivers is printed, or counted as filtered or lost: the ledger at the
 * end closes or says by how much it does not.
 */
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/stop.h"
#include "probes/probes.h"
#include "sinks/out.h"
#include "sinks/sink.h"
#include "state/cgroupfs.h"
#include "state/tasks.h"

#include <weir/weir.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define NSEC_PER_SEC	 1000000000ull
#define OUT_BUFFER_BYTES (256u << 10)
#define STOP_GRACE_MS	 400
#define POLL_MS		 200 /* how late a signal that came between two calls may be seen */
#define WATERMARK_EVERY_NS \
	NSEC_PER_SEC /* on an idle machine; while events flow, behind each batch */
#define DEFAULT_BUFFER	 (16u << 20)
#define DEFAULT_STRING	 256u
#define STRING_LIMIT_MAX 4096u
#define PIDS_MAX	 4096

struct trace_options {
	struct option_list events, pids;
	const char *output, *format, *ledger;
	uint64_t duration_ns, max_events, buffer, string_limit;
	bool watermarks, strict, verbose;
};

struct trace {
	struct trace_options opts;
	struct probes_selection selection;
	struct weir_stream *stream;
	struct probes *probes;
	struct tasks *tasks;
	struct cgroupfs *cgroupfs;
	const struct sink_ops *sink;
	struct out *out;
	int out_fd;
	const char **source_names; /* by source; filled as they are met */
	uint32_t nr_sources;
	uint64_t printed;
	uint64_t last_watermark_ns; /* printed */
	bool printed_since_watermark;
	uint64_t broken; /* records whose payload made no sense */
};

static const struct option_def trace_options[] = {
	{'e', "events", OPTION_LIST, OPTION_AT(struct trace_options, events), "GROUP[:NAME][,...]",
	 "what to trace: groups process, sched, signal, sys, or NAMEs of\n"
	 "one group (a colon claims the rest: -e sys:openat,close);\n"
	 "repeat -e to mix. Default: process"},
	{'p', "pid", OPTION_LIST, OPTION_AT(struct trace_options, pids), "PID[,PID]...",
	 "only these processes, and those that they fork from now on;\n"
	 "ends when the last of them has"},
	{'o', "output", OPTION_STRING, OPTION_AT(struct trace_options, output), "FILE",
	 "write there (mode 0600) and not to standard output"},
	{'f', "format", OPTION_STRING, OPTION_AT(struct trace_options, format), "FORMAT",
	 "text (default), json (an object a line), or none (only count)"},
	{'d', "duration", OPTION_DURATION, OPTION_AT(struct trace_options, duration_ns), "TIME",
	 "stop after TIME: 10 (seconds), 500ms, 2m"},
	{'n', "max-events", OPTION_COUNT, OPTION_AT(struct trace_options, max_events), "N",
	 "stop after N events"},
	{0, "buffer", OPTION_SIZE, OPTION_AT(struct trace_options, buffer), "SIZE",
	 "kernel buffers for the whole machine, 7/8 of it for events and\n"
	 "1/8 for fork, exec and exit; rounded down to powers of two a\n"
	 "CPU. Default: 16M"},
	{0, "string-limit", OPTION_COUNT, OPTION_AT(struct trace_options, string_limit), "N",
	 "keep at most N bytes (up to 4096) of each string. Default: 256"},
	{0, "ledger", OPTION_STRING, OPTION_AT(struct trace_options, ledger), "FILE",
	 "write the account of all records there at the end (JSON)"},
	{0, "watermarks", OPTION_FLAG, OPTION_AT(struct trace_options, watermarks), NULL,
	 "also print up to which time the trace is complete"},
	{0, "strict", OPTION_FLAG, OPTION_AT(struct trace_options, strict), NULL,
	 "exit with 3 if anything was lost"},
	{'v', "verbose", OPTION_FLAG, OPTION_AT(struct trace_options, verbose), NULL,
	 "tell on standard error what is set up"},
	{0},
};

static const struct command_def trace_command = {
	.name = "trace",
	.synopsis = "[OPTION]...",
	.about =
		"Prints the kernel's events of all CPUs as one stream in true time order. What was\n"
		"lost stands in it as a gap, with its place and count. Needs root, or CAP_BPF and\n"
		"CAP_PERFMON. Ctrl-C ends it; SIGUSR1 prints the account so far.",
	.after = "Examples:\n"
		 "  weir trace                              every fork, exec and exit\n"
		 "  weir trace -e sys:openat,unlink -p 123  files that 123 and its children touch\n"
		 "  weir trace -e process,sched -e signal --format json -o trace.json -d 10\n"
		 "  weir verify trace.json                  check it\n\n"
		 "Exit status: 0 done, 1 failed, 2 wrong usage, 3 something was lost (--strict).",
	.options = trace_options,
};

#define SAY(...) say(&trace_command, __VA_ARGS__)

/* ---- what the user asked for ---------------------------------------------------------------- */

static bool select_names(struct trace *t, const char *group, size_t group_len, const char *names)
{
	char group_name[32], name[64], err[256];

	snprintf(group_name, sizeof(group_name), "%.*s", (int)group_len, group);
	do {
		size_t len = strcspn(names, ",");

		snprintf(name, sizeof(name), "%.*s", (int)len, names);
		if (probes__select(&t->selection, group_name, name, err, sizeof(err))) {
			SAY("%s", err);
			return false;
		}
		names += len + (names[len] == ',');
	} while (*names);
	return true;
}

static bool select_groups(struct trace *t, const char *list)
{
	char group[32], err[256];

	do {
		size_t len = strcspn(list, ",");

		snprintf(group, sizeof(group), "%.*s", (int)len, list);
		if (probes__select(&t->selection, group, NULL, err, sizeof(err))) {
			SAY("%s", err);
			return false;
		}
		list += len + (list[len] == ',');
	} while (*list);
	return true;
}

static bool select_events(struct trace *t)
{
	if (!t->opts.events.count)
		return select_groups(t, "process");
	for (unsigned i = 0; i < t->opts.events.count; i++) {
		const char *word = t->opts.events.at[i], *colon = strchr(word, ':');

		if (colon ? !select_names(t, word, (size_t)(colon - word), colon + 1)
			  : !select_groups(t, word))
			return false;
	}
	return true;
}

/* The process that a tid belongs to, from /proc; 0: there is none. */
static uint32_t process_of(uint32_t tid)
{
	char path[64], line[256];
	unsigned tgid = 0;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%u/status", tid);
	status = fopen(path, "re");
	if (!status)
		return 0;
	while (!tgid && fgets(line, sizeof(line), status))
		if (sscanf(line, "Tgid: %u", &tgid) != 1)
			tgid = 0;
	fclose(status);
	return tgid;
}

static bool add_pid(uint32_t *pids, uint32_t *count, const char *word, size_t len)
{
	char text[16], *end;
	unsigned long pid;
	uint32_t tgid;

	snprintf(text, sizeof(text), "%.*s", (int)len, word);
	pid = strtoul(text, &end, 10);
	if (!pid || *end || pid > INT32_MAX) {
		SAY("-p takes process ids, not '%.*s'", (int)len, word);
		return false;
	}
	tgid = process_of((uint32_t)pid);
	if (!tgid) {
		SAY("there is no process %lu", pid);
		return false;
	}
	if (tgid != pid) {
		SAY("%lu is a thread of process %u: use -p %u", pid, tgid, tgid);
		return false;
	}
	if (*count == PIDS_MAX) {
		SAY("at most %d processes", PIDS_MAX);
		return false;
	}
	pids[(*count)++] = tgid;
	return true;
}

static bool select_pids(struct trace *t)
{
	static uint32_t pids[PIDS_MAX];
	uint32_t count = 0;

	for (unsigned i = 0; i < t->opts.pids.count; i++) {
		const char *list = t->opts.pids.at[i];

		do {
			size_t len = strcspn(list, ",");

			if (!add_pid(pids, &count, list, len))
				return false;
			list += len + (list[len] == ',');
		} while (*list);
	}
	t->selection.pids = count ? pids : NULL;
	t->selection.nr_pids = count;
	return true;
}

/* ---- an event on its way to the sink ---------------------------------------------------------- */

static const char *source_name(struct trace *t, uint32_t source)
{
	struct weir_source_info info;

	if (source == WEIR_SOURCE_NONE)
		return NULL;
	if (source >= t->nr_sources) {
		const char **grown = realloc(t->source_names, (source + 1) * sizeof(*grown));

		if (!grown)
			return NULL;
		memset(grown + t->nr_sources, 0, (source + 1 - t->nr_sources) * sizeof(*grown));
		t->source_names = grown;
		t->nr_sources = source + 1;
	}
	if (!t->source_names[source] && !weir_stream__source(t->stream, source, &info))
		t->source_names[source] = info.name;
	return t->source_names[source];
}

static void print(struct trace *t, const struct weir_event *event,
		  const struct weir_decoded *decoded)
{
	struct sink_event item = {
		.event = event,
		.decoded = decoded,
		.wall_ns = weir_stream__wall_ns(t->stream, event->stamp_ns),
		.source = source_name(t, event->source),
	};
	char idle[WEIR_COMM_LEN];
	struct task_view task;

	if (decoded) {
		item.comm = decoded->comm;
		if (!decoded->tid) {
			snprintf(idle, sizeof(idle), "swapper/%d", event->cpu);
			item.comm = idle;
		} else if (tasks__find(t->tasks, decoded->tid, event->stamp_ns, &task)) {
			if (!item.comm)
				item.comm = task.comm;
			item.container = task.container;
		}
	}
	if (t->sink->event)
		t->sink->event(t->out, &item);
	t->printed_since_watermark = true;
}

/* A record whose payload makes no sense: counted, and its place shown. */
static void give_up(struct trace *t, const struct weir_event *event)
{
	struct weir_gap gap = {
		.from_ns = event->stamp_ns ? event->stamp_ns - 1 : 0,
		.to_ns = event->stamp_ns,
		.lost = 1,
		.cause = WEIR_LOST_BROKEN,
	};
	struct weir_event lost = *event;

	lost.kind = WEIR_KIND_GAP;
	lost.data = &gap;
	lost.len = sizeof(gap);
	weir_stream__count_lost(t->stream, event->source, 1, WEIR_LOST_BROKEN);
	print(t, &lost, NULL);
}

static bool selected(const struct trace *t, const struct weir_event *event)
{
	return event->type < 32 && t->selection.types >> event->type & 1;
}

static bool enough(const struct trace *t)
{
	return t->opts.max_events && t->printed >= t->opts.max_events;
}

static int on_event(void *ctx, const struct weir_event *event)
{
	struct weir_decoded decoded;
	struct trace *t = ctx;

	if (event->kind != WEIR_KIND_RECORD) {
		print(t, event, NULL);
		return 0;
	}
	if (event->type <= WEIR_T_LIFE_MAX)
		tasks__apply(t->tasks, event);
	if (!selected(t, event) || enough(t)) {
		weir_stream__count_filtered(t->stream, event->source, 1);
		return 0;
	}
	if (!t->sink->event) {
		t->printed++;
		return 0;
	}
	if (probes__decode(event, &decoded)) {
		give_up(t, event);
		return 0;
	}
	print(t, event, &decoded);
	t->printed++;
	if (enough(t))
		stop__request();
	return 0;
}

static void on_watermark(void *ctx, uint64_t watermark_ns, enum weir_order order)
{
	struct trace *t = ctx;

	tasks__retire(t->tasks, watermark_ns);
	if (!t->opts.watermarks || !t->sink->watermark)
		return;
	if (!t->printed_since_watermark && watermark_ns - t->last_watermark_ns < WATERMARK_EVERY_NS)
		return;
	t->sink->watermark(t->out, watermark_ns, weir_stream__wall_ns(t->stream, watermark_ns),
			   order);
	t->printed_since_watermark = false;
	t->last_watermark_ns = watermark_ns;
}

/* ---- the ledger ------------------------------------------------------------------------------- */

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static struct weir_source_info *all_sources(struct trace *t, uint32_t sources, uint32_t *n)
{
	struct weir_source_info *infos = calloc(sources ? sources : 1, sizeof(*infos));

	*n = 0;
	for (uint32_t i = 0; infos && i < sources; i++)
		if (!weir_stream__source(t->stream, i, &infos[*n]))
			(*n)++;
	return infos;
}

static int write_ledger(struct trace *t, int fd, bool json)
{
	struct weir_ledger ledger = {.sz = sizeof(ledger)};
	struct sink_ledger_extra extra = {.self_cpu_ns = cpu_ns()};
	struct weir_source_info *infos;
	struct out *out;
	int err;

	weir_stream__ledger(t->stream, &ledger);
	infos = all_sources(t, ledger.sources, &extra.n);
	extra.sources = infos;
	out = infos ? out__new(fd, 0, NULL, 0) : NULL;
	err = out ? 0 : -ENOMEM;
	if (!err) {
		(json ? sink__ledger_json : sink__ledger_text)(out, &ledger, &extra);
		out__char(out, '\n');
		out__end(out, false, WEIR_SOURCE_NONE);
		err = out__flush(out);
	}
	out__free(out);
	free(infos);
	return err;
}

static bool is_json(const struct trace *t)
{
	return !strcmp(t->sink->name, "json");
}

static int write_ledger_file(struct trace *t)
{
	int fd, err;

	if (!t->opts.ledger)
		return 0;
	fd = open(t->opts.ledger, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	err = fd < 0 ? -errno : write_ledger(t, fd, true);
	if (fd >= 0 && close(fd) && !err)
		err = -errno;
	if (err)
		SAY("%s: %s", t->opts.ledger, strerror(-err));
	return err;
}

static bool anything_lost(const struct trace *t)
{
	struct weir_ledger ledger = {.sz = sizeof(ledger)};

	weir_stream__ledger(t->stream, &ledger);
	for (int cause = 0; cause < WEIR_LOST_CAUSES; cause++)
		if (ledger.total.lost[cause])
			return true;
	return false;
}

/* ---- set up ----------------------------------------------------------------------------------- */

static size_t floor_power_of_two(uint64_t n)
{
	return n ? (size_t)1 << (63 - __builtin_clzll(n)) : 0;
}

/* Sizes of one CPU's two rings; false, and said why, when the buffer is too small or too large. */
static bool split_buffer(const struct trace *t, size_t *life_bytes, size_t *event_bytes)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE),
		 cpus = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t least = 8 * page * cpus, share = t->opts.buffer / cpus;

	*life_bytes = floor_power_of_two(share / 8);
	*event_bytes = floor_power_of_two(share - share / 8);
	if (*life_bytes < page) {
		SAY("--buffer %llu is too small for %llu CPUs: the least that works is %lluk",
		    (unsigned long long)t->opts.buffer, (unsigned long long)cpus,
		    (unsigned long long)least / 1024);
		return false;
	}
	if (*event_bytes > 1u << 30) {
		SAY("--buffer is too large: at most 1G a CPU, so %lluG here",
		    (unsigned long long)cpus);
		return false;
	}
	return true;
}

static bool check_options(struct trace *t)
{
	if (!t->opts.format)
		t->opts.format = "text";
	t->sink = sink__find(t->opts.format);
	if (!t->sink) {
		SAY("there is no format '%s': text, json or none", t->opts.format);
		return false;
	}
	if (!t->opts.buffer)
		t->opts.buffer = DEFAULT_BUFFER;
	if (!t->opts.string_limit)
		t->opts.string_limit = DEFAULT_STRING;
	if (t->opts.string_limit > STRING_LIMIT_MAX) {
		SAY("--string-limit is at most %u", STRING_LIMIT_MAX);
		return false;
	}
	t->selection.string_limit = (uint32_t)t->opts.string_limit;
	return select_events(t) && select_pids(t);
}

static bool open_output(struct trace *t)
{
	t->out_fd = STDOUT_FILENO;
	if (t->opts.output && strcmp(t->opts.output, "-")) {
		t->out_fd = open(t->opts.output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		if (t->out_fd < 0) {
			SAY("%s: %s", t->opts.output, strerror(errno));
			return false;
		}
	}
	t->out = out__new(t->out_fd, OUT_BUFFER_BYTES, &stop__requested, STOP_GRACE_MS);
	if (!t->out)
		SAY("out of memory");
	return t->out;
}

static bool open_stream(struct trace *t)
{
	struct weir_stream_opts opts = {
		.sz = sizeof(opts),
		.on_event = on_event,
		.on_watermark = on_watermark,
		.ctx = t,
		.memory_bytes = (64u << 20) + t->opts.buffer,
	};

	t->stream = weir_stream__new(&opts);
	t->tasks = tasks__new(0);
	if (!t->stream || !t->tasks) {
		SAY("cannot make the stream: %s", strerror(errno));
		return false;
	}
	t->cgroupfs = cgroupfs__open(NULL);
	if (t->cgroupfs)
		tasks__set_cgroup_resolver(t->tasks, cgroupfs__resolve, t->cgroupfs);
	return true;
}

static void on_seed(void *ctx, const struct weir_seed *seed, const char *exe,
		    const char *cgroup_path)
{
	struct trace *t = ctx;

	tasks__seed(t->tasks, seed, exe, cgroup_path);
}

static bool start(struct trace *t)
{
	size_t life_bytes, event_bytes;
	char err[512];

	if (!split_buffer(t, &life_bytes, &event_bytes) || !open_stream(t))
		return false;
	t->probes = probes__open(&t->selection, err, sizeof(err));
	if (!t->probes ||
	    probes__connect(t->probes, t->stream, life_bytes, event_bytes, err, sizeof(err)) ||
	    probes__attach(t->probes, on_seed, t, err, sizeof(err))) {
		SAY("%s", err);
		return false;
	}
	if (t->opts.verbose)
		SAY("tracing; rings a CPU: %zu bytes for events, %zu for fork, exec and exit",
		    event_bytes, life_bytes);
	return true;
}

/* ---- run -------------------------------------------------------------------------------------- */

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static int poll_timeout_ms(uint64_t end_ns)
{
	uint64_t now = now_ns();

	if (end_ns <= now)
		return 0;
	if (end_ns - now < POLL_MS * 1000000ull)
		return (int)((end_ns - now + 999999) / 1000000);
	return POLL_MS;
}

static bool over(const struct trace *t, uint64_t end_ns)
{
	return stop__requested || now_ns() >= end_ns || out__error(t->out) ||
	       (t->selection.nr_pids && !probes__alive(t->probes));
}

/* Returns 0, or what poll said. */
static int run(struct trace *t)
{
	uint64_t end_ns = t->opts.duration_ns ? now_ns() + t->opts.duration_ns : UINT64_MAX;

	while (!over(t, end_ns)) {
		int count = weir_stream__poll(t->stream, poll_timeout_ms(end_ns));

		if (count < 0 && count != -EINTR)
			return count;
		out__flush(t->out);
		if (stop__ledger_wanted())
			write_ledger(t, STDERR_FILENO, is_json(t));
	}
	return 0;
}

static void count_unwritten(void *ctx, uint32_t source, uint64_t events)
{
	struct trace *t = ctx;

	weir_stream__count_lost(t->stream, source, events, WEIR_LOST_OUTPUT);
}

/* Everything that was published comes out, then the account is taken. */
static int finish(struct trace *t)
{
	int err;

	probes__detach(t->probes);
	err = weir_stream__close(t->stream);
	if (err)
		SAY("the last events could not be read: %s", strerror(-err));
	out__flush(t->out);
	out__unwritten(t->out, count_unwritten, t);
	return err;
}

static int report(struct trace *t)
{
	int err = out__error(t->out);

	/* A reader that has gone away has what it wanted; a stop has cut the rest short. */
	if (err == -EPIPE || err == -ECANCELED)
		err = 0;
	if (err)
		SAY("%s: %s", t->opts.output ? t->opts.output : "standard output", strerror(-err));
	write_ledger(t, STDERR_FILENO, is_json(t));
	if (write_ledger_file(t))
		err = -EIO;
	return err;
}

static void free_trace(struct trace *t)
{
	if (t->out && t->out_fd != STDOUT_FILENO)
		close(t->out_fd);
	out__free(t->out);
	probes__free(t->probes);
	weir_stream__free(t->stream);
	tasks__free(t->tasks);
	cgroupfs__close(t->cgroupfs);
	free(t->source_names);
}

static int trace(struct trace *t)
{
	int err, status = EXIT_OK;

	if (!open_output(t) || !start(t))
		return EXIT_FAILED;
	err = run(t);
	if (err)
		SAY("%s", strerror(-err));
	if (finish(t) || err)
		status = EXIT_FAILED;
	if (report(t))
		status = EXIT_FAILED;
	if (status == EXIT_OK && t->opts.strict && anything_lost(t))
		status = EXIT_LOST;
	return status;
}

int cmd_trace(int argc, char **argv)
{
	struct trace t = {.out_fd = -1};
	int status, operand;

	operand = options__parse(&trace_command, argc, argv, &t.opts, &status);
	if (operand < 0)
		return status;
	if (operand < argc) {
		SAY("'%s' is one word too many", argv[operand]);
		return EXIT_USAGE;
	}
	if (!check_options(&t))
		return EXIT_USAGE;
	if (stop__install()) {
		SAY("cannot catch signals: %s", strerror(errno));
		return EXIT_FAILED;
	}
	status = trace(&t);
	free_trace(&t);
	return status;
}
