/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * info.c - `weir info`: what a capture is: of what, when, how long, how much, and what it lost.
 */
#include "capture/survey.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "sinks/json.h"
#include "sinks/out.h"
#include "sinks/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NSEC_PER_SEC 1000000000ll

struct info_options {
	bool json;
};

struct info {
	struct info_options opts;
	const char *path;
	struct reader *reader;
	struct survey survey;
	uint64_t flaws;
};

static const struct option_def info_options[] = {
	{'j', "json", OPTION_FLAG, OPTION_AT(struct info_options, json), NULL,
	 "as one JSON object"},
	{0},
};

static const struct command_def info_command = {
	.name = "info",
	.synopsis = "[OPTION]... DIR",
	.about = "Tells what a capture is: of which machine and command, when, how long, how many\n"
		 "events of which kind and CPU, what was lost, and whether it is whole.",
	.after = "Exit status: 0 done, 1 it cannot be read, or has no metadata, 2 wrong usage.",
	.options = info_options,
};

#define SAY(...) say(&info_command, __VA_ARGS__)

static void count_flaw(void *ctx, const char *file, uint64_t offset, const char *text)
{
	struct info *info = ctx;

	info->flaws++;
}

static uint64_t sum_of(const struct survey *s)
{
	uint64_t sum = 0;

	for (unsigned int type = 0; type < FIELDS_TYPES; type++)
		sum += s->types[type];
	return sum;
}

static uint64_t cpu_records(const struct survey_cpu *cpu)
{
	return cpu->ring[CAPTURE_RING_LIFE].records + cpu->ring[CAPTURE_RING_CPU].records;
}

static uint64_t cpu_lost(const struct survey_cpu *cpu, int cause)
{
	return cpu->ring[CAPTURE_RING_LIFE].lost[cause] + cpu->ring[CAPTURE_RING_CPU].lost[cause];
}

static uint64_t cpu_lost_all(const struct survey_cpu *cpu)
{
	uint64_t sum = 0;

	for (int cause = 0; cause < WEIR_LOST_CAUSES; cause++)
		sum += cpu_lost(cpu, cause);
	return sum;
}

static int64_t wall_ns(const struct survey *s, uint64_t stamp_ns)
{
	return (int64_t)(stamp_ns + (uint64_t)s->wall_offset_ns);
}

/* Nobody vouches for what is behind a damaged packet. */
static const char *order_of(const struct info *info)
{
	return info->survey.order == WEIR_ORDER_EXACT && !info->flaws ? "exact" : "estimated";
}

/* ---- for people ------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void put(struct out *out, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	out__str(out, text);
}

static void print_time(struct out *out, const char *what, int64_t ns)
{
	time_t seconds = ns / NSEC_PER_SEC;
	char text[64];
	struct tm tm;

	localtime_r(&seconds, &tm);
	strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
	put(out, "%-9s %s.%09lld\n", what, text, (long long)(ns % NSEC_PER_SEC));
}

/* What the metadata says goes to a terminal, and comes from a file. */
static void print_words(struct out *out, const char *what, const char *words)
{
	put(out, "%-9s ", what);
	text__word(out, words ? words : "");
	out__char(out, '\n');
}

/* Of damage, no more is known than what is left of it tells. */
static void print_cause(struct out *out, const struct survey *s, int cause)
{
	bool damaged = cause == WEIR_LOST_BROKEN && (s->damaged || s->damaged_unknown);
	uint64_t lost = s->lost[cause] + (damaged ? s->damaged : 0);

	put(out, " %s ", weir_cause__name((enum weir_cause)cause));
	if (s->bound[cause] == WEIR_BOUND_UNKNOWN || (damaged && !lost))
		out__str(out, "unknown");
	else
		put(out, "%s%" PRIu64,
		    damaged				    ? "at least "
		    : s->bound[cause] == WEIR_BOUND_AT_MOST ? "at most "
							    : "",
		    lost);
	if (damaged)
		out__str(out, " (torn or damaged)");
}

static void print_lost(struct out *out, const struct survey *s)
{
	bool any = false;

	out__str(out, "lost     ");
	for (int cause = 0; cause < WEIR_LOST_CAUSES; cause++) {
		bool damaged = cause == WEIR_LOST_BROKEN && (s->damaged || s->damaged_unknown);

		if (!s->lost[cause] && s->bound[cause] != WEIR_BOUND_UNKNOWN && !damaged)
			continue;
		print_cause(out, s, cause);
		any = true;
	}
	if (!any)
		out__str(out, s->closed ? " nothing" : " nothing known");
	out__str(out, s->closed ? "\n" : "; what was not written yet is missing\n");
}

static void print_counts(struct out *out, const struct survey *s)
{
	put(out, "events    %" PRIu64, sum_of(s));
	if (s->late)
		put(out, ", %" PRIu64 " late", s->late);
	if (s->steps)
		put(out, "; %" PRIu64 " clock steps", s->steps);
	out__char(out, '\n');
	for (unsigned int type = 0; type < FIELDS_TYPES; type++)
		if (s->types[type])
			put(out, "  %-16s %12" PRIu64 "%s\n", fields__find(type)->event,
			    s->types[type],
			    type == WEIR_T_SIGNAL_GENERATE  ? "  generated"
			    : type == WEIR_T_SIGNAL_DELIVER ? "  delivered"
							    : "");
	for (size_t i = 0; i < s->nr_cpus; i++) {
		uint64_t lost = cpu_lost_all(&s->cpus[i]);

		put(out, "  CPU %-12u %12" PRIu64, s->cpus[i].cpu, cpu_records(&s->cpus[i]));
		if (lost)
			put(out, "  lost %" PRIu64, lost);
		out__char(out, '\n');
	}
}

static void print_origin(struct out *out, const struct reader_env *env)
{
	char text[sizeof(env->sysname) + sizeof(env->release)];

	if (!env->has_metadata) {
		out__str(out, "metadata  is missing: host, kernel and command are not known\n");
		return;
	}
	print_words(out, "host", env->hostname);
	snprintf(text, sizeof(text), "%s %s", env->sysname, env->release);
	print_words(out, "kernel", text);
	print_words(out, "command", env->command);
	snprintf(text, sizeof(text), "%s, layout %u", env->version, env->layout);
	print_words(out, "weir", text);
}

static bool has_compressed(struct reader *reader)
{
	size_t count;
	const struct reader_stream *streams = reader__streams(reader, &count);

	for (size_t i = 0; i < count; i++)
		for (size_t file = 0; file < streams[i].nr_files; file++)
			if (streams[i].files[file].compressed)
				return true;
	return false;
}

static const char *state_of(const struct info *info)
{
	if (info->flaws)
		return "damaged: 'weir verify' tells where";
	if (!info->survey.closed)
		return reader__is_recording(info->reader)
			       ? "being recorded"
			       : "cut off: of its last second some may be missing";
	return info->survey.first_part > 1 ? "whole, but for the oldest parts, which were given up"
					   : "whole";
}

static void print_text(struct out *out, const struct info *info)
{
	const struct survey *s = &info->survey;

	print_origin(out, reader__env(info->reader));
	print_time(out, "begin", wall_ns(s, s->begin_ns));
	print_time(out, "end", wall_ns(s, s->end_ns));
	put(out, "%-9s %.9f s\n", "duration", (double)(s->end_ns - s->begin_ns) / 1e9);
	put(out, "%-9s %.1f MiB, %" PRIu64 " packets, part%s %u", "size",
	    (double)s->bytes / 1048576, s->packets, s->last_part > s->first_part ? "s" : "",
	    s->first_part);
	if (s->last_part > s->first_part)
		put(out, " to %u", s->last_part);
	out__char(out, '\n');
	print_counts(out, s);
	print_lost(out, s);
	put(out, "%-9s %s\n", "order", order_of(info));
	put(out, "%-9s %s\n", "state", state_of(info));
	if (!has_compressed(info->reader))
		return;
	out__str(out, "zstd      other readers want 'zstd -d --rm --output-dir-flat ");
	out__str(out, info->path);
	out__char(out, ' ');
	out__str(out, info->path);
	out__str(out, "/.zstd/*' first\n");
}

/* ---- JSON ------------------------------------------------------------------------------------- */

static void key(struct out *out, const char *name)
{
	out__str(out, ",\"");
	out__str(out, name);
	out__str(out, "\":");
}

static void put_text(struct out *out, const char *name, const char *value)
{
	key(out, name);
	json__string(out, value ? value : "", value ? strlen(value) : 0);
}

static void put_number(struct out *out, const char *name, uint64_t value)
{
	key(out, name);
	out__u64(out, value);
}

static void put_stamp(struct out *out, const char *name, uint64_t value)
{
	key(out, name);
	out__char(out, '"');
	out__u64(out, value);
	out__char(out, '"');
}

/* 2025-09-09T10:05:45.123456789Z */
static void put_time(struct out *out, const char *name, int64_t ns)
{
	time_t seconds = ns / NSEC_PER_SEC;
	char date[32], text[64];
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text, sizeof(text), "%s.%09lldZ", date, (long long)(ns % NSEC_PER_SEC));
	put_text(out, name, text);
}

static void put_types(struct out *out, const struct survey *s)
{
	const char *between = "";

	key(out, "types");
	out__char(out, '{');
	for (unsigned int type = 0; type < FIELDS_TYPES; type++) {
		if (!s->types[type])
			continue;
		out__str(out, between);
		out__char(out, '"');
		out__str(out, fields__find(type)->event);
		if (type == WEIR_T_SIGNAL_GENERATE || type == WEIR_T_SIGNAL_DELIVER)
			out__str(out, type == WEIR_T_SIGNAL_GENERATE ? "_generated" : "_delivered");
		out__str(out, "\":");
		out__u64(out, s->types[type]);
		between = ",";
	}
	out__char(out, '}');
}

static void put_cpus(struct out *out, const struct survey *s)
{
	key(out, "cpus");
	out__char(out, '[');
	for (size_t i = 0; i < s->nr_cpus; i++) {
		out__str(out, i ? ",{\"cpu\":" : "{\"cpu\":");
		out__u64(out, s->cpus[i].cpu);
		put_number(out, "events", cpu_records(&s->cpus[i]));
		put_number(out, "lost", cpu_lost_all(&s->cpus[i]));
		out__char(out, '}');
	}
	out__char(out, ']');
}

/* What damage took is `broken`, as replay has it. */
static void put_lost(struct out *out, const struct survey *s)
{
	const char *between = "";

	key(out, "lost");
	out__char(out, '{');
	for (int cause = 0; cause < WEIR_LOST_CAUSES; cause++) {
		bool broken = cause == WEIR_LOST_BROKEN;
		bool unknown = s->bound[cause] == WEIR_BOUND_UNKNOWN ||
			       (broken && s->damaged_unknown);
		uint64_t lost = s->lost[cause] + (broken ? s->damaged : 0);

		if (!lost && !unknown)
			continue;
		out__str(out, between);
		out__char(out, '"');
		out__str(out, weir_cause__name((enum weir_cause)cause));
		out__str(out, "\":");
		if (unknown)
			out__str(out, "null");
		else
			out__u64(out, lost);
		between = ",";
	}
	out__char(out, '}');
}

static void put_flag(struct out *out, const char *name, bool value)
{
	key(out, name);
	out__str(out, value ? "true" : "false");
}

static void print_json(struct out *out, const struct info *info)
{
	const struct reader_env *env = reader__env(info->reader);
	const struct survey *s = &info->survey;

	out__str(out, "{\"layout\":");
	out__u64(out, env->layout);
	put_text(out, "host", env->hostname);
	put_text(out, "sysname", env->sysname);
	put_text(out, "kernel", env->release);
	put_text(out, "weir", env->version);
	put_text(out, "command", env->command);
	put_text(out, "boot_id", env->boot_id);
	put_stamp(out, "begin", s->begin_ns);
	put_stamp(out, "end", s->end_ns);
	put_time(out, "begin_time", wall_ns(s, s->begin_ns));
	put_time(out, "end_time", wall_ns(s, s->end_ns));
	put_stamp(out, "complete_to", s->complete_ns);
	put_number(out, "bytes", s->bytes);
	put_number(out, "packets", s->packets);
	put_number(out, "first_part", s->first_part);
	put_number(out, "last_part", s->last_part);
	put_number(out, "events", sum_of(s));
	put_number(out, "late", s->late);
	put_number(out, "gaps", s->gaps);
	put_number(out, "clock_steps", s->steps);
	put_types(out, s);
	put_cpus(out, s);
	put_lost(out, s);
	put_text(out, "order", order_of(info));
	put_flag(out, "closed", s->closed);
	put_number(out, "flaws", info->flaws);
	out__str(out, "}\n");
}

static int print(const struct info *info)
{
	struct out *out = out__new(STDOUT_FILENO, 0, NULL, 0);
	int err;

	if (!out)
		return -ENOMEM;
	if (info->opts.json)
		print_json(out, info);
	else
		print_text(out, info);
	out__end(out, false, 0);
	err = out__flush(out);
	out__free(out);
	return err;
}

static int run(struct info *info)
{
	char err[512];
	int failed;

	info->reader = reader__open(info->path, err, sizeof(err));
	if (!info->reader) {
		SAY("%s", err);
		return EXIT_FAILED;
	}
	failed = survey__take(info->reader, &info->survey, count_flaw, info);
	if (failed)
		SAY("out of memory");
	else
		failed = print(info);
	if (!failed && !reader__env(info->reader)->has_metadata) {
		SAY("%s: metadata is missing", info->path);
		failed = -1;
	}
	survey__free(&info->survey);
	reader__close(info->reader);
	return failed ? EXIT_FAILED : EXIT_OK;
}

int cmd_info(int argc, char **argv)
{
	static struct info info;
	int status, operand;

	operand = options__parse(&info_command, argc, argv, &info.opts, &status);
	if (operand < 0)
		return status;
	if (argc - operand != 1) {
		SAY("one capture at a time: DIR");
		return EXIT_USAGE;
	}
	info.path = argv[operand];
	return run(&info);
}
