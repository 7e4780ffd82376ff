// SPDX-License-Identifier: BSD-2-Clause
/*
 * source/lane with a real writer: a thread that counts, stamps and publishes as weir_lane.bpf.h does
 * while the reader looks, on the machine's own clock. ThreadSanitizer can judge it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <weir/lean.h>

#include "sanitized.h"
#include "source/clock.h"
#include "source/lane.h"

#if SANITIZED_THREAD
#define WRITES 100000u
#else
#define WRITES 1000000u
#endif
#define RECORDS 256u

struct race {
	struct weir_lane shared;
	struct weir_lean data[RECORDS];
	struct lane lane;
	bool done;
	uint64_t delivered, lost, late, watermark_ns, last_ns;
};

static uint64_t now_ns(void)
{
	return clock__kernel.now_ns(clock__kernel.ctx);
}

static void write_one(struct race *race)
{
	struct weir_lane *shared = &race->shared;
	uint64_t seq = __atomic_fetch_add(&shared->attempts, 1, __ATOMIC_SEQ_CST);
	uint64_t head = shared->head;
	struct weir_lean *lean = &race->data[head % RECORDS];

	if (head - __atomic_load_n(&shared->tail, __ATOMIC_ACQUIRE) >= RECORDS) {
		__atomic_store_n(&shared->failed, shared->failed + 1, __ATOMIC_RELEASE);
		return;
	}
	lean->stamp = now_ns();
	lean->seq = (uint32_t)seq;
	lean->next_start_ns = ~seq;
	__atomic_store_n(&shared->head, head + 1, __ATOMIC_RELEASE);
}

static void *write_all(void *ctx)
{
	struct race *race = ctx;

	for (unsigned i = 0; i < WRITES; i++) {
		write_one(race);
		if (i % 512 == 0)
			sched_yield();
	}
	__atomic_store_n(&race->done, true, __ATOMIC_RELEASE);
	return NULL;
}

static void on_records(void *ctx, int cpu, const struct weir_record *first, size_t stride,
		       size_t count)
{
	struct race *race = ctx;

	for (size_t i = 0; i < count; i++) {
		const struct weir_lean *lean =
			(const struct weir_lean *)((const char *)first + i * stride);

		assert_int_equal(lean->seq, (uint32_t)~lean->next_start_ns);
		assert_int_equal(lean->seq, race->delivered + race->lost);
		race->late += lean->stamp <= race->watermark_ns;
		race->delivered++;
	}
}

static void on_gap(void *ctx, int cpu, uint64_t from_ns, uint64_t to_ns, uint64_t lost)
{
	struct race *race = ctx;

	assert_true(from_ns <= to_ns);
	race->lost += lost;
}

static void on_watermark(void *ctx, int cpu, uint64_t watermark_ns, bool away)
{
	struct race *race = ctx;

	assert_true(watermark_ns > race->watermark_ns);
	race->watermark_ns = watermark_ns;
}

static const struct weir_lanes_reader reader = {on_records, on_gap, on_watermark};

static void look(struct race *race)
{
	uint64_t t_ns = now_ns();
	struct lane_snapshot snapshot;

	clock__fence();
	snapshot = lane__look(&race->lane);
	lane__tell(&race->lane, &snapshot, t_ns - 1, now_ns(), &reader, race);
}

static void test_race(void **state)
{
	struct race *race = calloc(1, sizeof(*race));
	pthread_t thread;

	assert_non_null(race);
	lane__init(&race->lane, 0, &race->shared, race->data, RECORDS, sizeof(race->data[0]));
	assert_int_equal(pthread_create(&thread, NULL, write_all, race), 0);
	while (!__atomic_load_n(&race->done, __ATOMIC_ACQUIRE))
		look(race);
	pthread_join(thread, NULL);
	look(race);
	assert_int_equal(race->delivered + race->lost, WRITES);
	assert_int_equal(race->lost, race->shared.failed);
	assert_true(race->delivered >= RECORDS);
	assert_int_equal(race->late, 0);
	free(race);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_race),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
