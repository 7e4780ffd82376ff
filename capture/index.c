/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * index.c - one packet behind the other, and what is wrong between them.
 *
 * Promises that each packet which is whole and where it should be is in the index, whatever stands
 * before it; that each stretch of bytes which is no packet is a flaw; and that it takes time by the
 * number of packets and the bytes that are damaged. Of what records mean it knows one class, for that
 * tells of files.
 */
#include "capture/packet.h"
#include "capture/reading.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HEAD	   sizeof(struct capture_packet)
#define SCAN_BYTES (64u << 10)
#define TOLD_MAX   (1u << 20) /* so many files are noted of all parts */

/* ---- a file's packets ------------------------------------------------------------------------- */

static int add_flaw(struct reader *r, const struct reader_flaw *flaw)
{
	struct reader_flaw *grown = reading__grow(r->flaws, r->nr_flaws, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	r->flaws = grown;
	grown[r->nr_flaws++] = *flaw;
	return 0;
}

struct indexing {
	struct reader *r;
	bool has_first_part; /* of the capture: numbers begin at 0 */
	uint32_t stream, file;
	struct packet_place place;
	struct store *store;
	uint8_t *packet; /* room for one */
	uint64_t budget; /* bytes of this file that may still be looked at for a checksum */
};

static struct reader_stream *stream_at(const struct indexing *ix)
{
	return &ix->r->streams[ix->stream];
}

static const struct reader_packet *last_packet(const struct reader_stream *stream)
{
	return stream->nr_packets ? &stream->packets[stream->nr_packets - 1] : NULL;
}

/*
 * Heads can lie about packets that reach over each other, and each would be looked at. Damage that was not
 * made for it does not come near this.
 */
static void set_budget(struct indexing *ix)
{
	ix->budget = 4 * ix->store->size + 16 * (uint64_t)CAPTURE_PACKET_BYTES;
}

/* Is there a packet, whole and with the right checksum? */
static bool is_intact_at(struct indexing *ix, uint64_t offset)
{
	const struct capture_packet *head = (const void *)ix->packet;
	ssize_t n = store__read(ix->store, ix->packet, HEAD, offset);
	size_t rest;

	if (n != (ssize_t)HEAD || !packet__is_head(head, &ix->place))
		return false;
	if (packet__bytes(head) > ix->budget)
		return false;
	ix->budget -= packet__bytes(head);
	rest = packet__bytes(head) - HEAD;
	return store__read(ix->store, ix->packet + HEAD, rest, offset + HEAD) == (ssize_t)rest &&
	       packet__is_intact(ix->packet);
}

/* Where the next intact packet begins, at `offset` or behind it; the file's size: nowhere. */
static uint64_t find_packet(struct indexing *ix, uint64_t offset)
{
	const uint32_t magic = CAPTURE_MAGIC;
	uint8_t bytes[SCAN_BYTES];

	while (offset + HEAD <= ix->store->size) {
		ssize_t n = store__read(ix->store, bytes, sizeof(bytes), offset);

		if (n < (ssize_t)sizeof(magic))
			break;
		/* Packets are multiples of 8 bytes, so they begin at such. */
		for (size_t i = 0; i + sizeof(magic) <= (size_t)n; i += 8)
			if (!memcmp(bytes + i, &magic, sizeof(magic)) &&
			    is_intact_at(ix, offset + i))
				return offset + i;
		offset += (size_t)n & ~(size_t)7;
		if (n < 8)
			break;
	}
	return ix->store->size;
}

/* Does a packet begin there, or the file end? */
static bool is_border(struct indexing *ix, uint64_t offset)
{
	struct capture_packet head;

	if (offset == ix->store->size)
		return true;
	return store__read(ix->store, &head, sizeof(head), offset) == (ssize_t)sizeof(head) &&
	       packet__is_head(&head, &ix->place);
}

static struct reader_flaw new_flaw(const struct indexing *ix, enum reader_flaw_kind kind,
				   uint64_t offset, uint64_t bytes)
{
	const struct reader_packet *last = last_packet(stream_at(ix));

	return (struct reader_flaw){
		.kind = kind,
		.stream = ix->stream,
		.file = ix->file,
		.before = stream_at(ix)->nr_packets,
		.offset = offset,
		.bytes = bytes,
		.from_ns = last ? last->end_ns : 0,
		.records = READER_UNKNOWN,
	};
}

/* Flaws that lead up to the next packet of this stream, the last of all: how many. */
static size_t flaws_before(const struct indexing *ix)
{
	const struct reader *r = ix->r;
	size_t count = 0;

	while (count < r->nr_flaws) {
		const struct reader_flaw *flaw = &r->flaws[r->nr_flaws - 1 - count];

		if (flaw->stream != ix->stream || flaw->before != stream_at(ix)->nr_packets)
			break;
		count++;
	}
	return count;
}

/*
 * The number that the next packet should have; false: nobody knows. The oldest parts may have been given
 * up, and what is left of them begins with any.
 */
static bool expected_number(const struct indexing *ix, uint64_t *number)
{
	const struct reader_stream *stream = stream_at(ix);
	const struct reader_packet *last = last_packet(stream);

	*number = last ? last->number + 1 : ix->has_first_part ? 0 : stream->files[0].number;
	return last || ix->has_first_part || stream->files[0].end;
}

/* Numbers tell whether what was damaged held packets, and whether some are gone without a trace. */
static int check_number(struct indexing *ix, const struct capture_packet *head, uint64_t offset)
{
	struct reader_flaw missing = new_flaw(ix, READER_MISSING, offset, 0);
	size_t count = flaws_before(ix);
	uint64_t expected, packets;
	bool known = expected_number(ix, &expected), any = false;

	packets = known && head->number > expected ? head->number - expected : 0;
	for (size_t i = ix->r->nr_flaws - count; i < ix->r->nr_flaws; i++) {
		struct reader_flaw *flaw = &ix->r->flaws[i];

		if (flaw->kind == READER_REPEATED)
			continue;
		any = true;
		flaw->to_ns = head->begin_ns;
		if (flaw->kind == READER_GONE)
			continue;
		flaw->packets = packets;
		if (!packets && known)
			flaw->records = 0;
	}
	if (any || !packets)
		return 0;
	missing.packets = packets;
	missing.to_ns = head->begin_ns;
	return add_flaw(ix->r, &missing);
}

static void append_packet(struct reader_stream *stream, const struct capture_packet *head,
			  uint64_t offset, uint32_t file)
{
	bool first = !stream->nr_packets;

	stream->packets[stream->nr_packets++] = (struct reader_packet){
		.begin_ns = head->begin_ns,
		.end_ns = head->end_ns,
		.offset = offset,
		.number = head->number,
		.bytes = packet__bytes(head),
		.file = file,
		.records = head->records,
		/* It is the number of the last one: where it is the same as before, none has come. */
		.may_have_life = first || !head->life_seq || head->life_seq != stream->life_seq,
	};
	stream->life_seq = head->life_seq;
	stream->records += head->records;
	stream->bytes += packet__bytes(head);
	stream->discarded = head->discarded;
}

/* Of two packets that don't fit together one may have a damaged head: out with it. */
static int drop_last(struct indexing *ix)
{
	struct reader_stream *stream = stream_at(ix);
	const struct reader_packet last = *last_packet(stream);
	struct reader_flaw flaw;

	stream->nr_packets--;
	stream->records -= last.records;
	stream->bytes -= last.bytes;
	flaw = new_flaw(ix, READER_DAMAGED, last.offset, last.bytes);
	flaw.file = last.file;
	return add_flaw(ix->r, &flaw);
}

static bool fits(const struct reader_packet *last, const struct capture_packet *head)
{
	return head->number == last->number + 1 && head->begin_ns >= last->end_ns;
}

/* Only what is intact is believed where it is odd. *skip: this one is not. */
static int check_odd(struct indexing *ix, const struct capture_packet *head, uint64_t offset,
		     bool *skip)
{
	const struct reader_packet *last = last_packet(stream_at(ix));
	struct reader_flaw flaw;

	*skip = false;
	if (!last || fits(last, head))
		return 0;
	if (!is_intact_at(ix, offset)) {
		flaw = new_flaw(ix, READER_DAMAGED, offset, packet__bytes(head));
		*skip = true;
		return add_flaw(ix->r, &flaw);
	}
	if (last->file == ix->file && !is_intact_at(ix, last->offset))
		return drop_last(ix);
	return 0;
}

static int check_order(struct indexing *ix, const struct capture_packet *head, uint64_t offset,
		       bool *skip)
{
	const struct reader_packet *last = last_packet(stream_at(ix));
	struct reader_flaw flaw;
	int err;

	if (last && head->number <= last->number) {
		flaw = new_flaw(ix, READER_REPEATED, offset, packet__bytes(head));
		flaw.records = 0;
		*skip = true;
		return add_flaw(ix->r, &flaw);
	}
	err = check_number(ix, head, offset);
	if (!err && last && head->begin_ns < last->end_ns) {
		flaw = new_flaw(ix, READER_DISORDER, offset, packet__bytes(head));
		flaw.records = 0;
		err = add_flaw(ix->r, &flaw);
	}
	return err;
}

static int add_packet(struct indexing *ix, const struct capture_packet *head, uint64_t offset)
{
	struct reader_stream *stream = stream_at(ix);
	struct reader_packet *grown;
	bool skip;
	int err = check_odd(ix, head, offset, &skip);

	if (!err && !skip)
		err = check_order(ix, head, offset, &skip);
	if (err || skip)
		return err;
	grown = reading__grow(stream->packets, stream->nr_packets, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	stream->packets = grown;
	append_packet(stream, head, offset, ix->file);
	return 0;
}

/* What stands there is no packet, or is not followed by one. Returns where to go on. */
static int skip_damage(struct indexing *ix, uint64_t *offset, const struct capture_packet *head)
{
	uint64_t from = *offset, left = ix->store->size - from;
	uint64_t next = find_packet(ix, from + 8);
	struct reader_flaw flaw = new_flaw(ix, READER_DAMAGED, from, next - from);

	*offset = next;
	/* Its head is whole, and the rest of it would be behind the file's end. */
	if (head && next == ix->store->size && packet__bytes(head) > left) {
		flaw.kind = READER_TORN;
		flaw.packets = 1;
		flaw.to_ns = head->end_ns;
		flaw.records = head->records;
		flaw.life_end = head->life_seq + 1;
		flaw.cpu_end = head->cpu_seq + 1;
	}
	return add_flaw(ix->r, &flaw);
}

static int index_packet(struct indexing *ix, uint64_t *offset)
{
	struct capture_packet head;
	ssize_t n = store__read(ix->store, &head, sizeof(head), *offset);
	bool good = n == (ssize_t)sizeof(head) && packet__is_head(&head, &ix->place);
	uint64_t at = *offset, end = good ? at + packet__bytes(&head) : 0;

	if (!good || end > ix->store->size)
		return skip_damage(ix, offset, good ? &head : NULL);
	/* A head that does not lead to another may lie about its length. */
	if (!is_border(ix, end) && !is_intact_at(ix, at))
		return skip_damage(ix, offset, NULL);
	*offset = end;
	return add_packet(ix, &head, at);
}

static int index_file(struct indexing *ix)
{
	struct reader_file *file = &stream_at(ix)->files[ix->file];
	uint64_t offset = 0;
	struct store store;
	int err = reading__open(ix->r, file, &store);

	if (err) {
		struct reader_flaw flaw =
			new_flaw(ix, err == -ENOENT ? READER_GONE : READER_UNREADABLE, 0, 0);

		flaw.packets = file->end - file->number;
		return err == -ENOMEM ? err : add_flaw(ix->r, &flaw);
	}
	ix->store = &store;
	set_budget(ix);
	file->size = store.size;
	while (offset < store.size && !err)
		err = index_packet(ix, &offset);
	store__close(&store);
	return err;
}

/* None follows that could speak against its head. */
static int check_last(struct indexing *ix)
{
	const struct reader_packet *last = last_packet(stream_at(ix));
	struct store store;
	int err = 0;

	if (!last || reading__open(ix->r, &stream_at(ix)->files[last->file], &store))
		return 0;
	ix->store = &store;
	set_budget(ix);
	if (!is_intact_at(ix, last->offset))
		err = drop_last(ix);
	store__close(&store);
	return err;
}

/* Nor one whose number tells what is missing before it; but the notes may. */
static int check_end(struct indexing *ix)
{
	const struct reader_stream *stream = stream_at(ix);
	const struct reader_packet *last = last_packet(stream);
	const struct reader_file *file = &stream->files[stream->nr_files - 1];
	uint64_t next = last ? last->number + 1 : file->number;
	struct reader_flaw flaw;

	if (flaws_before(ix) || file->end <= next)
		return 0;
	ix->file = (uint32_t)(stream->nr_files - 1);
	flaw = new_flaw(ix, READER_MISSING, file->size, 0);
	flaw.packets = file->end - next;
	return add_flaw(ix->r, &flaw);
}

static int index_stream(struct indexing *ix)
{
	struct reader_stream *stream = stream_at(ix);
	int err = 0;

	ix->place = (struct packet_place){ix->r->env.uuid, stream->kind, stream->instance};
	for (size_t i = 0; i < stream->nr_files && !err; i++) {
		ix->file = (uint32_t)i;
		err = index_file(ix);
	}
	if (!err)
		err = check_last(ix);
	return err ? err : check_end(ix);
}

/* ---- whose packets they are --------------------------------------------------------------------- */

/* The head of the first file of a stream that begins with an intact packet. */
static bool find_uuid(struct indexing *ix, uint8_t uuid[16])
{
	struct reader *r = ix->r;

	for (size_t i = 0; i < r->nr_streams; i++) {
		struct reader_stream *stream = &r->streams[i];
		struct store store;
		bool found;

		ix->place = (struct packet_place){NULL, stream->kind, stream->instance};
		if (reading__open(r, &stream->files[stream->nr_files - 1], &store))
			continue;
		ix->store = &store;
		set_budget(ix);
		found = is_intact_at(ix, 0);
		store__close(&store);
		if (!found)
			continue;
		memcpy(uuid, ((const struct capture_packet *)(const void *)ix->packet)->uuid, 16);
		return true;
	}
	return false;
}

/* The packets know it as well as the metadata, and there are more of them. */
static void settle_uuid(struct indexing *ix)
{
	struct reader_env *env = &ix->r->env;
	uint8_t uuid[16];

	if (!find_uuid(ix, uuid))
		return;
	env->uuid_differs = env->has_metadata && memcmp(uuid, env->uuid, sizeof(uuid)) != 0;
	memcpy(env->uuid, uuid, sizeof(uuid));
}

/* ---- what the notes tell of ------------------------------------------------------------------- */

struct telling {
	struct told_file *files;
	size_t count;
};

static bool is_sound(const struct capture_file *file)
{
	return (file->stream == CAPTURE_CPU ||
		(file->stream == CAPTURE_TASKS && !file->instance)) &&
	       file->number < file->end;
}

static int take_told(const uint8_t *packet, uint32_t part, struct telling *telling)
{
	struct packet_walk walk = packet__walk(packet);
	const struct weir_record *rec;

	while (packet__next(&walk, &rec) == PACKET_RECORD) {
		const struct capture_file *file = (const void *)(rec + 1);
		struct told_file *grown = telling->files;

		if (rec->type != CAPTURE_T_FILE || !is_sound(file) || telling->count == TOLD_MAX)
			continue;
		grown = reading__grow(grown, telling->count, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		telling->files = grown;
		grown[telling->count++] = (struct told_file){part, *file};
	}
	return 0;
}

static int read_notes(struct indexing *ix, const struct reader_file *file, struct telling *telling)
{
	uint64_t offset = 0;
	struct store store;
	int err = 0;

	if (reading__open(ix->r, file, &store))
		return 0;
	ix->store = &store;
	set_budget(ix);
	while (offset < store.size && !err) {
		if (!is_intact_at(ix, offset)) {
			offset = find_packet(ix, offset + 8);
			continue;
		}
		err = take_told(ix->packet, file->part, telling);
		offset += packet__bytes((const void *)ix->packet);
	}
	store__close(&store);
	return err;
}

/* Which files each part had at its end, by its own notes: what is gone altogether has no other trace. */
static int expect_files(struct indexing *ix)
{
	struct reader *r = ix->r;
	struct telling telling = {0};
	int err = 0;

	for (size_t i = 0; i < r->nr_streams; i++) {
		const struct reader_stream *stream = &r->streams[i];

		if (stream->kind != CAPTURE_NOTES)
			continue;
		ix->place = (struct packet_place){r->env.uuid, stream->kind, stream->instance};
		for (size_t file = 0; file < stream->nr_files && !err; file++)
			err = read_notes(ix, &stream->files[file], &telling);
	}
	if (!err)
		err = files__expect(r, telling.files, telling.count);
	free(telling.files);
	return err;
}

/* ---- the whole -------------------------------------------------------------------------------- */

static bool has_first_part(const struct reader *r)
{
	for (size_t i = 0; i < r->nr_streams; i++)
		if (r->streams[i].files[0].part == 1)
			return true;
	return false;
}

int index__make(struct reader *r)
{
	struct indexing ix = {.r = r, .packet = malloc(CAPTURE_PACKET_BYTES)};
	int err = ix.packet ? 0 : -ENOMEM;

	if (!err) {
		settle_uuid(&ix);
		err = expect_files(&ix);
	}
	ix.has_first_part = !err && has_first_part(r);
	for (size_t i = 0; i < r->nr_streams && !err; i++) {
		struct reader_stream *stream = &r->streams[i];

		ix.stream = (uint32_t)i;
		err = index_stream(&ix);
		if (stream->kind == CAPTURE_CPU && stream->instance >= r->env.nr_cpus &&
		    stream->nr_packets)
			r->env.nr_cpus = stream->instance + 1;
	}
	free(ix.packet);
	return err;
}
