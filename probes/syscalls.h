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

/* What an argument is, for printing. The words of syscalls.tbl, in its order. */
enum syscall_tag {
	SYSCALL_TAG_INT = 0,  /* signed decimal */
	SYSCALL_TAG_UINT,     /* unsigned decimal */
	SYSCALL_TAG_HEX,      /* a number that only makes sense in hex */
	SYSCALL_TAG_SIZE,     /* a length in bytes, or a count of elements */
	SYSCALL_TAG_OFF,      /* a signed 64-bit file position */
	SYSCALL_TAG_FD,	      /* file descriptor */
	SYSCALL_TAG_DIRFD,    /* the same, or AT_FDCWD */
	SYSCALL_TAG_PID,      /* of a process, thread or group */
	SYSCALL_TAG_UID,      /* user */
	SYSCALL_TAG_GID,      /* group */
	SYSCALL_TAG_SIG,      /* signal number */
	SYSCALL_TAG_MODE,     /* permissions: octal */
	SYSCALL_TAG_DEV,      /* device number */
	SYSCALL_TAG_PATH,     /* string that names a file */
	SYSCALL_TAG_STR,      /* any other string */
	SYSCALL_TAG_ARGV,     /* array of strings, ended by NULL */
	SYSCALL_TAG_ENVP,     /* the same, and not worth reading at every exec */
	SYSCALL_TAG_SOCKADDR, /* struct sockaddr that the call reads */
	SYSCALL_TAG_PTR,      /* an address by itself */
	SYSCALL_TAG_BUF,      /* data that the call reads */
	SYSCALL_TAG_OUTBUF,   /* data that the call writes */
	SYSCALL_TAG_IN,	      /* set: the struct, or array of it, that the call reads */
	SYSCALL_TAG_OUT,      /* set: that the call writes */
	SYSCALL_TAG_INOUT,    /* set: both */
	SYSCALL_TAG_FLAGS,    /* set: the family of bits */
	SYSCALL_TAG_ENUM,     /* set: the family of values */
	SYSCALL_TAG_LO,	      /* low half of a 64-bit value in a 32-bit ABI */
	SYSCALL_TAG_HI,	      /* its high half */
	SYSCALL_TAG_PAD,      /* a register that is skipped, for alignment */
	SYSCALL_TAGS
};

struct syscall_arg {
	const char *name; /* as tracefs calls it */
	const char *set;  /* "open", "timespec": see enum syscall_tag; NULL where there is none */
	enum syscall_tag tag;
};

/*
 * One call with one list of arguments. A call whose arguments differ between ABIs has a description
 * for each list; both have the same name.
 *
 * The masks have bit i set for argument i. They cover input only: what a call writes (accept's
 * sockaddr, readlink's buffer) is not there at its entry. A null pointer may stand wherever a string
 * can. In a 32-bit ABI, arguments are 32 bits wide and argv an array of 32-bit pointers.
 */
struct syscall_desc {
	const char *name;
	int16_t nr[SYSCALL_NUMBERINGS]; /* -1: not there */
	uint8_t nargs;
	uint8_t string_args;	 /* strings, ended by NUL unless str_len_arg says otherwise */
	uint8_t strv_args;	 /* argv */
	int8_t sockaddr_arg;	 /* -1: none */
	int8_t sockaddr_len_arg; /* the length of it, in bytes */
	int8_t str_len_arg;	 /* has the only string's length (sethostname); -1: NUL ends it */
	/*
	 * Of string_args, those that are strings only where args[when_arg] is when_value, compared as
	 * 32 bits: prctl's second argument is one for PR_SET_NAME and an integer otherwise.
	 */
	uint8_t when_mask;
	int8_t when_arg; /* -1: when_mask is 0 */
	uint32_t when_value;
	struct syscall_arg args[SYSCALL_ARGS_MAX];
};

/* Which numbering this machine uses for an ABI; SYSCALL_NO_NUMBERING where it has no such ABI. */
enum syscall_numbering syscalls__numbering(enum weir_abi abi);

/* NULL for the native ABI, else "i386", "x32", "arm". `abi` may be any value: NULL. */
const char *syscalls__abi_name(unsigned int abi);

/* NULL: unknown. Any value of abi and nr is allowed. */
const struct syscall_desc *syscalls__find(unsigned int abi, uint32_t nr);
const struct syscall_desc *syscalls__find_in(enum syscall_numbering numbering, uint32_t nr);

/* All descriptions, sorted by name: those of one call stand together. */
const struct syscall_desc *syscalls__all(size_t *count);

/* The first description of that name; the others, if any, follow it in syscalls__all(). NULL: none. */
const struct syscall_desc *syscalls__by_name(const char *name);

#endif /* WEIR_SYSCALLS_H */
