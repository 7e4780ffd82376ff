// SPDX-License-Identifier: BSD-2-Clause
/*
 * Memory ends at the n-th request, for every n, while sources of the kernel's are added or looked at: a
 * clean error with nothing added, nothing leaked, and the stream can be used.
 *
 * The linker hands each request of ours to the functions below (meson.build: --wrap).
 */
#include "calls.h"

#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "others.skel.h"

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void __real_free(void *old);
char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void __wrap_free(void *old);

static uint64_t requests, fail_at; /* counted from 1; 0: none fails */
static long blocks;

static bool fails(void)
{
	if (++requests != fail_at)
		return false;
	errno = ENOMEM;
	return true;
}

static void *counted(void *got)
{
	blocks += got != NULL;
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
	blocks -= old != NULL;
	return counted(__real_realloc(old, bytes));
}

void __wrap_free(void *old)
{
	blocks -= old != NULL;
	__real_free(old);
}

char *__wrap_strdup(const char *text)
{
	return fails() ? NULL : counted(__real_strdup(text));
}

static unsigned count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static int do_perf(struct weir_stream *stream, struct others *others)
{
	struct weir_perf_opts opts = {.sz = sizeof(opts),
				      .name = "tp",
				      .events = &calls,
				      .nr_events = 1,
				      .ring_bytes = 4096};

	return weir_stream__add_perf(stream, &opts);
}

static int do_overwritable(struct weir_stream *stream, struct others *others)
{
	struct weir_perf_opts opts = {.sz = sizeof(opts),
				      .name = "tp",
				      .events = &calls,
				      .nr_events = 1,
				      .ring_bytes = 4096,
				      .overwrite = true};

	return weir_stream__add_perf(stream, &opts);
}

static int do_array(struct weir_stream *stream, struct others *others)
{
	struct weir_perf_array_opts opts = {.sz = sizeof(opts),
					    .map_fd = bpf_map__fd(others->maps.others_events),
					    .name = "array",
					    .ring_bytes = 4096,
					    .stamp_offset = -1};

	return weir_stream__add_perf_array(stream, &opts);
}

static int do_ringbuf(struct weir_stream *stream, struct others *others)
{
	struct weir_ringbuf_opts opts = {.sz = sizeof(opts),
					 .map_fd = bpf_map__fd(others->maps.others_ring),
					 .name = "ring",
					 .stamp_offset = 4,
					 .lost_fd = bpf_map__fd(others->maps.others_lost)};

	return weir_stream__add_ringbuf(stream, &opts);
}

typedef int (*add_fn)(struct weir_stream *stream, struct others *others);

/* true: there was memory enough, and it was added. */
static bool add_without(add_fn add, struct others *others, uint64_t n)
{
	struct weir_ledger ledger = {.sz = sizeof(ledger)};
	struct seen seen;
	struct weir_stream *stream = new_stream(&seen);
	int err;

	requests = 0;
	fail_at = n;
	err = add(stream, others);
	fail_at = 0;
	if (err && err != -ENOMEM)
		fail_msg("request %llu: %s", (unsigned long long)n, strerror(-err));
	assert_int_equal(weir_stream__ledger(stream, &ledger), 0);
	assert_true(err ? !ledger.sources : ledger.sources);
	/* What has failed can be done again, which it can't while slots or events are left behind. */
	if (err)
		assert_int_equal(add(stream, others), 0);
	assert_true(weir_stream__poll(stream, 0) >= 0);
	close_stream(&seen);
	return !err;
}

static void each_without(add_fn add)
{
	struct others *others = others__open_and_load();
	unsigned descriptors = count_descriptors();
	long before = blocks;
	uint64_t n = 1;

	assert_non_null(others);
	while (!add_without(add, others, n))
		n++;
	assert_true(n > 5);
	assert_int_equal(blocks, before);
	assert_int_equal(count_descriptors(), descriptors);
	others__destroy(others);
}

static void perf_events(void **state)
{
	each_without(do_perf);
}

static void overwritable_events(void **state)
{
	each_without(do_overwritable);
}

static void perf_event_array(void **state)
{
	each_without(do_array);
}

static void ring_buffer(void **state)
{
	each_without(do_ringbuf);
}

/* What can't be looked at now is there for the next look. */
static void snapshots(void **state)
{
	bool done = false;

	for (uint64_t n = 1; !done; n++) {
		struct seen seen;
		struct weir_stream *stream = new_stream(&seen);
		int count;

		seen.check_calls = true;
		add_calls(stream, 65536, true);
		for (uint64_t i = 0; i < 10; i++)
			call(0, i);
		usleep(1000);
		requests = 0;
		fail_at = n;
		count = weir_stream__snapshot(stream, WEIR_SNAPSHOT_RUNNING, NULL);
		fail_at = 0;
		done = count >= 0;
		assert_true(done || count == -ENOMEM);
		assert_true(weir_stream__snapshot(stream, WEIR_SNAPSHOT_RUNNING, NULL) >= 0);
		assert_int_equal(seen.records, 10);
		close_stream(&seen);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(perf_events), CASE(overwritable_events), CASE(perf_event_array),
		CASE(ring_buffer), CASE(snapshots),
	};
	int r = cmocka_run_group_tests_name("perf_nomem", tests, set_up, NULL);

	return r ? 1 : 0;
}
