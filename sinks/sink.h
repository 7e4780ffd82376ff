/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sink.h - event -> bytes. A sink is a table of functions: a new one is one file, and one line in
 * sinks.c. A sink knows nothing of where events come from; it writes into a struct out (out.h).
 */
#ifndef WEIR_SINK_H
#define WEIR_SINK_H

#include <weir/decode.h>
#include <weir/event.h>
#include <weir/ledger.h>

struct out;

/* What the descriptors of a call stand for: NULL where that is not known, or it is none. */
struct sink_fds {
	const char *arg[WEIR_ARGS_MAX];
	const char *result;
};

/* An event with all that is known of it. Borrowed: valid during the call only. */
struct sink_event {
	const struct weir_event *event;
	const struct weir_decoded *decoded; /* NULL unless event->kind is WEIR_KIND_RECORD */
	int64_t wall_ns;
	const char *source;	    /* "cpu0"; NULL for the whole machine */
	const char *comm;	    /* 16 bytes, of which a NUL ends the name; NULL: unknown */
	const char *container;	    /* full id or unit name; NULL: none */
	const struct sink_fds *fds; /* of a call; NULL: nobody has asked */
};

struct sink_ops {
	const char *name; /* as --format takes it */
	/* Each returns 0, or a negative errno from `out`. Members may be NULL: nothing to do. */
	int (*event)(struct out *out, const struct sink_event *event);
	/*
	 * A system call put together from its halves. event->event is the half at which it stands (its
	 * exit, or its enter with the stamp of the gap or end that cut it short), event->decoded is the
	 * whole call (probes__decode_call).
	 */
	int (*call)(struct out *out, const struct sink_event *event, const struct weir_call *call);
	int (*watermark)(struct out *out, uint64_t watermark_ns, int64_t wall_ns,
			 enum weir_order order);
};

/* By --format's name; NULL: no such sink. */
const struct sink_ops *sink__find(const char *name);

/* One JSON object, no newline: as the --ledger file and the closing line have it. */
struct sink_ledger_extra {
	uint64_t self_cpu_ns;
	/* per-source infos, `n` of them */
	const struct weir_source_info *sources;
	uint32_t n;
	bool two_lines; /* as text: for a terminal, which would break it anywhere */
	bool is_event;	/* as JSON: among the lines of a trace, so it says what it is */
};
int sink__ledger_json(struct out *out, const struct weir_ledger *ledger,
		      const struct sink_ledger_extra *extra);
/* The same for people: one line, or two; no newline at the end. */
int sink__ledger_text(struct out *out, const struct weir_ledger *ledger,
		      const struct sink_ledger_extra *extra);

#endif /* WEIR_SINK_H */
