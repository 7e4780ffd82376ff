// SPDX-License-Identifier: BSD-2-Clause
/*
 * test_property.c - O19: everything at random, against the oracle.
 *
 * A round takes its shape (how many rings, how large, which clock, who nests in whom, what goes
 * wrong) and each of its steps from one seed (seeds.h).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "model.h"
#include "rng.h"
#include "seeds.h"

#define IN_FLIGHT_MAX 64
#define NEST_MAX      4
#define RETIRED_MAX   64

/* What may happen in a round, in 1,000 of its steps. */
struct shape {
	uint32_t rings;
	uint32_t hot; /* most of the traffic is on this many of them */
	uint32_t ring_shift;
	uint64_t steps;
	uint64_t pass_max_ns; /* each step takes up to this */
	uint32_t len_max;
	uint32_t poll, burst, stop, refuse, discard, bare, made_up, nest_in_hook;
	uint32_t callback_fails, flush, kernel_counts, skip, hotplug, add_ring, consumer_counts;
	bool nests; /* emissions of a ring end in the reverse order of their beginning */
};

struct round {
	struct model *m;
	struct rng rng;
	struct shape shape;
	struct sim_emit in_flight[IN_FLIGHT_MAX];
	uint32_t nin_flight;
	uint64_t asked[RETIRED_MAX]; /* stamps to retire that have not run */
	uint32_t nasked;
	uint64_t last_retired, retired_in;
	int offline; /* CPU, or -1 */
};

static uint32_t some(struct rng *rng, uint32_t always, uint32_t per_mille, uint32_t value)
{
	return rng__chance(rng, per_mille) ? value : always;
}

static uint32_t ring_count(struct rng *rng)
{
	static const uint32_t most[] = {1, 2, 3, 8, 8, 64, 64, 200, 1024};

	return rng__range(rng, 1, most[rng__below(rng, 9)]);
}

static struct shape shape_of(struct rng *rng)
{
	struct shape s = {0};

	s.rings = ring_count(rng);
	s.hot = rng__range(rng, 1, s.rings);
	s.ring_shift = rng__range(rng, 12, 15);
	s.steps = rng__range(rng, 500, 6000);
	s.pass_max_ns = 1ull << rng__below(rng, 24);
	s.len_max = some(rng, 64, 200, 2000);
	s.poll = rng__range(rng, 2, 80);
	s.burst = some(rng, 0, 400, 30);
	s.stop = rng__range(rng, 0, 400);
	s.refuse = some(rng, 0, 500, rng__range(rng, 1, 200));
	s.discard = some(rng, 0, 500, 100);
	s.bare = some(rng, 0, 100, 20);
	s.made_up = some(rng, 0, 150, 30);
	s.nest_in_hook = some(rng, 0, 600, 500);
	s.callback_fails = some(rng, 0, 300, rng__range(rng, 1, 50));
	s.flush = some(rng, 0, 300, 5);
	s.kernel_counts = some(rng, 0, 300, 20);
	s.skip = some(rng, 0, 200, 5);
	s.hotplug = some(rng, 0, 200, 5);
	s.add_ring = some(rng, 0, 200, 2);
	s.consumer_counts = some(rng, 0, 200, 20);
	s.nests = rng__chance(rng, 700);
	return s;
}

/* Both clocks, a fixed point far from 0, and the guard that they need. */
static void set_clocks(struct round *r, struct model_opts *opts)
{
	opts->guard_ns = 1 + rng__below(&r->rng, some(&r->rng, 1, 500, 5000));
	opts->position = rng__chance(&r->rng, 200) ? 0ull - 8 * rng__below(&r->rng, 5000) : 0;
	opts->memory_bytes = some(&r->rng, 0, 150, 512 << 10);
}

static uint64_t grain_of(struct rng *rng)
{
	static const uint64_t grains[] = {1, 1, 1, 10, 1000, 4000000};

	return grains[rng__below(rng, 6)];
}

static struct sim_ring *pick_ring(struct round *r)
{
	uint32_t n = rng__chance(&r->rng, 900) ? r->shape.hot : r->m->sim.nrings;

	return model__ring(r->m, rng__below(&r->rng, n));
}

/* A time that no clock said: long ago, far ahead, or anything. */
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

static struct sim_what pick_what(struct round *r)
{
	const struct shape *s = &r->shape;
	struct sim_what what = {.len = rng__below(&r->rng, s->len_max + 1),
				.type = rng__next(&r->rng),
				.flags = rng__next(&r->rng),
				.discard = rng__chance(&r->rng, s->discard),
				.refuse = rng__chance(&r->rng, s->refuse),
				.bare = rng__chance(&r->rng, s->bare),
				.stamped = rng__chance(&r->rng, s->made_up)};

	if (what.stamped)
		what.stamp_ns = made_up_stamp(r);
	if (what.bare) {
		what.len = rng__below(&r->rng, sizeof(struct weir_record));
		what.discard = false;
	}
	return what;
}

static uint32_t depth_of(const struct round *r, const struct sim_ring *ring)
{
	uint32_t i, n = 0;

	for (i = 0; i < r->nin_flight; i++)
		n += r->in_flight[i].ring == ring;
	return n;
}

static void begin_one(struct round *r)
{
	struct sim_ring *ring = pick_ring(r);
	struct sim_what what = pick_what(r);

	if (r->nin_flight == IN_FLIGHT_MAX || depth_of(r, ring) == NEST_MAX)
		return;
	sim_emit__begin(&r->in_flight[r->nin_flight++], ring, &what);
}

/* One that may go on: with interrupts that is the innermost of its ring. */
static uint32_t pick_in_flight(struct round *r)
{
	uint32_t at = rng__below(&r->rng, r->nin_flight), i;

	for (i = at + 1; r->shape.nests && i < r->nin_flight; i++)
		if (r->in_flight[i].ring == r->in_flight[at].ring)
			at = i;
	return at;
}

static void drop_in_flight(struct round *r, uint32_t at)
{
	r->nin_flight--;
	for (; at < r->nin_flight; at++)
		r->in_flight[at] = r->in_flight[at + 1];
}

/* Some steps of some emission; most run to their end, the others stay where they are. */
static void go_on(struct round *r)
{
	uint32_t at = pick_in_flight(r), steps;

	steps = rng__chance(&r->rng, r->shape.stop) ? rng__range(&r->rng, 1, 3) : SIM_DONE;
	while (steps--)
		if (!sim_emit__step(&r->in_flight[at])) {
			drop_in_flight(r, at);
			break;
		}
}

static void pass(struct round *r)
{
	if (rng__chance(&r->rng, 700))
		model__pass(r->m, rng__below(&r->rng, r->shape.pass_max_ns));
}

static void produce(struct round *r)
{
	pass(r);
	begin_one(r);
	pass(r);
	if (r->nin_flight)
		go_on(r);
}

static void on_clock(struct model *m)
{
	struct round *r = m->ctx;

	while (rng__chance(&r->rng, r->shape.nest_in_hook))
		produce(r);
}

static int on_event(struct model *m, const struct weir_event *event)
{
	struct round *r = m->ctx;

	if (rng__chance(&r->rng, r->shape.nest_in_hook / 4))
		produce(r);
	return rng__chance(&r->rng, r->shape.callback_fails) ? -EIO : 0;
}

/* Each asked stamp once, in order within a call, and not before the watermark is there. */
static void on_retire(void *arg, uint64_t stamp_ns)
{
	struct round *r = arg;
	uint32_t i;

	for (i = 0; i < r->nasked && r->asked[i] != stamp_ns; i++)
		;
	if (i == r->nasked || stamp_ns > model__watermark(r->m) || stamp_ns < r->last_retired)
		oracle__fault(&r->m->oracle,
			      "retire: stamp %" PRIu64 " at W %" PRIu64 " after %" PRIu64, stamp_ns,
			      model__watermark(r->m), r->last_retired);
	else
		r->asked[i] = r->asked[--r->nasked];
	r->last_retired = stamp_ns;
}

static void ask_to_retire(struct round *r)
{
	uint64_t stamp = r->m->sim.now_ns + rng__below(&r->rng, r->shape.pass_max_ns * 100);

	if (r->nasked == RETIRED_MAX)
		return;
	r->asked[r->nasked++] = stamp;
	assert_int_equal(weir_stream__retire(r->m->stream, stamp, on_retire, r), 0);
}

static void check_retired(struct round *r)
{
	uint32_t i;

	for (i = 0; i < r->nasked; i++)
		if (r->asked[i] <= model__watermark(r->m))
			oracle__fault(&r->m->oracle, "retire: %" PRIu64 " waits at W %" PRIu64,
				      r->asked[i], model__watermark(r->m));
	model__check(r->m);
}

static void poll_once(struct round *r)
{
	r->last_retired = 0;
	if (model__poll(r->m) >= 0)
		check_retired(r);
}

static void flush_once(struct round *r)
{
	int rc;

	r->last_retired = 0;
	r->m->on_clock = NULL;
	rc = model__flush(r->m, 0);
	r->m->on_clock = on_clock;
	if (rc && rc != -EIO && rc != -ETIMEDOUT)
		fail_msg("%s: flush returned %d", r->m->label, rc);
}

static void count_in_kernel(struct round *r)
{
	struct weir_counters *c = &pick_ring(r)->buffer.shared->counters;

	sim__count(rng__chance(&r->rng, 500) ? &c->filtered : &c->self);
	sim__count(&c->unread);
}

/* The consumer moves one record that it was given. */
static void count_as_consumer(struct round *r)
{
	uint32_t source = pick_ring(r)->index;
	const struct oracle_ring *o = &r->m->oracle.rings[source];
	uint64_t moved = o->moved_filtered + o->moved_lost[WEIR_LOST_OUTPUT];

	if (moved == o->delivered)
		return;
	if (rng__chance(&r->rng, 500))
		model__count_filtered(r->m, source, 1);
	else
		model__count_lost(r->m, source, 1, WEIR_LOST_OUTPUT);
}

static void plug(struct round *r)
{
	bool back = r->offline >= 0;
	int cpu = back ? r->offline : pick_ring(r)->cpu;

	model__cpu_changed(r->m, cpu, back);
	r->offline = back ? -1 : cpu;
}

static void one_step(struct round *r)
{
	const struct shape *s = &r->shape;
	uint32_t n = rng__chance(&r->rng, s->burst) ? 200 : 1;

	while (n--)
		produce(r);
	if (rng__chance(&r->rng, s->kernel_counts))
		count_in_kernel(r);
	if (rng__chance(&r->rng, s->skip))
		model__skip(r->m, rng__range(&r->rng, 1, 9));
	if (rng__chance(&r->rng, s->hotplug))
		plug(r);
	if (rng__chance(&r->rng, s->consumer_counts))
		count_as_consumer(r);
	if (rng__chance(&r->rng, 10))
		ask_to_retire(r);
	if (rng__chance(&r->rng, s->add_ring))
		model__add_ring(r->m, r->m->sim.nrings, 1 << s->ring_shift, 0, 0);
	if (rng__chance(&r->rng, s->poll))
		poll_once(r);
	if (rng__chance(&r->rng, s->flush))
		flush_once(r);
}

/* The producers end, the stream is closed, the oracle says the rest. */
static void end_round(struct round *r)
{
	r->m->on_clock = NULL;
	r->m->on_event = NULL;
	r->last_retired = 0;
	while (r->nin_flight) {
		uint32_t at = pick_in_flight(r);

		sim_emit__run(&r->in_flight[at], SIM_DONE);
		drop_in_flight(r, at);
	}
	model__end(r->m);
}

static void run_round(uint64_t seed, const char *label)
{
	struct round r = {.rng = {seed}, .offline = -1};
	struct model_opts opts = {0};
	uint64_t i;

	r.shape = shape_of(&r.rng);
	opts.label = label;
	opts.rings = r.shape.rings;
	opts.ring_bytes = 1 << r.shape.ring_shift;
	set_clocks(&r, &opts);
	r.m = model__new(&opts);
	r.m->sim.grain_ns = grain_of(&r.rng);
	r.m->sim.skew_ns = r.m->sim.grain_ns == 1 ? rng__below(&r.rng, opts.guard_ns + 1) : 0;
	model__at(r.m, 1000000000);
	model__watch_misses(r.m);
	r.m->sim.early = seed % 5 % 2;
	r.m->ctx = &r;
	r.m->on_clock = on_clock;
	r.m->on_event = on_event;
	for (i = 0; i < r.shape.steps; i++)
		one_step(&r);
	end_round(&r);
}

static void o19_fixed_seeds(void **state)
{
	static const uint64_t found[] = {
		2488243931987511205ull,	 /* a CPU is back, and its first stamp is made up */
		4236519665984502185ull,	 /* a CPU's return is told behind a stopped poll */
		12824231501656394752ull, /* a poll is stopped at a stamp of 0 */
		15003081302340273529ull, /* and next to the watermark */
	};

	seeds__fixed(found, sizeof(found) / sizeof(*found), 600, run_round);
}

static void o19_random_seeds(void **state)
{
	seeds__random(100, run_round);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(o19_fixed_seeds),
		cmocka_unit_test(o19_random_seeds),
	};
	int r = cmocka_run_group_tests_name("model: property", tests, NULL, NULL);

	return r ? 1 : 0;
}
