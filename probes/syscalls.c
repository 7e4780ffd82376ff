// SPDX-License-Identifier: BSD-2-Clause
/*
 * syscalls.c - look-ups in the table of system calls.
 *
 * Owns the table that syscalls.py makes of syscalls.tbl, all of it constant. Any number that comes
 * from a record may be asked for. Must not know records beyond enum weir_abi.
 */
#include "probes/syscalls.h"

#include <string.h>

#include "syscalls_table.inc" /* calls[], sorted by name; places[][]: 1 + index into calls[] */

#define NR_CALLS (sizeof(calls) / sizeof(calls[0]))

/* How this machine numbers its calls, and what its ABIs are called beside the native one. */
static const struct {
	enum syscall_numbering numbering;
	const char *name;
} abis[SYSCALL_ABIS] = {
#if defined(__x86_64__)
	[WEIR_ABI_NATIVE] = {SYSCALL_X86_64, NULL},
	[WEIR_ABI_32] = {SYSCALL_I386, "i386"},
	[WEIR_ABI_X32] = {SYSCALL_X32, "x32"},
#elif defined(__aarch64__)
	[WEIR_ABI_NATIVE] = {SYSCALL_ARM64, NULL},
	[WEIR_ABI_32] = {SYSCALL_ARM, "arm"},
	[WEIR_ABI_X32] = {SYSCALL_NO_NUMBERING, NULL},
#else
#error "system calls are known for x86-64 and arm64 only"
#endif
};

enum syscall_numbering syscalls__numbering(unsigned int abi)
{
	return abi < SYSCALL_ABIS ? abis[abi].numbering : SYSCALL_NO_NUMBERING;
}

const char *syscalls__abi_name(unsigned int abi)
{
	return abi < SYSCALL_ABIS ? abis[abi].name : NULL;
}

const struct syscall_desc *syscalls__find_in(enum syscall_numbering numbering, uint32_t nr)
{
	if ((unsigned int)numbering >= SYSCALL_NUMBERINGS || nr >= SYSCALL_NR_MAX)
		return NULL;
	return places[numbering][nr] ? &calls[places[numbering][nr] - 1] : NULL;
}

const struct syscall_desc *syscalls__find(unsigned int abi, uint32_t nr)
{
	return syscalls__find_in(syscalls__numbering(abi), nr);
}

const struct syscall_desc *syscalls__all(size_t *count)
{
	*count = NR_CALLS;
	return calls;
}

/* The first of those that are not before `name`: binary search. */
const struct syscall_desc *syscalls__by_name(const char *name)
{
	size_t low = 0, high = NR_CALLS;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (strcmp(calls[mid].name, name) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low < NR_CALLS && !strcmp(calls[low].name, name) ? &calls[low] : NULL;
}
