/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory ends at the n-th request, for every n: a clean error, nothing changed by the call that
 * failed, nothing leaked, and what was there goes on working.
 *
 * The linker hands each request to the functions below (meson.build: --wrap); they fail the one
 * that is asked for, or all from it on.
 */
#include "unit.h"

#include "ledger/seqs.h"
#include "order/merge.h"
#include "order/queue.h"
#include "order/retire.h"
#include "ring_memory.h"
#include "stream/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void __real_free(void *old);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void __wrap_free(void *old);

static struct {
	uint64_t requests, fail_at; /* counted from 1; 0: none fails */
	bool for_ever;
	long live;
} memory;

static bool fails(void)
{
	memory.requests++;
	if (!memory.fail_at || memory.requests < memory.fail_at ||
	    (memory.requests > memory.fail_at && !memory.for_ever))
		return false;
	errno = ENOMEM;
	return true;
}

static void *counted(void *got)
{
	memory.live += got != NULL;
	return got;
}

void *__wrap_malloc(size_t bytes)
{
	return fails() ? NULL : counted(__real_malloc(bytes));
}

void *__wrap_calloc(size_t n, size_t bytes)
{
	return fails() ? NULL : counted(__real_calloc(n, bytes));
}

void *__wrap_realloc(void *old, size_t bytes)
{
	if (fails())
		return NULL;
	memory.live -= old != NULL;
	return counted(__real_realloc(old, bytes));
}

void __wrap_free(void *old)
{
	memory.live -= old != NULL;
	__real_free(old);
}

static void memory_ends(uint64_t fail_at, bool for_ever)
{
	memory.requests = 0;
	memory.fail_at = fail_at;
	memory.for_ever = for_ever;
}

static bool memory_has_ended(void)
{
	return memory.fail_at && memory.requests >= memory.fail_at;
}

/* Run `once` with each of its requests failing in turn, until it makes none that does. */
static void sweep(void (*once)(bool for_ever), bool for_ever)
{
	uint64_t n;

	for (n = 1;; n++) {
		long live = memory.live;

		memory_ends(n, for_ever);
		once(for_ever);
		assert_true(memory.live == live);
		if (!memory_has_ended())
			break;
	}
	memory_ends(0, false);
	assert_true(n > 1); /* something was tried */
}

static int no_tie(void *ctx, uint64_t ref_a, uint64_t ref_b)
{
	return 0;
}

static void use_queue(bool for_ever)
{
	struct queue q = {0};
	uint64_t in = 0, out = 0;

	for (size_t n = 1; n < 5000; n *= 2) {
		struct queue before = q;

		if (queue__room(&q, n)) {
			assert_true(memory_has_ended());
			assert_memory_equal(&q.e, &before.e, sizeof(q.e));
			assert_true(queue__count(&q) == queue__count(&before));
			assert_true(q.cap == before.cap);
			if (for_ever)
				break;
			assert_int_equal(queue__room(&q, n), 0);
		}
		for (size_t i = 0; i < n; i++, in++)
			queue__push(&q, (struct entry){in, 0}, no_tie, NULL);
		for (size_t i = 0; i < n / 3; i++)
			assert_true(q.e[q.first++].stamp_ns == out++);
	}
	while (queue__count(&q))
		assert_true(q.e[q.first++].stamp_ns == out++);
	assert_true(in == out);
	queue__free(&q);
}

static uint64_t nr_lost;

static void count_lost(void *ctx, const struct hole *hole)
{
	nr_lost += hole->missing;
}

static void use_seqs(bool for_ever)
{
	const uint32_t n = 3 * SEQS_HOLES_MAX;
	struct seqs seqs;
	int err = seqs__init(&seqs);

	if (err) {
		assert_int_equal(err, -ENOMEM);
		assert_null(seqs.holes);
		seqs__free(&seqs);
		return;
	}
	/* Where it cannot remember more holes it joins them: the count is exact all the same. */
	seqs.limit = n;
	for (uint32_t seq = 1; seq < n; seq += 2)
		assert_true(seqs__see(&seqs, seq, seq));
	for (uint32_t seq = 0; seq < n; seq += 10)
		assert_true(seqs__see(&seqs, seq, seq));
	nr_lost = 0;
	seqs__settle(&seqs, n, n, n, count_lost, NULL);
	assert_int_equal(nr_lost, n / 2 - (n + 9) / 10);
	assert_int_equal(seqs.seen + seqs.lost, n);
	seqs__free(&seqs);
}

static void use_merge(bool for_ever)
{
	struct merge merge;
	int err = merge__init(&merge);

	if (err)
		assert_int_equal(err, -ENOMEM);
	merge__free(&merge);
	merge__free(&merge);
}

static unsigned retired;

static void count_retired(void *arg, uint64_t stamp_ns)
{
	retired++;
}

static void use_retire(bool for_ever)
{
	struct retire retire = {0};
	unsigned asked = 0;

	retired = 0;
	for (uint64_t i = 0; i < 1000; i++) {
		int err = retire__add(&retire, 1000 - i, count_retired, NULL);

		if (err) {
			assert_int_equal(err, -ENOMEM);
			assert_true(memory_has_ended());
			assert_int_equal(retire.count, asked);
			if (for_ever)
				break;
			assert_int_equal(retire__add(&retire, 1000 - i, count_retired, NULL), 0);
		}
		asked++;
	}
	retire__run(&retire, 500);
	retire__run(&retire, 1000);
	assert_int_equal(retired, asked);
	retire__free(&retire);
}

/* Three rings, and a sum of what comes out of them. */
enum { RINGS = 3, RECORDS = 900 };

struct stream {
	struct weir_stream *s;
	struct ring_memory rings[RINGS];
	uint64_t now_ns, last_stamp_ns, delivered;
	unsigned added, retired, asked;
};

static uint64_t now(void *ctx)
{
	return ((struct stream *)ctx)->now_ns++;
}

static int on_event(void *ctx, const struct weir_event *event)
{
	struct stream *stream = ctx;

	assert_true(event->stamp_ns >= stream->last_stamp_ns);
	stream->last_stamp_ns = event->stamp_ns;
	stream->delivered += event->kind == WEIR_KIND_RECORD;
	return 0;
}

static bool make_stream(struct stream *stream, bool for_ever)
{
	const struct weir_stream_opts opts = {
		.sz = sizeof(opts),
		.on_event = on_event,
		.ctx = stream,
		.guard_ns = 1,
	};
	const struct weir_clock clock = {.now_ns = now, .ctx = stream};

	for (int again = 0; again < 2 && !stream->s; again++) {
		stream->s = weir_stream__new(&opts);
		/* What failed has let go of what is its own, and of nothing else. */
		assert_true(fcntl(0, F_GETFD) >= 0);
		if (stream->s)
			break;
		assert_int_equal(errno, ENOMEM);
		assert_true(memory_has_ended());
	}
	assert_true(stream->s || for_ever);
	if (stream->s)
		weir_stream__set_clock(stream->s, &clock);
	return stream->s != NULL;
}

/* A failed call leaves the stream as it was: the next ring gets the index that this one did not. */
static bool add_ring(struct stream *stream, unsigned i, bool for_ever)
{
	struct ring_memory *ring = &stream->rings[i];
	const struct weir_memory_ring memory_ring = {
		.name = "cpu",
		.cpu = (int)i,
		.data = ring->data,
		.size = ring->size,
		.producer = &ring->producer,
		.consumer = &ring->consumer,
		.counters = &ring->counters,
	};
	struct weir_source_info info;
	int err = weir_stream__add_memory_ring(stream->s, &memory_ring);

	if (err == -ENOMEM) {
		assert_true(memory_has_ended());
		assert_int_equal(weir_stream__source(stream->s, i, &info), -ENOENT);
		if (for_ever)
			return false;
		err = weir_stream__add_memory_ring(stream->s, &memory_ring);
	}
	assert_int_equal(err, i);
	return true;
}

static void on_retire(void *arg, uint64_t stamp_ns)
{
	((struct stream *)arg)->retired++;
}

static void ask_to_retire(struct stream *stream)
{
	for (int again = 0; again < 2; again++) {
		int err = weir_stream__retire(stream->s, stream->now_ns, on_retire, stream);

		if (!err) {
			stream->asked++;
			return;
		}
		assert_int_equal(err, -ENOMEM);
		assert_true(memory_has_ended());
	}
}

/* Records, losses and a record that is busy for a while, so that others have to be copied out. */
static void drive(struct stream *stream)
{
	uint64_t busy = ring_memory__emit(&stream->rings[0], 0, stream->now_ns);

	ring_memory__store32(&stream->rings[0], busy, RING_BUSY | sizeof(struct weir_record));
	for (unsigned i = 1; i < RECORDS; i++) {
		struct ring_memory *ring = &stream->rings[i % RINGS];

		stream->now_ns += 10;
		if (i == 600)
			ring_memory__store32(&stream->rings[0], busy, sizeof(struct weir_record));
		if (i % 50 == 0)
			ring_memory__lose(ring);
		ring_memory__emit(ring, i % 40, stream->now_ns);
		if (i % 60 == 0)
			ask_to_retire(stream);
		if (i % 20 == 0)
			assert_true(weir_stream__poll(stream->s, 0) >= 0);
	}
}

static void check_account(struct stream *stream)
{
	struct weir_ledger ledger = {.sz = sizeof(ledger)};

	assert_int_equal(weir_stream__ledger(stream->s, &ledger), 0);
	assert_int_equal(weir_account__difference(&ledger.total), 0);
	assert_int_equal(ledger.total.produced, RECORDS + (RECORDS - 1) / 50);
	assert_int_equal(ledger.total.lost[WEIR_LOST_RESERVE_FAILED], (RECORDS - 1) / 50);
	assert_int_equal(ledger.total.delivered, stream->delivered);
	assert_int_equal(ledger.total.pending, 0);
	/* What could not be copied out of a ring that filled was given up, and said so. */
	assert_int_equal(stream->delivered + ledger.total.lost[WEIR_LOST_HELD], RECORDS);
	if (!memory_has_ended())
		assert_int_equal(stream->delivered, RECORDS);
}

static void use_stream(bool for_ever)
{
	struct stream stream = {.now_ns = 1000};
	int err;

	for (int i = 0; i < RINGS; i++)
		ring_memory__init(&stream.rings[i], 16384, 4096);
	if (make_stream(&stream, for_ever))
		while (stream.added < RINGS && add_ring(&stream, stream.added, for_ever))
			stream.added++;
	if (stream.added == RINGS) {
		drive(&stream);
		stream.now_ns += 1000;
		err = weir_stream__close(stream.s);
		/* Where memory never comes back, what waits in the rings stays there. */
		if (!err && !(for_ever && memory_has_ended()))
			check_account(&stream);
		assert_true(!err || err == -ENOMEM);
		assert_true(stream.retired <= stream.asked);
		if (!for_ever)
			assert_int_equal(stream.retired, stream.asked);
	}
	weir_stream__free(stream.s);
	for (int i = 0; i < RINGS; i++)
		ring_memory__free(&stream.rings[i]);
}

static void test_queue(void **state)
{
	sweep(use_queue, false);
	sweep(use_queue, true);
}

static void test_seqs(void **state)
{
	sweep(use_seqs, false);
	sweep(use_seqs, true);
}

static void test_merge(void **state)
{
	sweep(use_merge, false);
	sweep(use_merge, true);
}

static void test_retire(void **state)
{
	sweep(use_retire, false);
	sweep(use_retire, true);
}

static void test_stream_one_fails(void **state)
{
	sweep(use_stream, false);
}

static void test_stream_all_fail(void **state)
{
	sweep(use_stream, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_queue),
		cmocka_unit_test(test_seqs),
		cmocka_unit_test(test_merge),
		cmocka_unit_test(test_retire),
		cmocka_unit_test(test_stream_one_fails),
		cmocka_unit_test(test_stream_all_fail),
	};
	int r;

	/* A descriptor 0 that is ours to lose, whatever the runner has made of it. */
	if (fcntl(0, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != 0)
		return 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	return r ? 1 : 0;
}
