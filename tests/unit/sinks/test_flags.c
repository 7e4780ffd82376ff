// SPDX-License-Identifier: BSD-2-Clause
/* flags.c: every name of every set comes back by its number, and no bit that has no name gets lost. */
#include "capture.h"

#include "sinks/flags.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

static struct capture c;

static int setup(void **state)
{
	capture__open(&c);
	return 0;
}

static int teardown(void **state)
{
	capture__close(&c);
	return 0;
}

static const char *flags(const char *set, uint64_t value)
{
	flags__put(c.out, set, value);
	return capture__take(&c);
}

static const char *value(const char *set, uint64_t value)
{
	flags__put_enum(c.out, set, value);
	return capture__take(&c);
}

/* The sets are found by binary search. */
static void test_sets_are_sorted(void **state)
{
	unsigned int n;

	for (n = 1; flags__set_name(n); n++)
		if (strcmp(flags__set_name(n - 1), flags__set_name(n)) >= 0)
			fail_msg("%s stands before %s", flags__set_name(n - 1), flags__set_name(n));
	assert_true(n >= 60);
}

static bool is_name(const char *text)
{
	return (*text >= 'A' && *text <= 'Z') || *text == '_';
}

/* Values, those of arch_prctl and ioctl among them, and single bits: has any a name? */
static bool has_a_name(const char *set)
{
	for (uint64_t bit = 0; bit < 32; bit++)
		if (is_name(strrchr(flags(set, 1ull << bit), '|') ?: c.text))
			return true;
	for (uint64_t i = 0; i < 0x6000; i++)
		if (is_name(value(set, i)))
			return true;
	return false;
}

static void test_every_set_has_names(void **state)
{
	for (unsigned int n = 0; flags__set_name(n); n++)
		if (!has_a_name(flags__set_name(n)))
			fail_msg("%s has no name for anything", flags__set_name(n));
}

/*
 * Whatever the bits are, what is printed says all of them: names have disjoint bits (those of several
 * bits take all of theirs), and the rest stands as one number. So no two values print alike.
 */
static void test_no_two_values_print_alike(void **state)
{
	uint64_t seed = 7;

	for (unsigned int n = 0; flags__set_name(n); n++) {
		const char *set = flags__set_name(n);

		for (int run = 0; run < 50; run++) {
			uint64_t a = rng(&seed) & 0xffffffff, b = a ^ (1ull << rng(&seed) % 32);
			char first[4000];

			snprintf(first, sizeof(first), "%s", flags(set, a));
			if (!strcmp(first, flags(set, b)))
				fail_msg("%s: %#lx and %#lx are %s", set, (long)a, (long)b, first);
			snprintf(first, sizeof(first), "%s", value(set, a));
			if (!strcmp(first, value(set, b)))
				fail_msg("%s: %#lx and %#lx are %s", set, (long)a, (long)b, first);
		}
	}
}

static void test_flags(void **state)
{
	assert_string_equal(flags("sock_type", SOCK_STREAM | SOCK_CLOEXEC),
			    "SOCK_STREAM|SOCK_CLOEXEC");
	assert_string_equal(flags("sock_type", SOCK_SEQPACKET), "SOCK_SEQPACKET");
	assert_string_equal(flags("sock_type", SOCK_RAW | SOCK_NONBLOCK), "SOCK_RAW|SOCK_NONBLOCK");
	assert_string_equal(flags("open", O_RDONLY), "O_RDONLY");
	assert_string_equal(flags("open", O_RDONLY | O_CLOEXEC), "O_RDONLY|O_CLOEXEC");
	assert_string_equal(flags("open", O_WRONLY | O_CREAT | O_TRUNC),
			    "O_WRONLY|O_CREAT|O_TRUNC");
	assert_string_equal(flags("open", O_RDWR | O_SYNC), "O_RDWR|O_SYNC");
	assert_string_equal(flags("open", 1ull << 40), "O_RDONLY|0x10000000000");
	assert_string_equal(flags("prot", 0), "PROT_NONE");
	assert_string_equal(flags("prot", 3), "PROT_READ|PROT_WRITE");
	assert_string_equal(flags("rename", 0), "0");
	assert_string_equal(flags("rename", 0x80000001), "RENAME_NOREPLACE|0x80000000");
	/* O_SYNC has the bit of O_DSYNC, O_TMPFILE that of O_DIRECTORY. */
	assert_string_equal(flags("open", O_DSYNC), "O_RDONLY|O_DSYNC");
	assert_string_equal(flags("open", O_DIRECTORY), "O_RDONLY|O_DIRECTORY");
	assert_string_equal(flags("open", O_TMPFILE), "O_RDONLY|O_TMPFILE");
}

static void test_values(void **state)
{
	assert_string_equal(value("seek", SEEK_END), "SEEK_END");
	assert_string_equal(value("seek", 77), "77");
	assert_string_equal(value("seek", 4096), "0x1000");
	assert_string_equal(value("fcntl", F_DUPFD_CLOEXEC), "F_DUPFD_CLOEXEC");
	assert_string_equal(value("futex", 129), "FUTEX_WAKE_PRIVATE");
	assert_string_equal(value("futex", 0x109), "FUTEX_WAIT_BITSET|FUTEX_CLOCK_REALTIME");
}

/* What there is no table for. */
static void test_unknown_sets(void **state)
{
	assert_string_equal(flags("no such set", 5), "0x5");
	assert_string_equal(flags("no such set", 0), "0");
	assert_string_equal(flags(NULL, 16), "0x10");
	assert_string_equal(value(NULL, 16), "16");
	assert_string_equal(value("", UINT64_MAX), "0xffffffffffffffff");
	assert_string_equal(value("zzz", 16), "16");
	/* One of the other kind. */
	assert_string_equal(flags("seek", 2), "0x2");
}

static const char *signal_text(uint64_t sig)
{
	flags__put_signal(c.out, sig);
	return capture__take(&c);
}

static void test_signals_and_errors(void **state)
{
	assert_string_equal(signal_text(9), "SIGKILL");
	assert_string_equal(signal_text(31), "SIGSYS");
	assert_string_equal(signal_text(32), "SIGRT_0");
	assert_string_equal(signal_text(64), "SIGRT_32");
	assert_string_equal(signal_text(65), "65");
	assert_string_equal(signal_text(0), "0");
	assert_string_equal(signal_text(UINT64_MAX), "18446744073709551615");
	assert_string_equal(flags__errno_name(ENOENT), "ENOENT");
	assert_string_equal(flags__errno_name(512), "ERESTARTSYS");
	assert_string_equal(flags__errno_name(516), "ERESTART_RESTARTBLOCK");
	assert_null(flags__errno_name(4000));
	assert_null(flags__errno_name(-1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sets_are_sorted),
		cmocka_unit_test(test_every_set_has_names),
		cmocka_unit_test(test_no_two_values_print_alike),
		cmocka_unit_test(test_flags),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_unknown_sets),
		cmocka_unit_test(test_signals_and_errors),
	};
	int r = cmocka_run_group_tests(tests, setup, teardown);

	return r ? 1 : 0;
}
