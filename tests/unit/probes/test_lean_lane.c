// SPDX-License-Identifier: BSD-2-Clause
/*
 * source/lane: what is told of a lane, and up to which time it is complete (G2, G3, G4). The writer is
 * played step by step: count, stamp, publish.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <weir/lean.h>

#include "rng.h"
#include "source/lane.h"

#define RECORDS 8u
#define GUARD	5u
#define TOLD	64u

enum kind { RECORD, GAP, WATERMARK };

struct told {
	enum kind kind;
	uint64_t from, to; /* stamp; from, to; watermark */
	uint64_t n;	   /* seq; lost; away */
};

struct fixture {
	struct weir_lane shared;
	struct weir_lean data[RECORDS];
	struct lane lane;
	struct told told[TOLD];
	unsigned count, next;
	uint64_t now;
};

static void note(struct fixture *f, struct told told)
{
	assert_true(f->count < TOLD);
	f->told[f->count++] = told;
}

static void on_records(void *ctx, int cpu, const struct weir_record *first, size_t stride,
		       size_t count)
{
	assert_int_equal(cpu, 3);
	for (size_t i = 0; i < count; i++) {
		const struct weir_record *record =
			(const struct weir_record *)((const char *)first + i * stride);

		note(ctx, (struct told){RECORD, record->stamp, record->stamp, record->seq});
	}
}

static void on_gap(void *ctx, int cpu, uint64_t from_ns, uint64_t to_ns, uint64_t lost)
{
	assert_int_equal(cpu, 3);
	note(ctx, (struct told){GAP, from_ns, to_ns, lost});
}

static void on_watermark(void *ctx, int cpu, uint64_t watermark_ns, bool away)
{
	assert_int_equal(cpu, 3);
	note(ctx, (struct told){WATERMARK, watermark_ns, watermark_ns, away});
}

static const struct weir_lanes_reader reader = {on_records, on_gap, on_watermark};

static void setup(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	lane__init(&f->lane, 3, &f->shared, f->data, RECORDS, sizeof(f->data[0]));
	f->now = 1000;
}

/* The writer's steps. */
static uint64_t count_one(struct fixture *f)
{
	return f->shared.attempts++;
}

static bool is_full(const struct fixture *f)
{
	return f->shared.head - f->shared.tail >= RECORDS;
}

static void give_up(struct fixture *f)
{
	f->shared.failed++;
}

static void publish(struct fixture *f, uint64_t stamp, uint64_t seq)
{
	f->data[f->shared.head % RECORDS] = (struct weir_lean){.stamp = stamp,
							       .seq = (uint32_t)seq};
	f->shared.head++;
}

static void write_at(struct fixture *f, uint64_t stamp)
{
	publish(f, stamp, count_one(f));
}

static void lose(struct fixture *f, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		count_one(f);
		give_up(f);
	}
}

static void check_account(const struct fixture *f)
{
	const struct weir_lane_account *account = &f->lane.account;

	assert_int_equal(account->produced, account->delivered + account->lost + account->pending);
}

/* With the clock at `now`, which no stamp is beyond unless a test says so. */
static void tell(struct fixture *f, uint64_t now)
{
	struct lane_snapshot snapshot = lane__look(&f->lane);

	f->count = f->next = 0;
	lane__tell(&f->lane, &snapshot, now - GUARD, now, &reader, f);
	check_account(f);
}

static void expect(struct fixture *f, enum kind kind, uint64_t from, uint64_t to, uint64_t n)
{
	const struct told *told = &f->told[f->next];

	assert_true(f->next < f->count);
	f->next++;
	assert_int_equal(told->kind, kind);
	assert_int_equal(told->from, from);
	assert_int_equal(told->to, to);
	assert_int_equal(told->n, n);
}

static void expect_record(struct fixture *f, uint64_t stamp, uint64_t seq)
{
	expect(f, RECORD, stamp, stamp, seq);
}

static void expect_gap(struct fixture *f, uint64_t from, uint64_t to, uint64_t lost)
{
	expect(f, GAP, from, to, lost);
}

static void expect_watermark(struct fixture *f, uint64_t at, bool away)
{
	expect(f, WATERMARK, at, at, away);
}

static void expect_end(struct fixture *f)
{
	assert_int_equal(f->next, f->count);
}

static void test_idle(void **state)
{
	struct fixture f;

	setup(&f);
	tell(&f, 1000);
	expect_watermark(&f, 995, false);
	expect_end(&f);
	/* It never goes back, and what has not moved is not told again. */
	tell(&f, 999);
	expect_end(&f);
	tell(&f, 1001);
	expect_watermark(&f, 996, false);
	expect_end(&f);
}

static void test_records(void **state)
{
	struct fixture f;

	setup(&f);
	write_at(&f, 100);
	write_at(&f, 200);
	tell(&f, 1000);
	expect_record(&f, 100, 0);
	expect_record(&f, 200, 1);
	expect_watermark(&f, 995, false);
	expect_end(&f);
	assert_int_equal(f.shared.tail, 2);
	assert_int_equal(f.lane.account.max_fill, 2);
}

/* The guard is for what is not in the snapshot: what is, is told. */
static void test_inside_the_guard(void **state)
{
	struct fixture f;

	setup(&f);
	write_at(&f, 998);
	tell(&f, 1000);
	expect_record(&f, 998, 0);
	expect_watermark(&f, 998, false);
	expect_end(&f);
}

static void test_hole(void **state)
{
	struct fixture f;

	setup(&f);
	write_at(&f, 100);
	lose(&f, 3);
	write_at(&f, 200);
	tell(&f, 1000);
	expect_record(&f, 100, 0);
	expect_gap(&f, 100, 200, 3);
	expect_record(&f, 200, 4);
	expect_watermark(&f, 995, false);
	expect_end(&f);
	assert_int_equal(f.lane.account.lost, 3);
}

/* Lost behind the last record: who knows what ran, from then until the next one. */
static void test_lost_at_the_end(void **state)
{
	struct fixture f;

	setup(&f);
	write_at(&f, 100);
	lose(&f, 2);
	tell(&f, 1000);
	expect_record(&f, 100, 0);
	expect_gap(&f, 100, 995, 2);
	expect_watermark(&f, 995, false);
	expect_end(&f);

	lose(&f, 1);
	tell(&f, 1100);
	expect_gap(&f, 995, 1095, 1);
	expect_watermark(&f, 1095, false);
	expect_end(&f);

	tell(&f, 1200);
	expect_gap(&f, 1095, 1195, 0);
	expect_watermark(&f, 1195, false);
	expect_end(&f);

	/* A gap of nothing is none. */
	tell(&f, 1200);
	expect_end(&f);

	write_at(&f, 1250);
	tell(&f, 1300);
	expect_gap(&f, 1195, 1250, 0);
	expect_record(&f, 1250, 4);
	expect_watermark(&f, 1295, false);
	expect_end(&f);
}

/* What the watermark before has covered stays covered: the loss came after it. */
static void test_loss_after_a_watermark(void **state)
{
	struct fixture f;

	setup(&f);
	write_at(&f, 100);
	tell(&f, 1000);
	lose(&f, 1);
	write_at(&f, 1500);
	tell(&f, 2000);
	expect_gap(&f, 995, 1500, 1);
	expect_record(&f, 1500, 2);
	expect_watermark(&f, 1995, false);
	expect_end(&f);
}

/* Counted and not finished: its stamp may be from before T. */
static void test_in_flight(void **state)
{
	struct fixture f;
	uint64_t seq;

	setup(&f);
	tell(&f, 1000);
	seq = count_one(&f);
	tell(&f, 2000);
	expect_end(&f);
	publish(&f, 1500, seq);
	tell(&f, 3000);
	expect_record(&f, 1500, seq);
	expect_watermark(&f, 2995, false);
	expect_end(&f);
}

/* One is in flight at each poll, another one each time: the last stamp is known all the same. */
static void test_always_in_flight(void **state)
{
	struct fixture f;
	uint64_t seq;

	setup(&f);
	seq = count_one(&f);
	tell(&f, 1000);
	expect_end(&f);
	for (uint64_t now = 2000; now < 9000; now += 1000) {
		publish(&f, now - 999, seq);
		seq = count_one(&f);
		tell(&f, now);
		expect_record(&f, now - 999, seq - 1);
		expect_watermark(&f, now - 999, false);
		expect_end(&f);
	}
}

/* What is lost before one that is in flight is told when that one is finished. */
static void test_loss_in_flight(void **state)
{
	struct fixture f;
	uint64_t seq;

	setup(&f);
	write_at(&f, 100);
	lose(&f, 2);
	seq = count_one(&f);
	tell(&f, 1000);
	expect_record(&f, 100, 0);
	expect_watermark(&f, 100, false);
	expect_end(&f);
	publish(&f, 900, seq);
	tell(&f, 2000);
	expect_gap(&f, 100, 900, 2);
	expect_record(&f, 900, 3);
	expect_watermark(&f, 1995, false);
	expect_end(&f);
}

/* It came out as lost. */
static void test_flight_that_fails(void **state)
{
	struct fixture f;

	setup(&f);
	write_at(&f, 100);
	count_one(&f);
	tell(&f, 1000);
	give_up(&f);
	tell(&f, 2000);
	expect_gap(&f, 100, 1995, 1);
	expect_watermark(&f, 1995, false);
	expect_end(&f);
}

static void test_full(void **state)
{
	struct fixture f;

	setup(&f);
	for (unsigned i = 0; i < 20; i++) {
		if (is_full(&f))
			lose(&f, 1);
		else
			write_at(&f, 100 + i);
	}
	tell(&f, 1000);
	for (unsigned i = 0; i < RECORDS; i++)
		expect_record(&f, 100 + i, i);
	expect_gap(&f, 107, 995, 12);
	expect_watermark(&f, 995, false);
	expect_end(&f);
	assert_int_equal(f.lane.account.max_fill, RECORDS);
	assert_int_equal(f.lane.account.failed, 12);
	assert_false(is_full(&f));
}

/* A stamp that cannot be is told, and proves nothing. */
static void test_stamp_beyond_the_clock(void **state)
{
	struct fixture f;

	setup(&f);
	write_at(&f, UINT64_MAX);
	tell(&f, 1000);
	expect_record(&f, UINT64_MAX, 0);
	expect_watermark(&f, 995, false);
	expect_end(&f);
	lose(&f, 1);
	write_at(&f, UINT64_MAX);
	tell(&f, 2000);
	expect_gap(&f, 995, 995, 1);
	expect_record(&f, UINT64_MAX, 2);
	expect_watermark(&f, 1995, false);
	expect_end(&f);
}

static void test_broken(void **state)
{
	struct fixture f;

	setup(&f);
	write_at(&f, 100);
	publish(&f, 200, count_one(&f) + 77);
	write_at(&f, 300);
	tell(&f, 1000);
	expect_record(&f, 100, 0);
	expect_gap(&f, 100, 300, 1);
	expect_record(&f, 300, 2);
	expect_watermark(&f, 995, false);
	expect_end(&f);
	assert_int_equal(f.lane.account.broken, 1);
	assert_int_equal(f.lane.account.lost, 1);
}

static void test_away(void **state)
{
	struct fixture f;
	struct lane_snapshot snapshot;

	setup(&f);
	write_at(&f, 100);
	f.shared.away = 1;
	tell(&f, 1000);
	expect_record(&f, 100, 0);
	expect_watermark(&f, 995, true);
	expect_end(&f);
	f.shared.away = 0;
	write_at(&f, 1500);
	tell(&f, 2000);
	expect_record(&f, 1500, 1);
	expect_watermark(&f, 1995, false);
	expect_end(&f);

	/* It comes back while it is looked at: with its record below the head, or above. */
	write_at(&f, 2500);
	snapshot = lane__look(&f.lane);
	snapshot.was_away = true;
	f.count = f.next = 0;
	lane__tell(&f.lane, &snapshot, 2995, 3000, &reader, &f);
	expect_record(&f, 2500, 2);
	expect_watermark(&f, 2995, false);
	snapshot = lane__look(&f.lane);
	snapshot.was_away = true;
	f.count = f.next = 0;
	lane__tell(&f.lane, &snapshot, 3995, 4000, &reader, &f);
	expect_watermark(&f, 3995, true);
	expect_end(&f);
}

/* The oracle of the play below: every number's fate, and what was announced. */
struct play {
	struct fixture f;
	struct rng rng;
	uint64_t clock;
	bool flying; /* counted, and not finished */
	bool doomed; /* it will fail */
	uint64_t seq, stamp;
	uint64_t expect, covered_ns, watermark_ns;
	uint64_t delivered, lost, stamps[4096];
	bool failed[4096];
	bool has_begun, in_gap;
};

static void advance(struct play *play)
{
	play->clock += 1 + rng__below(&play->rng, 20);
}

/* One step of the writer, anywhere between two of which a poll may come. */
static void step_writer(struct play *play)
{
	struct fixture *f = &play->f;

	advance(play);
	if (!play->flying) {
		play->seq = count_one(f);
		play->doomed = is_full(f);
		play->stamp = 0;
		play->flying = true;
	} else if (play->doomed) {
		play->failed[play->seq] = true;
		give_up(f);
		play->flying = false;
	} else if (!play->stamp) {
		play->stamp = play->stamps[play->seq] = play->clock;
	} else {
		publish(f, play->stamp, play->seq);
		play->flying = false;
	}
}

static void judge_record(struct play *play, const struct told *told)
{
	assert_int_equal(told->n, play->expect);
	assert_int_equal(told->from, play->stamps[told->n]);
	assert_true(told->from > play->watermark_ns);
	if (play->in_gap)
		assert_int_equal(play->covered_ns, told->from);
	play->in_gap = false;
	play->covered_ns = told->from;
	play->expect++;
	play->delivered++;
}

static void judge_gap(struct play *play, const struct told *told)
{
	assert_true(told->from >= play->covered_ns && told->from >= play->watermark_ns);
	assert_true(told->to >= told->from);
	for (uint64_t i = 0; i < told->n; i++) {
		assert_true(play->failed[play->expect]);
		play->expect++;
	}
	play->lost += told->n;
	play->covered_ns = told->to;
	play->in_gap = true;
}

static void judge(struct play *play)
{
	for (unsigned i = 0; i < play->f.count; i++) {
		const struct told *told = &play->f.told[i];

		if (told->kind == RECORD) {
			judge_record(play, told);
		} else if (told->kind == GAP) {
			judge_gap(play, told);
		} else {
			assert_true(told->from > play->watermark_ns);
			assert_true(told->from >= play->covered_ns);
			if (play->in_gap)
				assert_int_equal(play->covered_ns, told->from);
			play->watermark_ns = told->from;
		}
	}
}

static void poll(struct play *play)
{
	uint64_t t_ns = play->clock;
	struct lane_snapshot snapshot;

	/* The writer goes on between the clock and the look, and after it. */
	for (uint64_t n = rng__below(&play->rng, 4); n; n--)
		step_writer(play);
	snapshot = lane__look(&play->f.lane);
	for (uint64_t n = rng__below(&play->rng, 4); n; n--)
		step_writer(play);
	play->f.count = 0;
	lane__tell(&play->f.lane, &snapshot, t_ns, play->clock, &reader, &play->f);
	check_account(&play->f);
	judge(play);
}

static void test_play(void **state)
{
	static struct play play;

	for (uint64_t round = 0; round < 300; round++) {
		memset(&play, 0, sizeof(play));
		setup(&play.f);
		play.rng.state = round;
		while (play.f.shared.attempts < 4000) {
			uint64_t steps = rng__below(&play.rng,
						    rng__chance(&play.rng, 100) ? 60 : 12);

			while (steps--)
				step_writer(&play);
			poll(&play);
		}
		while (play.flying)
			step_writer(&play);
		tell(&play.f, play.clock + GUARD);
		judge(&play);
		assert_int_equal(play.expect, play.f.shared.attempts);
		assert_int_equal(play.delivered + play.lost, play.f.shared.attempts);
		assert_int_equal(play.lost, play.f.shared.failed);
	}
	/* The play has something of everything in it. */
	assert_true(play.delivered > 100 && play.lost > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_inside_the_guard),
		cmocka_unit_test(test_hole),
		cmocka_unit_test(test_lost_at_the_end),
		cmocka_unit_test(test_loss_after_a_watermark),
		cmocka_unit_test(test_in_flight),
		cmocka_unit_test(test_always_in_flight),
		cmocka_unit_test(test_loss_in_flight),
		cmocka_unit_test(test_flight_that_fails),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_stamp_beyond_the_clock),
		cmocka_unit_test(test_broken),
		cmocka_unit_test(test_away),
		cmocka_unit_test(test_play),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
