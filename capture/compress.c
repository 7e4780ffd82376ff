// SPDX-License-Identifier: BSD-2-Clause
/*
 * compress.c - a file of packets -> a zstd frame for each, and a table of them (docs/capture.md).
 *
 * Owns a thread and its queue. Promises that a part's file is there plain or compressed at any
 * moment, whole. Must not know what packets hold, but for their length.
 */
#include "capture/compress.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "capture/layout.h"
#include "capture/parts.h"

/* Of system calls, higher ones are slower and not smaller. */
#define LEVEL	     1
#define NAME_MAX_LEN 64
#define NICE	     19

#define SKIPPABLE_MAGIC 0x184D2A5Eu
#define SEEKABLE_MAGIC	0x8F92EAB1u

struct frame {
	uint32_t compressed, plain;
};

struct job {
	uint32_t part;
	uint64_t saved;
};

struct jobs {
	struct job *at;
	size_t nr, room;
};

struct compressor {
	int dir_fd, zstd_fd;
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t more;
	bool stop;
	uint32_t gone; /* parts up to this were removed */
	struct jobs waiting, done;
	/* The thread's own. */
	struct job job;
	char *packet, *out;
	size_t out_size;
	struct frame *frames;
	size_t nr_frames, frames_room;
};

/* ---- a file ----------------------------------------------------------------------------------- */

static bool should_stop(struct compressor *c)
{
	bool stop;

	pthread_mutex_lock(&c->lock);
	stop = c->stop || c->job.part <= c->gone;
	pthread_mutex_unlock(&c->lock);
	return stop;
}

static int write_all(int fd, const void *bytes, size_t len)
{
	while (len) {
		ssize_t n = write(fd, bytes, len);

		if (n < 0)
			return -errno;
		bytes = (const char *)bytes + n;
		len -= (size_t)n;
	}
	return 0;
}

/* The next packet's bytes; 0: there is none. Not whole: -EBADMSG. */
static int64_t read_packet(struct compressor *c, int fd)
{
	struct capture_packet head;
	ssize_t n = read(fd, c->packet, sizeof(head));
	size_t len;

	if (n <= 0)
		return n ? -errno : 0;
	if (n != sizeof(head))
		return -EBADMSG;
	memcpy(&head, c->packet, sizeof(head));
	len = head.packet_bits / 8;
	if (len < sizeof(head) || len > CAPTURE_PACKET_BYTES)
		return -EBADMSG;
	n = read(fd, c->packet + sizeof(head), len - sizeof(head));
	return n == (ssize_t)(len - sizeof(head)) ? (int64_t)len : -EBADMSG;
}

static int add_frame(struct compressor *c, size_t compressed, size_t plain)
{
	if (c->nr_frames == c->frames_room) {
		size_t room = c->frames_room ? 2 * c->frames_room : 64;
		struct frame *frames = reallocarray(c->frames, room, sizeof(*frames));

		if (!frames)
			return -ENOMEM;
		c->frames = frames;
		c->frames_room = room;
	}
	c->frames[c->nr_frames++] = (struct frame){(uint32_t)compressed, (uint32_t)plain};
	return 0;
}

static int write_frame(struct compressor *c, int to, size_t len)
{
	size_t compressed = ZSTD_compress(c->out, c->out_size, c->packet, len, LEVEL);
	int err = ZSTD_isError(compressed) ? -EIO : add_frame(c, compressed, len);

	return err ? err : write_all(to, c->out, compressed);
}

/* All numbers little-endian, as zstd has them. */
static void put_le32(unsigned char *to, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		to[i] = (unsigned char)(value >> 8 * i);
}

static int write_table(struct compressor *c, int to)
{
	size_t len = 8 + 8 * c->nr_frames + 9;
	unsigned char *table = malloc(len), *at = table + 8;
	int err;

	if (!table)
		return -ENOMEM;
	put_le32(table, SKIPPABLE_MAGIC);
	put_le32(table + 4, (uint32_t)(len - 8));
	for (size_t i = 0; i < c->nr_frames; i++, at += 8) {
		put_le32(at, c->frames[i].compressed);
		put_le32(at + 4, c->frames[i].plain);
	}
	put_le32(at, (uint32_t)c->nr_frames);
	at[4] = 0; /* no checksums: packets have their own */
	put_le32(at + 5, SEEKABLE_MAGIC);
	err = write_all(to, table, len);
	free(table);
	return err;
}

static int compress_packets(struct compressor *c, int from, int to)
{
	int64_t len;

	c->nr_frames = 0;
	while ((len = read_packet(c, from)) > 0) {
		int err = should_stop(c) ? -ECANCELED : write_frame(c, to, (size_t)len);

		if (err)
			return err;
	}
	return len ? (int)len : write_table(c, to);
}

static uint64_t size_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : (uint64_t)st.st_size;
}

/* Unless the part was removed meanwhile: then nobody would remove this. */
static void put_in_place(struct compressor *c, const char *name, const char *hidden, uint64_t saved)
{
	pthread_mutex_lock(&c->lock);
	if (c->job.part > c->gone &&
	    !renameat(c->zstd_fd, hidden, c->zstd_fd, hidden + strlen(CAPTURE_HIDDEN))) {
		unlinkat(c->dir_fd, name, 0);
		c->job.saved += saved;
	}
	pthread_mutex_unlock(&c->lock);
}

static bool compress_file(void *ctx, int dir_fd, const char *name)
{
	struct compressor *c = ctx;
	char hidden[NAME_MAX_LEN];
	int from, to, err;

	snprintf(hidden, sizeof(hidden), CAPTURE_HIDDEN "%s" CAPTURE_ZSTD_SUFFIX, name);
	from = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (from < 0)
		return true;
	to = openat(c->zstd_fd, hidden, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
		    0600);
	err = to < 0 ? -errno : compress_packets(c, from, to);
	if (!err)
		put_in_place(c, name, hidden, size_of(from) - size_of(to));
	if (to >= 0) {
		close(to);
		unlinkat(c->zstd_fd, hidden, 0); /* where it was put in place, there is none */
	}
	close(from);
	return err != -ECANCELED;
}

/* ---- the thread ------------------------------------------------------------------------------- */

static void push(struct jobs *jobs, const struct job *job)
{
	if (jobs->nr == jobs->room) {
		size_t room = jobs->room ? 2 * jobs->room : 16;
		struct job *at = reallocarray(jobs->at, room, sizeof(*at));

		/* The part stays plain, or its size is taken for what it was. */
		if (!at)
			return;
		jobs->at = at;
		jobs->room = room;
	}
	jobs->at[jobs->nr++] = *job;
}

static bool pop(struct jobs *jobs, struct job *job)
{
	if (!jobs->nr)
		return false;
	*job = jobs->at[0];
	jobs->nr--;
	memmove(jobs->at, jobs->at + 1, jobs->nr * sizeof(*jobs->at));
	return true;
}

static bool next_job(struct compressor *c)
{
	bool got = false;

	pthread_mutex_lock(&c->lock);
	if (c->job.saved)
		push(&c->done, &c->job);
	while (!c->stop && !(got = pop(&c->waiting, &c->job)))
		pthread_cond_wait(&c->more, &c->lock);
	pthread_mutex_unlock(&c->lock);
	return got;
}

static void *run(void *ctx)
{
	struct compressor *c = ctx;

	/* Of this thread alone, in Linux. Recording comes first. */
	setpriority(PRIO_PROCESS, 0, NICE);
	while (next_job(c))
		parts__each_file(c->dir_fd, c->job.part, compress_file, c);
	return NULL;
}

/* Signals are for the thread that records. */
static int start_thread(struct compressor *c)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&c->thread, NULL, run, c);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	c->has_thread = !err;
	return -err;
}

static int open_folder(struct compressor *c)
{
	if (mkdirat(c->dir_fd, CAPTURE_ZSTD_FOLDER, 0700) && errno != EEXIST)
		return -errno;
	c->zstd_fd = openat(c->dir_fd, CAPTURE_ZSTD_FOLDER,
			    O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return c->zstd_fd < 0 ? -errno : 0;
}

struct compressor *compressor__new(int dir_fd)
{
	struct compressor *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return NULL;
	c->dir_fd = dir_fd;
	c->zstd_fd = -1;
	c->out_size = ZSTD_compressBound(CAPTURE_PACKET_BYTES);
	c->packet = malloc(CAPTURE_PACKET_BYTES);
	c->out = malloc(c->out_size);
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->more, NULL);
	err = c->packet && c->out ? open_folder(c) : -ENOMEM;
	if (!err)
		err = start_thread(c);
	if (!err)
		return c;
	compressor__free(c);
	errno = -err;
	return NULL;
}

void compressor__free(struct compressor *c)
{
	if (!c)
		return;
	if (c->has_thread) {
		pthread_mutex_lock(&c->lock);
		c->stop = true;
		pthread_cond_signal(&c->more);
		pthread_mutex_unlock(&c->lock);
		pthread_join(c->thread, NULL);
	}
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->more);
	if (c->zstd_fd >= 0)
		close(c->zstd_fd);
	free(c->waiting.at);
	free(c->done.at);
	free(c->frames);
	free(c->packet);
	free(c->out);
	free(c);
}

void compressor__add(struct compressor *c, uint32_t part)
{
	const struct job job = {.part = part};

	pthread_mutex_lock(&c->lock);
	push(&c->waiting, &job);
	pthread_cond_signal(&c->more);
	pthread_mutex_unlock(&c->lock);
}

void compressor__forget(struct compressor *c, uint32_t part)
{
	pthread_mutex_lock(&c->lock);
	if (part > c->gone)
		c->gone = part;
	pthread_mutex_unlock(&c->lock);
}

bool compressor__done(struct compressor *c, uint32_t *part, uint64_t *saved)
{
	struct job job;
	bool got;

	pthread_mutex_lock(&c->lock);
	got = pop(&c->done, &job);
	pthread_mutex_unlock(&c->lock);
	if (got) {
		*part = job.part;
		*saved = job.saved;
	}
	return got;
}
