/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_layout.h - where the fields of a perf record stand, worked out once from how its event was
 * opened.
 *
 * A sample is read from its front: PERF_SAMPLE_IDENTIFIER was made to stand first, so that the event
 * can be told before its layout is known. Every other record has its own fields in front and, with
 * sample_id_all, a sample_id at its end, which is therefore counted from the end. All of these fields
 * are 8 bytes long.
 *
 * All events whose records meet in one ring must have been opened with the same layout.
 */
#ifndef WEIR_RING_PERF_LAYOUT_H
#define WEIR_RING_PERF_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes from the record's front (header included), or back from its end. 0: not in the record. */
struct perf_places {
	uint16_t identifier;
	uint16_t ip;
	uint16_t tid; /* u32 pid, u32 tid */
	uint16_t time;
	uint16_t addr;
	uint16_t id;
	uint16_t stream_id;
	uint16_t cpu; /* u32 cpu, u32 0 */
	uint16_t period;
};

#define PERF_PAYLOAD_UNSTAMPED UINT32_MAX

struct perf_layout {
	uint64_t sample_type;
	uint64_t read_format;
	struct perf_places sample; /* from the front of a sample */
	struct perf_places tail;   /* back from the end of any other record */
	uint16_t sample_min;	   /* no sample is shorter */
	uint16_t tail_bytes;	   /* of the sample_id; 0 without sample_id_all */
	uint16_t variable;	   /* where what has no fixed length begins: READ, CALLCHAIN, RAW */
	uint16_t
		raw; /* where the u32 length of the raw payload stands; 0: none, or not always there */
	uint32_t payload_stamp; /* offset of the u64 stamp in the raw payload, or UNSTAMPED */
	uint32_t payload_len;	/* declared; 0: not known */
};

/*
 * -EINVAL for a layout whose stamp can't be found: without PERF_SAMPLE_TIME, or with bits that are
 * newer than this code, which may stand anywhere. Without sample_id_all it is only samples that have
 * a stamp.
 */
int perf_layout__init(struct perf_layout *layout, uint64_t sample_type, bool sample_id_all,
		      uint64_t read_format);

/*
 * What is known of the raw payload, for one that a BPF program writes. stamp_offset: where its own
 * u64 stamp stands, which is then the sample's stamp, or PERF_PAYLOAD_UNSTAMPED for the kernel's; len:
 * its length, so that the padding can be told from it, or 0. -EINVAL where the payload can't be
 * found without looking at what stands in front of it, or the stamp isn't in it.
 */
int perf_layout__payload(struct perf_layout *layout, uint32_t stamp_offset, uint32_t len);

/* No whole record is shorter: a span of bytes holds at most bytes / this many. At least 8. */
static inline uint32_t perf_layout__min_record(const struct perf_layout *layout)
{
	uint32_t other = 8u + layout->tail_bytes;

	return layout->sample_min < other ? layout->sample_min : other;
}

#endif /* WEIR_RING_PERF_LAYOUT_H */
