// SPDX-License-Identifier: BSD-2-Clause
/*
 * test_ring.c - B1 to B5, with F2 and F4 as they apply to BPF ring buffers (G5, G8).
 *
 * B2 is O16 in test_progress.c, B3 is O20 in test_order.c.
 */
#include <errno.h>
#include <stdlib.h>

#include "model.h"
#include "rng.h"

#define HDR  8
#define HEAD (HDR + (uint32_t)sizeof(struct weir_record))

static void emit(struct sim_ring *ring, uint32_t len, bool discard)
{
	struct sim_emit e;

	sim_emit__begin(&e, ring, &(struct sim_what){.len = len, .discard = discard});
	sim_emit__run(&e, SIM_DONE);
}

/* `len` bytes, submitted by a program that does not know struct weir_record. */
static void emit_bare(struct sim_ring *ring, uint32_t len)
{
	struct sim_emit e;

	sim_emit__begin(&e, ring, &(struct sim_what){.len = len, .bare = true});
	sim_emit__run(&e, SIM_DONE);
}

/* B1: the samples' sizes are those of their payloads here, behind a head of 16 bytes. */
static void b1_samples_and_discards(void **state)
{
	struct model *m = model__with_rings(1);
	struct sim_ring *ring = model__ring(m, 0);

	model__at(m, 1000);
	emit(ring, 5, false);
	emit(ring, 10, true);
	emit(ring, 15, false);
	emit(ring, 20, true);
	emit(ring, 25, false);
	assert_int_equal(model__poll_at(m, 2000), 3);
	assert_int_equal(m->oracle.out[0].len, 5);
	assert_int_equal(m->oracle.out[1].len, 15);
	assert_int_equal(m->oracle.out[2].len, 25);
	assert_int_equal(sim_ring__consumer(ring), 136 + 5 * 16);
	assert_int_equal(model__ledger(m).total.filtered, 2);
	model__end(m);
}

/* Nothing but discards: no event, the tail moves all the same. */
static void b1_only_discards(void **state)
{
	struct model *m = model__with_rings(1);
	int i;

	for (i = 0; i < 500; i++) {
		model__pass(m, 10);
		emit(model__ring(m, 0), i % 50, true);
		if (i % 10 == 9)
			assert_int_equal(model__poll(m), 0);
	}
	assert_int_equal(model__poll_at(m, 10000), 0);
	assert_int_equal(model__ledger(m).total.filtered, 500);
	model__end(m);
}

/* F4: a record that straddles the ring's end, at each multiple of 8. */
static void f4_straddles_the_end(void **state)
{
	static const uint32_t lens[] = {0, 1, 8, 200, 1000, 4064};
	uint32_t i, split;

	for (i = 0; i < 6; i++) {
		for (split = 0; split <= lens[i] + HEAD && split < 4096; split += 8) {
			struct model *m = model__new(
				&(struct model_opts){.rings = 1, .position = 8 * 4096 - split});

			model__at(m, 1000);
			emit(model__ring(m, 0), lens[i], false);
			assert_int_equal(model__poll_at(m, 2000), 1);
			model__end(m);
		}
	}
}

static void f4_65528_bytes(void **state)
{
	uint64_t at;

	for (at = 8; at < 65536; at += 4088) {
		struct model *m = model__new(&(struct model_opts){
			.rings = 1, .ring_bytes = 1 << 17, .position = (1 << 17) - at});

		model__at(m, 1000);
		emit(model__ring(m, 0), 65528, false);
		emit(model__ring(m, 0), 3, false);
		assert_int_equal(model__poll_at(m, 2000), 2);
		model__end(m);
	}
}

/* Positions are free-running: they need not begin at 0, and they wrap. */
static void g5_positions_wrap(void **state)
{
	static const uint64_t starts[] = {0ull - 4096, 0ull - 8, 0ull - 3 * 4096 + 64,
					  (1ull << 32) - 4096 - 8, (1ull << 63) - 64};
	uint32_t i, k;

	for (i = 0; i < 5; i++) {
		struct model *m =
			model__new(&(struct model_opts){.rings = 2, .position = starts[i]});

		for (k = 0; k < 1000; k++) {
			model__pass(m, 10);
			emit(model__ring(m, k % 2), k % 90, k % 13 == 0);
			if (k % 9 == 0)
				model__poll(m);
		}
		model__end(m);
	}
}

/* G5: each ring is full to the last byte that fits, at each poll: all of it comes, and no more fits. */
static void g5_full_rings(void **state)
{
	struct model *m = model__with_rings(3);
	uint32_t i, k;

	for (k = 0; k < 20; k++) {
		for (i = 0; i < 3; i++) {
			while (m->sim.rings[i]->failed < k + 1) {
				model__pass(m, 1);
				emit(model__ring(m, i), 8 * i, false);
			}
		}
		model__poll_at(m, m->sim.now_ns + 10);
	}
	assert_int_equal(model__ledger(m).total.lost[WEIR_LOST_RESERVE_FAILED], 60);
	model__end(m);
}

/* F2, B4: shorter than struct weir_record, but the length is good: only that one is skipped. */
static void b4_shorter_than_its_head(void **state)
{
	static const uint32_t lens[] = {0, 1, 4, 7, 8, 15};
	struct model *m = model__with_rings(2);
	struct sim_ring *ring = model__ring(m, 0);
	uint32_t i;

	model__at(m, 1000);
	emit(ring, 8, false);
	for (i = 0; i < 6; i++) {
		model__pass(m, 10);
		emit_bare(ring, lens[i]);
		model__pass(m, 10);
		emit(ring, i, false);
		emit(model__ring(m, 1), 4, false);
	}
	model__poll_at(m, 2000);
	assert_int_equal(m->oracle.rings[0].delivered, 7);
	assert_int_equal(m->oracle.rings[1].delivered, 6);
	assert_int_equal(model__source(m, 0).account.lost[WEIR_LOST_BROKEN], 6);
	assert_int_equal(model__watermark(m), 1998);
	model__poll_at(m, 3000);
	assert_int_equal(m->oracle.rings[0].told[WEIR_LOST_BROKEN], 6);
	model__end(m);
}

/* B5: the same with losses around: how many of each is known, by the two counts of the kernel. */
static void b5_broken_and_refused(void **state)
{
	struct model *m = model__with_rings(1);
	struct sim_ring *ring = model__ring(m, 0);
	int i;

	for (i = 0; i < 200; i++) {
		model__pass(m, 10);
		if (i % 5 == 2)
			emit_bare(ring, i % 16);
		else if (i % 7 == 3)
			sim__refuse(ring, 2);
		else
			emit(ring, i % 30, i % 11 == 0);
		if (i % 13 == 0)
			model__poll(m);
	}
	model__end(m);
}

/*
 * B5, G4: a hole is told while a producer stands between its attempt and its failure. That there are
 * two is known, and when it has gone on, which of them is which.
 */
static void b5_refused_and_not_counted_yet(void **state)
{
	struct model *m = model__with_rings(1);
	struct sim_emit refused;

	model__at(m, 1000);
	emit_bare(model__ring(m, 0), 8);
	sim_emit__begin(&refused, model__ring(m, 0), &(struct sim_what){.refuse = true});
	sim_emit__run(&refused, SIM_COUNT_FAILED);
	model__poll_at(m, 2000);
	sim_emit__run(&refused, SIM_DONE);
	model__poll_at(m, 3000);
	assert_int_equal(model__source(m, 0).account.lost[WEIR_LOST_RESERVE_FAILED], 1);
	assert_int_equal(model__source(m, 0).account.lost[WEIR_LOST_BROKEN], 1);
	model__end(m);
}

static int stop(struct model *m, const struct weir_event *event)
{
	return event->kind == WEIR_KIND_GAP ? -EIO : 0;
}

/* B5, O24: one hole, two causes, two gaps in one place: the second is not late behind the first. */
static void b5_stopped_between_two_causes(void **state)
{
	struct model *m = model__with_rings(1);
	struct sim_ring *ring = model__ring(m, 0);

	model__at(m, 1000);
	emit(ring, 8, false);
	sim__refuse(ring, 1);
	emit_bare(ring, 8);
	model__at(m, 1500);
	emit(ring, 8, false);
	m->on_event = stop;
	assert_int_equal(model__poll_at(m, 2000), -EIO);
	m->on_event = NULL;
	model__expect(m, "1000#0 (0,1500]#0*1");
	model__poll_at(m, 3000);
	model__expect(m, "(0,1500]#0*1 1500#0");
	model__end(m);
}

/*
 * F2, B4: a length that can't be: the reader goes on at the head that it knew, what stands between
 * is lost and counted; what comes later, and the other ring, is delivered.
 */
static void impossible_length(uint32_t len)
{
	struct model *m = model__with_rings(2);
	struct sim_ring *ring = model__ring(m, 0);
	int i;

	for (i = 0; i < 10; i++) {
		model__pass(m, 10);
		emit(ring, 24, false);
		emit(model__ring(m, 1), 24, false);
	}
	sim_ring__spoil(ring, 4, len);
	for (i = 5; i < 10; i++)
		sim_ring__bury(ring, i);
	assert_true(model__poll_at(m, 1000) >= 14);
	assert_int_equal(m->oracle.rings[0].delivered, 4);
	assert_int_equal(m->oracle.rings[1].delivered, 10);
	assert_int_equal(model__source(m, 0).account.lost[WEIR_LOST_BROKEN], 6);
	assert_int_equal(model__watermark(m), 998);
	emit(ring, 16, false);
	model__poll_at(m, 2000);
	assert_int_equal(m->oracle.rings[0].delivered, 5);
	assert_int_equal(m->oracle.rings[0].told[WEIR_LOST_BROKEN], 6);
	model__end(m);
}

static void b4_impossible_lengths(void **state)
{
	impossible_length(0x3fffffff);
	impossible_length(0x20000000 | 40);
	impossible_length(4096);
	impossible_length(4096 - 8 + 1);
	impossible_length(65535);
	/* The rest of the ring is 6 records of 48 bytes: one more byte than that is past the head. */
	impossible_length(6 * 48 - 8 + 1);
	impossible_length(0x40000000 | 65535);
}

/* B4: a length that reaches exactly to the head is possible; what it covers is not found again. */
static void b4_length_up_to_the_head(void **state)
{
	struct model *m = model__with_rings(1);
	struct sim_ring *ring = model__ring(m, 0);
	struct weir_account account;
	int i;

	m->oracle.blind = true;
	for (i = 0; i < 10; i++)
		emit(ring, 24, false);
	sim_ring__spoil(ring, 4, 6 * 48 - 8);
	model__poll_at(m, 1000);
	account = model__source(m, 0).account;
	assert_int_equal(account.produced, 10);
	assert_int_equal(account.delivered, 5);
	assert_int_equal(account.lost[WEIR_LOST_BROKEN] + account.lost[WEIR_LOST_RESERVE_FAILED],
			 5);
	assert_int_equal(weir_account__difference(&account), 0);
	model__free(m);
}

/* G8, G4: seq numbers that repeat, or that nobody has given out: the sum still closes. */
static void wrong_seq(uint32_t seq)
{
	struct model *m = model__with_rings(1);
	struct sim_ring *ring = model__ring(m, 0);
	struct weir_account account;
	struct sim_emit e;
	int i;

	m->oracle.blind = true;
	model__at(m, 1000);
	for (i = 0; i < 8; i++) {
		sim_emit__begin(&e, ring, &(struct sim_what){.len = 8});
		sim_emit__run(&e, SIM_FINISH);
		if (i == 5)
			((struct weir_record *)e.record)->seq = seq;
		sim_emit__run(&e, SIM_DONE);
	}
	model__poll_at(m, 2000);
	model__poll_at(m, 3000);
	account = model__source(m, 0).account;
	assert_int_equal(account.produced, 8);
	assert_int_equal(weir_account__difference(&account), 0);
	assert_in_range(account.delivered, 7, 8);
	assert_int_equal(model__close(m), 0);
	account = model__source(m, 0).account;
	assert_int_equal(account.pending, 0);
	assert_int_equal(weir_account__difference(&account), 0);
	model__free(m);
}

static void g8_wrong_seq(void **state)
{
	wrong_seq(0);
	wrong_seq(4);
	wrong_seq(7);
	wrong_seq(8);
	wrong_seq(1000000);
	wrong_seq(0x7fffffff);
	wrong_seq(0x80000005);
	wrong_seq(UINT32_MAX);
}

/* What a callback may look at is inside the ring, whatever stands there. */
static int read_all(struct model *m, const struct weir_event *event)
{
	const uint8_t *bytes = event->data;
	uint64_t *sum = m->ctx;
	uint32_t i;

	assert_true(event->kind != WEIR_KIND_RECORD || event->len < 8192);
	for (i = 0; i < event->len; i++)
		*sum += bytes[i];
	return 0;
}

static void check_hostile(struct model *m)
{
	struct weir_ledger ledger = model__ledger(m);
	uint32_t i;

	assert_int_equal(weir_account__difference(&ledger.total), 0);
	for (i = 0; i < m->sim.nrings; i++) {
		struct weir_account account = model__source(m, i).account;

		assert_int_equal(weir_account__difference(&account), 0);
	}
}

/* Only from `from` on, what no poll has seen: nobody writes to a record that has been submitted. */
static void spoil_some_bytes(struct sim_ring *ring, uint64_t from, struct rng *rng)
{
	uint64_t bytes = sim_ring__producer(ring) - from;
	uint32_t n = rng__below(rng, 8);

	ring->buffer.broken = true;
	while (n-- && bytes) {
		uint64_t at = from + rng__below(rng, bytes);

		/* Words are spoiled more often than bytes: lengths, stamps and seqs are words. */
		if (rng__chance(rng, 400))
			ring->buffer.data[at & (ring->buffer.size - 1)] = rng__next(rng);
		else
			*(uint32_t *)&ring->buffer.data[at & (ring->buffer.size - 1) & ~3ull] =
				rng__chance(rng, 500) ? rng__next(rng) : rng__below(rng, 300);
	}
}

/* G8: bytes spoiled at random under the reader: no crash, no hang, and the sum closes (ASan sees). */
static void hostile_round(uint64_t seed)
{
	struct rng rng = {seed};
	struct model *m = model__new(
		&(struct model_opts){.rings = 2, .guard_ns = 10, .memory_bytes = 1 << 20});
	uint64_t sum = 0, seen = 0;
	int i;

	m->oracle.blind = true;
	m->on_event = read_all;
	m->ctx = &sum;
	for (i = 0; i < 400; i++) {
		model__pass(m, rng__below(&rng, 100));
		emit(model__ring(m, rng__below(&rng, 2)), rng__below(&rng, 200),
		     rng__chance(&rng, 50));
		if (rng__chance(&rng, 60))
			spoil_some_bytes(model__ring(m, 0), seen, &rng);
		if (rng__chance(&rng, 100)) {
			assert_true(model__poll(m) >= 0);
			seen = sim_ring__producer(model__ring(m, 0));
			check_hostile(m);
		}
	}
	model__close(m);
	check_hostile(m);
	model__free(m);
}

static void g8_hostile_bytes(void **state)
{
	uint64_t seed;

	for (seed = 1; seed <= 300; seed++)
		hostile_round(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(b1_samples_and_discards),
		cmocka_unit_test(b1_only_discards),
		cmocka_unit_test(f4_straddles_the_end),
		cmocka_unit_test(f4_65528_bytes),
		cmocka_unit_test(g5_positions_wrap),
		cmocka_unit_test(g5_full_rings),
		cmocka_unit_test(b4_shorter_than_its_head),
		cmocka_unit_test(b5_broken_and_refused),
		cmocka_unit_test(b5_refused_and_not_counted_yet),
		cmocka_unit_test(b5_stopped_between_two_causes),
		cmocka_unit_test(b4_impossible_lengths),
		cmocka_unit_test(b4_length_up_to_the_head),
		cmocka_unit_test(g8_wrong_seq),
		cmocka_unit_test(g8_hostile_bytes),
	};
	int r = cmocka_run_group_tests_name("model: ring", tests, NULL, NULL);

	return r ? 1 : 0;
}
