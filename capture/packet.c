/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/packet.h"

#include "capture/classes.h"
#include "capture/crc.h"

#include <errno.h>
#include <string.h>

#define HEAD	  sizeof(struct capture_packet)
#define ALIGN8(n) (((n) + 7) & ~(uint64_t)7)

bool packet__is_head(const struct capture_packet *head, const struct packet_place *place)
{
	uint64_t content = head->content_bits / 8;

	if (head->magic != CAPTURE_MAGIC || head->stream != place->stream ||
	    head->instance != place->instance)
		return false;
	if (place->uuid && memcmp(head->uuid, place->uuid, sizeof(head->uuid)) != 0)
		return false;
	if (head->content_bits % 8 || content < HEAD || content > CAPTURE_PACKET_BYTES ||
	    head->packet_bits != ALIGN8(content) * 8)
		return false;
	return head->begin_ns <= head->end_ns && head->end_ns <= INT64_MAX &&
	       head->records <= (content - HEAD) / sizeof(struct weir_record);
}

bool packet__is_intact(const void *packet)
{
	const struct capture_packet *head = packet;
	const size_t before = offsetof(struct capture_packet, checksum);
	const uint32_t zero = 0;
	uint32_t crc;

	_Static_assert(offsetof(struct capture_packet, checksum) + 4 == HEAD, "the head's last");
	crc = crc__32c(0, packet, before);
	crc = crc__32c(crc, &zero, sizeof(zero));
	crc = crc__32c(crc, (const uint8_t *)packet + HEAD, packet__content(head) - HEAD);
	return crc == head->checksum;
}

struct packet_walk packet__walk(const void *packet)
{
	const struct capture_packet *head = packet;
	const uint8_t *bytes = packet;

	return (struct packet_walk){
		.at = bytes + HEAD,
		.end = bytes + packet__content(head),
		.last_ns = head->begin_ns,
		.end_ns = head->end_ns,
		.stream = (enum capture_stream)head->stream,
		.left = head->records,
	};
}

/* The payloads that most records have, without what may follow; 0: a type that is asked about. */
static const uint8_t plain[32] = {
	[WEIR_T_FORK] = sizeof(struct weir_fork),
	[WEIR_T_EXIT] = sizeof(struct weir_exit),
	[WEIR_T_SYS_ENTER] = sizeof(struct weir_sys_enter),
	[WEIR_T_SYS_EXIT] = sizeof(struct weir_sys_exit),
	[WEIR_T_SWITCH] = sizeof(struct weir_switch),
	[WEIR_T_WAKEUP] = sizeof(struct weir_wakeup),
	[WEIR_T_MIGRATE] = sizeof(struct weir_migrate),
	[WEIR_T_SIGNAL_GENERATE] = sizeof(struct weir_signal),
	[WEIR_T_SIGNAL_DELIVER] = sizeof(struct weir_signal),
};

_Static_assert(offsetof(struct weir_sys_enter, blobs) == offsetof(struct weir_sys_exit, blobs),
	       "one look tells whether strings follow");

static bool has_blobs(const struct weir_record *rec)
{
	return (rec->type == WEIR_T_SYS_ENTER || rec->type == WEIR_T_SYS_EXIT) &&
	       ((const struct weir_sys_exit *)(const void *)(rec + 1))->blobs;
}

/* -EBADMSG where the class's own description would say so, too. */
static int64_t size_of(const struct weir_record *rec, size_t room, enum capture_stream stream)
{
	size_t size = rec->type < sizeof(plain) ? plain[rec->type] : 0;

	if (__builtin_expect(size && size <= room && stream == CAPTURE_CPU && !has_blobs(rec), 1))
		return (int64_t)size;
	if (!capture_class__in_stream(rec->type, stream))
		return -EBADMSG;
	return capture_class__size(rec->type, rec + 1, room);
}

enum packet_step packet__next(struct packet_walk *walk, const struct weir_record **record)
{
	size_t room = (size_t)(walk->end - walk->at);
	const struct weir_record *rec = (const struct weir_record *)walk->at;
	int64_t size;

	if (!walk->left)
		return room ? PACKET_BROKEN : PACKET_END;
	if (room < sizeof(*rec))
		return PACKET_BROKEN;
	if (rec->stamp < walk->last_ns || rec->stamp > walk->end_ns)
		return PACKET_BROKEN;
	size = size_of(rec, room - sizeof(*rec), walk->stream);
	if (size < 0)
		return PACKET_BROKEN;
	walk->last_ns = rec->stamp;
	walk->size = (uint32_t)size;
	walk->left--;
	size = (int64_t)ALIGN8(sizeof(*rec) + (uint64_t)size);
	walk->at = (size_t)size < room ? walk->at + size : walk->end;
	*record = rec;
	return PACKET_RECORD;
}
