// SPDX-License-Identifier: BSD-2-Clause
/*
 * test_loss.c - L1 to L11 and the ledger (G4).
 *
 * L3 is test_threads.c. Not here: L2's second half and L7, which rings of this kind don't have; the
 * reset of state (L1), files (L6) and signals (L5), which are not the stream's.
 */
#include <errno.h>
#include <stdlib.h>

#include "model.h"
#include "rng.h"

static void finish(struct sim_emit *emit)
{
	sim_emit__run(emit, SIM_DONE);
}

/* L1: a gap has its place in the stream, its ring, its bounds and its count. */
static void l1_17_lost_between_1000_and_2000(void **state)
{
	struct model *m = model__with_rings(2);

	/* Four, so that one of them was surely finished before the loss, however they nest. */
	for (uint64_t at = 970; at <= 1000; at += 10) {
		model__at(m, at);
		sim__put_now(model__ring(m, 1), 8);
	}
	model__at(m, 1500);
	sim__refuse(model__ring(m, 1), 17);
	sim__put_now(model__ring(m, 0), 8);
	model__at(m, 2000);
	sim__put_now(model__ring(m, 1), 8);
	model__poll_at(m, 3000);
	model__expect(m, "970#1 980#1 990#1 1000#1 1500#0 (970,2000]#1*17 2000#1");
	assert_int_equal(m->oracle.out[5].seq, 4);
	assert_int_equal(model__source(m, 1).account.lost[WEIR_LOST_RESERVE_FAILED], 17);
	assert_int_equal(model__source(m, 0).account.lost[WEIR_LOST_RESERVE_FAILED], 0);
	model__end(m);
}

/* L1: over several polls; the record that bounds the gap above comes much later. */
static void l1_bounds_across_polls(void **state)
{
	struct model *m = model__with_rings(2);
	uint64_t i;

	for (i = 1; i <= 20; i++) {
		model__at(m, i * 1000);
		sim__put_now(model__ring(m, i % 2), 8);
		model__pass(m, 100);
		if (i % 3 == 0)
			sim__refuse(model__ring(m, 0), i);
		model__pass(m, 100);
		if (i % 4)
			model__poll(m);
	}
	model__end(m);
}

/* L2: counters are the truth: all but a thousand of a million found no room. */
static void l2_a_million_into_4_kib(void **state)
{
	const uint64_t n = 1000000;
	struct model *m = model__with_rings(1);
	struct weir_account total;
	uint64_t i;

	for (i = 1; i <= n; i++) {
		model__pass(m, 10);
		sim__put_now(model__ring(m, 0), 16);
		if (i % (n / 10) == 0)
			model__poll(m);
	}
	assert_int_equal(model__close(m), 0);
	total = model__ledger(m).total;
	assert_int_equal(total.produced, n);
	assert_int_equal(total.delivered + total.lost[WEIR_LOST_RESERVE_FAILED], n);
	assert_in_range(total.delivered, 900, 1200);
	model__free(m);
}

/* L4: nothing follows. */
static void l4_loss_at_the_tail(void **state)
{
	struct model *m = model__with_rings(2);

	model__at(m, 1000);
	sim__put_now(model__ring(m, 0), 8);
	sim__refuse(model__ring(m, 0), 5);
	model__poll_at(m, 2000);
	assert_int_equal(model__ledger(m).total.lost[WEIR_LOST_RESERVE_FAILED], 5);
	model__poll_at(m, 3000);
	assert_int_equal(m->oracle.rings[0].told[WEIR_LOST_RESERVE_FAILED], 5);
	model__end(m);
}

/* L4: nothing precedes either: the ring has only ever failed. */
static void l4_nothing_but_loss(void **state)
{
	struct model *m = model__with_rings(2);

	model__poll_at(m, 500);
	model__at(m, 1000);
	sim__refuse(model__ring(m, 1), 3);
	model__poll_at(m, 2000);
	model__poll_at(m, 3000);
	assert_int_equal(m->oracle.rings[1].told[WEIR_LOST_RESERVE_FAILED], 3);
	model__end(m);
}

/* L5: 200,000 events/s for 5 s into a consumer that takes 50 us for each. */
static int slow_consumer(struct model *m, const struct weir_event *event)
{
	int i;

	for (i = 0; i < 10; i++) {
		model__pass(m, 5000);
		sim__put_now(model__ring(m, i % 2), 40);
	}
	return 0;
}

static void l5_slow_consumer(void **state)
{
	const uint64_t second_ns = 1000000000;
	struct model *m = model__new(&(struct model_opts){.rings = 2, .ring_bytes = 1 << 16});

	model__at(m, 1000);
	sim__put_now(model__ring(m, 0), 40);
	model__pass(m, 1000);
	m->on_event = slow_consumer;
	while (m->sim.now_ns < 5 * second_ns)
		model__poll(m);
	m->on_event = NULL;
	assert_true(model__ledger(m).total.lost[WEIR_LOST_RESERVE_FAILED] > 800000);
	model__end(m);
}

/* L5: the same, and the consumer fails now and then: what it had is delivered, the rest stays. */
static int slow_and_failing(struct model *m, const struct weir_event *event)
{
	slow_consumer(m, event);
	return m->oracle.calls % 97 == 0 ? -EPIPE : 0;
}

static void l5_failing_consumer(void **state)
{
	struct model *m = model__new(&(struct model_opts){.rings = 2, .ring_bytes = 1 << 14});
	int i;

	model__at(m, 1000);
	sim__put_now(model__ring(m, 0), 40);
	model__pass(m, 1000);
	m->on_event = slow_and_failing;
	for (i = 0; i < 300; i++) {
		model__pass(m, 1000);
		sim__put_now(model__ring(m, 0), 40);
		model__pass(m, 1000);
		model__poll(m);
	}
	m->on_event = NULL;
	model__end(m);
}

/* L6: counted in the kernel, with no seq: the reader's own are outside the sum, the selection's in. */
static void l6_self_filtered_unread(void **state)
{
	struct model *m = model__with_rings(2);
	struct weir_counters *counters = &model__ring(m, 1)->buffer.shared->counters;
	struct weir_account total;
	int i;

	model__at(m, 1000);
	for (i = 0; i < 7; i++)
		sim__count(&counters->self);
	for (i = 0; i < 5; i++)
		sim__count(&counters->filtered);
	sim__count(&counters->unread);
	sim__put_now(model__ring(m, 1), 8);
	model__poll_at(m, 2000);
	total = model__ledger(m).total;
	assert_int_equal(total.self, 7);
	assert_int_equal(total.filtered, 5);
	assert_int_equal(total.unread, 1);
	assert_int_equal(total.produced, 6);
	assert_int_equal(total.delivered, 1);
	assert_int_equal(model__source(m, 1).account.self, 7);
	model__end(m);
}

/* G4: what a consumer turns away or fails to write moves within the sum. */
static void g4_the_consumers_own_counts(void **state)
{
	struct model *m = model__with_rings(2);
	struct weir_account total;
	int i;

	for (i = 0; i < 10; i++) {
		model__pass(m, 100);
		sim__put_now(model__ring(m, i % 2), 8);
	}
	model__poll_at(m, 2000);
	model__count_filtered(m, 0, 2);
	model__count_lost(m, 1, 3, WEIR_LOST_OUTPUT);
	model__poll_at(m, 3000);
	total = model__ledger(m).total;
	assert_int_equal(total.delivered, 5);
	assert_int_equal(total.filtered, 2);
	assert_int_equal(total.lost[WEIR_LOST_OUTPUT], 3);
	model__end(m);
}

/* G4: given back records carry a seq: no loss, and filtered, wherever they stand. */
static void g4_discarded(void **state)
{
	struct model *m = model__with_rings(1);
	struct sim_emit emit;
	int i;

	for (i = 0; i < 50; i++) {
		model__pass(m, 10);
		sim_emit__begin(&emit, model__ring(m, 0),
				&(struct sim_what){.len = i, .discard = i % 3 != 1});
		finish(&emit);
		if (i % 11 == 0)
			model__poll(m);
	}
	model__poll_at(m, 1000);
	assert_int_equal(model__ledger(m).total.filtered, 33);
	assert_int_equal(model__ledger(m).total.delivered, 17);
	model__end(m);
}

/* L8: A is at position 0 and takes seq 1, B at position 1 takes seq 0, the snapshot lies between. */
static void l8_interrupt_between_reserve_and_count(void **state)
{
	struct model *m = model__with_rings(1);
	struct sim_emit a, b;

	model__at(m, 1000);
	sim_emit__begin(&a, model__ring(m, 0), &(struct sim_what){.len = 8});
	sim_emit__run(&a, SIM_COUNT);
	model__pass(m, 1);
	sim_emit__begin(&b, model__ring(m, 0), &(struct sim_what){.len = 8});
	finish(&b);
	model__poll_at(m, 2000);
	assert_int_equal(model__ledger(m).total.lost[WEIR_LOST_RESERVE_FAILED], 0);
	finish(&a);
	model__poll_at(m, 3000);
	model__expect(m, "1001#0 2000#0");
	assert_int_equal(m->oracle.out[0].seq, 0);
	assert_int_equal(m->oracle.out[1].seq, 1);
	assert_int_equal(model__ledger(m).total.lost[WEIR_LOST_RESERVE_FAILED], 0);
	model__end(m);
}

/* L8, at every step of A, with B refused, whole, or stopped at each of its own steps. */
static void l8_at_every_pair_of_steps(void **state)
{
	enum sim_step a_at, b_at;
	struct sim_emit a, b;
	int refuse;

	for (refuse = 0; refuse < 2; refuse++)
		for (a_at = SIM_RESERVE; a_at <= SIM_DONE; a_at++)
			for (b_at = SIM_RESERVE; b_at <= SIM_DONE; b_at++) {
				struct model *m = model__with_rings(2);

				model__at(m, 1000);
				sim__put_now(model__ring(m, 1), 8);
				sim_emit__begin(&a, model__ring(m, 0),
						&(struct sim_what){.len = 8});
				sim_emit__run(&a, a_at);
				model__pass(m, 100);
				sim_emit__begin(&b, model__ring(m, 0),
						&(struct sim_what){.len = 8, .refuse = refuse});
				sim_emit__run(&b, b_at);
				model__poll_at(m, 2000);
				finish(&b);
				model__poll_at(m, 3000);
				finish(&a);
				model__poll_at(m, 4000);
				model__end(m);
			}
}

/* L8: seq n + 1 is seen while n is reserved behind the snapshot's head, or not finished. */
static void l8_seq_seen_before_its_predecessor(void **state)
{
	struct model *m = model__with_rings(1);
	struct sim_emit a, b;

	model__at(m, 1000);
	sim_emit__begin(&a, model__ring(m, 0), &(struct sim_what){.len = 8});
	sim_emit__run(&a, SIM_COUNT);
	sim_emit__begin(&b, model__ring(m, 0), &(struct sim_what){.len = 8});
	sim_emit__run(&b, SIM_COUNT);
	model__poll_at(m, 2000);
	sim_emit__run(&b, SIM_STAMP);
	finish(&a);
	model__poll_at(m, 3000);
	model__poll_at(m, 4000);
	assert_int_equal(m->oracle.nout, 0);
	assert_int_equal(model__ledger(m).total.pending, 2);
	finish(&b);
	model__poll_at(m, 5000);
	model__expect(m, "2000#0 4000#0");
	model__end(m);
}

/* L8: two programs that nest in one ring, at random, under polls: no gap, ever. */
static void l8_random_nesting(void **state)
{
	struct model *m = model__new(&(struct model_opts){.rings = 1, .ring_bytes = 1 << 16});
	uint64_t i, seq_back = 0, stamp_back = 0;
	struct sim_ring *ring = model__ring(m, 0);
	struct rng rng = {8};
	struct sim_emit stack[4];
	int depth = 0;

	for (i = 0; i < 40000; i++) {
		model__pass(m, rng__below(&rng, 20));
		if (depth < 4 && rng__chance(&rng, 120))
			sim_emit__begin(&stack[depth++], ring, &(struct sim_what){.len = i % 32});
		if (depth && !sim_emit__step(&stack[depth - 1]))
			depth--;
		if (rng__chance(&rng, 10))
			model__poll(m);
	}
	while (depth)
		finish(&stack[--depth]);
	for (i = 1; i < ring->nlog; i++) {
		seq_back += ring->log[i].seq < ring->log[i - 1].seq;
		stamp_back += ring->log[i].stamp_ns < ring->log[i - 1].stamp_ns;
	}
	assert_true(seq_back > 77 && stamp_back > 113);
	assert_int_equal(ring->failed, 0);
	model__end(m);
}

/* L11: the gap's bounds hold also where the loss nests in the record before it, in seq order. */
static void l11_loss_inside_the_record_before_it(void **state)
{
	struct model *m = model__with_rings(1);
	struct sim_emit outer;

	model__at(m, 1000);
	sim__put_now(model__ring(m, 0), 8);
	model__at(m, 2000);
	sim_emit__begin(&outer, model__ring(m, 0), &(struct sim_what){.len = 8});
	sim_emit__run(&outer, SIM_STAMP);
	sim__refuse(model__ring(m, 0), 3);
	model__at(m, 2500);
	finish(&outer);
	model__at(m, 3000);
	sim__put_now(model__ring(m, 0), 8);
	model__poll_at(m, 4000);
	model__poll_at(m, 5000);
	model__end(m);
}

/* G4: and where it falls between T and the load of the attempts counter. */
static void refuse_after_t(struct model *m)
{
	if (m->oracle.call != ORACLE_POLL || m->oracle.timed)
		return;
	model__pass(m, 300);
	sim__refuse(model__ring(m, 0), 2);
	model__pass(m, 300);
}

static void g4_loss_between_t_and_the_counter(void **state)
{
	struct model *m = model__with_rings(2);

	m->on_clock = refuse_after_t;
	model__poll_at(m, 10000);
	model__poll_at(m, 20000);
	m->on_clock = NULL;
	model__poll_at(m, 30000);
	assert_int_equal(m->oracle.rings[0].told[WEIR_LOST_RESERVE_FAILED], 4);
	model__end(m);
}

/* L9: truth = delivered + lost + skipped; what was skipped before the watch is nobody's. */
static void l9_skipped(void **state)
{
	struct model *m = model__with_rings(2);
	struct weir_account total;

	m->misses = 7;
	model__watch_misses(m);
	model__poll_at(m, 1000);
	assert_int_equal(model__ledger(m).total.lost[WEIR_LOST_SKIPPED], 0);
	model__at(m, 1500);
	sim__put_now(model__ring(m, 0), 8);
	model__skip(m, 5);
	sim__refuse(model__ring(m, 1), 2);
	model__poll_at(m, 2000);
	total = model__ledger(m).total;
	assert_int_equal(total.lost[WEIR_LOST_SKIPPED], 5);
	assert_int_equal(total.bound[WEIR_LOST_SKIPPED], WEIR_BOUND_AT_MOST);
	assert_int_equal(total.produced, 8);
	model__poll_at(m, 3000);
	assert_int_equal(m->oracle.told_skipped, 5);
	model__at(m, 3500);
	model__skip(m, 1);
	model__end(m);
}

/* L10: exactly those 10, in this poll. */
static void l10_ten_of_a_thousand(void **state)
{
	struct model *m = model__new(&(struct model_opts){.rings = 1, .ring_bytes = 1 << 16});
	uint64_t i, gaps = 0;

	for (i = 0; i < 1000; i++) {
		model__pass(m, 10);
		if (i % 100 == 57)
			sim__refuse(model__ring(m, 0), 1);
		else
			sim__put_now(model__ring(m, 0), 8);
	}
	model__poll_at(m, m->sim.now_ns + 100);
	assert_int_equal(model__ledger(m).total.lost[WEIR_LOST_RESERVE_FAILED], 10);
	assert_int_equal(model__ledger(m).total.delivered, 990);
	assert_int_equal(model__ledger(m).total.pending, 0);
	for (i = 0; i < m->oracle.nout; i++) {
		if (m->oracle.out[i].kind != WEIR_KIND_GAP)
			continue;
		assert_int_equal(m->oracle.out[i].gap.lost, 1);
		assert_int_equal(m->oracle.out[i].seq, 57 + gaps++ * 100);
	}
	assert_int_equal(gaps, 10);
	model__end(m);
}

/* G4: the u32 in the record is widened by the counter, also where it wraps. */
static void seq_wraps(uint64_t first_seq)
{
	struct model *m = model__new(&(struct model_opts){.rings = 2, .first_seq = first_seq});
	struct sim_emit outer;
	int i;

	model__at(m, 1000);
	for (i = 0; i < 40; i++) {
		model__pass(m, 10);
		sim_emit__begin(&outer, model__ring(m, 0), &(struct sim_what){.len = 8});
		sim_emit__run(&outer, i % 2 ? SIM_COUNT : SIM_STAMP);
		sim__put_now(model__ring(m, 0), 8);
		if (i % 5 == 4)
			sim__refuse(model__ring(m, 0), 1);
		if (i % 3 == 0)
			model__poll(m);
		finish(&outer);
		model__pass(m, 10);
		if (i % 4 == 0)
			model__poll(m);
	}
	model__end(m);
}

static void g4_seq_wraps(void **state)
{
	seq_wraps((1ull << 32) - 20);
	seq_wraps((1ull << 32) - 1);
	seq_wraps((1ull << 33) - 7);
	seq_wraps((1ull << 40) - 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(l1_17_lost_between_1000_and_2000),
		cmocka_unit_test(l1_bounds_across_polls),
		cmocka_unit_test(l2_a_million_into_4_kib),
		cmocka_unit_test(l4_loss_at_the_tail),
		cmocka_unit_test(l4_nothing_but_loss),
		cmocka_unit_test(l5_slow_consumer),
		cmocka_unit_test(l5_failing_consumer),
		cmocka_unit_test(l6_self_filtered_unread),
		cmocka_unit_test(g4_the_consumers_own_counts),
		cmocka_unit_test(g4_discarded),
		cmocka_unit_test(l8_interrupt_between_reserve_and_count),
		cmocka_unit_test(l8_at_every_pair_of_steps),
		cmocka_unit_test(l8_seq_seen_before_its_predecessor),
		cmocka_unit_test(l8_random_nesting),
		cmocka_unit_test(l11_loss_inside_the_record_before_it),
		cmocka_unit_test(g4_loss_between_t_and_the_counter),
		cmocka_unit_test(l9_skipped),
		cmocka_unit_test(l10_ten_of_a_thousand),
		cmocka_unit_test(g4_seq_wraps),
	};
	int r = cmocka_run_group_tests_name("model: loss", tests, NULL, NULL);

	return r ? 1 : 0;
}
