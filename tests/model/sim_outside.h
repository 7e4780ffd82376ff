/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sim_outside.h - the kernel's side of rings that are not written through weir.bpf.h, on the clock of
 * sim.h: perf rings, and BPF ring buffers of other people's programs.
 *
 * Their writers stamp first and publish later. An emission is one run of such a writer, taken a step at
 * a time, so that interrupts can nest anywhere and the reader can look in between; and a grace period
 * ends when all who were inside at its beginning have left. The log knows the truth of each attempt.
 *
 * Written after the kernel's rules; knows nothing of the reader but the bytes that both see.
 */
#ifndef MODEL_SIM_OUTSIDE_H
#define MODEL_SIM_OUTSIDE_H

#include "sim.h"

/* --- Grace periods --- */

struct sim_grace {
	const struct sim *sim;
	uint64_t *inside; /* who is: numbers of their entries */
	uint32_t ninside, inside_cap;
	uint64_t entered;
	bool in_flight;
	uint64_t t_ns, last_inside, ready_ns; /* of the one in flight */
	uint64_t newest_ns;		      /* T of the newest that is over */
	uint64_t least_ns;		      /* none takes less time */
	uint64_t tickets;
};

uint64_t sim_grace__enter(struct sim_grace *grace);
void sim_grace__leave(struct sim_grace *grace, uint64_t entry);
/* T of the newest that is over, and begin another if none is in flight. `grace`: a struct sim_grace. */
uint64_t sim_grace__ticket(void *grace);
void sim_grace__destroy(struct sim_grace *grace);

/* --- The log --- */

enum out_state {
	OUT_INSIDE = 0, /* begun, not visible to the reader */
	OUT_PUBLISHED,
	OUT_REFUSED,
	OUT_DISCARDED,
	OUT_BROKEN, /* published, and then a test spoiled it */
};

struct out_record {
	uint64_t stamp_ns;
	uint64_t order;	     /* of its reserve, in the ring */
	uint64_t visible_ns; /* by the reader's clock */
	uint32_t len;	     /* of the payload */
	uint8_t state;	     /* enum out_state */
	bool made_up;	     /* the stamp: by no clock */
	bool reserved;
	uint8_t fate; /* enum sim_fate: this and `mark` are the oracle's columns */
	uint8_t mark;
};

enum out_kind {
	OUT_PERF,
	OUT_RINGBUF,
	OUT_BACKWARD, /* perf, overwriting itself from its end down: it has no tail, and loses nothing */
};

struct out_shared {
	uint64_t producer __attribute__((aligned(64)));
	uint64_t consumer __attribute__((aligned(64)));
};

/*
 * A ring of any kind. perf: mapped once, sample_type and the layout of its records are fixed
 * (OUT_SAMPLE_TYPE, with sample_id_all). Ring buffer: sim_buffer's.
 */
struct out_ring {
	struct sim *sim;
	struct sim_grace *grace;
	enum out_kind kind;
	uint32_t index; /* in the payloads */
	int cpu;
	char name[16];
	size_t size;
	uint8_t *data;
	struct out_shared *shared; /* perf */
	struct sim_buffer buffer;  /* ring buffer */
	uint32_t stamp_offset;	   /* ring buffer */

	uint64_t head;	      /* perf: the writers', ahead of what is published while they nest */
	uint32_t nest;	      /* perf */
	uint64_t lost_untold; /* perf: for the next LOST record */
	uint64_t lost;	      /* what PERF_FORMAT_LOST or the programs' counter says */
	bool loses_count;     /* the counter can't be read just now */
	uint64_t told_by_record; /* sum of the LOST records */

	struct out_record *log; /* in the order of the stamps' taking */
	uint64_t nlog, log_cap;
	uint64_t *unpublished; /* perf: numbers, reserved below an unfinished one */
	uint64_t nunpublished, unpublished_cap;
	uint64_t reserves, published, discarded, refused;
	uint64_t poisoned;
	bool threads; /* the reader is another one, and gives back at any time: never poison */
};

/* IDENTIFIER, TID, TIME, CPU and RAW of <linux/perf_event.h>. */
#define OUT_SAMPLE_TYPE 0x10486ull
/* Bytes of a sample before its payload, and the longest payload that a record can have. */
#define OUT_SAMPLE_HEAD 44u
#define OUT_PAYLOAD_MAX (65528u - OUT_SAMPLE_HEAD)

/* Fails (NULL) without memory. perf: size from 16 on; ring buffer: a page. */
struct out_ring *out_ring__new(struct sim *sim, struct sim_grace *grace, enum out_kind kind,
			       uint32_t index, int cpu, size_t size);
void out_ring__free(struct out_ring *ring);

/* perf: new memory, as after its CPU came back; what was not read is gone. */
void out_ring__renew(struct out_ring *ring);

/* What the reader may ask: the count of lost records, or UINT64_MAX. `ring`: a struct out_ring. */
uint64_t out_ring__lost(void *ring);

const uint64_t *out_ring__producer(const struct out_ring *ring);
uint64_t *out_ring__consumer(const struct out_ring *ring);

/* Overwrite what the reader has given back. */
void out_ring__poison(struct out_ring *ring);

/* --- Emissions --- */

enum out_step {
	OUT_ENTER = 0, /* into the read section */
	OUT_STAMP,
	OUT_LOOK, /* perf: is there loss to tell of? */
	OUT_RESERVE,
	OUT_FILL,
	OUT_LEAVE, /* publish */
	OUT_DONE,
};

struct out_what {
	uint32_t len; /* of the payload; raised to 8, where its number stands */
	bool discard; /* ring buffer */
	bool refuse;  /* no room, whatever there is */
	bool stamped;
	uint64_t stamp_ns;
};

struct out_emit {
	struct out_ring *ring;
	struct out_what what;
	enum out_step next;
	uint64_t number; /* in the log, from OUT_STAMP on */
	uint64_t entry;
	uint64_t position; /* perf: of the record that is written; backward: `size` bytes of it */
	uint32_t size;
	bool tells_loss; /* perf: room for a LOST is reserved, too */
	void *record;	 /* ring buffer */
};

/* perf: emissions of one ring nest, the last one begun is the first to end. */
void out_emit__begin(struct out_emit *emit, struct out_ring *ring, const struct out_what *what);
bool out_emit__step(struct out_emit *emit);
/* All steps before `until`. */
bool out_emit__run(struct out_emit *emit, enum out_step until);

/* One whole emission, with a stamp, or by the clock. */
void out__put(struct out_ring *ring, uint64_t stamp_ns);
void out__put_now(struct out_ring *ring, uint32_t len);
void out__refuse(struct out_ring *ring, uint64_t count);

/* perf: any record, from its header on, as the kernel writes it (side band, THROTTLE): `size` bytes. */
bool out__put_raw(struct out_ring *ring, const void *record, uint32_t size);
/* perf: THROTTLE (5) or UNTHROTTLE (6) of an event. */
void out__put_throttle(struct out_ring *ring, uint32_t type, uint64_t stamp_ns, uint64_t id);
/* perf: LOST_SAMPLES (13). */
void out__put_lost_samples(struct out_ring *ring, uint64_t count, uint64_t stamp_ns);

#endif /* MODEL_SIM_OUTSIDE_H */
