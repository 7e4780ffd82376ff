/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * readers.h - ways to read many rings, as a table of functions: weir's, and what one would do without.
 */
#ifndef WEIR_MEASURE_READERS_H
#define WEIR_MEASURE_READERS_H

#include "measure/sample.h"
#include "measure/synth.h"

#include <stdbool.h>

/* What the callbacks have seen. */
struct sink {
	uint64_t records, sum; /* of the field that is read */
	/* Kept only while checking: */
	uint64_t steps_back; /* in (stamp, source, sequence) */
	uint64_t last_ns;
	uint32_t last_source, last_seq;
};

/*
 * `checking`: look at everything that was promised of each record; else the callback reads one
 * field of the payload, which is what is timed.
 */
struct reader {
	const char *name;
	bool sorted; /* promises the order (stamp, source, sequence) */
	/* State for a set of rings; exits with a message when there is no memory. */
	void *(*open)(struct synth *synth, struct sink *sink, bool checking);
	/* Everything that the rings hold, up to their producers' positions. */
	void (*read)(void *state);
	void (*close)(void *state);
};

extern const struct reader reader__weir, reader__unsorted, reader__heap, reader__sort;

/* libbpf's kind of callback: bytes of one record, its head included. */
typedef int (*sample_fn)(void *ctx, void *data, size_t size);

/* The callback for readers that have libbpf's kind; its ctx is the sink. */
sample_fn sink__sample(bool checking);
/* One record, looked at in full. */
void sink__check(struct sink *sink, const struct synth_record *record);

/*
 * ns a record of each reader over `polls` epochs of that shape, on the same bytes, by turns, so that
 * what else the machine does falls on all alike. A NULL among the readers is left out. Each is checked
 * first, every record once and in order where that is promised; exits with a message when it is not so.
 */
void readers__measure(const struct reader *const *reader, size_t count, const struct shape *shape,
		      unsigned polls, struct sample *ns);

#endif /* WEIR_MEASURE_READERS_H */
