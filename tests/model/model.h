/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * model.h - a stream, a simulator under it and an oracle beside it.
 *
 * Tests drive the simulator, call the stream through the functions here, and every call ends with
 * all of the oracle's checks: a broken promise fails the test there, with the model's label.
 */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stream/memory.h"

#include "oracle.h"
#include "sim.h"

struct model;

struct model_opts {
	uint32_t rings;	   /* made at once, for CPU 0, 1, ... */
	size_t ring_bytes; /* 0: a page */
	uint64_t guard_ns; /* 0: 1, so that stamps of a scenario may stand side by side */
	size_t memory_bytes;
	uint64_t position; /* where both positions of the rings start */
	uint64_t first_seq;
	const char *label; /* is printed when a check fails */
};

struct model {
	struct sim sim;
	struct oracle oracle;
	struct weir_stream *stream;
	const char *label;
	int stopped;		  /* what on_event returned, when it was not 0 */
	uint64_t rendered;	  /* model__expect() has seen this many of oracle.out */
	uint64_t misses;	  /* of the watched counter */
	int64_t real_ns, boot_ns; /* the clocks' offsets */

	/* A test's own hooks: inside the event callback, and between T and what the reader loads. */
	int (*on_event)(struct model *model, const struct weir_event *event);
	void (*on_clock)(struct model *model);
	void *ctx;
};

/* Fails the test when there is no memory. */
struct model *model__new(const struct model_opts *opts);
struct model *model__with_rings(uint32_t rings);
void model__free(struct model *model);

struct sim_ring *model__add_ring(struct model *model, int cpu, size_t size, uint64_t position,
				 uint64_t first_seq);
struct sim_ring *model__ring(struct model *model, uint32_t index);

/* The virtual time. Never goes back. */
void model__at(struct model *model, uint64_t now_ns);
void model__pass(struct model *model, uint64_t ns);

/* One poll without waiting, and all the checks. Returns what it returned. */
int model__poll(struct model *model);
int model__poll_at(struct model *model, uint64_t now_ns);
int model__flush(struct model *model, int timeout_ms);

/* Close the stream, the final checks, and free the model. */
void model__end(struct model *model);
int model__close(struct model *model);

/* Count skipped runs, and let the stream watch the counter. */
void model__watch_misses(struct model *model);
void model__skip(struct model *model, uint64_t count);

void model__cpu_changed(struct model *model, int cpu, bool online);
void model__count_filtered(struct model *model, uint32_t source, uint64_t count);
void model__count_lost(struct model *model, uint32_t source, uint64_t count, enum weir_cause cause);

struct weir_ledger model__ledger(struct model *model);
struct weir_source_info model__source(struct model *model, uint32_t index);
uint64_t model__watermark(struct model *model);

/*
 * Publish records in this order, in the scenarios' notation: "2#0 3#0 1#1" is stamp 2 and 3 on
 * ring 0, stamp 1 on ring 1.
 */
void model__feed(struct model *model, const char *records);

/*
 * What has come since the last call, in the same notation: "10#1!" is late, "99#0^" ahead,
 * "(10,20]#1*17" a gap of ring 1 with 17 lost.
 */
void model__expect(struct model *model, const char *events);

/* Free the model and fail the test when a promise has been broken. */
void model__check(struct model *model);

/*
 * True while the library runs and no callback of the test's: what is allocated then is its own.
 * Set around every call above, also by tests that call the library themselves.
 */
extern bool model_in_library;
#define LIBRARY(call)                              \
	({                                         \
		model_in_library = true;           \
		__typeof__(call) result_ = (call); \
		model_in_library = false;          \
		result_;                           \
	})

/* weir_stream__new() as the model makes it; NULL and errno. For tests in which that may fail. */
struct model *model__try_new(const struct model_opts *opts);
int model__try_add_ring(struct model *model, int cpu, size_t size, uint64_t position,
			uint64_t first_seq);

#endif /* MODEL_MODEL_H */
