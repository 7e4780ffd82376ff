// SPDX-License-Identifier: BSD-2-Clause
/*
 * test_progress.c - O6 to O8, O16, O17 and O21 to O24 on rings of the `reserve` kind, flush and
 * close: how far each call gets, and that what it leaves comes with the next (G3, G5, G6).
 *
 * O21 with real writers is test_threads.c.
 */
#include <errno.h>

#include "model.h"

/* O6, G3. */
static void o6_nothing_in_nothing_out(void **state)
{
	struct model *m = model__with_rings(3);
	uint64_t now;

	for (now = 1000; now < 1000000; now += 1000) {
		assert_int_equal(model__poll_at(m, now), 0);
		assert_int_equal(model__watermark(m), now - 2);
	}
	model__expect(m, "");
	model__end(m);
}

/* O6: a stream without any source is a stream all the same. */
static void o6_no_rings(void **state)
{
	struct model *m = model__with_rings(0);

	assert_int_equal(model__poll_at(m, 1000), 0);
	assert_int_equal(model__poll_at(m, 2000), 0);
	model__end(m);
}

/* O7, G3: each by the poll that follows it; none waits for the next event. */
static void o7_events_300_ms_apart(void **state)
{
	struct model *m = model__with_rings(2);
	int i;

	for (i = 1; i <= 3; i++) {
		model__at(m, i * 300000000ull);
		sim__put_now(model__ring(m, 0), 8);
		assert_int_equal(model__poll_at(m, m->sim.now_ns + 1000), 1);
	}
	model__end(m);
}

/* O8, G3. */
static void o8_one_event_on_64_rings_then_silence(void **state)
{
	struct model *m = model__with_rings(64);
	int second;

	model__at(m, 1000);
	sim__put_now(model__ring(m, 37), 8);
	assert_int_equal(model__poll_at(m, 2000), 1);
	model__expect(m, "1000#37");
	for (second = 1; second <= 60; second++) {
		assert_int_equal(model__poll_at(m, second * 1000000000ull), 0);
		assert_int_equal(model__watermark(m), second * 1000000000ull - 2);
	}
	model__end(m);
}

/* O16, B2, G3: a head that is busy for 3 s; what the other rings had published before flows. */
static void o16_busy_head(void **state)
{
	const uint64_t ms_ns = 1000000;
	struct model *m = model__with_rings(0);
	struct sim_ring *ring = model__add_ring(m, 0, 1 << 16, 0, 0);
	struct sim_ring *other = model__add_ring(m, 1, 1 << 16, 0, 0);
	struct weir_source_info info;
	struct sim_emit busy;
	int i;

	model__poll_at(m, 9 * ms_ns);
	sim__put_now(other, 8);
	model__poll_at(m, 10 * ms_ns);
	model__expect(m, "9000000#1");
	model__pass(m, 1000);
	sim_emit__begin(&busy, ring, &(struct sim_what){.len = 8});
	sim_emit__run(&busy, SIM_FILL);
	for (i = 0; i < 999; i++) {
		model__pass(m, 1);
		sim__put_now(ring, 8);
	}
	sim__put_now(other, 8);
	for (i = 11; i <= 3010; i++) {
		assert_int_equal(model__poll_at(m, i * ms_ns), 0);
		assert_int_equal(model__watermark(m), 10 * ms_ns - 2);
		info = model__source(m, 0);
		assert_in_range(info.busy_since_ns, 10 * ms_ns, 11 * ms_ns);
		assert_int_equal(model__source(m, 1).busy_since_ns, 0);
		assert_true(model__source(m, 1).watermark_ns >= i * ms_ns - 2);
	}
	sim_emit__run(&busy, SIM_DONE);
	assert_int_equal(model__poll_at(m, 3011 * ms_ns), 1001);
	assert_int_equal(model__source(m, 0).busy_since_ns, 0);
	model__end(m);
}

/*
 * O16, G3: heads that are busy in turn, on every ring, at every poll. A watermark that moves only
 * when all rings are done at once never moves here; with snapshots kept, it follows.
 */
static void o16_always_a_busy_head_somewhere(void **state)
{
	struct model *m = model__with_rings(4);
	struct sim_emit busy[4];
	uint64_t before;
	int i;

	for (i = 0; i < 4; i++) {
		sim_emit__begin(&busy[i], model__ring(m, i), &(struct sim_what){.len = 8});
		sim_emit__run(&busy[i], SIM_FILL);
	}
	for (i = 0; i < 1000; i++) {
		before = model__watermark(m);
		model__poll_at(m, 1000 + i * 1000);
		sim_emit__run(&busy[i % 4], SIM_DONE);
		sim_emit__begin(&busy[i % 4], model__ring(m, i % 4), &(struct sim_what){.len = 8});
		sim_emit__run(&busy[i % 4], SIM_FILL);
		if (i > 8)
			assert_true(model__watermark(m) > before);
	}
	for (i = 0; i < 4; i++)
		sim_emit__run(&busy[i], SIM_DONE);
	model__end(m);
}

/* O17, G5: a producer that writes two records for each that is delivered. */
static int produce_two(struct model *m, const struct weir_event *event)
{
	if (event->kind != WEIR_KIND_RECORD || event->source != 0)
		return 0;
	model__pass(m, 10);
	sim__put_now(model__ring(m, 0), 8);
	model__pass(m, 10);
	sim__put_now(model__ring(m, 0), 8);
	return 0;
}

static void o17_producer_always_ahead(void **state)
{
	struct model *m = model__with_rings(0);
	int i, served;

	model__add_ring(m, 0, 1 << 16, 0, 0);
	model__add_ring(m, 1, 4096, 0, 0);
	m->on_event = produce_two;
	model__at(m, 1000);
	sim__put_now(model__ring(m, 0), 8);
	model__pass(m, 100);
	for (i = served = 0; i < 12; i++) {
		sim__put_now(model__ring(m, 1), 8);
		model__pass(m, 100);
		model__poll(m);
		served += m->oracle.rings[1].delivered == (uint64_t)i + 1;
	}
	assert_int_equal(served, 12);
	m->on_event = NULL;
	model__end(m);
}

/* O21: the heads are loaded once a poll; what comes while it delivers comes once, in the next. */
static int produce_on_every_ring(struct model *m, const struct weir_event *event)
{
	uint32_t i;

	if (m->oracle.calls % 3 || event->kind != WEIR_KIND_RECORD)
		return 0;
	for (i = 0; i < m->sim.nrings; i++)
		sim__put_now(model__ring(m, i), 8);
	return 0;
}

static void o21_published_while_delivering(void **state)
{
	struct model *m = model__new(&(struct model_opts){.rings = 3, .ring_bytes = 1 << 16});
	int i;

	m->on_event = produce_on_every_ring;
	for (i = 0; i < 200; i++) {
		model__pass(m, 1000);
		sim__put_now(model__ring(m, i % 3), 8);
		model__pass(m, 1000);
		model__poll(m);
	}
	m->on_event = NULL;
	model__end(m);
}

/* O22, G1, G4: the reader stands still for 1 s under load, the rings overflow, it goes on. */
static void o22_reader_stopped_for_a_second(void **state)
{
	struct model *m = model__new(&(struct model_opts){.rings = 2, .ring_bytes = 1 << 14});
	int round, i;

	for (round = 0; round < 3; round++) {
		for (i = 0; i < 20000; i++) {
			model__pass(m, 50000);
			sim__put_now(model__ring(m, i % 2), i % 64);
		}
		for (i = 0; i < 200; i++) {
			model__pass(m, 50000);
			sim__put_now(model__ring(m, i % 2), i % 64);
			if (i % 20 == 19)
				model__poll(m);
		}
	}
	assert_true(model__ledger(m).total.lost[WEIR_LOST_RESERVE_FAILED] > 50000);
	model__end(m);
}

/* O23: ring 1 was empty when the poll began, ring 0 is never dry. */
static int keep_ring_0_wet(struct model *m, const struct weir_event *event)
{
	sim__put_now(model__ring(m, 0), 8);
	if (m->oracle.calls == 3)
		sim__put_now(model__ring(m, 1), 8);
	return 0;
}

static void o23_empty_peer_is_served_next(void **state)
{
	struct model *m = model__new(&(struct model_opts){.rings = 2, .ring_bytes = 1 << 14});
	int i;

	model__at(m, 1000);
	for (i = 0; i < 10; i++)
		sim__put_now(model__ring(m, 0), 8);
	model__pass(m, 1000);
	m->on_event = keep_ring_0_wet;
	model__poll(m);
	assert_int_equal(m->oracle.rings[1].delivered, 0);
	model__pass(m, 1000);
	model__poll(m);
	assert_int_equal(m->oracle.rings[1].delivered, 1);
	m->on_event = NULL;
	model__end(m);
}

/* G6: flush has everything that was published, though it is younger than the guard. */
static void g6_flush(void **state)
{
	struct model *m = model__new(&(struct model_opts){.rings = 3, .guard_ns = 1000});
	int i;

	for (i = 0; i < 30; i++) {
		model__pass(m, 7);
		sim__put_now(model__ring(m, (i * 2) % 3), i);
	}
	assert_int_equal(model__flush(m, 0), 0);
	assert_int_equal(m->oracle.nout, 30);
	model__end(m);
}

/* G6: what is reserved and not finished, flush waits for, but not for ever; nothing is lost by it. */
static void g6_flush_of_a_busy_ring(void **state)
{
	struct model *m = model__with_rings(2);
	struct sim_emit busy;

	m->sim.tick_ns = 1000000;
	model__at(m, 1000);
	sim_emit__begin(&busy, model__ring(m, 0), &(struct sim_what){0});
	sim_emit__run(&busy, SIM_STAMP);
	model__pass(m, 10);
	sim__put_now(model__ring(m, 0), 0);
	sim__put_now(model__ring(m, 1), 0);
	assert_int_equal(model__flush(m, 0), -ETIMEDOUT);
	assert_int_equal(model__flush(m, 5), -ETIMEDOUT);
	assert_int_equal(m->oracle.nout, 0);
	sim_emit__run(&busy, SIM_DONE);
	assert_int_equal(model__flush(m, 0), 0);
	assert_int_equal(m->oracle.nout, 3);
	model__end(m);
}

/* G6: after close the stream is silent and its ledger final, and what came late is not read. */
static void g6_close_is_the_end(void **state)
{
	struct model *m = model__new(&(struct model_opts){.rings = 2, .guard_ns = 1000});

	model__at(m, 5000);
	sim__put_now(model__ring(m, 1), 8);
	sim__put_now(model__ring(m, 0), 8);
	sim__refuse(model__ring(m, 0), 2);
	assert_int_equal(model__close(m), 0);
	assert_int_equal(m->oracle.nout, 3);
	assert_int_equal(model__ledger(m).total.produced, 4);
	assert_int_equal(model__ledger(m).total.pending, 0);
	assert_int_equal(model__poll_at(m, 100000), 0);
	assert_int_equal(m->oracle.nout, 3);
	model__free(m);
}

/* O24, G4: a callback that stops the poll has its event; the rest comes, once, in order. */
static int stop_at_each(struct model *m, const struct weir_event *event)
{
	return m->oracle.calls % 3 == 0 ? -ENOSPC : 0;
}

static void o24_callback_stops_the_poll(void **state)
{
	struct model *m = model__with_rings(4);
	int i, stopped = 0;

	for (i = 0; i < 100; i++) {
		model__pass(m, 3);
		if (i % 17 == 3)
			sim__refuse(model__ring(m, i % 4), 2);
		sim__put_now(model__ring(m, (i * 3) % 4), i % 20);
	}
	m->on_event = stop_at_each;
	for (i = 0; i < 60; i++)
		stopped += model__poll_at(m, m->sim.now_ns + 10) == -ENOSPC;
	assert_true(stopped >= 34);
	m->on_event = NULL;
	model__end(m);
}

/* O24: the same while producers go on and the rings fill: what was given back is still there. */
static void o24_callback_stops_under_load(void **state)
{
	struct model *m = model__with_rings(3);
	int i;

	m->on_event = stop_at_each;
	for (i = 0; i < 3000; i++) {
		model__pass(m, 100);
		sim__put_now(model__ring(m, (i * 5) % 3), i % 100);
		if (i % 7 == 0)
			model__poll(m);
	}
	m->on_event = NULL;
	model__end(m);
}

/* O24, M2: the return of a CPU becomes known when a stopped poll has come to its first record. */
static void o24_callback_stops_before_a_return(void **state)
{
	struct model *m = model__with_rings(2);

	model__at(m, 1000);
	model__cpu_changed(m, 1, false);
	model__feed(m, "1400#0 1450#0 1500#0 1500#1");
	m->on_event = stop_at_each;
	assert_int_equal(model__poll_at(m, 2000), -ENOSPC);
	m->on_event = NULL;
	model__expect(m, "1400#0 1450#0 1500#0");
	model__cpu_changed(m, 1, true);
	model__poll_at(m, 3000);
	model__expect(m, "1500#1 (1000,1500]#1*0");
	model__end(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(o6_nothing_in_nothing_out),
		cmocka_unit_test(o6_no_rings),
		cmocka_unit_test(o7_events_300_ms_apart),
		cmocka_unit_test(o8_one_event_on_64_rings_then_silence),
		cmocka_unit_test(o16_busy_head),
		cmocka_unit_test(o16_always_a_busy_head_somewhere),
		cmocka_unit_test(o17_producer_always_ahead),
		cmocka_unit_test(o21_published_while_delivering),
		cmocka_unit_test(o22_reader_stopped_for_a_second),
		cmocka_unit_test(o23_empty_peer_is_served_next),
		cmocka_unit_test(g6_flush),
		cmocka_unit_test(g6_flush_of_a_busy_ring),
		cmocka_unit_test(g6_close_is_the_end),
		cmocka_unit_test(o24_callback_stops_the_poll),
		cmocka_unit_test(o24_callback_stops_under_load),
		cmocka_unit_test(o24_callback_stops_before_a_return),
	};
	int r = cmocka_run_group_tests_name("model: progress", tests, NULL, NULL);

	return r ? 1 : 0;
}
