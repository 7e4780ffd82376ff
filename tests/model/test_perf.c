// SPDX-License-Identifier: BSD-2-Clause
/*
 * test_perf.c - forward perf rings in a stream: F1 to F7, and what is told of loss (L1, L2, L4).
 */
#include <errno.h>
#include <stdlib.h>

#include "mix.h"
#include "stream/internal.h"

#define SAMPLE(payload) ((OUT_SAMPLE_HEAD + (payload) + 7) & ~7u)

/* O1 to O3, O12, O13 within one ring and over two. */
static void o_order(void **state)
{
	struct mix *m = mix__new(NULL);

	mix__perf(m);
	mix__perf(m);
	mix__feed(m, "1#0 2#1 3#0");
	mix__poll_at(m, 100);
	mix__expect(m, "1#0 2#1 3#0");
	mix__feed(m, "102#0 103#0 104#0 105#0 101#0");
	mix__poll_at(m, 200);
	mix__expect(m, "101#0 102#0 103#0 104#0 105#0");
	mix__feed(m, "205#1 205#0 207#0 205#0 300#0 290#0 310#0");
	mix__poll_at(m, 400);
	mix__expect(m, "205#0 205#0 205#1 207#0 290#0 300#0 310#0");
	mix__end(m);
}

/* F2, G8: broken lengths and types; the good records around them come, and the sum closes. */
static void f2_broken_records(void **state)
{
	static const struct {
		uint32_t type;
		uint16_t size, really;
	} bad[] = {
		{9, 0, 24},	   {9, 4, 24},	{9, 7, 24},	      {9, 20, 24}, {9, 65535, 24},
		{9, 4096 - 8, 24}, {9, 24, 24}, {0xffffffff, 24, 24}, {0, 24, 24}, {2, 16, 24},
		{2, 24, 24},	   {5, 16, 24}, {0xffffffff, 8, 8},
	};
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct mix *m = mix__new(NULL);
		struct out_ring *ring = mix__perf(m);
		struct {
			uint32_t type;
			uint16_t misc, size;
			uint64_t rest[2];
		} record = {.type = bad[i].type, .size = bad[i].size};

		m->dishonest = true;
		out__put(ring, 10);
		assert_true(out__put_raw(ring, &record, bad[i].really));
		mix__poll_at(m, 100);
		out__put(ring, 110);
		mix__poll_at(m, 200);
		mix__poll_at(m, 300);
		assert_int_equal(m->sources[0].delivered, 2);
		assert_true(m->sources[0].told[WEIR_LOST_BROKEN] == 1 ||
			    m->sources[0].told_unknown[WEIR_LOST_BROKEN]);
		mix__free(m);
	}
}

/* G4, G8: how many were broken is known of some and not of others: the sum closes all the same. */
static void f2_known_and_unknown(void **state)
{
	struct mix *m = mix__new(NULL);
	struct out_ring *ring = mix__perf(m);
	const struct {
		uint32_t type;
		uint16_t misc, size;
		uint64_t rest[2];
	} one = {.type = 99, .size = 24}, all = {.type = 9, .size = 4};
	struct weir_account a;

	assert_true(out__put_raw(ring, &one, sizeof(one)));
	mix__poll_at(m, 100);
	assert_true(out__put_raw(ring, &all, sizeof(all)));
	mix__poll_at(m, 200);
	mix__poll_at(m, 300);
	a = mix__account(m, 0);
	assert_int_equal(a.lost[WEIR_LOST_BROKEN], 1);
	assert_int_equal(a.bound[WEIR_LOST_BROKEN], WEIR_BOUND_UNKNOWN);
	assert_int_equal(weir_account__difference(&a), 0);
	mix__expect(m, "(0,100]#0*1 (0,200]#0*?0");
	mix__free(m);
}

/* F3: a head that is behind the tail (kernels before 5.2) is an empty ring. */
static void f3_head_behind_tail(void **state)
{
	struct mix *m = mix__new(NULL);
	struct out_ring *ring = mix__perf(m);
	uint64_t head;

	mix__feed(m, "10#0 20#0");
	mix__poll_at(m, 100);
	head = ring->shared->producer;
	ring->shared->producer = head - 64;
	assert_int_equal(mix__poll_at(m, 200), 0);
	ring->shared->producer = head;
	mix__feed(m, "210#0");
	mix__poll_at(m, 300);
	mix__expect(m, "10#0 20#0 210#0");
	mix__end(m);
}

/* F4: a record that straddles the ring's end at each split, and the longest one. */
static void f4_straddling(void **state)
{
	uint32_t payload[] = {8, 9, 100, 1000, 3000};
	size_t k;
	int i;

	for (k = 0; k < sizeof(payload) / sizeof(payload[0]); k++) {
		struct mix *m = mix__new(NULL);
		struct out_ring *ring = mix__perf(m);

		for (i = 0; i < 600; i++) {
			mix__pass(m, 10);
			out__put_now(ring, payload[k]);
			mix__pass(m, 10);
			assert_int_equal(mix__poll(m), 1);
		}
		mix__end(m);
	}
}

static void f4_longest(void **state)
{
	struct mix *m = mix__new(NULL);
	struct mix_ring how = {.kind = MIX_PERF, .size = 128 << 10, .counted = true};
	struct out_ring *ring = mix__add_outside(m, &how);
	int i;

	for (i = 0; i < 300; i++) {
		mix__pass(m, 10);
		out__put_now(ring, OUT_PAYLOAD_MAX - (uint32_t)i * 8);
		mix__pass(m, 10);
		assert_int_equal(mix__poll(m), 1);
	}
	mix__end(m);
}

/* The payload alone is shown where somebody's program writes it, also around the ring's end. */
static void f4_payload_alone(void **state)
{
	struct mix *m = mix__new(&(struct mix_opts){.batch = true});
	struct mix_ring how = {.kind = MIX_PERF, .payload = true};
	uint32_t i = mix__add(m, &how);
	int k;

	for (k = 0; k < 500; k++) {
		mix__pass(m, 10);
		out__put_now(m->sources[i].outside, 8 + (uint32_t)k % 90);
		if (k % 20 == 19)
			mix__poll_at(m, m->sim.now_ns + 10);
	}
	assert_int_equal(m->sources[i].outside->refused, 0);
	mix__end(m);
}

/* F5: the ring is full; LOST comes with the next that fits, and stands before it. */
static void f5_lost_comes_with_the_next(void **state)
{
	struct mix *m = mix__new(NULL);
	struct out_ring *ring = mix__add_outside(m, &(struct mix_ring){.kind = MIX_PERF});
	uint32_t payload = 192 - OUT_SAMPLE_HEAD, i;

	for (i = 1; i <= 22; i++)
		out_emit__run(
			&(struct out_emit){
				.ring = ring,
				.what = {.len = payload, .stamped = true, .stamp_ns = 10 * i}},
			OUT_DONE);
	m->dishonest = true;
	assert_int_equal(ring->refused, 1);
	mix__poll_at(m, 215);
	assert_int_equal(m->sources[0].delivered, 21);
	m->rendered = m->nout;
	out__put(ring, 230);
	mix__poll_at(m, 300);
	mix__expect(m, "(210,230]#0*1 230#0");
	mix__end(m);
}

/* F6, L4: loss at the end shows at the next poll, and is not told again by a later write. */
static void f6_loss_at_the_end(void **state)
{
	struct mix *m = mix__new(NULL);
	struct out_ring *ring = mix__perf(m);
	uint32_t fits = (4096 - 8) / SAMPLE(8), i;

	for (i = 0; i < 300; i++) {
		mix__pass(m, 1);
		out__put_now(ring, 8);
	}
	assert_int_equal(ring->published, fits);
	mix__poll_at(m, 1000);
	mix__poll_at(m, 2000);
	assert_int_equal(m->sources[0].delivered, fits);
	assert_int_equal(m->sources[0].told[WEIR_LOST_RESERVE_FAILED], 300 - fits);
	out__put_now(ring, 8);
	mix__poll_at(m, 3000);
	mix__poll_at(m, 4000);
	assert_int_equal(m->sources[0].delivered, fits + 1);
	assert_int_equal(m->sources[0].told[WEIR_LOST_RESERVE_FAILED], 300 - fits);
	mix__end(m);
}

/* L4: also where it is not the ring's size that lets them fail: within a second, and at the end. */
static void l4_loss_in_a_ring_with_room(void **state)
{
	struct mix *m = mix__new(NULL);
	struct out_ring *ring = mix__perf(m);

	mix__poll_at(m, 1000);
	out__refuse(ring, 5);
	mix__poll_at(m, 2000000000);
	mix__poll_at(m, 2000001000);
	assert_int_equal(m->sources[0].told[WEIR_LOST_RESERVE_FAILED], 5);
	out__refuse(ring, 2);
	mix__poll_at(m, 2000002000);
	mix__end(m);
}

/* L2: the count can't be had for a while, or nobody counts: what is known is told, never 0. */
static void l2_the_count_is_not_there(void **state)
{
	struct mix *m = mix__new(NULL);
	struct out_ring *ring = mix__perf(m);

	ring->loses_count = true;
	out__refuse(ring, 5);
	mix__poll_at(m, 2000000000);
	assert_int_equal(m->nout, 0);
	ring->loses_count = false;
	mix__poll_at(m, 4000000000);
	mix__poll_at(m, 4000001000);
	assert_int_equal(m->sources[0].told[WEIR_LOST_RESERVE_FAILED], 5);
	mix__end(m);
}

/* L1: a gap stands in the stream where it was, bounded by its neighbours. */
static void l1_a_gap_in_its_place(void **state)
{
	struct mix *m = mix__new(NULL);

	mix__perf(m);
	mix__perf(m);
	mix__feed(m, "1000#1");
	out__refuse(m->sources[1].outside, 17);
	mix__feed(m, "1500#0 2000#1 2500#0");
	mix__poll_at(m, 3000);
	mix__expect(m, "1000#1 1500#0 (1000,2000]#1*17 2000#1 2500#0");
	mix__end(m);
}

/* L1: between two of one stamp, and where the one after it was stamped earlier: never of no length. */
static void l1_bounds_are_bounds(void **state)
{
	struct mix *m = mix__new(NULL);
	struct out_ring *ring = mix__perf(m);

	mix__feed(m, "100#0");
	out__refuse(ring, 1);
	mix__feed(m, "100#0");
	out__refuse(ring, 2);
	mix__feed(m, "90#0");
	mix__poll_at(m, 200);
	mix__poll_at(m, 300);
	assert_int_equal(m->sources[0].told[WEIR_LOST_RESERVE_FAILED], 3);
	mix__end(m);
}

/* L1, LOST_SAMPLES: what was dropped before it came to the ring is loss of another cause. */
static void l1_lost_samples(void **state)
{
	struct mix *m = mix__new(NULL);
	struct out_ring *ring = mix__perf(m);

	mix__feed(m, "100#0");
	out__put_lost_samples(ring, 9, 150);
	mix__feed(m, "200#0");
	mix__poll_at(m, 300);
	mix__expect(m, "100#0 (100,150]#0*9 200#0");
	assert_int_equal(mix__account(m, 0).lost[WEIR_LOST_UNSEEN], 9);
	mix__end(m);
}

/* L12: a throttled event is a gap of unknown count, from the one to the other. */
static void l12_throttle(void **state)
{
	struct mix *m = mix__new(NULL);
	struct out_ring *ring = mix__perf(m);

	mix__feed(m, "100#0");
	out__put_throttle(ring, 5, 110, 1);
	mix__feed(m, "120#0");
	mix__poll_at(m, 200);
	out__put_throttle(ring, 6, 210, 1);
	mix__feed(m, "220#0");
	mix__poll_at(m, 300);
	mix__expect(m, "100#0 120#0 (110,210]#0*?0 220#0");
	/* Both events of a ring: none of the two holes is forgotten. */
	out__put_throttle(ring, 5, 310, 1);
	out__put_throttle(ring, 5, 320, 2);
	out__put_throttle(ring, 6, 330, 1);
	mix__feed(m, "335#0");
	out__put_throttle(ring, 6, 340, 2);
	mix__poll_at(m, 400);
	mix__expect(m, "(310,330]#0*?0 335#0 (330,340]#0*?0");
	/* The first is lost: at some time after the last record. */
	mix__feed(m, "410#0");
	out__put_throttle(ring, 6, 430, 1);
	mix__poll_at(m, 500);
	mix__expect(m, "410#0 (410,430]#0*?0");
	/* To the end. */
	out__put_throttle(ring, 5, 510, 1);
	mix__poll_at(m, 600);
	assert_int_equal(mix__close(m), 0);
	assert_true(m->sources[0].told_unknown[WEIR_LOST_THROTTLED]);
	assert_int_equal(m->out[m->nout - 1].gap.from_ns, 510);
	assert_int_equal(mix__account(m, 0).bound[WEIR_LOST_THROTTLED], WEIR_BOUND_UNKNOWN);
	mix__free(m);
}

/* O15: a LOST record whose stamp was made up is told all the same, by then. */
static void o15_loss_beyond_the_clock(void **state)
{
	struct mix *m = mix__new(NULL);
	struct out_ring *ring = mix__perf(m);

	out__refuse(ring, 3);
	mix__feed(m, "18446744073709551615#0");
	mix__poll_at(m, 100);
	mix__poll_at(m, 200);
	assert_int_equal(m->sources[0].told[WEIR_LOST_RESERVE_FAILED], 3);
	assert_int_equal(m->sources[0].ahead, 1);
	mix__end(m);
}

/* G2: T and the stamps are by two clocks that a handshake has found apart: nothing is proved by T any more. */
static void g2_clocks_apart(void **state)
{
	struct mix *m = mix__new(NULL);

	mix__perf(m);
	mix__feed(m, "10#0");
	mix__poll_at(m, 100);
	assert_int_equal(mix__ledger(m).order, WEIR_ORDER_EXACT);
	m->stream->clock_off_ns = -5000;
	m->estimated = true;
	mix__poll_at(m, 200);
	assert_int_equal(mix__ledger(m).order, WEIR_ORDER_ESTIMATED);
	mix__end(m);
}

/* O21, O14: an interrupt nests in a writer: nothing of both is visible before the outer one ends. */
static void o21_nested_writers(void **state)
{
	struct mix *m = mix__new(NULL);
	struct out_ring *ring = mix__perf(m);
	struct out_emit outer, inner;

	mix__at(m, 1000);
	out_emit__begin(&outer, ring, &(struct out_what){.len = 30});
	out_emit__run(&outer, OUT_FILL);
	mix__at(m, 1010);
	out_emit__begin(&inner, ring, &(struct out_what){.len = 20});
	out_emit__run(&inner, OUT_DONE);
	assert_int_equal(mix__poll_at(m, 1020), 0);
	assert_int_equal(mix__poll_at(m, 1030), 0);
	out_emit__run(&outer, OUT_DONE);
	mix__poll_at(m, 1040);
	mix__poll_at(m, 1050);
	mix__expect(m, "1000#0 1010#0");
	/* Before the reserve it is the inner one that stands first in the ring. */
	out_emit__begin(&outer, ring, &(struct out_what){.len = 30});
	out_emit__run(&outer, OUT_RESERVE);
	mix__at(m, 1060);
	out__put_now(ring, 20);
	assert_int_equal(mix__poll_at(m, 1070), 0);
	out_emit__run(&outer, OUT_DONE);
	mix__poll_at(m, 1080);
	mix__poll_at(m, 1090);
	mix__expect(m, "1050#0 1060#0");
	mix__end(m);
}

/* M2: its CPU is off and on: new memory, whose positions begin at 0; the ring's own go on. */
static void m2_new_memory(void **state)
{
	struct mix *m = mix__new(NULL);
	struct out_ring *ring = mix__perf(m);
	int round, i;

	mix__perf(m);
	for (round = 0; round < 5; round++) {
		struct ring *reader = m->stream->by_source[0];

		for (i = 0; i < 30; i++) {
			mix__pass(m, 10);
			out__put_now(ring, 50);
			out__put_now(m->sources[1].outside, 50);
		}
		/* Half of it waits when the memory goes. */
		m->grace.least_ns = round % 2 ? 1000000 : 0;
		mix__poll_at(m, m->sim.now_ns + 10);
		stream__drain_dead(m->stream, reader);
		stream__unbind(m->stream, reader);
		mix__poll_at(m, m->sim.now_ns + 10);
		/* What waits comes out while there is no ring. */
		mix__poll_at(m, m->sim.now_ns + 2000000);
		assert_int_equal(m->sources[0].delivered, ring->published);
		out_ring__renew(ring);
		stream__rebind(reader, ring->data, ring->size, out_ring__producer(ring),
			       out_ring__consumer(ring));
		mix__pass(m, 1000000);
		out__put_now(ring, 50);
		mix__poll_at(m, m->sim.now_ns + 10);
	}
	assert_int_equal(ring->refused, 0);
	mix__end(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(o_order),
		cmocka_unit_test(f2_broken_records),
		cmocka_unit_test(f2_known_and_unknown),
		cmocka_unit_test(f3_head_behind_tail),
		cmocka_unit_test(f4_straddling),
		cmocka_unit_test(f4_longest),
		cmocka_unit_test(f4_payload_alone),
		cmocka_unit_test(f5_lost_comes_with_the_next),
		cmocka_unit_test(f6_loss_at_the_end),
		cmocka_unit_test(l4_loss_in_a_ring_with_room),
		cmocka_unit_test(l2_the_count_is_not_there),
		cmocka_unit_test(l1_a_gap_in_its_place),
		cmocka_unit_test(l1_bounds_are_bounds),
		cmocka_unit_test(l1_lost_samples),
		cmocka_unit_test(l12_throttle),
		cmocka_unit_test(o15_loss_beyond_the_clock),
		cmocka_unit_test(g2_clocks_apart),
		cmocka_unit_test(o21_nested_writers),
		cmocka_unit_test(m2_new_memory),
	};
	int r = cmocka_run_group_tests_name("model: perf rings", tests, NULL, NULL);

	return r ? 1 : 0;
}
