/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * syscalls.h - what is known of each system call: its number in every ABI, its arguments, and which
 * of them point to bytes worth reading at its entry.
 *
 * Made from syscalls.tbl, whose head explains the words. Constant data: no set-up, any thread.
 */
#ifndef WEIR_SYSCALLS_H
#define WEIR_SYSCALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/decode.h>
#include <weir/probes.h>

#define SYSCALL_ARGS_MAX 6
#define SYSCALL_NR_MAX	 1024 /* numbers are below this */
#define SYSCALL_ABIS	 3    /* enum weir_abi */

/* The numberings that are known. This machine speaks up to three of them: syscalls__numbering(). */
enum syscall_numbering {
	SYSCALL_X86_64 = 0,
	SYSCALL_X32, /* without bit 30 */
	SYSCALL_I386,
	SYSCALL_ARM64,
	SYSCALL_ARM, /* EABI */
	SYSCALL_NUMBERINGS,
	SYSCALL_NO_NUMBERING = SYSCALL_NUMBERINGS
};

struct syscall_arg {
	const char *name; /* as tracefs calls it */
	const char *set;  /* "open", "timespec"; NULL where the tag has none */
	enum weir_tag tag;
};

/*
 * One call with one list of arguments. A call whose arguments differ between ABIs has a description
 * for each list; both have the same name.
 *
 * The masks have bit i set for argument i. They cover input only: what a call writes (accept's
 * sockaddr, readlink's buffer) is not there at its entry. A null pointer may stand wherever a
 * string can. In a 32-bit ABI, arguments are 32 bits wide and argv an array of 32-bit pointers.
 */
struct syscall_desc {
	const char *name;
	int16_t nr[SYSCALL_NUMBERINGS]; /* -1: not there */
	uint8_t nargs;
	uint8_t string_args;	 /* strings, ended by NUL unless str_len_arg says otherwise */
	uint8_t strv_args;	 /* argv */
	int8_t sockaddr_arg;	 /* -1: none */
	int8_t sockaddr_len_arg; /* the length of it, in bytes */
	int8_t timespec_arg;	 /* -1: none; one that is read, and may be written as well */
	int8_t str_len_arg;	 /* has the only string's length (sethostname); -1: NUL ends it */
	/*
	 * Of string_args and timespec_arg, those that are that only where args[when_arg] & when_bits is
	 * one of when_values: prctl's second argument is a string for PR_SET_NAME and an integer
	 * otherwise.
	 */
	uint8_t when_mask;
	int8_t when_arg; /* -1: when_mask is 0 */
	uint32_t when_bits;
	uint64_t when_values; /* bit i: i */
	struct syscall_arg args[SYSCALL_ARGS_MAX];
};

/* How this machine numbers the calls of an ABI, which may be any value. */
enum syscall_numbering syscalls__numbering(unsigned int abi);

/* "i386", "x32", "arm"; NULL for the native ABI, and for any value that is none. */
const char *syscalls__abi_name(unsigned int abi);

/* NULL: unknown. Any value of abi and nr is allowed. */
const struct syscall_desc *syscalls__find(unsigned int abi, uint32_t nr);
const struct syscall_desc *syscalls__find_in(enum syscall_numbering numbering, uint32_t nr);

/* All descriptions, sorted by name: those of one call stand together. */
const struct syscall_desc *syscalls__all(size_t *count);

/* The first description of that name; any others follow it in syscalls__all(). NULL: none. */
const struct syscall_desc *syscalls__by_name(const char *name);

#endif /* WEIR_SYSCALLS_H */
