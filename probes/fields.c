// SPDX-License-Identifier: BSD-2-Clause
/*
 * fields.c - the tables behind fields.h.
 *
 * Owns the names of events and arguments and the words for kernel numbers. Promises that the fields
 * of a record that are no views cover its fixed part without a hole or an overlap. Must not know
 * what is done with a field.
 */
#include "probes/fields.h"

#include <string.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

#define AT(record, member) \
	offsetof(struct record, member), sizeof(((const struct record *)NULL)->member)
#define NOWHERE	     0, 0
#define WORDS(array) .words = (array), .nr_words = ARRAY_SIZE(array)

/* Numbers of x86 and arm. Real-time signals count from the kernel's SIGRTMIN, 32. */
static const char *const signal_words[] = {
	[1] = "SIGHUP",	   [2] = "SIGINT",     [3] = "SIGQUIT",	  [4] = "SIGILL",
	[5] = "SIGTRAP",   [6] = "SIGABRT",    [7] = "SIGBUS",	  [8] = "SIGFPE",
	[9] = "SIGKILL",   [10] = "SIGUSR1",   [11] = "SIGSEGV",  [12] = "SIGUSR2",
	[13] = "SIGPIPE",  [14] = "SIGALRM",   [15] = "SIGTERM",  [16] = "SIGSTKFLT",
	[17] = "SIGCHLD",  [18] = "SIGCONT",   [19] = "SIGSTOP",  [20] = "SIGTSTP",
	[21] = "SIGTTIN",  [22] = "SIGTTOU",   [23] = "SIGURG",	  [24] = "SIGXCPU",
	[25] = "SIGXFSZ",  [26] = "SIGVTALRM", [27] = "SIGPROF",  [28] = "SIGWINCH",
	[29] = "SIGIO",	   [30] = "SIGPWR",    [31] = "SIGSYS",	  [32] = "SIGRT_0",
	[33] = "SIGRT_1",  [34] = "SIGRT_2",   [35] = "SIGRT_3",  [36] = "SIGRT_4",
	[37] = "SIGRT_5",  [38] = "SIGRT_6",   [39] = "SIGRT_7",  [40] = "SIGRT_8",
	[41] = "SIGRT_9",  [42] = "SIGRT_10",  [43] = "SIGRT_11", [44] = "SIGRT_12",
	[45] = "SIGRT_13", [46] = "SIGRT_14",  [47] = "SIGRT_15", [48] = "SIGRT_16",
	[49] = "SIGRT_17", [50] = "SIGRT_18",  [51] = "SIGRT_19", [52] = "SIGRT_20",
	[53] = "SIGRT_21", [54] = "SIGRT_22",  [55] = "SIGRT_23", [56] = "SIGRT_24",
	[57] = "SIGRT_25", [58] = "SIGRT_26",  [59] = "SIGRT_27", [60] = "SIGRT_28",
	[61] = "SIGRT_29", [62] = "SIGRT_30",  [63] = "SIGRT_31", [64] = "SIGRT_32",
};

/* TRACE_SIGNAL_* of the tracepoint signal_generate. */
static const char *const signal_results[] = {
	"delivered", "ignored", "already_pending", "overflow_fail", "lose_info",
};

static const char *const generated[] = {"generated"};
static const char *const delivered[] = {"delivered"};

enum task_state {
	STATE_RUNNABLE,
	STATE_PREEMPTED,
	STATE_SLEEPING,
	STATE_BLOCKED,
	STATE_STOPPED,
	STATE_TRACED,
	STATE_DEAD,
	STATE_ZOMBIE,
	STATE_PARKED,
	STATE_IDLE,
	STATE_OTHER,
};

/* The letters of ps and of the kernel's own sched_switch format. */
static const char *const state_words[] = {
	[STATE_RUNNABLE] = "R", [STATE_PREEMPTED] = "R+", [STATE_SLEEPING] = "S",
	[STATE_BLOCKED] = "D",	[STATE_STOPPED] = "T",	  [STATE_TRACED] = "t",
	[STATE_DEAD] = "X",	[STATE_ZOMBIE] = "Z",	  [STATE_PARKED] = "P",
	[STATE_IDLE] = "I",	[STATE_OTHER] = "?",
};

/* TASK_* and EXIT_* of 5.0 and later, lowest bit first. */
static const struct {
	uint32_t bit;
	enum task_state state;
} state_bits[] = {
	{0x0001, STATE_SLEEPING}, /* TASK_INTERRUPTIBLE */
	{0x0002, STATE_BLOCKED},  /* TASK_UNINTERRUPTIBLE */
	{0x0004, STATE_STOPPED},  /* __TASK_STOPPED */
	{0x0008, STATE_TRACED},	  /* __TASK_TRACED */
	{0x0010, STATE_DEAD},	  /* EXIT_DEAD */
	{0x0020, STATE_ZOMBIE},	  /* EXIT_ZOMBIE */
	{0x0040, STATE_PARKED},	  /* TASK_PARKED */
	{0x0080, STATE_DEAD},	  /* TASK_DEAD: the last switch of a task */
	{0x1000, STATE_BLOCKED},  /* TASK_RTLOCK_WAIT */
	{0x8000, STATE_BLOCKED},  /* TASK_FROZEN */
};
#define TASK_IDLE 0x0402 /* TASK_UNINTERRUPTIBLE that does not count as load */

/* Preempted on its way to sleep is still preempted: the state bits have not taken effect. */
static uint64_t switch_state(const void *payload)
{
	struct weir_switch record;

	memcpy(&record, payload, sizeof(record));
	if (record.preempt)
		return STATE_PREEMPTED;
	if (!record.prev_state)
		return STATE_RUNNABLE;
	if ((record.prev_state & TASK_IDLE) == TASK_IDLE)
		return STATE_IDLE;
	for (size_t i = 0; i < ARRAY_SIZE(state_bits); i++) {
		if (record.prev_state & state_bits[i].bit)
			return state_bits[i].state;
	}
	return STATE_OTHER;
}

static uint64_t fork_is_thread(const void *payload)
{
	struct weir_fork record;

	memcpy(&record, payload, sizeof(record));
	return record.child.pid == record.parent.pid;
}

/* clang-format off */
static const struct field fork_fields[] = {
	{ "pid", WEIR_ARG_UINT, FIELD_PID, AT(weir_fork, parent.pid) },
	{ "tid", WEIR_ARG_UINT, FIELD_TID, AT(weir_fork, parent.tid) },
	{ "comm", WEIR_ARG_STR, FIELD_COMM, AT(weir_fork, comm) },
	{ "child_pid", WEIR_ARG_UINT, FIELD_ARG, AT(weir_fork, child.pid) },
	{ "child_tid", WEIR_ARG_UINT, FIELD_ARG, AT(weir_fork, child.tid) },
	{ "thread", WEIR_ARG_BOOL, FIELD_ARG | FIELD_VIEW, NOWHERE, .value = fork_is_thread },
	{ "child_start_ns", WEIR_ARG_UINT, 0, AT(weir_fork, child_start_ns) },
	{ "child_cgroup", WEIR_ARG_HEX, 0, AT(weir_fork, child_cgroup) },
};

static const struct field exec_fields[] = {
	{ "pid", WEIR_ARG_UINT, FIELD_PID, AT(weir_exec, id.pid) },
	{ "tid", WEIR_ARG_UINT, FIELD_TID, AT(weir_exec, id.tid) },
	{ "comm", WEIR_ARG_STR, FIELD_COMM, AT(weir_exec, comm) },
	{ "path", WEIR_ARG_STR, FIELD_ARG | FIELD_TAIL, AT(weir_exec, path_len),
	  .cut = WEIR_EXEC_PATH_CUT },
	{ "argv", WEIR_ARG_STRV, FIELD_ARG | FIELD_TAIL, AT(weir_exec, argv_len),
	  .cut = WEIR_EXEC_ARGV_CUT, .unread = WEIR_EXEC_ARGV_UNREAD },
	{ "old_tid", WEIR_ARG_UINT, FIELD_ARG, AT(weir_exec, old_tid) },
	{ "ppid", WEIR_ARG_UINT, FIELD_ARG, AT(weir_exec, ppid) },
	{ "uid", WEIR_ARG_UINT, FIELD_ARG, AT(weir_exec, uid) },
	{ "cgroup", WEIR_ARG_HEX, FIELD_ARG, AT(weir_exec, cgroup) },
	{ "start_ns", WEIR_ARG_UINT, 0, AT(weir_exec, start_ns) },
	{ "flags", WEIR_ARG_HEX, 0, AT(weir_exec, flags) },
	{ "pad", WEIR_ARG_UINT, 0, AT(weir_exec, pad) },
};

static const struct field exit_fields[] = {
	{ "pid", WEIR_ARG_UINT, FIELD_PID, AT(weir_exit, id.pid) },
	{ "tid", WEIR_ARG_UINT, FIELD_TID, AT(weir_exit, id.tid) },
	{ "comm", WEIR_ARG_STR, FIELD_COMM, AT(weir_exit, comm) },
	{ "code", WEIR_ARG_UINT, FIELD_ARG, AT(weir_exit, code) },
	{ "signal", WEIR_ARG_WORD, FIELD_ARG | FIELD_VIEW | FIELD_NONZERO, AT(weir_exit, signal),
	  WORDS(signal_words) },
	{ "signo", WEIR_ARG_UINT, FIELD_ARG | FIELD_NONZERO, AT(weir_exit, signal) },
	{ "core", WEIR_ARG_BOOL, FIELD_ARG | FIELD_VIEW, AT(weir_exit, flags),
	  .mask = WEIR_EXIT_CORE },
	{ "process", WEIR_ARG_BOOL, FIELD_ARG | FIELD_VIEW, AT(weir_exit, flags),
	  .mask = WEIR_EXIT_PROCESS },
	{ "flags", WEIR_ARG_HEX, 0, AT(weir_exit, flags) },
	{ "ppid", WEIR_ARG_UINT, 0, AT(weir_exit, ppid) },
	{ "start_ns", WEIR_ARG_UINT, 0, AT(weir_exit, start_ns) },
};

static const struct field rename_fields[] = {
	{ "pid", WEIR_ARG_UINT, FIELD_PID, AT(weir_rename, id.pid) },
	{ "tid", WEIR_ARG_UINT, FIELD_TID, AT(weir_rename, id.tid) },
	{ "comm", WEIR_ARG_STR, FIELD_COMM | FIELD_ARG, AT(weir_rename, comm) },
	{ "start_ns", WEIR_ARG_UINT, 0, AT(weir_rename, start_ns) },
};

static const struct field cgroup_mkdir_fields[] = {
	{ "path", WEIR_ARG_STR, FIELD_ARG | FIELD_TAIL, AT(weir_cgroup_mkdir, path_len) },
	{ "cgroup", WEIR_ARG_HEX, FIELD_ARG, AT(weir_cgroup_mkdir, cgroup) },
	{ "hierarchy", WEIR_ARG_UINT, FIELD_ARG, AT(weir_cgroup_mkdir, hierarchy) },
	{ "is_v2", WEIR_ARG_BOOL, FIELD_ARG, AT(weir_cgroup_mkdir, is_v2) },
};

static const struct field cgroup_attach_fields[] = {
	{ "pid", WEIR_ARG_UINT, FIELD_PID, AT(weir_cgroup_attach, id.pid) },
	{ "tid", WEIR_ARG_UINT, FIELD_TID, AT(weir_cgroup_attach, id.tid) },
	{ "path", WEIR_ARG_STR, FIELD_ARG | FIELD_TAIL, AT(weir_cgroup_attach, path_len) },
	{ "cgroup", WEIR_ARG_HEX, FIELD_ARG, AT(weir_cgroup_attach, cgroup) },
	{ "hierarchy", WEIR_ARG_UINT, FIELD_ARG, AT(weir_cgroup_attach, hierarchy) },
	{ "is_v2", WEIR_ARG_BOOL, FIELD_ARG, AT(weir_cgroup_attach, is_v2) },
	{ "process", WEIR_ARG_BOOL, FIELD_ARG, AT(weir_cgroup_attach, process) },
	{ "start_ns", WEIR_ARG_UINT, 0, AT(weir_cgroup_attach, start_ns) },
	{ "pad", WEIR_ARG_UINT, 0, AT(weir_cgroup_attach, pad) },
};

/* The number and the ABI stand before what can only be named with them. */
static const struct field sys_enter_fields[] = {
	{ "pid", WEIR_ARG_UINT, FIELD_PID, AT(weir_sys_enter, id.pid) },
	{ "tid", WEIR_ARG_UINT, FIELD_TID, AT(weir_sys_enter, id.tid) },
	{ "nr", WEIR_ARG_UINT, FIELD_NR, AT(weir_sys_enter, nr) },
	{ "abi", WEIR_ARG_UINT, FIELD_ABI, AT(weir_sys_enter, abi) },
	{ "args", WEIR_ARG_HEX, FIELD_CALL_ARGS, AT(weir_sys_enter, args) },
	{ "blobs", WEIR_ARG_UINT, FIELD_BLOBS, AT(weir_sys_enter, blobs) },
	{ "pad", WEIR_ARG_UINT, 0, AT(weir_sys_enter, pad) },
};

static const struct field sys_exit_fields[] = {
	{ "pid", WEIR_ARG_UINT, FIELD_PID, AT(weir_sys_exit, id.pid) },
	{ "tid", WEIR_ARG_UINT, FIELD_TID, AT(weir_sys_exit, id.tid) },
	{ "nr", WEIR_ARG_UINT, FIELD_NR, AT(weir_sys_exit, nr) },
	{ "abi", WEIR_ARG_UINT, FIELD_ABI, AT(weir_sys_exit, abi) },
	{ "ret", WEIR_ARG_INT, FIELD_ARG, AT(weir_sys_exit, ret) },
	{ "blobs", WEIR_ARG_UINT, FIELD_BLOBS, AT(weir_sys_exit, blobs) },
	{ "pad", WEIR_ARG_UINT, 0, AT(weir_sys_exit, pad) },
};

static const struct field switch_fields[] = {
	{ "prev_pid", WEIR_ARG_UINT, FIELD_ARG | FIELD_PID, AT(weir_switch, prev.pid) },
	{ "prev_tid", WEIR_ARG_UINT, FIELD_ARG | FIELD_TID, AT(weir_switch, prev.tid) },
	{ "prev_comm", WEIR_ARG_STR, FIELD_ARG | FIELD_COMM, AT(weir_switch, prev_comm) },
	{ "prev_prio", WEIR_ARG_INT, FIELD_ARG, AT(weir_switch, prev_prio) },
	{ "prev_state", WEIR_ARG_WORD, FIELD_ARG, AT(weir_switch, prev_state),
	  .value = switch_state, WORDS(state_words) },
	{ "preempt", WEIR_ARG_BOOL, 0, AT(weir_switch, preempt) },
	{ "next_pid", WEIR_ARG_UINT, FIELD_ARG, AT(weir_switch, next.pid) },
	{ "next_tid", WEIR_ARG_UINT, FIELD_ARG, AT(weir_switch, next.tid) },
	{ "next_comm", WEIR_ARG_STR, FIELD_ARG, AT(weir_switch, next_comm) },
	{ "next_prio", WEIR_ARG_INT, FIELD_ARG, AT(weir_switch, next_prio) },
};

static const struct field wakeup_fields[] = {
	{ "pid", WEIR_ARG_UINT, FIELD_PID, AT(weir_wakeup, waker.pid) },
	{ "tid", WEIR_ARG_UINT, FIELD_TID, AT(weir_wakeup, waker.tid) },
	{ "target_pid", WEIR_ARG_UINT, FIELD_ARG, AT(weir_wakeup, target.pid) },
	{ "target_tid", WEIR_ARG_UINT, FIELD_ARG, AT(weir_wakeup, target.tid) },
	{ "target_comm", WEIR_ARG_STR, FIELD_ARG, AT(weir_wakeup, target_comm) },
	{ "prio", WEIR_ARG_INT, FIELD_ARG, AT(weir_wakeup, prio) },
	{ "target_cpu", WEIR_ARG_UINT, FIELD_ARG, AT(weir_wakeup, target_cpu) },
	{ "new", WEIR_ARG_BOOL, FIELD_ARG, AT(weir_wakeup, is_new) },
	{ "pad", WEIR_ARG_UINT, 0, AT(weir_wakeup, pad) },
};

static const struct field migrate_fields[] = {
	{ "pid", WEIR_ARG_UINT, FIELD_PID, AT(weir_migrate, current.pid) },
	{ "tid", WEIR_ARG_UINT, FIELD_TID, AT(weir_migrate, current.tid) },
	{ "target_pid", WEIR_ARG_UINT, FIELD_ARG, AT(weir_migrate, target.pid) },
	{ "target_tid", WEIR_ARG_UINT, FIELD_ARG, AT(weir_migrate, target.tid) },
	{ "target_comm", WEIR_ARG_STR, FIELD_ARG, AT(weir_migrate, target_comm) },
	{ "prio", WEIR_ARG_INT, FIELD_ARG, AT(weir_migrate, prio) },
	{ "orig_cpu", WEIR_ARG_UINT, FIELD_ARG, AT(weir_migrate, orig_cpu) },
	{ "dest_cpu", WEIR_ARG_UINT, FIELD_ARG, AT(weir_migrate, dest_cpu) },
	{ "pad", WEIR_ARG_UINT, 0, AT(weir_migrate, pad) },
};

/* Both records of a signal have one layout, of which each uses a part. */
static const struct field signal_generate_fields[] = {
	{ "pid", WEIR_ARG_UINT, FIELD_PID, AT(weir_signal, id.pid) },
	{ "tid", WEIR_ARG_UINT, FIELD_TID, AT(weir_signal, id.tid) },
	{ "action", WEIR_ARG_WORD, FIELD_ARG | FIELD_VIEW, NOWHERE, WORDS(generated) },
	{ "sig", WEIR_ARG_WORD, FIELD_ARG | FIELD_VIEW, AT(weir_signal, sig), WORDS(signal_words) },
	{ "signo", WEIR_ARG_UINT, FIELD_ARG, AT(weir_signal, sig) },
	{ "code", WEIR_ARG_INT, FIELD_ARG, AT(weir_signal, code) },
	{ "errno", WEIR_ARG_INT, FIELD_ARG, AT(weir_signal, err) },
	{ "target_pid", WEIR_ARG_UINT, FIELD_ARG, AT(weir_signal, target.pid) },
	{ "target_tid", WEIR_ARG_UINT, FIELD_ARG, AT(weir_signal, target.tid) },
	{ "target_comm", WEIR_ARG_STR, FIELD_ARG, AT(weir_signal, target_comm) },
	{ "group", WEIR_ARG_BOOL, FIELD_ARG, AT(weir_signal, group) },
	{ "result", WEIR_ARG_WORD, FIELD_ARG, AT(weir_signal, result), WORDS(signal_results) },
	{ "handler", WEIR_ARG_HEX, 0, AT(weir_signal, handler) },
	{ "sa_flags", WEIR_ARG_HEX, 0, AT(weir_signal, sa_flags) },
};

static const struct field signal_deliver_fields[] = {
	{ "pid", WEIR_ARG_UINT, FIELD_PID, AT(weir_signal, id.pid) },
	{ "tid", WEIR_ARG_UINT, FIELD_TID, AT(weir_signal, id.tid) },
	{ "action", WEIR_ARG_WORD, FIELD_ARG | FIELD_VIEW, NOWHERE, WORDS(delivered) },
	{ "sig", WEIR_ARG_WORD, FIELD_ARG | FIELD_VIEW, AT(weir_signal, sig), WORDS(signal_words) },
	{ "signo", WEIR_ARG_UINT, FIELD_ARG, AT(weir_signal, sig) },
	{ "code", WEIR_ARG_INT, FIELD_ARG, AT(weir_signal, code) },
	{ "errno", WEIR_ARG_INT, FIELD_ARG, AT(weir_signal, err) },
	{ "handler", WEIR_ARG_HEX, FIELD_ARG, AT(weir_signal, handler) },
	{ "sa_flags", WEIR_ARG_HEX, FIELD_ARG, AT(weir_signal, sa_flags) },
	{ "target_pid", WEIR_ARG_UINT, 0, AT(weir_signal, target.pid) },
	{ "target_tid", WEIR_ARG_UINT, 0, AT(weir_signal, target.tid) },
	{ "comm", WEIR_ARG_STR, FIELD_COMM, AT(weir_signal, target_comm) },
	{ "group", WEIR_ARG_BOOL, 0, AT(weir_signal, group) },
	{ "result", WEIR_ARG_UINT, 0, AT(weir_signal, result) },
};
/* clang-format on */

#define FIELDS(array) .nr_fields = ARRAY_SIZE(array), .fields = (array)

/* clang-format off */
static const struct record_desc records[FIELDS_TYPES] = {
	[WEIR_T_FORK] = {
		sizeof(struct weir_fork), WEIR_GROUP_PROCESS, "fork", { "fork" },
		FIELDS(fork_fields),
	},
	[WEIR_T_EXEC] = {
		sizeof(struct weir_exec), WEIR_GROUP_PROCESS, "exec", { "exec" },
		.flags_offset = offsetof(struct weir_exec, flags),
		FIELDS(exec_fields),
		.first_behind = 3, .nr_behind = 2,
	},
	[WEIR_T_EXIT] = {
		sizeof(struct weir_exit), WEIR_GROUP_PROCESS, "exit", { "exit" },
		FIELDS(exit_fields),
	},
	[WEIR_T_RENAME] = {
		sizeof(struct weir_rename), WEIR_GROUP_NONE, "rename", { NULL },
		FIELDS(rename_fields),
	},
	[WEIR_T_CGROUP_MKDIR] = {
		sizeof(struct weir_cgroup_mkdir), WEIR_GROUP_NONE, "cgroup_mkdir", { NULL },
		FIELDS(cgroup_mkdir_fields),
		.first_behind = 0, .nr_behind = 1,
	},
	[WEIR_T_CGROUP_ATTACH] = {
		sizeof(struct weir_cgroup_attach), WEIR_GROUP_NONE, "cgroup_attach", { NULL },
		FIELDS(cgroup_attach_fields),
		.first_behind = 2, .nr_behind = 1,
	},
	[WEIR_T_SYS_ENTER] = {
		sizeof(struct weir_sys_enter), WEIR_GROUP_SYS, "sys_enter", { NULL },
		FIELDS(sys_enter_fields),
		.first_behind = 5, .nr_behind = 1,
	},
	[WEIR_T_SYS_EXIT] = {
		sizeof(struct weir_sys_exit), WEIR_GROUP_SYS, "sys_exit", { NULL },
		FIELDS(sys_exit_fields),
		.first_behind = 5, .nr_behind = 1,
	},
	[WEIR_T_SWITCH] = {
		sizeof(struct weir_switch), WEIR_GROUP_SCHED, "sched_switch",
		{ "switch", "sched_switch" },
		FIELDS(switch_fields),
	},
	[WEIR_T_WAKEUP] = {
		sizeof(struct weir_wakeup), WEIR_GROUP_SCHED, "sched_wakeup",
		{ "wakeup", "sched_wakeup" },
		FIELDS(wakeup_fields),
	},
	[WEIR_T_MIGRATE] = {
		sizeof(struct weir_migrate), WEIR_GROUP_SCHED, "sched_migrate",
		{ "migrate", "sched_migrate" },
		FIELDS(migrate_fields),
	},
	[WEIR_T_SIGNAL_GENERATE] = {
		sizeof(struct weir_signal), WEIR_GROUP_SIGNAL, "signal",
		{ "generated", "generate" },
		FIELDS(signal_generate_fields),
	},
	[WEIR_T_SIGNAL_DELIVER] = {
		sizeof(struct weir_signal), WEIR_GROUP_SIGNAL, "signal",
		{ "delivered", "deliver" },
		FIELDS(signal_deliver_fields),
	},
};
/* clang-format on */

static const char *const group_names[WEIR_GROUPS] = {
	[WEIR_GROUP_PROCESS] = "process",
	[WEIR_GROUP_SCHED] = "sched",
	[WEIR_GROUP_SIGNAL] = "signal",
	[WEIR_GROUP_SYS] = "sys",
};

const struct record_desc *fields__find(unsigned int type)
{
	return type < FIELDS_TYPES && records[type].fields ? &records[type] : NULL;
}

const char *fields__word(const struct field *field, uint64_t value)
{
	if (value >= field->nr_words || !field->words[value])
		return "unknown";
	return field->words[value];
}

const char *fields__group_name(enum weir_group group)
{
	return (unsigned int)group < WEIR_GROUPS ? group_names[group] : NULL;
}
