/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * survey.c - one pass over all packets.
 *
 * Promises that any bytes end in counts and in problems that are told, and that only survey__repair()
 * writes. Must not know: how a stream orders what is in the packets.
 */
#include "capture/survey.h"

#include "capture/packet.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct surveying {
	struct reader *reader;
	struct survey *out;
	survey_fn fn;
	void *ctx;
	uint8_t *packet;
	const struct reader_stream *stream;
	size_t index; /* of the stream */
	struct survey_cpu *cpu;
	/* Of this stream: where the packet is, and what its packets have told. */
	const struct reader_packet *at;
	uint64_t lost, first_discarded;
	uint64_t mark_ns;
};

__attribute__((format(printf, 2, 3))) static void problem(struct surveying *s, const char *format,
							  ...)
{
	const char *file = s->at ? s->stream->files[s->at->file].name : NULL;
	char text[256];
	va_list args;

	if (!s->fn)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	s->fn(s->ctx, file, s->at ? s->at->offset : 0, text);
}

/* records READER_UNKNOWN: nobody knows. What other streams hold is no event. */
static void count_damaged(struct survey *out, const struct reader_stream *stream, uint64_t records)
{
	if (stream->kind != CAPTURE_CPU)
		return;
	if (records == READER_UNKNOWN)
		out->damaged_unknown = true;
	else
		out->damaged += records;
}

/* ---- records ---------------------------------------------------------------------------------- */

static void take_gap(struct surveying *s, const struct capture_gap *gap)
{
	struct survey_ring *ring = NULL;

	s->out->gaps++;
	if (gap->cause >= WEIR_LOST_CAUSES || gap->bound > WEIR_BOUND_UNKNOWN) {
		problem(s, "has a gap of cause %u, bound %u", gap->cause, gap->bound);
		return;
	}
	if (gap->from_ns > gap->to_ns)
		problem(s, "has a gap that ends before it begins");
	if (s->cpu && gap->ring <= CAPTURE_RING_CPU)
		ring = &s->cpu->ring[gap->ring];
	if (gap->bound > s->out->bound[gap->cause])
		s->out->bound[gap->cause] = (uint8_t)gap->bound;
	if (gap->bound == WEIR_BOUND_UNKNOWN)
		return;
	s->lost += gap->lost;
	s->out->lost[gap->cause] += gap->lost;
	if (ring)
		ring->lost[gap->cause] += gap->lost;
}

static void take_mark(struct surveying *s, const struct capture_mark *mark)
{
	if (mark->watermark_ns < s->mark_ns)
		problem(s, "has a mark whose watermark is older than the one before");
	s->mark_ns = mark->watermark_ns;
	s->out->closed = mark->closed;
	if (mark->watermark_ns > s->out->complete_ns)
		s->out->complete_ns = mark->watermark_ns;
	if (mark->order)
		s->out->order = WEIR_ORDER_ESTIMATED;
}

static void take_account(struct surveying *s, const struct capture_account *account)
{
	if (account->ring > CAPTURE_RING_CPU)
		return;
	for (size_t i = 0; i < s->out->nr_cpus; i++) {
		if ((int64_t)s->out->cpus[i].cpu != account->cpu)
			continue;
		s->out->cpus[i].ring[account->ring].account = *account;
		s->out->cpus[i].ring[account->ring].has_account = true;
		return;
	}
}

static void take_note(struct surveying *s, const struct weir_record *rec)
{
	const struct capture_part *part = (const void *)(rec + 1);

	switch (rec->type) {
	case CAPTURE_T_GAP:
		take_gap(s, (const void *)(rec + 1));
		break;
	case CAPTURE_T_CLOCK_STEP:
		s->out->steps++;
		break;
	case CAPTURE_T_MARK:
		take_mark(s, (const void *)(rec + 1));
		break;
	case CAPTURE_T_ACCOUNT:
		take_account(s, (const void *)(rec + 1));
		break;
	case CAPTURE_T_PART:
		if (!s->out->has_wall)
			s->out->wall_offset_ns = part->wall_offset_ns;
		s->out->has_wall = true;
	}
}

static void take_cpu_record(struct surveying *s, const struct weir_record *rec)
{
	uint16_t type = rec->type & (uint16_t)~CAPTURE_LATE;
	struct survey_ring *ring = &s->cpu->ring[type > WEIR_T_LIFE_MAX];

	if (type == CAPTURE_T_GAP) {
		take_gap(s, (const void *)(rec + 1));
		return;
	}
	/* It was told apart, so its type is one of these. */
	s->out->types[type]++;
	s->out->late += type != rec->type;
	ring->records++;
	ring->selected += reader__env(s->reader)->selected_types >> type & 1;
}

static void take_record(struct surveying *s, const struct weir_record *rec)
{
	if (s->stream->kind == CAPTURE_TASKS)
		s->out->tasks++;
	else if (s->stream->kind == CAPTURE_NOTES)
		take_note(s, rec);
	else
		take_cpu_record(s, rec);
}

/* ---- packets ---------------------------------------------------------------------------------- */

static void check_head(struct surveying *s, const struct capture_packet *head, bool first_of_file)
{
	uint32_t cpu = s->stream->kind == CAPTURE_CPU ? s->stream->instance : CAPTURE_NO_CPU;

	if (head->cpu != cpu)
		problem(s, "is of another CPU, %u", head->cpu);
	if (head->part != s->stream->files[s->at->file].part)
		problem(s, "is of another part, %u", head->part);
	if (first_of_file && (head->records || head->begin_ns != head->end_ns))
		problem(s, "is the first of its file, and not empty");
}

static void walk_packet(struct surveying *s)
{
	struct packet_walk walk = packet__walk(s->packet);
	const struct weir_record *rec;
	enum packet_step step;

	while ((step = packet__next(&walk, &rec)) == PACKET_RECORD)
		take_record(s, rec);
	if (step != PACKET_BROKEN)
		return;
	count_damaged(s->out, s->stream, walk.left);
	problem(s, "has %u records that cannot be told apart, behind time %" PRIu64, walk.left,
		walk.last_ns);
}

static void take_packet(struct surveying *s, size_t i)
{
	const struct capture_packet *head = (const void *)s->packet;
	bool first_of_file = !i || s->at->file != s->at[-1].file;
	int err = reader__packet(s->reader, s->index, i, s->packet);

	s->out->packets++;
	/* Its head may be what is damaged. */
	if (err)
		count_damaged(s->out, s->stream, READER_UNKNOWN);
	if (err == -EBADMSG) {
		problem(s, "is damaged: its checksum is another");
		return;
	}
	if (err) {
		problem(s, "cannot be read: %s", strerror(-err));
		return;
	}
	if (!i)
		s->first_discarded = head->discarded;
	check_head(s, head, first_of_file);
	walk_packet(s);
}

static void note_span(struct survey *out, const struct reader_packet *packet)
{
	if (!out->begin_ns || packet->begin_ns < out->begin_ns)
		out->begin_ns = packet->begin_ns;
	if (packet->end_ns > out->end_ns)
		out->end_ns = packet->end_ns;
}

static void note_parts(struct survey *out, const struct reader_stream *stream)
{
	uint32_t first = stream->files[0].part, last = stream->files[stream->nr_files - 1].part;

	if (!out->first_part || first < out->first_part)
		out->first_part = first;
	if (last > out->last_part)
		out->last_part = last;
}

static void take_stream(struct surveying *s)
{
	s->lost = s->first_discarded = s->mark_ns = 0;
	note_parts(s->out, s->stream);
	for (size_t i = 0; i < s->stream->nr_packets; i++) {
		s->at = &s->stream->packets[i];
		note_span(s->out, s->at);
		s->out->bytes += s->at->bytes;
		take_packet(s, i);
	}
	s->at = NULL;
	if (s->cpu)
		s->cpu->bytes = s->stream->bytes;
}

/* ---- sums ------------------------------------------------------------------------------------- */

static const char *const ring_names[] = {"life", "cpu"};

static int64_t difference(const struct capture_account *a)
{
	uint64_t sum = a->delivered + a->filtered + a->pending;

	for (int cause = 0; cause < WEIR_LOST_CAUSES; cause++)
		if (a->bound[cause] != WEIR_BOUND_UNKNOWN)
			sum += a->lost[cause];
	return (int64_t)(sum - a->produced);
}

/* What the recorder counted, against what is there. */
static void check_ring(struct surveying *s, const struct survey_cpu *cpu, int ring)
{
	const struct survey_ring *have = &cpu->ring[ring];
	const struct capture_account *a = &have->account;

	if (!have->has_account) {
		if (have->records)
			problem(s, "%s%u has no account", ring_names[ring], cpu->cpu);
		return;
	}
	if (difference(a))
		problem(s, "the account of %s%u does not close: by %" PRId64, ring_names[ring],
			cpu->cpu, difference(a));
	/* Without metadata nobody knows what was selected. */
	if (a->delivered != have->selected && reader__env(s->reader)->has_metadata)
		problem(s, "%s%u: %" PRIu64 " records were delivered, and %" PRIu64 " are there",
			ring_names[ring], cpu->cpu, a->delivered, have->selected);
	for (int cause = 0; cause < WEIR_LOST_CAUSES; cause++)
		if (a->lost[cause] != have->lost[cause])
			problem(s, "%s%u: %" PRIu64 " lost by %s, and %" PRIu64 " by its gaps",
				ring_names[ring], cpu->cpu, a->lost[cause],
				weir_cause__name((enum weir_cause)cause), have->lost[cause]);
}

/* With the accounts of all rings it is known what is not there, whatever heads say. */
static void count_missing(struct surveying *s)
{
	uint64_t missing = 0;

	if (!reader__env(s->reader)->has_metadata)
		return;
	for (size_t i = 0; i < s->out->nr_cpus; i++) {
		for (int ring = 0; ring < 2; ring++) {
			const struct survey_ring *have = &s->out->cpus[i].ring[ring];

			if (!have->has_account)
				return;
			if (have->account.delivered > have->selected)
				missing += have->account.delivered - have->selected;
		}
	}
	s->out->damaged = missing;
	s->out->damaged_unknown = false;
}

/* Accounts are of all parts, and stand at the end. */
static void check_sums(struct surveying *s)
{
	if (!s->out->closed || s->out->first_part != 1)
		return;
	for (size_t i = 0; i < s->out->nr_cpus; i++)
		for (int ring = 0; ring < 2; ring++)
			check_ring(s, &s->out->cpus[i], ring);
	count_missing(s);
}

/* What CTF's readers are told was lost is what gaps say, if the last of them could be written. */
static void check_discarded(struct surveying *s, const struct reader_stream *stream, uint64_t lost,
			    uint64_t first)
{
	uint64_t told = stream->discarded - first;

	if (!stream->nr_packets || told == lost || (!s->out->closed && told > lost))
		return;
	problem(s, "%s: %" PRIu64 " were discarded by its packets, and %" PRIu64 " by its gaps",
		stream->files[0].name, told, lost);
}

/* Of a whole file: the name is in the text. */
static void put_whole_file(char *text, size_t size, const struct reader_flaw *flaw,
			   const char *file)
{
	if (flaw->kind == READER_GONE && flaw->packets)
		snprintf(text, size, "%s is missing, with its %" PRIu64 " packets", file,
			 flaw->packets);
	else
		snprintf(text, size, "%s %s", file,
			 flaw->kind == READER_GONE ? "is missing" : "cannot be read");
}

static void tell_flaw(struct surveying *s, const struct reader_flaw *flaw)
{
	static const char *const what[] = {
		[READER_TORN] = "is torn: the file ends inside of it",
		[READER_DAMAGED] = "is damaged",
		[READER_MISSING] = "is not the next",
		[READER_REPEATED] = "has a number that was there before",
		[READER_DISORDER] = "begins before the one before it has ended",
	};
	size_t count;
	const struct reader_stream *streams = reader__streams(s->reader, &count);
	const char *file = streams[flaw->stream].files[flaw->file].name;
	char text[200];
	int len;

	if (!s->fn)
		return;
	if (flaw->kind == READER_GONE || flaw->kind == READER_UNREADABLE) {
		put_whole_file(text, sizeof(text), flaw, file);
		s->fn(s->ctx, NULL, 0, text);
		return;
	}
	len = snprintf(text, sizeof(text), "%s", what[flaw->kind]);
	if (flaw->bytes)
		len += snprintf(text + len, sizeof(text) - (size_t)len, ", %" PRIu64 " bytes",
				flaw->bytes);
	if (flaw->packets)
		len += snprintf(text + len, sizeof(text) - (size_t)len,
				", %" PRIu64 " packets are missing", flaw->packets);
	if (flaw->records && flaw->records != READER_UNKNOWN)
		snprintf(text + len, sizeof(text) - (size_t)len, ", with %" PRIu64 " records",
			 flaw->records);
	s->fn(s->ctx, file, flaw->offset, text);
}

static void tell_flaws(struct surveying *s)
{
	size_t count;
	const struct reader_stream *streams = reader__streams(s->reader, &count);
	const struct reader_flaw *flaws = reader__flaws(s->reader, &count);
	const struct reader_env *env = reader__env(s->reader);

	if (!env->has_metadata)
		problem(s, "metadata is missing: other readers cannot open it");
	else if (env->layout != CAPTURE_LAYOUT)
		problem(s, "the layout is %u, and not %u", env->layout, CAPTURE_LAYOUT);
	if (env->uuid_differs)
		problem(s, "the metadata is of another capture, by its uuid");
	for (size_t i = 0; i < count; i++) {
		count_damaged(s->out, &streams[flaws[i].stream], flaws[i].records);
		tell_flaw(s, &flaws[i]);
	}
}

/* ---- the whole -------------------------------------------------------------------------------- */

static int make_room(struct surveying *s, const struct reader_stream *streams, size_t count)
{
	s->packet = malloc(CAPTURE_PACKET_BYTES);
	s->out->cpus = calloc(count + 1, sizeof(*s->out->cpus));
	if (!s->packet || !s->out->cpus)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		if (streams[i].kind == CAPTURE_CPU)
			s->out->cpus[s->out->nr_cpus++].cpu = streams[i].instance;
	return 0;
}

int survey__take(struct reader *reader, struct survey *survey, survey_fn fn, void *ctx)
{
	struct surveying s = {.reader = reader, .out = survey, .fn = fn, .ctx = ctx};
	size_t count, cpu = 0;
	const struct reader_stream *streams = reader__streams(reader, &count);
	uint64_t(*sums)[2] = calloc(count + 1, sizeof(*sums));
	int err;

	*survey = (struct survey){.wall_offset_ns = reader__env(reader)->wall_offset_ns};
	err = sums ? make_room(&s, streams, count) : -ENOMEM;
	if (!err)
		tell_flaws(&s);
	for (size_t i = 0; i < count && !err; i++) {
		s.stream = &streams[i];
		s.index = i;
		s.cpu = streams[i].kind == CAPTURE_CPU ? &survey->cpus[cpu++] : NULL;
		take_stream(&s);
		sums[i][0] = s.lost;
		sums[i][1] = s.first_discarded;
	}
	/* Only now is it known whether the capture was closed. */
	for (size_t i = 0; i < count && !err; i++)
		check_discarded(&s, &streams[i], sums[i][0], sums[i][1]);
	if (!err)
		check_sums(&s);
	free(sums);
	free(s.packet);
	return err;
}

void survey__free(struct survey *survey)
{
	free(survey->cpus);
	survey->cpus = NULL;
}

/* ---- repair ----------------------------------------------------------------------------------- */

/* A packet that is there in full, with records that can be told apart: damaged, and no torn one. */
static bool is_readable(struct reader *reader, const struct reader_flaw *flaw, uint8_t *bytes)
{
	size_t count;
	const struct reader_stream *stream = &reader__streams(reader, &count)[flaw->stream];
	const struct packet_place place = {reader__env(reader)->uuid, stream->kind,
					   stream->instance};
	const struct capture_packet *head = (const void *)bytes;
	const struct weir_record *rec;
	struct packet_walk walk;
	enum packet_step step;

	if (flaw->bytes < sizeof(*head) || flaw->bytes > CAPTURE_PACKET_BYTES ||
	    reader__bytes(reader, flaw->stream, flaw->file, flaw->offset, bytes, flaw->bytes) ||
	    !packet__is_head(head, &place) || packet__bytes(head) != flaw->bytes)
		return false;
	walk = packet__walk(bytes);
	while ((step = packet__next(&walk, &rec)) == PACKET_RECORD)
		;
	return step == PACKET_END;
}

/* Whole or not, it is a packet of another capture, whose file came here by mistake. */
static bool is_others(struct reader *reader, const struct reader_flaw *flaw)
{
	const uint8_t *uuid = reader__env(reader)->uuid;
	size_t count;
	const struct reader_stream *stream = &reader__streams(reader, &count)[flaw->stream];
	const struct packet_place any = {NULL, stream->kind, stream->instance};
	struct capture_packet head;

	return !reader__bytes(reader, flaw->stream, flaw->file, flaw->offset, &head,
			      sizeof(head)) &&
	       packet__is_head(&head, &any) && memcmp(head.uuid, uuid, sizeof(head.uuid)) != 0;
}

static bool is_tail(const struct reader_file *file, const struct reader_flaw *flaw)
{
	return (flaw->kind == READER_TORN || flaw->kind == READER_DAMAGED) && !file->compressed &&
	       flaw->bytes && flaw->offset + flaw->bytes == file->size;
}

/* Is it the file that was read, and nobody else's too? */
static int check_cut(int fd, const struct reader_file *file)
{
	struct stat st;

	if (fstat(fd, &st))
		return errno;
	if (!S_ISREG(st.st_mode))
		return EINVAL;
	if (st.st_nlink != 1)
		return EMLINK;
	return (uint64_t)st.st_size == file->size ? 0 : EBUSY;
}

static int cut(int dir, const struct reader_file *file, uint64_t offset)
{
	int fd = openat(dir, file->name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), err;

	if (fd < 0)
		return errno;
	err = check_cut(fd, file);
	if (!err &&
	    (offset ? ftruncate(fd, (off_t)offset) || fsync(fd) : unlinkat(dir, file->name, 0)))
		err = errno;
	close(fd);
	return err;
}

int survey__repair(struct reader *reader, survey_cut_fn fn, void *ctx)
{
	size_t count, nr_flaws;
	const struct reader_stream *streams = reader__streams(reader, &count);
	const struct reader_flaw *flaws = reader__flaws(reader, &nr_flaws);
	uint8_t *bytes;
	int failed = 0;

	/* Its last packet may be only half written. */
	if (reader__is_recording(reader))
		return -EBUSY;
	bytes = malloc(CAPTURE_PACKET_BYTES);
	if (!bytes)
		return -ENOMEM;
	for (size_t i = 0; i < nr_flaws; i++) {
		const struct reader_file *file = &streams[flaws[i].stream].files[flaws[i].file];
		struct survey_cut done = {
			.file = file->name,
			.offset = flaws[i].offset,
			.bytes = flaws[i].bytes,
			.records = flaws[i].records,
		};

		if (!is_tail(file, &flaws[i]) || is_others(reader, &flaws[i]) ||
		    is_readable(reader, &flaws[i], bytes))
			continue;
		done.error = cut(reader__dir(reader), file, flaws[i].offset);
		failed += done.error != 0;
		fn(ctx, &done);
	}
	free(bytes);
	return failed;
}
