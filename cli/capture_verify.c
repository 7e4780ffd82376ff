/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * capture_verify.c - a capture against its own rules, then what comes out of it against weir's.
 *
 * First each packet (survey.h), then the events as replay delivers them, before the same judge as a
 * trace in JSON. Promises that without --repair nothing is written.
 */
#include "cli/capture_verify.h"

#include "capture/feed.h"
#include "capture/survey.h"
#include "cli/judge.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PROBLEMS_SAID 50

enum status {
	GOOD = 0,
	BROKEN = 1,
	NO_VERDICT = EXIT_USAGE,
};

struct verifying {
	const struct command_def *command;
	const char *path;
	const struct capture_verify_options *opts;
	struct reader *reader;
	struct survey survey;
	uint64_t problems;

	struct weir_stream *stream;
	struct judge *judge;
	struct judge_verdict verdict;
	uint64_t events;
	const char *names[2 * 4096]; /* of sources, as they are met */
};

static void say_problem(struct verifying *v, const char *file, uint64_t offset, const char *text)
{
	if (v->problems++ >= PROBLEMS_SAID)
		return;
	if (file)
		fprintf(stderr, "%s/%s: the packet at byte %" PRIu64 " %s\n", v->path, file, offset,
			text);
	else
		fprintf(stderr, "%s: %s\n", v->path, text);
}

static void on_problem(void *ctx, const char *file, uint64_t offset, const char *text)
{
	say_problem(ctx, file, offset, text);
}

/* ---- the events ------------------------------------------------------------------------------- */

static const char *source_name(struct verifying *v, uint32_t source)
{
	struct weir_source_info info;

	if (source >= sizeof(v->names) / sizeof(v->names[0]))
		return weir_stream__source(v->stream, source, &info) ? NULL : info.name;
	if (!v->names[source] && !weir_stream__source(v->stream, source, &info))
		v->names[source] = info.name;
	return v->names[source];
}

/* What a line of JSON would say of it. */
static int on_event(void *ctx, const struct weir_event *event)
{
	struct verifying *v = ctx;
	struct judge_line line = {
		.no = ++v->events,
		.kind = event->kind == WEIR_KIND_RECORD ? JUDGE_RECORD
			: event->kind == WEIR_KIND_GAP	? JUDGE_GAP
							: JUDGE_CLOCK_STEP,
		.stamp_ns = event->stamp_ns,
		.source = event->source == WEIR_SOURCE_NONE ? NULL : source_name(v, event->source),
		.has_seq = event->kind == WEIR_KIND_RECORD,
		.seq = event->seq,
		.late = event->mark & WEIR_MARK_LATE,
		.ahead = event->mark & WEIR_MARK_AHEAD,
	};

	if (event->kind == WEIR_KIND_GAP) {
		line.gap = *(const struct weir_gap *)event->data;
		line.has_seq = line.source && line.gap.lost && line.gap.bound == WEIR_BOUND_EXACT &&
			       line.gap.seq_end;
	}
	return judge__line(v->judge, &line, &v->verdict) ? 0 : -EILSEQ;
}

static int judge_events(struct verifying *v)
{
	const struct weir_stream_opts opts = {.sz = sizeof(opts), .on_event = on_event, .ctx = v};
	const struct feed_opts all = {0, UINT64_MAX};
	struct feed *feed;
	int more = 1;

	v->judge = judge__new();
	v->stream = weir_stream__new(&opts);
	feed = v->judge && v->stream ? feed__new(v->reader, v->stream, &all) : NULL;
	if (!feed)
		return -ENOMEM;
	while (more > 0)
		more = feed__step(feed);
	feed__free(feed);
	if (!more && v->opts->complete && !judge__complete(v->judge, &v->verdict))
		more = -EILSEQ;
	return more;
}

/* ---- the verdict ------------------------------------------------------------------------------ */

static void say_good(const struct verifying *v)
{
	const struct survey *s = &v->survey;
	uint64_t records = 0, lost = 0;
	bool at_most = false, unknown = false;

	for (size_t i = 0; i < s->nr_cpus; i++)
		records += s->cpus[i].ring[0].records + s->cpus[i].ring[1].records;
	for (int cause = 0; cause < WEIR_LOST_CAUSES; cause++) {
		lost += s->lost[cause];
		at_most |= s->bound[cause] == WEIR_BOUND_AT_MOST;
		unknown |= s->bound[cause] == WEIR_BOUND_UNKNOWN;
	}
	printf("%s: %" PRIu64 " events, %" PRIu64 " gaps, %s%" PRIu64 " lost%s, %" PRIu64
	       " late, %" PRIu64 " packets: all promises kept%s\n",
	       v->path, records, s->gaps, at_most ? "at most " : "", lost,
	       unknown ? " and an unknown number" : "", s->late, s->packets,
	       s->closed ? ""
	       : reader__is_recording(v->reader)
		       ? "; it is being recorded"
		       : "; it was cut off, of its last second some may be missing");
}

static int check(struct verifying *v)
{
	int err = survey__take(v->reader, &v->survey, on_problem, v);

	if (v->problems > PROBLEMS_SAID)
		fprintf(stderr, "%s: and %" PRIu64 " more\n", v->path, v->problems - PROBLEMS_SAID);
	if (!err)
		err = judge_events(v);
	if (err == -EILSEQ) {
		fprintf(stderr, "%s: event %" PRIu64 ": %s: %s\n", v->path, v->events,
			v->verdict.promise, v->verdict.text);
		return BROKEN;
	}
	if (err) {
		say(v->command, "%s: %s", v->path, strerror(-err));
		return NO_VERDICT;
	}
	if (v->problems)
		return BROKEN;
	if (!v->opts->quiet)
		say_good(v);
	return GOOD;
}

/* ---- repair ----------------------------------------------------------------------------------- */

static const char *why_not(int error)
{
	switch (error) {
	case ELOOP:
		return "it is a symbolic link";
	case EMLINK:
		return "it has another name as well (a hard link), and would be cut there too";
	case EBUSY:
		return "it has changed meanwhile";
	}
	return strerror(error);
}

static void on_cut(void *ctx, const struct survey_cut *cut)
{
	const struct verifying *v = ctx;

	if (cut->error) {
		say(v->command, "%s/%s: not cut: %s", v->path, cut->file, why_not(cut->error));
		return;
	}
	if (cut->offset)
		printf("%s/%s: cut to %" PRIu64 " bytes: the %" PRIu64 " behind were no packet",
		       v->path, cut->file, cut->offset, cut->bytes);
	else
		printf("%s/%s: removed: its %" PRIu64 " bytes were no packet", v->path, cut->file,
		       cut->bytes);
	if (cut->records == READER_UNKNOWN)
		puts("; how many records it was to have is not known");
	else if (cut->records)
		printf("; it was to have %" PRIu64 " records\n", cut->records);
	else
		putchar('\n');
}

static bool open_reader(struct verifying *v)
{
	char err[512];

	v->reader = reader__open(v->path, err, sizeof(err));
	if (!v->reader)
		say(v->command, "%s", err);
	return v->reader;
}

static int repair(struct verifying *v)
{
	int failed = survey__repair(v->reader, on_cut, v);

	reader__close(v->reader);
	v->reader = NULL;
	if (failed < 0)
		say(v->command, "%s: %s", v->path,
		    failed == -EBUSY ? "a weir records there: what it has torn is being written"
				     : strerror(-failed));
	return failed || !open_reader(v) ? NO_VERDICT : GOOD;
}

int capture_verify(const struct command_def *command, const char *path,
		   const struct capture_verify_options *opts)
{
	static struct verifying v;
	int status = GOOD;

	v.command = command;
	v.path = path;
	v.opts = opts;
	if (!open_reader(&v))
		return NO_VERDICT;
	if (opts->repair)
		status = repair(&v);
	if (status == GOOD)
		status = check(&v);
	weir_stream__free(v.stream);
	judge__free(v.judge);
	survey__free(&v.survey);
	reader__close(v.reader);
	return status;
}
