/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * judge.h - does a trace keep what weir promises? Lines go in one by one, as numbers.
 *
 * Streaming: memory is bounded by the number of sources, not by the length of the trace. Pure: no
 * I/O, no clock, no JSON. What can be judged without the kernel's counters, and what it takes to
 * prove more, is told by `weir verify --help`.
 */
#ifndef WEIR_JUDGE_H
#define WEIR_JUDGE_H

#include <weir/event.h>

enum judge_kind {
	JUDGE_RECORD = 0,
	JUDGE_GAP,
	JUDGE_CLOCK_STEP,
	JUDGE_WATERMARK,
};

/* One line of a trace. Strings are borrowed during the call. */
struct judge_line {
	uint64_t no; /* line number, from 1 */
	enum judge_kind kind;
	uint64_t stamp_ns;
	const char *source; /* NULL: the whole machine */
	bool has_seq; /* not so: a gap whose records had no numbers, a call without its exit */
	uint64_t seq;
	struct weir_gap gap; /* seq_end is never 0 with has_seq */
	bool late, ahead;
	/*
	 * A whole system call: the line stands for its enter, too, whose source and number nobody is
	 * told. One without its exit has no number, and may have no source.
	 */
	bool entered;
};

struct judge_verdict {
	const char *promise; /* "G1 order", ... */
	uint64_t line;	     /* 0: of no line, but of the whole */
	char text[400];
};

/* What one source, or the whole, delivered and lost. */
struct judge_count {
	uint64_t events; /* delivered, with a number */
	uint64_t enters; /* delivered without one: of calls, so of no source */
	uint64_t gaps, late, ahead, watermarks;
	uint64_t lost[WEIR_LOST_CAUSES]; /* exact and at most */
	bool at_most[WEIR_LOST_CAUSES], unknown[WEIR_LOST_CAUSES];
};

struct judge;

struct judge *judge__new(void); /* NULL: no memory */
void judge__free(struct judge *judge);

/* Take the next line. false: it breaks a promise, *out says which. Nothing may be asked after that. */
bool judge__line(struct judge *judge, const struct judge_line *line, struct judge_verdict *out);

/*
 * The trace ends here: is every number of every source, from 0 on, delivered or in a gap? Not so
 * where a selection turned records away that had numbers. As many may be missing as there are enters.
 */
bool judge__complete(const struct judge *judge, struct judge_verdict *out);

const struct judge_count *judge__total(const struct judge *judge);

/* Source `index`, in order of appearance; NULL: no such. */
const struct judge_count *judge__source(const struct judge *judge, uint32_t index,
					const char **name);
/* By name; NULL: the trace has no line of it. */
const struct judge_count *judge__find(const struct judge *judge, const char *name);

/* Numbers of a source, from 0 on, that are neither delivered nor in a gap. */
uint64_t judge__missing(const struct judge *judge, const char *name);

#endif /* WEIR_JUDGE_H */
