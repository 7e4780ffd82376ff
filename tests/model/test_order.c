// SPDX-License-Identifier: BSD-2-Clause
/*
 * test_order.c - O1 to O5, O9 to O15, O18 and O20 on rings of the `reserve` kind: the order in which
 * records come out, and what is marked (G1, G2, G7).
 *
 * O5 with grace(d) and with the rcu fence is not here: those fences are not this reader's. How far
 * each call gets, O6 to O8, O16, O17 and O21 to O24, is test_progress.c; O19 is test_property.c.
 */
#include "model.h"
#include "rng.h"

/* Start an emission and do all steps before `until`. */
static void start(struct sim_emit *emit, struct sim_ring *ring, uint64_t stamp, enum sim_step until)
{
	struct sim_what what = {.stamped = true, .stamp_ns = stamp};

	sim_emit__begin(emit, ring, &what);
	sim_emit__run(emit, until);
}

static void finish(struct sim_emit *emit)
{
	sim_emit__run(emit, SIM_DONE);
}

/* What goes in before one poll has to come out of it like this. */
static void one_batch(uint32_t rings, const char *in, const char *out)
{
	struct model *m = model__with_rings(rings);

	model__at(m, 1000);
	model__feed(m, in);
	model__poll(m);
	model__expect(m, out);
	model__end(m);
}

static void o1_to_o4_batches(void **state)
{
	one_batch(1, "1#0 2#0 3#0", "1#0 2#0 3#0");
	one_batch(2, "1#0 2#1 3#0", "1#0 2#1 3#0");
	one_batch(2, "2#1 3#0 1#0", "1#0 2#1 3#0");
	one_batch(1, "2#0 3#0 4#0 5#0 1#0", "1#0 2#0 3#0 4#0 5#0");
	one_batch(2, "2#0 3#0 4#1 5#1 1#1", "1#1 2#0 3#0 4#1 5#1");
}

/* O5, G2, as far as the reserve fence goes: 6#1 was reserved when its CPU was stolen for 99 ms. */
static void o5_stalled_cpu_with_the_reserve_fence(void **state)
{
	const uint64_t stall_ns = 99000000;
	struct model *m = model__with_rings(2);
	struct sim_emit stalled;

	model__at(m, 6);
	model__feed(m, "2#0 3#0 4#1 5#1");
	start(&stalled, model__ring(m, 1), 6, SIM_FILL);
	model__at(m, 11);
	model__feed(m, "7#0");
	model__poll_at(m, 20);
	model__expect(m, "");
	model__poll_at(m, stall_ns);
	finish(&stalled);
	sim__put(model__ring(m, 1), stall_ns + 10);
	sim__put(model__ring(m, 1), stall_ns + 11);
	model__poll_at(m, stall_ns + 20);
	model__expect(m, "2#0 3#0 4#1 5#1 6#1 7#0 99000010#1 99000011#1");
	model__end(m);
}

/* O9: a merge that takes from the fullest ring first, or by turns, fails here. */
static void o9_a_million_on_one_ring(void **state)
{
	const uint64_t n = 1000000;
	struct model *m = model__with_rings(0);
	struct sim_ring *ring = model__add_ring(m, 0, 32 << 20, 0, 0);
	uint64_t i;

	for (i = 1; i < 4; i++)
		model__add_ring(m, i, 4096, 0, 0);
	model__at(m, n + 10);
	for (i = 0; i < n; i++)
		sim__put(ring, i);
	model__feed(m, "500000#1");
	assert_int_equal(model__poll(m), n + 1);
	for (i = 0; i <= n; i++)
		assert_int_equal(m->oracle.out[i].stamp_ns, i <= 500000 ? i : i - 1);
	assert_int_equal(m->oracle.out[500001].source, 1);
	model__end(m);
}

/* O10, G1: ring 1 is drained 173 ms before ring 0's records are published. */
static void o10_one_thread_on_two_cpus(void **state)
{
	struct model *m = model__with_rings(2);
	struct sim_emit first, second;

	model__at(m, 100);
	start(&first, model__ring(m, 0), 100, SIM_FINISH);
	model__at(m, 200);
	model__feed(m, "200#1");
	model__at(m, 300);
	start(&second, model__ring(m, 0), 300, SIM_FINISH);
	model__at(m, 400);
	model__feed(m, "400#1");
	model__poll_at(m, 500);
	model__expect(m, "");
	model__at(m, 173000000);
	finish(&first);
	finish(&second);
	model__poll(m);
	model__expect(m, "100#0 200#1 300#0 400#1");
	model__end(m);
}

/* O11, G2: ring 0 looked empty of finished records, and what it held back was older. */
static void o11_reserved_before_the_snapshot(void **state)
{
	struct model *m = model__with_rings(2);
	struct sim_emit emit;

	model__at(m, 20);
	start(&emit, model__ring(m, 0), 10, SIM_COUNT);
	model__feed(m, "20#1");
	model__poll_at(m, 30);
	model__expect(m, "");
	finish(&emit);
	model__poll_at(m, 40);
	model__expect(m, "10#0 20#1");
	model__end(m);
}

/* O11, G2: a stamp that no fence covers is late, counted, and never lost. */
static void o11_behind_the_watermark(void **state)
{
	struct model *m = model__with_rings(2);

	model__at(m, 20);
	model__feed(m, "20#1");
	model__poll_at(m, 30);
	model__expect(m, "20#1");
	model__feed(m, "10#0");
	model__poll_at(m, 40);
	model__expect(m, "10#0!");
	assert_int_equal(model__ledger(m).total.late, 1);
	model__end(m);
}

/* O12, G7. */
static void o12_equal_stamps(void **state)
{
	struct model *m = model__with_rings(2);

	model__at(m, 1000);
	model__feed(m, "5#0 7#1 5#0");
	model__poll(m);
	model__expect(m, "5#0 5#0 7#1");
	assert_int_equal(m->oracle.out[0].seq, 0);
	assert_int_equal(m->oracle.out[1].seq, 1);
	model__end(m);
	one_batch(3, "500#2 500#0 500#1 500#2 500#0 500#1", "500#0 500#0 500#1 500#1 500#2 500#2");
}

/* O12, G7: the oracle's key check sees any other order, and any stamp that was touched. */
static void o12_ten_thousand_equal_stamps(void **state)
{
	struct model *m = model__new(&(struct model_opts){.rings = 8, .ring_bytes = 1 << 16});
	int i;

	model__at(m, 5000);
	for (i = 0; i < 10000; i++)
		sim__put(model__ring(m, (i * 5 + 3) % 8), 777);
	assert_int_equal(model__poll(m), 10000);
	model__end(m);
}

/* O12, G7: the two clocks tick by 4 ms; a burst has one stamp, on all rings, over several polls. */
static void o12_coarse_clock(void **state)
{
	struct model *m = model__with_rings(4);
	int i;

	m->sim.grain_ns = 4000000;
	model__at(m, 1000000000);
	for (i = 0; i < 4000; i++) {
		model__pass(m, 10000);
		sim__put_now(model__ring(m, (i * 7) % 4), i % 40);
		if (i % 50 == 49)
			model__poll(m);
	}
	model__end(m);
}

/* G1: a clock that has only begun, nearer to 0 than the guard: no W, nothing is released too early. */
static void g1_the_first_nanoseconds(void **state)
{
	struct model *m = model__new(&(struct model_opts){.rings = 2, .guard_ns = 100});
	int i;

	for (i = 0; i < 300; i++) {
		sim__put_now(model__ring(m, 1 - i % 2), 8);
		model__poll(m);
		sim__put_now(model__ring(m, i % 2), 8);
		model__pass(m, 1);
	}
	model__end(m);
}

/* O13. */
static void o13_inversions_in_one_ring(void **state)
{
	one_batch(1, "100#0 90#0 110#0", "90#0 100#0 110#0");
	one_batch(1, "101#0 103#0 102#0", "101#0 102#0 103#0");
}

/* O13: interrupts that nest between reserve and stamp make them, up to 164 records deep. */
static void o13_365_inversions_up_to_164_back(void **state)
{
	struct model *m = model__new(&(struct model_opts){.rings = 2, .ring_bytes = 1 << 20});
	struct sim_ring *ring = model__ring(m, 0);
	struct rng rng = {13};
	struct sim_emit outer;
	int i, k, depth;

	for (i = 0; i < 365; i++) {
		depth = i == 200 ? 164 : rng__range(&rng, 1, 20);
		sim_emit__begin(&outer, ring, &(struct sim_what){.len = 8});
		sim_emit__run(&outer, SIM_STAMP);
		for (k = 0; k < depth; k++) {
			model__pass(m, 5);
			sim__put_now(ring, 8);
			if (k % 10 == 0)
				sim__put_now(model__ring(m, 1), 8);
		}
		model__pass(m, 5);
		finish(&outer);
	}
	model__poll_at(m, m->sim.now_ns + 10);
	model__end(m);
}

/* O14, G1: stamped first, visible second. */
static void o14_stamp_to_publish_race(void **state)
{
	static const uint64_t behind[] = {313, 705, 1830};
	uint32_t i;

	for (i = 0; i < 3; i++) {
		struct model *m = model__with_rings(2);
		struct sim_emit emit;

		model__at(m, 10000);
		sim_emit__begin(&emit, model__ring(m, 1), &(struct sim_what){0});
		sim_emit__run(&emit, SIM_FILL);
		model__pass(m, behind[i]);
		sim__put_now(model__ring(m, 0), 0);
		model__poll_at(m, 13000);
		model__expect(m, "");
		finish(&emit);
		model__poll_at(m, 20000);
		assert_int_equal(m->oracle.nout, 2);
		assert_int_equal(m->oracle.out[0].source, 1);
		assert_int_equal(m->oracle.out[1].stamp_ns, 10000 + behind[i]);
		model__end(m);
	}
}

/*
 * O14, G1: published between T and the load of the heads, so in the snapshot, and younger than T: by
 * as much as the reader's CPU was stolen for. It waits for its turn; the clock had come to it.
 */
static uint64_t stolen_ns;

static void publish_after_t(struct model *m)
{
	if (m->oracle.call != ORACLE_POLL || m->oracle.timed)
		return;
	model__pass(m, stolen_ns);
	sim__put_now(model__ring(m, 0), 8);
	model__pass(m, stolen_ns);
	sim__put_now(model__ring(m, 1), 8);
}

static void o14_younger_than_t_is_not_ahead(void **state)
{
	for (stolen_ns = 1; stolen_ns < 10000000000; stolen_ns *= 7) {
		struct model *m = model__with_rings(2);

		model__at(m, 10000);
		m->on_clock = publish_after_t;
		model__poll(m);
		m->on_clock = NULL;
		model__poll_at(m, m->sim.now_ns + 10000);
		assert_int_equal(m->oracle.nout, 2);
		assert_int_equal(model__ledger(m).total.ahead, 0);
		model__end(m);
	}
}

/*
 * O14, G1: reserved before the snapshot, stamped while the reader looks at the clock for the k-th
 * time in that poll, and published before it comes to that ring: in order, and not beyond the clock.
 */
static struct sim_emit stamped_late;
static uint64_t look;

static void stamp_at_look(struct model *m)
{
	if (m->oracle.call != ORACLE_POLL || look-- != 1)
		return;
	model__pass(m, stolen_ns);
	sim_emit__run(&stamped_late, SIM_DONE);
	model__pass(m, 10);
	sim__put_now(model__ring(m, 1), 8);
}

static void o14_stamped_while_the_reader_drains(void **state)
{
	uint64_t k;

	for (k = 1; k <= 6; k++) {
		struct model *m = model__with_rings(2);

		look = k;
		stolen_ns = 50000000;
		model__at(m, 10000);
		sim_emit__begin(&stamped_late, model__ring(m, 0), &(struct sim_what){.len = 8});
		sim_emit__run(&stamped_late, SIM_STAMP);
		sim__put_now(model__ring(m, 1), 8);
		m->on_clock = stamp_at_look;
		model__poll_at(m, 11000);
		m->on_clock = NULL;
		finish(&stamped_late);
		model__poll_at(m, m->sim.now_ns + 10000);
		assert_int_equal(model__ledger(m).total.ahead, 0);
		model__end(m);
	}
}

/* O14, G2: the same with a producer that is stopped there, at each of its steps. */
static struct sim_emit stopped_in_snapshot;
static enum sim_step stopped_at;

static void reserve_after_t(struct model *m)
{
	if (m->oracle.call != ORACLE_POLL || stopped_in_snapshot.ring)
		return;
	model__pass(m, 100);
	sim_emit__begin(&stopped_in_snapshot, model__ring(m, 1), &(struct sim_what){.len = 16});
	sim_emit__run(&stopped_in_snapshot, stopped_at);
	model__pass(m, 100);
	sim__put_now(model__ring(m, 0), 8);
}

static void o14_stopped_between_t_and_the_heads(void **state)
{
	static const enum sim_step steps[] = {SIM_COUNT, SIM_STAMP, SIM_FILL, SIM_FINISH};
	uint32_t i;

	for (i = 0; i < 4; i++) {
		struct model *m = model__with_rings(2);

		stopped_at = steps[i];
		stopped_in_snapshot.ring = NULL;
		m->on_clock = reserve_after_t;
		model__poll_at(m, 10000);
		model__poll_at(m, 11000);
		sim__put_now(model__ring(m, 0), 8);
		finish(&stopped_in_snapshot);
		model__poll_at(m, 12000);
		model__poll_at(m, 13000);
		assert_int_equal(m->oracle.nout, 3);
		model__end(m);
	}
}

/* O15, G2, G8: a stamp beyond the clock is delivered at once, marked, counted; no W waits for it. */
static void o15_stamps_beyond_the_clock(void **state)
{
	const uint64_t hour_ns = 3600000000000;
	struct model *m = model__with_rings(2);

	model__at(m, 1000);
	model__feed(m, "900#0");
	sim__put(model__ring(m, 0), UINT64_MAX);
	sim__put(model__ring(m, 1), 1000 + hour_ns);
	model__feed(m, "950#0");
	assert_int_equal(model__poll(m), 4);
	assert_int_equal(model__ledger(m).total.ahead, 2);
	assert_int_equal(model__ledger(m).total.late, 0);
	assert_int_equal(model__watermark(m), 998);
	model__feed(m, "1000#1");
	assert_int_equal(model__poll_at(m, 2000), 1);
	assert_int_equal(model__poll_at(m, hour_ns + 5000), 0);
	assert_int_equal(model__ledger(m).total.ahead, 2);
	model__end(m);
}

/* O15, G2: stamp 0, and one second back; before and after the first announcement. */
static void o15_stamps_behind_the_clock(void **state)
{
	const uint64_t second_ns = 1000000000;
	struct model *m = model__with_rings(2);

	model__at(m, 2 * second_ns);
	model__feed(m, "0#0 1000000000#1");
	assert_int_equal(model__poll(m), 2);
	model__expect(m, "0#0 1000000000#1");
	model__feed(m, "0#0 1000000000#1");
	sim__put_now(model__ring(m, 0), 0);
	assert_int_equal(model__poll_at(m, 3 * second_ns), 3);
	assert_int_equal(model__ledger(m).total.late, 2);
	model__expect(m, "0#0! 1000000000#1! 2000000000#0");
	model__end(m);
}

/* O15: within the guard the two clocks may differ; such a stamp is in order and not marked. */
static void o15_ahead_by_less_than_the_guard(void **state)
{
	struct model *m = model__new(&(struct model_opts){.rings = 2, .guard_ns = 1000});

	model__at(m, 100000);
	sim__put(model__ring(m, 0), 100400);
	sim__put(model__ring(m, 1), 99900);
	model__poll(m);
	sim__put(model__ring(m, 1), 100300);
	model__poll_at(m, 103000);
	model__expect(m, "99900#1 100300#1 100400#0");
	assert_int_equal(model__ledger(m).total.ahead, 0);
	model__end(m);
}

/* O15, G4: a loss beside such stamps is told soon, with bounds that are an interval. */
static void o15_loss_beside_wrong_stamps(void **state)
{
	static const uint64_t stamps[] = {0, 1, 3600000000000, UINT64_MAX - 1, UINT64_MAX};
	uint32_t before, after;

	for (before = 0; before < 5; before++) {
		for (after = 0; after < 5; after++) {
			struct model *m = model__with_rings(1);

			model__poll_at(m, 500);
			model__at(m, 1000);
			sim__put(model__ring(m, 0), stamps[before]);
			sim__refuse(model__ring(m, 0), 3);
			sim__put(model__ring(m, 0), stamps[after]);
			model__poll_at(m, 2000);
			model__poll_at(m, 3000);
			assert_int_equal(m->oracle.rings[0].told[WEIR_LOST_RESERVE_FAILED], 3);
			model__end(m);
		}
	}
}

/* O18: what a tool that takes the delays as the events come makes of the right order. */
static void o18_scheduler_latency(void **state)
{
	enum { WAKE = 1, SWITCH_IN, SWITCH_OUT };
	static const struct {
		int ring, type;
		uint64_t stamp;
	} arrival[] = {
		{0, SWITCH_IN, 1494663899990}, {0, SWITCH_OUT, 1494663928373},
		{1, WAKE, 1494663860125},      {1, WAKE, 1504098252756},
		{0, SWITCH_IN, 1504100353302},
	};
	uint64_t woken = 0, delays[2];
	struct model *m = model__with_rings(2);
	int i, n = 0;

	model__at(m, 1505000000000);
	for (i = 0; i < 5; i++) {
		struct sim_what what = {
			.type = arrival[i].type, .stamped = true, .stamp_ns = arrival[i].stamp};
		struct sim_emit emit;

		sim_emit__begin(&emit, model__ring(m, arrival[i].ring), &what);
		finish(&emit);
	}
	assert_int_equal(model__poll(m), 5);
	for (i = 0; i < 5; i++) {
		const struct came *out = &m->oracle.out[i];
		int type = sim_ring__by_seq(model__ring(m, out->source), out->seq)->type;

		if (type == WAKE)
			woken = out->stamp_ns;
		if (type == SWITCH_IN && n < 2)
			delays[n++] = out->stamp_ns - woken;
	}
	assert_int_equal(n, 2);
	assert_int_equal(delays[0], 39865);
	assert_int_equal(delays[1], 2100546);
	model__end(m);
}

/* O20, B3: a discarded record is no reason to give up the ring's turn. */
static void o20_discarded_then_5(void **state)
{
	struct model *m = model__with_rings(2);
	struct sim_emit emit;

	model__at(m, 10);
	sim_emit__begin(&emit, model__ring(m, 0), &(struct sim_what){.discard = true});
	finish(&emit);
	model__feed(m, "5#0 9#1");
	model__poll_at(m, 20);
	model__expect(m, "5#0 9#1");
	assert_int_equal(model__ledger(m).total.filtered, 1);
	model__end(m);
}

/* G1, G3: a ring that joins later brings no step back and does not hold the others. */
static void g1_a_ring_joins(void **state)
{
	struct model *m = model__with_rings(1);
	struct sim_ring *ring;

	model__at(m, 1000);
	sim__put_now(model__ring(m, 0), 8);
	model__poll_at(m, 2000);
	ring = model__add_ring(m, 1, 8192, 0, 0);
	sim__put_now(model__ring(m, 0), 8);
	model__pass(m, 1);
	sim__put_now(ring, 8);
	model__pass(m, 1);
	sim__put_now(model__ring(m, 0), 8);
	model__poll_at(m, 3000);
	model__expect(m, "1000#0 2000#0 2001#1 2002#0");
	model__end(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(o1_to_o4_batches),
		cmocka_unit_test(o5_stalled_cpu_with_the_reserve_fence),
		cmocka_unit_test(o9_a_million_on_one_ring),
		cmocka_unit_test(o10_one_thread_on_two_cpus),
		cmocka_unit_test(o11_reserved_before_the_snapshot),
		cmocka_unit_test(o11_behind_the_watermark),
		cmocka_unit_test(o12_equal_stamps),
		cmocka_unit_test(o12_ten_thousand_equal_stamps),
		cmocka_unit_test(o12_coarse_clock),
		cmocka_unit_test(g1_the_first_nanoseconds),
		cmocka_unit_test(o13_inversions_in_one_ring),
		cmocka_unit_test(o13_365_inversions_up_to_164_back),
		cmocka_unit_test(o14_stamp_to_publish_race),
		cmocka_unit_test(o14_younger_than_t_is_not_ahead),
		cmocka_unit_test(o14_stamped_while_the_reader_drains),
		cmocka_unit_test(o14_stopped_between_t_and_the_heads),
		cmocka_unit_test(o15_stamps_beyond_the_clock),
		cmocka_unit_test(o15_stamps_behind_the_clock),
		cmocka_unit_test(o15_ahead_by_less_than_the_guard),
		cmocka_unit_test(o15_loss_beside_wrong_stamps),
		cmocka_unit_test(o18_scheduler_latency),
		cmocka_unit_test(o20_discarded_then_5),
		cmocka_unit_test(g1_a_ring_joins),
	};
	int r = cmocka_run_group_tests_name("model: order", tests, NULL, NULL);

	return r ? 1 : 0;
}
