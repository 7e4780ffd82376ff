/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mix.h - a stream over rings of every kind, their writers under it, and an oracle beside it.
 *
 * Like model.h, for more than weir.bpf.h's rings: each call ends with all checks, and a broken promise
 * fails the test there. Sources are numbered in the order in which they are added.
 */
#ifndef MODEL_MIX_H
#define MODEL_MIX_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stream/memory.h"

#include "came.h"
#include "sim.h"
#include "sim_outside.h"

struct mix;

struct mix_opts {
	uint64_t guard_ns; /* 0: 1 */
	size_t memory_bytes;
	enum weir_late_policy late;
	size_t poll_budget;
	uint64_t watermark_interval_ns;
	bool batch;
	const char *label;
};

enum mix_kind {
	MIX_NUMBERED,
	MIX_PERF,
	MIX_RINGBUF,
};

struct mix_ring {
	enum mix_kind kind;
	size_t size; /* 0: a page */
	enum weir_fence_kind fence;
	uint64_t grace_ns;
	bool counted;	       /* perf, ring buffer: the loss can be asked for */
	bool payload;	       /* perf: the payload is shown and not the record */
	uint32_t stamp_offset; /* ring buffer */
};

struct mix_source {
	struct mix_ring how;
	struct sim_ring *numbered;
	struct out_ring *outside;
	uint64_t open; /* no record below this number waits */
	uint64_t delivered, late, ahead, dropped, missing;
	uint64_t told[WEIR_LOST_CAUSES]; /* in gaps */
	bool told_unknown[WEIR_LOST_CAUSES];
};

struct mix {
	struct sim sim; /* the clock, and numbered rings */
	struct sim_grace grace;
	struct mix_source *sources;
	uint32_t nsources;
	uint64_t sources_cap;
	struct perf_layout layout;
	struct weir_stream *stream;
	struct mix_opts opts;

	struct came *out;
	uint64_t nout, out_cap, rendered;
	bool ordered;
	struct came last;
	uint64_t announced_ns; /* as it was told to the consumer */
	uint64_t first_t, ticket_ns;
	bool in_call, timed, delivering;
	uint64_t calls, records; /* of this call: events, records that are not ahead */
	uint64_t batches, largest_batch;
	int stopped;
	bool estimated; /* some source has no proof */
	bool dishonest; /* stamps were made up */
	bool blind;	/* bytes are spoiled at random: what has no log is not judged */
	char fault[512];

	/* A test's own. */
	int (*on_event)(struct mix *m, const struct weir_event *event);
	void (*on_clock)(struct mix *m);
	void *ctx;
};

struct mix *mix__new(const struct mix_opts *opts);
struct mix *mix__try_new(const struct mix_opts *opts);
void mix__free(struct mix *m);

/* The index of the source, or what the stream said: then nothing was added. */
int mix__try_add(struct mix *m, const struct mix_ring *ring);
uint32_t mix__add(struct mix *m, const struct mix_ring *ring);
struct out_ring *mix__add_outside(struct mix *m, const struct mix_ring *ring);
struct out_ring *mix__perf(struct mix *m);    /* a page, by grace periods, counted */
struct out_ring *mix__ringbuf(struct mix *m); /* the same; its stamp stands first */
struct sim_ring *mix__numbered(struct mix *m);

void mix__at(struct mix *m, uint64_t now_ns);
void mix__pass(struct mix *m, uint64_t ns);
int mix__poll(struct mix *m);
int mix__poll_at(struct mix *m, uint64_t now_ns);
int mix__flush(struct mix *m);
int mix__close(struct mix *m);
void mix__end(struct mix *m); /* close, the last checks, free */

/* "2#0 3#1": stamps and sources, and "2#0 3#1! (2,5]#0*7" for what came since the last call. */
void mix__feed(struct mix *m, const char *records);
void mix__expect(struct mix *m, const char *events);

struct weir_account mix__account(struct mix *m, uint32_t source);
struct weir_ledger mix__ledger(struct mix *m);
uint64_t mix__watermark(struct mix *m);

/* --- mix_oracle.c --- */

void mix_oracle__fault(struct mix *m, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void mix_oracle__event(struct mix *m, const struct weir_event *event);
void mix_oracle__watermark(struct mix *m, uint64_t watermark_ns, enum weir_order order);
/* rc: what a call returned; complete: it went as far as it could. */
void mix_oracle__accounts(struct mix *m, bool complete);
void mix_oracle__liveness(struct mix *m);
/* The stream is closed, and nobody stands inside. */
void mix_oracle__end(struct mix *m);

#endif /* MODEL_MIX_H */
