// SPDX-License-Identifier: BSD-2-Clause
/*
 * writer.c - which stream an event goes to, when packets are written, and how parts follow.
 *
 * Owns the streams of a capture and what is kept of it. Promises that header stamps never step back,
 * that every record is checked before it is written, and that a mark stands behind all that it speaks
 * for. Must not know the live system: no clock, no process table.
 */
#include "capture/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "capture/classes.h"
#include "capture/compress.h"
#include "capture/packets.h"
#include "capture/parts.h"

#define CPUS_MAX       (1u << 16)
#define PARTS_IN_SPAN  8	   /* so many parts are what max_bytes or max_age_ns hold */
#define COMPRESS_EVERY (64u << 20) /* only what is closed is compressed */

/* What the end of a capture takes at most: some blocks of each file, for gaps and accounts. */
#define RESERVE_BYTES	  (64u << 10)
#define RESERVE_CPU_BYTES (16u << 10)

/*
 * All open packets together. Packets of a MiB are for machines with few CPUs; a smaller one costs
 * readers a little more.
 */
#define OPEN_BYTES	 (64u << 20)
#define PACKET_BYTES_MIN (128u << 10)

struct writer {
	struct capture capture;
	struct packets **cpus; /* by id; NULL until its first event */
	uint32_t nr_cpus;
	struct packets *tasks, *notes;
	struct parts parts;
	struct compressor *compressor; /* NULL: parts stay as they are */
	uint64_t max_bytes, max_age_ns, min_free_bytes;
	uint32_t configured_cpus;
	int reserve_fd; /* holds room for the end; -1: there was none, or it is being used */
	bool closing;	/* what is written now has its room from the reserve */
	bool dirty;	/* something came since the last mark */
};

/* ---- room for the end ------------------------------------------------------------------------- */

/*
 * A file without a name, so that a kill leaves none; the one that it has at first is known to be ours.
 * Where the disk has no room for it, we go on: it is tried again with the next part.
 */
static void hold_reserve(struct writer *w)
{
	static const char hidden[] = CAPTURE_HIDDEN CAPTURE_METADATA;
	off_t bytes = RESERVE_BYTES + (off_t)w->configured_cpus * RESERVE_CPU_BYTES;

	if (w->reserve_fd >= 0)
		return;
	w->reserve_fd = openat(w->capture.dir_fd, hidden,
			       O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (w->reserve_fd < 0)
		return;
	unlinkat(w->capture.dir_fd, hidden, 0);
	if (!posix_fallocate(w->reserve_fd, 0, bytes))
		return;
	close(w->reserve_fd);
	w->reserve_fd = -1;
}

static void release_reserve(struct writer *w)
{
	if (w->reserve_fd >= 0)
		close(w->reserve_fd);
	w->reserve_fd = -1;
}

/* ---- what is kept ----------------------------------------------------------------------------- */

static bool too_little_is_free(const struct writer *w, size_t bytes)
{
	struct statvfs fs;

	if (w->closing || !w->min_free_bytes || fstatvfs(w->capture.dir_fd, &fs))
		return false;
	return fs.f_bavail * fs.f_frsize < w->min_free_bytes + bytes;
}

static bool too_old(const struct writer *w)
{
	return w->max_age_ns && w->parts.nr &&
	       w->parts.at[0].end_ns + w->max_age_ns < w->capture.position_ns;
}

static bool too_large(const struct writer *w, size_t bytes)
{
	return w->max_bytes && w->parts.bytes + w->capture.part_bytes + bytes > w->max_bytes;
}

static bool remove_oldest(struct writer *w)
{
	if (w->compressor && w->parts.nr)
		compressor__forget(w->compressor, w->parts.at[0].number);
	return parts__remove_oldest(&w->parts, w->capture.dir_fd);
}

static void count_compressed(struct writer *w)
{
	uint64_t saved;
	uint32_t part;

	while (w->compressor && compressor__done(w->compressor, &part, &saved))
		parts__shrink(&w->parts, part, saved);
}

/*
 * So much is about to be written: the oldest parts go. Where that is not enough for the disk, nothing
 * is written; an open part that is larger than max_bytes by itself is, for it ends soon.
 */
static void keep_bounds(void *owner, size_t bytes)
{
	struct writer *w = owner;

	count_compressed(w);
	while ((too_old(w) || too_large(w, bytes) || too_little_is_free(w, bytes)) &&
	       remove_oldest(w))
		;
	w->capture.no_room = too_little_is_free(w, bytes);
}

bool writer__part_is_full(const struct writer *w, uint64_t now_ns)
{
	if (w->max_bytes && w->capture.part_bytes >= w->max_bytes / PARTS_IN_SPAN)
		return true;
	if (w->compressor && w->capture.part_bytes >= COMPRESS_EVERY)
		return true;
	return w->max_age_ns && now_ns > w->capture.part_start_ns &&
	       now_ns - w->capture.part_start_ns >= w->max_age_ns / PARTS_IN_SPAN;
}

/* ---- set up ----------------------------------------------------------------------------------- */

static int make_uuid(uint8_t uuid[16])
{
	if (getrandom(uuid, 16, 0) != 16)
		return -EIO;
	uuid[6] = (uuid[6] & 0x0f) | 0x40; /* version 4, random */
	uuid[8] = (uuid[8] & 0x3f) | 0x80;
	return 0;
}

/* Under its name once it is whole. */
static int write_metadata(int dir_fd, const struct metadata *metadata)
{
	static const char hidden[] = CAPTURE_HIDDEN CAPTURE_METADATA;
	int fd = openat(dir_fd, hidden, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
			0600);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
	int err = 0;

	if (!file) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	metadata__write(file, metadata);
	if (fflush(file))
		err = -errno;
	fclose(file);
	if (!err && renameat(dir_fd, hidden, dir_fd, CAPTURE_METADATA))
		err = -errno;
	return err;
}

static size_t packet_bytes(uint32_t cpus)
{
	size_t bytes = CAPTURE_PACKET_BYTES;

	while (bytes > PACKET_BYTES_MIN && bytes * cpus > OPEN_BYTES)
		bytes /= 2;
	return bytes;
}

static int set_up(struct writer *w, const struct writer_opts *opts)
{
	struct metadata metadata = *opts->metadata;
	int err;

	w->reserve_fd = -1;
	w->capture.dir_fd = opts->dir_fd;
	w->capture.before_write = keep_bounds;
	w->capture.owner = w;
	w->capture.packet_bytes = packet_bytes(metadata.nr_cpus);
	w->capture.position_ns = opts->start_ns;
	w->capture.selected_types = metadata.selected_types;
	w->capture.lost = opts->lost;
	w->capture.ctx = opts->ctx;
	w->max_bytes = opts->max_bytes;
	w->max_age_ns = opts->max_age_ns;
	w->min_free_bytes = opts->min_free_bytes;
	w->configured_cpus = metadata.nr_cpus;
	err = make_uuid(w->capture.uuid);
	if (err)
		return err;
	w->tasks = packets__new(&w->capture, CAPTURE_TASKS, 0);
	w->notes = packets__new(&w->capture, CAPTURE_NOTES, 0);
	if (!w->tasks || !w->notes)
		return -ENOMEM;
	if (opts->compress && !(w->compressor = compressor__new(opts->dir_fd)))
		return -errno;
	memcpy(metadata.uuid, w->capture.uuid, sizeof(metadata.uuid));
	return write_metadata(opts->dir_fd, &metadata);
}

struct writer *writer__new(const struct writer_opts *opts)
{
	struct writer *w = calloc(1, sizeof(*w));
	int err = w ? set_up(w, opts) : -ENOMEM;

	if (!err)
		return w;
	writer__free(w);
	errno = -err;
	return NULL;
}

void writer__free(struct writer *w)
{
	if (!w)
		return;
	release_reserve(w);
	compressor__free(w->compressor);
	for (uint32_t cpu = 0; cpu < w->nr_cpus; cpu++)
		packets__free(w->cpus[cpu]);
	free(w->cpus);
	packets__free(w->tasks);
	packets__free(w->notes);
	parts__free(&w->parts);
	free(w);
}

static struct packets *add_cpu(struct writer *w, uint32_t cpu)
{
	if (cpu >= CPUS_MAX)
		return NULL;
	if (cpu >= w->nr_cpus) {
		struct packets **cpus = reallocarray(w->cpus, cpu + 1, sizeof(*cpus));

		if (!cpus)
			return NULL;
		memset(cpus + w->nr_cpus, 0, (cpu + 1 - w->nr_cpus) * sizeof(*cpus));
		w->cpus = cpus;
		w->nr_cpus = cpu + 1;
	}
	return w->cpus[cpu] = packets__new(&w->capture, CAPTURE_CPU, cpu);
}

static struct packets *cpu_packets(struct writer *w, int32_t cpu)
{
	if (cpu >= 0 && (uint32_t)cpu < w->nr_cpus && w->cpus[cpu])
		return w->cpus[cpu];
	return cpu < 0 ? NULL : add_cpu(w, (uint32_t)cpu);
}

/* ---- events ----------------------------------------------------------------------------------- */

/* Stands at the place to which the stream has come, with its own stamp beside it. */
static int write_late(struct writer *w, struct packets *p, const struct weir_event *event,
		      size_t size)
{
	const struct weir_record head = {
		.stamp = w->capture.position_ns,
		.type = event->type | CAPTURE_LATE,
		.flags = event->flags,
		.seq = (uint32_t)event->seq,
	};
	const struct capture_late late = {.true_stamp = event->stamp_ns, .mark = event->mark};
	char *payload = packets__append(&w->capture, p, &head, sizeof(late) + size);

	if (!payload)
		return -EBADMSG;
	memcpy(payload, &late, sizeof(late));
	memcpy(payload + sizeof(late), event->data, size);
	return 0;
}

static int write_record(struct writer *w, struct packets *p, const struct weir_event *event,
			size_t size)
{
	const struct weir_record head = {
		.stamp = event->stamp_ns,
		.type = event->type,
		.flags = event->flags,
		.seq = (uint32_t)event->seq,
	};
	char *payload;

	if (event->mark || event->stamp_ns < w->capture.position_ns)
		return write_late(w, p, event, size);
	payload = packets__append(&w->capture, p, &head, size);
	if (!payload)
		return -EBADMSG;
	memcpy(payload, event->data, size);
	return 0;
}

static int lose_record(struct writer *w, const struct weir_event *event)
{
	if (w->capture.selected_types >> event->type & 1)
		w->capture.lost(w->capture.ctx, event->source, 1);
	w->capture.error = w->capture.error ? w->capture.error : -ENOMEM;
	return 0;
}

int writer__record(struct writer *w, const struct weir_event *event)
{
	enum capture_ring ring = event->type <= WEIR_T_LIFE_MAX ? CAPTURE_RING_LIFE
								: CAPTURE_RING_CPU;
	int64_t size = event->type < FIELDS_TYPES
			       ? capture_class__size(event->type, event->data, event->len)
			       : -EBADMSG;
	struct packets *p;
	int err;

	if (size < 0)
		return -EBADMSG;
	p = cpu_packets(w, event->cpu);
	if (!p)
		return lose_record(w, event);
	err = write_record(w, p, event, (size_t)size);
	if (err)
		return err;
	p->seq[ring] = event->seq;
	p->source[ring] = event->source;
	w->dirty = true;
	return 0;
}

static void write_gap(struct writer *w, const struct weir_event *event, enum capture_ring ring)
{
	struct packets *p = cpu_packets(w, event->cpu);
	struct weir_gap gap;
	struct capture_gap out;

	if (event->len < sizeof(gap))
		return;
	memcpy(&gap, event->data, sizeof(gap));
	out = (struct capture_gap){
		.from_ns = gap.from_ns,
		.to_ns = gap.to_ns,
		.lost = gap.lost,
		.seq = event->seq,
		.seq_end = gap.seq_end,
		.cause = gap.cause,
		.bound = gap.bound,
		.ring = ring,
		.mark = event->mark,
	};
	packets__gap(&w->capture, p ? p : w->notes, &out, event->stamp_ns);
}

/* One of weir's own; those that have no room, have none in their stream until the disk has. */
static void append_own(struct writer *w, struct packets *p, uint16_t type, uint64_t stamp_ns,
		       const void *payload, size_t len)
{
	const struct weir_record head = {
		.stamp = stamp_ns > w->capture.position_ns ? stamp_ns : w->capture.position_ns,
		.type = type,
	};
	char *room = packets__append(&w->capture, p, &head, len);

	if (room)
		memcpy(room, payload, len);
}

static void write_clock_step(struct writer *w, const struct weir_event *event)
{
	struct weir_clock_step step;
	struct capture_clock_step out;

	if (event->len < sizeof(step))
		return;
	memcpy(&step, event->data, sizeof(step));
	out = (struct capture_clock_step){
		.old_offset_ns = step.old_offset_ns,
		.new_offset_ns = step.new_offset_ns,
		.suspended_ns = step.suspended_ns,
	};
	append_own(w, w->notes, CAPTURE_T_CLOCK_STEP, event->stamp_ns, &out, sizeof(out));
}

void writer__notice(struct writer *w, const struct weir_event *event, enum capture_ring ring)
{
	w->dirty = true;
	if (event->kind == WEIR_KIND_GAP)
		write_gap(w, event, ring);
	else if (event->kind == WEIR_KIND_CLOCK_STEP)
		write_clock_step(w, event);
}

void writer__account(struct writer *w, const struct weir_source_info *info, enum capture_ring ring)
{
	const struct weir_account *a = &info->account;
	struct capture_account out = {
		.cpu = info->cpu,
		.ring = ring,
		.produced = a->produced,
		.delivered = a->delivered,
		.filtered = a->filtered,
		.pending = a->pending,
		.late = a->late,
		.ahead = a->ahead,
		.self = a->self,
		.unread = a->unread,
		.failed = a->failed,
		.stray = a->stray,
	};

	static_assert((int)WEIR_LOST_CAUSES <= CAPTURE_CAUSES, "the layout has room for all");
	memcpy(out.name, info->name, strnlen(info->name, sizeof(out.name)));
	memcpy(out.lost, a->lost, sizeof(a->lost));
	memcpy(out.bound, a->bound, sizeof(a->bound));
	append_own(w, w->notes, CAPTURE_T_ACCOUNT, 0, &out, sizeof(out));
}

/* As much of it as the field has room for. */
static uint16_t length(const char *string)
{
	return (uint16_t)(string ? strnlen(string, UINT16_MAX) : 0);
}

void writer__task(struct writer *w, const struct weir_seed *seed, const char *exe,
		  const char *cgroups)
{
	const struct capture_task task = {
		.seed = *seed,
		.exe_len = length(exe),
		.cgroups_len = length(cgroups),
	};
	const struct weir_record head = {.stamp = w->capture.position_ns, .type = CAPTURE_T_TASK};
	char *room = packets__append(&w->capture, w->tasks, &head,
				     sizeof(task) + task.exe_len + task.cgroups_len);

	if (!room)
		return;
	memcpy(room, &task, sizeof(task));
	if (exe)
		memcpy(room + sizeof(task), exe, task.exe_len);
	if (cgroups)
		memcpy(room + sizeof(task) + task.exe_len, cgroups, task.cgroups_len);
	w->dirty = true;
}

/* ---- packets and parts ------------------------------------------------------------------------ */

static void each_cpu(struct writer *w, uint64_t end_ns,
		     void (*fn)(struct capture *, struct packets *, uint64_t))
{
	for (uint32_t cpu = 0; cpu < w->nr_cpus; cpu++)
		if (w->cpus[cpu])
			fn(&w->capture, w->cpus[cpu], end_ns);
}

/* Behind all that is stamped up to it, in every stream; what comes from now on, stands behind it. */
static void write_mark(struct writer *w, uint64_t watermark_ns, enum weir_order order, bool closed)
{
	const struct capture_mark mark = {
		.watermark_ns = watermark_ns,
		.order = order,
		.closed = closed,
	};

	append_own(w, w->notes, CAPTURE_T_MARK, watermark_ns, &mark, sizeof(mark));
	w->dirty = false;
}

bool writer__flush(struct writer *w, uint64_t watermark_ns, enum weir_order order)
{
	if (!w->dirty)
		return false;
	each_cpu(w, watermark_ns, packets__close);
	packets__close(&w->capture, w->tasks, watermark_ns);
	write_mark(w, watermark_ns, order, false);
	packets__close(&w->capture, w->notes, watermark_ns);
	return true;
}

void writer__begin_part(struct writer *w, int64_t wall_offset_ns)
{
	struct capture_part part;

	hold_reserve(w);
	w->capture.part++;
	w->capture.part_bytes = 0;
	w->capture.part_start_ns = w->capture.position_ns;
	part = (struct capture_part){
		.start_ns = w->capture.part_start_ns,
		.wall_offset_ns = wall_offset_ns,
		.part = w->capture.part,
		.nr_cpus = w->configured_cpus,
	};
	append_own(w, w->notes, CAPTURE_T_PART, 0, &part, sizeof(part));
	w->dirty = true;
}

/*
 * From here on nothing is written but what the reserve is for. Records that found no room before it is
 * given up are lost: they would take the room of the gap that tells so.
 */
static void begin_closing(struct writer *w, uint64_t watermark_ns)
{
	each_cpu(w, watermark_ns, packets__close);
	release_reserve(w);
	w->closing = true;
	w->capture.no_room = false;
}

void writer__end_records(struct writer *w, uint64_t watermark_ns, bool closed)
{
	packets__end_file(&w->capture, w->tasks, watermark_ns);
	if (closed && !w->closing)
		begin_closing(w, watermark_ns);
	each_cpu(w, watermark_ns, packets__end_file);
}

static void note_file(struct writer *w, const struct packets *p)
{
	const struct capture_file file = {
		.number = p->file_number,
		.end = p->number,
		.stream = p->stream,
		.instance = p->instance,
	};

	if (p->file_part == w->capture.part)
		append_own(w, w->notes, CAPTURE_T_FILE, 0, &file, sizeof(file));
}

static void note_files(struct writer *w)
{
	for (uint32_t cpu = 0; cpu < w->nr_cpus; cpu++)
		if (w->cpus[cpu])
			note_file(w, w->cpus[cpu]);
	note_file(w, w->tasks);
}

void writer__end_part(struct writer *w, uint64_t watermark_ns, enum weir_order order, bool closed)
{
	struct part part;

	writer__end_records(w, watermark_ns, closed);
	note_files(w);
	write_mark(w, watermark_ns, order, closed);
	packets__end_file(&w->capture, w->notes, watermark_ns);
	part = (struct part){
		.number = w->capture.part,
		.bytes = w->capture.part_bytes,
		.end_ns = w->capture.position_ns,
	};
	/* One that is forgotten stays: better than a capture that ends for want of 24 bytes. */
	parts__add(&w->parts, &part);
	if (w->compressor && !closed)
		compressor__add(w->compressor, part.number);
	w->capture.part_bytes = 0;
	keep_bounds(w, 0);
}

void writer__stats(const struct writer *w, struct writer_stats *out)
{
	*out = (struct writer_stats){
		.bytes = w->parts.bytes + w->capture.part_bytes,
		.records = w->capture.records,
		.parts = w->capture.part,
		.first_part = w->parts.nr ? w->parts.at[0].number : w->capture.part,
		.error = w->capture.error,
	};
}
