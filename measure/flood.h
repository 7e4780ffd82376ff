/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * flood.h - many records: how fast they may come without one being lost, and what each costs its reader.
 *
 * A thread on each of some CPUs makes system calls at a steady rate; a program sends one record of each
 * or several, of any size. The reader counts them.
 */
#ifndef WEIR_MEASURE_FLOOD_H
#define WEIR_MEASURE_FLOOD_H

#include "measure/hook.h"

#include <stdbool.h>
#include <stdint.h>

#define FLOOD_RING_BYTES (8u << 20) /* a CPU, as weir trace has it */

enum flood_reader {
	FLOOD_WEIR,   /* weir.bpf.h, in order */
	FLOOD_LIBBPF, /* one BPF ring buffer for all CPUs, libbpf's ring_buffer__poll() */
	FLOOD_READERS
};

struct flood {
	struct hook hook;
	enum flood_reader reader;
	struct ring_buffer *libbpf;
	struct bpf_link *link;
	uint64_t events, sum;
};

struct flood_shape {
	uint64_t rate;	/* records a second, all CPUs together */
	unsigned bytes; /* payload of each: 8 to 4,000 */
	unsigned cpus;	/* from the last one downwards */
	unsigned times; /* records a call: 1 to 16 */
};

struct flood_result {
	double produced, delivered; /* a second */
	double cpu_ns;		    /* of the reader, an event */
	double cpu_percent;
	uint64_t calls, lost;
};

/* These exit with a message on failure. */
void flood__open(struct flood *flood, enum flood_reader reader);
void flood__close(struct flood *flood);
struct flood_result flood__run(struct flood *flood, const struct flood_shape *shape,
			       double seconds);

/*
 * The most records a second of which none is lost: a run of `seconds` for each step of a search. Returns
 * the best run; *limit: the load could not make more, so nothing was lost at any rate.
 */
struct flood_result flood__search(struct flood *flood, const struct flood_shape *shape,
				  double seconds, bool *limit);

#endif /* WEIR_MEASURE_FLOOD_H */
