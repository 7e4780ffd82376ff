/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * internal.h - what the files of the stream share.
 *
 *	stream.c     the handle: make, ask, let go
 *	rings.c      the list of rings, and what is sized by it
 *	add_rings.c  BPF objects with weir.bpf.h -> rings
 *	numbered.c   their kind of ring: bytes -> index, numbers -> loss
 *	outside.c    perf rings and BPF ring buffers of others: bytes -> index, and what is told of loss
 *	add_outside.c  ... and how they become sources
 *	add_perf.c   perf events and perf event arrays -> such rings, also of CPUs that come back
 *	add_ringbuf.c  a BPF ring buffer of others' -> such a ring
 *	snapshot.c   overwritable perf rings, looked at on demand
 *	proof.c      what an older record that is not visible yet is excluded by: fences, in one stream
 *	poll.c       poll, flush, close
 *	round.c      one poll: snapshot, drain, watermark, deliver, announce     (the protocol)
 *	deliver.c    sorted entries and gaps -> the callback
 *	notices.c    gaps and clock steps that wait for their place
 *	hold.c       records that have to wait: copied out of their ring, or given up when memory ends
 *	offline.c    CPUs that come and go
 *	skipped.c    events that the kernel left out
 *	wait.c       sleeping and being woken
 *	account.c    the ledger
 */
#ifndef WEIR_STREAM_INTERNAL_H
#define WEIR_STREAM_INTERNAL_H

#include <weir/record.h>
#include <weir/stream.h>

#include "ledger/seqs.h"
#include "order/lag.h"
#include "order/merge.h"
#include "order/queue.h"
#include "order/retire.h"
#include "order/watermark.h"
#include "ring/bpf_ringbuf.h"
#include "ring/foreign_ringbuf.h"
#include "ring/perf_forward.h"
#include "source/clock.h"
#include "source/fence.h"
#include "source/handshake.h"
#include "source/hotplug.h"
#include "source/misses.h"
#include "source/reason.h"
#include "source/rings.h"
#include "source/wake.h"
#include "stream/memory.h"
#include "symbols.h"

#define DEFAULT_MEMORY_BYTES	 (64u << 20)
#define DEFAULT_GUARD_NS	 1000u
#define DEFAULT_POLL_INTERVAL_NS 1000000u
#define NSEC_PER_SEC		 1000000000ull
#define SOURCES_MAX		 (1u << 20)
#define CHORES_INTERVAL_NS	 NSEC_PER_SEC
#define QUIET_NS		 16000000ull
#define MISSES_INTERVAL_NS	 10000000ull /* a system call a program: not at each poll */
#define CACHE_LINE		 64

/* A copy of ring bytes [begin, end), made so that the ring could go on. */
struct held {
	struct held *next; /* younger */
	uint64_t begin, end;
	uint8_t *bytes;
};

struct ring;
struct perf_cpu;
struct perf_group;
struct ringbuf;

/* Where the bytes are that an event shows. */
enum view {
	VIEW_IN_PLACE,
	VIEW_ASSEMBLED, /* in stream->scratch, until the next one */
};

/*
 * What differs between kinds of rings: how bytes become records, and how loss shows. Called once a
 * ring and poll; seq() only where records of one stamp meet.
 */
struct ring_kind {
	size_t min_record; /* bytes of the least that is indexed: bounds the index */
	/* latest.attempts and latest.pos <- S and P, in this order. */
	void (*snapshot)(struct ring *ring);
	/* Index what stands up to latest.pos. false: it ends at a record that is not finished. */
	bool (*take)(struct weir_stream *s, struct ring *ring);
	/* All up to the P of this snapshot is indexed: what is missing of its S is lost. */
	void (*settle)(struct weir_stream *s, struct ring *ring, const struct wm_snapshot *reached);
	/* The number of the record at a position. */
	uint64_t (*seq)(const struct ring *ring, uint64_t pos);
	/* What the consumer sees of it: seq, data, len, type and flags. */
	enum view (*view)(struct weir_stream *s, const struct ring *ring, uint64_t pos,
			  struct weir_event *event);
	void (*account)(const struct weir_stream *s, const struct ring *ring,
			struct weir_account *out);
};

extern const struct ring_kind ring_kind__numbered;
extern const struct ring_kind ring_kind__perf;
extern const struct ring_kind ring_kind__ringbuf;

/* Why nothing older than the T of a snapshot can be missing from it. */
enum proof {
	PROOF_RESERVE = 0, /* the order of the producer's steps: T is the poll's */
	PROOF_RCU,	   /* a grace period: T is that of the newest ticket that is done */
	PROOF_GRACE,	   /* none, but time: T is the poll's less grace_ns, and W estimated */
	/* It is looked at on demand only, and T is that of the last look: */
	PROOF_SNAPSHOT, /* between two grace periods */
	PROOF_GUARD,	/* none; T is less grace_ns, and W estimated */
};

/* The memory of a ring that overwrites itself: snapshot.c's to look at. */
struct overwritable {
	const uint8_t *data; /* NULL: there is none */
	size_t size;
	const uint64_t *head;
	uint64_t seen; /* the head at the last look; 0: there was none yet */
};

#define RING_LOST_UNKNOWN UINT64_MAX

/* Of a ring that is not written through weir.bpf.h. */
struct outside {
	const struct perf_layout *layout; /* perf: borrowed */
	struct overwritable overwritable; /* perf: in place of a ring that is polled */
	const struct perf_cpu *perf;	  /* add_perf.c's; NULL: it lies in plain memory */
	bool payload;	       /* perf: show the raw payload of samples, not the record */
	uint32_t stamp_offset; /* ringbuf */
	/* How many were lost since the ring is there, or RING_LOST_UNKNOWN. NULL: nobody counts. */
	uint64_t (*lost)(void *ctx);
	void *lost_ctx;

	uint64_t taken;			/* records that were indexed */
	uint64_t missing;		/* records that are known not to be in the ring */
	uint64_t lost_told;		/* of these, what was told for want of room */
	uint64_t lost_seen;		/* sum of the LOST records */
	uint64_t last_ns;		/* stamp of the last record */
	uint32_t throttled;		/* events that perf has stopped */
	uint64_t throttled_ns;		/* since when that is to be told */
	bool unknown[WEIR_LOST_CAUSES]; /* something was lost, and nobody knows how much */
	bool dead;			/* its memory is gone, and there is no new one yet */
};

/* One source. What every poll touches comes first. */
struct ring {
	struct queue queue; /* drained, not delivered; record bytes are in the ring or in `held` */
	struct bpf_ringbuf rb;
	const struct ring_kind *kind;
	uint64_t tail;	   /* below: freed for the producer */
	struct held *held; /* copies, oldest first */
	uint32_t source;   /* index in stream->by_source, and the order of ties */
	int32_t cpu;
	uint64_t delivered;
	uint64_t delivered_at_scan; /* when all that waits was looked at for the last time */
	struct wm_snapshot latest;  /* the last snapshot taken, reached or not */
	uint64_t reached_ns;	    /* the newest T whose P is drained */
	const struct weir_counters *counters;
	const uint64_t *producer;
	uint64_t *consumer;
	size_t size;   /* 0: it has counters, but no ring */
	uint64_t base; /* position of what its writer calls 0 */
	enum proof proof;
	uint64_t grace_ns;
	uint64_t snapshot_ns; /* PROOF_SNAPSHOT, PROOF_GUARD */
	uint64_t busy_since_ns;
	uint64_t max_fill;
	uint64_t broken;
	struct seqs seqs;
	struct wm_fifo fifo;

	struct held **held_last;
	size_t *held_bytes; /* the stream's count of them */

	struct outside outside;
	uint64_t late, ahead, discarded, stray;
	uint64_t failed_start; /* what the producers' counter of failed reserves began with */
	uint64_t filtered;     /* by the consumer, of delivered */
	uint64_t given_up;     /* lost after delivery, of delivered too */
	uint64_t lost[WEIR_LOST_CAUSES];

	bool online;
	uint64_t offline_since_ns;
	char name[32];
};

/*
 * What delivery touches for each record beside its bytes: with a thousand rings this is what has to
 * stay near. Rings and queues themselves are brought up to date once a run.
 */
struct lane {
	uint64_t expect; /* seqs.expect, to widen numbers by */
	uint32_t source;
	int32_t cpu;
};

/* Where a record stands in the stream (G1). */
struct place {
	uint64_t stamp_ns;
	uint32_t source;
	uint64_t seq;
};

/* Something of ours that waits for its place in the stream: a gap or a clock step. */
struct notice {
	uint64_t stamp_ns;
	uint64_t seq;
	uint32_t source;
	int32_t cpu;
	enum weir_kind kind;
	union {
		struct weir_gap gap;
		struct weir_clock_step step;
	};
};

/* How many records its bytes can be: so much of an index it needs for itself. */
static inline size_t ring__entries(const struct ring *ring)
{
	return ring->size / ring->kind->min_record;
}

/* A counter of events that the kernel skipped. */
struct watch {
	struct misses misses;
	uint64_t base, total;
	uint64_t read_ns; /* when it was read last */
};

struct weir_stream {
	weir_event_fn emit; /* what delivery calls */
	void *emit_ctx;
	weir_event_fn on_event;
	weir_batch_fn on_batch; /* or this */
	weir_watermark_fn on_watermark;
	void *ctx;
	enum weir_late_policy late;
	size_t budget; /* records a poll */
	uint64_t announce_interval_ns, announced_ns;
	size_t memory_max; /* for queues, held copies and notices */
	size_t held_bytes, held_bytes_peak;
	uint64_t guard_min_ns, guard_ns;
	uint32_t interval_ns;

	struct ring **rings; /* those that are polled, by source */
	size_t nr_rings;
	struct ring **by_source; /* [source]; NULL: a CPU that was never online */
	uint32_t nr_sources;
	struct merge_front *fronts; /* scratch of one poll: queues with something to deliver */
	struct lane *lanes;	    /* of these */
	bool in_place;		    /* all of them: numbered, and nothing was copied out */
	bool near;		    /* so few records that they are in a cache still */
	bool all_numbered;	    /* every ring is weir.bpf.h's */
	uint8_t *scratch;	    /* for a record that wraps around the end of a ring */
	struct weir_event batch[WEIR_BATCH_MAX];
	size_t nr_batched;
	uint64_t delivered_to_ns; /* by the last poll: up to where everything is out */
	struct merge merge;

	struct notice *notices; /* [first, nr) wait; sorted before each delivery */
	size_t first_notice, nr_notices, cap_notices;
	size_t max_notices; /* from here on gaps are joined */
	bool notices_unsorted;
	uint64_t notices_delivered;

	struct watch *watches;
	size_t nr_watches;

	struct weir_clock clock;
	enum weir_clock_id clock_id;
	struct handshake handshake;
	bool no_handshake;
	int64_t clock_off_ns;
	struct clock_offsets offsets; /* history of wall - stamp */
	uint64_t t_ns, bound_ns; /* T of this poll, and the clock after the counters were read */
	uint64_t start_ns, watermark_ns;
	struct place last_out; /* the last record that was delivered */
	struct place
		stopped; /* where a poll ended before all that is below its watermark was out */
	uint64_t next_chores_ns, next_misses_ns;
	uint64_t last_round_ns;
	bool flowing; /* the last poll delivered something, or left something behind */
	bool behind;  /* the budget of the last poll ended before what was due did */
	bool closing, closed, memory_only;

	struct fence fence;
	bool has_fence;
	uint64_t (*ticket_ns)(void *ctx); /* in place of a fence, on plain memory */
	void *ticket_ctx;
	uint64_t fence_count; /* tickets that are in fence_lag */
	struct lag fence_lag, lateness;
	uint64_t dropped; /* for being late */
	int fence_err;
	size_t nr_on_demand; /* rings that only weir_stream__snapshot() looks at */
	size_t nr_rcu;	     /* rings with PROOF_RCU: each poll wants a ticket */
	size_t nr_quiet;     /* rings whose writers wake nobody for a single record */
	bool estimated;	     /* some ring has no proof */
	struct retire retire;

	struct lag lag;
	uint64_t polls, lost_nowhere[WEIR_LOST_CAUSES];
	struct source_rings *groups; /* rings made on the kernel */
	size_t nr_groups;
	struct perf_group **perf; /* perf.h */
	size_t nr_perf;
	struct ringbuf **ringbufs;
	size_t nr_ringbufs;
	struct wake wake;
	struct hotplug hotplug;
};

/* rings.c */
int stream__grow(void *array_ptr, size_t count, size_t size);
/* Room for sources up to and with `source`, and for one more ring. */
int stream__room_for(struct weir_stream *s, uint32_t source);
struct ring *stream__new_ring(struct weir_stream *s, const struct ring_kind *kind, uint32_t source,
			      const char *name, int cpu);
void stream__list_ring(struct weir_stream *s, struct ring *ring);
void stream__forget_from(struct weir_stream *s, uint32_t source);
/* Which of two records of one stamp comes first; ctx: their ring. */
int ring__tie(void *ctx, uint64_t pos_a, uint64_t pos_b);
int ring__bind(struct ring *ring, const void *data, size_t size, const uint64_t *producer,
	       uint64_t *consumer);
void ring__free(struct ring *ring);

/* add_rings.c */
int stream__start_hotplug(struct weir_stream *s);
void stream__add_cpu_rings(struct weir_stream *s, int cpu);
/* Rings that the producers wanted and never got. */
int stream__add_ringless(struct weir_stream *s, struct source_rings *group);

/* offline.c */
void stream__on_hotplug(void *ctx, int cpu, bool online);
void stream__look_after_offline(struct weir_stream *s);
int stream__end_offline_gaps(struct weir_stream *s);

/* skipped.c */
void stream__read_misses(struct weir_stream *s);

/* round.c: one poll without sleeping. Events delivered, or the callback's error. */
int stream__round(struct weir_stream *s);
/* Drain one ring once more, whose writer is dead. */
void stream__drain_dead(struct weir_stream *s, struct ring *ring);
/* Like a round, but everything that is drained goes out, also what is beyond the watermark. */
int stream__last_round(struct weir_stream *s);

/*
 * deliver.c: everything stamped <= limit_ns, gaps included; 0: nothing. At most `budget` records:
 * delivered_to_ns then tells how far that came. Events, or an error.
 */
int stream__deliver(struct weir_stream *s, uint64_t limit_ns, size_t budget);
void stream__stop_here(struct weir_stream *s);
/* Deliver one event that is out of order, at once. */
int stream__deliver_ahead(struct weir_stream *s, struct ring *ring, struct entry e);

void stream__set_emit(struct weir_stream *s);

/* notices.c */
/* ring NULL: of the whole machine. */
int stream__add_gap(struct weir_stream *s, const struct ring *ring, uint64_t seq,
		    const struct weir_gap *gap);
int stream__add_notice(struct weir_stream *s, const struct notice *notice);
int stream__room_for_notices(struct weir_stream *s, size_t rings);
void stream__sort_notices(struct weir_stream *s);
const struct notice *stream__next_notice(const struct weir_stream *s);
/* The stamp from which on records have to be compared with the next notice. */
uint64_t stream__notice_from_ns(const struct weir_stream *s);

/* hold.c: after a delivery: give back what is out, and free the rings of what has to wait. */
void stream__release(struct weir_stream *s);
void stream__hold(struct weir_stream *s);
/* Bytes of the heap's become the copy of [begin, begin + len). -ENOMEM: they stay the caller's. */
int stream__hold_block(struct weir_stream *s, struct ring *ring, uint8_t *bytes, uint64_t begin,
		       uint64_t len);
/* Is there room for so many bytes of a ring to wait in? */
bool stream__can_hold(const struct weir_stream *s, const struct ring *ring, uint64_t bytes);
void stream__unbind(struct weir_stream *s, struct ring *ring);
void stream__rebind(struct ring *ring, const void *data, size_t size, const uint64_t *producer,
		    uint64_t *consumer);

/* add_outside.c: a ring of somebody else's. What is in `outside` is copied; data NULL: no ring yet. */
struct ring_spec {
	const struct ring_kind *kind;
	const char *name; /* of the source */
	int cpu;	  /* -1: not of one CPU */
	enum proof proof;
	uint64_t grace_ns;
	struct outside outside;
	const void *data;
	size_t size;
	const uint64_t *producer;
	uint64_t *consumer; /* its value is where reading begins */
};
/* The source's index, or -ENOMEM or another error: then nothing was added. */
int stream__add_outside(struct weir_stream *s, const struct ring_spec *spec);
/* Two clocks are never merged. */
int stream__judge_clock(const struct weir_stream *s, enum weir_clock_id clock,
			const struct reason *reason);

/* proof.c: what a proof needs is there from now on, or a sentence. */
int stream__need_proof(struct weir_stream *s, enum proof proof, const struct reason *reason);
/* T of the newest grace period that is over, for rings of a snapshot that is taken next. */
uint64_t stream__ticket(struct weir_stream *s);
void stream__ask_for_ticket(struct weir_stream *s);
/* Let the thread that waits, if there is one, get a ticket of since_ns or later. */
void stream__want_ticket(struct weir_stream *s, uint64_t since_ns);
uint64_t ring__t_ns(const struct ring *ring, uint64_t t_ns, uint64_t ticket_ns);
enum weir_order stream__order(const struct weir_stream *s);
/* Block until a ticket is done whose T is since_ns or later. */
int stream__await_ticket(struct weir_stream *s, uint64_t since_ns);

/* add_perf.c: each CPU that is online has its perf rings, and live ones. */
void stream__revive_perf(struct weir_stream *s, int cpu);
void stream__check_perf(struct weir_stream *s);
/* The end: no more is written. */
int stream__stop_perf(struct weir_stream *s);
void stream__free_perf(struct weir_stream *s);

/* add_ringbuf.c */
void stream__free_ringbufs(struct weir_stream *s);

void ring__drop_oldest_held(struct ring *ring);

/* wait.c */
int stream__wait(struct weir_stream *s, uint64_t timeout_ns);

static inline bool ring__is_on_demand(const struct ring *ring)
{
	return ring->proof == PROOF_SNAPSHOT || ring->proof == PROOF_GUARD;
}

/* The copy in which a position stands; NULL: it is still in the ring. */
const struct held *ring__held(const struct ring *ring, uint64_t pos);

/* The first byte of a record, in a ring that is mapped twice. */
static inline const uint8_t *ring__at(const struct ring *ring, uint64_t pos)
{
	const struct held *held = ring->held ? ring__held(ring, pos) : NULL;

	return held ? held->bytes + (pos - held->begin)
		    : bpf_ringbuf__at(ring->rb.data, ring->rb.mask, pos);
}

/* A record of a numbered ring. */
static inline const struct weir_record *ring__record(const struct ring *ring, uint64_t pos)
{
	return (const struct weir_record *)(ring__at(ring, pos) + BPF_RINGBUF_HDR);
}

/* The number that its next record gets, as far as is known. */
static inline uint64_t ring__next_seq(const struct ring *ring)
{
	return ring->kind == &ring_kind__numbered ? ring->seqs.expect : ring->rb.pos;
}

static inline uint64_t stream__now(const struct weir_stream *s)
{
	return s->clock.now_ns(s->clock.ctx);
}

#endif /* WEIR_STREAM_INTERNAL_H */
