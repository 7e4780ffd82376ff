// SPDX-License-Identifier: BSD-2-Clause
/*
 * perf_record.c - a perf record's stamp, a sample's fields, and what a record says of losses.
 *
 * Owns nothing. Promises that only bytes of the record (for the stamp of a LOST, of the one behind it
 * too) are read, whatever they say (G8). Must not know where a record came from, nor what the clock
 * says.
 */
#include "ring/perf_record.h"

#include <errno.h>
#include <string.h>

#define TYPES_END \
	64 /* PERF_RECORD_USER_TYPE_START: from here on types are perf's, not the kernel's */

struct lost_body {
	uint64_t id;
	uint64_t lost;
};

struct throttle_body {
	uint64_t time_ns;
	uint64_t id;
	uint64_t stream_id;
};

/* Bytes of a record's own, before its sample_id; those that we don't read count as none. */
static uint32_t body_bytes(uint32_t type)
{
	switch (type) {
	case PERF_RECORD_LOST:
		return sizeof(struct lost_body);
	case PERF_RECORD_LOST_SAMPLES:
		return sizeof(uint64_t);
	case PERF_RECORD_THROTTLE:
	case PERF_RECORD_UNTHROTTLE:
		return sizeof(struct throttle_body);
	default:
		return 0;
	}
}

static bool is_throttle(uint32_t type)
{
	return type == PERF_RECORD_THROTTLE || type == PERF_RECORD_UNTHROTTLE;
}

/* Is the record as long as its type and layout ask? */
static bool is_whole(const struct perf_layout *l, const struct perf_event_header *header)
{
	if (header->type == PERF_RECORD_SAMPLE)
		return header->size >= l->sample_min;
	if (header->type == 0 || header->type >= TYPES_END)
		return false;
	return header->size >= PERF_RECORD_HDR + body_bytes(header->type) + l->tail_bytes;
}

static uint64_t load_u64(const uint8_t *base, uint64_t mask, uint64_t pos)
{
	uint64_t first = mask + 1 - (pos & mask);
	uint64_t value;

	if (first >= sizeof(value)) {
		memcpy(&value, base + (pos & mask), sizeof(value));
		return value;
	}
	memcpy(&value, base + (pos & mask), first);
	memcpy((uint8_t *)&value + first, base, sizeof(value) - first);
	return value;
}

static uint32_t load_u32(const void *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* The stamp that the payload carries: at any byte, so that it may go round the ring's end. */
static int payload_stamp(const struct perf_layout *l, const uint8_t *base, uint64_t mask,
			 uint64_t pos, uint32_t size, uint64_t *stamp_ns)
{
	uint32_t bytes = load_u32(perf_ring__at(base, mask, pos + l->raw));
	uint32_t room = size - l->raw - (uint32_t)sizeof(bytes);

	if (bytes > room || bytes < sizeof(*stamp_ns) ||
	    l->payload_stamp > bytes - sizeof(*stamp_ns))
		return -EINVAL;
	*stamp_ns = load_u64(base, mask, pos + l->raw + sizeof(bytes) + l->payload_stamp);
	return 0;
}

static bool is_sound(const struct perf_layout *l, const struct perf_event_header *header,
		     uint64_t mask, uint64_t left)
{
	return header->size <= left && header->size <= mask + 1 && is_whole(l, header);
}

/* As the kernel stamped a sound record; false: it has none. */
static bool kernel_stamp(const struct perf_layout *l, const uint8_t *base, uint64_t mask,
			 uint64_t pos, uint64_t *stamp_ns)
{
	const struct perf_event_header *header = perf_ring__at(base, mask, pos);

	*stamp_ns = 0;
	if (header->type == PERF_RECORD_SAMPLE)
		*stamp_ns = load_u64(base, mask, pos + l->sample.time);
	else if (is_throttle(header->type))
		*stamp_ns = load_u64(base, mask, pos + PERF_RECORD_HDR);
	else if (l->tail_bytes)
		*stamp_ns = load_u64(base, mask, pos + header->size - l->tail.time);
	else
		return false;
	return true;
}

/* What is written together with LOST: the bound of what it counts (see perf_record__stamp()). */
static bool bound_by_next(const struct perf_layout *l, const uint8_t *base, uint64_t mask,
			  uint64_t pos, uint64_t left, bool has_stamp, uint64_t *stamp_ns)
{
	const struct perf_event_header *next = perf_ring__at(base, mask, pos);
	uint64_t next_ns;

	if (left < PERF_RECORD_HDR || !is_sound(l, next, mask, left) ||
	    !kernel_stamp(l, base, mask, pos, &next_ns))
		return has_stamp;
	if (!has_stamp || next_ns < *stamp_ns)
		*stamp_ns = next_ns;
	return true;
}

int perf_record__stamp(const struct perf_layout *l, const uint8_t *base, uint64_t mask,
		       uint64_t pos, uint64_t left, bool *has_stamp, uint64_t *stamp_ns)
{
	const struct perf_event_header *header = perf_ring__at(base, mask, pos);
	uint32_t type = header->type, size = header->size;

	*has_stamp = false;
	*stamp_ns = 0;
	if (!is_sound(l, header, mask, left))
		return -EINVAL;
	if (type == PERF_RECORD_SAMPLE && l->payload_stamp != PERF_PAYLOAD_UNSTAMPED) {
		*has_stamp = true;
		return payload_stamp(l, base, mask, pos, size, stamp_ns);
	}
	*has_stamp = kernel_stamp(l, base, mask, pos, stamp_ns);
	if (type == PERF_RECORD_LOST)
		*has_stamp = bound_by_next(l, base, mask, pos + size, left - size, *has_stamp,
					   stamp_ns);
	return 0;
}

/* The rest of a record that is being taken apart. */
struct rest {
	const uint8_t *at;
	uint32_t left;
};

static const void *take(struct rest *rest, uint64_t bytes)
{
	const void *at = rest->at;

	if (bytes > rest->left)
		return NULL;
	rest->at += bytes;
	rest->left -= (uint32_t)bytes;
	return at;
}

static int pass_read(struct rest *rest, uint64_t format)
{
	uint64_t times = !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
			 !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);
	uint64_t each = 1 + !!(format & PERF_FORMAT_ID) + !!(format & PERF_FORMAT_LOST);
	const uint64_t *nr;

	if (!(format & PERF_FORMAT_GROUP))
		return take(rest, (times + each) * 8) ? 0 : -EINVAL;
	nr = take(rest, 8);
	if (!nr || *nr > rest->left / 8 || !take(rest, (times + *nr * each) * 8))
		return -EINVAL;
	return 0;
}

static int take_callchain(struct rest *rest, struct weir_perf_sample *out)
{
	const uint64_t *nr = take(rest, 8);

	if (!nr || *nr > rest->left / 8)
		return -EINVAL;
	out->callchain = take(rest, *nr * 8);
	out->callchain_len = (uint32_t)*nr;
	return 0;
}

/* A declared length tells payload and padding apart; of another length it is not what was declared. */
static int take_raw(struct rest *rest, uint32_t declared, struct weir_perf_sample *out)
{
	const void *bytes = take(rest, 4);

	if (!bytes)
		return -EINVAL;
	out->raw_len = load_u32(bytes);
	out->raw = take(rest, out->raw_len);
	if (!out->raw)
		return -EINVAL;
	if (declared && (out->raw_len < declared || out->raw_len - declared > 7))
		return -EINVAL;
	if (declared)
		out->raw_len = declared;
	return 0;
}

static uint64_t field_u64(const uint8_t *record, uint16_t place)
{
	uint64_t value = 0;

	if (place)
		memcpy(&value, record + place, sizeof(value));
	return value;
}

static uint32_t field_u32(const uint8_t *record, uint16_t place)
{
	return place ? load_u32(record + place) : 0;
}

static void take_fixed(const struct perf_layout *l, const uint8_t *record,
		       struct weir_perf_sample *out)
{
	const struct perf_places *at = &l->sample;

	out->fields = l->sample_type;
	out->ip = field_u64(record, at->ip);
	out->pid = field_u32(record, at->tid);
	out->tid = field_u32(record, at->tid ? at->tid + 4 : 0);
	out->time_ns = field_u64(record, at->time);
	out->addr = field_u64(record, at->addr);
	out->id = field_u64(record, at->identifier ? at->identifier : at->id);
	out->stream_id = field_u64(record, at->stream_id);
	out->cpu = field_u32(record, at->cpu);
	out->period = field_u64(record, at->period);
}

int perf_record__parse(const struct perf_layout *l, const void *record, uint32_t len,
		       struct weir_perf_sample *out)
{
	const struct perf_event_header *header = record;
	struct rest rest;
	int r = 0;

	memset(out, 0, sizeof(*out));
	if (len < PERF_RECORD_HDR || header->size > len || header->type != PERF_RECORD_SAMPLE ||
	    !is_whole(l, header))
		return -EINVAL;
	take_fixed(l, record, out);
	rest.at = (const uint8_t *)record + l->variable;
	rest.left = (uint32_t)header->size - l->variable;
	if (l->sample_type & PERF_SAMPLE_READ)
		r = pass_read(&rest, l->read_format);
	if (!r && l->sample_type & PERF_SAMPLE_CALLCHAIN)
		r = take_callchain(&rest, out);
	if (!r && l->sample_type & PERF_SAMPLE_RAW)
		r = take_raw(&rest, l->payload_len, out);
	return r;
}

static void take_tail(const struct perf_layout *l, const uint8_t *record, uint32_t size,
		      struct perf_loss *out)
{
	const struct perf_places *back = &l->tail;
	uint16_t id = back->identifier ? back->identifier : back->id;

	out->has_stamp = l->tail_bytes;
	if (back->time)
		out->stamp_ns = field_u64(record, size - back->time);
	if (id)
		out->id = field_u64(record, size - id);
	if (back->stream_id)
		out->stream_id = field_u64(record, size - back->stream_id);
}

int perf_record__lost(const struct perf_layout *l, const void *record, uint32_t len,
		      struct perf_loss *out)
{
	const struct perf_event_header *header = record;
	const uint8_t *body = (const uint8_t *)record + PERF_RECORD_HDR;

	memset(out, 0, sizeof(*out));
	if (len < PERF_RECORD_HDR || header->size > len)
		return -EINVAL;
	if (!body_bytes(header->type))
		return 0;
	if (!is_whole(l, header))
		return -EINVAL;
	out->type = header->type;
	take_tail(l, record, header->size, out);
	if (is_throttle(header->type)) {
		struct throttle_body throttle;

		memcpy(&throttle, body, sizeof(throttle));
		out->has_stamp = true;
		out->stamp_ns = throttle.time_ns;
		out->id = throttle.id;
		out->stream_id = throttle.stream_id;
	} else if (header->type == PERF_RECORD_LOST) {
		struct lost_body lost;

		memcpy(&lost, body, sizeof(lost));
		out->counted = true;
		out->id = lost.id;
		out->lost = lost.lost;
	} else {
		out->counted = true;
		memcpy(&out->lost, body, sizeof(out->lost));
	}
	return 1;
}
