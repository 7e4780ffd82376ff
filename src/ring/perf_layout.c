// SPDX-License-Identifier: BSD-2-Clause
/*
 * perf_layout.c - from an event's attributes to the places of the fields in its records.
 *
 * Owns the order of the fields, as perf_output_sample() and __perf_event__output_id_sample() of
 * kernel/events/core.c write them. Promises that a place which is not 0 lies inside each record that
 * is at least as long as the layout's minimum. Must not know any record.
 */
#include "ring/perf_layout.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <linux/perf_event.h>

#define HEADER	      sizeof(struct perf_event_header)
#define SAMPLE_KNOWN  ((1ull << 25) - 1) /* up to PERF_SAMPLE_WEIGHT_STRUCT */
#define FORMAT_KNOWN  ((1ull << 5) - 1)	 /* up to PERF_FORMAT_LOST */
#define PLACE(member) offsetof(struct perf_places, member)

struct field {
	uint64_t bit;
	size_t place;
};

static const struct field sample_fields[] = {
	{PERF_SAMPLE_IDENTIFIER, PLACE(identifier)},
	{PERF_SAMPLE_IP, PLACE(ip)},
	{PERF_SAMPLE_TID, PLACE(tid)},
	{PERF_SAMPLE_TIME, PLACE(time)},
	{PERF_SAMPLE_ADDR, PLACE(addr)},
	{PERF_SAMPLE_ID, PLACE(id)},
	{PERF_SAMPLE_STREAM_ID, PLACE(stream_id)},
	{PERF_SAMPLE_CPU, PLACE(cpu)},
	{PERF_SAMPLE_PERIOD, PLACE(period)},
};

/* From the last to the first, as they are counted from the end. */
static const struct field tail_fields[] = {
	{PERF_SAMPLE_IDENTIFIER, PLACE(identifier)},
	{PERF_SAMPLE_CPU, PLACE(cpu)},
	{PERF_SAMPLE_STREAM_ID, PLACE(stream_id)},
	{PERF_SAMPLE_ID, PLACE(id)},
	{PERF_SAMPLE_TIME, PLACE(time)},
	{PERF_SAMPLE_TID, PLACE(tid)},
};

static void put(struct perf_places *places, size_t place, uint16_t bytes)
{
	memcpy((char *)places + place, &bytes, sizeof(bytes));
}

static uint16_t lay_sample(struct perf_places *places, uint64_t sample_type)
{
	uint16_t at = HEADER;
	size_t i;

	for (i = 0; i < sizeof(sample_fields) / sizeof(sample_fields[0]); i++) {
		if (!(sample_type & sample_fields[i].bit))
			continue;
		put(places, sample_fields[i].place, at);
		at += 8;
	}
	return at;
}

static uint16_t lay_tail(struct perf_places *places, uint64_t sample_type)
{
	uint16_t back = 0;
	size_t i;

	for (i = 0; i < sizeof(tail_fields) / sizeof(tail_fields[0]); i++) {
		if (!(sample_type & tail_fields[i].bit))
			continue;
		back += 8;
		put(places, tail_fields[i].place, back);
	}
	return back;
}

/* The least that READ takes; all of it, unless it is a group's. */
static uint16_t read_bytes(uint64_t format)
{
	uint16_t words = 1;

	words += !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED);
	words += !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);
	if (format & PERF_FORMAT_GROUP)
		return words * 8;
	words += !!(format & PERF_FORMAT_ID);
	words += !!(format & PERF_FORMAT_LOST);
	return words * 8;
}

int perf_layout__init(struct perf_layout *layout, uint64_t sample_type, bool sample_id_all,
		      uint64_t read_format)
{
	uint16_t at;

	if (!(sample_type & PERF_SAMPLE_TIME) || sample_type & ~SAMPLE_KNOWN)
		return -EINVAL;
	if (sample_type & PERF_SAMPLE_READ && read_format & ~FORMAT_KNOWN)
		return -EINVAL;
	memset(layout, 0, sizeof(*layout));
	layout->sample_type = sample_type;
	layout->read_format = read_format;
	layout->payload_stamp = PERF_PAYLOAD_UNSTAMPED;
	at = lay_sample(&layout->sample, sample_type);
	layout->variable = at;
	if (sample_type & PERF_SAMPLE_READ)
		at += read_bytes(read_format);
	if (sample_type & PERF_SAMPLE_CALLCHAIN)
		at += 8;
	if (sample_type & PERF_SAMPLE_RAW) {
		if (!(sample_type & PERF_SAMPLE_CALLCHAIN) &&
		    !(sample_type & PERF_SAMPLE_READ && read_format & PERF_FORMAT_GROUP))
			layout->raw = at;
		at += 8; /* length and payload together are filled up to 8 */
	}
	layout->sample_min = at;
	if (sample_id_all)
		layout->tail_bytes = lay_tail(&layout->tail, sample_type);
	return 0;
}

int perf_layout__payload(struct perf_layout *layout, uint32_t stamp_offset, uint32_t len)
{
	const uint32_t most = UINT16_MAX; /* no record is longer */

	if (!layout->raw || len > most)
		return -EINVAL;
	if (stamp_offset != PERF_PAYLOAD_UNSTAMPED &&
	    (stamp_offset > most || (len && stamp_offset + 8 > len)))
		return -EINVAL;
	layout->payload_stamp = stamp_offset;
	layout->payload_len = len;
	return 0;
}
