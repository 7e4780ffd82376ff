// SPDX-License-Identifier: BSD-2-Clause
/*
 * libweir reads what a program sends that stamps first, and is never late: with a thread of ours
 * that waits for grace periods, and without one. fence_control.c has the rules that are late
 * here.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include <weir/weir.h>
#include <weir/perf.h>

#include "fence_load.h"

#define LOAD_SECONDS 3 /* unless the first argument says another number */
#define RING_BYTES   (16u << 20)
#define PAUSE_US     200
#define POLL_MS	     100

static unsigned int load_seconds = LOAD_SECONDS;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

struct seen {
	uint64_t records, lost, steps_back;
	uint64_t last_ns;
	uint64_t watermark_ns, watermarks, behind_watermark, watermarks_back;
};

static int on_event(void *ctx, const struct weir_event *event)
{
	struct seen *seen = ctx;

	/* G1, G2 */
	seen->behind_watermark += event->stamp_ns <= seen->watermark_ns;
	seen->steps_back += event->stamp_ns < seen->last_ns;
	seen->last_ns = event->stamp_ns;
	if (event->kind == WEIR_KIND_GAP)
		seen->lost += ((const struct weir_gap *)event->data)->lost;
	if (event->kind != WEIR_KIND_RECORD)
		return 0;
	seen->records++;
	assert_int_equal(event->len, sizeof(struct control_sample));
	assert_int_equal(((const struct control_sample *)event->data)->stamp_ns, event->stamp_ns);
	return 0;
}

static void on_watermark(void *ctx, uint64_t watermark_ns, enum weir_order order)
{
	struct seen *seen = ctx;

	assert_int_equal(order, WEIR_ORDER_EXACT);
	seen->watermarks_back += watermark_ns <= seen->watermark_ns;
	seen->watermark_ns = watermark_ns;
	seen->watermarks++;
}

static struct weir_stream *open_stream(struct seen *seen, struct fence_control *control)
{
	const struct weir_stream_opts opts = {
		.sz = sizeof(opts),
		.on_event = on_event,
		.on_watermark = on_watermark,
		.ctx = seen,
		.memory_bytes = 256u << 20,
	};
	char err[512] = "";
	const struct weir_perf_array_opts array = {
		.sz = sizeof(array),
		.map_fd = bpf_map__fd(control->maps.control_events),
		.name = "calls",
		.fence = WEIR_FENCE_RCU,
		.ring_bytes = RING_BYTES,
		.payload_len = sizeof(struct control_sample),
		.stamp_offset = offsetof(struct control_sample, stamp_ns),
		.clock = WEIR_CLOCK_MONOTONIC,
		.err = err,
		.err_len = sizeof(err),
	};
	struct weir_stream *stream = weir_stream__new(&opts);

	assert_non_null(stream);
	assert_null(weir_stream__fence(stream));
	if (weir_stream__add_perf_array(stream, &array))
		fail_msg("%s", err);
	assert_non_null(weir_stream__fence(stream));
	return stream;
}

static void *serve(void *fence)
{
	return (void *)(intptr_t)weir_fence__run(fence);
}

/* What the program could not send is what the stream says is lost, and nothing else is missing. */
static void check(const struct weir_stream *stream, const struct seen *seen,
		  const struct fence_control *control)
{
	struct weir_ledger ledger = {.sz = sizeof(ledger)};

	assert_int_equal(weir_stream__ledger(stream, &ledger), 0);
	print_message(
		"%llu records, %llu lost, %llu watermarks; %s: %llu tickets, p50 %.3f ms, p99 "
		"%.3f ms, at most %.3f ms\n",
		(unsigned long long)seen->records, (unsigned long long)seen->lost,
		(unsigned long long)seen->watermarks, ledger.fence.door,
		(unsigned long long)ledger.fence.tickets, (double)ledger.fence.p50_ns / 1e6,
		(double)ledger.fence.p99_ns / 1e6, (double)ledger.fence.max_ns / 1e6);
	assert_int_equal(seen->steps_back, 0);
	assert_int_equal(seen->behind_watermark, 0);
	assert_int_equal(seen->watermarks_back, 0);
	assert_int_equal(ledger.total.late, 0);
	assert_int_equal(ledger.total.ahead, 0);
	assert_int_equal(ledger.total.pending, 0);
	assert_int_equal(ledger.order, WEIR_ORDER_EXACT);
	assert_int_equal(weir_account__difference(&ledger.total), 0);
	assert_int_equal(seen->records, ledger.total.delivered);
	assert_true(seen->lost >= control->bss->control_failed);
	fence_load__skipped(control, seen->records + seen->lost);
	assert_true(seen->watermarks > 0);
	assert_true(ledger.fence.tickets > 0);
}

static void read_load(bool with_a_thread)
{
	struct fence_control *control = fence_load__open(PAUSE_US);
	struct seen seen = {0};
	struct weir_stream *stream = open_stream(&seen, control);
	uint64_t end_ns;
	pthread_t thread;
	void *result = NULL;

	if (with_a_thread)
		assert_int_equal(pthread_create(&thread, NULL, serve, weir_stream__fence(stream)),
				 0);
	fence_load__go();
	end_ns = now_ns() + load_seconds * 1000000000ull;
	while (now_ns() < end_ns)
		assert_true(weir_stream__poll(stream, POLL_MS) >= 0);
	fence_load__end();
	fence_control__detach(control);
	if (with_a_thread) {
		weir_fence__stop(weir_stream__fence(stream));
		assert_int_equal(pthread_join(thread, &result), 0);
		assert_null(result);
	}
	assert_int_equal(weir_stream__close(stream), 0);
	check(stream, &seen, control);
	weir_stream__free(stream);
	fence_load__close(control);
}

static void a_thread_waits(void **state)
{
	read_load(true);
}

static void poll_waits(void **state)
{
	read_load(false);
}

static unsigned int expedited(void)
{
	FILE *file = fopen("/sys/kernel/rcu_expedited", "re");
	unsigned int value = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%u", &value), 1);
	fclose(file);
	return value;
}

static void expedited_as_long_as_the_stream(void **state)
{
	struct fence_control *control = fence_load__open(PAUSE_US);
	struct seen seen = {0};
	struct weir_stream_opts opts = {.sz = sizeof(opts), .on_event = on_event, .ctx = &seen};
	struct weir_stream *none = weir_stream__new(&opts), *stream;

	assert_non_null(none);
	assert_int_equal(weir_stream__expedite(none), -ENOENT);
	weir_stream__free(none);
	stream = open_stream(&seen, control);
	assert_int_equal(weir_stream__expedite(stream), 0);
	assert_int_equal(expedited(), WEIR_EXPEDITED);
	assert_true(weir_stream__poll(stream, 0) >= 0);
	weir_stream__free(stream);
	assert_int_equal(expedited(), 0);
	fence_load__close(control);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_waits),
		cmocka_unit_test(poll_waits),
		cmocka_unit_test(expedited_as_long_as_the_stream),
	};
	int r;

	if (argc > 1)
		load_seconds = (unsigned int)atoi(argv[1]);
	r = cmocka_run_group_tests_name("fence_stream", tests, NULL, NULL);

	return r ? 1 : 0;
}
