/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf.h - perf rings and other people's BPF ring buffers as sources of a stream; and records of
 * perf rings, taken apart.
 */
#ifndef WEIR_PERF_H
#define WEIR_PERF_H

#include <weir/stream.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct perf_event_attr;

/*
 * What proves that nothing older is still on its way from such a source (fence.h). The kernel's perf
 * events and BPF programs that do not sleep stamp and publish within one RCU read section: RCU, exact.
 * For what does not - sleepable programs, stamps that were taken at the beginning of something and sent
 * at its end - GRACE: T is the clock less grace_ns, and the watermark `estimated`.
 */
enum weir_fence_kind {
	WEIR_FENCE_RCU = 0,
	WEIR_FENCE_GRACE,
};

/* One event, opened on each CPU: `attr` or `tracepoint`, and the other NULL. */
struct weir_perf_event {
	/*
	 * The caller's to fill in: size, type, config, how often to sample, and what else is special
	 * about it. Completed here: IDENTIFIER, TID, TIME and CPU (for tracepoints and BPF output
	 * RAW, too, and a period of 1; for tracepoints PERIOD), sample_id_all, the stream's clock,
	 * when to wake, write_backward and `disabled`.
	 */
	const struct perf_event_attr *attr;
	const char *tracepoint; /* "sched:sched_switch" */
	const char *
		filter; /* NULL: all; of a tracepoint's fields, as the kernel has it: "nr_sector > 8" */
};

/*
 * Perf events: one ring on each online CPU, into which all `events` of that CPU are written. Sources
 * are called name + CPU number. weir_event.type is the record's (PERF_RECORD_SAMPLE, 9), flags its misc,
 * data the record with its header: weir_stream__parse_perf() takes samples apart.
 */
struct weir_perf_opts {
	size_t sz;	  /* sizeof(struct weir_perf_opts) */
	const char *name; /* copied; at most 15 bytes */
	const struct weir_perf_event *events;
	uint32_t nr_events; /* at most 65,535; the sample types of all have to be the same */
	enum weir_fence_kind fence;
	uint64_t grace_ns; /* of WEIR_FENCE_GRACE */
	size_t ring_bytes; /* of each ring: a power of two, at least a page; 0: 2 MiB */
	/*
	 * The newest records overwrite the oldest (a flight recorder): nothing of these rings is read
	 * before weir_stream__snapshot(). RCU: it waits for grace periods, and all that it shows is whole.
	 * GRACE: it waits for nothing, leaves out as much at a ring's old end as four writers that
	 * interrupt each other may have in hand, and ends grace_ns before it: `estimated`.
	 */
	bool overwrite;
	/* Why it failed: one sentence with the way out goes here. NULL: nobody wants to know. */
	char *err;
	size_t err_len;
};

/*
 * A PERF_EVENT_ARRAY that somebody's BPF program writes to with bpf_perf_event_output() and
 * BPF_F_CURRENT_CPU: a ring on each online CPU, put into that CPU's slot of the map, and out of it by
 * weir_stream__close() or free. weir_event.data is the payload, as the program wrote it.
 */
struct weir_perf_array_opts {
	size_t sz;
	int map_fd;	  /* duplicated */
	const char *name; /* copied; at most 15 bytes */
	enum weir_fence_kind fence;
	uint64_t grace_ns;
	size_t ring_bytes; /* as above */
	/* The payload's length, all alike; 0: not known, then 0 to 7 bytes of padding come behind it. */
	uint32_t payload_len;
	/* Where the payload has a stamp of its own (u64, ns); -1: the kernel's stamp. */
	int32_t stamp_offset;
	enum weir_clock_id clock; /* of that stamp; has to be the stream's */
	char *err;
	size_t err_len;
};

/*
 * A BPF ring buffer that other people's programs write to. Nobody else may read it: a ring buffer has
 * one tail. weir_event.data is the payload.
 */
struct weir_ringbuf_opts {
	size_t sz;
	int map_fd;	  /* duplicated */
	const char *name; /* copied; at most 31 bytes; the source's name */
	enum weir_fence_kind fence;
	uint64_t grace_ns;
	uint32_t stamp_offset;	  /* where the payload has its stamp (u64, ns) */
	enum weir_clock_id clock; /* of that stamp; has to be the stream's */
	/*
	 * Where the programs count reserves that failed: a u64 in an array or per-CPU array, whose
	 * values are summed up. -1: nobody counts, and the loss is `unknown`.
	 */
	int lost_fd; /* duplicated */
	uint32_t lost_key;
	uint32_t lost_offset; /* in the map's value */
	char *err;
	size_t err_len;
};

/*
 * Each adds its source to the stream; what is wrong is found before anything is made, and on error
 * nothing was added. Errors, all with a sentence in opts->err:
 *
 *	EINVAL	options or events that make no sense, a map of another kind, another clock
 *	ENOENT	no such tracepoint; no such event on this machine
 *	EACCES, EPERM	kernel.perf_event_paranoid without CAP_PERFMON; no access to tracefs or to the
 *		map; more locked memory than kernel.perf_event_mlock_kb and RLIMIT_MEMLOCK allow
 *	EMFILE	more descriptors than RLIMIT_NOFILE
 *	EBUSY	somebody else reads this perf event array, and would hear no more
 *
 * and those of perf_event_open(2), bpf(2), mmap(2). Like all calls on a stream, not to be made while
 * another one runs.
 */
int weir_stream__add_perf(struct weir_stream *stream, const struct weir_perf_opts *opts);
int weir_stream__add_perf_array(struct weir_stream *stream,
				const struct weir_perf_array_opts *opts);
int weir_stream__add_ringbuf(struct weir_stream *stream, const struct weir_ringbuf_opts *opts);

/* How to look at overwritable rings while their writers go on. */
enum weir_snapshot_mode {
	/*
	 * They are not disturbed, and nothing is lost; but what stood at the old end of a ring, as much
	 * as is written during one grace period, is overwritten meanwhile.
	 */
	WEIR_SNAPSHOT_RUNNING = 0,
	/* They are stopped for a grace period: all of the ring is kept, what comes meanwhile is lost. */
	WEIR_SNAPSHOT_PAUSED,
};

struct weir_snapshot {
	size_t sz; /* sizeof(struct weir_snapshot), set by the caller */
	/*
	 * From here on every CPU's records are there, 0: from the beginning; and up to there. A ring
	 * that is too small for how fast it is written makes from_ns the later of the two.
	 */
	uint64_t from_ns;
	uint64_t to_ns;
	uint64_t records;   /* in all rings */
	uint64_t torn;	    /* at the old ends, half overwritten */
	uint64_t oversized; /* larger than their ring */
};

/*
 * Look at all overwritable rings of the stream, and deliver what is in them and was not delivered by an
 * earlier snapshot, in order: up to to_ns now, what is stamped behind that with the next one. What was
 * overwritten between two snapshots is a gap of unknown count, cause `overwritten`. Blocks for two grace
 * periods (PAUSED: one; WEIR_FENCE_GRACE: none). `out` may be NULL. Returns the number of events delivered,
 * or the callback's error. Errors before anything was delivered: ENOENT, no such ring; ENOBUFS,
 * memory_bytes is too little for what is in them; ENOMEM; perf's.
 *
 * The watermark of a stream with such rings moves only as far as the last snapshot: let them have a
 * stream of their own.
 */
int weir_stream__snapshot(struct weir_stream *stream, enum weir_snapshot_mode mode,
			  struct weir_snapshot *out);

/*
 * A PERF_RECORD_SAMPLE. Only the fields whose bit stands in `fields` were in the record, the others
 * are 0. What perf can append behind `raw` (branch stacks, registers, stacks, ...) is left out.
 * `callchain` and `raw` are borrowed: they point into the record.
 */
struct weir_perf_sample {
	uint64_t fields;    /* PERF_SAMPLE_* of <linux/perf_event.h> */
	uint64_t ip;	    /* PERF_SAMPLE_IP */
	uint64_t time_ns;   /* PERF_SAMPLE_TIME: by the clock that the event was opened with */
	uint64_t addr;	    /* PERF_SAMPLE_ADDR */
	uint64_t id;	    /* PERF_SAMPLE_IDENTIFIER or PERF_SAMPLE_ID */
	uint64_t stream_id; /* PERF_SAMPLE_STREAM_ID */
	uint64_t period;    /* PERF_SAMPLE_PERIOD */
	uint32_t pid;	    /* PERF_SAMPLE_TID, in the pid namespace of who opened the event */
	uint32_t tid;
	uint32_t cpu; /* PERF_SAMPLE_CPU */
	/*
	 * PERF_SAMPLE_RAW. The kernel fills up with 0 to 7 bytes and counts them, so raw_len is too
	 * long by as many unless the payload's length was declared. `raw` stands at 4 modulo 8: copy
	 * what is wider than 4 bytes.
	 */
	uint32_t raw_len;
	const void *raw;
	const uint64_t *callchain; /* PERF_SAMPLE_CALLCHAIN, PERF_CONTEXT_* marks included */
	uint32_t callchain_len;	   /* entries */
	/* Index in weir_perf_opts.events, by the id; UINT32_MAX: not known. */
	uint32_t event;
};

/*
 * Take an event of weir_stream__add_perf() apart: inside the callback, as `out` points into it. Errors:
 * EINVAL, it is no sample of such a source, or broken.
 */
int weir_stream__parse_perf(const struct weir_stream *stream, const struct weir_event *event,
			    struct weir_perf_sample *out);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_PERF_H */
