/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/account.h"

#include "sinks/out.h"
#include "sinks/sink.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static uint64_t own_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static struct weir_source_info *all_sources(const struct weir_stream *stream, uint32_t sources,
					    uint32_t *n)
{
	struct weir_source_info *infos = calloc(sources ? sources : 1, sizeof(*infos));

	*n = 0;
	for (uint32_t i = 0; infos && i < sources; i++)
		if (!weir_stream__source(stream, i, &infos[*n]))
			(*n)++;
	return infos;
}

static int put(const struct weir_stream *stream, struct out *out, enum account_form form,
	       bool two_lines)
{
	struct weir_ledger ledger = {.sz = sizeof(ledger)};
	struct sink_ledger_extra extra = {
		.self_cpu_ns = own_cpu_ns(),
		.two_lines = two_lines,
		.is_event = form == ACCOUNT_EVENT,
	};
	struct weir_source_info *infos;

	weir_stream__ledger(stream, &ledger);
	infos = all_sources(stream, ledger.sources, &extra.n);
	if (!infos)
		return -ENOMEM;
	extra.sources = infos;
	if (form != ACCOUNT_TEXT)
		sink__ledger_json(out, &ledger, &extra);
	else
		sink__ledger_text(out, &ledger, &extra);
	free(infos);
	return 0;
}

int account__put(const struct weir_stream *stream, struct out *out, bool json)
{
	return put(stream, out, json ? ACCOUNT_JSON : ACCOUNT_TEXT, true);
}

int account__write(const struct weir_stream *stream, int fd, enum account_form form)
{
	struct out *out = out__new(fd, 0, NULL, 0);
	int err = out ? put(stream, out, form, isatty(fd)) : -ENOMEM;

	if (!err) {
		out__char(out, '\n');
		out__end(out, false, WEIR_SOURCE_NONE);
		err = out__flush(out);
	}
	out__free(out);
	return err;
}

static bool is_same_file(int a, int b)
{
	struct stat a_st, b_st;

	if (fstat(a, &a_st) || fstat(b, &b_st))
		return false;
	return a_st.st_dev == b_st.st_dev && a_st.st_ino == b_st.st_ino;
}

int account__say(const struct weir_stream *stream, bool json, int trace_fd)
{
	enum account_form form = ACCOUNT_TEXT;

	if (json && !isatty(STDERR_FILENO))
		form = is_same_file(trace_fd, STDERR_FILENO) ? ACCOUNT_EVENT : ACCOUNT_JSON;
	return account__write(stream, STDERR_FILENO, form);
}

bool account__is_loss(const struct command_def *command, const struct weir_stream *stream,
		      bool reader_gone)
{
	struct weir_ledger ledger = {.sz = sizeof(ledger)};
	bool unknown = false;
	uint64_t lost = 0;

	weir_stream__ledger(stream, &ledger);
	if (reader_gone) {
		say(command,
		    "the reader went away: what it did not take, %llu, is no loss (--strict)",
		    (unsigned long long)ledger.total.lost[WEIR_LOST_OUTPUT]);
		ledger.total.lost[WEIR_LOST_OUTPUT] = 0;
	}
	for (int cause = 0; cause < WEIR_LOST_CAUSES; cause++) {
		if (ledger.total.bound[cause] == WEIR_BOUND_UNKNOWN)
			unknown = true;
		else
			lost += ledger.total.lost[cause];
	}
	if (lost || unknown)
		say(command, "%llu lost%s: status %d (--strict)", (unsigned long long)lost,
		    unknown ? " and an unknown number" : "", EXIT_LOST);
	return lost || unknown;
}
