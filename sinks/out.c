// SPDX-License-Identifier: BSD-2-Clause
/*
 * out.c - a buffered descriptor that knows which of its bytes are whole events.
 *
 * Owns: the buffer, the list of items in it, the count of events that did not get out.
 * Promises: every event given to out__end() is either wholly written or counted, whatever the
 * descriptor does; nothing is allocated for an item, unless it is the largest so far; once a stop
 * was seen, no call takes longer than its grace period (a disk's own writes cannot be cut short).
 * Must not know: what an item means, and what is done about an error.
 */
#include "sinks/out.h"
#include "sinks/put.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BUFFER_MIN (4 * OUT_ROOM_MAX)
#define ITEM_BYTES \
	64 /* of buffer for each place in the list of items; shorter ones fill it first */
#define WAIT_MS	     100 /* between two looks at `stop` while the peer takes nothing */
#define SOURCE_LIMIT (1u << 20)
#define PATIENCE     5 /* times the grace, for a peer that need not be hurried */

struct item {
	size_t end; /* in the buffer */
	uint32_t source;
	uint32_t also; /* NO_SOURCE: it stands for one event */
	bool is_event;
};

#define NO_SOURCE UINT32_MAX

struct out {
	struct out_cursor room;
	int fd;
	bool regular;	   /* a regular file: takes bytes or fails, and never waits for a peer */
	size_t pipe_bytes; /* what an empty pipe has room for; 0: it is no pipe */
	int error;	   /* the first; nothing is written after it */
	char *buf;
	size_t open_at; /* from here on it is the item that has not ended */
	uint32_t also;	/* of that item */
	struct item *items;
	size_t nr_items, items_cap;
	const volatile int *stop;
	uint64_t grace_ns;
	uint64_t give_up_ns; /* 0: no stop was seen yet */
	bool patient;	     /* each byte that the peer takes puts that off */
	uint64_t written;
	uint64_t *unwritten; /* by source */
	uint32_t unwritten_len;
	uint64_t unwritten_rest; /* of no source, or of one that the list has no room for */
};

static size_t filled(const struct out *out)
{
	return (size_t)(out->room.at - out->buf);
}

static size_t capacity(const struct out *out)
{
	return (size_t)(out->room.end - out->buf);
}

static void set_buffer(struct out *out, char *buf, size_t cap, size_t len)
{
	out->buf = buf;
	out->room.at = buf + len;
	out->room.end = buf + cap;
}

static void set_len(struct out *out, size_t len)
{
	out->room.at = out->buf + len;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static size_t pipe_size(int fd)
{
	int size = fcntl(fd, F_GETPIPE_SZ);

	return size < PIPE_BUF ? PIPE_BUF : (size_t)size;
}

struct out *out__new(int fd, size_t buffer_bytes, const volatile int *stop, unsigned stop_grace_ms)
{
	struct out *out = calloc(1, sizeof(*out));
	struct stat st = {0};
	char *buf;

	if (!out)
		return NULL;
	out->fd = fd;
	out->also = NO_SOURCE;
	fstat(fd, &st); /* a descriptor that is none fails when it is written to */
	out->regular = S_ISREG(st.st_mode);
	if (S_ISFIFO(st.st_mode))
		out->pipe_bytes = pipe_size(fd);
	out->stop = stop;
	out->grace_ns = (uint64_t)stop_grace_ms * 1000000;
	if (buffer_bytes < BUFFER_MIN)
		buffer_bytes = BUFFER_MIN;
	out->items_cap = buffer_bytes / ITEM_BYTES;
	out->items = malloc(out->items_cap * sizeof(*out->items));
	buf = malloc(buffer_bytes);
	if (buf)
		set_buffer(out, buf, buffer_bytes, 0);
	if (!buf || !out->items) {
		out__free(out);
		errno = ENOMEM;
		return NULL;
	}
	return out;
}

void out__free(struct out *out)
{
	if (!out)
		return;
	free(out->buf);
	free(out->items);
	free(out->unwritten);
	free(out);
}

static bool unwritten_room(struct out *out, uint32_t source)
{
	uint32_t len = out->unwritten_len ? out->unwritten_len : 64;
	uint64_t *counts;

	if (source < out->unwritten_len)
		return true;
	if (source >= SOURCE_LIMIT)
		return false;
	while (len <= source)
		len *= 2;
	counts = realloc(out->unwritten, len * sizeof(*counts));
	if (!counts)
		return false;
	memset(counts + out->unwritten_len, 0, (len - out->unwritten_len) * sizeof(*counts));
	out->unwritten = counts;
	out->unwritten_len = len;
	return true;
}

static void count_one(struct out *out, uint32_t source)
{
	if (unwritten_room(out, source))
		out->unwritten[source]++;
	else
		out->unwritten_rest++;
}

static void count_unwritten(struct out *out, const struct item *item)
{
	if (!item->is_event)
		return;
	count_one(out, item->source);
	if (item->also != NO_SOURCE)
		count_one(out, item->also);
}

/*
 * Is the program being stopped? From the first time on that it is, the grace period runs; a stop that
 * is not patient may come after one that is.
 */
static bool stopping(struct out *out)
{
	int stop = out->stop ? *out->stop : 0;

	if (stop && (!out->give_up_ns || (out->patient && stop != OUT_STOP_PATIENTLY))) {
		out->patient = stop == OUT_STOP_PATIENTLY;
		out->give_up_ns = now_ns() + (out->patient ? PATIENCE : 1) * out->grace_ns;
	}
	return out->give_up_ns != 0;
}

static void took_some(struct out *out)
{
	if (out->patient)
		out->give_up_ns = now_ns() + PATIENCE * out->grace_ns;
}

/*
 * Wait until the peer takes bytes, it is gone, or it is time to look at `stop` again. false: no, and
 * if out->error is set then not any more either.
 */
static bool wait_for_peer(struct out *out)
{
	struct pollfd pfd = {.fd = out->fd, .events = POLLOUT};
	int timeout_ms = WAIT_MS;

	if (stopping(out)) {
		uint64_t now = now_ns();

		if (now >= out->give_up_ns) {
			out->error = -ECANCELED;
			return false;
		}
		if ((out->give_up_ns - now) / 1000000 < WAIT_MS)
			timeout_ms = (int)((out->give_up_ns - now) / 1000000) + 1;
	}
	/* POLLERR and POLLHUP count as well: the write says what is wrong. */
	return poll(&pfd, 1, timeout_ms) > 0;
}

/*
 * How much a pipe takes whole or not at all: PIPE_BUF, and all of its size while it is empty, which
 * it is when its reader keeps up. Whoever gives up between such pieces leaves no torn item in it.
 */
static size_t piece_limit(const struct out *out)
{
	int queued;

	if (out->pipe_bytes && !ioctl(out->fd, FIONREAD, &queued) && !queued)
		return out->pipe_bytes;
	return PIPE_BUF;
}

/*
 * How many bytes to write from `done` on, at most `limit`: whole items where they fit. *next: the
 * first item that ends behind `done`.
 */
static size_t piece_len(const struct out *out, size_t done, size_t limit, size_t *next)
{
	size_t i = *next;

	while (out->items[i].end <= done)
		i++;
	*next = i;
	if (out->items[i].end - done > limit)
		return limit;
	while (i + 1 < out->nr_items && out->items[i + 1].end - done <= limit)
		i++;
	return out->items[i].end - done;
}

/* Write the first `len` bytes of the buffer. Returns how many; less only with an error. */
static size_t write_len(struct out *out, size_t len)
{
	size_t done = 0, next = 0;

	while (done < len) {
		size_t want = len - done;
		ssize_t n;

		if (stopping(out) && !wait_for_peer(out)) {
			if (out->error)
				break;
			continue;
		}
		/* Once there is a stop, no write may block, neither on a pipe nor on a terminal. */
		if (out->pipe_bytes || (out->give_up_ns && !out->regular))
			want = piece_len(out, done, piece_limit(out), &next);
		n = write(out->fd, out->buf + done, want);
		if (n > 0) {
			done += (size_t)n;
			took_some(out);
		} else if (n == 0) {
			out->error = -EIO;
			break;
		} else if (errno == EAGAIN) {
			wait_for_peer(out);
			if (out->error)
				break;
		} else if (errno != EINTR) {
			out->error = -errno;
			break;
		}
	}
	return done;
}

/*
 * Take back the last `torn` bytes, the part of an item that got out before the error, so that the
 * file ends with a whole one. Only where those bytes are provably ours and the last: in a regular
 * file, at our own offset, which is where `begin` and `done` put it, and at the end of the file. Not
 * with O_APPEND: others append there too, and between the look and the cut they may.
 */
static void cut_torn(struct out *out, off_t begin, size_t done, size_t torn)
{
	off_t end = begin + (off_t)done;
	int flags = fcntl(out->fd, F_GETFL);
	struct stat st;

	if (begin < 0 || !out->regular || flags < 0 || flags & O_APPEND)
		return;
	if (lseek(out->fd, 0, SEEK_CUR) != end || fstat(out->fd, &st) || st.st_size != end)
		return;
	if (ftruncate(out->fd, end - (off_t)torn))
		return;
	/* Whoever shares the offset (a shell's redirection) goes on here, and leaves no hole. */
	lseek(out->fd, end - (off_t)torn, SEEK_SET);
	out->written -= torn;
}

/* Count what `done` bytes leave unwritten. Returns how many bytes of a torn item got out. */
static size_t count_items(struct out *out, size_t done)
{
	size_t whole = 0, i;

	for (i = 0; i < out->nr_items; i++) {
		if (out->items[i].end <= done)
			whole = out->items[i].end;
		else
			count_unwritten(out, &out->items[i]);
	}
	return done - whole;
}

/* Write all items that have ended; the one that has not moves to the front. */
static void write_items(struct out *out)
{
	off_t begin = lseek(out->fd, 0, SEEK_CUR);
	size_t done = write_len(out, out->open_at);

	out->written += done;
	if (out->error) {
		size_t torn = count_items(out, done);

		if (torn)
			cut_torn(out, begin, done, torn);
		set_len(out, 0); /* the open item is counted when it ends */
	} else {
		size_t rest = filled(out) - out->open_at;

		memmove(out->buf, out->buf + out->open_at, rest);
		set_len(out, rest);
	}
	out->open_at = 0;
	out->nr_items = 0;
}

/* The open item is larger than the buffer. */
static void grow(struct out *out, size_t need)
{
	size_t cap = capacity(out) * 2 < need ? need : capacity(out) * 2, len = filled(out);
	char *buf = realloc(out->buf, cap);

	if (buf)
		set_buffer(out, buf, cap, len);
	else
		out->error = -ENOMEM;
}

/* Have `need` bytes free. false: there was an error, and no byte is kept any more. */
static bool make_room(struct out *out, size_t need)
{
	if (!out->error && out->open_at)
		write_items(out);
	if (!out->error && capacity(out) - filled(out) < need)
		grow(out, filled(out) + need);
	if (!out->error)
		return true;
	set_len(out, 0);
	return false;
}

char *out__make_room(struct out *out, size_t need)
{
	make_room(out, need);
	return out->room.at;
}

void out__long(struct out *out, const void *bytes, size_t n)
{
	if (!make_room(out, n))
		return;
	memcpy(out->room.at, bytes, n);
	out->room.at += n;
}

void out__also(struct out *out, uint32_t source)
{
	out->also = source;
}

void out__end(struct out *out, bool is_event, uint32_t source)
{
	struct item item = {
		.end = filled(out),
		.source = source,
		.also = out->also,
		.is_event = is_event,
	};

	out->also = NO_SOURCE;
	if (out->error) {
		count_unwritten(out, &item);
		set_len(out, 0);
		return;
	}
	out->open_at = filled(out);
	out->items[out->nr_items++] = item;
	if (out->nr_items == out->items_cap)
		write_items(out);
}

int out__flush(struct out *out)
{
	if (filled(out) > out->open_at)
		out__end(out, false, 0);
	if (!out->error && out->open_at)
		write_items(out);
	return out->error;
}

int out__error(const struct out *out)
{
	return out->error;
}

void out__unwritten(struct out *out, void (*fn)(void *ctx, uint32_t source, uint64_t events),
		    void *ctx)
{
	uint32_t i;

	for (i = 0; i < out->unwritten_len; i++) {
		uint64_t events = out->unwritten[i];

		out->unwritten[i] = 0;
		if (events)
			fn(ctx, i, events);
	}
	if (out->unwritten_rest)
		fn(ctx, UINT32_MAX, out->unwritten_rest);
	out->unwritten_rest = 0;
}

uint64_t out__written_bytes(const struct out *out)
{
	return out->written;
}
