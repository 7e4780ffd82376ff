/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * feed.c - streams of packets -> told sources, side by side.
 *
 * Owns a lane for each stream of the capture. The least of the times up to which they have told
 * everything is what all have told, and the stream delivers that far. Must not know who listens.
 */
#include "capture/feeding.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ITEMS_MANY_CPUS 512u
#define ITEMS_FEW_CPUS \
	2048u /* with the records that they stand for, they fit a second-level cache */
#define FEW_CPUS 16u

/* ---- the whole -------------------------------------------------------------------------------- */

static uint64_t least_until(const struct feed *f)
{
	uint64_t least_ns = UINT64_MAX;

	for (size_t i = 0; i < f->nr_lanes; i++)
		if (f->lanes[i].until_ns < least_ns)
			least_ns = f->lanes[i].until_ns;
	return least_ns;
}

/* Where the last item of all stands; not before anything that was delivered. */
static uint64_t greatest_place(const struct feed *f)
{
	uint64_t last_ns = f->until_ns;

	for (size_t i = 0; i < f->nr_lanes; i++)
		if (f->lanes[i].place_ns > last_ns)
			last_ns = f->lanes[i].place_ns;
	return last_ns;
}

int feed__step(struct feed *f)
{
	uint64_t until_ns;
	int count;

	for (size_t i = 0; i < f->nr_lanes; i++)
		lane__advance(f, &f->lanes[i]);
	until_ns = least_until(f);
	f->until_ns = until_ns == UINT64_MAX ? greatest_place(f) : until_ns;
	count = told__until(f->told, f->until_ns);
	if (count < 0)
		return count;
	if (until_ns != UINT64_MAX)
		return 1;
	settle__all(f);
	return 0;
}

void feed__progress(const struct feed *f, uint64_t *done_bytes, uint64_t *all_bytes)
{
	*done_bytes = f->done_bytes;
	*all_bytes = f->all_bytes;
}

struct feed_end feed__end(const struct feed *f)
{
	return f->end;
}

/* ---- where to begin --------------------------------------------------------------------------- */

/* The last part that had begun by then, or the first that there is: its process table is that of from_ns. */
static uint32_t part_of(const struct feed *f, uint64_t from_ns)
{
	size_t count;
	const struct reader_stream *streams = reader__streams(f->reader, &count);
	uint32_t part = 0;

	for (size_t i = 0; i < count; i++) {
		const struct reader_stream *stream = &streams[i];

		if (stream->kind != CAPTURE_TASKS)
			continue;
		for (size_t p = 0; p < stream->nr_packets; p++) {
			uint32_t this = stream->files[stream->packets[p].file].part;

			if (!part || stream->packets[p].begin_ns <= from_ns)
				part = this;
		}
	}
	return part;
}

static void start_lane(struct feed *f, struct lane *lane)
{
	const struct reader_stream *stream = lane__stream(f, lane);
	size_t count;
	const struct reader_flaw *flaws = reader__flaws(f->reader, &count);

	while (lane->next_packet < stream->nr_packets &&
	       stream->files[stream->packets[lane->next_packet].file].part < f->first_part)
		lane->next_packet++;
	/* Flaws stand by stream, in its order. */
	while (lane->flaw < count && (flaws[lane->flaw].stream < lane->stream ||
				      (flaws[lane->flaw].stream == lane->stream &&
				       flaws[lane->flaw].before < lane->next_packet)))
		lane->flaw++;
	lane->flaws_end = lane->flaw;
	while (lane->flaws_end < count && flaws[lane->flaws_end].stream == lane->stream)
		lane->flaws_end++;
	for (size_t i = lane->next_packet; i < stream->nr_packets; i++)
		f->all_bytes += stream->packets[i].bytes;
}

static size_t largest_packet(const struct reader_stream *stream)
{
	size_t largest = sizeof(struct capture_packet);

	for (size_t i = 0; i < stream->nr_packets; i++)
		if (stream->packets[i].bytes > largest)
			largest = stream->packets[i].bytes;
	return largest;
}

static int add_lane(struct feed *f, size_t index)
{
	struct lane *lane = &f->lanes[f->nr_lanes++];
	size_t bytes;

	*lane = (struct lane){.stream = index};
	bytes = largest_packet(lane__stream(f, lane));
	lane->packet[0] = malloc(bytes);
	lane->packet[1] = malloc(bytes);
	return lane->packet[0] && lane->packet[1] ? 0 : -ENOMEM;
}

/* All life sources first, then all cpu sources, as the rings of the recording were. */
static int add_sources(struct feed *f, bool life, size_t items)
{
	for (size_t i = 0; i < f->nr_lanes; i++) {
		const struct reader_stream *stream = lane__stream(f, &f->lanes[i]);
		char name[24];
		int source;

		if (stream->kind != CAPTURE_CPU)
			continue;
		snprintf(name, sizeof(name), "%s%u", life ? "life" : "cpu", stream->instance);
		source = told__add_source(f->told, name, (int)stream->instance, items);
		if (source < 0)
			return source;
		*(life ? &f->lanes[i].life : &f->lanes[i].cpu) = source;
	}
	return 0;
}

static int add_machine(struct feed *f, size_t items)
{
	f->machine = told__add_source(f->told, NULL, -1, items);
	for (size_t i = 0; i < f->nr_lanes; i++)
		if (lane__stream(f, &f->lanes[i])->kind == CAPTURE_NOTES)
			f->lanes[i].life = f->lanes[i].cpu = f->machine;
	return f->machine < 0 ? f->machine : 0;
}

static int open_lanes(struct feed *f)
{
	size_t count, items = ITEMS_FEW_CPUS;
	const struct reader_stream *streams = reader__streams(f->reader, &count);
	int err = 0;

	f->lanes = calloc(count, sizeof(*f->lanes));
	if (!f->lanes)
		return -ENOMEM;
	for (size_t i = 0; i < count && !err; i++)
		if (streams[i].kind != CAPTURE_TASKS)
			err = add_lane(f, i);
	if (f->nr_lanes > FEW_CPUS + 1)
		items = ITEMS_MANY_CPUS;
	if (!err)
		err = add_sources(f, true, items);
	if (!err)
		err = add_sources(f, false, items);
	if (!err)
		err = add_machine(f, items);
	if (err)
		return err;
	f->accounts = calloc((size_t)f->machine + 1, sizeof(*f->accounts));
	f->kept = calloc((size_t)f->machine + 1, sizeof(*f->kept));
	f->lost = calloc((size_t)f->machine + 1, sizeof(*f->lost));
	return f->accounts && f->kept && f->lost ? 0 : -ENOMEM;
}

struct feed *feed__new(struct reader *reader, struct weir_stream *stream,
		       const struct feed_opts *opts)
{
	struct feed *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return NULL;
	f->reader = reader;
	f->opts = *opts;
	f->told = told__new(stream);
	err = f->told ? open_lanes(f) : -ENOMEM;
	if (err) {
		feed__free(f);
		errno = -err;
		return NULL;
	}
	told__wall_offset(f->told, reader__env(reader)->wall_offset_ns);
	f->first_part = part_of(f, opts->from_ns);
	for (size_t i = 0; i < f->nr_lanes; i++)
		start_lane(f, &f->lanes[i]);
	return f;
}

void feed__free(struct feed *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->nr_lanes; i++) {
		free(f->lanes[i].packet[0]);
		free(f->lanes[i].packet[1]);
	}
	free(f->lanes);
	free(f->accounts);
	free(f->others);
	free(f->kept);
	free(f->lost);
	told__free(f->told);
	free(f);
}

/* ---- the process table ------------------------------------------------------------------------ */

/* A copy that ends with a NUL; NULL for none, or no memory. */
static char *text_of(const char *bytes, size_t len)
{
	return len ? strndup(bytes, len) : NULL;
}

static void hand_out(const struct weir_record *rec, feed_task_fn fn, void *ctx)
{
	const struct capture_task *task = (const void *)(rec + 1);
	const char *tail = (const char *)(task + 1);
	char *exe = text_of(tail, task->exe_len);
	char *cgroups = text_of(tail + task->exe_len, task->cgroups_len);

	fn(ctx, &task->seed, exe, cgroups);
	free(exe);
	free(cgroups);
}

/* A packet that is damaged is the names of some threads: not known, then. */
static void hand_out_packet(struct feed *f, size_t stream, size_t packet, void *buf,
			    feed_task_fn fn, void *ctx)
{
	const struct weir_record *rec;
	struct packet_walk walk;

	if (reader__packet(f->reader, stream, packet, buf))
		return;
	walk = packet__walk(buf);
	while (packet__next(&walk, &rec) == PACKET_RECORD)
		hand_out(rec, fn, ctx);
}

int feed__tasks(struct feed *f, feed_task_fn fn, void *ctx)
{
	size_t count;
	const struct reader_stream *streams = reader__streams(f->reader, &count);
	void *buf = malloc(CAPTURE_PACKET_BYTES);

	if (!buf)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct reader_stream *stream = &streams[i];

		if (stream->kind != CAPTURE_TASKS)
			continue;
		for (size_t p = 0; p < stream->nr_packets; p++)
			if (stream->files[stream->packets[p].file].part == f->first_part)
				hand_out_packet(f, i, p, buf, fn, ctx);
	}
	free(buf);
	return 0;
}
