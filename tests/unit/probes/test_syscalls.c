// SPDX-License-Identifier: BSD-2-Clause
/*
 * The table of system calls as C sees it: look-ups, and what is read at a call's entry.
 */
#include <linux/futex.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>
#include <syscall.h>

#include "probes/syscalls.h"

static void test_numberings(void **state)
{
	static const int openat[SYSCALL_NUMBERINGS] = {
		[SYSCALL_X86_64] = 257, [SYSCALL_X32] = 257, [SYSCALL_I386] = 295,
		[SYSCALL_ARM64] = 56,	[SYSCALL_ARM] = 322,
	};

	for (unsigned int i = 0; i < SYSCALL_NUMBERINGS; i++) {
		const struct syscall_desc *call = syscalls__find_in(i, openat[i]);

		assert_non_null(call);
		assert_string_equal(call->name, "openat");
		assert_int_equal(call->nr[i], openat[i]);
	}
	assert_string_equal(syscalls__find(WEIR_ABI_NATIVE, SYS_openat)->name, "openat");
}

static void test_unknown_numbers(void **state)
{
	assert_null(syscalls__find(WEIR_ABI_NATIVE, SYSCALL_NR_MAX - 1));
	assert_null(syscalls__find(WEIR_ABI_NATIVE, SYSCALL_NR_MAX));
	assert_null(syscalls__find(WEIR_ABI_NATIVE, UINT32_MAX));
	assert_null(syscalls__find(SYSCALL_ABIS, 0));
	assert_null(syscalls__find(UINT32_MAX, 0));
	assert_null(syscalls__find_in(SYSCALL_NO_NUMBERING, 0));
	assert_null(syscalls__by_name("no_such_call"));
	assert_null(syscalls__by_name(""));
	assert_null(syscalls__by_name("zzz"));
}

static void test_abi_names(void **state)
{
	assert_null(syscalls__abi_name(WEIR_ABI_NATIVE));
#if defined(__x86_64__)
	assert_string_equal(syscalls__abi_name(WEIR_ABI_32), "i386");
	assert_string_equal(syscalls__abi_name(WEIR_ABI_X32), "x32");
#else
	assert_string_equal(syscalls__abi_name(WEIR_ABI_32), "arm");
	assert_null(syscalls__abi_name(WEIR_ABI_X32));
#endif
	assert_null(syscalls__abi_name(SYSCALL_ABIS));
	assert_int_equal(syscalls__numbering(SYSCALL_ABIS), SYSCALL_NO_NUMBERING);
}

/* Each call is found by each of its numbers, and by its name. */
static void test_every_call_is_found(void **state)
{
	size_t count, numbers = 0;
	const struct syscall_desc *calls = syscalls__all(&count);

	for (size_t i = 0; i < count; i++) {
		const struct syscall_desc *first = syscalls__by_name(calls[i].name);

		assert_true(first && first <= &calls[i]);
		assert_string_equal(first->name, calls[i].name);
		if (i)
			assert_true(strcmp(calls[i - 1].name, calls[i].name) <= 0);
		for (unsigned int n = 0; n < SYSCALL_NUMBERINGS; n++) {
			if (calls[i].nr[n] < 0)
				continue;
			assert_ptr_equal(syscalls__find_in(n, calls[i].nr[n]), &calls[i]);
			numbers++;
		}
	}
	for (unsigned int n = 0; n < SYSCALL_NUMBERINGS; n++) {
		for (unsigned int nr = 0; nr < SYSCALL_NR_MAX; nr++)
			numbers -= syscalls__find_in(n, nr) != NULL;
	}
	assert_int_equal(numbers, 0);
}

static bool is_string(enum weir_tag tag)
{
	return tag == WEIR_TAG_PATH || tag == WEIR_TAG_STR;
}

static bool is_timespec(const struct syscall_arg *arg)
{
	return (arg->tag == WEIR_TAG_IN || arg->tag == WEIR_TAG_INOUT) &&
	       !strcmp(arg->set, "timespec");
}

static void check_masks(const struct syscall_desc *call)
{
	int sockaddrs = 0, timespecs = 0;

	assert_true(call->nargs <= SYSCALL_ARGS_MAX);
	for (int i = 0; i < call->nargs; i++) {
		const struct syscall_arg *arg = &call->args[i];

		assert_non_null(arg->name);
		assert_true(arg->tag < WEIR_TAGS);
		assert_int_equal(call->string_args >> i & 1, is_string(arg->tag));
		assert_int_equal(call->strv_args >> i & 1, arg->tag == WEIR_TAG_ARGV);
		assert_int_equal(call->sockaddr_arg == i, arg->tag == WEIR_TAG_SOCKADDR);
		sockaddrs += arg->tag == WEIR_TAG_SOCKADDR;
		assert_int_equal(call->timespec_arg == i, is_timespec(arg));
		timespecs |= is_timespec(arg) << i;
	}
	assert_int_equal(call->string_args >> call->nargs, 0);
	assert_int_equal(call->strv_args >> call->nargs, 0);
	assert_int_equal(call->sockaddr_arg >= 0, sockaddrs == 1);
	assert_int_equal(call->sockaddr_len_arg >= 0, sockaddrs == 1);
	assert_true(call->sockaddr_len_arg < call->nargs);
	assert_int_equal(call->when_mask & ~(call->string_args | timespecs), 0);
	assert_int_equal(call->when_arg >= 0, call->when_mask != 0);
	assert_true(call->when_arg < call->nargs || !call->when_mask);
	if (call->str_len_arg >= 0) {
		assert_true(call->str_len_arg < call->nargs);
		assert_int_equal(__builtin_popcount(call->string_args), 1);
	}
}

static void test_masks_follow_tags(void **state)
{
	size_t count;
	const struct syscall_desc *calls = syscalls__all(&count);

	for (size_t i = 0; i < count; i++)
		check_masks(&calls[i]);
}

/* What is worth reading at the entry: written down anew, from the manual pages. */
static void test_what_is_read(void **state)
{
	static const struct {
		const char *name;
		uint8_t strings, strv;
		int8_t sockaddr, sockaddr_len;
	} cases[] = {
		{"execve", 0x1, 0x2, -1, -1},
		{"execveat", 0x2, 0x4, -1, -1},
		{"open", 0x1, 0, -1, -1},
		{"openat", 0x2, 0, -1, -1},
		{"openat2", 0x2, 0, -1, -1},
		{"creat", 0x1, 0, -1, -1},
		{"stat", 0x1, 0, -1, -1},
		{"lstat", 0x1, 0, -1, -1},
		{"newfstatat", 0x2, 0, -1, -1},
		{"statx", 0x2, 0, -1, -1},
		{"access", 0x1, 0, -1, -1},
		{"faccessat2", 0x2, 0, -1, -1},
		{"rename", 0x3, 0, -1, -1},
		{"renameat", 0xa, 0, -1, -1},
		{"renameat2", 0xa, 0, -1, -1},
		{"link", 0x3, 0, -1, -1},
		{"linkat", 0xa, 0, -1, -1},
		{"symlink", 0x3, 0, -1, -1},
		{"symlinkat", 0x5, 0, -1, -1},
		{"unlink", 0x1, 0, -1, -1},
		{"unlinkat", 0x2, 0, -1, -1},
		{"mkdirat", 0x2, 0, -1, -1},
		{"rmdir", 0x1, 0, -1, -1},
		{"chdir", 0x1, 0, -1, -1},
		{"chroot", 0x1, 0, -1, -1},
		{"pivot_root", 0x3, 0, -1, -1},
		{"mount", 0x17, 0, -1, -1},
		{"umount2", 0x1, 0, -1, -1},
		{"swapon", 0x1, 0, -1, -1},
		{"swapoff", 0x1, 0, -1, -1},
		{"setxattr", 0x3, 0, -1, -1},
		{"fsetxattr", 0x2, 0, -1, -1},
		{"removexattrat", 0xa, 0, -1, -1},
		{"memfd_create", 0x1, 0, -1, -1},
		{"init_module", 0x4, 0, -1, -1},
		{"finit_module", 0x2, 0, -1, -1},
		{"delete_module", 0x1, 0, -1, -1},
		{"mq_open", 0x1, 0, -1, -1},
		{"inotify_add_watch", 0x2, 0, -1, -1},
		{"fsopen", 0x1, 0, -1, -1},
		{"fspick", 0x2, 0, -1, -1},
		{"open_tree", 0x2, 0, -1, -1},
		{"move_mount", 0xa, 0, -1, -1},
		{"mount_setattr", 0x2, 0, -1, -1},
		{"quotactl", 0x2, 0, -1, -1},
		{"add_key", 0x3, 0, -1, -1},
		{"request_key", 0x7, 0, -1, -1},
		{"name_to_handle_at", 0x2, 0, -1, -1},
		{"truncate", 0x1, 0, -1, -1},
		{"utimensat", 0x2, 0, -1, -1},
		{"acct", 0x1, 0, -1, -1},
		{"connect", 0, 0, 1, 2},
		{"bind", 0, 0, 1, 2},
		{"sendto", 0, 0, 4, 5},
		/* What a call writes is not there yet. */
		{"accept", 0, 0, -1, -1},
		{"getsockname", 0, 0, -1, -1},
		{"recvfrom", 0, 0, -1, -1},
		{"readlink", 0x1, 0, -1, -1},
		{"getcwd", 0, 0, -1, -1},
		{"read", 0, 0, -1, -1},
		{"write", 0, 0, -1, -1},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct syscall_desc *call = syscalls__by_name(cases[i].name);

		assert_non_null(call);
		assert_int_equal(call->string_args, cases[i].strings);
		assert_int_equal(call->strv_args, cases[i].strv);
		assert_int_equal(call->sockaddr_arg, cases[i].sockaddr);
		assert_int_equal(call->sockaddr_len_arg, cases[i].sockaddr_len);
		assert_int_equal(call->when_mask, 0);
		assert_int_equal(call->str_len_arg, -1);
	}
}

static void test_conditions_and_lengths(void **state)
{
	const struct syscall_desc *call = syscalls__by_name("prctl");

	assert_int_equal(call->string_args, 0x2);
	assert_int_equal(call->when_mask, 0x2);
	assert_int_equal(call->when_arg, 0);
	assert_int_equal(call->when_bits, UINT32_MAX);
	assert_int_equal(call->when_values, 1 << 15); /* PR_SET_NAME */

	call = syscalls__by_name("fsconfig");
	assert_int_equal(call->string_args, 0xc);
	assert_int_equal(call->when_mask, 0x8);
	assert_int_equal(call->when_arg, 1);
	assert_int_equal(call->when_values, 1 << 1); /* FSCONFIG_SET_STRING */

	call = syscalls__by_name("futex");
	assert_int_equal(call->timespec_arg, 3);
	assert_int_equal(call->when_mask, 0x8);
	assert_int_equal(call->when_arg, 1);
	assert_int_equal(call->when_bits, ~(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME) & 0xff);
	assert_int_equal(call->when_values,
			 1 << FUTEX_WAIT | 1 << FUTEX_LOCK_PI | 1 << FUTEX_WAIT_BITSET |
				 1 << FUTEX_WAIT_REQUEUE_PI | 1 << 13 /* FUTEX_LOCK_PI2 */);

	call = syscalls__by_name("sethostname");
	assert_int_equal(call->string_args, 0x1);
	assert_int_equal(call->str_len_arg, 1);
}

/* fanotify_mark's mask takes two registers in 32 bits, which moves the path. */
static void test_lists_that_differ(void **state)
{
	const struct syscall_desc *wide = syscalls__find_in(SYSCALL_X86_64, 301);
	const struct syscall_desc *narrow = syscalls__find_in(SYSCALL_I386, 339);

	assert_string_equal(wide->name, "fanotify_mark");
	assert_string_equal(narrow->name, "fanotify_mark");
	assert_int_equal(wide->string_args, 0x10);
	assert_int_equal(narrow->string_args, 0x20);
	assert_string_equal(syscalls__find_in(SYSCALL_X86_64, 56)->args[3].name, "child_tidptr");
	assert_string_equal(syscalls__find_in(SYSCALL_ARM64, 220)->args[3].name, "tls");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numberings),
		cmocka_unit_test(test_unknown_numbers),
		cmocka_unit_test(test_abi_names),
		cmocka_unit_test(test_every_call_is_found),
		cmocka_unit_test(test_masks_follow_tags),
		cmocka_unit_test(test_what_is_read),
		cmocka_unit_test(test_conditions_and_lengths),
		cmocka_unit_test(test_lists_that_differ),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	return r ? 1 : 0;
}
