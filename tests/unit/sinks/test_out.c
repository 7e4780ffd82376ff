// SPDX-License-Identifier: BSD-2-Clause
/*
 * out.c: every event is wholly written or counted (G4), whatever the descriptor does: slow, closed,
 * full, interrupted, non-blocking, stopped.
 */
#include "capture.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>

#define SOURCES 5

static int realloc_fails;
void *__real_realloc(void *at, size_t len);
void *__wrap_realloc(void *at, size_t len);

void *__wrap_realloc(void *at, size_t len)
{
	return realloc_fails ? NULL : __real_realloc(at, len);
}

struct counts {
	uint64_t by_source[SOURCES], rest, total;
};

static void count(void *ctx, uint32_t source, uint64_t events)
{
	struct counts *counts = ctx;

	counts->total += events;
	if (source < SOURCES)
		counts->by_source[source] += events;
	else
		counts->rest += events;
}

static size_t item_max = 300;

/* Item number n: its length and its bytes are known from n. Lines, so that they can be counted. */
static size_t item_len(uint64_t n)
{
	return 2 + rng(&n) % item_max;
}

static void put_item(struct out *out, uint64_t n)
{
	size_t len = item_len(n), i;

	for (i = 0; i < len - 1; i++)
		out__char(out, (char)('a' + (n + i) % 26));
	out__char(out, '\n');
	out__end(out, true, (uint32_t)(n % SOURCES));
}

/* How many whole items stand at `text`; what is behind them is returned in *rest. */
static uint64_t whole_items(const char *text, size_t len, size_t *rest)
{
	uint64_t n = 0;
	size_t at = 0;

	for (; at + item_len(n) <= len; n++) {
		size_t one = item_len(n), i;

		for (i = 0; i < one - 1; i++)
			assert_int_equal(text[at + i], 'a' + (char)((n + i) % 26));
		assert_int_equal(text[at + one - 1], '\n');
		at += one;
	}
	*rest = len - at;
	return n;
}

/* Items [from, total) of those that put_item() made, by source. */
static void assert_counts(const struct counts *counts, uint64_t from, uint64_t total)
{
	struct counts expect = {.total = total - from};

	for (; from < total; from++)
		expect.by_source[from % SOURCES]++;
	assert_memory_equal(counts, &expect, sizeof(expect));
}

static void test_numbers(void **state)
{
	static const uint64_t edges[] = {0, 9, 10, 99, 100, 999, UINT64_MAX, INT64_MAX, 1ull << 63};
	uint64_t seed = 1, i;
	struct capture c;

	capture__open(&c);
	for (i = 0; i < 20000; i++) {
		uint64_t v = i < 9 ? edges[i] : rng(&seed) >> rng(&seed) % 64;
		char expect[100];

		out__u64(c.out, v);
		out__char(c.out, ' ');
		out__i64(c.out, (int64_t)v);
		out__char(c.out, ' ');
		out__hex(c.out, v);
		snprintf(expect, sizeof(expect), "%" PRIu64 " %" PRId64 " 0x%" PRIx64, v,
			 (int64_t)v, v);
		assert_string_equal(capture__take(&c), expect);
	}
	capture__close(&c);
}

static void test_items_pass_the_buffer(void **state)
{
	uint64_t n, total = 50000;
	struct capture c;
	size_t rest;

	capture__open(&c);
	for (n = 0; n < total; n++)
		put_item(c.out, n);
	capture__take(&c);
	assert_int_equal(whole_items(c.text, c.len, &rest), total);
	assert_int_equal(rest, 0);
	assert_int_equal(out__written_bytes(c.out), c.len);
	capture__close(&c);
}

/* More items than the list of them has room for, before the buffer is full. */
static void test_tiny_items(void **state)
{
	struct capture c;
	size_t i;

	capture__open(&c);
	for (i = 0; i < 100000; i++) {
		out__char(c.out, 'x');
		out__end(c.out, true, 0);
		out__end(c.out, false, 0); /* an empty one */
	}
	assert_int_equal(strlen(capture__take(&c)), 100000);
	capture__close(&c);
}

static void test_an_item_larger_than_the_buffer(void **state)
{
	static char large[3000000];
	struct capture c;
	size_t i;

	memset(large, 'l', sizeof(large));
	capture__open(&c);
	out__str(c.out, "first\n");
	out__end(c.out, true, 0);
	out__str(c.out, "second");
	out__bytes(c.out, large, sizeof(large));
	for (i = 0; i < 100000; i++)
		out__u64(c.out, 12345678);
	out__end(c.out, true, 1);
	out__str(c.out, "third");
	capture__take(&c);
	assert_int_equal(c.len, 6 + 6 + sizeof(large) + 800000 + 5);
	assert_memory_equal(c.text, "first\nsecondlll", 15);
	assert_memory_equal(c.text + c.len - 13, "12345678third", 13);
	capture__close(&c);
}

static void test_no_memory_for_a_large_item(void **state)
{
	static char large[1000000];
	struct counts counts = {0};
	struct capture c;
	size_t len;
	char *text;

	capture__open(&c);
	out__str(c.out, "first\n");
	out__end(c.out, true, 0);
	realloc_fails = 1;
	out__bytes(c.out, large, sizeof(large));
	realloc_fails = 0;
	out__end(c.out, true, 1);
	out__str(c.out, "third\n");
	out__end(c.out, true, 2);
	assert_int_equal(out__flush(c.out), -ENOMEM);
	text = read_fd(c.fd, &len);
	assert_string_equal(text, "first\n");
	out__unwritten(c.out, count, &counts);
	assert_int_equal(counts.total, 2);
	assert_int_equal(counts.by_source[1], 1);
	assert_int_equal(counts.by_source[2], 1);
	free(text);
	capture__close(&c);
}

/* Not even the list of counts can grow: the total is right all the same. */
static void test_no_memory_to_count_by_source(void **state)
{
	struct counts counts = {0};
	int fd = open("/dev/full", O_WRONLY);
	struct out *out = out__new(fd, 0, NULL, 0);

	realloc_fails = 1;
	out__str(out, "x");
	out__end(out, true, 3);
	assert_int_equal(out__flush(out), -ENOSPC);
	realloc_fails = 0;
	out__unwritten(out, count, &counts);
	assert_int_equal(counts.total, 1);
	assert_int_equal(counts.rest, 1);
	out__free(out);
	close(fd);
}

static void test_unwritten(void **state)
{
	struct counts counts = {0}, again = {0};
	int fd = open("/dev/full", O_WRONLY);
	struct out *out = out__new(fd, 0, NULL, 0);
	uint64_t n;

	assert_int_equal(out__error(out), 0);
	out__unwritten(out, count, &counts);
	assert_int_equal(counts.total, 0);
	for (n = 0; n < 5000; n++)
		put_item(out, n);
	out__str(out, "no event\n");
	out__end(out, false, 0);
	assert_int_equal(out__flush(out), -ENOSPC);
	assert_int_equal(out__error(out), -ENOSPC);
	out__unwritten(out, count, &counts);
	assert_counts(&counts, 0, 5000);
	assert_int_equal(out__written_bytes(out), 0);

	out__unwritten(out, count, &again);
	assert_int_equal(again.total, 0);
	/* The whole machine, and a number that no source has. */
	out__end(out, true, UINT32_MAX);
	out__end(out, true, UINT32_MAX - 1);
	out__end(out, true, 1000);
	out__unwritten(out, count, &again);
	assert_int_equal(again.total, 3);
	assert_int_equal(again.rest, 3);
	/* A line that stands for two events; the next one does not. */
	memset(&again, 0, sizeof(again));
	out__also(out, 4);
	out__end(out, true, 1);
	out__end(out, true, 1);
	out__unwritten(out, count, &again);
	assert_int_equal(again.by_source[1], 2);
	assert_int_equal(again.by_source[4], 1);
	out__free(out);
	close(fd);
}

/*
 * A disk that is full after `limit` bytes of the file: RLIMIT_FSIZE gives the same, a short write
 * and then an error.
 */
static void limit_file_size(rlim_t limit)
{
	struct rlimit now;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &now), 0);
	now.rlim_cur = limit;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &now), 0);
}

static void unlimit_file_size(void)
{
	limit_file_size(RLIM_INFINITY);
}

static int new_file(int flags)
{
	char path[] = "/tmp/weir-out-XXXXXX";
	int fd = mkstemp(path), again;

	assert_true(fd >= 0);
	again = open(path, O_RDWR | flags);
	assert_true(again >= 0);
	unlink(path);
	close(fd);
	return again;
}

/* A full disk, at any place of an item: the file ends with a whole one, and the rest is counted. */
static void test_full_disk(void **state)
{
	rlim_t limit;

	for (limit = 40000; limit < 40400; limit += 7) {
		struct counts counts = {0};
		int fd = new_file(0);
		struct out *out = out__new(fd, 0, NULL, 0);
		uint64_t n, whole;
		size_t len, rest;
		char *text;
		off_t end;

		limit_file_size(limit);
		for (n = 0; n < 1000; n++)
			put_item(out, n);
		assert_int_equal(out__flush(out), -EFBIG);
		unlimit_file_size();
		end = lseek(fd, 0, SEEK_CUR);
		text = read_fd(fd, &len);
		whole = whole_items(text, len, &rest);
		assert_int_equal(rest, 0);
		assert_true(len <= limit && len + item_len(whole) > limit);
		assert_int_equal(out__written_bytes(out), len);
		/* Who goes on at this offset leaves no hole. */
		assert_int_equal(end, len);
		out__unwritten(out, count, &counts);
		assert_counts(&counts, whole, 1000);
		out__free(out);
		free(text);
		close(fd);
	}
}

static void fill_disk(struct out *out, rlim_t limit)
{
	uint64_t n;

	limit_file_size(limit);
	for (n = 0; n < 1000; n++)
		put_item(out, n);
	assert_int_equal(out__flush(out), -EFBIG);
	unlimit_file_size();
}

/* Others append to this file, too: what stands in it is not ours to take back. */
static void test_full_disk_appending(void **state)
{
	struct counts counts = {0};
	int fd = new_file(O_APPEND);
	struct out *out = out__new(fd, 0, NULL, 0);
	size_t len, rest;
	uint64_t whole;
	char *text;

	fill_disk(out, 40001);
	text = read_fd(fd, &len);
	assert_int_equal(len, 40001);
	whole = whole_items(text, len, &rest);
	assert_true(rest > 0);
	assert_int_equal(out__written_bytes(out), 40001);
	out__unwritten(out, count, &counts);
	assert_counts(&counts, whole, 1000);
	out__free(out);
	free(text);
	close(fd);
}

/* The file goes on behind our offset: cutting would take what others wrote. */
static void test_full_disk_inside_a_file(void **state)
{
	int fd = new_file(0);
	struct out *out = out__new(fd, 0, NULL, 0);
	char byte = 0;

	assert_int_equal(pwrite(fd, "z", 1, 99999), 1);
	fill_disk(out, 40001);
	assert_int_equal(lseek(fd, 0, SEEK_END), 100000);
	assert_int_equal(pread(fd, &byte, 1, 99999), 1);
	assert_int_equal(byte, 'z');
	out__free(out);
	close(fd);
}

static void test_closed_pipe(void **state)
{
	struct counts counts = {0};
	struct out *out;
	int fds[2];
	uint64_t n;

	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe(fds), 0);
	out = out__new(fds[1], 0, NULL, 0);
	close(fds[0]);
	for (n = 0; n < 1000; n++)
		put_item(out, n);
	assert_int_equal(out__flush(out), -EPIPE);
	out__unwritten(out, count, &counts);
	assert_counts(&counts, 0, 1000);
	out__free(out);
	close(fds[1]);
}

/* A child that reads all of a pipe slowly and exits with 0 if it got `total` whole items. */
static pid_t fork_reader(int fds[2], uint64_t total)
{
	pid_t pid = fork();
	size_t len = 0, cap = 1 << 20, rest;
	char *text;
	ssize_t n;

	assert_true(pid >= 0);
	if (pid) {
		close(fds[0]);
		return pid;
	}
	signal(SIGALRM, SIG_IGN);
	close(fds[1]);
	text = malloc(cap);
	while ((n = read(fds[0], text + len, 3000)) > 0) {
		len += (size_t)n;
		if (cap - len < 3000)
			text = realloc(text, cap *= 2);
		if (len % 7 == 0)
			usleep(100);
	}
	_exit(whole_items(text, len, &rest) == total && !rest ? 0 : 1);
}

static void assert_reader_good(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		assert_int_equal(errno, EINTR);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void write_through_pipe(bool nonblocking, const volatile int *stop)
{
	uint64_t n, total = 6000000 / item_max;
	struct out *out;
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	if (nonblocking)
		assert_int_equal(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
	pid = fork_reader(fds, total);
	out = out__new(fds[1], 0, stop, 60000);
	for (n = 0; n < total; n++)
		put_item(out, n);
	assert_int_equal(out__flush(out), 0);
	out__free(out);
	close(fds[1]);
	assert_reader_good(pid);
}

static void test_slow_pipe(void **state)
{
	write_through_pipe(false, NULL);
}

static void test_nonblocking_pipe(void **state)
{
	write_through_pipe(true, NULL);
}

/* Stopped, and the reader is alive: all of it still goes out within the grace period. */
static void test_stop_with_a_reader(void **state)
{
	static const volatile int stop = 1;

	write_through_pipe(false, &stop);
	write_through_pipe(true, &stop);
	item_max = 15000; /* more than a pipe takes at once */
	write_through_pipe(false, &stop);
	item_max = 300;
}

static volatile int stop_flag;
static volatile int alarms;

static void on_alarm(int sig)
{
	alarms++;
	if (alarms >= 5)
		stop_flag = 1;
}

static void start_alarms(void)
{
	struct sigaction sa = {.sa_handler = on_alarm}; /* no SA_RESTART: EINTR */
	struct itimerval every = {{0, 2000}, {0, 2000}};

	stop_flag = alarms = 0;
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
}

static void stop_alarms(void)
{
	struct itimerval never = {0};

	setitimer(ITIMER_REAL, &never, NULL);
}

/* Signals that stop nothing lose nothing. */
static void test_interrupted(void **state)
{
	start_alarms();
	write_through_pipe(false, NULL);
	write_through_pipe(true, NULL);
	stop_alarms();
}

static size_t drain(int fd, char *text, size_t cap)
{
	size_t len = 0;
	ssize_t n;

	while ((n = read(fd, text + len, cap - len)) > 0)
		len += (size_t)n;
	return len;
}

/* Write to a pipe that nobody reads until it gives up; then look at what got into it. */
static size_t give_up(bool nonblocking, const volatile int *stop, unsigned grace_ms)
{
	static char text[1 << 20];
	struct counts counts = {0};
	uint64_t n, whole, total = 3000;
	size_t len, rest;
	struct out *out;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	if (nonblocking)
		assert_int_equal(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
	out = out__new(fds[1], 0, stop, grace_ms);
	for (n = 0; n < total; n++)
		put_item(out, n);
	assert_int_equal(out__flush(out), -ECANCELED);
	stop_alarms();
	close(fds[1]);
	len = drain(fds[0], text, sizeof(text));
	assert_int_equal(out__written_bytes(out), len);
	whole = whole_items(text, len, &rest);
	out__unwritten(out, count, &counts);
	assert_counts(&counts, whole, total);
	out__free(out);
	close(fds[0]);
	return rest;
}

/* L5: a reader that stopped reading, and Ctrl-C: the write that hangs is given up, no line torn. */
static void test_stop_while_blocked(void **state)
{
	start_alarms();
	assert_int_equal(give_up(false, &stop_flag, 20), 0);
	start_alarms();
	assert_int_equal(give_up(true, &stop_flag, 20), 0);
}

/* Stopped before anything is written: no signal comes any more. */
static void test_stop_before(void **state)
{
	static const volatile int stop = 1;

	assert_int_equal(give_up(false, &stop, 20), 0);
	assert_int_equal(give_up(true, &stop, 20), 0);
	assert_int_equal(give_up(false, &stop, 0), 0);
}

struct reader {
	int fd;
	size_t got;
};

/* Takes a page each 16 ms, until there is no more. */
static void *read_slowly(void *arg)
{
	struct reader *reader = arg;
	char page[4096];
	ssize_t n;

	while ((n = read(reader->fd, page, sizeof(page))) > 0) {
		reader->got += (size_t)n;
		usleep(16000);
	}
	return NULL;
}

/* Longer than its patience, but never that long without a byte. */
static void test_patient_stop(void **state)
{
	static const volatile int stop = OUT_STOP_PATIENTLY;
	struct reader reader = {0};
	char line[128];
	int fds[2];
	pthread_t thread;
	struct out *out;

	assert_int_equal(pipe(fds), 0);
	reader.fd = fds[0];
	out = out__new(fds[1], 0, &stop, 300);
	assert_int_equal(pthread_create(&thread, NULL, read_slowly, &reader), 0);
	memset(line, 'x', sizeof(line));
	for (int i = 0; i < 4096; i++) {
		out__bytes(out, line, sizeof(line));
		out__end(out, true, 0);
	}
	assert_int_equal(out__flush(out), 0);
	out__free(out);
	close(fds[1]);
	pthread_join(thread, NULL);
	assert_int_equal(reader.got, 4096 * sizeof(line));
	close(fds[0]);
}

/* Nobody takes anything: then it ends all the same. */
static void test_patience_ends(void **state)
{
	static const volatile int stop = OUT_STOP_PATIENTLY;

	assert_int_equal(give_up(false, &stop, 5), 0);
	assert_int_equal(give_up(true, &stop, 5), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_items_pass_the_buffer),
		cmocka_unit_test(test_tiny_items),
		cmocka_unit_test(test_an_item_larger_than_the_buffer),
		cmocka_unit_test(test_no_memory_for_a_large_item),
		cmocka_unit_test(test_no_memory_to_count_by_source),
		cmocka_unit_test(test_unwritten),
		cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_full_disk_appending),
		cmocka_unit_test(test_full_disk_inside_a_file),
		cmocka_unit_test(test_closed_pipe),
		cmocka_unit_test(test_slow_pipe),
		cmocka_unit_test(test_nonblocking_pipe),
		cmocka_unit_test(test_stop_with_a_reader),
		cmocka_unit_test(test_interrupted),
		cmocka_unit_test(test_stop_while_blocked),
		cmocka_unit_test(test_stop_before),
		cmocka_unit_test(test_patient_stop),
		cmocka_unit_test(test_patience_ends),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	return r ? 1 : 0;
}
