/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * settle.c - the accounts that a capture's notes hold, and what they are to those of the stream.
 *
 * Where the capture is whole and was closed they tell exactly what should have been there; anywhere
 * else they are of no use, and what was told is all that is known.
 */
#include "capture/feeding.h"

#include <stdlib.h>

/* A source without a file: nothing of it was recorded, or all of that is gone. */
static void note_other(struct feed *f, const struct capture_account *account)
{
	struct capture_account *grown;

	for (size_t i = 0; i < f->nr_others; i++)
		if (f->others[i].ring == account->ring && f->others[i].cpu == account->cpu) {
			f->others[i] = *account;
			return;
		}
	grown = realloc(f->others, (f->nr_others + 1) * sizeof(*grown));
	if (!grown)
		return;
	f->others = grown;
	grown[f->nr_others++] = *account;
}

void settle__note(struct feed *f, const struct capture_account *account)
{
	if (account->ring > CAPTURE_RING_CPU || account->cpu < 0)
		return;
	for (size_t i = 0; i < f->nr_lanes; i++) {
		const struct lane *lane = &f->lanes[i];
		const struct reader_stream *stream = lane__stream(f, lane);

		if (stream->kind != CAPTURE_CPU || stream->instance != (uint32_t)account->cpu)
			continue;
		f->accounts[account->ring == CAPTURE_RING_LIFE ? lane->life : lane->cpu] = *account;
		return;
	}
	note_other(f, account);
}

/*
 * The accounts of the end tell exactly what is in no file: what was turned away before it was written,
 * and what damage has taken. They are of the whole capture, from its first part to an end in order.
 */
static void settle_account(struct feed *f, int source)
{
	const struct capture_account *account = &f->accounts[source];
	uint64_t selected = told__records(f->told, source) - f->kept[source];
	struct told_counts counts = {
		.self = account->self,
		.unread = account->unread,
		.failed = account->failed,
		.stray = account->stray,
	};

	if (account->filtered > f->kept[source])
		counts.filtered = account->filtered - f->kept[source];
	/* What was told was the best guess; the difference may go either way, modulo 2^64. */
	for (int cause = 0; cause < WEIR_LOST_CAUSES; cause++) {
		counts.lost[cause] = account->lost[cause] - f->lost[source].by[cause];
		counts.exact[cause] = account->bound[cause] != WEIR_BOUND_UNKNOWN;
	}
	if (account->delivered > selected)
		counts.lost[WEIR_LOST_BROKEN] += account->delivered - selected;
	told__counts(f->told, source, &counts);
}

/* Of those without a file the sums are left, and stand with what is no CPU's. */
static void settle_others(struct feed *f)
{
	struct told_counts counts = {0};

	for (size_t i = 0; i < f->nr_others; i++) {
		const struct capture_account *other = &f->others[i];

		counts.filtered += other->filtered;
		counts.self += other->self;
		counts.unread += other->unread;
		counts.failed += other->failed;
		counts.stray += other->stray;
		counts.lost[WEIR_LOST_BROKEN] += other->delivered;
		for (int cause = 0; cause < WEIR_LOST_CAUSES; cause++)
			counts.lost[cause] += other->lost[cause];
	}
	told__counts(f->told, f->machine, &counts);
}

static bool is_whole(const struct feed *f)
{
	size_t count;
	const struct reader_stream *streams = reader__streams(f->reader, &count);

	for (size_t i = 0; i < count; i++)
		if (streams[i].kind == CAPTURE_NOTES && streams[i].files[0].part != 1)
			return false;
	return f->end.closed && !f->opts.from_ns && f->opts.to_ns == UINT64_MAX;
}

void settle__all(struct feed *f)
{
	if (f->finished)
		return;
	f->finished = true;
	if (!is_whole(f)) {
		/* Where it was cut off without an end, nobody knows how much was not written. */
		if (!f->end.closed && f->opts.to_ns == UINT64_MAX) {
			told__unknown(f->told, f->machine, WEIR_LOST_OUTPUT);
			told__estimated(f->told);
		}
		return;
	}
	for (int source = 0; source < f->machine; source++)
		if (f->accounts[source].name[0])
			settle_account(f, source);
	settle_others(f);
}
