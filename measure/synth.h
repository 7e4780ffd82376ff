/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * synth.h - rings in plain memory, filled with made-up records, for readers to be measured on.
 *
 * The bytes are those of BPF ring buffers whose records were written through weir.bpf.h, mapped
 * twice in succession as the kernel does. An epoch is what one poll finds; the same epoch can be
 * written again and again, so that each reader starts from the same bytes in the same state of the
 * caches: just written, in the order of time.
 */
#ifndef WEIR_MEASURE_SYNTH_H
#define WEIR_MEASURE_SYNTH_H

#include <weir/record.h>

#include <stddef.h>
#include <stdint.h>

#define SYNTH_FIELDS 8 /* 88 bytes in the ring, with its 8-byte header */
#define SYNTH_MORE   8 /* and so many more, where lengths are mixed: 88 to 152 bytes */

struct synth_record {
	struct weir_record rec;
	uint64_t field[SYNTH_FIELDS + SYNTH_MORE]; /* as many as its length says */
};

#define SYNTH_READ   3 /* the field that the callbacks read */
#define SYNTH_COUNT  6 /* says how many fields there are, for checks */
#define SYNTH_SOURCE 7 /* says which ring it is in, for checks */
#define SYNTH_STRIDE (8 + sizeof(struct weir_record) + SYNTH_FIELDS * 8)

struct shape {
	unsigned rings;
	unsigned burst;	  /* so many records in succession come from one ring, the next from any */
	unsigned records; /* an epoch */
	unsigned step_ns; /* mean distance between two records */
	unsigned mixed;	  /* lengths are drawn, too */
};

struct synth_ring {
	uint8_t *data; /* 2 * size */
	uint64_t *producer, *consumer;
	uint64_t begin, first_seq; /* of the epoch */
	struct weir_counters *counters;
};

struct synth {
	struct shape shape;
	size_t size; /* of each ring */
	struct synth_ring *ring;
	uint64_t epoch;
	uint64_t begin_ns, end_ns; /* stamps of the epoch */
	uint64_t sum;		   /* of the field that is read, over the epoch */
	uint8_t *pages;		   /* two for each ring: producer, consumer */
	struct weir_counters *counters;
};

/* Exits with a message when there is no memory. */
void synth__make(struct synth *synth, const struct shape *shape);
void synth__free(struct synth *synth);

/* Write the epoch (again): positions and counters are then as its producers leave them. */
void synth__fill(struct synth *synth);
/* Go on to the next epoch, behind this one. */
void synth__advance(struct synth *synth);

#endif /* WEIR_MEASURE_SYNTH_H */
