/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stream.h - many rings in, one ordered stream out.
 *
 * A stream belongs to one thread at a time: calls on one handle must not overlap, different handles
 * are independent. The library starts no thread, prints nothing and never exits. Functions return 0
 * or a count, or a negative errno; those that return a pointer return NULL and set errno.
 */
#ifndef WEIR_STREAM_H
#define WEIR_STREAM_H

#include <weir/event.h>
#include <weir/ledger.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_stream;

/*
 * Called for every event, in order. Return 0 to go on; a negative errno ends the poll after this
 * event, which counts as delivered, and poll returns it: what follows stays for the next poll.
 */
typedef int (*weir_event_fn)(void *ctx, const struct weir_event *event);

/*
 * Called with up to WEIR_BATCH_MAX events that follow each other in the stream: cheaper than one call
 * an event. All of them are borrowed until it returns. A negative errno ends the poll after the last of
 * them; all count as delivered.
 */
typedef int (*weir_batch_fn)(void *ctx, const struct weir_event *events, size_t count);

#define WEIR_BATCH_MAX 64

/* What becomes of a record that comes late (G2). */
enum weir_late_policy {
	WEIR_LATE_DELIVER = 0, /* out of order, with WEIR_MARK_LATE */
	WEIR_LATE_DROP,	       /* counted as lost, cause `late`, and told as a gap */
	WEIR_LATE_FAIL, /* the poll that meets it ends with -ETIME, and so does each one after */
};

/* Called when the watermark has moved: everything stamped <= watermark_ns has been delivered. */
typedef void (*weir_watermark_fn)(void *ctx, uint64_t watermark_ns, enum weir_order order);

/* The clock that all stamps of a stream are taken by. Two clocks are never merged. */
enum weir_clock_id {
	WEIR_CLOCK_MONOTONIC =
		0,	     /* bpf_ktime_get_ns(), perf with use_clockid: what weir.bpf.h uses */
	WEIR_CLOCK_BOOTTIME, /* bpf_ktime_get_boot_ns() */
	WEIR_CLOCK_REALTIME, /* can step back: records may then come late */
	WEIR_CLOCK_TAI,	     /* bpf_ktime_get_tai_ns() */
	WEIR_CLOCK_PERF, /* perf's own, without use_clockid; x86-64 with an invariant TSC only */
	WEIR_CLOCKS
};

/* The name of a clock: "monotonic", "boottime", ... Never NULL. Thread-safe. */
const char *weir_clock__name(enum weir_clock_id clock);

struct weir_stream_opts {
	size_t sz;			/* sizeof(struct weir_stream_opts) */
	weir_event_fn on_event;		/* this, or on_batch */
	weir_watermark_fn on_watermark; /* may be NULL */
	void *ctx;			/* handed to both */
	/*
	 * Bound on what waiting may cost, copies of records held back and gaps; 0: 64 MiB. The rings
	 * and an index of up to 2/3 of their size stand beside it, whatever happens.
	 */
	size_t memory_bytes;
	uint64_t guard_ns;	   /* least distance kept from the clock; 0: 1,000 */
	uint32_t poll_interval_ns; /* pause between polls while events flow; 0: 1,000,000 */
	weir_batch_fn on_batch;	   /* instead of on_event */
	enum weir_late_policy late;
	/* Least distance between two calls of on_watermark, in stream time; 0: one a poll. */
	uint64_t watermark_interval_ns;
	enum weir_clock_id clock;
	size_t poll_budget; /* records that one poll delivers at most; 0: no bound */
};

/* Make an empty stream. Errors: EINVAL (neither or both of on_event and on_batch, sz too small), EOPNOTSUPP
 * (WEIR_CLOCK_PERF where it can't be read), ENOMEM, or epoll's. */
struct weir_stream *weir_stream__new(const struct weir_stream_opts *opts);

/*
 * Let go of everything: unmaps the rings, closes the descriptors that the stream opened. Delivers
 * nothing; call weir_stream__close() first for that. NULL is allowed.
 */
void weir_stream__free(struct weir_stream *stream);

/* One class of rings: a ring of `ring_bytes` on each CPU. Sources are called name + CPU number. */
struct weir_ring_class {
	const char *name;  /* copied; at most 15 bytes; "cpu" gives cpu0, cpu1, ... */
	size_t ring_bytes; /* a power of two, at least a page */
};

/* Rings that are written through weir.bpf.h: the `reserve` fence, exact. */
struct weir_rings_opts {
	size_t sz;
	int rings_fd;	  /* the map `weir_rings`: ARRAY_OF_MAPS, slot = class * nr_cpus + cpu */
	int counters_fd;  /* the map `weir_counters`: mmapable ARRAY, element 1 + slot */
	uint32_t nr_cpus; /* as in the program's weir_nr_cpus */
	const struct weir_ring_class *classes;
	uint32_t nr_classes;
};

/*
 * Add the rings of one BPF object: makes a ring for each online CPU and class, lets the stream poll
 * it, then hands it to the program. CPUs that come later get theirs when they come. Ties between
 * sources go in slot order. The two descriptors are duplicated. Errors: EINVAL, ENOMEM, EPERM and
 * bpf(2)'s; on error nothing was added.
 */
int weir_stream__add_rings(struct weir_stream *stream, const struct weir_rings_opts *opts);

/*
 * Watch a BPF program for runs that the kernel skipped because the program was already running
 * (bpf_prog_info.recursion_misses). Each increase becomes a gap of cause `skipped`, at most N.
 * prog_fd is duplicated, `name` copied. Errors: bpf(2)'s.
 */
int weir_stream__watch_prog(struct weir_stream *stream, int prog_fd, const char *name);

/*
 * One round over all sources: snapshot, drain, deliver, announce. Delivers first what is there; if
 * nothing is, sleeps up to timeout_ms (-1: until there is something, 0: not at all) and looks once
 * more. Returns the number of events delivered (which can be 0: the watermark moves all the same),
 * -EINTR when a signal came, or the callback's error.
 */
int weir_stream__poll(struct weir_stream *stream, int timeout_ms);

/*
 * Deliver everything that was published before the call, in order. May deliver more. Waits for a
 * record that its producer has reserved and not finished at most timeout_ms, then -ETIMEDOUT.
 */
int weir_stream__flush(struct weir_stream *stream, int timeout_ms);

/*
 * The end: to be called after the producers are detached. Waits for the probes that still run (one
 * RCU grace period), drains the rings for the last time and delivers everything, also what is
 * stamped beyond the watermark. After it, poll delivers nothing more and the ledger is final.
 */
int weir_stream__close(struct weir_stream *stream);

/* Everything stamped <= this has been delivered; 0 before the first announcement. */
uint64_t weir_stream__watermark(const struct weir_stream *stream);

/*
 * A descriptor that is readable whenever weir_stream__poll(stream, 0) has something to do, timers
 * included: for the caller's own event loop. Owned by the stream.
 */
int weir_stream__epoll_fd(struct weir_stream *stream);

/* The account so far, taken at the last poll's snapshot. out->sz must be set. Error: EINVAL. */
int weir_stream__ledger(const struct weir_stream *stream, struct weir_ledger *out);

/* What is known of source `index` (weir_event.source). Error: ENOENT. */
int weir_stream__source(const struct weir_stream *stream, uint32_t index,
			struct weir_source_info *out);

/*
 * For consumers that turn events away themselves, or can't use them: move `count` records of a
 * source from delivered to filtered, or to lost with a cause (`broken`, `output`).
 */
void weir_stream__count_filtered(struct weir_stream *stream, uint32_t source, uint64_t count);
void weir_stream__count_lost(struct weir_stream *stream, uint32_t source, uint64_t count,
			     enum weir_cause cause);

typedef void (*weir_retire_fn)(void *arg, uint64_t stamp_ns);

/*
 * Run fn(arg, stamp_ns) once, as soon as the watermark has reached stamp_ns: every event up to it
 * has been delivered by then. Runs inside poll, flush or close, in stamp order, never inside this
 * call; O(log n). free() drops what has not run. Error: ENOMEM.
 */
int weir_stream__retire(struct weir_stream *stream, uint64_t stamp_ns, weir_retire_fn fn,
			void *arg);

/*
 * Wall time (CLOCK_REALTIME, ns since 1970) of a CLOCK_MONOTONIC stamp, by the offset that was in
 * force at that stamp, as far back as the stream remembers.
 */
int64_t weir_stream__wall_ns(const struct weir_stream *stream, uint64_t stamp_ns);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STREAM_H */
