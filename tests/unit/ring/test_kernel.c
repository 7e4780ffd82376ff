/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The readers of perf rings on rings of this kernel: that the simulator of the other tests does as the
 * kernel does. Each getpid() of one thread is a record; F5, F6, V2, V4, V7, V10.
 */
#include "unit.h"

#include "ring/perf_backward.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SAMPLE_TYPE                                                                      \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | \
	 PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW)
#define SIZE  16384u
#define GUARD 4 /* of the longest records: the one that is being written is in no head yet */

static uint8_t scratch[65536] __attribute__((aligned(8)));
static uint8_t copy[SIZE] __attribute__((aligned(8)));
static uint32_t index_[SIZE / 8];

struct live {
	int fd;
	pid_t tid;
	struct perf_event_mmap_page *page;
	uint8_t *ring;
	struct perf_layout layout;
	uint64_t prev;
	uint32_t record; /* how long each is */
};

static int tracepoint_id(void)
{
	FILE *file = fopen("/sys/kernel/tracing/events/syscalls/sys_enter_getpid/id", "r");
	int id = -1;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%d", &id), 1);
	fclose(file);
	return id;
}

static void open_ring(struct live *live, pid_t tid, bool backward)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = (uint64_t)tracepoint_id(),
		.sample_period = 1,
		.sample_type = SAMPLE_TYPE,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.write_backward = backward,
		.watermark = 1,
		.wakeup_watermark = SIZE / 2,
	};

	memset(live, 0, sizeof(*live));
	live->tid = tid;
	live->fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	assert_true(live->fd >= 0);
	live->page = mmap(NULL, page + SIZE, backward ? PROT_READ : PROT_READ | PROT_WRITE,
			  MAP_SHARED, live->fd, 0);
	assert_ptr_not_equal(live->page, MAP_FAILED);
	live->ring = (uint8_t *)live->page + page;
	assert_int_equal(perf_layout__init(&live->layout, SAMPLE_TYPE, true, 0), 0);
}

static void close_ring(struct live *live)
{
	munmap(live->page, (size_t)sysconf(_SC_PAGESIZE) + SIZE);
	close(live->fd);
}

static void calls(unsigned count)
{
	while (count--)
		syscall(SYS_getpid);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Pairs with the barrier before the kernel's store of data_head. */
static uint64_t load_head(const struct live *live)
{
	return __atomic_load_n(&live->page->data_head, __ATOMIC_ACQUIRE);
}

/* One record as it has to be; returns what it says was lost. */
static uint64_t check(struct live *live, const uint8_t *ring, const struct perf_record *record,
		      uint64_t *last_ns)
{
	struct weir_perf_sample s;
	struct perf_loss loss;
	const void *body;
	uint32_t len = 0;

	body = perf_forward__body(ring, SIZE - 1, record->pos, &len, scratch);
	assert_non_null(body);
	assert_true(record->has_stamp && record->stamp_ns >= *last_ns);
	*last_ns = record->stamp_ns;
	if (perf_record__lost(&live->layout, body, len, &loss) == 1)
		return loss.lost;
	assert_int_equal(perf_record__parse(&live->layout, body, len, &s), 0);
	assert_true(s.time_ns == record->stamp_ns);
	assert_int_equal(s.tid, live->tid);
	assert_int_equal(s.period, 1);
	assert_int_equal(((const uint16_t *)s.raw)[0], tracepoint_id());
	live->record = record->size;
	return 0;
}

/* F5, F6: what was made is there or lost, and LOST stands before the sample that it came with. */
static void test_forward(void **state)
{
	uint64_t begin_ns = now_ns(), last_ns = begin_ns, lost = 0, samples = 0;
	struct perf_record record = {0};
	struct perf_forward r;
	struct live live;

	open_ring(&live, gettid(), false);
	r = (struct perf_forward){.base = live.ring, .mask = SIZE - 1};
	for (unsigned round = 0; round < 20; round++) {
		uint64_t head, before = samples;
		enum perf_next next;

		calls(round ? 300 : 1000);
		head = load_head(&live);
		while ((next = perf_forward__next(&r, &live.layout, head, &record)) !=
		       PERF_NEXT_END) {
			assert_int_equal(next, PERF_NEXT_RECORD);
			if (record.type == PERF_RECORD_LOST)
				assert_true(samples == before); /* the first to find room */
			samples += record.type == PERF_RECORD_SAMPLE;
			lost += check(&live, live.ring, &record, &last_ns);
		}
		assert_true(r.pos == head);
		__atomic_store_n(&live.page->data_tail, r.pos, __ATOMIC_RELEASE);
	}
	assert_true(last_ns <= now_ns());
	/* The last round lost some, of which nothing is written yet. */
	assert_true(lost > 0);
	calls(1);
	while (perf_forward__next(&r, &live.layout, load_head(&live), &record) ==
	       PERF_NEXT_RECORD) {
		samples += record.type == PERF_RECORD_SAMPLE;
		lost += check(&live, live.ring, &record, &last_ns);
	}
	assert_int_equal(samples + lost, 1000 + 19 * 300 + 1);
	close_ring(&live);
}

/* A snapshot; returns how many samples are in it. Nothing in it may be broken. */
static unsigned snapshot(struct live *live, uint32_t guard, uint64_t *last_ns, uint64_t *lost,
			 struct perf_backward *b)
{
	struct perf_snapshot s = {
		.bytes = copy, .size = SIZE, .prev = live->prev, .head = load_head(live)};
	struct perf_record record = {0};
	unsigned samples = 0;

	live->prev = s.head;
	memcpy(copy, live->ring, SIZE);
	/* No load of the copy may come after that of the head: an acquire load alone lets it. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	s.limit = load_head(live) - guard;
	perf_backward__init(b, &live->layout, &s, index_);
	assert_int_equal(b->broken, 0);
	assert_int_equal(b->oversized, 0);
	assert_true(b->torn <= 1);
	while (perf_backward__next(b, &live->layout, &record) == PERF_NEXT_RECORD) {
		samples += record.type == PERF_RECORD_SAMPLE;
		*lost += check(live, copy, &record, last_ns);
	}
	return samples;
}

/* V2, V4, V7 */
static void test_backward(void **state)
{
	uint64_t last_ns = 0, lost = 0;
	struct perf_backward b;
	struct live live;
	unsigned held;

	open_ring(&live, gettid(), true);
	assert_int_equal(snapshot(&live, 0, &last_ns, &lost, &b), 0);
	calls(3);
	assert_int_equal(snapshot(&live, 0, &last_ns, &lost, &b), 3);
	assert_true(live.prev == -3ull * live.record);
	held = SIZE / live.record;
	calls(1000);
	assert_int_equal(snapshot(&live, 0, &last_ns, &lost, &b), held);
	assert_int_equal(b.hole, 1000 * live.record - SIZE);
	assert_int_equal(b.skipped, SIZE % live.record);
	calls(5);
	assert_int_equal(snapshot(&live, 0, &last_ns, &lost, &b), 5);
	assert_int_equal(b.hole, 0);
	assert_int_equal(lost, 0);
	assert_int_equal(ioctl(live.fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 1), 0);
	calls(7);
	assert_int_equal(ioctl(live.fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 0), 0);
	calls(2);
	assert_int_equal(snapshot(&live, 0, &last_ns, &lost, &b), 2);
	assert_int_equal(lost, 7);
	/* The first of three, though it stands between the two in memory. */
	assert_int_equal(b.count, 3);
	assert_int_equal(index_[0] * 8, live.record);
	close_ring(&live);
}

struct writer {
	pthread_t thread;
	pid_t tid;
	bool stop;
};

static void *write_on(void *arg)
{
	struct writer *writer = arg;

	__atomic_store_n(&writer->tid, gettid(), __ATOMIC_RELEASE);
	while (!__atomic_load_n(&writer->stop, __ATOMIC_RELAXED))
		calls(100);
	return NULL;
}

/* V10: two thousand snapshots under a writer that does not pause. */
static void test_backward_under_a_writer(void **state)
{
	struct writer writer = {0};
	uint64_t last_ns = 0, lost = 0, samples = 0;
	struct perf_backward b;
	struct live live;

	assert_int_equal(pthread_create(&writer.thread, NULL, write_on, &writer), 0);
	while (!__atomic_load_n(&writer.tid, __ATOMIC_ACQUIRE))
		sched_yield();
	open_ring(&live, writer.tid, true);
	for (unsigned i = 0; i < 2000 || samples < 1000; i++)
		samples += snapshot(&live, GUARD * 128, &last_ns, &lost, &b);
	__atomic_store_n(&writer.stop, true, __ATOMIC_RELAXED);
	pthread_join(writer.thread, NULL);
	assert_true(live.record <= 128);
	assert_int_equal(lost, 0);
	close_ring(&live);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forward),
		cmocka_unit_test(test_backward),
		cmocka_unit_test(test_backward_under_a_writer),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	return r ? 1 : 0;
}
