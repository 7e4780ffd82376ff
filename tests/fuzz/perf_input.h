/* SPDX-License-Identifier: BSD-2-Clause */
/* perf_input.h - any layout that perf_layout__init() takes, and what holds for each record of it. */
#ifndef FUZZ_PERF_INPUT_H
#define FUZZ_PERF_INPUT_H

#include "fuzz.h"
#include "ring/perf_record.h"

/* 12 bytes of the input; false: a layout that is refused. */
static inline bool input__layout(struct input *in, struct perf_layout *layout)
{
	struct {
		uint32_t sample_type;
		uint16_t read_format;
		uint16_t payload_stamp, payload_len;
		uint8_t sample_id_all, payload;
	} how;
	uint32_t stamp_offset;

	input__take(in, &how, sizeof(how));
	if (perf_layout__init(layout, how.sample_type | PERF_SAMPLE_TIME, how.sample_id_all & 1,
			      how.read_format))
		return false;
	stamp_offset = how.payload & 1 ? how.payload_stamp : PERF_PAYLOAD_UNSTAMPED;
	return !(how.payload & 2) || !perf_layout__payload(layout, stamp_offset, how.payload_len);
}

static inline bool lies_in(const void *part, uint64_t len, const void *whole, uint32_t size)
{
	const uint8_t *from = whole;

	return (const uint8_t *)part >= from && len <= size &&
	       (const uint8_t *)part + len <= from + size;
}

/* All that can be done with a record, whole and contiguous. */
static inline void check_record(const struct perf_layout *layout, const void *record, uint32_t len)
{
	struct weir_perf_sample sample;
	struct perf_loss loss;
	int lost;

	if (!perf_record__parse(layout, record, len, &sample)) {
		HOLDS(sample.fields == layout->sample_type);
		HOLDS(!sample.raw || lies_in(sample.raw, sample.raw_len, record, len));
		HOLDS(!sample.callchain ||
		      lies_in(sample.callchain, sample.callchain_len * 8ull, record, len));
	}
	lost = perf_record__lost(layout, record, len, &loss);
	HOLDS(lost != 1 || loss.type != PERF_RECORD_SAMPLE);
	HOLDS(lost == 1 || !loss.lost);
}

#endif /* FUZZ_PERF_INPUT_H */
