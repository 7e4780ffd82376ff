// SPDX-License-Identifier: BSD-2-Clause
/*
 * test_held.c - what happens while a busy head holds the watermark (O16, L5, G4, G5).
 *
 * The bound on memory is measured at the allocator, not at the library's own count of it.
 */
#include <errno.h>
#include <stdlib.h>

#include "alloc.h"
#include "model.h"
#include "rng.h"

/* What the library may take beyond the bound once its rings are there: rounding, scratch. */
#define SLACK (256 * 1024)

/* A ring 0 whose head is reserved and unfinished, and a first snapshot before it. */
static struct model *with_busy_ring(struct sim_emit *busy, size_t memory_bytes, size_t ring_bytes,
				    uint32_t others)
{
	struct model *m = model__new(&(struct model_opts){.memory_bytes = memory_bytes});
	uint32_t i;

	model__add_ring(m, 0, 4096, 0, 0);
	for (i = 1; i <= others; i++)
		model__add_ring(m, i, ring_bytes, 0, 0);
	alloc__begin();
	model__poll_at(m, 1000);
	sim_emit__begin(busy, model__ring(m, 0), &(struct sim_what){.len = 8});
	sim_emit__run(busy, SIM_FILL);
	model__pass(m, 1000);
	return m;
}

static void finish(struct sim_emit *emit)
{
	sim_emit__run(emit, SIM_DONE);
}

/* G5: a ring that fills while its records wait is freed; waiting costs no record. */
static void g5_waiting_loses_nothing(void **state)
{
	struct sim_emit busy;
	struct model *m = with_busy_ring(&busy, 0, 4096, 2);
	int i;

	for (i = 0; i < 3000; i++) {
		model__pass(m, 10);
		sim__put_now(model__ring(m, 1 + i % 2), i % 40);
		if (i % 25 == 0)
			assert_int_equal(model__poll(m), 0);
	}
	assert_true(sim_ring__consumer(model__ring(m, 1)) > 10 * 4096);
	assert_int_equal(model__ring(m, 1)->failed + model__ring(m, 2)->failed, 0);
	assert_true(model__ledger(m).held_bytes > 0);
	finish(&busy);
	model__poll_at(m, m->sim.now_ns + 10);
	assert_int_equal(m->oracle.nout, 3001);
	assert_int_equal(model__ledger(m).total.lost[WEIR_LOST_HELD], 0);
	model__end(m);
}

/* G5: the busy ring's own records before its busy one wait with the others. */
static void g5_records_before_the_busy_one(void **state)
{
	struct sim_emit busy, second;
	struct model *m = with_busy_ring(&busy, 0, 4096, 1);
	struct sim_ring *ring = model__ring(m, 1);
	int i, k;

	for (k = 0; k < 20; k++) {
		for (i = 0; i < 50; i++) {
			model__pass(m, 10);
			sim__put_now(ring, 8);
		}
		sim_emit__begin(&second, ring, &(struct sim_what){.len = 8});
		sim_emit__run(&second, SIM_FILL);
		assert_int_equal(model__poll(m), 0);
		finish(&second);
	}
	assert_int_equal(ring->failed, 0);
	finish(&busy);
	model__poll_at(m, m->sim.now_ns + 10);
	assert_int_equal(m->oracle.nout, 20 * 51 + 1);
	model__end(m);
}

/* G5, G4: at the bound the oldest leave, as gaps of cause `held`; the newest are still there. */
static void g5_the_bound(void **state)
{
	const size_t bound = 1 << 20;
	struct sim_emit busy;
	struct model *m = with_busy_ring(&busy, bound, 1 << 16, 2);
	uint64_t held;
	int i;

	for (i = 0; i < 100000; i++) {
		model__pass(m, 10);
		sim__put_now(model__ring(m, 1 + i % 2), 80);
		if (i % 400 == 0) {
			assert_int_equal(model__poll(m), 0);
			assert_true(alloc__live_bytes() <= bound + SLACK);
		}
	}
	assert_true(alloc__peak_bytes() <= bound + SLACK);
	assert_int_equal(model__ring(m, 1)->failed + model__ring(m, 2)->failed, 0);
	held = model__ledger(m).total.lost[WEIR_LOST_HELD];
	assert_true(held > 80000);
	finish(&busy);
	model__poll_at(m, m->sim.now_ns + 10);
	model__poll_at(m, m->sim.now_ns + 10);
	assert_int_equal(model__ledger(m).total.lost[WEIR_LOST_HELD], held);
	assert_int_equal(m->oracle.rings[0].delivered, 1);
	/* Half of the bound may be index and slack; what it takes to hold the last 4,000 is not. */
	for (i = 1; i <= 2; i++) {
		struct sim_ring *ring = model__ring(m, i);
		uint64_t n = ring->nlog;

		assert_int_equal(ring->log[n - 1].fate, SIM_FATE_DELIVERED);
		assert_int_equal(ring->log[n - 1999].fate, SIM_FATE_DELIVERED);
		assert_int_equal(ring->log[0].fate, SIM_FATE_OPEN);
	}
	model__end(m);
}

/* G4: then the watermark goes on: the next busy head finds the memory free again. */
static void g5_memory_comes_back(void **state)
{
	const size_t bound = 1 << 20;
	struct sim_emit busy;
	struct model *m = with_busy_ring(&busy, bound, 1 << 14, 1);
	int round, i;

	for (round = 0; round < 10; round++) {
		for (i = 0; i < 4000; i++) {
			model__pass(m, 10);
			sim__put_now(model__ring(m, 1), 80);
			if (i % 50 == 0)
				model__poll(m);
		}
		finish(&busy);
		model__poll_at(m, m->sim.now_ns + 10);
		sim_emit__begin(&busy, model__ring(m, 0), &(struct sim_what){.len = 8});
		sim_emit__run(&busy, SIM_FILL);
	}
	finish(&busy);
	assert_int_equal(model__ledger(m).total.lost[WEIR_LOST_HELD], 0);
	assert_true(alloc__peak_bytes() <= bound + SLACK);
	model__end(m);
}

/* G5: gaps wait as well, and are bounded as well: 100,000 losses of one, each between two records. */
static void g5_gaps_are_bounded(void **state)
{
	const size_t bound = 1 << 20;
	struct sim_emit busy;
	struct model *m = with_busy_ring(&busy, bound, 1 << 14, 2);
	int i;

	for (i = 0; i < 100000; i++) {
		model__pass(m, 10);
		sim__put_now(model__ring(m, 1), 0);
		model__pass(m, 10);
		sim__refuse(model__ring(m, 1 + (i & 1)), 1);
		if (i % 100 == 0)
			assert_int_equal(model__poll(m), 0);
	}
	assert_true(alloc__peak_bytes() <= bound + SLACK);
	finish(&busy);
	model__poll_at(m, m->sim.now_ns + 10);
	assert_int_equal(model__ledger(m).total.lost[WEIR_LOST_RESERVE_FAILED], 100000);
	model__end(m);
}

/* G5: one poll finds more than the bound has room to index: no loss, no growth, all in order. */
static void g5_one_poll_larger_than_the_bound(void **state)
{
	const size_t bound = 1 << 20;
	struct model *m = model__new(&(struct model_opts){.memory_bytes = bound});
	int i;

	model__add_ring(m, 0, 16 << 20, 0, 0);
	model__add_ring(m, 1, 16 << 20, 0, 0);
	alloc__begin();
	for (i = 0; i < 600000; i++) {
		model__pass(m, 1);
		sim__put_now(model__ring(m, i % 2), i % 16);
	}
	model__pass(m, 10);
	assert_true(model__poll(m) > 0);
	assert_true(alloc__peak_bytes() <= bound + SLACK);
	assert_int_equal(model__close(m), 0);
	assert_true(alloc__peak_bytes() <= bound + SLACK);
	assert_int_equal(model__ledger(m).total.produced, 600000);
	model__free(m);
}

/* L5, G5: a slow consumer that fails, small rings, a small bound. */
static int fail_often(struct model *m, const struct weir_event *event)
{
	int i;

	for (i = 0; i < 4; i++) {
		model__pass(m, 1000);
		sim__put_now(model__ring(m, i % 2), 200);
	}
	return m->oracle.calls % 10 == 0 ? -EPIPE : 0;
}

static void l5_failing_consumer_and_the_bound(void **state)
{
	const size_t bound = 256 << 10;
	struct model *m = model__new(
		&(struct model_opts){.rings = 2, .ring_bytes = 1 << 16, .memory_bytes = bound});
	int i;

	alloc__begin();
	m->on_event = fail_often;
	for (i = 0; i < 1000; i++) {
		model__pass(m, 1000);
		sim__put_now(model__ring(m, 0), 100);
		model__pass(m, 1000);
		model__poll(m);
	}
	assert_true(alloc__peak_bytes() <= bound + SLACK);
	m->on_event = NULL;
	model__end(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(g5_waiting_loses_nothing),
		cmocka_unit_test(g5_records_before_the_busy_one),
		cmocka_unit_test(g5_the_bound),
		cmocka_unit_test(g5_memory_comes_back),
		cmocka_unit_test(g5_gaps_are_bounded),
		cmocka_unit_test(g5_one_poll_larger_than_the_bound),
		cmocka_unit_test(l5_failing_consumer_and_the_bound),
	};
	int r = cmocka_run_group_tests_name("model: held", tests, NULL, NULL);

	return r ? 1 : 0;
}
