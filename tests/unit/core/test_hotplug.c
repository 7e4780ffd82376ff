/* SPDX-License-Identifier: BSD-2-Clause */
/* source/hotplug: what the kernel tells of CPUs, and what others may send (M2, G8). */
#include "unit.h"

#include "source/hotplug.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* One call of recvfrom() fails with this: --wrap in meson.build. */
static int next_error;

ssize_t __real_recvfrom(int fd, void *buf, size_t bytes, int flags, struct sockaddr *from,
			socklen_t *from_len);
ssize_t __wrap_recvfrom(int fd, void *buf, size_t bytes, int flags, struct sockaddr *from,
			socklen_t *from_len);

ssize_t __wrap_recvfrom(int fd, void *buf, size_t bytes, int flags, struct sockaddr *from,
			socklen_t *from_len)
{
	if (!next_error)
		return __real_recvfrom(fd, buf, bytes, flags, from, from_len);
	errno = next_error;
	next_error = 0;
	return -1;
}

struct told {
	int cpu;
	bool online;
};

static struct told told[CPUS_MAX];
static size_t nr_told;

static void on_change(void *ctx, int cpu, bool online)
{
	assert_ptr_equal(ctx, &nr_told);
	assert_true(nr_told < ARRAY_SIZE(told));
	told[nr_told++] = (struct told){cpu, online};
}

/* A datagram socket in the kernel's place: its messages have no sender, as the kernel's. */
static struct hotplug hotplug;
static int kernel = -1;

static int connect_them(void **state)
{
	int pair[2];

	nr_told = 0;
	next_error = 0;
	memset(&hotplug, 0, sizeof(hotplug));
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair))
		return -1;
	hotplug.fd = pair[0];
	kernel = pair[1];
	fcntl(hotplug.fd, F_SETFL, O_NONBLOCK);
	return cpus__parse(&hotplug.online, "0-3,8191");
}

static int part_them(void **state)
{
	hotplug__close(&hotplug);
	close(kernel);
	return 0;
}

static void send_bytes(const void *bytes, size_t len)
{
	assert_int_equal(send(kernel, bytes, len, 0), len);
}

static void tell(const char *what)
{
	char message[256];
	int len = snprintf(message, sizeof(message), "%s%cACTION=x%cSUBSYSTEM=cpu", what, 0, 0);

	send_bytes(message, (size_t)len + 1);
}

static void drain(void)
{
	hotplug__events(&hotplug, on_change, &nr_told);
}

static void expect(size_t i, int cpu, bool online)
{
	assert_true(i < nr_told);
	assert_int_equal(told[i].cpu, cpu);
	assert_int_equal(told[i].online, online);
}

static void test_nothing(void **state)
{
	drain();
	assert_int_equal(nr_told, 0);
	hotplug__close(&hotplug);
	hotplug__close(&hotplug);
	drain();
	assert_int_equal(nr_told, 0);
}

/* M2: every change, in order, also a short absence between two looks. */
static void test_changes(void **state)
{
	tell("offline@/devices/system/cpu/cpu1");
	tell("online@/devices/system/cpu/cpu1");
	tell("offline@/devices/system/cpu/cpu8191");
	tell("online@/devices/system/cpu/cpu70");
	tell("offline@/devices/system/cpu/cpu1");
	drain();
	assert_int_equal(nr_told, 5);
	expect(0, 1, false);
	expect(1, 1, true);
	expect(2, 8191, false);
	expect(3, 70, true);
	expect(4, 1, false);
	assert_false(cpus__has(&hotplug.online, 1));
	assert_true(cpus__has(&hotplug.online, 70));
	assert_int_equal(cpus__count(&hotplug.online), 4);
}

/* What is known already is no change. */
static void test_told_twice(void **state)
{
	tell("online@/devices/system/cpu/cpu1");
	tell("offline@/devices/system/cpu/cpu5");
	drain();
	assert_int_equal(nr_told, 0);
	for (int i = 0; i < 3; i++)
		tell("offline@/devices/system/cpu/cpu2");
	drain();
	drain();
	assert_int_equal(nr_told, 1);
}

static void test_other_messages(void **state)
{
	static const char *const others[] = {
		"",
		"add@/devices/system/cpu/cpu1",
		"remove@/devices/system/cpu/cpu1",
		"change@/devices/system/cpu/cpu1",
		"onlin@/devices/system/cpu/cpu5",
		"offlined@/devices/system/cpu/cpu1",
		"offlineoffline@/devices/system/cpu/cpu1",
		"Offline@/devices/system/cpu/cpu1",
		"@/devices/system/cpu/cpu1",
		"offline/devices/system/cpu/cpu1",
		"offline@/devices/system/memory/memory1",
		"offline@/devices/system/cpu/cpu",
		"offline@/devices/system/cpu/cpux",
		"offline@/devices/system/cpu/cpu1/topology",
		"offline@/devices/system/cpu/cpu1 ",
		"offline@/devices/system/cpu/cpu 1",
		"offline@/devices/system/cpu/cpu+1",
		"offline@/devices/system/cpu/cpu-1",
		"offline@/devices/system/cpu/cpu0x1",
		"online@/devices/system/cpu/cpu8192",
		"online@/devices/system/cpu/cpu65536",
		"offline@/devices/system/cpu/cpu4294967296", /* 0 in 32 bits */
		"offline@/devices/system/cpu/cpu4294967297",
		"offline@/devices/system/cpu/cpu18446744073709551617",
		"offline@/devices/system/cpu/cpu99999999999999999999999999999999999",
		"libudev",
	};

	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		tell(others[i]);
		drain();
		if (nr_told)
			fail_msg("\"%s\" was taken for a change", others[i]);
	}
}

/* Empty, without an end, longer than any buffer: what stands behind it is still heard. */
static void test_hostile_lengths(void **state)
{
	char longest[20000];
	size_t sent = 0;

	memset(longest, 'o', sizeof(longest));
	for (size_t len = 0; len < sizeof(longest); len = 3 * len + 1) {
		send_bytes(longest, len);
		tell(sent++ % 2 ? "online@/devices/system/cpu/cpu3"
				: "offline@/devices/system/cpu/cpu3");
		drain();
		assert_int_equal(nr_told, sent);
	}
	for (size_t i = 0; i < nr_told; i++)
		expect(i, 3, i % 2);
	/* One without a NUL is read to its end and not further. */
	nr_told = 0;
	send_bytes("offline@/devices/system/cpu/cpu2", 32);
	drain();
	expect(0, 2, false);
}

static void test_random_bytes(void **state)
{
	static const char model[] = "offline@/devices/system/cpu/cpu17";
	struct rng rng = {43};

	for (int run = 0; run < 50000; run++) {
		char message[sizeof(model)];

		memcpy(message, model, sizeof(model));
		for (uint64_t n = rng__below(&rng, 4) + 1; n; n--)
			message[rng__below(&rng, sizeof(model))] = (char)rng__next(&rng);
		send_bytes(message, rng__range(&rng, 20, sizeof(model)));
		nr_told = 0;
		drain();
		assert_true(nr_told <= 1);
	}
}

/* Anybody may reach the socket: only what comes from port 0 is the kernel's. */
static void test_not_the_kernel(void **state)
{
	static const char message[] = "offline@/devices/system/cpu/cpu1";
	struct sockaddr_nl addr = {.nl_family = AF_NETLINK};
	socklen_t len = sizeof(addr);
	int other = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_USERSOCK);

	close(hotplug.fd);
	hotplug.fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_USERSOCK);
	assert_true(other >= 0 && hotplug.fd >= 0);
	assert_int_equal(bind(other, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(bind(hotplug.fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(getsockname(hotplug.fd, (struct sockaddr *)&addr, &len), 0);
	assert_int_equal(sendto(other, message, sizeof(message), 0, (struct sockaddr *)&addr, len),
			 sizeof(message));
	drain();
	assert_int_equal(nr_told, 0);
	assert_true(cpus__has(&hotplug.online, 1));
	/* It was read, though: nothing is left. */
	assert_int_equal(recv(hotplug.fd, told, sizeof(told), 0), -1);
	assert_int_equal(errno, EAGAIN);
	close(other);
}

static void set(unsigned cpu, bool online)
{
	uint64_t bit = 1ull << (cpu % 64);

	hotplug.online.bits[cpu / 64] &= ~bit;
	hotplug.online.bits[cpu / 64] |= online ? bit : 0;
}

/* One look tells all differences to what is so, and only these. */
static void test_look(void **state)
{
	struct cpus now;

	assert_int_equal(cpus__online(&now, NULL), 0);
	hotplug.online = now;
	hotplug__look(&hotplug, on_change, &nr_told);
	assert_int_equal(nr_told, 0);
	set(0, false);
	set(8000, true);
	set(8001, true);
	hotplug__look(&hotplug, on_change, &nr_told);
	assert_int_equal(nr_told, 3);
	expect(0, 0, true);
	expect(1, 8000, false);
	expect(2, 8001, false);
	assert_memory_equal(&hotplug.online, &now, sizeof(now));
}

/* Messages were lost: then the list is looked at, and what is still queued is read behind it. */
static void test_overrun(void **state)
{
	assert_int_equal(cpus__online(&hotplug.online, NULL), 0);
	set(8000, true);
	next_error = ENOBUFS;
	tell("online@/devices/system/cpu/cpu8001");
	drain();
	assert_int_equal(nr_told, 2);
	expect(0, 8000, false);
	expect(1, 8001, true);
}

static void test_interrupted(void **state)
{
	next_error = EINTR;
	tell("offline@/devices/system/cpu/cpu1");
	drain();
	assert_int_equal(nr_told, 1);
}

static void test_this_machine(void **state)
{
	struct hotplug real;
	struct cpus now;

	assert_int_equal(hotplug__open(&real), 0);
	assert_int_equal(cpus__online(&now, NULL), 0);
	assert_memory_equal(&real.online, &now, sizeof(now));
	if (real.fd >= 0)
		assert_int_equal(fcntl(real.fd, F_GETFD), FD_CLOEXEC);
	hotplug__events(&real, on_change, &nr_told);
	hotplug__close(&real);
	assert_int_equal(real.fd, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_nothing, connect_them, part_them),
		cmocka_unit_test_setup_teardown(test_changes, connect_them, part_them),
		cmocka_unit_test_setup_teardown(test_told_twice, connect_them, part_them),
		cmocka_unit_test_setup_teardown(test_other_messages, connect_them, part_them),
		cmocka_unit_test_setup_teardown(test_hostile_lengths, connect_them, part_them),
		cmocka_unit_test_setup_teardown(test_random_bytes, connect_them, part_them),
		cmocka_unit_test_setup_teardown(test_not_the_kernel, connect_them, part_them),
		cmocka_unit_test_setup_teardown(test_look, connect_them, part_them),
		cmocka_unit_test_setup_teardown(test_overrun, connect_them, part_them),
		cmocka_unit_test_setup_teardown(test_interrupted, connect_them, part_them),
		cmocka_unit_test_setup_teardown(test_this_machine, connect_them, part_them),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	return r ? 1 : 0;
}
