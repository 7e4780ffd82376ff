/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * source/fence between two threads and more, for ThreadSanitizer too: the stream's, one that
 * serves, and writers that stamp first and publish later, as probes do. The door is a grace
 * period of user space: it waits until each writer has been seen outside its section, or in a
 * later one.
 */
#include "unit.h"

#include "sanitized.h"
#include "source/fence.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#if SANITIZED_THREAD
#define SLOWER 20
#else
#define SLOWER 1
#endif

#define WRITERS 2
#define RECORDS (1000000 / SLOWER)
#define TURNS	(20000 / SLOWER)

static uint64_t now_ns(void)
{
	return clock__kernel.now_ns(NULL);
}

/* ---- a grace period ------------------------------------------------------------------------- */

struct writer {
	pthread_t thread;
	uint64_t section; /* odd: inside */
	uint64_t head;	  /* published stamps */
	uint64_t *stamps;
	bool ended;
} __attribute__((aligned(64)));

static struct writer writers[WRITERS];

static uint64_t load(const uint64_t *value)
{
	return __atomic_load_n(value, __ATOMIC_SEQ_CST);
}

static void wait_for(const struct writer *w)
{
	uint64_t section = load(&w->section);

	while (section % 2 && load(&w->section) == section)
		sched_yield();
}

struct door {
	int in_flight;
	uint64_t tickets, nested;
};

static int pass(void *ctx)
{
	struct door *door = ctx;

	/* Not shared by right: the ticket is what keeps a second one out. */
	door->nested += door->in_flight++ != 0;
	door->tickets++;
	for (size_t i = 0; i < WRITERS; i++)
		wait_for(&writers[i]);
	door->in_flight--;
	return 0;
}

static void *write_all(void *arg)
{
	struct writer *w = arg;

	for (uint64_t i = 0; i < RECORDS; i++) {
		__atomic_fetch_add(&w->section, 1, __ATOMIC_SEQ_CST);
		w->stamps[i] = now_ns();
		/* The time that a probe takes to send what it has stamped; sometimes it is stolen. */
		if (i % 512 == 0)
			sched_yield();
		__atomic_store_n(&w->head, i + 1, __ATOMIC_RELEASE);
		__atomic_fetch_add(&w->section, 1, __ATOMIC_SEQ_CST);
	}
	__atomic_store_n(&w->ended, true, __ATOMIC_RELEASE);
	return NULL;
}

static bool have_ended(void)
{
	bool ended = true;

	for (size_t i = 0; i < WRITERS; i++)
		ended &= __atomic_load_n(&writers[i].ended, __ATOMIC_ACQUIRE);
	return ended;
}

static void start_writers(void)
{
	memset(writers, 0, sizeof(writers));
	for (size_t i = 0; i < WRITERS; i++) {
		writers[i].stamps = calloc(RECORDS, sizeof(uint64_t));
		assert_non_null(writers[i].stamps);
		assert_int_equal(pthread_create(&writers[i].thread, NULL, write_all, &writers[i]),
				 0);
	}
}

static void join_writers(void)
{
	for (size_t i = 0; i < WRITERS; i++) {
		pthread_join(writers[i].thread, NULL);
		free(writers[i].stamps);
	}
	memset(writers, 0, sizeof(writers));
}

/* ---- the thread that serves ----------------------------------------------------------------- */

static void *serve(void *arg)
{
	return (void *)(intptr_t)weir_fence__run(fence__handle(arg));
}

static pthread_t start_serving(struct fence *f)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, serve, f), 0);
	return thread;
}

static void join_served(pthread_t thread)
{
	void *result;

	assert_int_equal(pthread_join(thread, &result), 0);
	assert_null(result);
}

static void wait_until_served(const struct fence *f)
{
	while (!fence__is_served(f))
		sched_yield();
}

/* ---- the stream ----------------------------------------------------------------------------- */

/* An edge-triggered epoll, as the stream has one. */
static int open_epoll(const struct fence *f)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};
	int fd = epoll_create1(EPOLL_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(epoll_ctl(fd, EPOLL_CTL_ADD, fence__fd(f), &event), 0);
	return fd;
}

static void sleep_on(int epoll_fd)
{
	struct epoll_event event;
	int n;

	do
		n = epoll_wait(epoll_fd, &event, 1, -1);
	while (n < 0 && errno == EINTR);
	assert_int_equal(n, 1);
}

/*
 * Ask, and sleep until there is an answer: with a wake-up lost this never ends. When the thread
 * leaves unanswered what was asked, the stream does it.
 */
static void get_ticket_after(struct fence *f, int epoll_fd, uint64_t t_ns)
{
	while (fence__newest_ns(f) < t_ns) {
		if (!fence__is_served(f)) {
			assert_int_equal(fence__run(f), 0);
			continue;
		}
		fence__request(f);
		sleep_on(epoll_fd);
	}
}

struct reader {
	uint64_t place[WRITERS]; /* read up to here */
	uint64_t newest_ns, late, read;
};

/* Look at T first and at heads then; what comes afterwards has to be younger. */
static void read_some(struct reader *reader, const struct fence *f)
{
	uint64_t t_ns = fence__newest_ns(f);

	assert_true(t_ns >= reader->newest_ns);
	for (size_t i = 0; i < WRITERS; i++) {
		uint64_t head = __atomic_load_n(&writers[i].head, __ATOMIC_ACQUIRE);

		for (uint64_t at = reader->place[i]; at < head; at++)
			reader->late += writers[i].stamps[at] < reader->newest_ns;
		reader->read += head - reader->place[i];
		reader->place[i] = head;
	}
	reader->newest_ns = t_ns;
}

static void read_all(struct reader *reader, struct fence *f, bool here)
{
	bool ended;

	do {
		ended = have_ended();
		if (here)
			assert_int_equal(fence__run(f), 0);
		else
			fence__request(f);
		read_some(reader, f);
	} while (!ended);
}

/* ---- the cases ------------------------------------------------------------------------------ */

static void open_fence(struct fence *f, struct door *door)
{
	*door = (struct door){0};
	assert_int_equal(fence__open_custom(f, pass, door, &clock__kernel), 0);
}

static void run_writers(bool here)
{
	struct reader reader = {0};
	pthread_t thread = 0;
	struct door door;
	struct fence f;

	open_fence(&f, &door);
	if (!here) {
		thread = start_serving(&f);
		wait_until_served(&f);
	}
	start_writers();
	read_all(&reader, &f, here);
	/* First who looks at the writers. */
	if (!here) {
		weir_fence__stop(fence__handle(&f));
		join_served(thread);
	}
	join_writers();
	assert_int_equal(reader.late, 0);
	assert_int_equal(reader.read, (uint64_t)WRITERS * RECORDS);
	assert_int_equal(door.nested, 0);
	assert_true(door.tickets > 0);
	fence__close(&f);
}

/* G2: nothing stamped before T turns up after it. */
static void test_nothing_late_here(void **state)
{
	run_writers(true);
}

static void test_nothing_late_served(void **state)
{
	run_writers(false);
}

/* Each request is answered by a T of its own, and wakes a stream that sleeps. */
static void test_each_request_is_answered(void **state)
{
	struct door door;
	struct fence f;
	pthread_t thread;
	int epoll_fd;

	open_fence(&f, &door);
	epoll_fd = open_epoll(&f);
	thread = start_serving(&f);
	wait_until_served(&f);
	for (int i = 0; i < TURNS; i++)
		get_ticket_after(&f, epoll_fd, now_ns());
	assert_true(fence__is_served(&f));
	weir_fence__stop(fence__handle(&f));
	join_served(thread);
	assert_int_equal(door.nested, 0);
	close(epoll_fd);
	fence__close(&f);
}

/* Threads come and go, at any moment of a ticket. */
struct shifts {
	struct fence *f;
	bool over;
};

static void *serve_in_shifts(void *arg)
{
	struct shifts *shifts = arg;

	while (!__atomic_load_n(&shifts->over, __ATOMIC_ACQUIRE)) {
		pthread_t thread = start_serving(shifts->f);

		sched_yield();
		weir_fence__stop(fence__handle(shifts->f));
		join_served(thread);
	}
	return NULL;
}

static void test_shifts(void **state)
{
	struct shifts shifts = {0};
	pthread_t thread;
	struct door door;
	struct fence f;
	int epoll_fd;

	open_fence(&f, &door);
	epoll_fd = open_epoll(&f);
	shifts.f = &f;
	assert_int_equal(pthread_create(&thread, NULL, serve_in_shifts, &shifts), 0);
	for (int i = 0; i < TURNS; i++)
		get_ticket_after(&f, epoll_fd, now_ns());
	__atomic_store_n(&shifts.over, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	assert_int_equal(door.nested, 0);
	close(epoll_fd);
	fence__close(&f);
}

/* Closed while a thread is in it, asleep or with a ticket: it has left before the memory goes. */
static void test_close_while_served(void **state)
{
	for (int i = 0; i < TURNS / 10; i++) {
		struct fence *f = malloc(sizeof(*f));
		struct door *door = malloc(sizeof(*door));
		pthread_t thread;

		assert_non_null(f);
		assert_non_null(door);
		open_fence(f, door);
		thread = start_serving(f);
		wait_until_served(f);
		for (int n = i % 3; n > 0; n--)
			fence__request(f);
		fence__close(f);
		assert_int_equal(door->in_flight, 0);
		free(door);
		free(f);
		join_served(thread);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_late_here),
		cmocka_unit_test(test_nothing_late_served),
		cmocka_unit_test(test_each_request_is_answered),
		cmocka_unit_test(test_shifts),
		cmocka_unit_test(test_close_while_served),
	};
	int r = cmocka_run_group_tests_name("fence: threads", tests, NULL, NULL);

	return r ? 1 : 0;
}
