// SPDX-License-Identifier: BSD-2-Clause
/*
 * test_foreign.c - BPF ring buffers of other people's programs in a stream: B1 to B4, O16, O20, O21, L2.
 */
#include <errno.h>
#include <stdlib.h>

#include "mix.h"

static void put(struct out_ring *ring, uint64_t stamp_ns, bool discard)
{
	struct out_emit emit;
	const struct out_what what = {.stamped = true, .stamp_ns = stamp_ns, .discard = discard};

	out_emit__begin(&emit, ring, &what);
	out_emit__run(&emit, OUT_DONE);
}

/* B1: what was discarded is no event, and takes its bytes with it. */
static void b1_discarded(void **state)
{
	struct mix *m = mix__new(NULL);
	struct out_ring *ring = mix__ringbuf(m);

	m->dishonest = true;
	put(ring, 5, false);
	put(ring, 10, true);
	put(ring, 15, false);
	put(ring, 20, true);
	put(ring, 25, false);
	mix__poll_at(m, 100);
	mix__expect(m, "5#0 15#0 25#0");
	/* A header, a stamp and a number of 8 bytes each. */
	assert_int_equal(ring->buffer.shared->consumer, 5 * 24);
	assert_int_equal(mix__account(m, 0).filtered, 2);
	mix__end(m);
}

/* O20: a discarded record does not cost its ring the turn. */
static void o20_discarded_first(void **state)
{
	struct mix *m = mix__new(NULL);
	struct out_ring *ring = mix__ringbuf(m);

	mix__ringbuf(m);
	m->dishonest = true;
	put(ring, 1, true);
	mix__feed(m, "5#0 9#1");
	mix__poll_at(m, 100);
	mix__expect(m, "5#0 9#1");
	mix__end(m);
}

/* B2, O16: an unfinished head holds W and nothing else; `busy since` is when it was first met. */
static void b2_busy_head(void **state)
{
	struct mix *m = mix__new(NULL);
	struct out_ring *busy = mix__ringbuf(m), *other = mix__perf(m);
	struct weir_source_info info;
	struct out_emit head;
	uint64_t since_ns;
	int i;

	mix__at(m, 1000);
	out__put_now(other, 8);
	out_emit__begin(&head, busy, &(struct out_what){.len = 8});
	out_emit__run(&head, OUT_FILL);
	mix__poll_at(m, 1010);
	assert_int_equal(weir_stream__source(m->stream, 0, &info), 0);
	since_ns = info.busy_since_ns;
	assert_int_equal(since_ns, 1010);
	for (i = 0; i < 99; i++) {
		mix__pass(m, 10);
		out__put_now(busy, 8);
	}
	for (i = 0; i < 20; i++) {
		assert_int_equal(mix__poll_at(m, m->sim.now_ns + 1000), 0);
		assert_int_equal(weir_stream__source(m->stream, 0, &info), 0);
		assert_int_equal(info.busy_since_ns, since_ns);
	}
	assert_int_equal(mix__flush(m), -ETIMEDOUT);
	out_emit__run(&head, OUT_DONE);
	mix__poll_at(m, m->sim.now_ns + 10);
	mix__poll_at(m, m->sim.now_ns + 10);
	assert_int_equal(m->nout, 101);
	assert_int_equal(weir_stream__source(m->stream, 0, &info), 0);
	assert_int_equal(info.busy_since_ns, 0);
	mix__end(m);
}

/* O16: also before the first grace period has ended. */
static void o16_busy_before_any_ticket(void **state)
{
	struct mix *m = mix__new(NULL);
	struct out_ring *ring = mix__ringbuf(m);
	struct weir_source_info info;
	struct out_emit head;

	m->grace.least_ns = 1000000;
	mix__at(m, 1000);
	out_emit__begin(&head, ring, &(struct out_what){.len = 8});
	out_emit__run(&head, OUT_FILL);
	mix__poll_at(m, 2000);
	assert_int_equal(weir_stream__source(m->stream, 0, &info), 0);
	assert_int_equal(info.busy_since_ns, 2000);
	out_emit__run(&head, OUT_DONE);
	mix__end(m);
}

/* B3: a discard that wakes nobody, then a submit: in the next poll. */
static void b3_discard_then_submit(void **state)
{
	struct mix *m = mix__new(NULL);
	struct out_ring *ring = mix__ringbuf(m);

	m->dishonest = true;
	put(ring, 50, true);
	assert_int_equal(mix__poll_at(m, 60), 0);
	put(ring, 70, false);
	assert_int_equal(mix__poll_at(m, 80), 1);
	mix__end(m);
}

static bool came(const struct mix *m, uint64_t stamp_ns)
{
	uint64_t i;

	for (i = 0; i < m->nout; i++)
		if (m->out[i].kind == WEIR_KIND_RECORD && m->out[i].stamp_ns == stamp_ns)
			return true;
	return false;
}

/* B4: lengths that can't be: skipped and counted, what comes behind is read, the sum closes. */
static void b4_broken_lengths(void **state)
{
	static const uint32_t bad[] = {0,	 3,	     7,		 15,	  4096,
				       1u << 20, 0x3fffffff, 0x3ffffff8, 1u << 29};
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct mix *m = mix__new(NULL);
		struct out_ring *ring = mix__ringbuf(m);
		uint32_t *len;

		m->blind = true;
		put(ring, 10, false);
		put(ring, 20, false);
		put(ring, 30, false);
		len = (uint32_t *)(ring->data + 24);
		ring->buffer.broken = true;
		*len = bad[i];
		mix__poll_at(m, 100);
		put(ring, 110, false);
		mix__poll_at(m, 200);
		mix__poll_at(m, 300);
		assert_true(came(m, 10) && came(m, 110));
		mix__end(m);
	}
}

/* B6: a whole record that is too short for its stamp is one, also where it is the last one. */
static void b6_too_short_for_its_stamp(void **state)
{
	struct mix *m = mix__new(NULL);
	struct out_ring *ring = mix__ringbuf(m);
	void *record;
	int i;

	m->blind = true;
	for (i = 0; i < 3; i++) {
		record = sim_buffer__reserve(&ring->buffer, 5);
		sim_buffer__finish(record, false);
		mix__poll_at(m, 100 + 100 * (uint64_t)i);
	}
	assert_int_equal(mix__account(m, 0).lost[WEIR_LOST_BROKEN], 3);
	assert_int_equal(mix__account(m, 0).bound[WEIR_LOST_BROKEN], WEIR_BOUND_EXACT);
	assert_int_equal(mix__close(m), 0);
	mix__free(m);
}

/* The stamp stands where it was declared to, at any byte. */
static void b_stamp_offsets(void **state)
{
	static const uint32_t offsets[] = {0, 1, 4, 8, 13, 100};
	size_t i;
	int k;

	for (i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		struct mix *m = mix__new(NULL);
		struct mix_ring how = {.kind = MIX_RINGBUF, .stamp_offset = offsets[i]};
		struct out_ring *ring = mix__add_outside(m, &how);

		for (k = 0; k < 200; k++) {
			mix__pass(m, 10);
			out__put_now(ring, 8 + (uint32_t)k % 40);
			if (k % 10 == 9)
				mix__poll_at(m, m->sim.now_ns + 5);
		}
		mix__end(m);
	}
}

/* L2: a counter of the programs' tells all; without one it is unknown, not 0, and the sum closes. */
static void l2_counter_or_none(void **state)
{
	struct mix *m = mix__new(NULL);
	struct out_ring *counted = mix__ringbuf(m);
	struct out_ring *blind = mix__add_outside(m, &(struct mix_ring){.kind = MIX_RINGBUF});
	struct weir_account a;
	int i;

	for (i = 0; i < 100000; i++) {
		mix__pass(m, 1);
		out__put_now(counted, 8);
		out__put_now(blind, 8);
		if (i % 10000 == 0)
			mix__poll_at(m, m->sim.now_ns + 10);
	}
	mix__poll_at(m, m->sim.now_ns + 10);
	assert_true(counted->refused > 90000);
	assert_int_equal(mix__close(m), 0);
	a = mix__account(m, 0);
	assert_int_equal(a.produced, 100000);
	assert_int_equal(a.delivered + a.lost[WEIR_LOST_RESERVE_FAILED], 100000);
	assert_int_equal(a.bound[WEIR_LOST_RESERVE_FAILED], WEIR_BOUND_EXACT);
	a = mix__account(m, 1);
	assert_int_equal(a.bound[WEIR_LOST_RESERVE_FAILED], WEIR_BOUND_UNKNOWN);
	assert_int_equal(a.produced, a.delivered);
	assert_int_equal(mix__ledger(m).total.bound[WEIR_LOST_RESERVE_FAILED], WEIR_BOUND_UNKNOWN);
	mix__free(m);
}

/* L13, G4: what one source knows and another does not: the sum of all closes. */
static void l13_beside_numbered(void **state)
{
	struct mix *m = mix__new(NULL);
	struct sim_ring *numbered = mix__numbered(m);

	mix__add(m, &(struct mix_ring){.kind = MIX_RINGBUF});
	mix__at(m, 100);
	sim__refuse(numbered, 5);
	sim__put_now(numbered, 8);
	out__put_now(m->sources[1].outside, 8);
	mix__poll_at(m, 200);
	mix__poll_at(m, 300);
	assert_int_equal(mix__account(m, 0).lost[WEIR_LOST_RESERVE_FAILED], 5);
	mix__end(m);
}

static struct out_ring *late_writer;

static void publish_late(struct mix *m)
{
	if (late_writer)
		out__put_now(late_writer, 8);
	late_writer = NULL;
}

/* O21: published between the reader's looks: once. */
static void o21_between_two_looks(void **state)
{
	struct mix *m = mix__new(NULL);
	struct out_ring *ring = mix__ringbuf(m), *perf = mix__perf(m);
	int i;

	m->on_clock = publish_late;
	for (i = 0; i < 500; i++) {
		mix__pass(m, 10);
		out__put_now(ring, 8);
		late_writer = i % 2 ? ring : perf;
		mix__poll(m);
	}
	mix__end(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(b1_discarded),
		cmocka_unit_test(o20_discarded_first),
		cmocka_unit_test(b2_busy_head),
		cmocka_unit_test(o16_busy_before_any_ticket),
		cmocka_unit_test(b3_discard_then_submit),
		cmocka_unit_test(b4_broken_lengths),
		cmocka_unit_test(b6_too_short_for_its_stamp),
		cmocka_unit_test(b_stamp_offsets),
		cmocka_unit_test(l2_counter_or_none),
		cmocka_unit_test(l13_beside_numbered),
		cmocka_unit_test(o21_between_two_looks),
	};
	int r = cmocka_run_group_tests_name("model: ring buffers of others", tests, NULL, NULL);

	return r ? 1 : 0;
}
