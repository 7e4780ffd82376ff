/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bpf_ringbuf.h - bytes of a BPF ring buffer -> records, oldest first.
 *
 * Pure: a base address, a position and a head go in, one step comes out. No system call, no clock,
 * no allocation. Promises that no byte outside [pos, head) is read, whatever the bytes say (G8), and
 * that every step but BUSY and END moves the position.
 *
 * Layout (kernel/bpf/ringbuf.c): positions count bytes and never wrap back; a record is an 8-byte
 * header { u32 len; u32 pg_off } and len bytes, the next one begins at a multiple of 8. The data
 * pages are mapped twice in succession, so a record never has to be put together from two pieces.
 */
#ifndef WEIR_RING_BPF_RINGBUF_H
#define WEIR_RING_BPF_RINGBUF_H

#include <weir/record.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BPF_RINGBUF_HDR	    8u
#define BPF_RINGBUF_ALIGN   8u
#define BPF_RINGBUF_BUSY    (1u << 31)
#define BPF_RINGBUF_DISCARD (1u << 30)

/* The least that a record of ours takes: its size bounds how many a span of bytes can hold. */
#define BPF_RINGBUF_MIN_RECORD (BPF_RINGBUF_HDR + sizeof(struct weir_record))

struct bpf_ringbuf {
	const uint8_t *data;
	uint64_t mask; /* size - 1 */
	uint64_t pos;  /* next byte to read */
	bool even;     /* records are mostly as long as the one before */
};

enum bpf_ringbuf_step {
	BPF_RINGBUF_RECORD,
	BPF_RINGBUF_DISCARDED, /* given back by its producer; its head is valid all the same */
	BPF_RINGBUF_IS_BUSY,   /* reserved and unfinished: nothing behind it may be read yet */
	BPF_RINGBUF_BROKEN, /* skipped: the record alone, or all up to head if its length is no use */
	BPF_RINGBUF_END,
};

static inline const void *bpf_ringbuf__at(const uint8_t *data, uint64_t mask, uint64_t pos)
{
	return data + (pos & mask);
}

/*
 * Take one step over records of any layout. `head` must be at most a ring away. *rec_pos: where the
 * record's header stands; *data, *bytes: what follows it.
 */
static inline enum bpf_ringbuf_step bpf_ringbuf__take(struct bpf_ringbuf *rb, uint64_t head,
						      uint64_t *rec_pos, const void **data,
						      uint32_t *bytes)
{
	uint64_t left = head - rb->pos;
	const uint8_t *at;
	uint32_t word;
	uint64_t stride;

	/* Also where the head is behind us; and what is shorter than a header is not one. */
	if (__builtin_expect((int64_t)left < (int64_t)BPF_RINGBUF_HDR, 0)) {
		if ((int64_t)left <= 0)
			return BPF_RINGBUF_END;
		*rec_pos = rb->pos;
		rb->pos = head;
		return BPF_RINGBUF_BROKEN;
	}
	at = bpf_ringbuf__at(rb->data, rb->mask, rb->pos);
	/*
	 * Pairs with the kernel's xchg() of the length in bpf_ringbuf_commit(): once BUSY is seen
	 * clear, the payload is complete. Without the acquire it could be read from before.
	 */
	word = __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE);
	if (word & BPF_RINGBUF_BUSY)
		return BPF_RINGBUF_IS_BUSY;
	*bytes = word & ~BPF_RINGBUF_DISCARD;
	stride = (BPF_RINGBUF_HDR + (uint64_t)*bytes + 7) & ~7ull;
	*rec_pos = rb->pos;
	if (__builtin_expect(stride > left || stride > rb->mask + 1, 0)) {
		rb->pos = head;
		return BPF_RINGBUF_BROKEN;
	}
	rb->pos += stride;
	*data = at + BPF_RINGBUF_HDR;
	return word & BPF_RINGBUF_DISCARD ? BPF_RINGBUF_DISCARDED : BPF_RINGBUF_RECORD;
}

/* The same over records of ours. *rec: the record's head; *len: bytes after struct weir_record. */
static inline enum bpf_ringbuf_step bpf_ringbuf__next(struct bpf_ringbuf *rb, uint64_t head,
						      uint64_t *rec_pos,
						      const struct weir_record **rec, uint32_t *len)
{
	const void *data;
	uint32_t bytes;
	enum bpf_ringbuf_step step = bpf_ringbuf__take(rb, head, rec_pos, &data, &bytes);

	if (step != BPF_RINGBUF_RECORD && step != BPF_RINGBUF_DISCARDED)
		return step;
	if (__builtin_expect(bytes < sizeof(struct weir_record), 0))
		return BPF_RINGBUF_BROKEN;
	*rec = (const struct weir_record *)data;
	*len = bytes - (uint32_t)sizeof(struct weir_record);
	return step;
}

/* A run of records that nothing is special about. */
struct bpf_ringbuf_run {
	const uint8_t *at;
	uint64_t left;	/* bytes from `at` to the end of the run */
	uint64_t guess; /* the length of the last record, with its header and padding */
	uint64_t odd;	/* records that were not as long as the one before */
	uint32_t ahead; /* so many bytes on is what is fetched before it is asked for */
	bool trust;	/* the guess that the next one is as long */
};

/* A long run comes from memory; what is fetched behind the end of a short one costs more than it helps. */
#define BPF_RINGBUF_LONG       (16u << 10)
#define BPF_RINGBUF_AHEAD      512u
#define BPF_RINGBUF_AHEAD_LONG 2048u

static inline struct bpf_ringbuf_run bpf_ringbuf__run(const struct bpf_ringbuf *rb, uint64_t head)
{
	int64_t left = (int64_t)(head - rb->pos);
	uint64_t first = rb->mask + 1 - (rb->pos & rb->mask);

	/* Lengths are loaded where they were stored, not in the second mapping: one word, one address. */
	if (left > (int64_t)first)
		left = (int64_t)first;
	/* Shorter than the flags in a length are, so that one comparison is enough below. */
	if (left > (int64_t)BPF_RINGBUF_DISCARD)
		left = BPF_RINGBUF_DISCARD;
	return (struct bpf_ringbuf_run){
		.at = bpf_ringbuf__at(rb->data, rb->mask, rb->pos),
		.left = left > 0 ? (uint64_t)left : 0,
		.ahead = left > (int64_t)BPF_RINGBUF_LONG ? BPF_RINGBUF_AHEAD_LONG
							  : BPF_RINGBUF_AHEAD,
		.trust = rb->even,
	};
}

/* The head of the next record, if it is finished, whole and not given back; else NULL. */
static inline const struct weir_record *bpf_ringbuf_run__peek(const struct bpf_ringbuf_run *run)
{
	uint32_t bytes;

	if (run->left < BPF_RINGBUF_MIN_RECORD)
		return NULL;
	__builtin_prefetch(run->at + run->ahead);
	/* Pairs as in bpf_ringbuf__next(). BUSY, DISCARD, too short, too long: all are too much. */
	bytes = __atomic_load_n((const uint32_t *)run->at, __ATOMIC_ACQUIRE);
	if (bytes - (uint32_t)sizeof(struct weir_record) > run->left - BPF_RINGBUF_MIN_RECORD)
		return NULL;
	return (const struct weir_record *)(run->at + BPF_RINGBUF_HDR);
}

/*
 * Go past the record that was peeked at. Where the next one stands depends on this one's length, so
 * that each load waits for the one before it. Where lengths are even, to guess is better: a branch is
 * the processor's to predict, and lets it run ahead. The empty asm keeps the compiler from making
 * the assignment out of it that it is.
 */
static inline void bpf_ringbuf_run__pass(struct bpf_ringbuf_run *run)
{
	uint64_t stride = (*(const uint32_t *)run->at + BPF_RINGBUF_HDR + 7) & ~7ull;

	if (!run->trust) {
		run->odd += stride != run->guess;
		run->guess = stride;
		__builtin_prefetch(run->at + run->ahead + 64);
	} else if (__builtin_expect(stride != run->guess, 0)) {
		run->odd++;
		run->guess = stride;
		__asm__ volatile("" : "+r"(run->guess));
	}
	run->at += run->guess;
	run->left -= run->guess;
}

/* The run ends where it is, after `count` records; the next one goes by what it was like. */
static inline void bpf_ringbuf_run__end(const struct bpf_ringbuf_run *run, uint64_t count,
					struct bpf_ringbuf *rb)
{
	/* A wrong guess costs about three times what a right one saves. The first is always odd. */
	if (count > 1)
		rb->even = run->odd - 1 <= count / 4;
}

/* The payload length of a record that has passed bpf_ringbuf__next() before. */
static inline uint32_t bpf_ringbuf__payload(const void *at)
{
	return (*(const uint32_t *)at & ~(BPF_RINGBUF_BUSY | BPF_RINGBUF_DISCARD)) -
	       (uint32_t)sizeof(struct weir_record);
}

#endif /* WEIR_RING_BPF_RINGBUF_H */
