// SPDX-License-Identifier: BSD-2-Clause
/*
 * calls.c: each half of a call that goes in comes out once, with its other half or with the reason why
 * not; and nothing is guessed across a gap.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "state/calls.h"

#include <errno.h>

#define NR_READ	 0
#define NR_WRITE 1
#define NR_NONE	 0xffffffffu

/* ---- a heap that fails on demand (--wrap=calloc) ---------------------------------------------- */

static int allocations_left = -1; /* -1: as many as you like */

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
	if (!allocations_left) {
		errno = ENOMEM;
		return NULL;
	}
	if (allocations_left > 0)
		allocations_left--;
	return __real_calloc(n, size);
}

/* ---- what comes out --------------------------------------------------------------------------- */

struct got {
	enum weir_call_end end;
	uint64_t enter_seq, exit_seq; /* 0: none; the first number that goes in is 1 */
	uint64_t stamp_ns;
	uint32_t source, nr, bytes;
	uint8_t mark;
	bool found;
};

#define GOT_MAX 200000

static struct got *got;
static size_t nr_got;
static int error_of_callback;

static int on_call(void *ctx, const struct weir_call *call)
{
	struct got *g = &got[nr_got++];

	assert_ptr_equal(ctx, &nr_got);
	assert_true(nr_got < GOT_MAX);
	*g = (struct got){.end = call->end,
			  .stamp_ns = call->stamp_ns,
			  .source = call->source,
			  .mark = call->mark,
			  .found = call->found};
	assert_true(call->enter || call->exit);
	if (call->enter) {
		const struct weir_sys_enter *enter = call->enter->data;

		g->enter_seq = call->enter->seq;
		g->nr = enter->nr;
		g->bytes = call->enter->len;
		/* The copy that was kept is the whole payload. */
		for (uint32_t i = sizeof(*enter); i < call->enter->len; i++)
			assert_int_equal(((const uint8_t *)enter)[i], (uint8_t)(g->enter_seq + i));
	}
	if (call->exit)
		g->exit_seq = call->exit->seq;
	assert_int_equal(!!call->enter,
			 call->end != WEIR_CALL_BORN && call->end != WEIR_CALL_NO_ENTER);
	assert_int_equal(!!call->exit, call->end <= WEIR_CALL_NO_ENTER);
	return error_of_callback;
}

/* ---- what goes in ----------------------------------------------------------------------------- */

static struct calls *calls;
static uint64_t seq, now_ns, halves_fed;
static uint32_t source;

static int setup(void **state)
{
	allocations_left = -1;
	error_of_callback = 0;
	nr_got = 0;
	seq = now_ns = halves_fed = source = 0;
	got = calloc(GOT_MAX, sizeof(*got));
	calls = calls__new(4, on_call, &nr_got);
	return calls && got ? 0 : 1;
}

static int teardown(void **state)
{
	calls__free(calls);
	free(got);
	return 0;
}

static int feed(uint16_t type, const void *data, uint32_t len)
{
	struct weir_event event = {.stamp_ns = ++now_ns,
				   .seq = ++seq,
				   .data = data,
				   .len = len,
				   .source = source,
				   .type = type};
	/* Its own piece of heap, freed at once: what is kept has to be a copy. */
	void *copy = malloc(len ? len : 1);
	int err;

	halves_fed += type >= WEIR_T_SYS_ENTER;
	memcpy(copy, data, len);
	event.data = copy;
	err = calls__apply(calls, &event);
	free(copy);
	return err;
}

static int enter_with(uint32_t tid, uint32_t nr, uint32_t more)
{
	uint8_t bytes[sizeof(struct weir_sys_enter) + 4096];
	struct weir_sys_enter enter = {.id = {tid, tid}, .nr = nr};

	memcpy(bytes, &enter, sizeof(enter));
	for (uint32_t i = sizeof(enter); i < sizeof(enter) + more; i++)
		bytes[i] = (uint8_t)(seq + 1 + i);
	return feed(WEIR_T_SYS_ENTER, bytes, sizeof(enter) + more);
}

static int enter(uint32_t tid, uint32_t nr)
{
	return enter_with(tid, nr, 0);
}

static int leave(uint32_t tid, uint32_t nr)
{
	struct weir_sys_exit exit = {.id = {tid, tid}, .nr = nr};

	return feed(WEIR_T_SYS_EXIT, &exit, sizeof(exit));
}

static int forked(uint32_t parent, uint32_t child)
{
	struct weir_fork fork = {.parent = {parent, parent}, .child = {child, child}};

	return feed(WEIR_T_FORK, &fork, sizeof(fork));
}

static int execed(uint32_t tid, uint32_t old_tid)
{
	struct weir_exec exec = {.id = {tid, tid}, .old_tid = old_tid};

	return feed(WEIR_T_EXEC, &exec, sizeof(exec));
}

static int ended(uint32_t tid)
{
	struct weir_exit exit = {.id = {tid, tid}};

	return feed(WEIR_T_EXIT, &exit, sizeof(exit));
}

static int lost_in(uint32_t of, uint64_t lost, enum weir_bound bound)
{
	struct weir_gap gap = {.lost = lost, .bound = bound};
	struct weir_event event = {.stamp_ns = ++now_ns,
				   .kind = WEIR_KIND_GAP,
				   .data = &gap,
				   .len = sizeof(gap),
				   .source = of,
				   .mark = WEIR_MARK_LATE};

	return calls__apply(calls, &event);
}

#define GOT(i, the_end, the_enter, the_exit)                   \
	do {                                                   \
		assert_true(nr_got > (i));                     \
		assert_int_equal(got[i].end, the_end);         \
		assert_int_equal(got[i].enter_seq, the_enter); \
		assert_int_equal(got[i].exit_seq, the_exit);   \
	} while (0)

/* ---- each way to end -------------------------------------------------------------------------- */

static void test_returned(void **state)
{
	source = 1;
	assert_int_equal(enter_with(7, NR_READ, 300), 0);
	source = 2; /* it moved to another CPU */
	assert_int_equal(enter(8, NR_READ), 0);
	assert_int_equal(nr_got, 0);
	assert_int_equal(leave(7, NR_READ), 0);
	assert_int_equal(nr_got, 1);
	GOT(0, WEIR_CALL_RETURNED, 1, 3);
	assert_int_equal(got[0].stamp_ns, 3);
	assert_int_equal(got[0].source, 2);
	assert_int_equal(got[0].bytes, sizeof(struct weir_sys_enter) + 300);
	/* The same buffer holds a smaller one, and grows for a larger. */
	enter(7, NR_WRITE);
	leave(7, NR_WRITE);
	enter_with(7, NR_WRITE, 4000);
	leave(7, NR_WRITE);
	GOT(1, WEIR_CALL_RETURNED, 4, 5);
	GOT(2, WEIR_CALL_RETURNED, 6, 7);
	/* Once sigreturn has run, the kernel has forgotten which call it was. */
	enter(7, NR_WRITE);
	leave(7, NR_NONE);
	GOT(3, WEIR_CALL_RETURNED, 8, 9);
	assert_int_equal(nr_got, 4);
}

static int found(uint32_t tid, uint32_t nr, uint64_t stamp_ns)
{
	struct weir_sys_enter enter = {.id = {tid, tid}, .nr = nr};
	struct weir_event event = {.stamp_ns = stamp_ns,
				   .data = &enter,
				   .len = sizeof(enter),
				   .source = WEIR_SOURCE_NONE,
				   .type = WEIR_T_SYS_ENTER};

	return calls__found(calls, &event);
}

#define FOUND(i, the_end, the_exit)                   \
	do {                                          \
		GOT(i, the_end, 0, the_exit);         \
		assert_true(got[i].found);            \
		assert_int_equal(got[i].nr, NR_READ); \
	} while (0)

/* A call that was there before the stream, found at 10. */
static void test_found(void **state)
{
	assert_int_equal(found(7, NR_READ, 10), 0);
	now_ns = 10;
	leave(7, NR_READ);
	FOUND(0, WEIR_CALL_RETURNED, 1);
	enter(7, NR_READ);
	leave(7, NR_READ);
	GOT(1, WEIR_CALL_RETURNED, 2, 3);
	assert_false(got[1].found);
	found(8, NR_READ, 10);
	ended(8);
	FOUND(2, WEIR_CALL_NO_RETURN, 0);
	found(8, NR_READ, 10);
	lost_in(3, 1, WEIR_BOUND_EXACT);
	FOUND(3, WEIR_CALL_BROKEN, 0);
	found(8, NR_READ, 10);
	calls__finish(calls, 100);
	FOUND(4, WEIR_CALL_OPEN, 0);
	assert_int_equal(nr_got, 5);
}

/* The stream knows better: what lies before the look is of another call, and so is what does not fit. */
static void test_found_against_the_stream(void **state)
{
	found(7, NR_READ, 10);
	leave(7, NR_READ);
	GOT(0, WEIR_CALL_NO_ENTER, 0, 1);
	enter(7, NR_READ); /* this was what was found */
	leave(7, NR_READ);
	GOT(1, WEIR_CALL_RETURNED, 2, 3);
	assert_false(got[1].found);
	found(8, NR_READ, 10);
	now_ns = 10;
	leave(8, NR_WRITE);
	GOT(2, WEIR_CALL_NO_ENTER, 0, 4);
	leave(8, NR_READ);
	GOT(3, WEIR_CALL_NO_ENTER, 0, 5);
	assert_int_equal(nr_got, 4);
	allocations_left = 0;
	assert_int_equal(found(9, NR_READ, 10), -ENOMEM);
}

static void test_no_enter(void **state)
{
	leave(7, NR_READ);
	GOT(0, WEIR_CALL_NO_ENTER, 0, 1);
	/* Of another call than the one that is open: two halves are missing between. */
	enter(7, NR_READ);
	leave(7, NR_WRITE);
	GOT(1, WEIR_CALL_BROKEN, 2, 0);
	GOT(2, WEIR_CALL_NO_ENTER, 0, 3);
	/* Of another ABI. */
	enter(7, NR_READ);
	feed(WEIR_T_SYS_EXIT, &(struct weir_sys_exit){.id = {7, 7}, .abi = WEIR_ABI_32},
	     sizeof(struct weir_sys_exit));
	GOT(3, WEIR_CALL_BROKEN, 4, 0);
	GOT(4, WEIR_CALL_NO_ENTER, 0, 5);
	/* Stamped before it was entered: no time that a call can take. */
	now_ns = 100;
	enter(7, NR_READ);
	now_ns = 50;
	leave(7, NR_READ);
	GOT(5, WEIR_CALL_BROKEN, 6, 0);
	GOT(6, WEIR_CALL_NO_ENTER, 0, 7);
}

static void test_two_enters(void **state)
{
	enter(7, NR_READ);
	source = 3;
	enter(7, NR_READ);
	GOT(0, WEIR_CALL_BROKEN, 1, 0);
	assert_int_equal(got[0].source, 3); /* where the second stands */
	assert_int_equal(got[0].stamp_ns, 2);
	leave(7, NR_READ);
	GOT(1, WEIR_CALL_RETURNED, 2, 3);
}

static void test_no_return(void **state)
{
	enter(7, NR_READ);
	source = 9;
	ended(7);
	GOT(0, WEIR_CALL_NO_RETURN, 1, 0);
	assert_int_equal(got[0].source, 9);
	assert_int_equal(got[0].stamp_ns, 2);
	/* Its tid is free for another, that was never seen entering anything. */
	leave(7, NR_READ);
	GOT(1, WEIR_CALL_NO_ENTER, 0, 3);
	ended(8);
	assert_int_equal(nr_got, 2);
}

static void test_born(void **state)
{
	enter(7, NR_READ);
	forked(7, 8);
	leave(8, NR_READ);
	GOT(0, WEIR_CALL_BORN, 0, 3);
	leave(7, NR_READ);
	GOT(1, WEIR_CALL_RETURNED, 1, 4);
	/* Only the first. */
	leave(8, NR_READ);
	GOT(2, WEIR_CALL_NO_ENTER, 0, 5);
	/* One that begins elsewhere was let go without returning. */
	forked(7, 8);
	enter(8, NR_READ);
	leave(8, NR_READ);
	leave(8, NR_READ);
	GOT(3, WEIR_CALL_RETURNED, 7, 8);
	GOT(4, WEIR_CALL_NO_ENTER, 0, 9);
	/* A tid that comes again while its last owner is in a call: the end of that was lost. */
	enter(8, NR_READ);
	forked(7, 8);
	GOT(5, WEIR_CALL_BROKEN, 10, 0);
	leave(8, NR_READ);
	GOT(6, WEIR_CALL_BORN, 0, 12);
}

/* The one that execs goes on as the leader; the leader is no more, and nor are the others. */
static void test_exec_by_another_thread(void **state)
{
	enter(7, NR_READ);
	enter(9, NR_WRITE);
	execed(7, 9);
	GOT(0, WEIR_CALL_NO_RETURN, 1, 0);
	leave(7, NR_WRITE);
	GOT(1, WEIR_CALL_RETURNED, 2, 4);
	leave(9, NR_WRITE);
	GOT(2, WEIR_CALL_NO_ENTER, 0, 5);
	/* By one that nobody knows, over one that nobody knows. */
	execed(20, 21);
	leave(20, NR_WRITE);
	GOT(3, WEIR_CALL_NO_ENTER, 0, 7);
	/* By the leader: nothing changes hands. */
	enter(7, NR_READ);
	execed(7, 7);
	leave(7, NR_READ);
	GOT(4, WEIR_CALL_RETURNED, 8, 10);
}

static void test_gaps(void **state)
{
	source = 1;
	enter(7, NR_READ);
	source = 2;
	enter(8, NR_READ);
	source = 1;
	enter(9, NR_READ);
	lost_in(1, 0, WEIR_BOUND_EXACT); /* nothing, and sure of it */
	assert_int_equal(nr_got, 0);
	lost_in(1, 5, WEIR_BOUND_EXACT);
	assert_int_equal(nr_got, 2);
	GOT(0, WEIR_CALL_BROKEN, 1, 0);
	GOT(1, WEIR_CALL_BROKEN, 3, 0);
	assert_int_equal(got[0].stamp_ns, now_ns);
	assert_int_equal(got[0].source, 1);
	assert_int_equal(got[0].mark, WEIR_MARK_LATE);
	leave(8, NR_READ);
	GOT(2, WEIR_CALL_RETURNED, 2, 4);
	leave(9, NR_READ);
	GOT(3, WEIR_CALL_NO_ENTER, 0, 5);
	/* Of the whole machine; and one that may be of nothing at all. */
	enter(7, NR_READ);
	source = 2;
	enter(8, NR_READ);
	lost_in(WEIR_SOURCE_NONE, 0, WEIR_BOUND_UNKNOWN);
	GOT(4, WEIR_CALL_BROKEN, 6, 0);
	GOT(5, WEIR_CALL_BROKEN, 7, 0);
	assert_int_equal(nr_got, 6);
}

static void test_finish(void **state)
{
	source = 2;
	enter(9, NR_READ);
	source = 1;
	enter(7, NR_READ);
	enter(8, NR_READ);
	leave(7, NR_READ);
	assert_int_equal(calls__finish(calls, 99), 0);
	assert_int_equal(nr_got, 3);
	GOT(1, WEIR_CALL_OPEN, 1, 0);
	GOT(2, WEIR_CALL_OPEN, 3, 0);
	/* Both have one stamp: only the whole machine's place keeps them in order. */
	assert_int_equal(got[1].stamp_ns, 99);
	assert_int_equal(got[1].source, WEIR_SOURCE_NONE);
	assert_int_equal(got[2].source, WEIR_SOURCE_NONE);
	assert_int_equal(calls__evicted(calls), 0);
}

static void test_eviction(void **state)
{
	for (uint32_t tid = 10; tid < 14; tid++)
		enter(tid, NR_READ);
	assert_int_equal(nr_got, 0);
	source = 5;
	enter(14, NR_READ);
	GOT(0, WEIR_CALL_OPEN, 1, 0);
	assert_int_equal(got[0].stamp_ns, 5);
	assert_int_equal(got[0].source, 5);
	assert_int_equal(calls__evicted(calls), 1);
	/* One that has gone by itself makes room. */
	leave(11, NR_READ);
	enter(15, NR_READ);
	assert_int_equal(calls__evicted(calls), 1);
	leave(10, NR_READ);
	GOT(1, WEIR_CALL_RETURNED, 2, 6);
	GOT(2, WEIR_CALL_NO_ENTER, 0, 8);
	assert_int_equal(nr_got, 3);
}

static void test_errors(void **state)
{
	struct weir_sys_enter half = {.id = {7, 7}};

	for (uint16_t type = WEIR_T_FORK; type <= WEIR_T_SYS_EXIT; type++) {
		bool means_something = type <= WEIR_T_EXIT || type >= WEIR_T_SYS_ENTER;

		assert_int_equal(feed(type, &half, 8), means_something ? -EBADMSG : 0);
	}
	assert_int_equal(nr_got, 0);
	enter(7, NR_READ);
	error_of_callback = -EPIPE;
	assert_int_equal(leave(7, NR_READ), -EPIPE);
	enter(7, NR_READ);
	assert_int_equal(lost_in(0, 1, WEIR_BOUND_EXACT), -EPIPE);
	enter(7, NR_READ);
	assert_int_equal(calls__finish(calls, 9), -EPIPE);
}

/* Without memory a call comes out at once, and its exit alone. */
static void test_no_memory(void **state)
{
	source = 3;
	allocations_left = 0; /* for the thread */
	assert_int_equal(enter_with(7, NR_READ, 40), -ENOMEM);
	GOT(0, WEIR_CALL_OPEN, 1, 0);
	assert_int_equal(got[0].source, 3);
	assert_int_equal(got[0].stamp_ns, 1);
	assert_int_equal(leave(7, NR_READ), 0);
	GOT(1, WEIR_CALL_NO_ENTER, 0, 2);
	allocations_left = 1; /* the thread, and none for the payload */
	assert_int_equal(enter_with(7, NR_READ, 40), -ENOMEM);
	GOT(2, WEIR_CALL_OPEN, 3, 0);
	allocations_left = 0;
	assert_int_equal(forked(7, 8), -ENOMEM);
	allocations_left = -1;
	enter(7, NR_READ);
	leave(7, NR_READ);
	GOT(3, WEIR_CALL_RETURNED, 5, 6);
	for (int left = 0; left < 2; left++) {
		allocations_left = left;
		errno = 0;
		assert_null(calls__new(0, on_call, NULL));
		assert_int_equal(errno, ENOMEM);
	}
	allocations_left = -1;
}

/* ---- anything, against a model that searches and never forgets -------------------------------- */

#define TIDS	12
#define SOURCES 3

struct model {
	struct {
		uint64_t enter; /* seq; 0: not in a call */
		uint32_t nr, source;
		bool newborn;
	} of[TIDS];
	struct got want[64]; /* of one step */
	size_t nr_want;
};

static uint64_t random_state;

static uint32_t below(uint32_t n)
{
	uint64_t z = (random_state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return (uint32_t)((z ^ (z >> 31)) % n);
}

static void expect(struct model *m, enum weir_call_end end, uint64_t enter_seq, uint64_t exit_seq)
{
	m->want[m->nr_want++] =
		(struct got){.end = end, .enter_seq = enter_seq, .exit_seq = exit_seq};
}

static void cut_short(struct model *m, uint32_t tid, enum weir_call_end end)
{
	if (m->of[tid].enter)
		expect(m, end, m->of[tid].enter, 0);
	m->of[tid].enter = 0;
}

/* Oldest first. */
static void cut_all_short(struct model *m, uint32_t of_source)
{
	for (;;) {
		uint32_t oldest = TIDS;

		for (uint32_t t = 0; t < TIDS; t++)
			if (m->of[t].enter &&
			    (of_source == WEIR_SOURCE_NONE || m->of[t].source == of_source) &&
			    (oldest == TIDS || m->of[t].enter < m->of[oldest].enter))
				oldest = t;
		if (oldest == TIDS)
			return;
		cut_short(m, oldest, WEIR_CALL_BROKEN);
	}
}

static void model_enter(struct model *m, uint32_t tid, uint32_t nr)
{
	cut_short(m, tid, WEIR_CALL_BROKEN);
	m->of[tid].enter = seq + 1;
	m->of[tid].nr = nr;
	m->of[tid].source = source;
	m->of[tid].newborn = false;
}

static void model_leave(struct model *m, uint32_t tid, uint32_t nr)
{
	bool newborn = m->of[tid].newborn;

	m->of[tid].newborn = false;
	if (m->of[tid].enter && (nr == NR_NONE || nr == m->of[tid].nr)) {
		expect(m, WEIR_CALL_RETURNED, m->of[tid].enter, seq + 1);
		m->of[tid].enter = 0;
		return;
	}
	cut_short(m, tid, WEIR_CALL_BROKEN);
	expect(m, newborn ? WEIR_CALL_BORN : WEIR_CALL_NO_ENTER, 0, seq + 1);
}

static void model_fork(struct model *m, uint32_t child)
{
	cut_short(m, child, WEIR_CALL_BROKEN);
	m->of[child].newborn = true;
}

static void model_exec(struct model *m, uint32_t tid, uint32_t old_tid)
{
	if (tid == old_tid)
		return;
	cut_short(m, tid, WEIR_CALL_NO_RETURN);
	m->of[tid] = m->of[old_tid];
	memset(&m->of[old_tid], 0, sizeof(m->of[old_tid]));
}

static void model_end(struct model *m, uint32_t tid)
{
	cut_short(m, tid, WEIR_CALL_NO_RETURN);
	m->of[tid].newborn = false;
}

static void random_step(struct model *m)
{
	static const uint32_t nrs[] = {NR_READ, NR_WRITE, NR_READ, NR_NONE};
	uint32_t tid = below(TIDS), other = below(TIDS), nr = nrs[below(3)];

	source = below(SOURCES);
	switch (below(20)) {
	case 0:
		model_fork(m, tid);
		forked(other, tid);
		break;
	case 1:
		model_exec(m, tid, other);
		execed(tid, other);
		break;
	case 2:
		model_end(m, tid);
		ended(tid);
		break;
	case 3:
		cut_all_short(m, source);
		lost_in(source, 1, WEIR_BOUND_AT_MOST);
		break;
	case 4:
		if (below(10))
			break;
		cut_all_short(m, WEIR_SOURCE_NONE);
		lost_in(WEIR_SOURCE_NONE, 1, WEIR_BOUND_EXACT);
		break;
	case 5 ... 12:
		model_enter(m, tid, nr);
		enter_with(tid, nr, below(64));
		break;
	default:
		nr = m->of[tid].enter && below(8) ? m->of[tid].nr : nrs[below(4)];
		model_leave(m, tid, nr);
		leave(tid, nr);
	}
}

static void test_like_the_model(void **state)
{
	struct model m = {0};
	size_t seen = 0;

	calls__free(calls);
	calls = calls__new(0, on_call, &nr_got);
	random_state = 20260101;
	for (int step = 0; step < 100000; step++) {
		m.nr_want = 0;
		random_step(&m);
		assert_int_equal(nr_got - seen, m.nr_want);
		for (size_t i = 0; i < m.nr_want; i++)
			GOT(seen + i, m.want[i].end, m.want[i].enter_seq, m.want[i].exit_seq);
		seen = nr_got;
	}
	assert_int_equal(calls__evicted(calls), 0);
}

/* With a cap of 4 and a heap that often fails: whatever else, each half comes out once. */
static void test_each_half_once(void **state)
{
	struct model ignored = {0};
	static uint8_t times[200001]; /* by seq */
	uint64_t halves = 0, in;

	random_state = 4711;
	for (int step = 0; step < 100000; step++) {
		ignored.nr_want = 0;
		allocations_left = below(4) ? -1 : (int)below(3);
		random_step(&ignored);
	}
	allocations_left = -1;
	calls__finish(calls, now_ns);
	assert_true(calls__evicted(calls) > 100);
	for (size_t i = 0; i < nr_got; i++) {
		times[got[i].enter_seq]++;
		times[got[i].exit_seq]++;
		halves += !!got[i].enter_seq + !!got[i].exit_seq;
	}
	for (in = 1; in <= seq; in++)
		assert_in_range(times[in], 0, 1);
	assert_int_equal(halves, halves_fed);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_found),		T(test_found_against_the_stream),
		T(test_returned),	T(test_no_enter),
		T(test_two_enters),	T(test_no_return),
		T(test_born),		T(test_exec_by_another_thread),
		T(test_gaps),		T(test_finish),
		T(test_eviction),	T(test_errors),
		T(test_no_memory),	T(test_like_the_model),
		T(test_each_half_once),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	return r ? 1 : 0;
}
