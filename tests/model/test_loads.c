// SPDX-License-Identifier: BSD-2-Clause
/*
 * test_loads.c - the order of the reader's loads: S before P (L1, G4), and its T before both (G2).
 *
 * Wherever the reader looks, a writer is just before it. So a load too early misses what a later one
 * counts.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "model.h"
#include "trap.h"

#define PAGE 4096u

struct one {
	struct sim_buffer buffer;
	struct trap counters, producer; /* struct sim_shared in each */
	struct weir_stream *stream;
	uint64_t now_ns;
	uint64_t written, delivered, lost, late;
};

static uint64_t now_ns(void *ctx)
{
	struct one *one = ctx;

	one->now_ns += 10;
	return one->now_ns;
}

static void offsets(void *ctx, int64_t *real_ns, int64_t *boot_ns)
{
	(void)ctx;
	*real_ns = *boot_ns = 0;
}

/* In weir.bpf.h's order. Each word is written where the reader looks for it. */
static void write_one(void *ctx)
{
	struct one *one = ctx;
	struct sim_shared *counters = one->counters.writers, *producer = one->producer.writers;
	struct weir_record *record = sim_buffer__reserve(&one->buffer, sizeof(*record));

	assert_non_null(record);
	__atomic_store_n(&producer->producer, one->buffer.shared->producer, __ATOMIC_RELEASE);
	*record = (struct weir_record){
		.seq = (uint32_t)sim__count(&counters->counters.attempts),
		.stamp = one->now_ns,
	};
	sim_buffer__finish(record, false);
	one->written++;
}

static int on_event(void *ctx, const struct weir_event *event)
{
	struct one *one = ctx;

	one->delivered += event->kind == WEIR_KIND_RECORD;
	one->late += event->mark & WEIR_MARK_LATE;
	if (event->kind == WEIR_KIND_GAP)
		one->lost += ((const struct weir_gap *)event->data)->lost;
	return 0;
}

static struct one *new_one(void)
{
	struct one *one = calloc(1, sizeof(*one));
	const struct weir_stream_opts opts = {
		.sz = sizeof(opts), .on_event = on_event, .ctx = one, .guard_ns = 1};
	const struct weir_clock clock = {.now_ns = now_ns, .offsets = offsets, .ctx = one};
	struct weir_memory_ring memory = {.name = "ring", .size = PAGE};

	assert_non_null(one);
	assert_int_equal(sim_buffer__init(&one->buffer, PAGE, 0), 0);
	trap__init(&one->counters, NULL, PAGE);
	trap__init(&one->producer, NULL, PAGE);
	memory.data = one->buffer.data;
	memory.counters = &((struct sim_shared *)one->counters.readers)->counters;
	memory.producer = &((struct sim_shared *)one->producer.readers)->producer;
	memory.consumer = &one->buffer.shared->consumer;
	one->stream = weir_stream__new(&opts);
	assert_non_null(one->stream);
	weir_stream__set_clock(one->stream, &clock);
	assert_int_equal(weir_stream__add_memory_ring(one->stream, &memory), 0);
	return one;
}

static void free_one(struct one *one)
{
	weir_stream__free(one->stream);
	munmap(one->counters.writers, PAGE);
	munmap(one->producer.writers, PAGE);
	trap__destroy(&one->counters);
	trap__destroy(&one->producer);
	sim_buffer__destroy(&one->buffer);
	free(one);
}

static void l1_no_loss_where_none_is(void **state)
{
	struct one *one = new_one();
	uint64_t written = 0;

	for (int i = 0; i < 100; i++) {
		trap__set(&one->counters, write_one, one);
		trap__set(&one->producer, write_one, one);
		assert_true(weir_stream__poll(one->stream, 0) >= 0);
		/* It was looked at both, once at the least. */
		assert_int_equal(one->written - written, 2);
		written = one->written;
		assert_int_equal(one->lost, 0);
		assert_int_equal(one->late, 0);
	}
	assert_int_equal(weir_stream__close(one->stream), 0);
	assert_int_equal(one->delivered, 200);
	free_one(one);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(l1_no_loss_where_none_is),
	};
	int r = cmocka_run_group_tests_name("model: loads", tests, NULL, NULL);

	return r ? 1 : 0;
}
