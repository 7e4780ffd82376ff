/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * decode.h - an event as a name and named arguments: what probes decode and sinks print.
 */
#ifndef WEIR_DECODE_H
#define WEIR_DECODE_H

#include <weir/event.h>

#ifdef __cplusplus
extern "C" {
#endif

enum weir_arg_kind {
	WEIR_ARG_UINT = 0, /* u */
	WEIR_ARG_INT,	   /* i */
	WEIR_ARG_HEX,	   /* u: an address, a mask or a raw argument, "0x..." */
	WEIR_ARG_BOOL,	   /* u */
	WEIR_ARG_TIMESPEC, /* i: seconds; u: nanoseconds, with a sign, and any value */
	WEIR_ARG_WORD,	   /* bytes: a NUL-terminated constant of ours, "SIGTERM" */
	WEIR_ARG_STR,	   /* bytes, len: raw bytes from the kernel or a program, any value */
	WEIR_ARG_STRV,	   /* bytes, len: strings, each with its NUL */
	WEIR_ARG_SOCKADDR, /* bytes, len: struct sockaddr as a program gave it */
};

/* weir_arg.flags */
#define WEIR_ARG_CUT	(1u << 0) /* the bytes were longer */
#define WEIR_ARG_UNREAD (1u << 1) /* the bytes could not be read: u has the address */

/* What an argument of a system call is: the words are those of probes/syscalls.tbl. */
enum weir_tag {
	WEIR_TAG_NONE = 0, /* no argument of a call */
	WEIR_TAG_INT,
	WEIR_TAG_UINT,
	WEIR_TAG_LONG,
	WEIR_TAG_HEX,
	WEIR_TAG_SIZE,
	WEIR_TAG_OFF,
	WEIR_TAG_LO,
	WEIR_TAG_HI,
	WEIR_TAG_PAD,
	WEIR_TAG_FD,
	WEIR_TAG_DIRFD,
	WEIR_TAG_PID,
	WEIR_TAG_UID,
	WEIR_TAG_GID,
	WEIR_TAG_SIG,
	WEIR_TAG_MODE,
	WEIR_TAG_DEV,
	WEIR_TAG_FLAGS,
	WEIR_TAG_ENUM,
	WEIR_TAG_PATH,
	WEIR_TAG_STR,
	WEIR_TAG_ARGV,
	WEIR_TAG_ENVP,
	WEIR_TAG_SOCKADDR,
	WEIR_TAG_PTR,
	WEIR_TAG_BUF,
	WEIR_TAG_OUTBUF,
	WEIR_TAG_IN,
	WEIR_TAG_OUT,
	WEIR_TAG_INOUT,
	WEIR_TAGS
};

struct weir_arg {
	const char *name;
	enum weir_arg_kind kind;
	enum weir_tag tag; /* of a system call's argument */
	const char *set;   /* the family of a flags, enum, in, out or inout tag; NULL: none */
	uint32_t flags;
	uint64_t u;
	int64_t i;
	const char *bytes;
	uint32_t len;
};

#define WEIR_ARGS_MAX 20

/* Groups as the user selects them with -e. */
enum weir_group {
	WEIR_GROUP_NONE = 0, /* for weir's own tables: never printed */
	WEIR_GROUP_PROCESS,
	WEIR_GROUP_SCHED,
	WEIR_GROUP_SIGNAL,
	WEIR_GROUP_SYS,
	WEIR_GROUPS
};

/* How a system call ended, as far as the stream tells. */
enum weir_call_end {
	WEIR_CALL_RETURNED = 0, /* both halves */
	WEIR_CALL_BORN, /* an exit alone: the first thing that a new thread does is return from clone */
	WEIR_CALL_NO_ENTER, /* an exit alone: it was entered before the trace, or the enter is lost */
	WEIR_CALL_NO_RETURN, /* the thread ended in it, as in exit_group */
	WEIR_CALL_BROKEN,    /* open when its source had a gap: its exit may be lost */
	WEIR_CALL_OPEN,	     /* still open at the end of the trace, or no room to remember it */
};

/* A system call, put together from its halves. */
struct weir_call {
	enum weir_call_end end;
	const struct weir_event *enter; /* NULL for BORN and NO_ENTER */
	const struct weir_event *exit;	/* NULL unless RETURNED, BORN or NO_ENTER */
	uint64_t stamp_ns;		/* where it stands in the stream: at its exit, gap or end */
	uint32_t source; /* of the record or gap at which it stands; WEIR_SOURCE_NONE: the end */
	uint8_t mark;	 /* WEIR_MARK_*, of the same */
	/*
	 * enter is no record: the thread was found in the call, by other means, at enter->stamp_ns, and
	 * had entered it at that time or before.
	 */
	bool found;
};

/* A decoded record. Borrowed like the event that it was made from. */
struct weir_decoded {
	const char *name; /* "fork", "sys_enter", ... */
	enum weir_group group;
	uint32_t pid, tid;   /* whose event it is */
	const char *comm;    /* 16 bytes, NUL-padded, when the record carries it; else NULL */
	const char *syscall; /* sys_*: its name ("openat"), or NULL when the number is unknown */
	int32_t nr;	     /* sys_*: number; negative otherwise */
	const char *abi;     /* sys_*: NULL when native, else "i386", "x32", "arm" */
	bool has_args;	     /* false: an exit alone, whose arguments nobody has seen */
	bool has_ret;	     /* a call that returned: ret */
	int64_t ret;	     /* result, or -errno */
	/*
	 * sys_*, not 0: wherever this number stands again, there stand the same name, syscall, nr and
	 * abi, and as many arguments of the same names, tags and sets, all of them constants. So what
	 * follows from these can be kept.
	 */
	uint32_t shape;
	/*
	 * A record of other people's, of which nothing is known: bytes, of no thread and without
	 * arguments.
	 */
	bool is_raw;
	const void *raw;
	uint32_t raw_len;
	uint32_t nargs;
	struct weir_arg args[WEIR_ARGS_MAX];
};

#ifdef __cplusplus
}
#endif

#endif /* WEIR_DECODE_H */
