// SPDX-License-Identifier: BSD-2-Clause
#include "cli/progress.h"

#include "capture/writer.h"

#include <stdio.h>

#define NSEC_PER_SEC 1000000000ull
#define MIB	     (1024.0 * 1024.0)

void progress__init(struct progress *progress, bool shown)
{
	*progress = (struct progress){.shown = shown};
}

static uint64_t lost(const struct weir_account *account)
{
	uint64_t sum = 0;

	for (int cause = 0; cause < WEIR_LOST_CAUSES; cause++)
		sum += account->lost[cause];
	return sum;
}

static void draw(const struct progress *progress, const struct weir_ledger *ledger,
		 const struct writer_stats *stats, uint64_t now_ns)
{
	double seconds = (double)(now_ns - progress->last_ns) / NSEC_PER_SEC;
	double rate = (double)(ledger->total.delivered - progress->last_events) / seconds;

	fprintf(stderr, "\r%.0f events/s, %.1f MiB, %llu lost, lag %.1f ms\033[K", rate,
		(double)stats->bytes / MIB, (unsigned long long)lost(&ledger->total),
		(double)ledger->lag.p99_ns / 1e6);
}

void progress__draw(struct progress *progress, const struct weir_stream *stream,
		    const struct writer *writer, uint64_t now_ns)
{
	struct weir_ledger ledger = {.sz = sizeof(ledger)};
	struct writer_stats stats;

	if (!progress->shown || now_ns - progress->last_ns < NSEC_PER_SEC)
		return;
	weir_stream__ledger(stream, &ledger);
	writer__stats(writer, &stats);
	if (progress->last_ns) {
		draw(progress, &ledger, &stats, now_ns);
		progress->drawn = true;
	}
	progress->last_ns = now_ns;
	progress->last_events = ledger.total.delivered;
}

void progress__wipe(struct progress *progress)
{
	if (progress->drawn)
		fputs("\r\033[K", stderr);
	progress->drawn = false;
}
