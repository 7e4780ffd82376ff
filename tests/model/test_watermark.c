// SPDX-License-Identifier: BSD-2-Clause
/*
 * test_watermark.c - W1 to W5, retire, and the wall clock (G2, G3).
 *
 * W6 and W7 are about the process table, which has tests of its own.
 */
#include <errno.h>
#include <stdlib.h>

#include "model.h"

/* What retire() ran, in its order. */
struct retired {
	struct model *m;
	uint64_t stamps[64];
	uint64_t watermarks[64];
	uint64_t delivered[64];
	int n;
};

static void on_retire(void *arg, uint64_t stamp_ns)
{
	struct retired *r = arg;

	if (r->n < 64) {
		r->stamps[r->n] = stamp_ns;
		r->watermarks[r->n] = model__watermark(r->m);
		r->delivered[r->n] = r->m->oracle.nout;
	}
	r->n++;
}

static void retire(struct retired *r, uint64_t stamp_ns)
{
	int ran = r->n;

	assert_int_equal(weir_stream__retire(r->m->stream, stamp_ns, on_retire, r), 0);
	assert_int_equal(r->n, ran);
}

/* W1, G3. */
static void w1_idle_for_ever_after_100(void **state)
{
	struct model *m = model__with_rings(2);
	struct retired r = {.m = m};

	model__at(m, 100);
	sim__put_now(model__ring(m, 0), 8);
	model__poll_at(m, 110);
	model__expect(m, "100#0");
	retire(&r, 150);
	model__poll_at(m, 140);
	assert_int_equal(r.n, 0);
	model__poll_at(m, 160);
	assert_int_equal(r.n, 1);
	assert_int_equal(r.stamps[0], 150);
	model__poll_at(m, 1000);
	assert_int_equal(r.n, 1);
	model__end(m);
}

/* W2, G2: 120 was reserved in time: the watermark is at most 119 until it comes. */
static void w2_reserved_at_120(void **state)
{
	struct model *m = model__with_rings(2);
	struct sim_emit emit;

	model__at(m, 110);
	model__feed(m, "100#0 110#0");
	model__poll_at(m, 115);
	model__at(m, 120);
	sim_emit__begin(&emit, model__ring(m, 1), &(struct sim_what){0});
	sim_emit__run(&emit, SIM_FILL);
	model__at(m, 210);
	model__feed(m, "200#0 210#0");
	model__poll_at(m, 220);
	assert_in_range(model__watermark(m), 100, 119);
	model__at(m, 300);
	model__feed(m, "300#0");
	model__poll_at(m, 310);
	assert_in_range(model__watermark(m), 100, 119);
	sim_emit__run(&emit, SIM_DONE);
	model__poll_at(m, 320);
	model__expect(m, "100#0 110#0 120#1 200#0 210#0 300#0");
	model__end(m);
}

/* W2, G2: it was not: late, counted, and the watermark does not go back. */
static void w2_made_up_120(void **state)
{
	struct model *m = model__with_rings(2);

	model__at(m, 110);
	model__feed(m, "100#0 110#0");
	model__poll_at(m, 115);
	model__at(m, 210);
	model__feed(m, "200#0 210#0");
	model__poll_at(m, 220);
	model__at(m, 300);
	model__feed(m, "300#0");
	model__poll_at(m, 310);
	model__feed(m, "120#1");
	model__poll_at(m, 320);
	assert_int_equal(model__watermark(m), 318);
	model__expect(m, "100#0 110#0 200#0 210#0 300#0 120#1!");
	assert_int_equal(model__ledger(m).total.late, 1);
	assert_int_equal(model__source(m, 1).account.late, 1);
	model__end(m);
}

/* W3: the consumer takes 100 a poll; the oracle sees a W that is announced above what waits. */
static int take_100(struct model *m, const struct weir_event *event)
{
	return m->oracle.calls == 100 ? -EAGAIN : 0;
}

static void w3_a_limit_for_each_poll(void **state)
{
	struct model *m = model__new(&(struct model_opts){.rings = 2, .ring_bytes = 1 << 16});
	int i;

	model__at(m, 1000);
	for (i = 0; i < 300; i++)
		sim__put(model__ring(m, 0), 2 + i);
	model__feed(m, "105#1");
	m->on_event = take_100;
	assert_int_equal(model__poll(m), -EAGAIN);
	assert_true(model__watermark(m) < 105);
	assert_int_equal(model__poll_at(m, 1001), -EAGAIN);
	assert_int_equal(m->oracle.rings[1].delivered, 1);
	assert_int_equal(model__poll_at(m, 1002), -EAGAIN);
	assert_int_equal(model__poll_at(m, 1003), 1);
	assert_int_equal(model__watermark(m), 1001);
	m->on_event = NULL;
	model__end(m);
}

/* W4, G3, G4: a CPU that is away holds nothing; its time away is a hole in its ring's time. */
static void w4_offline_cpu(void **state)
{
	struct model *m = model__with_rings(2);
	const struct came *gap;
	uint64_t i;

	model__at(m, 1000);
	sim__put_now(model__ring(m, 0), 8);
	sim__put_now(model__ring(m, 1), 8);
	model__cpu_changed(m, 1, false);
	model__pass(m, 500);
	sim__put_now(model__ring(m, 0), 8);
	model__poll_at(m, 2000);
	model__expect(m, "1000#0 1000#1 1500#0");
	assert_false(model__source(m, 1).online);
	assert_true(model__source(m, 0).online);
	assert_int_equal(model__watermark(m), 1998);
	model__poll_at(m, 4000);
	assert_int_equal(model__watermark(m), 3998);
	model__at(m, 5000);
	model__cpu_changed(m, 1, true);
	model__pass(m, 10);
	sim__put_now(model__ring(m, 1), 8);
	model__poll_at(m, 6000);
	model__poll_at(m, 7000);
	assert_true(model__source(m, 1).online);
	assert_int_equal(m->oracle.offline_gaps, 1);
	for (i = 0; m->oracle.out[i].kind != WEIR_KIND_GAP; i++)
		;
	gap = &m->oracle.out[i];
	assert_int_equal(gap->source, 1);
	assert_int_equal(gap->gap.cause, WEIR_LOST_OFFLINE);
	assert_int_equal(gap->gap.lost, 0);
	assert_true(gap->gap.from_ns <= 1000 && gap->gap.to_ns >= 5000 && gap->gap.to_ns <= 5010);
	assert_int_equal(m->oracle.rings[1].delivered, 2);
	model__end(m);
}

/* W4, M2: the hole of a CPU that is back is not late, however near the watermark has come. */
static void w4_back_next_to_the_watermark(void **state)
{
	struct model *m = model__with_rings(2);

	model__at(m, 1000);
	model__cpu_changed(m, 1, false);
	model__at(m, 1999);
	sim__put_now(model__ring(m, 1), 8);
	model__poll_at(m, 2000);
	assert_int_equal(model__watermark(m), 1998);
	model__cpu_changed(m, 1, true);
	model__poll_at(m, 3000);
	model__expect(m, "1999#1 (1000,1999]#1*0");
	model__end(m);
}

/* W4: one that never produces does not hold it, and one that is always full does not (O17). */
static int fill_up(struct model *m, const struct weir_event *event)
{
	sim__put_now(model__ring(m, 1), 100);
	return 0;
}

static void w4_silent_and_always_full_rings(void **state)
{
	struct model *m = model__with_rings(3);
	int i, k;

	m->on_event = fill_up;
	for (i = 1; i < 100; i++) {
		for (k = 0; k < 50; k++)
			sim__put_now(model__ring(m, 1), 100);
		sim__put_now(model__ring(m, 2), 8);
		model__poll_at(m, i * 1000);
		assert_int_equal(model__watermark(m), i * 1000 - 2);
	}
	m->on_event = NULL;
	model__end(m);
}

/* W5: exit at 150, the last sample at 149 on another CPU. */
static void w5_retired_at_150_not_at_149(void **state)
{
	struct model *m = model__with_rings(2);
	struct retired r = {.m = m};

	model__at(m, 150);
	model__feed(m, "150#0 149#1");
	retire(&r, 150);
	model__poll_at(m, 151);
	assert_int_equal(model__watermark(m), 149);
	assert_int_equal(r.n, 0);
	model__expect(m, "149#1");
	model__poll_at(m, 152);
	assert_int_equal(model__watermark(m), 150);
	assert_int_equal(r.n, 1);
	assert_true(r.watermarks[0] >= 150);
	assert_int_equal(r.delivered[0], 2);
	model__poll_at(m, 1000);
	assert_int_equal(r.n, 1);
	model__end(m);
}

/* W5, G2: in stamp order, whatever the order of the calls; equal stamps each run once. */
static void w5_retire_in_stamp_order(void **state)
{
	static const uint64_t asked[] = {500, 100, 300, 300, 200, 900, 50, 400};
	static const uint64_t ran[] = {50, 100, 200, 300, 300, 400, 500, 900};
	struct model *m = model__with_rings(1);
	struct retired r = {.m = m};
	int i;

	for (i = 0; i < 8; i++)
		retire(&r, asked[i]);
	model__poll_at(m, 350);
	assert_int_equal(r.n, 5);
	model__poll_at(m, 1000);
	assert_int_equal(r.n, 8);
	for (i = 0; i < 8; i++)
		assert_int_equal(r.stamps[i], ran[i]);
	model__end(m);
}

/* A time that has passed already: at the next occasion, and never inside the call itself. */
static void w5_retire_behind_the_watermark(void **state)
{
	struct model *m = model__with_rings(1);
	struct retired r = {.m = m};

	model__poll_at(m, 1000);
	retire(&r, 10);
	assert_int_equal(r.n, 0);
	model__poll_at(m, 1010);
	assert_int_equal(r.n, 1);
	model__end(m);
}

/* Asked from inside the callbacks: of an event, and of another retirement. */
static struct retired nested;

static int retire_own_stamp(struct model *m, const struct weir_event *event)
{
	retire(&nested, event->stamp_ns);
	return 0;
}

static void w5_retire_from_the_event_callback(void **state)
{
	struct model *m = model__with_rings(2);

	nested = (struct retired){.m = m};
	m->on_event = retire_own_stamp;
	model__at(m, 100);
	model__feed(m, "10#0 30#0 20#1 99#1");
	model__poll(m);
	model__poll_at(m, 110);
	model__poll_at(m, 120);
	m->on_event = NULL;
	assert_int_equal(nested.n, 4);
	assert_int_equal(nested.stamps[0], 10);
	assert_int_equal(nested.stamps[3], 99);
	model__end(m);
}

static void on_retire_again(void *arg, uint64_t stamp_ns)
{
	struct retired *r = arg;

	on_retire(arg, stamp_ns);
	if (r->n < 5)
		assert_int_equal(
			weir_stream__retire(r->m->stream, stamp_ns + 100, on_retire_again, r), 0);
}

static void w5_retire_from_a_retirement(void **state)
{
	struct model *m = model__with_rings(1);
	struct retired r = {.m = m};
	int i;

	assert_int_equal(weir_stream__retire(m->stream, 100, on_retire_again, &r), 0);
	for (i = 1; i <= 10; i++)
		model__poll_at(m, i * 100 + 10);
	assert_int_equal(r.n, 5);
	for (i = 0; i < 5; i++) {
		assert_int_equal(r.stamps[i], 100 + i * 100);
		assert_true(r.watermarks[i] >= r.stamps[i]);
	}
	model__end(m);
}

/* G6: close delivers all, so what was to be retired up to it is; free drops the rest in silence. */
static void w5_retire_at_the_end(void **state)
{
	struct model *m = model__new(&(struct model_opts){.rings = 1, .guard_ns = 1000});
	struct retired r = {.m = m};

	model__at(m, 5000);
	sim__put_now(model__ring(m, 0), 8);
	retire(&r, 5000);
	retire(&r, 1000000000000);
	assert_int_equal(model__close(m), 0);
	assert_true(r.n >= 1);
	assert_int_equal(r.stamps[0], 5000);
	assert_int_equal(r.delivered[0], 1);
	model__free(m);
}

/* Many at once: a heap that is wrong at some depth, or forgets one, shows here. */
static uint64_t many_last, many_ran;

static void on_many(void *arg, uint64_t stamp_ns)
{
	if (stamp_ns < many_last)
		many_ran = UINT32_MAX;
	many_last = stamp_ns;
	many_ran++;
}

static void w5_retire_100000(void **state)
{
	struct model *m = model__with_rings(1);
	uint64_t i;

	many_last = many_ran = 0;
	for (i = 0; i < 100000; i++)
		assert_int_equal(
			weir_stream__retire(m->stream, 1000 + (i * 7919) % 100003, on_many, NULL),
			0);
	for (i = 1; i <= 11; i++)
		model__poll_at(m, i * 10000);
	assert_int_equal(many_ran, 100000);
	model__end(m);
}

/* G2: the guard is kept, and the ledger says which it is. */
static void g2_guard(void **state)
{
	struct model *m = model__new(&(struct model_opts){.rings = 1, .guard_ns = 50000});

	model__at(m, 1000000);
	sim__put_now(model__ring(m, 0), 0);
	assert_int_equal(model__poll(m), 0);
	assert_int_equal(model__watermark(m), 949999);
	assert_int_equal(model__poll_at(m, 1050000), 0);
	assert_int_equal(model__poll_at(m, 1050001), 1);
	assert_int_equal(model__ledger(m).guard_ns, 50000);
	model__end(m);
}

/* M3: the wall clock is set back by an hour; the stamps stay, one event says it, in order. */
static void m3_wall_clock_step(void **state)
{
	const int64_t second_ns = 1000000000;
	struct model *m = model__with_rings(1);
	uint64_t i;

	m->real_ns = 1700000000 * second_ns;
	for (i = 1; i <= 5; i++) {
		model__at(m, i * second_ns - 10);
		sim__put_now(model__ring(m, 0), 8);
		model__poll_at(m, i * second_ns);
	}
	assert_int_equal(m->oracle.clock_steps, 0);
	m->real_ns -= 3600 * second_ns;
	for (; i <= 10; i++) {
		model__at(m, i * second_ns - 10);
		sim__put_now(model__ring(m, 0), 8);
		model__poll_at(m, i * second_ns);
	}
	assert_int_equal(m->oracle.clock_steps, 1);
	assert_int_equal(m->oracle.step.old_offset_ns, 1700000000 * second_ns);
	assert_int_equal(m->oracle.step.new_offset_ns, 1699996400 * second_ns);
	assert_int_equal(m->oracle.step.suspended_ns, 0);
	assert_int_equal(weir_stream__wall_ns(m->stream, 3 * second_ns), 1700000003 * second_ns);
	assert_int_equal(weir_stream__wall_ns(m->stream, 9 * second_ns), 1699996409 * second_ns);
	model__end(m);
}

/* M3: a suspend of 3 h: CLOCK_MONOTONIC stood still, the other two went on. */
static void m3_suspend(void **state)
{
	const int64_t second_ns = 1000000000, away_ns = 10800 * second_ns;
	struct model *m = model__with_rings(1);

	m->real_ns = 1700000000 * second_ns;
	model__poll_at(m, 98 * second_ns);
	model__poll_at(m, 100 * second_ns);
	m->real_ns += away_ns;
	m->boot_ns += away_ns;
	model__poll_at(m, 102 * second_ns);
	model__poll_at(m, 104 * second_ns);
	assert_int_equal(m->oracle.clock_steps, 1);
	assert_int_equal(m->oracle.step.new_offset_ns - m->oracle.step.old_offset_ns, away_ns);
	assert_int_equal(m->oracle.step.suspended_ns, away_ns);
	model__end(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(w1_idle_for_ever_after_100),
		cmocka_unit_test(w2_reserved_at_120),
		cmocka_unit_test(w2_made_up_120),
		cmocka_unit_test(w3_a_limit_for_each_poll),
		cmocka_unit_test(w4_offline_cpu),
		cmocka_unit_test(w4_back_next_to_the_watermark),
		cmocka_unit_test(w4_silent_and_always_full_rings),
		cmocka_unit_test(w5_retired_at_150_not_at_149),
		cmocka_unit_test(w5_retire_in_stamp_order),
		cmocka_unit_test(w5_retire_behind_the_watermark),
		cmocka_unit_test(w5_retire_from_the_event_callback),
		cmocka_unit_test(w5_retire_from_a_retirement),
		cmocka_unit_test(w5_retire_at_the_end),
		cmocka_unit_test(w5_retire_100000),
		cmocka_unit_test(g2_guard),
		cmocka_unit_test(m3_wall_clock_step),
		cmocka_unit_test(m3_suspend),
	};
	int r = cmocka_run_group_tests_name("model: watermark", tests, NULL, NULL);

	return r ? 1 : 0;
}
