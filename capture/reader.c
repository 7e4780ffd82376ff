/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reader.c - the folder, its files, and one packet behind the other.
 *
 * Owns the index. Promises that each packet which is whole and where it should be is in it, whatever
 * stands before it; that each stretch of bytes which is no packet is a flaw; and that opening takes
 * time by the number of packets and the bytes that are damaged. Must not know: what the records mean.
 */
#include "capture/reader.h"

#include "capture/env.h"
#include "capture/packet.h"
#include "capture/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAD		   sizeof(struct capture_packet)
#define METADATA_MAX_BYTES (64u << 20) /* twice the longest command line, with its escapes */
#define SCAN_BYTES	   (64u << 10)

struct reader {
	char *path;
	int dir, zstd_dir; /* zstd_dir -1: there is none */
	struct reader_env env;
	char *command;
	struct reader_stream *streams;
	size_t nr_streams;
	struct reader_flaw *flaws;
	size_t nr_flaws;
	/* The file that a stream was read from last, by stream. */
	struct {
		struct store store;
		size_t file; /* SIZE_MAX: none */
	} * open;
};

/* Room for one more, doubling: amortised. */
static void *grow(void *array, size_t count, size_t size)
{
	if (count & (count - 1))
		return array;
	return realloc(array, (count ? 2 * count : 1) * size);
}

static int add_flaw(struct reader *r, const struct reader_flaw *flaw)
{
	struct reader_flaw *grown = grow(r->flaws, r->nr_flaws, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	r->flaws = grown;
	grown[r->nr_flaws++] = *flaw;
	return 0;
}

/* ---- names ------------------------------------------------------------------------------------ */

/* Exactly what the format makes of its numbers: no sign, no more zeros than that. */
static bool parse_name(const char *name, enum capture_stream *kind, uint32_t *instance,
		       uint32_t *part)
{
	static const char *const formats[] = {
		[CAPTURE_CPU] = CAPTURE_CPU_FILE,
		[CAPTURE_TASKS] = CAPTURE_TASKS_FILE,
		[CAPTURE_NOTES] = CAPTURE_NOTES_FILE,
	};
	char again[32];

	*instance = *part = 0;
	if (sscanf(name, "cpu%u.%u", instance, part) == 2)
		*kind = CAPTURE_CPU;
	else if (sscanf(name, "tasks.%u", part) == 1)
		*kind = CAPTURE_TASKS;
	else if (sscanf(name, "weir.%u", part) == 1)
		*kind = CAPTURE_NOTES;
	else
		return false;
	if (*kind == CAPTURE_CPU)
		snprintf(again, sizeof(again), formats[*kind], *instance, *part);
	else
		snprintf(again, sizeof(again), formats[*kind], *part);
	return !strcmp(name, again);
}

static struct reader_stream *stream_of(struct reader *r, enum capture_stream kind,
				       uint32_t instance)
{
	struct reader_stream *grown;

	for (size_t i = 0; i < r->nr_streams; i++)
		if (r->streams[i].kind == kind && r->streams[i].instance == instance)
			return &r->streams[i];
	grown = grow(r->streams, r->nr_streams, sizeof(*grown));
	if (!grown)
		return NULL;
	r->streams = grown;
	grown = &r->streams[r->nr_streams++];
	*grown = (struct reader_stream){.kind = kind, .instance = instance};
	return grown;
}

/* A part that is there both ways was left by a kill while it was being compressed: take the plain one. */
static bool has_part(const struct reader_stream *stream, uint32_t part)
{
	for (size_t i = 0; i < stream->nr_files; i++)
		if (stream->files[i].part == part)
			return true;
	return false;
}

static int add_file(struct reader *r, const char *name, bool compressed)
{
	struct reader_file file = {.compressed = compressed};
	struct reader_stream *stream;
	struct reader_file *grown;
	enum capture_stream kind;
	uint32_t instance;

	if (!parse_name(name, &kind, &instance, &file.part))
		return 0;
	stream = stream_of(r, kind, instance);
	if (!stream)
		return -ENOMEM;
	if (compressed && has_part(stream, file.part))
		return 0;
	grown = grow(stream->files, stream->nr_files, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	stream->files = grown;
	snprintf(file.name, sizeof(file.name), "%s%s", name, compressed ? CAPTURE_ZSTD_SUFFIX : "");
	grown[stream->nr_files++] = file;
	return 0;
}

/* Its name without the suffix; false: it has none. */
static bool cut_suffix(char *name)
{
	size_t len = strlen(name), suffix = strlen(CAPTURE_ZSTD_SUFFIX);

	if (len <= suffix || strcmp(name + len - suffix, CAPTURE_ZSTD_SUFFIX) != 0)
		return false;
	name[len - suffix] = '\0';
	return true;
}

static int list_folder(struct reader *r, int dir, bool compressed)
{
	int fd = dup(dir), err = 0;
	DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *item;

	if (!list) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	while (!err && (item = readdir(list)))
		if (item->d_name[0] != '.' && (!compressed || cut_suffix(item->d_name)))
			err = add_file(r, item->d_name, compressed);
	closedir(list);
	return err;
}

static int by_part(const void *a, const void *b)
{
	const struct reader_file *x = a, *y = b;

	return (x->part > y->part) - (x->part < y->part);
}

static int by_kind(const void *a, const void *b)
{
	const struct reader_stream *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return (x->instance > y->instance) - (x->instance < y->instance);
}

static int list_files(struct reader *r)
{
	int err = list_folder(r, r->dir, false);

	r->zstd_dir = openat(r->dir, CAPTURE_ZSTD_FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!err && r->zstd_dir >= 0)
		err = list_folder(r, r->zstd_dir, true);
	for (size_t i = 0; i < r->nr_streams; i++)
		qsort(r->streams[i].files, r->streams[i].nr_files, sizeof(struct reader_file),
		      by_part);
	if (r->nr_streams)
		qsort(r->streams, r->nr_streams, sizeof(*r->streams), by_kind);
	return err;
}

/* ---- a file's packets ------------------------------------------------------------------------- */

struct indexing {
	struct reader *r;
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

/* The flaw that leads up to the next packet of this stream; NULL: there is none. */
static struct reader_flaw *flaw_before(const struct indexing *ix)
{
	struct reader *r = ix->r;
	struct reader_flaw *flaw = r->nr_flaws ? &r->flaws[r->nr_flaws - 1] : NULL;

	return flaw && flaw->stream == ix->stream && flaw->before == stream_at(ix)->nr_packets
		       ? flaw
		       : NULL;
}

/* Is its first part there? */
static bool is_whole(const struct reader_stream *stream)
{
	return stream->files[0].part == 1;
}

/*
 * Numbers tell whether what was damaged held packets, and whether some are gone without a trace. The
 * oldest parts may have been given up: the first packet of all has no number that it should have.
 */
static int check_number(struct indexing *ix, const struct capture_packet *head, uint64_t offset)
{
	const struct reader_packet *last = last_packet(stream_at(ix));
	struct reader_flaw *flaw = flaw_before(ix), missing;
	uint64_t expected = last ? last->number + 1 : is_whole(stream_at(ix)) ? 0 : head->number;

	missing = new_flaw(ix, READER_MISSING, offset, 0);
	if (flaw && flaw->kind != READER_REPEATED) {
		flaw->packets = head->number - expected;
		flaw->to_ns = head->begin_ns;
		if (!flaw->packets && (last || is_whole(stream_at(ix))))
			flaw->records = 0;
		return 0;
	}
	if (head->number == expected)
		return 0;
	missing.packets = head->number - expected;
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
	grown = grow(stream->packets, stream->nr_packets, sizeof(*grown));
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

static int open_store(const struct reader *r, const struct reader_file *file, struct store *store)
{
	return store__open(store, file->compressed ? r->zstd_dir : r->dir, file->name,
			   file->compressed);
}

static int index_file(struct indexing *ix)
{
	struct reader_file *file = &stream_at(ix)->files[ix->file];
	uint64_t offset = 0;
	struct store store;
	int err = open_store(ix->r, file, &store);

	if (err) {
		struct reader_flaw flaw = new_flaw(ix, READER_UNREADABLE, 0, 0);

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

	if (!last || open_store(ix->r, &stream_at(ix)->files[last->file], &store))
		return 0;
	ix->store = &store;
	set_budget(ix);
	if (!is_intact_at(ix, last->offset))
		err = drop_last(ix);
	store__close(&store);
	return err;
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
	return err ? err : check_last(ix);
}

/* ---- the whole -------------------------------------------------------------------------------- */

static int read_metadata(struct reader *r)
{
	struct store store;
	ssize_t n = 0;
	size_t size;
	char *text;
	int err;

	if (store__open(&store, r->dir, CAPTURE_METADATA, false))
		return 0;
	size = store.size < METADATA_MAX_BYTES ? store.size : METADATA_MAX_BYTES;
	text = malloc(size + 1);
	if (text)
		n = store__read(&store, text, size, 0);
	r->env.has_metadata = n > 0;
	err = !text ? -ENOMEM : n > 0 ? env__parse(text, (size_t)n, &r->env, &r->command) : 0;
	r->env.command = r->command;
	free(text);
	store__close(&store);
	return err;
}

/* The head of the first file of a stream that begins with an intact packet. */
static bool find_uuid(struct indexing *ix, uint8_t uuid[16])
{
	struct reader *r = ix->r;

	for (size_t i = 0; i < r->nr_streams; i++) {
		struct reader_stream *stream = &r->streams[i];
		struct store store;
		bool found;

		ix->place = (struct packet_place){NULL, stream->kind, stream->instance};
		if (open_store(r, &stream->files[stream->nr_files - 1], &store))
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

static int index_all(struct reader *r)
{
	struct indexing ix = {.r = r, .packet = malloc(CAPTURE_PACKET_BYTES)};
	int err = ix.packet ? 0 : -ENOMEM;

	if (!err)
		settle_uuid(&ix);
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

static int open_all(struct reader *r)
{
	int err = read_metadata(r);

	if (!err)
		err = list_files(r);
	if (!err && !r->nr_streams)
		return -ENOMSG;
	if (!err)
		err = index_all(r);
	if (err)
		return err;
	r->open = calloc(r->nr_streams, sizeof(*r->open));
	if (!r->open)
		return -ENOMEM;
	for (size_t i = 0; i < r->nr_streams; i++)
		r->open[i].file = SIZE_MAX;
	return 0;
}

struct reader *reader__open(const char *path, char *err, size_t err_len)
{
	struct reader *r = calloc(1, sizeof(*r));
	int error = ENOMEM;

	if (r) {
		r->zstd_dir = -1;
		r->env.selected_types = UINT32_MAX;
		r->path = strdup(path);
		r->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		error = r->dir < 0 ? errno : !r->path ? ENOMEM : -open_all(r);
	}
	if (!error)
		return r;
	if (error == ENOMSG)
		snprintf(err, err_len, "%s: no capture: there are no files of one in it", path);
	else
		snprintf(err, err_len, "%s: %s", path, strerror(error));
	reader__close(r);
	return NULL;
}

void reader__close(struct reader *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->nr_streams; i++) {
		if (r->open && r->open[i].file != SIZE_MAX)
			store__close(&r->open[i].store);
		free(r->streams[i].files);
		free(r->streams[i].packets);
	}
	if (r->zstd_dir >= 0)
		close(r->zstd_dir);
	if (r->dir >= 0)
		close(r->dir);
	free(r->open);
	free(r->streams);
	free(r->flaws);
	free(r->command);
	free(r->path);
	free(r);
}

const struct reader_env *reader__env(const struct reader *r)
{
	return &r->env;
}

const struct reader_stream *reader__streams(const struct reader *r, size_t *count)
{
	*count = r->nr_streams;
	return r->streams;
}

const struct reader_flaw *reader__flaws(const struct reader *r, size_t *count)
{
	*count = r->nr_flaws;
	return r->flaws;
}

const char *reader__path(const struct reader *r)
{
	return r->path;
}

/* The one before is closed: a stream has one file open at a time, however many there are. */
static int open_file(struct reader *r, size_t stream, size_t file)
{
	int err;

	if (r->open[stream].file == file)
		return 0;
	if (r->open[stream].file != SIZE_MAX)
		store__close(&r->open[stream].store);
	r->open[stream].file = SIZE_MAX;
	err = open_store(r, &r->streams[stream].files[file], &r->open[stream].store);
	if (!err)
		r->open[stream].file = file;
	return err;
}

int reader__packet(struct reader *r, size_t stream, size_t packet, void *buf)
{
	const struct reader_packet *p = &r->streams[stream].packets[packet];
	const struct packet_place place = {r->env.uuid, r->streams[stream].kind,
					   r->streams[stream].instance};
	const struct capture_packet *head = buf;
	int err = open_file(r, stream, p->file);
	ssize_t n;

	if (err)
		return err;
	n = store__read(&r->open[stream].store, buf, p->bytes, p->offset);
	if (n < 0)
		return (int)n;
	/* The file may have changed since the index was made. */
	if (n != (ssize_t)p->bytes || !packet__is_head(head, &place) ||
	    packet__bytes(head) != p->bytes || !packet__is_intact(buf))
		return -EBADMSG;
	return 0;
}

int reader__bytes(struct reader *r, size_t stream, size_t file, uint64_t offset, void *buf,
		  size_t len)
{
	int err = open_file(r, stream, file);
	ssize_t n = err ? err : store__read(&r->open[stream].store, buf, len, offset);

	if (n < 0)
		return (int)n;
	return n == (ssize_t)len ? 0 : -ENODATA;
}
