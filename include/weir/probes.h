/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * probes.h - payloads of the records that weir's own probes write.
 *
 * Each is what follows struct weir_record in the ring. Every member is naturally aligned and every
 * struct a multiple of 8 bytes; strings and arrays of bytes come after the fixed part, described
 * where they stand, never NUL-terminated unless said. Compiles as BPF C, C99 and C++.
 *
 * "pid" is the kernel's tgid and "tid" its pid, in the initial pid namespace.
 */
#ifndef WEIR_PROBES_H
#define WEIR_PROBES_H

#include <linux/types.h>

/* weir_record.type. Lifecycle records (below 16) go to the life rings, the others to cpu rings. */
enum weir_type {
	WEIR_T_FORK = 1,
	WEIR_T_EXEC = 2,
	WEIR_T_EXIT = 3,
	WEIR_T_RENAME = 4,	  /* a thread changed its comm */
	WEIR_T_CGROUP_MKDIR = 5,  /* a cgroup came */
	WEIR_T_CGROUP_ATTACH = 6, /* a task moved into a cgroup */
	WEIR_T_SYS_ENTER = 16,
	WEIR_T_SYS_EXIT = 17,
	WEIR_T_SWITCH = 18,
	WEIR_T_WAKEUP = 19,
	WEIR_T_MIGRATE = 20,
	WEIR_T_SIGNAL_GENERATE = 21,
	WEIR_T_SIGNAL_DELIVER = 22,
};
#define WEIR_T_LIFE_MAX 15

#define WEIR_COMM_LEN 16 /* TASK_COMM_LEN; NUL-padded */

struct weir_task_id {
	__u32 pid;
	__u32 tid;
};

struct weir_fork {
	struct weir_task_id parent;
	struct weir_task_id child; /* child.pid == parent.pid: a thread */
	__u64 child_start_ns;	   /* task_struct.start_time, CLOCK_MONOTONIC */
	__u64 child_cgroup;	   /* id in the default hierarchy */
	char comm[WEIR_COMM_LEN];  /* parent's and child's */
};

/* weir_exec.flags */
#define WEIR_EXEC_ARGV_CUT    (1 << 0) /* argv was longer than what was kept */
#define WEIR_EXEC_ARGV_UNREAD (1 << 1) /* argv could not be read at all */
#define WEIR_EXEC_PATH_CUT    (1 << 2)

struct weir_exec {
	struct weir_task_id id;
	__u32 old_tid; /* of the thread that called; differs when it was not the leader */
	__u32 ppid;    /* real parent's tgid */
	__u32 uid;     /* effective, in the initial user namespace */
	__u32 flags;
	__u64 start_ns;
	__u64 cgroup;
	char comm[WEIR_COMM_LEN];
	__u16 path_len;
	__u16 argv_len;
	__u32 pad;
	/* path[path_len], then argv[argv_len]: the strings, each with its NUL */
};

/* weir_exit.flags */
#define WEIR_EXIT_PROCESS (1 << 0) /* the last thread: the process is gone */
#define WEIR_EXIT_CORE	  (1 << 1) /* dumped core */

struct weir_exit {
	struct weir_task_id id;
	__u64 start_ns;
	__u32 code;   /* exit status 0 to 255; 0 when a signal ended it */
	__u32 signal; /* that ended it; 0: none */
	__u32 flags;
	__u32 ppid;
	char comm[WEIR_COMM_LEN];
};

struct weir_rename {
	struct weir_task_id id; /* whose comm changes, not who changes it */
	__u64 start_ns;
	char comm[WEIR_COMM_LEN]; /* new */
};

struct weir_cgroup_mkdir {
	__u64 cgroup; /* kernfs id, unique within its hierarchy */
	__u32 hierarchy; /* cgroup_root.hierarchy_id; 0 in some kernels and 1 in others is v2: see is_v2 */
	__u16 is_v2;
	__u16 path_len;
	/* path[path_len], from the hierarchy's root, "/" first */
};

struct weir_cgroup_attach {
	struct weir_task_id id;
	__u64 start_ns;
	__u64 cgroup;
	__u32 hierarchy;
	__u16 is_v2;
	__u16 path_len;
	__u32 process; /* 1: all threads move with it */
	__u32 pad;
	/* path[path_len] */
};

/* Which table a system call number belongs to. */
enum weir_abi {
	WEIR_ABI_NATIVE = 0, /* x86-64, arm64 */
	WEIR_ABI_32 = 1,     /* i386 on x86-64, arm on arm64 */
	WEIR_ABI_X32 = 2,    /* nr without its bit 30 */
};

/*
 * What stands behind one argument: `len` bytes at the next multiple of 8 after the one before.
 */
enum weir_blob_kind {
	WEIR_BLOB_STR = 1,	/* a string, without its NUL */
	WEIR_BLOB_STRV = 2,	/* strings, each with its NUL (argv) */
	WEIR_BLOB_SOCKADDR = 3, /* struct sockaddr as the caller gave it */
	WEIR_BLOB_TIMESPEC = 4, /* two __s64, seconds and nanoseconds, in every ABI */
};
/* weir_blob.flags */
#define WEIR_BLOB_CUT (1 << 0) /* longer than --string-limit, or than the record can be */
#define WEIR_BLOB_UNREAD \
	(1 << 1) /* page not there (EFAULT): len 0; may follow at the call's exit */

struct weir_blob {
	__u8 arg;  /* index into args */
	__u8 kind; /* enum weir_blob_kind */
	__u8 flags;
	__u8 pad;
	__u32 len;
	/* bytes[len], then 0 to 7 bytes of padding */
};

struct weir_sys_enter {
	struct weir_task_id id;
	__u32 nr;
	__u8 abi; /* enum weir_abi */
	__u8 blobs;
	__u16 pad;
	__u64 args[6];
	/* `blobs` times struct weir_blob */
};

struct weir_sys_exit {
	struct weir_task_id id;
	__u32 nr;
	__u8 abi;
	__u8 blobs; /* strings that could not be read at the entry */
	__u16 pad;
	__s64 ret;
	/* `blobs` times struct weir_blob */
};

struct weir_switch {
	struct weir_task_id prev;
	struct weir_task_id next;
	__u32 prev_state; /* task state bits as the tracepoint's argument gives them */
	__u32 preempt;	  /* 1: prev was still runnable and was pushed out */
	__s32 prev_prio;
	__s32 next_prio;
	char prev_comm[WEIR_COMM_LEN];
	char next_comm[WEIR_COMM_LEN];
};

struct weir_wakeup {
	struct weir_task_id waker; /* current: an innocent bystander when an interrupt wakes */
	struct weir_task_id target;
	__u32 target_cpu;
	__s32 prio;
	__u32 is_new; /* the first wake-up after fork */
	__u32 pad;
	char target_comm[WEIR_COMM_LEN];
};

struct weir_migrate {
	struct weir_task_id current; /* who was running where this was decided */
	struct weir_task_id target;
	__u32 orig_cpu;
	__u32 dest_cpu;
	__s32 prio;
	__u32 pad;
	char target_comm[WEIR_COMM_LEN];
};

struct weir_signal {
	struct weir_task_id id; /* generate: sender (current); deliver: receiver */
	struct weir_task_id target;
	__s32 sig;
	__s32 code;   /* siginfo.si_code */
	__s32 err;    /* siginfo.si_errno */
	__u32 result; /* generate: TRACE_SIGNAL_* (0 delivered, 1 ignored, 2 already pending, ...) */
	__u32 group;  /* generate: to the whole process */
	__u32 sa_flags; /* deliver */
	__u64 handler;	/* deliver: 0 SIG_DFL, 1 SIG_IGN */
	char target_comm[WEIR_COMM_LEN];
};

/* One line of the process seed: what BPF's task iterator says of a thread that already runs. */
struct weir_seed {
	struct weir_task_id id;
	__u64 start_ns;
	__u64 cgroup;
	__u32 ppid;
	__u32 uid;
	__u32 kthread;
	__u32 pad;
	char comm[WEIR_COMM_LEN];
};

#endif /* WEIR_PROBES_H */
