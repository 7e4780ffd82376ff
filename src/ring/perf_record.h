/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_record.h - one record of a perf ring: its header and stamp, its fields, the loss it tells of.
 *
 * Layout (kernel/events/ring_buffer.c): positions count bytes; a record is a header { u32 type; u16
 * misc; u16 size } and its body, and `size`, which includes the header, is a multiple of 8. So a
 * header or an aligned u64 never goes round the ring's end, a body may. `size` is 16 bits wide and
 * wrong for a record of 64 KiB or more: what it then points to is read as any other bytes (G8).
 */
#ifndef WEIR_RING_PERF_RECORD_H
#define WEIR_RING_PERF_RECORD_H

#include "ring/perf_layout.h"

#include <stdbool.h>
#include <stdint.h>

#include <weir/perf.h>

#include <linux/perf_event.h>

#define PERF_RECORD_HDR	     8u
#define PERF_RECORD_SIZE_MAX 65528u /* the largest u16 that is a multiple of 8 */

struct perf_record {
	uint64_t pos;	   /* of its header */
	uint64_t stamp_ns; /* see perf_record__stamp(); 0 without one */
	uint32_t type;	   /* PERF_RECORD_* */
	uint16_t misc;
	uint16_t size; /* header included */
	bool has_stamp;
};

enum perf_next {
	PERF_NEXT_RECORD,
	PERF_NEXT_BROKEN, /* skipped, see the reader */
	PERF_NEXT_END,
};

static inline const void *perf_ring__at(const uint8_t *base, uint64_t mask, uint64_t pos)
{
	return base + (pos & mask);
}

/*
 * The stamp of any record, of which `left` bytes from its header on may be read, its own `size` among
 * them. -EINVAL: it is too short for what its type says, or no type of the kernel's (0, and from 64
 * on, which are perf's own in files). Else *has_stamp: false where the layout gives none.
 *
 * What a LOST counts was lost before the sample with which it is reserved and written. Newer kernels give
 * both the same stamp; older ones stamp LOST later, so that it would come out behind that sample. So it
 * gets the earlier of the two. The sample always follows in memory, room for both being reserved at once.
 */
int perf_record__stamp(const struct perf_layout *layout, const uint8_t *base, uint64_t mask,
		       uint64_t pos, uint64_t left, bool *has_stamp, uint64_t *stamp_ns);

/*
 * Take a whole sample apart; `record` is contiguous, aligned to 8, and `len` bytes can be read. -EINVAL
 * when it is no sample, or a length in it leads out of it.
 */
int perf_record__parse(const struct perf_layout *layout, const void *record, uint32_t len,
		       struct weir_perf_sample *out);

/* What a record says of events that are not in the ring. */
struct perf_loss {
	uint32_t type; /* PERF_RECORD_LOST, LOST_SAMPLES, THROTTLE or UNTHROTTLE */
	bool counted;  /* false for THROTTLE, from which on an unknown number is missing */
	bool has_stamp;
	uint64_t lost;
	uint64_t stamp_ns; /* the record's own */
	uint64_t id;	   /* of the event; 0: not told */
	uint64_t stream_id;
};

/*
 * 1: the record tells of a loss, or of the end of one (UNTHROTTLE); 0: it is another; -EINVAL: too
 * short for what it is.
 *
 * LOST: that many records found no room; the kernel writes it together with the *next* record that
 * does, so that loss at the end shows only in read(2) with PERF_FORMAT_LOST (6.0 and later), which
 * goes on counting whether or not LOST was written. LOST_SAMPLES: samples that the hardware or a
 * filter dropped. THROTTLE: the event stopped, until UNTHROTTLE; both carry their own time.
 */
int perf_record__lost(const struct perf_layout *layout, const void *record, uint32_t len,
		      struct perf_loss *out);

#endif /* WEIR_RING_PERF_RECORD_H */
