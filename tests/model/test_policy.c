// SPDX-License-Identifier: BSD-2-Clause
/*
 * test_policy.c - what the caller may choose: batches, what becomes of late records, a budget for each
 * poll and how often the watermark is told (G1, G2, G4, O5, O15, W2, W3).
 */
#include <errno.h>
#include <stdlib.h>

#include "mix.h"

#define GRACE 1000

/* Two rings by waiting; the second has one that comes too late. */
static struct mix *with_a_late_one(const struct mix_opts *opts)
{
	struct mix *m = mix__new(opts);
	struct out_emit emit;
	int i;

	for (i = 0; i < 2; i++)
		mix__add(m, &(struct mix_ring){.kind = i ? MIX_RINGBUF : MIX_PERF,
					       .fence = WEIR_FENCE_GRACE,
					       .grace_ns = GRACE,
					       .counted = true});
	mix__at(m, 10000);
	out_emit__begin(&emit, m->sources[1].outside, &(struct out_what){.len = 8});
	out_emit__run(&emit, OUT_RESERVE);
	mix__at(m, 10100);
	out__put_now(m->sources[0].outside, 8);
	mix__poll_at(m, 12000);
	mix__at(m, 12100);
	out__put_now(m->sources[0].outside, 8);
	out_emit__run(&emit, OUT_DONE);
	return m;
}

/* W2, O5: out of order, flagged, counted, and how late. */
static void w2_deliver(void **state)
{
	struct mix *m = with_a_late_one(&(struct mix_opts){.late = WEIR_LATE_DELIVER});

	mix__poll_at(m, 14000);
	mix__expect(m, "10100#0 10000#1! 12100#0");
	assert_int_equal(mix__account(m, 1).late, 1);
	assert_int_equal(mix__ledger(m).lateness.max_ns, 12000 - GRACE - 2 - 10000);
	assert_int_equal(mix__ledger(m).lag.max_ns, 14000 - 10000);
	mix__end(m);
}

/* G4: dropped is lost, with a cause, told as a gap, and the sum closes; a poll counts what came. */
static void w2_drop(void **state)
{
	struct mix *m = with_a_late_one(&(struct mix_opts){.late = WEIR_LATE_DROP});

	assert_int_equal(mix__poll_at(m, 14000), 2);
	mix__expect(m, "10100#0 (9999,10000]#1*1! 12100#0");
	assert_int_equal(mix__account(m, 1).lost[WEIR_LOST_LATE], 1);
	assert_int_equal(mix__account(m, 1).delivered, 0);
	/* Of what came out, both times: not of what did not. */
	assert_int_equal(mix__ledger(m).lag.max_ns, 12000 - 10100);
	assert_int_equal(mix__ledger(m).lag.p50_ns, 12000 - 10100);
	mix__end(m);
}

static void w2_drop_in_batches(void **state)
{
	const struct mix_opts opts = {.late = WEIR_LATE_DROP, .batch = true};
	struct mix *m = with_a_late_one(&opts);

	assert_int_equal(mix__poll_at(m, 14000), 2);
	mix__expect(m, "10100#0 (9999,10000]#1*1! 12100#0");
	mix__end(m);
}

/* The poll that meets it fails, and so does each one after, and nothing of it came. */
static void w2_fail(void **state)
{
	struct mix *m = with_a_late_one(&(struct mix_opts){.late = WEIR_LATE_FAIL});
	uint64_t w_ns = mix__watermark(m);
	int i;

	for (i = 0; i < 5; i++) {
		assert_int_equal(mix__poll_at(m, m->sim.now_ns + 1000), -ETIME);
		assert_int_equal(mix__watermark(m), w_ns);
	}
	assert_int_equal(mix__flush(m), -ETIME);
	mix__expect(m, "10100#0");
	assert_int_equal(mix__account(m, 1).pending, 1);
	assert_int_equal(mix__close(m), -ETIME);
	mix__free(m);
}

/* W3: ring 0 has three budgets' worth, ring 1 has 105: nothing above 105 is told before it is out. */
static void w3_nothing_above_105(void **state)
{
	struct mix *m = mix__new(&(struct mix_opts){.poll_budget = 10});
	int i;

	mix__perf(m);
	mix__ringbuf(m);
	m->dishonest = true;
	mix__at(m, 1);
	for (i = 0; i < 30; i++)
		out__put(m->sources[0].outside, 100 + (uint64_t)i);
	out__put(m->sources[1].outside, 105);
	mix__at(m, 1000);
	for (i = 0; i < 4; i++) {
		assert_int_equal(mix__poll(m), i < 3 ? 10 : 1);
		assert_true(m->sources[1].delivered || mix__watermark(m) < 105);
		assert_true(mix__watermark(m) <= 1000);
	}
	assert_int_equal(m->nout, 31);
	mix__poll_at(m, 2000);
	assert_int_equal(mix__watermark(m), 1998);
	mix__end(m);
}

/* W3, O12: it ends among equal stamps: these are not told as complete, nor late when they come. */
static void w3_ends_among_equal_stamps(void **state)
{
	struct mix *m = mix__new(&(struct mix_opts){.poll_budget = 7});
	int i;

	for (i = 0; i < 4; i++)
		mix__add(m, &(struct mix_ring){.kind = (enum mix_kind)(i % 3)});
	m->dishonest = true;
	for (i = 0; i < 60; i++) {
		struct mix_source *s = &m->sources[i % 4];

		if (s->numbered)
			sim__put(s->numbered, 500);
		else
			out__put(s->outside, 500);
	}
	mix__at(m, 1000);
	for (i = 0; i < 9; i++) {
		mix__poll(m);
		assert_true(mix__watermark(m) < 500 || m->nout == 60);
	}
	assert_int_equal(m->nout, 60);
	assert_int_equal(mix__ledger(m).total.late, 0);
	mix__end(m);
}

/* O25: one more of these turns up where nothing proves that none does: before them, so it is late. */
static void o25_one_more_of_equal_stamps(void **state)
{
	struct mix *m = mix__new(&(struct mix_opts){.poll_budget = 2});
	int i;

	for (i = 0; i < 2; i++)
		mix__add(m, &(struct mix_ring){.kind = MIX_PERF, .fence = WEIR_FENCE_GRACE});
	mix__feed(m, "500#0 500#1 500#1 500#1");
	mix__poll_at(m, 1000);
	mix__expect(m, "500#0 500#1");
	mix__feed(m, "500#0");
	mix__poll_at(m, 1001);
	mix__poll_at(m, 1002);
	mix__expect(m, "500#0! 500#1 500#1");
	mix__end(m);
}

/* W3, L1: gaps stand where they do, whatever the budget; flush and close know of none. */
static void w3_gaps_and_flush(void **state)
{
	struct mix *m = mix__new(&(struct mix_opts){.poll_budget = 3});
	struct out_ring *ring = mix__perf(m);
	int i;

	for (i = 0; i < 40; i++) {
		mix__pass(m, 10);
		out__put_now(ring, 8);
		if (i % 4 == 3)
			out__refuse(ring, 2);
	}
	mix__poll_at(m, m->sim.now_ns + 100);
	assert_int_equal(m->records, 3);
	mix__poll(m);
	assert_int_equal(mix__flush(m), 0);
	assert_int_equal(m->sources[0].delivered, 40);
	mix__end(m);
}

/* Not more often than asked for; in between it moves all the same, and what was to retire does. */
static void on_retire(void *arg, uint64_t stamp_ns)
{
	(void)stamp_ns;
	++*(int *)arg;
}

static void w_interval(void **state)
{
	struct mix *m = mix__new(&(struct mix_opts){.watermark_interval_ns = 1000});
	uint64_t told = 0, before = 0;
	int retired = 0, i;

	mix__perf(m);
	for (i = 1; i <= 200; i++) {
		mix__at(m, 100 * (uint64_t)i);
		out__put_now(m->sources[0].outside, 8);
		assert_int_equal(weir_stream__retire(m->stream, m->sim.now_ns, on_retire, &retired),
				 0);
		mix__pass(m, 50);
		mix__poll(m);
		assert_int_equal(mix__watermark(m), m->sim.now_ns - 2);
		assert_int_equal(retired, i);
		told += m->announced_ns != before;
		before = m->announced_ns;
	}
	assert_in_range(told, 18, 21);
	mix__end(m);
}

/* Order, sizes, and views that are all there at once: of records in place, wrapped, held, and gaps. */
static void batches(void **state)
{
	struct mix *m = mix__new(&(struct mix_opts){.batch = true});
	int i;

	for (i = 0; i < 6; i++)
		mix__add(m, &(struct mix_ring){.kind = (enum mix_kind)(i % 3), .counted = true});
	for (i = 0; i < 6000; i++) {
		struct mix_source *s = &m->sources[i % 6];

		mix__pass(m, 5);
		m->grace.least_ns = i / 500 % 2 ? 5000 : 0;
		if (s->numbered)
			sim__put_now(s->numbered, (uint32_t)i % 90);
		else
			out__put_now(s->outside, 8 + (uint32_t)i % 90);
		if (i % 100 == 50 && s->outside)
			out__refuse(s->outside, 1);
		if (i % 150 == 149)
			mix__poll(m);
	}
	mix__poll_at(m, m->sim.now_ns + 10000);
	assert_int_equal(m->largest_batch, WEIR_BATCH_MAX);
	assert_true(m->batches < m->nout / 5);
	mix__end(m);
}

static int fail_at_every_fifth(struct mix *m, const struct weir_event *event)
{
	(void)event;
	return m->nout % 5 == 0 ? -EIO : 0;
}

/* An error ends the poll behind that batch; each event comes once, in order, and none is late. */
static void batches_that_fail(void **state)
{
	struct mix *m = mix__new(&(struct mix_opts){.batch = true});
	int i, failed = 0;

	for (i = 0; i < 3; i++)
		mix__add(m, &(struct mix_ring){.kind = (enum mix_kind)i, .counted = true});
	m->on_event = fail_at_every_fifth;
	for (i = 0; i < 3000; i++) {
		struct mix_source *s = &m->sources[i % 3];

		mix__pass(m, 5);
		if (s->numbered)
			sim__put_now(s->numbered, 8);
		else
			out__put_now(s->outside, 8);
		if (i % 37 == 0 && s->outside)
			out__refuse(s->outside, 1);
		if (i % 100 == 99)
			failed += mix__poll(m) == -EIO;
	}
	assert_true(failed > 5);
	assert_int_equal(mix__ledger(m).total.late, 0);
	m->on_event = NULL;
	mix__end(m);
}

static int fail_once(struct mix *m, const struct weir_event *event)
{
	(void)event;
	return m->nout == 3 ? -EIO : 0;
}

/* G1: behind the place where a poll was stopped is late too, and goes by the policy. */
static void late_behind_a_stop(enum weir_late_policy late)
{
	struct mix *m = mix__new(&(struct mix_opts){.late = late});

	mix__perf(m);
	m->on_event = fail_once;
	mix__feed(m, "10#0 20#0 30#0 40#0");
	assert_int_equal(mix__poll_at(m, 100), -EIO);
	mix__feed(m, "25#0");
	mix__poll_at(m, 200);
	if (late == WEIR_LATE_DELIVER)
		mix__expect(m, "10#0 20#0 30#0 25#0! 40#0");
	else if (late == WEIR_LATE_DROP)
		mix__expect(m, "10#0 20#0 30#0 (24,25]#0*1! 40#0");
	else
		mix__expect(m, "10#0 20#0 30#0");
	if (late != WEIR_LATE_FAIL)
		mix__end(m);
	else
		mix__free(m);
}

static void o24_late_behind_a_stop(void **state)
{
	late_behind_a_stop(WEIR_LATE_DELIVER);
	late_behind_a_stop(WEIR_LATE_DROP);
	late_behind_a_stop(WEIR_LATE_FAIL);
}

/* O15: beyond the clock is at once and flagged, in a batch as well, with each policy. */
static void o15_beyond_the_clock(void **state)
{
	int batch;

	for (batch = 0; batch < 2; batch++) {
		struct mix *m = mix__new(&(struct mix_opts){.batch = batch});

		mix__perf(m);
		mix__ringbuf(m);
		mix__feed(m, "10#0 18446744073709551615#0 3600000000000#1 0#1 20#1");
		mix__poll_at(m, 100);
		mix__poll_at(m, 200);
		mix__expect(m, "18446744073709551615#0^ 3600000000000#1^ 0#1 10#0 20#1");
		mix__end(m);
	}
}

/* Waiting gaps that have no room are joined; with one whose number is unknown it is unknown. */
static void g5_joined_gaps(void **state)
{
	struct mix *m = mix__new(&(struct mix_opts){.memory_bytes = 64 << 10});
	struct out_ring *ring = mix__perf(m);
	const struct {
		uint32_t type;
		uint16_t misc, size;
		uint64_t rest[2];
	} one = {.type = 99, .size = 24}, all = {.type = 9, .size = 4};
	struct out_emit emit;
	uint64_t i;
	int k;

	m->blind = true;
	mix__poll_at(m, 1000);
	/* A writer on another CPU stands inside: no ticket ends, all gaps wait. */
	mix__ringbuf(m);
	out_emit__begin(&emit, m->sources[1].outside, &(struct out_what){.len = 8});
	out_emit__run(&emit, OUT_RESERVE);
	for (k = 0; k < 200; k++) {
		mix__pass(m, 10);
		for (i = 0; i < 50; i++)
			assert_true(out__put_raw(ring, &one, sizeof(one)));
		if (k == 150)
			assert_true(out__put_raw(ring, &all, sizeof(all)));
		mix__poll(m);
	}
	out_emit__run(&emit, OUT_DONE);
	mix__poll_at(m, m->sim.now_ns + 10);
	mix__poll_at(m, m->sim.now_ns + 10);
	assert_true(m->nout < 10000);
	assert_int_equal(m->sources[0].told[WEIR_LOST_BROKEN], 10000);
	assert_true(m->sources[0].told_unknown[WEIR_LOST_BROKEN]);
	mix__end(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(w2_deliver),
		cmocka_unit_test(w2_drop),
		cmocka_unit_test(w2_drop_in_batches),
		cmocka_unit_test(w2_fail),
		cmocka_unit_test(w3_nothing_above_105),
		cmocka_unit_test(w3_ends_among_equal_stamps),
		cmocka_unit_test(o25_one_more_of_equal_stamps),
		cmocka_unit_test(w3_gaps_and_flush),
		cmocka_unit_test(w_interval),
		cmocka_unit_test(batches),
		cmocka_unit_test(batches_that_fail),
		cmocka_unit_test(o24_late_behind_a_stop),
		cmocka_unit_test(o15_beyond_the_clock),
		cmocka_unit_test(g5_joined_gaps),
	};
	int r = cmocka_run_group_tests_name("model: policies", tests, NULL, NULL);

	return r ? 1 : 0;
}
