/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * out.h - a buffered descriptor that knows which of its bytes are whole events.
 *
 * Owns the buffer, borrows the descriptor. When the peer is slow or gone or the disk is full, it can
 * say exactly how many events did not get out, so that the ledger closes.
 */
#ifndef WEIR_OUT_H
#define WEIR_OUT_H

#include "sinks/put.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct out;
struct style;

/* How a struct out begins: what appending needs, since a line is some dozens of it. */
struct out_cursor {
	char *at, *end; /* of the free room; at moves by out__used() */
	struct style *style;
};

static inline struct out_cursor *out__cursor(const struct out *out)
{
	return (struct out_cursor *)out;
}

/*
 * `stop` is polled before each write and whenever one is interrupted (EINTR): once it is non-zero,
 * writing goes on for at most stop_grace_ms, then what is left is given up; if it is
 * OUT_STOP_PATIENTLY, for as long as the peer takes something in five times that. May be NULL. A write
 * that blocks notices only when it is interrupted: a signal handler that sets `stop` has to see to
 * it that signals keep coming (a timer), as the one that sets it may arrive just before the write.
 *
 * The buffer is at least 16 KiB and grows to the largest item. NULL and errno on failure.
 */
#define OUT_STOP	   1
#define OUT_STOP_PATIENTLY 2
struct out *out__new(int fd, size_t buffer_bytes, const volatile int *stop, unsigned stop_grace_ms);
void out__free(struct out *out); /* does not flush, does not close fd */

/*
 * How its reader wants to see it: carried for the sinks, and not looked at. Borrowed; NULL, as it is
 * at first: plain.
 */
static inline void out__set_style(struct out *out, struct style *style)
{
	out__cursor(out)->style = style;
}

static inline struct style *out__style(const struct out *out)
{
	return out__cursor(out)->style;
}

/*
 * Append in place: room for `len` bytes, then how far it was used. Never NULL: after an error the
 * bytes go nowhere.
 */
#define OUT_ROOM_MAX 4096
char *out__make_room(struct out *out, size_t len); /* at most OUT_ROOM_MAX, after an error */

static inline char *out__room(struct out *out, size_t len)
{
	struct out_cursor *cursor = out__cursor(out);

	if ((size_t)(cursor->end - cursor->at) < len)
		return out__make_room(out, len);
	return cursor->at;
}

static inline void out__used(struct out *out, char *end)
{
	out__cursor(out)->at = end;
}

/* Append. Never fails by itself: a failed write is remembered, out__error() tells. */
void out__long(struct out *out, const void *bytes, size_t len); /* what has no room yet */

static inline void out__bytes(struct out *out, const void *bytes, size_t len)
{
	struct out_cursor *cursor = out__cursor(out);

	if ((size_t)(cursor->end - cursor->at) < len) {
		out__long(out, bytes, len);
		return;
	}
	memcpy(cursor->at, bytes, len);
	cursor->at += len;
}

/* Of a literal the compiler knows the length. */
static inline void out__str(struct out *out, const char *str)
{
	out__bytes(out, str, strlen(str));
}

static inline void out__char(struct out *out, char c)
{
	char *p = out__room(out, 1);

	*p = c;
	out__used(out, p + 1);
}

static inline void out__u64(struct out *out, uint64_t value)
{
	out__used(out, put_u64(out__room(out, PUT_U64_MAX), value));
}

static inline void out__i64(struct out *out, int64_t value)
{
	out__used(out, put_i64(out__room(out, PUT_I64_MAX), value));
}

/* 0x..., no leading zeros */
static inline void out__hex(struct out *out, uint64_t value)
{
	out__used(out, put_hex(out__room(out, PUT_HEX_MAX), value));
}

/*
 * An item ends here: it is written whole or counted as unwritten. is_event: it counts as an event;
 * source: whose (for the ledger).
 */
void out__end(struct out *out, bool is_event, uint32_t source);

/* The item that ends next stands for a second event, of this source. */
void out__also(struct out *out, uint32_t source);

/*
 * Write what is buffered; an item that has not ended, ends, and is no event. Returns 0, or the first
 * error that ever happened: a negative errno, -ECANCELED when a stop cut it short. Nothing is
 * written after an error.
 */
int out__flush(struct out *out);
int out__error(const struct out *out);

/* Events that did not reach the descriptor, per source, after an error or a stop; clears the list. */
void out__unwritten(struct out *out, void (*fn)(void *ctx, uint32_t source, uint64_t events),
		    void *ctx);

/* Bytes that stand in the descriptor: all of whole items, but for a torn one that can't be cut. */
uint64_t out__written_bytes(const struct out *out);

#endif /* WEIR_OUT_H */
