/* SPDX-License-Identifier: BSD-2-Clause */
#include "measure/readers.h"

static int sample(void *ctx, void *data, size_t size)
{
	const struct synth_record *record = data;
	struct sink *sink = ctx;

	sink->sum += record->field[SYNTH_READ];
	sink->records++;
	return 0;
}

/* Every number is there once when none steps back and count and sum are right. */
void sink__check(struct sink *sink, const struct synth_record *record)
{
	uint64_t stamp_ns = record->rec.stamp;
	uint32_t source = (uint32_t)record->field[SYNTH_SOURCE], seq = record->rec.seq;
	bool behind;

	if (stamp_ns != sink->last_ns)
		behind = stamp_ns > sink->last_ns;
	else if (source != sink->last_source)
		behind = source > sink->last_source;
	else
		behind = seq > sink->last_seq;
	sink->steps_back += !behind;
	sink->last_ns = stamp_ns;
	sink->last_source = source;
	sink->last_seq = seq;
	sink->sum += record->field[SYNTH_READ];
	sink->records++;
}

static int sample_checked(void *ctx, void *data, size_t size)
{
	sink__check(ctx, data);
	return 0;
}

sample_fn sink__sample(bool checking)
{
	return checking ? sample_checked : sample;
}
