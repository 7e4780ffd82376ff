/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * syscalls.bpf.h - system calls: entered with their raw arguments and the strings behind them, left
 * with their result.
 *
 * A string whose page is not in memory can't be read at the entry: a BPF program may not wait for a
 * disk. The call itself brings the page in, so what is missing is remembered, by thread, and read
 * again at the exit, whose record then carries it. An exec that works takes the caller's memory away;
 * then it is read from the copies that the kernel made for the new program.
 */
#ifndef WEIR_SYSCALLS_BPF_H
#define WEIR_SYSCALLS_BPF_H

#include "weir.bpf.h"
#include <bpf/bpf_tracing.h>

#include "scratch.bpf.h"
#include "select.bpf.h"
#include "sys_spec.h"
#include "task.bpf.h"

/* Set before load. */
const volatile __u32 weir_string_limit = 256;
const volatile bool weir_sys_others = false; /* calls whose number is not in the table */
const volatile bool weir_sys_exits = false;  /* on_sys_exit will be attached too */
const volatile bool weir_has_uid = false;    /* only calls of this user */
const volatile __u32 weir_uid = 0;
const volatile bool weir_has_cgroup = false; /* only calls from within weir_cgroup's element */

struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} weir_cgroup SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WEIR_SYS_SPECS);
	__type(key, __u32);
	__type(value, struct weir_sys_spec);
} weir_sys_spec SEC(".maps");

/*
 * Blobs are appended to a scratch whose tail is as long as the longest one, so that the verifier
 * sees that no append can leave it: an append starts at BLOBS_BYTES at most.
 */
#define BLOB_MAX    (sizeof(struct weir_blob) + WEIR_STRING_MAX + 8)
#define BLOBS_BYTES (WEIR_SYS_BLOBS * BLOB_MAX)

struct blobs {
	char bytes[BLOBS_BYTES + 2 * BLOB_MAX];
};

struct enter_scratch {
	struct weir_sys_enter enter;
	struct blobs blobs;
};

struct exit_scratch {
	struct weir_sys_exit exit;
	struct blobs blobs;
};

SCRATCH(enter_scratch, struct enter_scratch);
SCRATCH(exit_scratch, struct exit_scratch);

/* A call: its number, and which table that belongs to. */
struct call {
	__u32 nr;
	__u8 abi;
};

/* What a thread's call could not read at its entry. */
struct unread {
	struct call call;
	__u32 args_unread; /* bit i: args[i] */
	__u64 args[WEIR_SYS_ARGS];
	bool execed; /* by then, it has become another program */
	bool script; /* whose arguments are not those that the call had */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct unread);
} sys_unread SEC(".maps");

/* Entries in sys_unread: exits look for theirs only while there is one. */
__u64 sys_outstanding = 0;

#if defined(__TARGET_ARCH_x86)

#define X32_BIT	  0x40000000u
#define TS_COMPAT 0x0002u

static __always_inline bool is_compat(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();

	return ((struct thread_info___x86 *)&task->thread_info)->status & TS_COMPAT;
}

static __always_inline struct call make_call(__u32 id)
{
	if (is_compat())
		return (struct call){.nr = id, .abi = WEIR_ABI_32};
	if ((__s32)id >= 0 && (id & X32_BIT))
		return (struct call){.nr = id & ~X32_BIT, .abi = WEIR_ABI_X32};
	return (struct call){.nr = id, .abi = WEIR_ABI_NATIVE};
}

/* At the exit. A sigreturn has put another number there: -1. */
static __always_inline struct call call_of(const struct pt_regs *regs)
{
	return make_call(regs->orig_ax);
}

static __always_inline void copy_args(__u64 *args, const struct pt_regs *regs, __u8 abi)
{
	if (abi == WEIR_ABI_32) {
		args[0] = (__u32)regs->bx;
		args[1] = (__u32)regs->cx;
		args[2] = (__u32)regs->dx;
		args[3] = (__u32)regs->si;
		args[4] = (__u32)regs->di;
		args[5] = (__u32)regs->bp;
		return;
	}
	args[0] = regs->di;
	args[1] = regs->si;
	args[2] = regs->dx;
	args[3] = regs->r10;
	args[4] = regs->r8;
	args[5] = regs->r9;
}

#elif defined(__TARGET_ARCH_arm64)

#define TIF_32BIT (1ul << 22)

static __always_inline bool is_compat(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();

	return task->thread_info.flags & TIF_32BIT;
}

static __always_inline struct call make_call(__u32 id)
{
	return (struct call){.nr = id, .abi = is_compat() ? WEIR_ABI_32 : WEIR_ABI_NATIVE};
}

static __always_inline struct call call_of(const struct pt_regs *regs)
{
	return make_call(regs->syscallno);
}

static __always_inline void copy_args(__u64 *args, const struct pt_regs *regs, __u8 abi)
{
	__u64 mask = abi == WEIR_ABI_32 ? 0xffffffff : ~0ul;

	args[0] = regs->regs[0] & mask;
	args[1] = regs->regs[1] & mask;
	args[2] = regs->regs[2] & mask;
	args[3] = regs->regs[3] & mask;
	args[4] = regs->regs[4] & mask;
	args[5] = regs->regs[5] & mask;
}

#endif

/* NULL: no such number in the table. */
static __always_inline const struct weir_sys_spec *find_spec(const struct call *call)
{
	__u32 element = call->abi * WEIR_SYS_NR_MAX + call->nr;

	if (call->nr >= WEIR_SYS_NR_MAX)
		return NULL;
	return bpf_map_lookup_elem(&weir_sys_spec, &element);
}

static __always_inline bool selected_caller(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();

	if (weir_has_uid && task->cred->euid.val != weir_uid)
		return false;
	return !weir_has_cgroup || bpf_current_task_under_cgroup(&weir_cgroup, 0) == 1;
}

/* Is this call of this process wanted? Counted when it is not. */
static __always_inline bool selected_call(__u32 pid, const struct weir_sys_spec *spec)
{
	if (!selected_process(CLASS_CPU, pid))
		return false;
	if ((spec ? spec->selected : weir_sys_others) && selected_caller())
		return true;
	weir_count_filtered(CLASS_CPU);
	return false;
}

static __always_inline __u32 string_limit(void)
{
	return weir_string_limit < WEIR_STRING_MAX ? weir_string_limit : WEIR_STRING_MAX;
}

/*
 * Reading returns how many bytes are kept, or a negative errno; `flags` gets WEIR_BLOB_CUT when there
 * were more. Strings are read with room for one more byte than is kept, to tell.
 */
static __always_inline long read_str(char *to, __u64 from, __u8 *flags)
{
	__u32 limit = string_limit();
	long len = bpf_probe_read_user_str(to, limit + 2, (void *)from);

	if (len <= 0)
		return len;
	len--;
	if (len > limit) {
		len = limit;
		*flags |= WEIR_BLOB_CUT;
	}
	return len;
}

static __always_inline long read_bytes(char *to, __u64 from, __u64 len, __u64 limit, __u8 *flags)
{
	long err;

	if (len > limit) {
		len = limit;
		*flags |= WEIR_BLOB_CUT;
	}
	err = bpf_probe_read_user(to, len, (void *)from);
	return err ? err : (long)len;
}

static __always_inline long read_timespec(char *to, __u64 from, __u8 how)
{
	__s64 *time = (__s64 *)to;
	__s32 narrow[2];
	long err;

	if (how & WEIR_SYS_NARROW) {
		err = bpf_probe_read_user(narrow, sizeof(narrow), (void *)from);
		time[0] = narrow[0];
		time[1] = narrow[1];
	} else {
		err = bpf_probe_read_user(time, 2 * sizeof(*time), (void *)from);
	}
	return err ? err : (long)(2 * sizeof(*time));
}

/* An array of pointers to strings, while it is read. */
struct strv {
	char *to;
	__u64 from;
	__u32 narrow; /* pointers of 32 bits */
	__u32 len;
	int err;
	__u32 cut;
};

static __always_inline int read_pointer(__u64 *to, const struct strv *v, __u32 i)
{
	*to = 0;
	if (v->narrow)
		return bpf_probe_read_user(to, 4, (void *)(v->from + (__u64)i * 4));
	return bpf_probe_read_user(to, 8, (void *)(v->from + (__u64)i * 8));
}

/* Each string takes a byte at least: after WEIR_STRV_MAX of them there is no room. 1: done. */
static long read_strv_next(__u32 i, struct strv *v)
{
	__u32 len = v->len, room;
	__u64 string;
	long n;

	v->err = read_pointer(&string, v, i);
	if (v->err || !string)
		return 1;
	if (len >= WEIR_STRV_MAX) {
		v->cut = 1;
		return 1;
	}
	room = WEIR_STRV_MAX - len;
	n = bpf_probe_read_user_str(v->to + len, room + 1, (void *)string);
	if (n < 0) {
		v->err = n;
		return 1;
	}
	if (n > room) {
		v->to[WEIR_STRV_MAX - 1] = 0;
		v->len = WEIR_STRV_MAX;
		v->cut = 1;
		return 1;
	}
	v->len = len + n;
	return 0;
}

static __always_inline long read_strv(char *to, __u64 from, __u8 abi, __u8 *flags)
{
	struct strv v = {.to = to, .from = from, .narrow = abi != WEIR_ABI_NATIVE};

	bpf_loop(WEIR_STRV_MAX + 1, read_strv_next, &v, 0);
	if (v.err)
		return v.err;
	if (v.cut)
		*flags |= WEIR_BLOB_CUT;
	return v.len;
}

/* A call's arguments and what is read of them. */
struct reading {
	struct blobs *to;
	const struct weir_sys_spec *spec;
	const __u64 *args;
	__u32 abi;
	__u32 want;   /* bit i: args[i] */
	__u32 unread; /* the same: could not be read */
	__u32 count;
	__u32 len;
	bool again; /* at the exit: what still can't be read is left out */
	bool execed, script;
};

static __always_inline long read_blob(struct weir_blob *head, const struct reading *r, __u64 from,
				      const struct weir_sys_blob *blob)
{
	char *to = (char *)(head + 1);
	__u32 limit = string_limit(), len_arg = blob->len_arg;

	if (head->kind == WEIR_BLOB_STRV)
		return read_strv(to, from, r->abi, &head->flags);
	if (head->kind == WEIR_BLOB_TIMESPEC)
		return read_timespec(to, from, blob->how);
	if (len_arg >= WEIR_SYS_ARGS)
		return read_str(to, from, &head->flags);
	if (head->kind == WEIR_BLOB_SOCKADDR)
		limit = WEIR_SOCKADDR_MAX;
	return read_bytes(to, from, (__u32)r->args[len_arg], limit, &head->flags);
}

/*
 * After an exec the caller's memory is gone, but the new program's stack has copies of what the
 * kernel took from it: the arguments, the environment, and above that the path.
 */
static __always_inline long read_execed(struct weir_blob *head, const struct reading *r)
{
	const struct mm_struct *mm = bpf_get_current_task_btf()->mm;
	char *to = (char *)(head + 1);

	if (head->kind == WEIR_BLOB_STR)
		return read_str(to, mm->env_end, &head->flags);
	if (r->script)
		return -1;
	return read_bytes(to, mm->arg_start, mm->arg_end - mm->arg_start, WEIR_STRV_MAX,
			  &head->flags);
}

static __always_inline bool condition_holds(const struct reading *r)
{
	__u32 arg = r->spec->when_arg, value;

	if (arg >= WEIR_SYS_ARGS)
		return false;
	value = (__u32)r->args[arg] & r->spec->when_bits;
	return value < 64 && r->spec->when_values >> value & 1;
}

/* The address that is to be read; 0: there is none. */
static __always_inline __u64 address_of(const struct reading *r, const struct weir_sys_blob *blob)
{
	__u32 arg = blob->arg;

	if (arg >= WEIR_SYS_ARGS || !(r->want & (1u << arg)))
		return 0;
	return blob->how & WEIR_SYS_WHEN && !condition_holds(r) ? 0 : r->args[arg];
}

/* Append what the i-th line of the spec says. 1: done. */
static long append_blob(__u32 i, struct reading *r)
{
	const struct weir_sys_blob *blob;
	struct weir_blob *head;
	__u64 from;
	__u32 arg;
	long len;

	if (i >= WEIR_SYS_BLOBS || r->len > BLOBS_BYTES)
		return 1;
	blob = &r->spec->blobs[i];
	arg = blob->arg;
	from = address_of(r, blob);
	if (!from)
		return 0;

	head = (struct weir_blob *)(r->to->bytes + r->len);
	head->arg = arg;
	head->kind = blob->kind;
	head->flags = 0;
	head->pad = 0;
	if (r->again && blob->how & WEIR_SYS_ONCE)
		len = -1;
	else
		len = r->execed ? read_execed(head, r) : read_blob(head, r, from, blob);
	if (len < 0 || len > WEIR_STRING_MAX) {
		r->unread |= 1u << arg;
		if (r->again)
			return 0;
		head->flags = WEIR_BLOB_UNREAD;
		len = 0;
	}
	head->len = len;
	/* The padding: no old bytes go out. */
	__builtin_memset((char *)(head + 1) + len, 0, 8);
	r->len += sizeof(*head) + ((len + 7) & ~7ul);
	r->count++;
	return 0;
}

/* Returns their length. */
static __always_inline __u64 read_blobs(struct reading *r)
{
	__u64 n = r->spec->nblobs;

	bpf_loop(n < WEIR_SYS_BLOBS ? n : WEIR_SYS_BLOBS, append_blob, r, 0);
	n = r->len;
	return n < BLOBS_BYTES ? n : BLOBS_BYTES;
}

static __always_inline __u32 count_args(__u32 bits)
{
	__u32 n = 0;

	for (int i = 0; i < WEIR_SYS_ARGS; i++)
		n += (bits >> i) & 1;
	return n;
}

static __always_inline void keep(__u32 tid, const struct unread *u)
{
	if (weir_sys_exits && bpf_map_update_elem(&sys_unread, &tid, u, BPF_NOEXIST) == 0)
		__sync_fetch_and_add(&sys_outstanding, 1);
	else
		weir_count_unread(CLASS_CPU, count_args(u->args_unread));
}

static __always_inline bool forget(__u32 tid)
{
	if (bpf_map_delete_elem(&sys_unread, &tid))
		return false;
	__sync_fetch_and_add(&sys_outstanding, -1);
	return true;
}

/* What a thread still has to read will not be read any more. */
static __always_inline void give_up(__u32 tid)
{
	struct unread *u = NULL;
	__u32 n;

	if (sys_outstanding)
		u = bpf_map_lookup_elem(&sys_unread, &tid);
	if (!u)
		return;
	n = count_args(u->args_unread);
	if (forget(tid))
		weir_count_unread(CLASS_CPU, n);
}

static __always_inline void remember(__u32 tid, const struct call *call, const struct reading *r)
{
	struct unread u = {.call = *call, .args_unread = r->unread};

	__builtin_memcpy(u.args, r->args, sizeof(u.args));
	give_up(tid); /* a call whose exit was not seen */
	keep(tid, &u);
}

/* What perf hands to programs at raw_syscalls, behind what all of its events begin with. */
struct perf_sys_enter {
	__u64 common;
	__s64 id;
	__u64 args[WEIR_SYS_ARGS];
};

struct perf_sys_exit {
	__u64 common;
	__s64 id;
	__s64 ret;
};

/* Where an entry's arguments stand: one of them. */
struct entry {
	const struct pt_regs *regs;
	const struct perf_sys_enter *event;
};

static __always_inline void take_args(__u64 *args, const struct entry *entry, __u8 abi)
{
	if (entry->regs) {
		copy_args(args, entry->regs, abi);
		return;
	}
	for (int i = 0; i < WEIR_SYS_ARGS; i++)
		args[i] = abi == WEIR_ABI_32 ? (__u32)entry->event->args[i] : entry->event->args[i];
}

static __always_inline int enter_plain(struct weir_task_id id, const struct entry *entry,
				       const struct call *call)
{
	struct {
		struct weir_record rec;
		struct weir_sys_enter enter;
	} * r;
	struct weir_ticket t;

	r = weir_reserve(&t, CLASS_CPU, WEIR_T_SYS_ENTER, sizeof(*r));
	if (!r)
		return 0;
	r->enter.id = id;
	r->enter.nr = call->nr;
	r->enter.abi = call->abi;
	r->enter.blobs = 0;
	r->enter.pad = 0;
	take_args(r->enter.args, entry, call->abi);
	weir_submit(&t, r);
	return 0;
}

static __always_inline int enter_with_blobs(struct weir_task_id id, const struct entry *entry,
					    const struct call *call,
					    const struct weir_sys_spec *spec)
{
	struct reading reading = {.spec = spec, .abi = call->abi, .want = ~0u};
	struct enter_scratch *s;
	__u32 zero = 0;
	__u64 len;

	s = bpf_map_lookup_elem(&enter_scratch, &zero);
	if (!s)
		return 0;
	s->enter.id = id;
	s->enter.nr = call->nr;
	s->enter.abi = call->abi;
	s->enter.pad = 0;
	take_args(s->enter.args, entry, call->abi);
	reading.to = &s->blobs;
	reading.args = s->enter.args;
	/* Without blobs the record has a fixed size, which is cheaper. */
	if (spec->seldom && !address_of(&reading, &spec->blobs[0]))
		return enter_plain(id, entry, call);
	len = read_blobs(&reading);
	s->enter.blobs = reading.count;
	if (reading.unread)
		remember(id.tid, call, &reading);
	weir_emit(CLASS_CPU, WEIR_T_SYS_ENTER, s, sizeof(s->enter) + len);
	return 0;
}

static __always_inline int enter(const struct entry *entry, __u32 nr)
{
	struct weir_task_id who = current_id();
	struct call call = make_call(nr);
	const struct weir_sys_spec *spec = find_spec(&call);

	if (!selected_call(who.pid, spec))
		return 0;
	if (spec && spec->nblobs)
		return enter_with_blobs(who, entry, &call, spec);
	return enter_plain(who, entry, &call);
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_sys_enter, struct pt_regs *regs, long id)
{
	const struct entry entry = {.regs = regs};

	return enter(&entry, id);
}

/*
 * The same by way of perf, which keeps preemption off around its programs (probes/programs.c says
 * when that is needed). 1: whoever else has an event there gets it.
 */
SEC("tp/raw_syscalls/sys_enter")
int perf_enter(struct perf_sys_enter *event)
{
	const struct entry entry = {.event = event};

	enter(&entry, event->id);
	return 1;
}

static __always_inline int exit_plain(struct weir_task_id id, const struct call *call, long ret)
{
	struct {
		struct weir_record rec;
		struct weir_sys_exit exit;
	} * r;
	struct weir_ticket t;

	r = weir_reserve(&t, CLASS_CPU, WEIR_T_SYS_EXIT, sizeof(*r));
	if (!r)
		return 0;
	r->exit.id = id;
	r->exit.nr = call->nr;
	r->exit.abi = call->abi;
	r->exit.blobs = 0;
	r->exit.pad = 0;
	r->exit.ret = ret;
	weir_submit(&t, r);
	return 0;
}

static __always_inline int exit_with_blobs(struct weir_task_id id, const struct call *call,
					   long ret, const struct weir_sys_spec *spec,
					   struct unread *u)
{
	struct reading reading = {
		.spec = spec,
		.args = u->args,
		.abi = call->abi,
		.want = u->args_unread,
		.again = true,
		.execed = u->execed,
		.script = u->script,
	};
	struct exit_scratch *s;
	__u32 zero = 0;
	__u64 len;

	s = bpf_map_lookup_elem(&exit_scratch, &zero);
	if (!s)
		return 0;
	s->exit.id = id;
	s->exit.nr = call->nr;
	s->exit.abi = call->abi;
	s->exit.pad = 0;
	s->exit.ret = ret;
	reading.to = &s->blobs;
	len = read_blobs(&reading);
	s->exit.blobs = reading.count;
	u->args_unread = reading.unread;
	give_up(id.tid);
	weir_emit(CLASS_CPU, WEIR_T_SYS_EXIT, s, sizeof(s->exit) + len);
	return 0;
}

static __always_inline int leave(struct call call, long ret)
{
	struct weir_task_id who = current_id();
	const struct weir_sys_spec *spec = find_spec(&call);
	struct unread *u = NULL;

	if (!selected_call(who.pid, spec))
		return 0;
	if (sys_outstanding)
		u = bpf_map_lookup_elem(&sys_unread, &who.tid);
	if (spec && u && u->call.nr == call.nr && u->call.abi == call.abi)
		return exit_with_blobs(who, &call, ret, spec, u);
	return exit_plain(who, &call, ret);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_sys_exit, struct pt_regs *regs, long ret)
{
	return leave(call_of(regs), ret);
}

SEC("tp/raw_syscalls/sys_exit")
int perf_exit(struct perf_sys_exit *event)
{
	leave(make_call(event->id), event->ret);
	return 1;
}

/* A thread that is not the leader takes the leader's number when it execs. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(keep_exec, struct task_struct *task, int old_tid, struct linux_binprm *bprm)
{
	struct unread kept, *u = NULL;
	__u32 tid = old_tid;

	if (sys_outstanding)
		u = bpf_map_lookup_elem(&sys_unread, &tid);
	if (!u)
		return 0;
	kept = *u;
	kept.execed = true;
	kept.script = bprm->interp != bprm->filename;
	forget(tid);
	keep(task->pid, &kept);
	return 0;
}

/* Calls that never return. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(drop_exit, struct task_struct *task)
{
	give_up(task->pid);
	return 0;
}

#endif /* WEIR_SYSCALLS_BPF_H */
