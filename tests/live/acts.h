/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * acts.h - a child acts, and the probes' records of that are kept to be looked at.
 *
 * The acts are done by a child, since the test is the reader, whose own events are left out. They
 * tell what they know (process numbers) through shared memory. One test at a time.
 */
#ifndef WEIR_TESTS_ACTS_H
#define WEIR_TESTS_ACTS_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include <weir/weir.h>

#include "probes/loaded.h"

#define EVENT_BYTES   (1u << 20)
#define CALL_LIMIT_MS 10000
#define TRUE_PATH     "/bin/true"

struct record {
	uint64_t stamp;
	uint16_t type;
	uint32_t len;
	void *payload;
};

/* What the acting child writes and the test reads. */
struct told {
	pid_t actor, child, other;
	int ready, go;
	char script[32];
};

struct test {
	struct weir_stream *stream;
	struct probes *probes;
	struct record *records;
	size_t n, seeds;
	struct weir_seed own_seed;
	char own_exe[256];
	struct told *told;
	char err[512];
};
extern struct test t;

int set_up(void **state);
int tear_down(void **state);
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

/* Trace what is named by pairs of group and name, of one process or of all (pid: NULL). */
void open_all(const char *const *what, const uint32_t *pid, size_t event_bytes);
#define OPEN(pid, ...) open_all((const char *const[]){__VA_ARGS__, NULL}, pid, EVENT_BYTES)

/* The end of every test: after detach, nothing is missing and nothing is left (G4). */
void close_all(void);

struct weir_account account(void);

/* Events of ours that were left out of one class of rings. */
uint64_t own_events(const char *class);

/* Start a child that does `act` and ends; finish: it has, in peace, and its records are here. */
pid_t start(void (*act)(void));
void finish(pid_t pid);
void run(void (*act)(void));	      /* both */
void start_to_end(void (*act)(void)); /* nothing is read meanwhile */

/* In the child: what has to work out; a child of its own; the same to its end. */
void must(bool good);
pid_t fork_child(void (*act)(void));
pid_t run_child(void (*act)(void));
void wait_for(volatile int *flag);

/* Whom a record is about. */
const struct weir_task_id *who(const struct record *r);

/* The first record of a type about a thread, from position `from` on; fails if there is none. */
const struct record *find_from(size_t from, enum weir_type type, pid_t tid);
const void *find(enum weir_type type, pid_t tid); /* its payload, from the start */
size_t count(enum weir_type type, pid_t tid);

#endif /* WEIR_TESTS_ACTS_H */
