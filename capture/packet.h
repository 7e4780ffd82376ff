/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * packet.h - the bytes of a capture's packet -> its head and its records.
 *
 * Pure: bytes in, one record at a time out; no system call, no allocation. Promises that nothing
 * outside the packet is looked at, whatever its bytes say (G8), and that every walk ends.
 */
#ifndef WEIR_CAPTURE_PACKET_H
#define WEIR_CAPTURE_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/layout.h"

/* Of which stream a packet has to be. */
struct packet_place {
	const uint8_t *uuid; /* NULL: any */
	enum capture_stream stream;
	uint64_t instance;
};

/* Can this be a head? Its lengths are in bounds then: head <= content <= packet <= the most there is. */
bool packet__is_head(const struct capture_packet *head, const struct packet_place *place);

static inline uint32_t packet__content(const struct capture_packet *head)
{
	return (uint32_t)(head->content_bits / 8);
}

static inline uint32_t packet__bytes(const struct capture_packet *head)
{
	return (uint32_t)(head->packet_bits / 8);
}

/* Is the content what was written? `packet` has all the bytes that a good head claims. */
bool packet__is_intact(const void *packet);

enum packet_step {
	PACKET_RECORD,
	PACKET_END,
	PACKET_BROKEN, /* what is left can't be told apart: walk->left says how many there should be */
};

struct packet_walk {
	const uint8_t *at, *end;
	uint64_t last_ns, end_ns;
	enum capture_stream stream;
	uint32_t left; /* records not walked over yet, by the head's count */
	uint32_t size; /* of the last record's payload, struct capture_late included */
};

/* Begin at the first record. The packet is aligned to 8 bytes, and its head a good one. */
struct packet_walk packet__walk(const void *packet);

/*
 * The next record. Its stamp is in the packet's time and not before the last one's, its payload,
 * walk->size bytes, behind it.
 */
enum packet_step packet__next(struct packet_walk *walk, const struct weir_record **record);

/* seq to 64 bits, by the packet's base. */
static inline uint64_t packet__widen(uint64_t base, uint32_t seq)
{
	return base + (uint64_t)(int64_t)(int32_t)(seq - (uint32_t)base);
}

#endif /* WEIR_CAPTURE_PACKET_H */
