/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * source/fence: tickets on a clock of ours and a door of ours, in one thread: what a second
 * thread would do meanwhile is done inside the door. Then the real doors, with answers of the
 * kernel that can't be had here, and the switch for expedited grace periods as a file of ours.
 */
#include "unit.h"

#include "source/cpus.h"
#include "source/fence.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- what the kernel answers ---------------------------------------------------------------- */

long __real_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);
int __real_open(const char *path, int flags, mode_t mode);
int __wrap_open(const char *path, int flags, mode_t mode);
int __wrap_open64(const char *path, int flags, mode_t mode);
int __wrap_cpus__online(struct cpus *cpus, const char *sysfs);
int __wrap_bpf_map_create(enum bpf_map_type type, const char *name, __u32 key_size,
			  __u32 value_size, __u32 max_entries,
			  const struct bpf_map_create_opts *opts);
int __wrap_bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags);

static struct {
	int bpf_err;		   /* of making a map of maps; the map in it is made */
	int update_err;		   /* of the update */
	unsigned updates, maps;	   /* how many there were */
	int inner_fd, maps_fd;	   /* as they were made */
	long query;		   /* membarrier's */
	int membarrier_errno;	   /* 0: it works */
	unsigned barriers;	   /* how many there were */
	unsigned online[4], looks; /* CPUs, at each look */
	int online_err;
	int open_errno;
	const char *instead; /* of the switch */
	char path[64];	     /* the switch */
} kernel;

long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	if (number != SYS_membarrier)
		return __real_syscall(number, a, b, c, d, e, f);
	if (a == MEMBARRIER_CMD_GLOBAL)
		kernel.barriers++;
	else if (a == MEMBARRIER_CMD_QUERY && kernel.query >= 0)
		return kernel.query;
	errno = a == MEMBARRIER_CMD_GLOBAL ? kernel.membarrier_errno : (int)-kernel.query;
	return errno ? -1 : 0;
}

int __wrap_open(const char *path, int flags, mode_t mode)
{
	assert_string_equal(path, "/sys/kernel/rcu_expedited");
	if (!kernel.open_errno)
		return __real_open(kernel.instead ? kernel.instead : kernel.path, flags, mode);
	errno = kernel.open_errno;
	return -1;
}

int __wrap_open64(const char *path, int flags, mode_t mode)
{
	return __wrap_open(path, flags, mode);
}

int __wrap_cpus__online(struct cpus *cpus, const char *sysfs)
{
	unsigned n = kernel.online[kernel.looks];

	assert_null(sysfs);
	assert_true(kernel.looks + 1 < ARRAY_SIZE(kernel.online));
	kernel.looks++;
	memset(cpus, 0, sizeof(*cpus));
	for (unsigned cpu = 0; cpu < n; cpu++)
		cpus->bits[0] |= 1ull << cpu;
	return kernel.online_err;
}

int __wrap_bpf_map_create(enum bpf_map_type type, const char *name, __u32 key_size,
			  __u32 value_size, __u32 max_entries,
			  const struct bpf_map_create_opts *opts)
{
	int fd;

	kernel.maps++;
	if (type == BPF_MAP_TYPE_ARRAY_OF_MAPS && kernel.bpf_err)
		return kernel.bpf_err;
	fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (type == BPF_MAP_TYPE_ARRAY) {
		kernel.inner_fd = fd;
		return fd;
	}
	assert_int_equal(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	assert_int_equal(opts->inner_map_fd, kernel.inner_fd);
	kernel.maps_fd = fd;
	return fd;
}

int __wrap_bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	kernel.updates++;
	assert_int_equal(fd, kernel.maps_fd);
	assert_int_equal(*(const uint32_t *)key, 0);
	assert_int_equal(*(const int *)value, kernel.inner_fd);
	assert_int_equal(flags, BPF_ANY);
	return kernel.update_err;
}

/* ---- a clock and a door of ours ------------------------------------------------------------- */

static uint64_t time_ns;

static uint64_t read_clock(void *ctx)
{
	return time_ns;
}

static const struct weir_clock clock_of_ours = {.now_ns = read_clock};

/* What happens while the n-th ticket is in flight. */
struct step {
	void (*meanwhile)(struct fence *f);
	uint64_t takes_ns;
	int err;
};

struct door {
	struct fence fence;
	const struct step *steps;
	size_t nr_steps, tickets;
};

static int pass(void *ctx)
{
	struct door *door = ctx;
	const struct step *step = &door->steps[door->tickets];
	uint64_t newest_ns = fence__newest_ns(&door->fence);

	assert_true(door->tickets < door->nr_steps);
	door->tickets++;
	if (step->meanwhile)
		step->meanwhile(&door->fence);
	time_ns += step->takes_ns;
	/* Nothing is done before it is done. */
	assert_int_equal(fence__newest_ns(&door->fence), newest_ns);
	return step->err;
}

static struct door *open_with(struct door *door, const struct step *steps, size_t n)
{
	*door = (struct door){.steps = steps, .nr_steps = n};
	assert_int_equal(fence__open_custom(&door->fence, pass, door, &clock_of_ours), 0);
	return door;
}

static int make(void **state)
{
	time_ns = 1000;
	memset(&kernel, 0, sizeof(kernel));
	kernel.query = MEMBARRIER_CMD_GLOBAL;
	for (size_t i = 0; i < ARRAY_SIZE(kernel.online); i++)
		kernel.online[i] = 2;
	strcpy(kernel.path, "/tmp/weir-fence-XXXXXX");
	return close(mkstemp(kernel.path));
}

static int end(void **state)
{
	return unlink(kernel.path);
}

/* An edge since the last call: the tests read it, the stream does not have to. */
static bool edge(const struct fence *f)
{
	uint64_t count;

	return read(fence__fd(f), &count, sizeof(count)) == sizeof(count);
}

static int serve(struct fence *f)
{
	return weir_fence__run(fence__handle(f));
}

static void stop(struct fence *f)
{
	weir_fence__stop(fence__handle(f));
}

/* ---- tickets here and now ------------------------------------------------------------------- */

static void test_ticket(void **state)
{
	static const struct step steps[] = {{.takes_ns = 500}, {.takes_ns = 90}, {.takes_ns = 700}};
	struct fence_delay delay;
	struct door door;
	struct fence *f = &open_with(&door, steps, ARRAY_SIZE(steps))->fence;

	assert_string_equal(fence__door_name(f), "custom");
	assert_int_equal(fence__newest_ns(f), 0);
	fence__delay(f, &delay);
	assert_int_equal(delay.count, 0);

	/* T is of before the wait. */
	assert_int_equal(fence__run(f), 0);
	assert_int_equal(fence__newest_ns(f), 1000);
	assert_int_equal(fence__run(f), 0);
	assert_int_equal(fence__newest_ns(f), 1500);
	fence__delay(f, &delay);
	assert_int_equal(delay.count, 2);
	assert_int_equal(delay.last_ns, 90);
	assert_int_equal(delay.max_ns, 500);
	assert_int_equal(delay.sum_ns, 590);

	assert_int_equal(fence__run(f), 0);
	assert_int_equal(fence__newest_ns(f), 1590);
	fence__delay(f, &delay);
	assert_int_equal(delay.max_ns, 700);
	fence__close(f);
}

/* A door that failed has proved nothing. */
static void test_failed_ticket(void **state)
{
	static const struct step steps[] = {
		{.takes_ns = 5}, {.takes_ns = 7, .err = -EAGAIN}, {.takes_ns = 9}};
	struct fence_delay delay;
	struct door door;
	struct fence *f = &open_with(&door, steps, ARRAY_SIZE(steps))->fence;

	assert_int_equal(fence__run(f), 0);
	assert_int_equal(fence__run(f), -EAGAIN);
	assert_int_equal(fence__newest_ns(f), 1000);
	fence__delay(f, &delay);
	assert_int_equal(delay.count, 1);
	assert_int_equal(fence__run(f), 0);
	assert_int_equal(fence__newest_ns(f), 1012);
	fence__close(f);
}

/* ---- tickets by a thread -------------------------------------------------------------------- */

static void and_stop(struct fence *f)
{
	assert_true(fence__is_served(f));
	stop(f);
}

/* Requests join; the last ticket is finished before the thread leaves. */
static void test_serve(void **state)
{
	static const struct step steps[] = {{.meanwhile = and_stop, .takes_ns = 1}};
	struct door door;
	struct fence *f = &open_with(&door, steps, ARRAY_SIZE(steps))->fence;

	assert_false(fence__is_served(f));
	fence__request(f);
	fence__request(f);
	fence__request(f);
	assert_int_equal(serve(f), 0);
	assert_int_equal(door.tickets, 1);
	assert_int_equal(fence__newest_ns(f), 1000);
	assert_false(fence__is_served(f));
	assert_true(edge(f));
	fence__close(f);
}

static void and_ask_twice(struct fence *f)
{
	fence__request(f);
	fence__request(f);
	time_ns += 10;
}

/* T of the ticket in flight is too old for whoever asks now: one more, and one is enough. */
static void test_ask_in_flight(void **state)
{
	static const struct step steps[] = {{.meanwhile = and_ask_twice},
					    {.meanwhile = and_stop, .takes_ns = 1}};
	struct door door;
	struct fence *f = &open_with(&door, steps, ARRAY_SIZE(steps))->fence;

	fence__request(f);
	assert_int_equal(serve(f), 0);
	assert_int_equal(door.tickets, 2);
	assert_int_equal(fence__newest_ns(f), 1010);
	fence__close(f);
}

static void and_run(struct fence *f)
{
	time_ns += 10;
	assert_int_equal(fence__run(f), 0);
}

/* The stream saw no thread, and it is there when it runs a ticket: never two in flight. */
static void test_run_while_served(void **state)
{
	static const struct step steps[] = {{.meanwhile = and_run}, {.meanwhile = and_stop}};
	struct door door;
	struct fence *f = &open_with(&door, steps, ARRAY_SIZE(steps))->fence;

	fence__request(f);
	assert_int_equal(serve(f), 0);
	assert_int_equal(door.tickets, 2);
	assert_int_equal(fence__newest_ns(f), 1010);
	fence__close(f);
}

#define FENCE_ASLEEP (1u << 5) /* fence.c's */

static pthread_t server;
static bool has_left;

static void *serve_and_leave(void *fence)
{
	intptr_t err = serve(fence);

	__atomic_store_n(&has_left, true, __ATOMIC_RELEASE);
	return (void *)err;
}

/* Until it has seen that it has to wait; or, where it does not, has taken its ticket and left. */
static void and_a_thread_comes(struct fence *f)
{
	fence__request(f);
	assert_int_equal(pthread_create(&server, NULL, serve_and_leave, f), 0);
	while (!(__atomic_load_n(&f->word, __ATOMIC_ACQUIRE) & FENCE_ASLEEP) &&
	       !__atomic_load_n(&has_left, __ATOMIC_ACQUIRE))
		sched_yield();
	assert_false(__atomic_load_n(&has_left, __ATOMIC_ACQUIRE));
	time_ns += 10;
}

/* The thread comes, and is asked, while the stream's own ticket is in flight: never two. */
static void test_thread_comes_in_flight(void **state)
{
	static const struct step steps[] = {{.meanwhile = and_a_thread_comes},
					    {.meanwhile = and_stop}};
	struct door door;
	struct fence *f = &open_with(&door, steps, ARRAY_SIZE(steps))->fence;
	void *err;

	has_left = false;
	assert_int_equal(fence__run(f), 0);
	assert_int_equal(pthread_join(server, &err), 0);
	assert_null(err);
	assert_int_equal(door.tickets, 2);
	assert_int_equal(fence__newest_ns(f), 1010);
	fence__close(f);
}

static void and_serve_too(struct fence *f)
{
	assert_int_equal(serve(f), -EBUSY);
	assert_true(fence__is_served(f));
	stop(f);
}

static void test_one_thread_serves(void **state)
{
	static const struct step steps[] = {{.meanwhile = and_serve_too}};
	struct door door;
	struct fence *f = &open_with(&door, steps, ARRAY_SIZE(steps))->fence;

	fence__request(f);
	assert_int_equal(serve(f), 0);
	assert_int_equal(door.tickets, 1);
	fence__close(f);
}

/* A stop that comes before the thread does is not lost, and it is used up by one run. */
static void test_stop_first(void **state)
{
	static const struct step steps[] = {{.meanwhile = and_stop}};
	struct door door;
	struct fence *f = &open_with(&door, steps, ARRAY_SIZE(steps))->fence;

	errno = 77;
	stop(f);
	stop(f);
	assert_int_equal(errno, 77);
	assert_int_equal(serve(f), 0);
	assert_int_equal(door.tickets, 0);
	/* The stream may have asked it and sleep. */
	assert_true(edge(f));
	fence__request(f);
	assert_int_equal(serve(f), 0);
	assert_int_equal(door.tickets, 1);
	fence__close(f);
}

/* What nobody has answered the stream answers itself, and then nobody has to. */
static void test_unanswered(void **state)
{
	static const struct step steps[] = {{.takes_ns = 1}};
	struct door door;
	struct fence *f = &open_with(&door, steps, ARRAY_SIZE(steps))->fence;

	fence__request(f);
	stop(f);
	assert_int_equal(serve(f), 0);
	assert_int_equal(door.tickets, 0);
	assert_int_equal(fence__run(f), 0);
	assert_int_equal(door.tickets, 1);
	assert_false(f->word);
	fence__close(f);
}

/* The thread comes back with the door's error, the stream is told, and nothing was published. */
static void test_serve_fails(void **state)
{
	static const struct step steps[] = {{.err = -EPERM}};
	struct door door;
	struct fence *f = &open_with(&door, steps, ARRAY_SIZE(steps))->fence;

	fence__request(f);
	assert_int_equal(serve(f), -EPERM);
	assert_int_equal(fence__newest_ns(f), 0);
	assert_false(fence__is_served(f));
	assert_true(edge(f));
	fence__close(f);
}

static void test_descriptors(void **state)
{
	struct fence f;
	int event_fd;

	assert_int_equal(fence__open(&f, FENCE_RCU, &clock_of_ours), 0);
	event_fd = fence__fd(&f);
	assert_int_equal(fcntl(event_fd, F_GETFD), FD_CLOEXEC);
	assert_false(edge(&f));
	fence__close(&f);
	assert_int_equal(fcntl(event_fd, F_GETFD), -1);
	assert_int_equal(fcntl(kernel.maps_fd, F_GETFD), -1);
	assert_int_equal(fcntl(kernel.inner_fd, F_GETFD), -1);
	fence__close(&f);
}

/* ---- the doors ------------------------------------------------------------------------------ */

static void test_rcu(void **state)
{
	struct fence f;

	assert_int_equal(fence__open(&f, FENCE_AUTO, &clock_of_ours), 0);
	assert_string_equal(fence__door_name(&f), "rcu");
	assert_int_equal(kernel.updates, 0);
	assert_int_equal(fence__run(&f), 0);
	assert_int_equal(kernel.updates, 1);
	assert_int_equal(fence__newest_ns(&f), 1000);
	kernel.update_err = -EPERM;
	time_ns++;
	assert_int_equal(fence__run(&f), -EPERM);
	assert_int_equal(fence__newest_ns(&f), 1000);
	assert_int_equal(kernel.barriers, 0);
	fence__close(&f);
}

static void test_rcu_refused(void **state)
{
	struct fence f;

	kernel.bpf_err = -EPERM;
	assert_int_equal(fence__open(&f, FENCE_RCU, &clock_of_ours), -EPERM);
	assert_int_equal(fcntl(kernel.inner_fd, F_GETFD), -1);
	assert_int_equal(kernel.looks, 0);

	assert_int_equal(fence__open(&f, FENCE_AUTO, &clock_of_ours), 0);
	assert_string_equal(fence__door_name(&f), "membarrier");
	assert_int_equal(fence__run(&f), 0);
	assert_int_equal(kernel.updates, 0);
	assert_int_equal(kernel.barriers, 1);
	assert_int_equal(fence__newest_ns(&f), 1000);
	fence__close(&f);
}

static void test_no_door(void **state)
{
	struct fence f;

	kernel.bpf_err = -EPERM;
	kernel.query = 0;
	assert_int_equal(fence__open(&f, FENCE_AUTO, &clock_of_ours), -EPERM);
	assert_int_equal(fence__open(&f, FENCE_MEMBARRIER, &clock_of_ours), -EOPNOTSUPP);
	kernel.query = -ENOSYS;
	assert_int_equal(fence__open(&f, FENCE_AUTO, &clock_of_ours), -EPERM);
	assert_int_equal(fence__open(&f, FENCE_MEMBARRIER, &clock_of_ours), -ENOSYS);
	kernel.query = MEMBARRIER_CMD_GLOBAL;
	kernel.online[0] = 1;
	assert_int_equal(fence__open(&f, FENCE_AUTO, &clock_of_ours), -EPERM);
	kernel.looks = 0;
	assert_int_equal(fence__open(&f, FENCE_MEMBARRIER, &clock_of_ours), -EOPNOTSUPP);
	assert_int_equal(kernel.barriers, 0);
}

/* Opened with `before` CPUs online at its ticket, and `after` when that has come back. */
static int membarrier_with(unsigned before, unsigned after)
{
	struct fence f;
	int err;

	kernel.looks = 0;
	kernel.online[1] = before;
	kernel.online[2] = after;
	assert_int_equal(fence__open(&f, FENCE_MEMBARRIER, &clock_of_ours), 0);
	err = fence__run(&f);
	assert_int_equal(fence__newest_ns(&f), err ? 0 : 1000);
	assert_int_equal(kernel.looks, 3);
	fence__close(&f);
	return err;
}

/* With one CPU online it returns at once and has waited for nobody. */
static void test_one_cpu_online(void **state)
{
	assert_int_equal(membarrier_with(2, 2), 0);
	assert_int_equal(membarrier_with(1, 2), -EAGAIN);
	assert_int_equal(membarrier_with(2, 1), -EAGAIN);
	assert_int_equal(membarrier_with(1, 1), -EAGAIN);
	assert_int_equal(membarrier_with(3, 2), 0);
}

static void test_membarrier_fails(void **state)
{
	struct fence f;

	assert_int_equal(fence__open(&f, FENCE_MEMBARRIER, &clock_of_ours), 0);
	/* nohz_full, where the kernel did not say so when it was asked. */
	kernel.membarrier_errno = EINVAL;
	kernel.looks = 0;
	assert_int_equal(fence__run(&f), -EOPNOTSUPP);
	kernel.membarrier_errno = EPERM;
	kernel.looks = 0;
	assert_int_equal(fence__run(&f), -EPERM);
	kernel.membarrier_errno = 0;
	kernel.online_err = -ENOENT;
	kernel.looks = 0;
	assert_int_equal(fence__run(&f), -ENOENT);
	assert_int_equal(fence__newest_ns(&f), 0);
	fence__close(&f);
	kernel.looks = 0;
	assert_int_equal(fence__open(&f, FENCE_MEMBARRIER, &clock_of_ours), -ENOENT);
}

/* ---- expedited grace periods ---------------------------------------------------------------- */

static void set_switch(const char *value)
{
	FILE *file = fopen(kernel.path, "we");

	assert_non_null(file);
	assert_true(fputs(value, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static long get_switch(void)
{
	FILE *file = fopen(kernel.path, "re");
	long value = -1;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%ld", &value), 1);
	assert_int_equal(fclose(file), 0);
	return value;
}

static void open_any(struct fence *f)
{
	assert_int_equal(fence__open_custom(f, pass, NULL, &clock_of_ours), 0);
}

/* From `start`, which is `during` while the fence is open: what is left behind. */
static long expedite_from(const char *start, long during)
{
	struct fence f;

	set_switch(start);
	open_any(&f);
	assert_int_equal(fence__expedite(&f), 0);
	assert_int_equal(fence__expedite(&f), 0);
	assert_int_equal(get_switch(), during);
	fence__close(&f);
	return get_switch();
}

static void test_expedite(void **state)
{
	assert_int_equal(expedite_from("0\n", FENCE_EXPEDITED), 0);
	/* The administrator's stays, */
	assert_int_equal(expedite_from("1\n", 1), 1);
	/* and what one of ours left behind that was killed does not. */
	assert_int_equal(expedite_from("2003134834\n", FENCE_EXPEDITED), 0);
}

/* Set by the administrator meanwhile: his. */
static void test_expedite_overruled(void **state)
{
	struct fence f;

	set_switch("0\n");
	open_any(&f);
	assert_int_equal(fence__expedite(&f), 0);
	set_switch("1\n");
	fence__close(&f);
	assert_int_equal(get_switch(), 1);
}

static void test_expedite_two(void **state)
{
	struct fence first, second;

	set_switch("0\n");
	open_any(&first);
	open_any(&second);
	assert_int_equal(fence__expedite(&first), 0);
	assert_int_equal(fence__expedite(&second), -EBUSY);
	fence__close(&second);
	assert_int_equal(get_switch(), FENCE_EXPEDITED);
	fence__close(&first);
	assert_int_equal(get_switch(), 0);
}

static void test_expedite_refused(void **state)
{
	struct fence f;

	set_switch("0\n");
	open_any(&f);
	kernel.open_errno = EACCES;
	assert_int_equal(fence__expedite(&f), -EACCES);
	fence__close(&f);
	assert_int_equal(get_switch(), 0);
	/* A kernel that takes the value and does not keep it. */
	kernel.open_errno = 0;
	kernel.instead = "/dev/null";
	open_any(&f);
	assert_int_equal(fence__expedite(&f), -EOPNOTSUPP);
	fence__close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_ticket, make, end),
		cmocka_unit_test_setup_teardown(test_failed_ticket, make, end),
		cmocka_unit_test_setup_teardown(test_serve, make, end),
		cmocka_unit_test_setup_teardown(test_ask_in_flight, make, end),
		cmocka_unit_test_setup_teardown(test_thread_comes_in_flight, make, end),
		cmocka_unit_test_setup_teardown(test_run_while_served, make, end),
		cmocka_unit_test_setup_teardown(test_one_thread_serves, make, end),
		cmocka_unit_test_setup_teardown(test_stop_first, make, end),
		cmocka_unit_test_setup_teardown(test_unanswered, make, end),
		cmocka_unit_test_setup_teardown(test_serve_fails, make, end),
		cmocka_unit_test_setup_teardown(test_descriptors, make, end),
		cmocka_unit_test_setup_teardown(test_rcu, make, end),
		cmocka_unit_test_setup_teardown(test_rcu_refused, make, end),
		cmocka_unit_test_setup_teardown(test_no_door, make, end),
		cmocka_unit_test_setup_teardown(test_one_cpu_online, make, end),
		cmocka_unit_test_setup_teardown(test_membarrier_fails, make, end),
		cmocka_unit_test_setup_teardown(test_expedite, make, end),
		cmocka_unit_test_setup_teardown(test_expedite_overruled, make, end),
		cmocka_unit_test_setup_teardown(test_expedite_two, make, end),
		cmocka_unit_test_setup_teardown(test_expedite_refused, make, end),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	return r ? 1 : 0;
}
