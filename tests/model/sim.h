/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sim.h - the kernel's side of a stream, in memory and on a virtual clock.
 *
 * A buffer is a BPF ring buffer byte for byte as the kernel lays it out, with the kernel's rules
 * for what fits. An emission is one run of weir.bpf.h, taken one step at a time, so that a test can
 * stop it between any two steps, nest others there, and let the reader look meanwhile. The log
 * knows the truth about every attempt: what was written, when, and what became of it.
 *
 * Knows nothing of the reader: only what the two share, the bytes of the rings and their counters.
 */
#ifndef MODEL_SIM_H
#define MODEL_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/record.h>

/* The words that producers and the reader share. Each on a line of its own, as in the kernel. */
struct sim_shared {
	uint64_t producer __attribute__((aligned(64)));
	uint64_t consumer __attribute__((aligned(64)));
	struct weir_counters counters __attribute__((aligned(64)));
};

struct sim_buffer {
	uint8_t *data; /* `size` bytes mapped twice, and behind them a page that faults */
	size_t size;
	struct sim_shared *shared;
	uint64_t pending; /* the kernel's pending_pos: the oldest record that is not committed */
	bool broken;	  /* a test spoiled lengths: the producer must not walk them */
};

/* Both positions start at `position`, a multiple of 8. 0 or a negative errno. */
int sim_buffer__init(struct sim_buffer *buffer, size_t size, uint64_t position);
void sim_buffer__destroy(struct sim_buffer *buffer);

/*
 * bpf_ringbuf_reserve() and _submit() or _discard(). These and sim_buffer__count() may be called
 * from a thread beside the reader; two writers of one buffer must exclude each other in reserve.
 */
void *sim_buffer__reserve(struct sim_buffer *buffer, uint32_t len);
void sim_buffer__finish(void *record, bool discard);

/*
 * Overwrite what lies in [from, until) and was given back, as the next producer could at once. It walks
 * the lengths that stand there first, as it does when it reserves.
 */
void sim_buffer__poison(struct sim_buffer *buffer, uint64_t from, uint64_t until);

/* A full barrier, as the BPF_FETCH atomic is: the stamp that follows is younger than the reserve. */
uint64_t sim__count(__u64 *counter);

/* The `len` bytes of payload that record `number` of ring `ring` carries: identity, check, filler. */
void sim__payload(uint8_t *out, uint32_t len, uint32_t ring, uint64_t number);

/* What is done next. The order is weir.bpf.h's. */
enum sim_step {
	SIM_RESERVE = 0,
	SIM_COUNT,	     /* seq = attempts++ */
	SIM_COUNT_FAILED,    /* failed++; only after a refused reserve, and the last step then */
	SIM_STAMP,	     /* */
	SIM_FILL,	     /* the rest of the head, and the payload */
	SIM_COUNT_DISCARDED, /* discarded++; only for a record that is given back */
	SIM_FINISH,	     /* submit or discard */
	SIM_DONE,
};

enum sim_state {
	SIM_STATE_RESERVED = 0, /* in the ring, busy */
	SIM_STATE_REFUSED,	/* no room, not counted yet */
	SIM_STATE_FAILED,	/* no room, and counted */
	SIM_STATE_SUBMITTED,
	SIM_STATE_DISCARDED,
	SIM_STATE_BROKEN, /* its bytes, or those before it, make no sense: it can't be delivered */
};

enum sim_fate {
	SIM_FATE_OPEN = 0,
	SIM_FATE_DELIVERED,
	SIM_FATE_LOST, /* a gap has told of it */
};

/* One attempt. */
struct sim_record {
	uint64_t position; /* of its header in the ring; none if refused */
	uint64_t seq;
	uint64_t stamp_ns;
	uint64_t counted_ns;  /* by the kernel's clock: when a loss is a loss */
	uint64_t finished_ns; /* by the reader's clock: when it could first see it */
	uint64_t reader_ns;   /* the newest T of the reader's when this was reserved */
	uint32_t len;	      /* of the payload */
	uint16_t type;
	uint16_t flags;
	uint8_t state; /* enum sim_state */
	uint8_t fate;  /* enum sim_fate: this and `mark` are the oracle's columns */
	uint8_t mark;  /* as it was delivered */
};

struct sim;

struct sim_ring {
	struct sim *sim;
	uint32_t index;
	int cpu;
	char name[16];
	struct sim_buffer buffer;
	uint64_t first_seq; /* the attempts counter when the stream got the ring */

	struct sim_record *log; /* in the order of reserve: a record's number is its place */
	uint64_t nlog, log_cap;
	uint32_t *by_seq; /* seq - first_seq -> number */
	uint64_t nseq, seq_cap;
	uint64_t first_busy; /* no record below this number is reserved and unfinished */
	uint64_t failed, submitted, discarded, broken;
	uint64_t poisoned; /* freed bytes up to here have been overwritten */
};

struct sim {
	struct sim_ring **rings;
	uint32_t nrings, rings_cap;

	uint64_t now_ns;
	uint64_t grain_ns;  /* both clocks step by this; 0 and 1: they don't */
	uint64_t skew_ns;   /* the kernel's clock is so far behind the reader's */
	uint64_t tick_ns;   /* reading the clock takes this long */
	uint64_t reader_ns; /* the newest T that the reader has */
	uint64_t reads;	    /* of the clock, by the reader */
	bool dishonest;	    /* a stamp was made up that no clock had given */
	bool trace;	    /* print each step to stderr */

	/*
	 * Runs when the reader has taken the time and has not been told yet; early: also before that, and
	 * where sim__interrupt() stands.
	 */
	void (*on_clock)(void *ctx);
	void *ctx;
	bool early;
	bool in_clock;
};

void sim__init(struct sim *sim);
void sim__destroy(struct sim *sim);

/* The two clocks: the one that stamps, and the one that the reader is given (struct weir_clock). */
uint64_t sim__kernel_ns(const struct sim *sim);
uint64_t sim__reader_clock(void *sim);

/* What is read next is no clock, but takes its time as well. */
void sim__interrupt(struct sim *sim);

/* The attempts counter starts at first_seq. NULL: no memory. */
struct sim_ring *sim__add_ring(struct sim *sim, int cpu, size_t size, uint64_t position,
			       uint64_t first_seq);

/* Take the newest ring away again: the reader did not want it. */
void sim__drop_ring(struct sim *sim);

/* What to emit. All zero: a record without payload, stamped by the clock. */
struct sim_what {
	uint32_t len;
	uint16_t type;
	uint16_t flags;
	bool discard;
	bool refuse;	   /* the reserve fails, as with its lock busy, whatever the room */
	bool bare;	   /* `len` bytes and no struct weir_record: a foreign program's */
	bool stamped;	   /* with stamp_ns instead of the clock */
	uint64_t stamp_ns; /* a scenario's stamp, or a made-up one */
};

struct sim_emit {
	struct sim_ring *ring;
	struct sim_what what;
	enum sim_step next;
	uint64_t number; /* its place in the log, once the reserve is done */
	void *record;
};

/* Set up, nothing done yet. */
void sim_emit__begin(struct sim_emit *emit, struct sim_ring *ring, const struct sim_what *what);

/* Do the next step. False: it was the last. */
bool sim_emit__step(struct sim_emit *emit);

/* Do all steps before `until`; SIM_DONE finishes. Returns false when the emission has ended. */
bool sim_emit__run(struct sim_emit *emit, enum sim_step until);

/* All steps at once: with a stamp; by the clock; `count` attempts that are refused. */
void sim__put(struct sim_ring *ring, uint64_t stamp_ns);
void sim__put_now(struct sim_ring *ring, uint32_t len);
void sim__refuse(struct sim_ring *ring, uint64_t count);

/* Overwrite the length word of record `number`, which is finished. It counts as broken. */
void sim_ring__spoil(struct sim_ring *ring, uint64_t number, uint32_t len);

/* Record `number` stands behind such a length, where no reader can find it: it counts as broken. */
void sim_ring__bury(struct sim_ring *ring, uint64_t number);

/* The log entry of a seq; NULL: never given out. */
struct sim_record *sim_ring__by_seq(struct sim_ring *ring, uint64_t seq);

/* Position of the oldest record that is reserved and unfinished; without one, the producer's. */
uint64_t sim_ring__busy_position(struct sim_ring *ring);

uint64_t sim_ring__producer(const struct sim_ring *ring);
uint64_t sim_ring__consumer(const struct sim_ring *ring);

/*
 * Overwrite what the reader has freed since the last call: the next producer could do so at once,
 * so a reader that still looks at it delivers garbage here, and the checks see it.
 */
void sim__poison(struct sim *sim);

/* A stamp that was behind the reader's clock when its record was reserved: no fence covers it. */
bool sim_record__is_behind(const struct sim_record *record, uint64_t guard_ns);

/* A stamp that was beyond the clock when its record was published. */
bool sim_record__is_ahead(const struct sim_record *record, uint64_t guard_ns);

#endif /* MODEL_SIM_H */
