// SPDX-License-Identifier: BSD-2-Clause
/*
 * test_fences.c - writers that stamp first: grace periods, waiting, both, and weir.bpf.h's rings, in one
 * stream (O5, O7, O8, O11, O14, O17, O23, G2, G3, G5, G6).
 */
#include <errno.h>
#include <stdlib.h>

#include "mix.h"

#define MS 1000000ull

static struct out_ring *by_grace(struct mix *m, enum mix_kind kind, uint64_t grace_ns)
{
	return mix__add_outside(m, &(struct mix_ring){.kind = kind,
						      .fence = WEIR_FENCE_GRACE,
						      .grace_ns = grace_ns,
						      .counted = true});
}

/* O5: one record, stamped at 405 ms, visible `after` later, while another ring has one each 10 ms. */
static void visible_after(uint64_t after_ms, enum mix_kind kind)
{
	const uint64_t d = 100 * MS;
	struct mix *m = mix__new(NULL);
	struct out_ring *steady = by_grace(m, MIX_PERF, d), *stalled = by_grace(m, kind, d);
	uint64_t x_ms = after_ms > 100 ? after_ms - 100 : 0, ms;
	struct weir_ledger ledger;
	struct out_emit emit;

	for (ms = 1; ms < 800; ms++) {
		mix__at(m, ms * MS);
		if (ms % 10 == 0)
			out__put_now(steady, 8);
		if (ms == 405) {
			out_emit__begin(&emit, stalled, &(struct out_what){.len = 8});
			out_emit__run(&emit, OUT_RESERVE);
		}
		if (ms == 405 + after_ms)
			out_emit__run(&emit, OUT_DONE);
		mix__poll(m);
	}
	ledger = mix__ledger(m);
	assert_int_equal(ledger.order, WEIR_ORDER_ESTIMATED);
	assert_int_equal(ledger.total.late, x_ms > 0);
	/* The watermark that it missed was that of the poll before. */
	assert_true(ledger.lateness.max_ns <= x_ms * MS);
	assert_true(!x_ms || ledger.lateness.max_ns >= (x_ms - 1) * MS - 10);
	assert_int_equal(m->sources[1].delivered, 1);
	mix__end(m);
}

static void o5_the_table(void **state)
{
	static const uint64_t after_ms[] = {90, 99, 120, 150, 180, 250};
	size_t i;

	for (i = 0; i < sizeof(after_ms) / sizeof(after_ms[0]); i++) {
		visible_after(after_ms[i], MIX_PERF);
		visible_after(after_ms[i], MIX_RINGBUF);
	}
}

/* O5: where grace periods are waited for, the stall is covered, however long it takes. */
static void o5_covered_by_tickets(void **state)
{
	struct mix *m = mix__new(NULL);
	struct out_ring *steady = mix__perf(m), *stalled = mix__perf(m);
	struct out_emit emit;
	uint64_t ms;

	for (ms = 1; ms < 800; ms++) {
		mix__at(m, ms * MS);
		if (ms % 10 == 0)
			out__put_now(steady, 8);
		if (ms == 405) {
			out_emit__begin(&emit, stalled, &(struct out_what){.len = 8});
			out_emit__run(&emit, OUT_RESERVE);
		}
		if (ms == 655)
			out_emit__run(&emit, OUT_DONE);
		mix__poll(m);
		assert_true(ms < 405 || ms >= 655 || mix__watermark(m) <= 405 * MS);
	}
	assert_int_equal(mix__ledger(m).total.late, 0);
	assert_int_equal(mix__ledger(m).order, WEIR_ORDER_EXACT);
	mix__end(m);
}

/* O14: stamped first, published second, and what was stamped between is visible before. */
static void o14_stamp_to_publish(void **state)
{
	static const uint64_t apart_ns[] = {313, 705, 1830};
	size_t i;

	for (i = 0; i < sizeof(apart_ns) / sizeof(apart_ns[0]); i++) {
		struct mix *m = mix__new(NULL);
		struct out_ring *late = mix__ringbuf(m), *early = mix__perf(m);
		struct out_emit emit;

		mix__at(m, 10000);
		out_emit__begin(&emit, late, &(struct out_what){.len = 8});
		out_emit__run(&emit, OUT_RESERVE);
		mix__pass(m, apart_ns[i]);
		out__put_now(early, 8);
		mix__poll_at(m, m->sim.now_ns + 10);
		mix__poll_at(m, m->sim.now_ns + 10000);
		assert_int_equal(m->nout, 0);
		out_emit__run(&emit, OUT_DONE);
		mix__poll_at(m, m->sim.now_ns + 10);
		mix__poll_at(m, m->sim.now_ns + 10);
		assert_int_equal(m->nout, 2);
		assert_int_equal(m->out[0].source, 0);
		mix__end(m);
	}
}

/* O7, O8, G3: one event, then silence: within one poll and fence, and W goes on for ever. */
static void o8_one_event_on_many(void **state)
{
	struct mix *m = mix__new(NULL);
	uint32_t i;

	for (i = 0; i < 64; i++)
		mix__perf(m);
	m->grace.least_ns = 8 * MS;
	mix__at(m, 100 * MS);
	out__put_now(m->sources[40].outside, 8);
	mix__poll_at(m, 101 * MS);
	mix__poll_at(m, 110 * MS);
	mix__poll_at(m, 119 * MS);
	assert_int_equal(m->nout, 1);
	for (i = 0; i < 60; i++)
		mix__poll_at(m, m->sim.now_ns + 1000 * MS);
	assert_true(mix__watermark(m) > 58000 * MS);
	mix__end(m);
}

/* O11: a ring that looked empty publishes an older one before the newer is released: in order. */
static void o11_looked_empty(void **state)
{
	struct mix *m = mix__new(NULL);
	struct out_ring *a = mix__perf(m), *b = mix__ringbuf(m);
	struct out_emit emit;

	mix__at(m, 10);
	out_emit__begin(&emit, a, &(struct out_what){.len = 8});
	out_emit__run(&emit, OUT_RESERVE);
	mix__at(m, 20);
	out__put_now(b, 8);
	mix__poll_at(m, 30);
	out_emit__run(&emit, OUT_DONE);
	mix__poll_at(m, 40);
	mix__poll_at(m, 50);
	mix__expect(m, "10#0 20#1");
	mix__end(m);
}

static struct out_ring *flooding;

static int flood(struct mix *m, const struct weir_event *event)
{
	(void)event;
	out__put_now(flooding, 8);
	return 0;
}

/* O17, O23: one ring is never dry; each poll ends, and the other ring has its turn in the next. */
static void o17_never_dry(void **state)
{
	struct mix *m = mix__new(NULL);
	struct out_ring *quiet = mix__ringbuf(m);
	int i;

	flooding = mix__perf(m);
	m->on_event = flood;
	mix__at(m, 100);
	for (i = 0; i < 40; i++)
		out__put_now(flooding, 8);
	for (i = 0; i < 200; i++) {
		uint64_t before = m->sources[0].delivered;

		mix__pass(m, 100);
		out__put_now(quiet, 8);
		mix__pass(m, 100);
		mix__poll(m);
		assert_true(m->sources[0].delivered == before + 1);
	}
	m->on_event = NULL;
	mix__end(m);
}

/* G5: grace periods take long while the rings fill: copied out, nothing lost, all in order. */
static void g5_tickets_take_long(void **state)
{
	struct mix *m = mix__new(NULL);
	struct out_ring *a = mix__perf(m), *b = mix__ringbuf(m);
	int i;

	m->grace.least_ns = 100 * MS;
	for (i = 0; i < 4000; i++) {
		mix__pass(m, MS / 10);
		out__put_now(a, 8 + (uint32_t)i % 60);
		out__put_now(b, 8 + (uint32_t)i % 60);
		if (i % 10 == 9)
			mix__poll(m);
	}
	assert_int_equal(a->refused + b->refused, 0);
	assert_true(mix__ledger(m).held_bytes > 10 * 4096);
	assert_int_equal(mix__ledger(m).total.lost[WEIR_LOST_HELD], 0);
	mix__end(m);
}

/* G5, G4: when memory ends the oldest leave, counted, with bounds; when a ticket comes the rest is out. */
static void g5_memory_ends(void **state)
{
	struct mix *m = mix__new(&(struct mix_opts){.memory_bytes = 512 << 10});
	struct out_ring *a = mix__perf(m), *b = mix__ringbuf(m);
	uint64_t held;
	int i;

	mix__numbered(m);
	mix__poll_at(m, MS);
	m->grace.least_ns = 1000 * MS;
	mix__poll_at(m, 2 * MS);
	for (i = 0; i < 12000; i++) {
		mix__pass(m, MS / 100);
		out__put_now(a, 80);
		out__put_now(b, 80);
		sim__put_now(m->sources[2].numbered, 40);
		if (i % 10 == 9)
			mix__poll(m);
	}
	assert_int_equal(a->refused + b->refused, 0);
	held = mix__ledger(m).total.lost[WEIR_LOST_HELD];
	assert_true(held > 10000);
	mix__poll_at(m, 3000 * MS);
	m->grace.least_ns = 0;
	mix__poll_at(m, 6000 * MS);
	mix__poll_at(m, 6001 * MS);
	assert_int_equal(mix__ledger(m).total.lost[WEIR_LOST_HELD], held);
	assert_true(m->sources[0].told[WEIR_LOST_HELD] && m->sources[1].told[WEIR_LOST_HELD]);
	mix__end(m);
}

/* Records that wait are copies, some of them around the ring's end: byte for byte what they were. */
static void g5_held_around_the_end(void **state)
{
	struct mix *m = mix__new(&(struct mix_opts){.batch = true});
	struct out_ring *ring = mix__perf(m);
	int i;

	m->grace.least_ns = 10 * MS;
	for (i = 0; i < 3000; i++) {
		mix__pass(m, MS / 10);
		out__put_now(ring, 8 + (uint32_t)(i * 37) % 700);
		if (i % 2)
			mix__poll(m);
	}
	assert_int_equal(ring->refused, 0);
	mix__end(m);
}

/* G6: a flush delivers what was published before it; and does not go beyond what is proved. */
static void g6_flush(void **state)
{
	struct mix *m = mix__new(NULL);
	struct out_ring *a = mix__perf(m), *b = mix__ringbuf(m);
	struct out_emit emit;

	mix__numbered(m);
	mix__at(m, 1000);
	out__put_now(a, 8);
	out__put_now(b, 8);
	sim__put_now(m->sources[2].numbered, 8);
	assert_int_equal(mix__flush(m), 0);
	assert_int_equal(m->nout, 3);
	out_emit__begin(&emit, a, &(struct out_what){.len = 8});
	out_emit__run(&emit, OUT_RESERVE);
	mix__pass(m, 100);
	out__put_now(b, 8);
	assert_int_equal(mix__flush(m), -ETIMEDOUT);
	out_emit__run(&emit, OUT_DONE);
	assert_int_equal(mix__flush(m), 0);
	assert_int_equal(m->nout, 5);
	assert_int_equal(m->out[3].source, 0);
	mix__end(m);
}

/* Three proofs in one stream: W is the least of theirs, and estimated because one is. */
static void mixed_proofs(void **state)
{
	struct mix *m = mix__new(NULL);
	struct out_emit emit;

	mix__numbered(m);
	mix__perf(m);
	by_grace(m, MIX_RINGBUF, 50 * MS);
	mix__at(m, 1000 * MS);
	mix__poll(m);
	assert_int_equal(mix__watermark(m), 950 * MS - 2);
	assert_int_equal(mix__ledger(m).order, WEIR_ORDER_ESTIMATED);
	/* A writer that stands inside holds the tickets, and so all of it. */
	mix__at(m, 1010 * MS);
	out_emit__begin(&emit, m->sources[1].outside, &(struct out_what){.len = 8});
	out_emit__run(&emit, OUT_RESERVE);
	mix__poll_at(m, 1100 * MS);
	assert_true(mix__watermark(m) <= 1000 * MS);
	out_emit__run(&emit, OUT_DONE);
	mix__poll_at(m, 1200 * MS);
	assert_int_equal(mix__watermark(m), 1150 * MS - 2);
	mix__poll_at(m, 1300 * MS);
	assert_int_equal(mix__watermark(m), 1250 * MS - 2);
	mix__end(m);
}

/* A ring that joins later holds W until its own fence has proved as much; nothing of it is late. */
static void joins_later(void **state)
{
	struct mix *m = mix__new(NULL);
	struct out_ring *ring;

	mix__numbered(m);
	mix__poll_at(m, 1000 * MS);
	m->grace.least_ns = 20 * MS;
	mix__pass(m, MS);
	ring = mix__perf(m);
	mix__pass(m, MS);
	out__put_now(ring, 8);
	sim__put_now(m->sources[0].numbered, 8);
	mix__poll_at(m, 1003 * MS);
	assert_int_equal(m->nout, 0);
	mix__poll_at(m, 1030 * MS);
	mix__poll_at(m, 1060 * MS);
	assert_int_equal(m->nout, 2);
	mix__end(m);
}

/* Some hundred rings of all kinds, each with a few, all at once. */
static void several_hundred_rings(void **state)
{
	struct mix *m = mix__new(NULL);
	uint32_t i, k;

	for (i = 0; i < 600; i++)
		mix__add(m, &(struct mix_ring){.kind = (enum mix_kind)(i % 3),
					       .fence = i % 7 ? WEIR_FENCE_RCU : WEIR_FENCE_GRACE,
					       .grace_ns = 100,
					       .counted = i % 5});
	for (k = 0; k < 6000; k++) {
		struct mix_source *s = &m->sources[(k * 7919) % 600];

		mix__pass(m, 1);
		if (s->numbered)
			sim__put_now(s->numbered, 8);
		else
			out__put_now(s->outside, 8 + k % 50);
		if (k % 1000 == 999)
			mix__poll_at(m, m->sim.now_ns + 10);
	}
	mix__poll_at(m, m->sim.now_ns + 1000);
	assert_int_equal(m->nout, 6000);
	mix__end(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(o5_the_table),		  cmocka_unit_test(o5_covered_by_tickets),
		cmocka_unit_test(o14_stamp_to_publish),	  cmocka_unit_test(o8_one_event_on_many),
		cmocka_unit_test(o11_looked_empty),	  cmocka_unit_test(o17_never_dry),
		cmocka_unit_test(g5_tickets_take_long),	  cmocka_unit_test(g5_memory_ends),
		cmocka_unit_test(g5_held_around_the_end), cmocka_unit_test(g6_flush),
		cmocka_unit_test(mixed_proofs),		  cmocka_unit_test(joins_later),
		cmocka_unit_test(several_hundred_rings),
	};
	int r = cmocka_run_group_tests_name("model: fences", tests, NULL, NULL);

	return r ? 1 : 0;
}
