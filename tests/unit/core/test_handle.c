/* SPDX-License-Identifier: BSD-2-Clause */
/* stream/: the public handle under bad arguments, failing callbacks and hostile positions. */
#include "unit.h"

#include "ring_memory.h"
#include "stream/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define SIZE 4096u

/* A stream over two rings, on a clock that goes on by 1 ns at each reading. */
static struct {
	struct weir_stream *s;
	struct ring_memory rings[2];
	uint64_t now_ns;
	uint64_t seqs[100]; /* of the records, as they came */
	size_t records, gaps, retired;
	size_t fail_at; /* let the callback fail at this record, counted from 1 */
	struct weir_gap gap;
} t;

static uint64_t now(void *ctx)
{
	return t.now_ns++;
}

static int on_event(void *ctx, const struct weir_event *event)
{
	if (event->kind == WEIR_KIND_GAP) {
		struct weir_gap gap;

		memcpy(&gap, event->data, sizeof(gap));
		assert_true(gap.from_ns < gap.to_ns);
		/* One after the other: no time is told twice. */
		if (gap.cause == WEIR_LOST_OFFLINE)
			assert_true(gap.from_ns >= t.gap.to_ns);
		t.gap = gap;
		t.gaps++;
		return 0;
	}
	assert_true(t.records < ARRAY_SIZE(t.seqs));
	t.seqs[t.records++] = event->seq;
	return t.records == t.fail_at ? -ECANCELED : 0;
}

static struct weir_memory_ring describe(struct ring_memory *ring, int cpu)
{
	return (struct weir_memory_ring){
		.name = "cpu",
		.cpu = cpu,
		.data = ring->data,
		.size = ring->size,
		.producer = &ring->producer,
		.consumer = &ring->consumer,
		.counters = &ring->counters,
	};
}

static int make(void **state)
{
	const struct weir_stream_opts opts = {.sz = sizeof(opts), .on_event = on_event};
	const struct weir_clock clock = {.now_ns = now};

	memset(&t, 0, sizeof(t));
	t.now_ns = 1000000;
	t.s = weir_stream__new(&opts);
	if (!t.s)
		return -1;
	weir_stream__set_clock(t.s, &clock);
	for (int i = 0; i < 2; i++) {
		struct weir_memory_ring ring;

		ring_memory__init(&t.rings[i], SIZE, 2 * SIZE);
		ring = describe(&t.rings[i], i);
		if (weir_stream__add_memory_ring(t.s, &ring) != i)
			return -1;
	}
	return 0;
}

static int end(void **state)
{
	weir_stream__free(t.s);
	for (int i = 0; i < 2; i++)
		ring_memory__free(&t.rings[i]);
	return 0;
}

static struct weir_account account(uint32_t source)
{
	struct weir_source_info info;

	assert_int_equal(weir_stream__source(t.s, source, &info), 0);
	assert_int_equal(weir_account__difference(&info.account), 0);
	return info.account;
}

static int open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static void test_options(void **state)
{
	struct weir_stream_opts opts = {.sz = sizeof(opts), .on_event = on_event};
	int before = open_descriptors();
	struct weir_stream *s;

	errno = 0;
	assert_null(weir_stream__new(NULL));
	assert_int_equal(errno, EINVAL);
	opts.sz = sizeof(opts) - 1;
	assert_null(weir_stream__new(&opts));
	opts.sz = sizeof(opts);
	opts.on_event = NULL;
	errno = 0;
	assert_null(weir_stream__new(&opts));
	assert_int_equal(errno, EINVAL);
	opts.on_event = on_event;
	/* A caller with a newer header has a longer struct. */
	opts.sz = sizeof(opts) + 64;
	s = weir_stream__new(&opts);
	assert_non_null(s);
	weir_stream__free(s);
	weir_stream__free(NULL);
	assert_int_equal(open_descriptors(), before);
}

/* O6: nothing in, nothing out, and it ends. */
static void test_no_rings(void **state)
{
	const struct weir_stream_opts opts = {.sz = sizeof(opts), .on_event = on_event};
	struct weir_stream *s = weir_stream__new(&opts);
	struct weir_ledger ledger = {.sz = sizeof(ledger)};

	assert_non_null(s);
	assert_int_equal(weir_stream__poll(s, 0), 0);
	assert_true(weir_stream__watermark(s) > 0);
	assert_int_equal(weir_stream__flush(s, 0), 0);
	assert_int_equal(weir_stream__close(s), 0);
	assert_int_equal(weir_stream__ledger(s, &ledger), 0);
	assert_int_equal(ledger.total.produced, 0);
	weir_stream__free(s);
}

static void test_ledger_of_an_older_caller(void **state)
{
	struct {
		struct weir_ledger ledger;
		uint8_t behind[32];
	} out, untouched;
	size_t least = offsetof(struct weir_ledger, lag);

	memset(&out, 0xa5, sizeof(out));
	untouched = out;
	out.ledger.sz = least - 1;
	assert_int_equal(weir_stream__ledger(t.s, &out.ledger), -EINVAL);
	out.ledger.sz = 0;
	assert_int_equal(weir_stream__ledger(t.s, &out.ledger), -EINVAL);
	out.ledger.sz = least;
	assert_int_equal(weir_stream__ledger(t.s, &out.ledger), 0);
	assert_int_equal(out.ledger.sz, least);
	assert_memory_equal((char *)&out + least, (char *)&untouched + least, sizeof(out) - least);
	/* And a newer one finds zeros where we know nothing. */
	out.ledger.sz = sizeof(out);
	assert_int_equal(weir_stream__ledger(t.s, &out.ledger), 0);
	assert_memory_equal(out.behind, untouched.behind, sizeof(out.behind));
}

static void test_sources_that_are_not_there(void **state)
{
	struct weir_source_info info;

	assert_int_equal(weir_stream__source(t.s, 2, &info), -ENOENT);
	assert_int_equal(weir_stream__source(t.s, UINT32_MAX, &info), -ENOENT);
	weir_stream__count_filtered(t.s, 2, 1);
	weir_stream__count_filtered(t.s, UINT32_MAX, 1);
	weir_stream__count_lost(t.s, 2, 1, WEIR_LOST_BROKEN);
	weir_stream__count_lost(t.s, 0, 1, WEIR_LOST_CAUSES);
	weir_stream__count_lost(t.s, 0, 1, (enum weir_cause) - 1);
	assert_int_equal(account(0).delivered, 0);
}

static void test_bad_memory_rings(void **state)
{
	const size_t sizes[] = {0, 1, 16, 24, 4095, 4097, 3 * 4096};
	struct weir_memory_ring ring = describe(&t.rings[0], 5);

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		ring.size = sizes[i];
		assert_int_equal(weir_stream__add_memory_ring(t.s, &ring), -EINVAL);
	}
	ring.size = SIZE;
	/* A tail where no record can begin: what a file says may be anything. */
	for (t.rings[0].consumer = 1; t.rings[0].consumer < 8; t.rings[0].consumer++)
		assert_int_equal(weir_stream__add_memory_ring(t.s, &ring), -EINVAL);
	assert_int_equal(weir_stream__add_memory_ring(t.s, &ring), 2);
}

/* An add that fails leaves nothing: no descriptor, no source, and a stream that goes on. */
static void test_bad_rings(void **state)
{
	const struct weir_ring_class good = {"cpu", 65536},
				     bad[] = {
					     {"cpu", 0},     {"cpu", 100},
					     {"cpu", 65537}, {"cpu", 1ull << 33},
					     {NULL, 65536},  {"sixteen-letters!", 65536},
				     };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), before = open_descriptors();
	const struct weir_rings_opts base = {
		.sz = sizeof(base),
		.rings_fd = null,
		.counters_fd = null,
		.nr_cpus = 4,
		.classes = &good,
		.nr_classes = 1,
	};
	struct weir_rings_opts opts[6 + ARRAY_SIZE(bad)];
	struct weir_ledger ledger = {.sz = sizeof(ledger)};

	for (size_t i = 0; i < ARRAY_SIZE(opts); i++)
		opts[i] = base;
	opts[0].sz--;
	opts[1].nr_cpus = 0;
	opts[2].nr_cpus = CPUS_MAX + 1;
	opts[3].nr_classes = 0;
	opts[4].nr_classes = 17;
	opts[5].classes = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		opts[6 + i].classes = &bad[i];
	for (size_t i = 0; i < ARRAY_SIZE(opts); i++)
		assert_int_equal(weir_stream__add_rings(t.s, &opts[i]), -EINVAL);
	assert_int_equal(weir_stream__add_rings(t.s, NULL), -EINVAL);
	/* What is no map is found out by asking the kernel. */
	for (int again = 0; again < 3; again++) {
		assert_true(weir_stream__add_rings(t.s, &base) < 0);
		assert_true(weir_stream__watch_prog(t.s, null, "no program") < 0);
	}
	assert_int_equal(open_descriptors(), before);
	assert_int_equal(weir_stream__ledger(t.s, &ledger), 0);
	assert_int_equal(ledger.sources, 2);
	ring_memory__emit(&t.rings[0], 0, t.now_ns);
	t.now_ns += 5000;
	assert_int_equal(weir_stream__poll(t.s, 0), 1);
	close(null);
}

/*
 * A head that is no position: not a multiple of 8, behind, further ahead than the ring is long.
 * Nothing is read, the watermark moves on (G3), and when the head is one again all goes on.
 */
static void test_hostile_heads(void **state)
{
	struct ring_memory *ring = &t.rings[0];
	const uint64_t offsets[] = {
		1,	    4,	      7,	SIZE - 1,    SIZE + 8,	     1ull << 32,
		1ull << 63, 0ull - 8, 0ull - 1, 0ull - SIZE, 0ull - 2 * SIZE};

	for (size_t i = 0; i < ARRAY_SIZE(offsets); i++) {
		uint64_t good = ring->producer, watermark_ns = weir_stream__watermark(t.s);

		ring->producer = good + offsets[i];
		t.now_ns += 5000;
		assert_int_equal(weir_stream__poll(t.s, 0), 0);
		assert_true(weir_stream__watermark(t.s) > watermark_ns);
		assert_true(ring->consumer == good);
		ring->producer = good;
		ring_memory__emit(ring, 5, t.now_ns);
		t.now_ns += 5000;
		assert_int_equal(weir_stream__poll(t.s, 0), 1);
		assert_true(t.seqs[i] == i);
		assert_true(ring->consumer == ring->producer);
	}
	assert_int_equal(account(0).delivered, ARRAY_SIZE(offsets));
}

/* Counters that no kernel counted: nothing crashes, nothing is delivered twice, the sum closes. */
static void test_hostile_counters(void **state)
{
	const uint64_t attempts[] = {
		1ull << 40, 1ull << 62, (1ull << 63) - 1, 1ull << 63, UINT64_MAX - 1, UINT64_MAX,
		0,	    3};
	struct ring_memory *ring = &t.rings[0];

	for (size_t i = 0; i < ARRAY_SIZE(attempts); i++) {
		uint64_t seq = ring->counters.attempts;

		for (int n = 0; n < 3; n++)
			ring_memory__emit(ring, 0, t.now_ns);
		ring->counters.attempts = attempts[i];
		t.now_ns += 5000;
		assert_true(weir_stream__poll(t.s, 0) >= 0);
		account(0);
		ring->counters.attempts = seq + 3;
		t.now_ns += 5000;
		assert_true(weir_stream__poll(t.s, 0) >= 0);
		account(0);
	}
	assert_true(t.records <= 3 * ARRAY_SIZE(attempts));
	assert_true(t.records >= 3);
}

/* The callback's error ends the poll behind its event; the next poll goes on with the next one. */
static void test_callback_fails(void **state)
{
	for (int i = 0; i < 10; i++)
		ring_memory__emit(&t.rings[i % 2], 0, t.now_ns + (uint64_t)i);
	t.now_ns += 5000;
	for (t.fail_at = 3; t.fail_at < 10; t.fail_at += 3) {
		assert_int_equal(weir_stream__poll(t.s, 0), -ECANCELED);
		assert_int_equal(t.records, t.fail_at);
		assert_int_equal(account(0).delivered + account(1).delivered, t.records);
		/* What has not been delivered is not announced (G2), and each lag counts once. */
		assert_int_equal(weir_stream__watermark(t.s), 0);
		assert_int_equal(t.s->lag.count, t.records);
	}
	assert_int_equal(weir_stream__poll(t.s, 0), 1);
	for (size_t i = 0; i < 10; i++)
		assert_true(t.seqs[i] == i / 2);
	assert_int_equal(t.s->lag.count, 10);
	assert_true(weir_stream__watermark(t.s) > 0);
}

/* What a consumer turns away, or could not use, moves to another column: the sum stays (G4). */
static void test_given_up_later(void **state)
{
	struct weir_account a;

	for (int i = 0; i < 10; i++)
		ring_memory__emit(&t.rings[0], 0, t.now_ns);
	t.now_ns += 5000;
	assert_int_equal(weir_stream__poll(t.s, 0), 10);
	weir_stream__count_filtered(t.s, 0, 3);
	weir_stream__count_lost(t.s, 0, 2, WEIR_LOST_OUTPUT);
	a = account(0);
	assert_int_equal(a.delivered, 5);
	assert_int_equal(a.filtered, 3);
	assert_int_equal(a.lost[WEIR_LOST_OUTPUT], 2);
}

/* O16: `busy since` is about the record that is busy now, not about one that was long ago. */
static void test_busy_since(void **state)
{
	struct ring_memory *ring = &t.rings[0];
	struct weir_source_info info;
	uint64_t busy[2], since_ns;

	for (int i = 0; i < 2; i++) {
		busy[i] = ring_memory__emit(ring, 0, t.now_ns);
		ring_memory__store32(ring, busy[i], RING_BUSY | sizeof(struct weir_record));
	}
	for (int i = 0; i < 2; i++) {
		t.now_ns += 5000;
		since_ns = t.now_ns;
		weir_stream__poll(t.s, 0);
		t.now_ns += 5000;
		weir_stream__poll(t.s, 0);
		assert_int_equal(weir_stream__source(t.s, 0, &info), 0);
		assert_in_range(info.busy_since_ns, since_ns, since_ns + 100);
		ring_memory__store32(ring, busy[i], sizeof(struct weir_record));
	}
	t.now_ns += 5000;
	assert_int_equal(weir_stream__poll(t.s, 0), 2);
	assert_int_equal(weir_stream__source(t.s, 0, &info), 0);
	assert_int_equal(info.busy_since_ns, 0);
}

/* G6 after O16: what a record held for many polls goes out by one flush once it is finished. */
static void test_flush_after_busy(void **state)
{
	struct ring_memory *ring = &t.rings[0];
	uint64_t busy = ring_memory__emit(ring, 0, t.now_ns);

	ring_memory__store32(ring, busy, RING_BUSY | sizeof(struct weir_record));
	for (int i = 0; i < 60; i++) {
		ring_memory__emit(ring, 0, t.now_ns);
		t.now_ns += 5000;
		assert_int_equal(weir_stream__poll(t.s, 0), 0);
	}
	assert_int_equal(weir_stream__flush(t.s, 0), -ETIMEDOUT);
	ring_memory__store32(ring, busy, sizeof(struct weir_record));
	assert_int_equal(weir_stream__flush(t.s, 0), 0);
	assert_int_equal(t.records, 61);
}

/* A close that the callback cut short is taken up again: nothing is told twice. */
static void test_close_again(void **state)
{
	for (int i = 0; i < 6; i++)
		ring_memory__emit(&t.rings[0], 0, t.now_ns);
	weir_stream__poll(t.s, 0);
	weir_stream__cpu_changed(t.s, 1, false);
	t.now_ns += 5000;
	t.fail_at = t.records + 2;
	assert_int_equal(weir_stream__close(t.s), -ECANCELED);
	assert_int_equal(weir_stream__close(t.s), 0);
	assert_int_equal(t.records, 6);
	assert_true(t.gaps > 0);
	assert_int_equal(t.gap.cause, WEIR_LOST_OFFLINE);
	assert_int_equal(account(0).pending, 0);
	/* The end is the end. */
	ring_memory__emit(&t.rings[0], 0, t.now_ns);
	assert_int_equal(weir_stream__poll(t.s, 0), 0);
	assert_int_equal(weir_stream__flush(t.s, 0), 0);
	assert_int_equal(weir_stream__close(t.s), 0);
	assert_int_equal(t.records, 6);
}

static void on_retire(void *arg, uint64_t stamp_ns)
{
	assert_true(weir_stream__watermark(t.s) >= stamp_ns);
	t.retired++;
}

/* W1, W5: as soon as the watermark is there, with no event at all; what is left is dropped. */
static void test_retire(void **state)
{
	uint64_t stamp_ns = t.now_ns + 10000;

	assert_int_equal(weir_stream__retire(t.s, stamp_ns, on_retire, NULL), 0);
	assert_int_equal(weir_stream__retire(t.s, UINT64_MAX, on_retire, NULL), 0);
	weir_stream__poll(t.s, 0);
	assert_int_equal(t.retired, 0);
	t.now_ns += 20000;
	weir_stream__poll(t.s, 0);
	assert_int_equal(t.retired, 1);
	/* Asked for too late: in the next poll. */
	assert_int_equal(weir_stream__retire(t.s, stamp_ns, on_retire, NULL), 0);
	assert_int_equal(t.retired, 1);
	t.now_ns += 5000;
	weir_stream__poll(t.s, 0);
	assert_int_equal(t.retired, 2);
}

static bool readable(int fd, int timeout_ms)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	return poll(&pfd, 1, timeout_ms) == 1;
}

/*
 * A caller with a loop of its own: poll(s, 0) looks after what made the descriptor readable, also
 * where that stays readable (a ring with a busy record). The timer alone may do so again, in a second.
 */
static void test_own_loop(void **state)
{
	int fd = weir_stream__epoll_fd(t.s), ring_fd = eventfd(1, EFD_CLOEXEC), quiet = 0;

	assert_true(ring_fd >= 0);
	assert_int_equal(wake__add(&t.s->wake, ring_fd), 0);
	for (int i = 0; i < 10; i++) {
		assert_true(readable(fd, 10000));
		assert_int_equal(weir_stream__poll(t.s, 0), 0);
		quiet += !readable(fd, 0);
		assert_int_equal(eventfd_write(ring_fd, 1), 0);
	}
	assert_true(quiet > 0);
	close(ring_fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_no_rings),
		cmocka_unit_test_setup_teardown(test_ledger_of_an_older_caller, make, end),
		cmocka_unit_test_setup_teardown(test_sources_that_are_not_there, make, end),
		cmocka_unit_test_setup_teardown(test_bad_memory_rings, make, end),
		cmocka_unit_test_setup_teardown(test_bad_rings, make, end),
		cmocka_unit_test_setup_teardown(test_hostile_heads, make, end),
		cmocka_unit_test_setup_teardown(test_hostile_counters, make, end),
		cmocka_unit_test_setup_teardown(test_callback_fails, make, end),
		cmocka_unit_test_setup_teardown(test_given_up_later, make, end),
		cmocka_unit_test_setup_teardown(test_busy_since, make, end),
		cmocka_unit_test_setup_teardown(test_flush_after_busy, make, end),
		cmocka_unit_test_setup_teardown(test_close_again, make, end),
		cmocka_unit_test_setup_teardown(test_retire, make, end),
		cmocka_unit_test_setup_teardown(test_own_loop, make, end),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	return r ? 1 : 0;
}
