// SPDX-License-Identifier: BSD-2-Clause
/*
 * test_outside_threads.c - O21 and L3 with real writers that stamp first: a thread for each ring, one
 * that waits for grace periods, and the reader, on the machine's own clock.
 *
 * ThreadSanitizer can judge it: what is shared is acquired and released.
 */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mix.h"
#include "model.h"

#define RECORDS 200000

#define WRITERS 3

struct writer {
	pthread_t thread;
	struct sim sim; /* a clock of its own; simulators are one thread's */
	struct sim_grace grace;
	struct out_ring *ring;
	uint64_t sections; /* odd: inside */
};

static struct race {
	struct writer writers[WRITERS];
	uint32_t running;
	bool stop;
	uint64_t ticket_ns;
	uint64_t delivered[WRITERS], lost[WRITERS], next[WRITERS];
	uint64_t last_ns, watermark_ns, nwrong;
	uint32_t last_source;
} race;

static uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

/* A read section: stamp, reserve, fill, publish. */
static void *write_all(void *arg)
{
	struct writer *w = arg;
	uint64_t i;

	for (i = 0; i < RECORDS; i++) {
		__atomic_fetch_add(&w->sections, 1, __ATOMIC_SEQ_CST);
		w->sim.now_ns = clock_ns();
		if (i % 1000 == 0)
			sched_yield();
		out__put_now(w->ring, 8 + (uint32_t)i % 60);
		__atomic_fetch_add(&w->sections, 1, __ATOMIC_SEQ_CST);
		if (i % 64 == 0)
			sched_yield();
	}
	__atomic_fetch_sub(&race.running, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* One after the other, each ticket waits until all have left that were inside. */
static void *wait_for_all(void *arg)
{
	uint32_t i;

	(void)arg;
	while (!__atomic_load_n(&race.stop, __ATOMIC_ACQUIRE)) {
		uint64_t t_ns = clock_ns();

		for (i = 0; i < WRITERS; i++) {
			uint64_t was = __atomic_load_n(&race.writers[i].sections, __ATOMIC_SEQ_CST);

			while (was % 2 &&
			       was == __atomic_load_n(&race.writers[i].sections, __ATOMIC_SEQ_CST))
				sched_yield();
		}
		__atomic_store_n(&race.ticket_ns, t_ns, __ATOMIC_RELEASE);
		sched_yield();
	}
	return NULL;
}

static uint64_t ticket_ns(void *ctx)
{
	(void)ctx;
	/* Pairs with the release above: what had left then is visible. */
	return __atomic_load_n(&race.ticket_ns, __ATOMIC_ACQUIRE);
}

/* The payload bears the number; where the ring has lost some, these are missing. */
static bool is_next(const struct weir_event *e, uint32_t skip)
{
	uint64_t identity, number;

	if (e->len < skip + 8)
		return false;
	memcpy(&identity, (const uint8_t *)e->data + skip, 8);
	number = identity & 0xffffffffffffull;
	if (identity >> 48 != e->source || number < race.next[e->source])
		return false;
	race.next[e->source] = number + 1;
	return true;
}

static int on_event(void *ctx, const struct weir_event *e)
{
	(void)ctx;
	if (e->kind == WEIR_KIND_GAP) {
		struct weir_gap gap;

		memcpy(&gap, e->data, sizeof(gap));
		race.lost[e->source] += gap.lost;
		return 0;
	}
	if (e->kind != WEIR_KIND_RECORD)
		return 0;
	race.delivered[e->source]++;
	race.nwrong += e->mark || e->stamp_ns <= race.watermark_ns || e->stamp_ns < race.last_ns ||
		       (e->stamp_ns == race.last_ns && e->source < race.last_source) ||
		       !is_next(e, e->source == WRITERS - 1 ? 8 : 0);
	race.last_ns = e->stamp_ns;
	race.last_source = e->source;
	return 0;
}

static void on_watermark(void *ctx, uint64_t watermark_ns, enum weir_order order)
{
	(void)ctx;
	race.nwrong += watermark_ns <= race.watermark_ns || order != WEIR_ORDER_EXACT;
	race.watermark_ns = watermark_ns;
}

/* All but the last are perf's. */
static void add_ring(struct weir_stream *stream, const struct perf_layout *layout, uint32_t i,
		     size_t size)
{
	struct writer *w = &race.writers[i];
	struct weir_memory_outside memory;
	bool perf = i != WRITERS - 1;
	int index;

	sim__init(&w->sim);
	w->grace.sim = &w->sim;
	w->ring = out_ring__new(&w->sim, &w->grace, perf ? OUT_PERF : OUT_RINGBUF, i, (int)i, size);
	assert_non_null(w->ring);
	w->ring->threads = true;
	memory = (struct weir_memory_outside){
		.name = w->ring->name,
		.cpu = (int)i,
		.data = w->ring->data,
		.size = size,
		.producer = out_ring__producer(w->ring),
		.consumer = out_ring__consumer(w->ring),
	};
	index = perf ? weir_stream__add_memory_perf(stream, &memory, layout, true)
		     : weir_stream__add_memory_ringbuf(stream, &memory, 0);
	assert_int_equal(index, i);
}

static struct weir_stream *open_stream(const struct perf_layout *layout, size_t size)
{
	struct weir_stream_opts opts = {
		.sz = sizeof(opts), .on_event = on_event, .on_watermark = on_watermark};
	struct weir_stream *stream = weir_stream__new(&opts);
	uint32_t i;

	assert_non_null(stream);
	race = (struct race){.running = WRITERS};
	weir_stream__set_ticket(stream, ticket_ns, NULL);
	for (i = 0; i < WRITERS; i++)
		add_ring(stream, layout, i, size);
	return stream;
}

static void read_all(struct weir_stream *stream)
{
	pthread_t waiter;
	uint32_t i;

	assert_int_equal(pthread_create(&waiter, NULL, wait_for_all, NULL), 0);
	for (i = 0; i < WRITERS; i++)
		assert_int_equal(
			pthread_create(&race.writers[i].thread, NULL, write_all, &race.writers[i]),
			0);
	while (__atomic_load_n(&race.running, __ATOMIC_ACQUIRE))
		if (weir_stream__poll(stream, 0) <= 0)
			sched_yield();
	for (i = 0; i < WRITERS; i++)
		pthread_join(race.writers[i].thread, NULL);
	__atomic_store_n(&race.stop, true, __ATOMIC_RELEASE);
	pthread_join(waiter, NULL);
	assert_int_equal(weir_stream__close(stream), 0);
}

static void check_all(struct weir_stream *stream)
{
	uint32_t i;

	assert_int_equal(race.nwrong, 0);
	for (i = 0; i < WRITERS; i++) {
		const struct out_ring *ring = race.writers[i].ring;
		struct weir_source_info info;

		assert_int_equal(weir_stream__source(stream, i, &info), 0);
		assert_int_equal(weir_account__difference(&info.account), 0);
		assert_int_equal(race.delivered[i], ring->published);
		assert_int_equal(ring->published + ring->refused, RECORDS);
		assert_int_equal(race.lost[i], ring->told_by_record);
		assert_int_equal(info.account.late + info.account.ahead, 0);
	}
}

static void run(size_t size)
{
	struct perf_layout layout;
	struct weir_stream *stream;
	uint32_t i;

	assert_int_equal(perf_layout__init(&layout, OUT_SAMPLE_TYPE, true, 0), 0);
	stream = open_stream(&layout, size);
	read_all(stream);
	check_all(stream);
	weir_stream__free(stream);
	for (i = 0; i < WRITERS; i++) {
		out_ring__free(race.writers[i].ring);
		sim_grace__destroy(&race.writers[i].grace);
		sim__destroy(&race.writers[i].sim);
	}
}

/* O21: each once, in order, none late. */
static void o21_writers_that_stamp_first(void **state)
{
	run(4 << 20);
}

/* L3: rings that overflow all the time: what LOST says is what is missing. */
static void l3_small_rings(void **state)
{
	run(4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(o21_writers_that_stamp_first),
		cmocka_unit_test(l3_small_rings),
	};
	int r = cmocka_run_group_tests_name("model: threads that stamp first", tests, NULL, NULL);

	return r ? 1 : 0;
}
