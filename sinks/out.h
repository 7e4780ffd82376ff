/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * out.h - a buffered descriptor that knows which of its bytes are whole events.
 *
 * Owns the buffer, borrows the descriptor. When the peer is slow or gone or the disk is full, it can
 * say exactly how many events did not get out, so that the ledger closes.
 */
#ifndef WEIR_OUT_H
#define WEIR_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct out;

/*
 * `stop` is polled before each write and whenever one is interrupted (EINTR): once it is non-zero,
 * writing goes on for at most stop_grace_ms, then what is left is given up. May be NULL. A write
 * that blocks notices only when it is interrupted: a signal handler that sets `stop` has to see to
 * it that signals keep coming (a timer), as the one that sets it may arrive just before the write.
 *
 * The buffer is at least 16 KiB and grows to the largest item. NULL and errno on failure.
 */
struct out *out__new(int fd, size_t buffer_bytes, const volatile int *stop, unsigned stop_grace_ms);
void out__free(struct out *out); /* does not flush, does not close fd */

/*
 * How its reader wants to see it: carried for the sinks, and not looked at. Borrowed; NULL, as it is
 * at first: plain.
 */
struct style;
void out__set_style(struct out *out, struct style *style);
struct style *out__style(const struct out *out);

/* Append. Never fails by itself: a failed write is remembered, out__error() tells. */
void out__bytes(struct out *out, const void *bytes, size_t len);
void out__str(struct out *out, const char *str);
void out__char(struct out *out, char c);
void out__u64(struct out *out, uint64_t value);
void out__i64(struct out *out, int64_t value);
void out__hex(struct out *out, uint64_t value); /* 0x..., no leading zeros */

/*
 * Append in place: room for `len` bytes, at most OUT_ROOM_MAX, then how far it was used. Never NULL:
 * after an error the bytes go nowhere.
 */
#define OUT_ROOM_MAX 4096
char *out__room(struct out *out, size_t len);
void out__used(struct out *out, const char *end);

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
