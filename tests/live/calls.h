/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * calls.h - numbered calls as a load, and a stream whose consumer knows what it must look like.
 *
 * The load is a child with a thread on each CPU that makes a system call which does not exist, with
 * numbers and a checksum for arguments: each record can be told from all others, and from half of two.
 * One test at a time.
 */
#ifndef WEIR_TESTS_CALLS_H
#define WEIR_TESTS_CALLS_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <sys/types.h>

#include <weir/weir.h>

#include "others.h"
#include "source/cpus.h"

#define NO_CALL	  4094 /* not that of load/pinned.c */
#define FILTER	  "id == 4094"
#define LOOPS_MAX 64
#define POLL_MS	  20

extern struct cpus online;
extern uint32_t first_cpu, last_cpu;
extern char why[512]; /* a refusal's sentence */

/* ---- the load ---- */

/* A loop on each CPU, which waits for let_go(). each: so many calls, and 0: until end_load(). */
pid_t start_load(uint64_t each, unsigned burst);
void let_go(void);
bool has_ended(pid_t pid);
void end_load(pid_t pid);
uint64_t calls_made(void);

/* In this thread: bind it to a CPU, make the n-th call of a loop. */
void pin(uint32_t cpu);
void call(uint64_t loop, uint64_t n);

/* ---- what came ---- */

struct seen {
	struct weir_stream *stream;
	uint64_t records, steps_back, behind_watermark, corrupt, twice, foreign;
	uint64_t by_event[2];
	uint64_t last_ns, watermark_ns;
	uint64_t next[LOOPS_MAX]; /* by loop: the least number that has not come */
	uint64_t gaps[WEIR_LOST_CAUSES], lost[WEIR_LOST_CAUSES];
	enum weir_order order;
	bool check_calls; /* records are sys_enter of our call, in the order of their numbers */
	struct others_event payload; /* of the last foreign record, and its stamp */
	uint64_t foreign_ns;
	uint32_t len;
};

struct weir_stream *new_stream(struct seen *seen);

/* raw_syscalls:sys_enter of our call, as "tp". */
extern const struct weir_perf_event calls;
void add_calls(struct weir_stream *stream, size_t ring_bytes, bool overwrite);

void poll_to_the_end(struct weir_stream *stream, pid_t load);

/* The end of every test: the account closes, nothing is late (G1, G2, G4). Frees the stream. */
struct weir_ledger close_stream(struct seen *seen);

int set_up(void **state);
int unbind(void **state);
#define CASE(fn) cmocka_unit_test_setup(fn, unbind)

#endif /* WEIR_TESTS_CALLS_H */
