// SPDX-License-Identifier: BSD-2-Clause
/*
 * test_mixed.c - O19 over rings of all kinds at once, at random; and hostile bytes in all of them (G8).
 *
 * A round takes its shape and each of its steps from one seed (seeds.h).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mix.h"
#include "rng.h"
#include "seeds.h"

#define IN_FLIGHT_MAX 64
#define NEST_MAX      4

/* What may happen in a round, in 1,000 of its steps. */
struct shape {
	uint32_t rings, hot;
	uint32_t ring_shift;
	uint64_t steps;
	uint64_t pass_max_ns;
	uint32_t len_max;
	uint32_t poll, burst, stop, refuse, discard, made_up, nest_in_hook, callback_fails, flush;
	uint32_t throttle;
	uint32_t kinds; /* which there are: bits of enum mix_kind */
	bool grace;	/* some go by waiting */
	uint64_t ticket_ns;
};

/* A run of a writer of either sort. */
struct flight {
	bool numbered;
	uint32_t source;
	struct sim_emit in;
	struct out_emit out;
};

struct round {
	uint64_t seed;
	struct mix *m;
	struct rng rng;
	struct shape shape;
	struct flight flights[IN_FLIGHT_MAX];
	uint32_t nflights;
};

static uint32_t some(struct rng *rng, uint32_t always, uint32_t per_mille, uint32_t value)
{
	return rng__chance(rng, per_mille) ? value : always;
}

static struct shape shape_of(struct rng *rng)
{
	static const uint32_t most[] = {1, 2, 3, 8, 8, 64, 64, 200, 1024};
	struct shape s = {0};

	s.rings = (uint32_t)rng__range(rng, 1, most[rng__below(rng, 9)]);
	s.hot = (uint32_t)rng__range(rng, 1, s.rings);
	s.ring_shift = (uint32_t)rng__range(rng, 12, 15);
	s.steps = rng__range(rng, 500, 6000);
	s.pass_max_ns = 1ull << rng__below(rng, 24);
	s.len_max = some(rng, 64, 200, 2000);
	s.poll = (uint32_t)rng__range(rng, 2, 80);
	s.burst = some(rng, 0, 400, 30);
	s.stop = (uint32_t)rng__range(rng, 0, 400);
	s.refuse = some(rng, 0, 500, (uint32_t)rng__range(rng, 1, 200));
	s.discard = some(rng, 0, 500, 100);
	s.made_up = some(rng, 0, 150, 30);
	s.nest_in_hook = some(rng, 0, 600, 500);
	s.callback_fails = some(rng, 0, 300, (uint32_t)rng__range(rng, 1, 50));
	s.flush = some(rng, 0, 300, 5);
	s.throttle = some(rng, 0, 200, 10);
	s.kinds = (uint32_t)rng__range(rng, 1, 7);
	s.grace = rng__chance(rng, 400);
	s.ticket_ns = some(rng, 0, 400, 1) * (1ull << rng__below(rng, 26));
	return s;
}

static struct mix_opts opts_of(struct rng *rng)
{
	return (struct mix_opts){
		.guard_ns = 1 + rng__below(rng, some(rng, 1, 500, 5000)),
		.memory_bytes = some(rng, 0, 150, 512 << 10),
		.late = rng__chance(rng, 300) ? WEIR_LATE_DROP : WEIR_LATE_DELIVER,
		.poll_budget = some(rng, 0, 250, (uint32_t)rng__range(rng, 1, 300)),
		.watermark_interval_ns = some(rng, 0, 200, 1000),
		.batch = rng__chance(rng, 400),
	};
}

static enum mix_kind pick_kind(struct round *r)
{
	enum mix_kind kind;

	do
		kind = (enum mix_kind)rng__below(&r->rng, 3);
	while (!(r->shape.kinds & (1u << kind)));
	return kind;
}

static void add_rings(struct round *r)
{
	while (r->m->nsources < r->shape.rings)
		mix__add(r->m, &(struct mix_ring){
				       .kind = pick_kind(r),
				       .size = 1u << r->shape.ring_shift,
				       .fence = r->shape.grace && rng__chance(&r->rng, 500)
							? WEIR_FENCE_GRACE
							: WEIR_FENCE_RCU,
				       .grace_ns = rng__below(&r->rng, 4 * r->shape.pass_max_ns),
				       .counted = rng__chance(&r->rng, 700),
				       .payload = rng__chance(&r->rng, 500),
				       .stamp_offset = (uint32_t)rng__below(&r->rng, 40),
			       });
}

/* --- Writers --- */

static uint32_t pick_source(struct round *r)
{
	return (uint32_t)rng__below(&r->rng,
				    rng__chance(&r->rng, 900) ? r->shape.hot : r->m->nsources);
}

static uint64_t made_up_stamp(struct round *r)
{
	uint64_t now = r->m->sim.now_ns;

	switch (rng__below(&r->rng, 4)) {
	case 0:
		return now - rng__below(&r->rng, now);
	case 1:
		return now + rng__below(&r->rng, 1ull << 50);
	case 2:
		return rng__chance(&r->rng, 500) ? 0 : UINT64_MAX;
	default:
		return rng__next(&r->rng);
	}
}

static uint32_t depth_of(const struct round *r, uint32_t source)
{
	uint32_t i, n = 0;

	for (i = 0; i < r->nflights; i++)
		n += r->flights[i].source == source;
	return n;
}

static void begin_one(struct round *r)
{
	const struct shape *s = &r->shape;
	uint32_t source = pick_source(r);
	struct mix_source *from = &r->m->sources[source];
	bool stamped = rng__chance(&r->rng, s->made_up);
	struct out_what what = {.len = (uint32_t)rng__below(&r->rng, s->len_max + 1),
				.refuse = rng__chance(&r->rng, s->refuse),
				.discard = rng__chance(&r->rng, s->discard),
				.stamped = stamped,
				.stamp_ns = stamped ? made_up_stamp(r) : 0};
	struct flight *f = &r->flights[r->nflights];

	if (r->nflights == IN_FLIGHT_MAX || depth_of(r, source) == NEST_MAX)
		return;
	r->nflights++;
	r->m->dishonest |= stamped;
	*f = (struct flight){.numbered = from->numbered, .source = source};
	if (from->outside && from->how.kind == MIX_PERF)
		what.discard = false;
	if (from->outside)
		out_emit__begin(&f->out, from->outside, &what);
	else
		sim_emit__begin(&f->in, from->numbered,
				&(struct sim_what){.len = what.len,
						   .refuse = what.refuse,
						   .discard = what.discard,
						   .stamped = stamped,
						   .stamp_ns = what.stamp_ns});
}

static bool step(struct flight *f)
{
	return f->numbered ? sim_emit__step(&f->in) : out_emit__step(&f->out);
}

/* The innermost of its ring: what it nests in stands still meanwhile. */
static uint32_t pick_flight(struct round *r)
{
	uint32_t at = (uint32_t)rng__below(&r->rng, r->nflights), i;

	for (i = at + 1; i < r->nflights; i++)
		if (r->flights[i].source == r->flights[at].source)
			at = i;
	return at;
}

static void drop_flight(struct round *r, uint32_t at)
{
	r->nflights--;
	for (; at < r->nflights; at++)
		r->flights[at] = r->flights[at + 1];
}

static void go_on(struct round *r)
{
	uint32_t at = pick_flight(r), steps;

	steps = rng__chance(&r->rng, r->shape.stop) ? (uint32_t)rng__range(&r->rng, 1, 3) : 100;
	while (steps--)
		if (!step(&r->flights[at])) {
			drop_flight(r, at);
			break;
		}
}

static void pass(struct round *r)
{
	if (rng__chance(&r->rng, 700))
		mix__pass(r->m, rng__below(&r->rng, r->shape.pass_max_ns));
}

static void produce(struct round *r)
{
	pass(r);
	begin_one(r);
	pass(r);
	if (r->nflights)
		go_on(r);
}

static void on_clock(struct mix *m)
{
	struct round *r = m->ctx;

	while (rng__chance(&r->rng, r->shape.nest_in_hook))
		produce(r);
}

static int on_event(struct mix *m, const struct weir_event *event)
{
	struct round *r = m->ctx;

	(void)event;
	if (rng__chance(&r->rng, r->shape.nest_in_hook / 4))
		produce(r);
	return rng__chance(&r->rng, r->shape.callback_fails) ? -EIO : 0;
}

/* An event of a perf ring is stopped, or goes on: nobody is inside just then. */
static void throttle(struct round *r)
{
	uint32_t source = pick_source(r);
	struct out_ring *ring = r->m->sources[source].outside;

	if (!ring || ring->kind != OUT_PERF || depth_of(r, source) ||
	    ring->head - *out_ring__consumer(ring) > ring->size / 2)
		return;
	out__put_throttle(ring, rng__chance(&r->rng, 500) ? 5 : 6, sim__kernel_ns(&r->m->sim), 1);
}

static void flush_once(struct round *r)
{
	int rc;

	r->m->on_clock = NULL;
	rc = mix__flush(r->m);
	r->m->on_clock = on_clock;
	if (rc && rc != -EIO && rc != -ETIMEDOUT)
		fail_msg("%s: flush returned %d", r->m->opts.label, rc);
}

static void one_step(struct round *r)
{
	const struct shape *s = &r->shape;
	uint32_t n = rng__chance(&r->rng, s->burst) ? 200 : 1;

	while (n--)
		produce(r);
	if (rng__chance(&r->rng, s->throttle))
		throttle(r);
	if (rng__chance(&r->rng, s->poll))
		mix__poll(r->m);
	if (rng__chance(&r->rng, s->flush))
		flush_once(r);
}

static void end_round(struct round *r)
{
	r->m->on_clock = NULL;
	r->m->on_event = NULL;
	while (r->nflights) {
		uint32_t at = pick_flight(r);

		while (step(&r->flights[at]))
			;
		drop_flight(r, at);
	}
	mix__end(r->m);
}

static struct mix *new_mix(struct round *r, const char *label)
{
	struct mix_opts opts = opts_of(&r->rng);
	struct mix *m;

	opts.label = label;
	m = mix__new(&opts);
	m->ctx = r;
	m->sim.early = r->seed % 5 % 2;
	m->sim.skew_ns = rng__below(&r->rng, opts.guard_ns + 1);
	m->grace.least_ns = r->shape.ticket_ns;
	mix__at(m, 1000000000);
	return m;
}

static void run_round(uint64_t seed, const char *label)
{
	struct round r = {.seed = seed, .rng = {seed}};
	uint64_t i;

	r.shape = shape_of(&r.rng);
	r.m = new_mix(&r, label);
	add_rings(&r);
	r.m->on_clock = on_clock;
	r.m->on_event = on_event;
	for (i = 0; i < r.shape.steps; i++)
		one_step(&r);
	end_round(&r);
}

/* --- Hostile bytes --- */

/* Sound records now and then, so that broken ones stand between them; else a few likely values. */
static uint64_t any_word(struct round *r)
{
	static const uint64_t words[] = {
		9 | 64ull << 48,
		2 | 24ull << 48,
		9 | 48ull << 48,
		5 | 64ull << 48,
		13 | 48ull << 48,
		6 | 32ull << 48,
		1ull << 31,
		1ull << 30 | 24,
		24,
		8,
		0xffffffffffffffffull,
		0,
		16,
		7,
		1000000,
		9 | 65528ull << 48,
	};

	if (rng__chance(&r->rng, 300))
		return rng__next(&r->rng);
	if (rng__chance(&r->rng, 300))
		return r->m->sim.now_ns - rng__below(&r->rng, 5000);
	return words[rng__below(&r->rng, sizeof(words) / sizeof(words[0]))];
}

static uint64_t *hostile_producer(struct mix_source *s, uint8_t **data)
{
	/* Lengths that nobody may walk. */
	if (s->numbered)
		s->numbered->buffer.broken = true;
	else
		s->outside->buffer.broken = true;
	*data = s->numbered ? s->numbered->buffer.data : s->outside->data;
	if (s->numbered)
		return &s->numbered->buffer.shared->producer;
	return s->outside->kind == OUT_PERF ? &s->outside->shared->producer
					    : &s->outside->buffer.shared->producer;
}

static uint64_t tail_of(const struct mix_source *s)
{
	return s->numbered ? sim_ring__consumer(s->numbered) : *out_ring__consumer(s->outside);
}

static void write_hostile(struct round *r)
{
	struct mix_source *s = &r->m->sources[rng__below(&r->rng, r->m->nsources)];
	uint8_t *data;
	uint64_t *producer = hostile_producer(s, &data);
	uint64_t n = rng__below(&r->rng, 60);

	while (n-- && *producer - tail_of(s) + 8 <= s->how.size) {
		uint64_t word = any_word(r);

		memcpy(data + (*producer & (s->how.size - 1)), &word, 8);
		*producer += 8;
	}
	if (s->numbered)
		s->numbered->buffer.shared->counters.attempts += rng__below(&r->rng, 4);
	/* Heads that are none, too; and back. */
	if (rng__chance(&r->rng, 20)) {
		uint64_t head = *producer;

		*producer = rng__chance(&r->rng, 500) ? rng__next(&r->rng)
						      : head - rng__below(&r->rng, 4096);
		mix__poll(r->m);
		*producer = head;
	}
}

/*
 * G8: any bytes, in rings of all kinds: each call returns, order and watermarks hold for what is not
 * flagged, and the sum closes after each.
 */
static void run_hostile(uint64_t seed, const char *label)
{
	struct round r = {.seed = seed, .rng = {seed}};
	int i;

	r.shape = shape_of(&r.rng);
	r.shape.rings = (uint32_t)rng__range(&r.rng, 1, 8);
	r.shape.ring_shift = 12;
	r.m = new_mix(&r, label);
	r.m->blind = r.m->dishonest = true;
	r.m->opts.memory_bytes = 0;
	add_rings(&r);
	for (i = 0; i < 1500; i++) {
		mix__pass(r.m, rng__below(&r.rng, 1000));
		write_hostile(&r);
		if (rng__chance(&r.rng, 300))
			mix__poll(r.m);
		if (rng__chance(&r.rng, 5))
			mix__flush(r.m);
	}
	assert_int_equal(mix__close(r.m), 0);
	mix__free(r.m);
}

static void o19_all_kinds(void **state)
{
	/* A flush goes to the clock, and what was stamped before that turns up behind it. */
	static const uint64_t found[] = {15760937915947072329ull};

	seeds__fixed(found, 1, 200, run_round);
	seeds__random(30, run_round);
}

static void g8_hostile_bytes(void **state)
{
	seeds__fixed(NULL, 0, 200, run_hostile);
	seeds__random(30, run_hostile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(o19_all_kinds),
		cmocka_unit_test(g8_hostile_bytes),
	};
	int r = cmocka_run_group_tests_name("model: all kinds", tests, NULL, NULL);

	return r ? 1 : 0;
}
