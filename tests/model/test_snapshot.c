// SPDX-License-Identifier: BSD-2-Clause
/*
 * test_snapshot.c - overwritable perf rings that are looked at while they are written: V7, V9, V10, G1, G2.
 *
 * Writers nest, and a head is published only when the outermost of them has ended: what they have
 * written before that is in the ring, over what is oldest, and in no head. A grace period ends when those
 * are gone who were inside at its beginning; others may have come by then.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/perf.h>

#include "mix.h"
#include "rng.h"
#include "seeds.h"
#include "trap.h"

#define SIZE	  4096u
#define RINGS_MAX 4
#define NEST_MAX  4
#define GRACE_NS  1000000
#define WAIT_NS	  10000 /* a grace period, at least */
#define GUARD_NS  1

struct writer {
	struct out_ring *ring;
	struct out_emit nest[NEST_MAX]; /* the innermost last */
	uint32_t depth;
	uint64_t *position, *size; /* by number; size 0: not reserved */
	uint64_t numbers;
	uint64_t before; /* its head, at the last look */
	uint64_t due;	 /* records that have to come, sooner or later */
	uint64_t come;
	uint64_t longest;
};

struct look {
	struct sim sim;
	struct sim_grace grace;
	struct perf_layout layout;
	struct weir_stream *stream;
	struct writer writers[RINGS_MAX];
	uint32_t rings, waits;
	enum weir_fence_kind fence;
	uint64_t head[2][RINGS_MAX]; /* when the first wait was over, and the second */
	uint64_t w_ns, last_ns;
	enum weir_order order;
	uint64_t late, overwritten;
	struct rng rng;
	uint32_t len_max;
	bool goes_on; /* writers do, while a grace period is waited for */
	size_t ring_bytes;
	struct trap *trap; /* of the first ring's bytes; NULL: none */
};

/* --- Writers --- */

static void begin(struct look *l, struct writer *w, uint32_t len)
{
	out_emit__begin(&w->nest[w->depth++], w->ring, &(struct out_what){.len = len});
}

static void note_place(struct writer *w, const struct out_emit *emit)
{
	uint64_t count = emit->number + 1;

	if (count > w->numbers) {
		w->position = realloc(w->position, count * sizeof(*w->position));
		w->size = realloc(w->size, count * sizeof(*w->size));
		if (!w->position || !w->size)
			abort();
	}
	/* It may have been overtaken by those that nest in it. */
	while (w->numbers < count)
		w->size[w->numbers++] = 0;
	w->position[emit->number] = emit->position;
	w->size[emit->number] = emit->size;
	if (emit->size > w->longest)
		w->longest = emit->size;
}

/* The innermost goes on, up to a step. */
static void go_on(struct writer *w, enum out_step until)
{
	struct out_emit *emit = &w->nest[w->depth - 1];
	bool had = emit->next > OUT_RESERVE, ends = !out_emit__run(emit, until);

	if (!had && emit->next > OUT_RESERVE)
		note_place(w, emit);
	w->depth -= ends;
}

static void end_all(struct writer *w)
{
	while (w->depth)
		go_on(w, OUT_DONE);
}

static void put(struct look *l, struct writer *w, uint32_t len)
{
	begin(l, w, len);
	go_on(w, OUT_DONE);
	l->sim.now_ns += 10;
}

static void write_some(struct look *l, uint32_t steps)
{
	while (steps--) {
		struct writer *w = &l->writers[rng__below(&l->rng, l->rings)];

		l->sim.now_ns += rng__below(&l->rng, 20);
		/* Whoever is lapped by those that nest in him writes over what is newer: nothing tells. */
		if (*out_ring__producer(w->ring) - w->ring->head > SIZE / 2)
			end_all(w);
		if (w->depth < NEST_MAX && (!w->depth || rng__chance(&l->rng, 400)))
			begin(l, w, l->len_max - 8 * (uint32_t)rng__below(&l->rng, l->len_max / 8));
		else
			go_on(w, (enum out_step)rng__range(&l->rng, OUT_LOOK, OUT_DONE));
	}
}

/* Who is inside leaves; meanwhile, and when all are gone, others may come. */
static int wait_for_writers(void *ctx)
{
	struct look *l = ctx;

	l->sim.now_ns += WAIT_NS;
	for (uint32_t i = 0; i < l->rings; i++)
		end_all(&l->writers[i]);
	if (l->goes_on)
		write_some(l, (uint32_t)rng__below(&l->rng, 40));
	for (uint32_t i = 0; i < l->rings && l->waits < 2; i++)
		l->head[l->waits][i] = *out_ring__producer(l->writers[i].ring);
	l->waits++;
	return 0;
}

/* --- The consumer --- */

static void check_record(struct look *l, const struct weir_event *event)
{
	struct writer *w = &l->writers[event->source];
	const uint8_t *payload = (const uint8_t *)event->data + OUT_SAMPLE_HEAD;
	uint8_t want[OUT_PAYLOAD_MAX];
	struct out_record *r;
	uint64_t identity;

	assert_true(event->len >= OUT_SAMPLE_HEAD + 8);
	memcpy(&identity, payload, sizeof(identity));
	assert_int_equal(identity >> 48, event->source);
	identity &= (1ull << 48) - 1;
	assert_true(identity < w->numbers);
	r = &w->ring->log[identity];
	assert_int_equal(r->stamp_ns, event->stamp_ns);
	assert_int_equal(event->len, w->size[identity]);
	sim__payload(want, r->len, event->source, identity);
	assert_memory_equal(payload, want, r->len);
	assert_int_equal(r->fate, SIM_FATE_OPEN);
	r->fate = SIM_FATE_DELIVERED;
	w->come++;
}

static int on_event(void *ctx, const struct weir_event *event)
{
	struct look *l = ctx;

	if (event->mark & WEIR_MARK_LATE) {
		l->late++;
	} else {
		assert_true(event->stamp_ns > l->w_ns || !l->w_ns);
		assert_true(event->stamp_ns >= l->last_ns);
		l->last_ns = event->stamp_ns;
	}
	if (event->kind == WEIR_KIND_RECORD)
		check_record(l, event);
	else
		l->overwritten += ((const struct weir_gap *)event->data)->cause ==
				  WEIR_LOST_OVERWRITTEN;
	return 0;
}

static void on_watermark(void *ctx, uint64_t w_ns, enum weir_order order)
{
	struct look *l = ctx;

	assert_true(w_ns > l->w_ns);
	l->w_ns = w_ns;
	l->order = order;
}

static uint64_t now_ns(void *ctx)
{
	return sim__reader_clock(ctx);
}

static void offsets(void *ctx, int64_t *real_ns, int64_t *boot_ns)
{
	(void)ctx;
	*real_ns = *boot_ns = 0;
}

/* --- Looks --- */

static void add_ring(struct look *l, uint32_t i)
{
	struct out_ring *ring = out_ring__new(&l->sim, &l->grace, OUT_BACKWARD, i, (int)i,
					      l->ring_bytes);
	struct weir_memory_outside memory = {
		.name = ring->name,
		.cpu = (int)i,
		.data = ring->data,
		.size = l->ring_bytes,
		.producer = out_ring__producer(ring),
		.fence = l->fence,
		.grace_ns = GRACE_NS,
	};

	if (l->trap) {
		trap__init(l->trap, ring->data, l->ring_bytes);
		memory.data = l->trap->readers;
	}
	assert_int_equal(weir_stream__add_memory_overwritable(l->stream, &memory, &l->layout), i);
	l->writers[i].ring = ring;
}

static struct look *new_look(uint32_t rings, enum weir_fence_kind fence, size_t memory_bytes)
{
	struct look *l = calloc(1, sizeof(*l));
	struct weir_clock clock = {.now_ns = now_ns, .offsets = offsets};
	struct weir_stream_opts opts = {
		.sz = sizeof(opts),
		.on_event = on_event,
		.on_watermark = on_watermark,
		.guard_ns = GUARD_NS,
		.memory_bytes = memory_bytes,
		.ctx = l,
	};

	assert_non_null(l);
	sim__init(&l->sim);
	l->sim.now_ns = 1000 * GRACE_NS;
	clock.ctx = &l->sim;
	l->grace.sim = &l->sim;
	l->fence = fence;
	l->len_max = 100;
	l->ring_bytes = SIZE;
	l->stream = weir_stream__new(&opts);
	assert_non_null(l->stream);
	weir_stream__set_clock(l->stream, &clock);
	assert_int_equal(perf_layout__init(&l->layout, OUT_SAMPLE_TYPE, true, 0), 0);
	/* Where nothing can be waited for nobody is to wait. */
	if (fence == WEIR_FENCE_RCU)
		assert_int_equal(weir_stream__set_fence(l->stream, wait_for_writers, l), 0);
	while (l->rings < rings)
		add_ring(l, l->rings++);
	return l;
}

/*
 * What has to be in the stream now: reserved between the two looks' heads, and no part of it below what
 * the writers had come to when it was over. guard: as much more may be missing.
 */
static uint64_t count_due(const struct look *l, uint32_t i, uint64_t head1, uint64_t head2,
			  uint64_t guard)
{
	const struct writer *w = &l->writers[i];
	uint64_t fresh = w->before - head1, due = 0;
	uint64_t intact = head2 + l->ring_bytes - guard - head1;
	uint64_t end = fresh < intact ? fresh : intact;

	if (head1 - head2 + guard >= l->ring_bytes)
		return 0;
	for (uint64_t number = 0; number < w->numbers; number++) {
		uint64_t at = w->position[number] - head1;

		due += w->size[number] && at < end && at + w->size[number] <= end;
	}
	return due;
}

/* A look, and all that is known of it. */
static struct weir_snapshot look(struct look *l)
{
	struct weir_snapshot told = {.sz = sizeof(told)};
	uint64_t begun_ns = l->sim.now_ns, records = 0;

	l->waits = 0;
	for (uint32_t i = 0; i < l->rings; i++)
		l->head[0][i] = l->head[1][i] = *out_ring__producer(l->writers[i].ring);
	assert_true(weir_stream__snapshot(l->stream, WEIR_SNAPSHOT_RUNNING, &told) >= 0);
	assert_true(l->w_ns <= told.to_ns);
	if (l->fence == WEIR_FENCE_RCU) {
		assert_int_equal(l->waits, 2);
		assert_int_equal(told.to_ns, begun_ns - 1 - GUARD_NS);
	} else {
		assert_int_equal(told.to_ns, begun_ns - GRACE_NS - 1 - GUARD_NS);
	}
	for (uint32_t i = 0; i < l->rings; i++) {
		struct writer *w = &l->writers[i];
		uint64_t guard = l->fence == WEIR_FENCE_RCU ? 0 : 4 * w->longest;
		uint64_t due = count_due(l, i, l->head[0][i], l->head[1][i], guard);

		records += due;
		w->due += due;
		w->before = l->head[0][i];
	}
	if (l->fence == WEIR_FENCE_RCU)
		assert_int_equal(told.records, records);
	else
		assert_true(told.records >= records);
	return told;
}

/* What was in a look and was not due by then comes at the end. */
static void end(struct look *l)
{
	struct weir_ledger ledger = {.sz = sizeof(ledger)};

	l->goes_on = false;
	l->sim.tick_ns = 2;
	assert_int_equal(weir_stream__close(l->stream), 0);
	assert_int_equal(weir_stream__ledger(l->stream, &ledger), 0);
	assert_int_equal(ledger.total.pending, 0);
	assert_int_equal(ledger.total.late, l->late);
	assert_int_equal(weir_account__difference(&ledger.total), 0);
	assert_int_equal(l->late, 0);
	for (uint32_t i = 0; i < l->rings; i++) {
		struct writer *w = &l->writers[i];

		if (l->fence == WEIR_FENCE_RCU)
			assert_int_equal(w->come, w->due);
		else
			assert_true(w->come >= w->due);
	}
	weir_stream__free(l->stream);
	for (uint32_t i = 0; i < l->rings; i++) {
		end_all(&l->writers[i]);
		out_ring__free(l->writers[i].ring);
		free(l->writers[i].position);
		free(l->writers[i].size);
	}
	sim__destroy(&l->sim);
	sim_grace__destroy(&l->grace);
	free(l);
}

/* Whole generations of a ring, and more written than fits. */
static void fill(struct look *l, struct writer *w)
{
	end_all(w);
	for (int i = 0; i < 200; i++)
		put(l, w, l->len_max);
}

/*
 * V10: a writer has reserved, and four that nest in it have written, over the oldest records and in no
 * head, when the copy is made. Only the second grace period lets the head tell of it.
 */
static void v10_nested_in_no_head(void **state)
{
	struct look *l = new_look(1, WEIR_FENCE_RCU, 0);
	struct writer *w = &l->writers[0];

	fill(l, w);
	/* Inside when the copy is made: behind the first grace period. */
	l->goes_on = true;
	for (uint64_t seed = 1; seed <= 200; seed++) {
		l->rng.state = seed;
		look(l);
		assert_int_equal(l->order, WEIR_ORDER_EXACT);
		fill(l, w);
	}
	end(l);
}

/* G2: what was stamped before T and is not published yet is waited for, or it would be late next time. */
static void g2_stamped_before(void **state)
{
	struct look *l = new_look(1, WEIR_FENCE_RCU, 0);
	struct writer *w = &l->writers[0];

	for (int i = 0; i < 20; i++) {
		begin(l, w, 40);
		go_on(w, OUT_RESERVE);
		l->sim.now_ns += 50;
		look(l);
		assert_int_equal(w->come, i + 1);
	}
	end(l);
}

/* Where nothing can be waited for: a guard of four records, T less a time, and it is said. */
static void v10_by_a_guard(void **state)
{
	struct look *l = new_look(1, WEIR_FENCE_GRACE, 0);
	struct writer *w = &l->writers[0];

	for (int round = 0; round < 100; round++) {
		fill(l, w);
		for (int depth = 0; depth <= round % NEST_MAX; depth++) {
			begin(l, w, l->len_max);
			go_on(w, round % 3 ? OUT_LEAVE : OUT_FILL);
		}
		look(l);
		assert_int_equal(l->order, WEIR_ORDER_ESTIMATED);
		end_all(w);
		l->sim.now_ns += 2 * GRACE_NS;
		look(l);
		l->len_max = 32 + (uint32_t)round * 5;
	}
	assert_true(w->come > 1000);
	assert_true(l->overwritten > 50);
	end(l);
}

/* A ring that was never full has no old end: by a guard, too, nothing of it is left out. */
static void v1_never_full(void **state)
{
	static const enum weir_fence_kind fences[] = {WEIR_FENCE_RCU, WEIR_FENCE_GRACE};

	for (int k = 0; k < 2; k++) {
		struct look *l = new_look(2, fences[k], 0);
		struct weir_snapshot told;

		for (int i = 0; i < 10; i++)
			put(l, &l->writers[1], 8);
		l->sim.now_ns += 2 * GRACE_NS;
		told = look(l);
		assert_int_equal(told.records, 10);
		assert_int_equal(told.from_ns, 0);
		assert_int_equal(l->writers[1].come, 10);
		assert_int_equal(look(l).records, 0);
		assert_int_equal(l->overwritten, 0);
		end(l);
	}
}

/* V7, V9, V10, O19: any writers, any row of looks. */
static void row_of_looks(uint64_t seed, const char *label)
{
	struct rng rng = {seed};
	struct look *l = new_look((uint32_t)rng__range(&rng, 1, RINGS_MAX), WEIR_FENCE_RCU, 0);

	(void)label;
	l->rng.state = seed;
	l->goes_on = true;
	l->len_max = 8 * (uint32_t)rng__range(&rng, 1, 40);
	for (uint32_t i = 0; i < l->rings; i++)
		put(l, &l->writers[i], l->len_max);
	for (int i = 0; i < 60; i++) {
		write_some(l, (uint32_t)rng__below(&l->rng, 600));
		look(l);
	}
	end(l);
}

static void v10_any_row_of_looks(void **state)
{
	seeds__fixed(NULL, 0, 150, row_of_looks);
	seeds__random(20, row_of_looks);
}

static void put_one(void *ctx)
{
	struct look *l = ctx;

	put(l, &l->writers[0], l->len_max);
}

/* V10: the writer is on each page of the ring just before the copy is. */
static void v10_while_it_is_copied(void **state)
{
	struct look *l = new_look(0, WEIR_FENCE_RCU, 0);
	struct trap trap = {0};

	l->trap = &trap;
	l->ring_bytes = 4 * SIZE;
	add_ring(l, l->rings++);
	for (uint32_t len = 100; len < 3000; len += 10) {
		l->len_max = len;
		fill(l, &l->writers[0]);
		trap__set(&trap, put_one, l);
		look(l);
	}
	assert_true(l->writers[0].come > 1000);
	end(l);
	trap__destroy(&trap);
}

static void refusals(void **state)
{
	struct look *l = new_look(1, WEIR_FENCE_RCU, 1);

	/* To pause is the kernel's. */
	assert_int_equal(weir_stream__snapshot(l->stream, WEIR_SNAPSHOT_PAUSED, NULL), -EOPNOTSUPP);
	/* G5: what there is no room for is in the ring, and comes with the next look. */
	put(l, &l->writers[0], 8);
	assert_int_equal(weir_stream__snapshot(l->stream, WEIR_SNAPSHOT_RUNNING, NULL), -ENOBUFS);
	assert_int_equal(l->writers[0].come, 0);
	end(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(v10_nested_in_no_head),
		cmocka_unit_test(g2_stamped_before),
		cmocka_unit_test(v10_by_a_guard),
		cmocka_unit_test(v1_never_full),
		cmocka_unit_test(v10_any_row_of_looks),
		cmocka_unit_test(v10_while_it_is_copied),
		cmocka_unit_test(refusals),
	};
	int r = cmocka_run_group_tests_name("model: snapshots", tests, NULL, NULL);

	return r ? 1 : 0;
}
