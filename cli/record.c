// SPDX-License-Identifier: BSD-2-Clause
/*
 * record.c - `weir record`: the live kernel's events into a capture.
 *
 * What the stream delivers is written as it stands, in order. Every record is in a file, or counted as
 * filtered or lost: the ledger at the end closes. What a capture looks like is not known here.
 */
#include "capture/parts.h"
#include "capture/writer.h"
#include "cli/account.h"
#include "cli/clock.h"
#include "cli/commands.h"
#include "cli/live.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/stop.h"

#include <weir/weir.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#define FLUSH_NS	800000000ull /* so that no packet is older than a second */
#define MAX_BYTES_LEAST (8ull << 20)
#define MAX_AGE_LEAST	(8 * NSEC_PER_SEC)

struct record_options {
	struct live_options live;
	struct filter filter; /* the user and the cgroup of it */
	const char *output, *ledger;
	uint64_t max_bytes, max_age_ns, min_free_bytes;
	bool force, zstd, strict;
};

struct record {
	struct record_options opts;
	struct live live;
	struct writer *writer;
	struct progress progress;
	int dir_fd, ledger_fd; /* -1: none */
	bool made_dir;
	bool had_terminal;
	bool said_error;
	uint64_t flushed_ns;
	char *command; /* the command line */
};

#define AT(member) OPTION_AT(struct record_options, member)

static const struct option_def record_options[] = {
	{'o', "output", OPTION_STRING, AT(output), "DIR",
	 "the capture: a folder that is made (mode 0700), or empty"},
	{0, "force", OPTION_FLAG, AT(force), NULL, "if there is a capture in DIR, remove it first"},
	{'e', "events", OPTION_LIST, AT(live.events), "GROUP[:NAME][,...]",
	 "what to record, as for weir trace. Default: process, or\n"
	 "process,signal,sys for processes (-p) or COMMAND"},
	OPTION_PART(live__process_options, AT(live)),
	{0, "cgroup", OPTION_STRING, AT(filter.cgroup), "PATH",
	 "of system calls, only those from this cgroup and those below it"},
	{0, "uid", OPTION_STRING, AT(filter.user), "USER",
	 "of system calls, only those of processes that USER (name or\n"
	 "number) ran"},
	{0, "max-size", OPTION_SIZE, AT(max_bytes), "SIZE",
	 "keep the capture under SIZE (at least 8M): the oldest eighth\n"
	 "of it is removed, again and again"},
	{0, "max-age", OPTION_DURATION, AT(max_age_ns), "TIME",
	 "remove what is older than TIME (at least 8 seconds), by eighths"},
	{0, "min-free", OPTION_SIZE, AT(min_free_bytes), "SIZE",
	 "leave so much of the disk free: the oldest parts are removed,\n"
	 "and where that is not enough, what comes is counted as lost"},
	{0, "zstd", OPTION_FLAG, AT(zstd), NULL,
	 "compress the files of every part but the last; other readers\n"
	 "want them decompressed first"},
	OPTION_PART(live__options, AT(live)),
	{0, "ledger", OPTION_STRING, AT(ledger), "FILE",
	 "write the account of all records there at the end (JSON)"},
	{0, "strict", OPTION_FLAG, AT(strict), NULL, "exit with 3 if anything was lost"},
	{0},
};

static const struct command_def record_command = {
	.name = "record",
	.synopsis = "-o DIR [OPTION]... [[--] COMMAND [ARG]...]",
	.about =
		"Writes the kernel's events of all CPUs into a capture, a folder in the Common Trace\n"
		"Format (CTF 1.8) that babeltrace2 and others open as well. Needs root, or CAP_BPF and\n"
		"CAP_PERFMON. Ctrl-C ends it (while COMMAND runs, the first is COMMAND's), SIGHUP begins\n"
		"new files, SIGUSR1 prints the account so far. kill -9 costs at most the last second.",
	.after =
		"Filters such as --comm, --path, --failed are weir replay's.\n\n"
		"Examples:\n"
		"  weir record -o make.weir make            what make and all that it starts do\n"
		"  weir record -o last -e process,sys --max-size 1G --max-age 1h\n"
		"                                           the last hour, in at most 1 GiB\n"
		"  weir replay make.weir                    print it\n"
		"  babeltrace2 make.weir                    the same, by another reader\n\n"
		"Exit status: 0 done, 1 failed, 2 wrong usage, 3 something was lost (--strict).\n"
		"With COMMAND: its own, 128 + N when signal N ended it or weir, 125 when weir failed or was\n"
		"stopped before COMMAND began, 126 when it could not be run, 127 when there is none.",
	.runs_command = true,
	.options = record_options,
};

#define SAY(...) say(&record_command, __VA_ARGS__)

/* ---- events ----------------------------------------------------------------------------------- */

static enum capture_ring ring_of(const char *source)
{
	return strncmp(source, "life", 4) != 0 ? CAPTURE_RING_CPU : CAPTURE_RING_LIFE;
}

static void write_notice(struct record *r, const struct weir_event *event)
{
	struct weir_source_info info;

	if (weir_stream__source(r->live.stream, event->source, &info))
		writer__notice(r->writer, event, CAPTURE_RING_NONE);
	else
		writer__notice(r->writer, event, ring_of(info.name));
}

/* A record whose payload makes no sense: counted, and its place kept. */
static void give_up(struct record *r, const struct weir_event *event)
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
	weir_stream__count_lost(r->live.stream, event->source, 1, WEIR_LOST_BROKEN);
	write_notice(r, &lost);
}

static bool is_selected(const struct record *r, const struct weir_event *event)
{
	return event->type < 32 && (r->live.selection.types >> event->type & 1);
}

static int on_event(void *ctx, const struct weir_event *event)
{
	struct record *r = ctx;
	int err;

	if (event->kind != WEIR_KIND_RECORD) {
		write_notice(r, event);
		return 0;
	}
	if (event->type <= WEIR_T_LIFE_MAX)
		tasks__apply(r->live.tasks, event);
	if (live__is_before_command(&r->live, event)) {
		weir_stream__count_filtered(r->live.stream, event->source, 1);
		return 0;
	}
	err = writer__record(r->writer, event);
	if (err)
		give_up(r, event);
	else if (!is_selected(r, event))
		/* Kept for the process table alone. */
		weir_stream__count_filtered(r->live.stream, event->source, 1);
	return 0;
}

static void on_watermark(void *ctx, uint64_t watermark_ns, enum weir_order order)
{
	struct record *r = ctx;

	tasks__retire(r->live.tasks, watermark_ns);
}

static void on_lost(void *ctx, uint32_t source, uint64_t records)
{
	struct record *r = ctx;

	weir_stream__count_lost(r->live.stream, source, records, WEIR_LOST_OUTPUT);
}

/* ---- set up ----------------------------------------------------------------------------------- */

static bool check_options(struct record *r)
{
	if (!r->opts.output) {
		SAY("say where the capture is to be: -o DIR");
		return false;
	}
	if (r->opts.max_bytes && r->opts.max_bytes < MAX_BYTES_LEAST) {
		SAY("--max-size is at least 8M");
		return false;
	}
	if (r->opts.max_age_ns && r->opts.max_age_ns < MAX_AGE_LEAST) {
		SAY("--max-age is at least 8 seconds");
		return false;
	}
	return filter__check(&r->opts.filter, &record_command) &&
	       live__check(&r->live, live__default_events(&r->live));
}

static bool is_usable(struct record *r)
{
	int found = parts__look(r->dir_fd);

	if (found < 0)
		SAY("%s: %s", r->opts.output, strerror(-found));
	else if (found == PARTS_OTHER)
		SAY("%s: has other files in it; a capture needs a folder of its own",
		    r->opts.output);
	else if (found == PARTS_CAPTURE && !r->opts.force)
		SAY("%s: there is a capture already; --force removes it", r->opts.output);
	else
		return true;
	return false;
}

static bool open_dir(struct record *r)
{
	r->made_dir = !mkdir(r->opts.output, 0700);
	if (r->made_dir || errno == EEXIST)
		r->dir_fd = open(r->opts.output, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->dir_fd < 0) {
		SAY("%s: %s", r->opts.output, strerror(errno));
		return false;
	}
	/* Not even --force takes it from one that writes there. */
	if (flock(r->dir_fd, LOCK_EX | LOCK_NB)) {
		SAY("%s: another weir records there", r->opts.output);
		return false;
	}
	return r->made_dir || is_usable(r);
}

static bool open_ledger(struct record *r)
{
	if (!r->opts.ledger)
		return true;
	r->ledger_fd = open(r->opts.ledger, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (r->ledger_fd >= 0)
		return true;
	SAY("%s: %s", r->opts.ledger, strerror(errno));
	return false;
}

static void put_word(FILE *to, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_-+=./,:@%";

	if (*word && !word[strspn(word, plain)]) {
		fputs(word, to);
		return;
	}
	fputc('\'', to);
	for (; *word; word++)
		if (*word == '\'')
			fputs("'\\''", to);
		else
			fputc(*word, to);
	fputc('\'', to);
}

/* As a shell would take it. */
static char *command_line(int argc, char **argv)
{
	char *line = NULL;
	size_t len;
	FILE *to = open_memstream(&line, &len);

	if (!to)
		return NULL;
	fputs("weir", to);
	for (int i = 0; i < argc; i++) {
		fputc(' ', to);
		put_word(to, argv[i]);
	}
	return fclose(to) ? NULL : line;
}

static void read_boot_id(char boot_id[37])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, boot_id, 36);

	if (fd >= 0)
		close(fd);
	if (n != 36)
		strcpy(boot_id, "00000000-0000-0000-0000-000000000000");
	else
		boot_id[36] = 0;
}

/* CLOCK_REALTIME - CLOCK_MONOTONIC: of a few tries, the one that nothing came between. */
static int64_t wall_offset_now_ns(void)
{
	uint64_t best_ns = UINT64_MAX;
	int64_t offset_ns = 0;

	for (int i = 0; i < 8; i++) {
		uint64_t before = clock_ns(CLOCK_MONOTONIC);
		uint64_t wall = clock_ns(CLOCK_REALTIME);
		uint64_t took = clock_ns(CLOCK_MONOTONIC) - before;

		if (took >= best_ns)
			continue;
		best_ns = took;
		offset_ns = (int64_t)(wall - before - took / 2);
	}
	return offset_ns;
}

static bool open_writer(struct record *r, uint64_t start_ns, int64_t wall_offset_ns)
{
	struct utsname uts;
	struct metadata metadata = {
		.wall_offset_ns = wall_offset_ns,
		.version = WEIR_VERSION,
		.command = r->command,
		.command_pid = r->live.has_command ? (uint32_t)r->live.command.pid : 0,
		.nr_cpus = (uint32_t)sysconf(_SC_NPROCESSORS_CONF),
		.selected_types = r->live.selection.types,
	};
	const struct writer_opts opts = {
		.dir_fd = r->dir_fd,
		.metadata = &metadata,
		.start_ns = start_ns,
		.max_bytes = r->opts.max_bytes,
		.max_age_ns = r->opts.max_age_ns,
		.min_free_bytes = r->opts.min_free_bytes,
		.compress = r->opts.zstd,
		.lost = on_lost,
		.ctx = r,
	};

	uname(&uts);
	metadata.hostname = uts.nodename;
	metadata.sysname = uts.sysname;
	metadata.release = uts.release;
	read_boot_id(metadata.boot_id);
	r->writer = writer__new(&opts);
	return r->writer;
}

static void write_task(void *ctx, const struct weir_seed *seed, const char *exe,
		       const char *cgroups)
{
	struct record *r = ctx;

	writer__task(r->writer, seed, exe, cgroups);
}

static enum weir_order order_of(const struct record *r)
{
	struct weir_ledger ledger = {.sz = sizeof(ledger)};

	weir_stream__ledger(r->live.stream, &ledger);
	return ledger.order;
}

static void flush(struct record *r)
{
	writer__flush(r->writer, weir_stream__watermark(r->live.stream), order_of(r));
	r->flushed_ns = now_ns();
}

static void begin_part(struct record *r, int64_t wall_offset_ns)
{
	writer__begin_part(r->writer, wall_offset_ns);
	tasks__each(r->live.tasks, write_task, r);
	flush(r);
}

static bool start(struct record *r)
{
	struct weir_stream_opts opts = {
		.sz = sizeof(opts),
		.on_event = on_event,
		.on_watermark = on_watermark,
		.ctx = r,
	};
	uint64_t start_ns = now_ns();
	int64_t wall_offset_ns = wall_offset_now_ns();
	int err = 0;

	if (!live__open(&r->live, &opts) || !live__attach(&r->live) || !live__settle(&r->live))
		return false;
	/* What stood there stays until now, when nothing can fail but the disk. */
	if (r->opts.force)
		err = parts__remove_all(r->dir_fd);
	if (!err && !open_writer(r, start_ns, wall_offset_ns))
		err = -errno;
	if (err) {
		SAY("%s: %s", r->opts.output, strerror(-err));
		return false;
	}
	r->made_dir = false;
	begin_part(r, wall_offset_ns);
	live__say_ready(&r->live, "recording");
	return true;
}

/* ---- run -------------------------------------------------------------------------------------- */

static void write_accounts(struct record *r)
{
	struct weir_source_info info;

	for (uint32_t i = 0; !weir_stream__source(r->live.stream, i, &info); i++)
		writer__account(r->writer, &info, ring_of(info.name));
}

/* Accounts are of what has got into files: they are taken when no record can be lost any more. */
static void end_part(struct record *r, uint64_t watermark_ns, bool closed)
{
	writer__end_records(r->writer, watermark_ns, closed);
	write_accounts(r);
	writer__end_part(r->writer, watermark_ns, order_of(r), closed);
}

static void rotate(struct record *r)
{
	uint64_t watermark_ns = weir_stream__watermark(r->live.stream);

	end_part(r, watermark_ns, false);
	begin_part(r, weir_stream__wall_ns(r->live.stream, watermark_ns) - (int64_t)watermark_ns);
}

/* It hangs up as it goes, which is no wish for another part: nobody is left to end this. */
static bool terminal_is_gone(const struct record *r)
{
	return r->had_terminal && !isatty(STDERR_FILENO);
}

/* What did not fit is in the ledger; that it does not is said once, and at once. */
static void say_error(struct record *r)
{
	struct writer_stats stats;

	writer__stats(r->writer, &stats);
	if (!stats.error || r->said_error)
		return;
	r->said_error = true;
	progress__wipe(&r->progress);
	SAY("%s: %s; what does not fit is counted as lost", r->opts.output, strerror(-stats.error));
}

static void look_after(struct record *r)
{
	uint64_t now = now_ns();

	if (stop__hangup_came() && !terminal_is_gone(r)) {
		rotate(r);
	} else if (writer__part_is_full(r->writer, now)) {
		rotate(r);
	} else if (now - r->flushed_ns >= FLUSH_NS) {
		flush(r);
	}
	say_error(r);
	progress__draw(&r->progress, r->live.stream, r->writer, now);
	if (stop__ledger_wanted())
		account__write(r->live.stream, STDERR_FILENO, ACCOUNT_TEXT);
}

static int run(struct record *r)
{
	while (!terminal_is_gone(r) && !live__is_over(&r->live)) {
		int err = live__poll(&r->live);

		if (err)
			return err;
		look_after(r);
	}
	return 0;
}

/* Everything that was published is written, then the account is taken. */
static int finish(struct record *r)
{
	int err = live__close(&r->live);

	if (err)
		SAY("the last events could not be read: %s", strerror(-err));
	end_part(r, weir_stream__watermark(r->live.stream), true);
	progress__wipe(&r->progress);
	say_error(r);
	return err;
}

static int report(struct record *r)
{
	struct writer_stats stats;
	int err = 0;

	writer__stats(r->writer, &stats);
	live__say_running(&r->live);
	account__write(r->live.stream, STDERR_FILENO, ACCOUNT_TEXT);
	if (r->ledger_fd < 0)
		return stats.error;
	if (ftruncate(r->ledger_fd, 0) && errno != EINVAL)
		err = -errno;
	if (!err)
		err = account__write(r->live.stream, r->ledger_fd, ACCOUNT_JSON);
	if (err)
		SAY("%s: %s", r->opts.ledger, strerror(-err));
	return stats.error ? stats.error : err;
}

static int record(struct record *r, char **argv)
{
	int failed = r->live.has_command ? EXIT_WEIR_FAILED : EXIT_FAILED;
	bool bad = false;
	int err;

	if (!open_dir(r) || !open_ledger(r) || !live__fork_command(&r->live, argv) || !start(r))
		return failed;
	if (live__start(&r->live)) {
		err = run(r);
		if (err)
			SAY("%s", strerror(-err));
		bad = err;
	}
	bad |= finish(r) != 0;
	bad |= report(r) != 0;
	if (bad)
		return failed;
	if (r->opts.strict && account__is_loss(&record_command, r->live.stream, false))
		return EXIT_LOST;
	return r->live.has_command ? live__command_status(&r->live) : EXIT_OK;
}

static void free_record(struct record *r)
{
	live__free(&r->live);
	writer__free(r->writer);
	if (r->dir_fd >= 0)
		close(r->dir_fd);
	if (r->ledger_fd >= 0)
		close(r->ledger_fd);
	/* It could not begin: nothing was put there. */
	if (r->made_dir)
		rmdir(r->opts.output);
	free(r->command);
	filter__free(&r->opts.filter);
}

int cmd_record(int argc, char **argv)
{
	static struct record r = {.dir_fd = -1, .ledger_fd = -1};
	int status, operand;

	operand = options__parse(&record_command, argc, argv, &r.opts, &status);
	if (operand < 0)
		return status;
	r.live.def = &record_command;
	r.live.opts = &r.opts.live;
	r.live.filter = &r.opts.filter;
	r.live.has_command = operand < argc;
	if (!check_options(&r))
		return EXIT_USAGE;
	status = r.live.has_command ? live__find_program(&r.live, argv[operand]) : EXIT_OK;
	if (status != EXIT_OK)
		return status;
	r.command = command_line(argc, argv);
	r.had_terminal = isatty(STDERR_FILENO);
	progress__init(&r.progress, r.had_terminal && !r.live.has_command);
	stop__hangup_asks();
	if (!r.command || stop__install(r.live.has_command)) {
		SAY("cannot catch signals: %s", strerror(errno));
		return r.live.has_command ? EXIT_WEIR_FAILED : EXIT_FAILED;
	}
	status = record(&r, argv + operand);
	free_record(&r);
	return status;
}
