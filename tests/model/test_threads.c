// SPDX-License-Identifier: BSD-2-Clause
/*
 * test_threads.c - O21 and L3 with real writers: threads that reserve, count, stamp and submit while
 * the reader polls, on the machine's own clock.
 *
 * ThreadSanitizer can judge it: everything that is shared is acquired and released, and what is not
 * atomic is touched by one side at a time.
 */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model.h"
#include "rng.h"
#include "sanitized.h"

#if SANITIZED_THREAD
#define SLOWER 20
#elif SANITIZED_ADDRESS
#define SLOWER 5
#else
#define SLOWER 1
#endif

#define RINGS_MAX   2
#define WRITERS_MAX 4

/* One bit for each seq. */
static uint64_t *new_bits(uint64_t n)
{
	uint64_t *bits = calloc(n / 64 + 1, sizeof(*bits));

	assert_non_null(bits);
	return bits;
}

static bool test_bit(const uint64_t *bits, uint64_t at)
{
	return bits[at / 64] >> (at % 64) & 1;
}

/* Sets it; true if it was set before. */
static bool set_bit(uint64_t *bits, uint64_t at)
{
	bool was = test_bit(bits, at);

	bits[at / 64] |= 1ull << (at % 64);
	return was;
}

struct told {
	uint64_t seq, lost;
};

struct ring {
	struct sim_buffer buffer;
	pthread_spinlock_t lock; /* the kernel's, around reserve */
	uint64_t *seen;
	uint64_t nseen;
	struct told *told; /* gaps */
	uint64_t ntold, told_cap;
};

struct writer {
	pthread_t thread;
	struct ring *ring;
	uint32_t index;
	uint64_t n;	  /* attempts to make */
	uint64_t *failed; /* by seq; each writer has its own */
	uint64_t nfailed;
};

struct race {
	struct ring rings[RINGS_MAX];
	struct writer writers[WRITERS_MAX];
	uint32_t nrings, nwriters;
	uint64_t n;	 /* attempts in all */
	uint64_t nwrong; /* of what the reader was given */
	char wrong[200]; /* the first of it */
	uint64_t last_stamp;
	uint32_t last_source;
	uint64_t last_seq;
	uint64_t watermark;
	uint32_t running; /* writers */
};

static uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* weir.bpf.h, in its order. The payload carries its seq, so that it is known which one it is. */
static bool emit(struct writer *w, uint32_t len)
{
	struct weir_counters *counters = &w->ring->buffer.shared->counters;
	struct weir_record *record;
	uint64_t seq;

	pthread_spin_lock(&w->ring->lock);
	record = sim_buffer__reserve(&w->ring->buffer, sizeof(*record) + len);
	pthread_spin_unlock(&w->ring->lock);
	seq = sim__count(&counters->attempts);
	if (!record) {
		sim__count(&counters->failed);
		set_bit(w->failed, seq);
		w->nfailed++;
		return false;
	}
	record->stamp = clock_ns();
	record->type = w->index;
	record->flags = len;
	record->seq = (uint32_t)seq;
	sim__payload((uint8_t *)(record + 1), len, w->index, seq);
	sim_buffer__finish(record, false);
	return true;
}

static struct race race;

static void *write_all(void *arg)
{
	struct writer *w = arg;
	struct rng rng = {w->index + 1};
	uint64_t i;

	for (i = 0; i < w->n; i++)
		/* Give way now and then when there is no room, or hardly anything would ever fit. */
		if (!emit(w, rng__below(&rng, 5) * 8) && i % 8 == 0)
			sched_yield();
	__atomic_fetch_sub(&race.running, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* Note what is wrong with an event, and the state in which it came. */
static void wrong(const struct weir_event *e, const char *what)
{
	if (race.nwrong++)
		return;
	snprintf(race.wrong, sizeof(race.wrong),
		 "%s: stamp %" PRIu64 " source %u seq %" PRIu64 " kind %u mark %u, after %" PRIu64
		 " of %u, W %" PRIu64,
		 what, e->stamp_ns, e->source, e->seq, e->kind, e->mark, race.last_stamp,
		 race.last_source, race.watermark);
}

static bool in_order(const struct weir_event *e)
{
	if (e->stamp_ns != race.last_stamp)
		return e->stamp_ns > race.last_stamp;
	if (e->source != race.last_source)
		return e->source > race.last_source;
	return e->seq > race.last_seq;
}

static bool payload_is_right(const struct weir_event *e)
{
	uint8_t want[64];

	if (e->len != e->flags || e->len > sizeof(want))
		return false;
	sim__payload(want, e->len, e->type, e->seq);
	return !memcmp(want, e->data, e->len);
}

static void keep_gap(struct ring *ring, const struct weir_event *e)
{
	const struct weir_gap *gap = e->data;

	if (gap->cause != WEIR_LOST_RESERVE_FAILED || gap->bound != WEIR_BOUND_EXACT)
		wrong(e, "cause or bound");
	if (ring->ntold == ring->told_cap) {
		ring->told_cap = ring->told_cap ? ring->told_cap * 2 : 1024;
		ring->told = realloc(ring->told, ring->told_cap * sizeof(*ring->told));
		if (!ring->told)
			abort();
	}
	ring->told[ring->ntold++] = (struct told){e->seq, gap->lost};
}

static int on_event(void *ctx, const struct weir_event *e)
{
	struct ring *ring = &race.rings[e->source];

	if (e->kind == WEIR_KIND_CLOCK_STEP)
		return 0;
	if (e->mark)
		wrong(e, "G2: flagged");
	if (e->stamp_ns <= race.watermark)
		wrong(e, "G2: behind W");
	if (!in_order(e))
		wrong(e, "G1: out of order");
	race.last_stamp = e->stamp_ns;
	race.last_source = e->source;
	race.last_seq = e->seq;
	if (e->kind == WEIR_KIND_GAP) {
		keep_gap(ring, e);
	} else if (e->seq >= race.n || !payload_is_right(e) || set_bit(ring->seen, e->seq)) {
		wrong(e, "O21: bytes, or twice");
	} else {
		ring->nseen++;
	}
	return 0;
}

static void on_watermark(void *ctx, uint64_t watermark_ns, enum weir_order order)
{
	const struct weir_event none = {.stamp_ns = watermark_ns};

	if (watermark_ns <= race.watermark || order != WEIR_ORDER_EXACT)
		wrong(&none, "G2: W steps back, or is not exact");
	race.watermark = watermark_ns;
}

static void set_up(uint32_t nrings, uint32_t nwriters, size_t ring_bytes, uint64_t n)
{
	uint32_t i;

	race = (struct race){.nrings = nrings, .nwriters = nwriters, .n = n, .running = nwriters};
	for (i = 0; i < nrings; i++) {
		assert_int_equal(sim_buffer__init(&race.rings[i].buffer, ring_bytes, 0), 0);
		assert_int_equal(pthread_spin_init(&race.rings[i].lock, 0), 0);
		race.rings[i].seen = new_bits(n);
	}
	for (i = 0; i < nwriters; i++)
		race.writers[i] = (struct writer){.ring = &race.rings[i % nrings],
						  .index = i,
						  .n = n / nwriters,
						  .failed = new_bits(n)};
}

static struct weir_stream *open_stream(void)
{
	struct weir_stream_opts opts = {
		.sz = sizeof(opts), .on_event = on_event, .on_watermark = on_watermark};
	struct weir_stream *stream = weir_stream__new(&opts);
	uint32_t i;

	assert_non_null(stream);
	for (i = 0; i < race.nrings; i++) {
		struct sim_buffer *buffer = &race.rings[i].buffer;
		struct weir_memory_ring ring = {
			.name = i ? "b" : "a",
			.cpu = i,
			.data = buffer->data,
			.size = buffer->size,
			.producer = &buffer->shared->producer,
			.consumer = &buffer->shared->consumer,
			.counters = &buffer->shared->counters,
		};

		assert_int_equal(weir_stream__add_memory_ring(stream, &ring), i);
	}
	return stream;
}

/* Poll while they write. A poll that finds nothing gives the CPU to them. */
static void read_all(struct weir_stream *stream)
{
	uint32_t i;
	int rc;

	for (i = 0; i < race.nwriters; i++)
		assert_int_equal(
			pthread_create(&race.writers[i].thread, NULL, write_all, &race.writers[i]),
			0);
	while (__atomic_load_n(&race.running, __ATOMIC_ACQUIRE)) {
		rc = weir_stream__poll(stream, 0);
		if (rc < 0)
			break;
		if (rc == 0)
			sched_yield();
	}
	for (i = 0; i < race.nwriters; i++)
		pthread_join(race.writers[i].thread, NULL);
	assert_int_equal(weir_stream__close(stream), 0);
}

static bool has_failed(const struct ring *ring, uint64_t seq)
{
	uint32_t i;

	for (i = 0; i < race.nwriters; i++)
		if (race.writers[i].ring == ring && test_bit(race.writers[i].failed, seq))
			return true;
	return false;
}

static int by_seq(const void *a, const void *b)
{
	const struct told *x = a, *y = b;

	return (x->seq > y->seq) - (x->seq < y->seq);
}

/* Each seq was seen once, or it failed and exactly one gap stands for it; a gap may span others. */
static void check_ring(struct ring *ring)
{
	uint64_t attempts = ring->buffer.shared->counters.attempts, seq, left = 0, at = 0,
		 wrong = 0;

	if (ring->ntold)
		qsort(ring->told, ring->ntold, sizeof(*ring->told), by_seq);
	for (seq = 0; seq < attempts; seq++) {
		bool failed = has_failed(ring, seq);

		wrong += failed == test_bit(ring->seen, seq);
		if (at < ring->ntold && ring->told[at].seq == seq) {
			wrong += left != 0 || !failed;
			left = ring->told[at++].lost;
		}
		if (failed && left-- == 0) {
			wrong++;
			left = 0;
		}
	}
	assert_int_equal(wrong, 0);
	assert_int_equal(left, 0);
	assert_int_equal(at, ring->ntold);
}

static void check_all(struct weir_stream *stream)
{
	struct weir_ledger ledger = {.sz = sizeof(ledger)};
	uint64_t seen = 0, failed = 0;
	uint32_t i;

	if (race.nwrong)
		fail_msg("%" PRIu64 " wrong, %s", race.nwrong, race.wrong);
	for (i = 0; i < race.nrings; i++) {
		check_ring(&race.rings[i]);
		seen += race.rings[i].nseen;
	}
	for (i = 0; i < race.nwriters; i++)
		failed += race.writers[i].nfailed;
	assert_int_equal(weir_stream__ledger(stream, &ledger), 0);
	assert_int_equal(ledger.total.produced, race.n);
	assert_int_equal(ledger.total.delivered, seen);
	assert_int_equal(ledger.total.lost[WEIR_LOST_RESERVE_FAILED], failed);
	assert_int_equal(ledger.total.pending, 0);
	assert_int_equal(ledger.total.late + ledger.total.ahead, 0);
	assert_int_equal(weir_account__difference(&ledger.total), 0);
	assert_true(seen > race.n / 100);
}

static void tear_down(struct weir_stream *stream)
{
	uint32_t i;

	weir_stream__free(stream);
	for (i = 0; i < race.nrings; i++) {
		sim_buffer__destroy(&race.rings[i].buffer);
		pthread_spin_destroy(&race.rings[i].lock);
		free(race.rings[i].seen);
		free(race.rings[i].told);
	}
	for (i = 0; i < race.nwriters; i++)
		free(race.writers[i].failed);
}

static void run(uint32_t nrings, uint32_t nwriters, size_t ring_bytes, uint64_t n)
{
	struct weir_stream *stream;

	set_up(nrings, nwriters, ring_bytes, n / SLOWER);
	stream = open_stream();
	read_all(stream);
	check_all(stream);
	tear_down(stream);
}

/* O21: ten million numbers, two writers, each with a ring of its own. */
static void o21_two_writers(void **state)
{
	run(2, 2, 4 << 20, 10000000);
}

/* L3: rings that overflow all the time. */
static void l3_small_rings(void **state)
{
	run(2, 2, 4096, 1000000);
}

/* L8, O21: writers that share a ring nest in every way that two CPUs can. */
static void l8_writers_share_a_ring(void **state)
{
	run(1, 3, 1 << 16, 1200000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(o21_two_writers),
		cmocka_unit_test(l3_small_rings),
		cmocka_unit_test(l8_writers_share_a_ring),
	};
	int r = cmocka_run_group_tests_name("model: threads", tests, NULL, NULL);

	return r ? 1 : 0;
}
