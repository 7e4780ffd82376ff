// SPDX-License-Identifier: BSD-2-Clause
/*
 * fds.c - owns the tables of descriptors, and what calls do to them.
 *
 * Promises that memory stays under the cap, that nothing is made up across a gap, and that a close
 * does not take what another thread has opened under the same number in the meantime.
 */
#include "state/fds.h"

#include "state/budget.h"
#include "state/hash.h"
#include "state/list.h"
#include "state/sockname.h"

#include <weir/probes.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define CAP_DEFAULT (16u << 20)
#define FIRST_BITS  8
#define TEXT_MAX    8192 /* a directory, and a path in it */

/* What dup and fork share: the kernel's open file description. */
struct file {
	unsigned int refs;
	char *text;
};

struct entry {
	struct hash_node node; /* by process and number */
	struct list_node of_proc;
	struct file *file;
	int32_t fd;
	bool cloexec;
	uint64_t since_ns;
};

struct proc {
	struct hash_node node;	/* by pid */
	struct list_node order; /* longest not heard of first */
	struct list_node entries;
};

struct fds {
	struct budget budget;
	struct hash procs, entries;
	struct list_node order;
	fds_resolver resolve;
	void *ctx;
	/* While set, a seed is about this kind of file only, and about descriptors that are not known. */
	const char *only;
	uint64_t only_since_ns;
};

/* ---- files and entries ------------------------------------------------------------------------ */

static void put_file(struct fds *fds, struct file *file)
{
	if (--file->refs)
		return;
	budget__free(&fds->budget, file->text);
	budget__free(&fds->budget, file);
}

static char *copy(struct fds *fds, const char *text)
{
	size_t len = strnlen(text, TEXT_MAX);
	char *own = budget__alloc(&fds->budget, len + 1);

	return own ? memcpy(own, text, len) : NULL;
}

static struct file *new_file(struct fds *fds, const char *text)
{
	struct file *file = budget__alloc(&fds->budget, sizeof(*file));

	if (!file)
		return NULL;
	file->text = copy(fds, text);
	if (!file->text) {
		budget__free(&fds->budget, file);
		return NULL;
	}
	return file;
}

/* Without memory the old name stays; it is still that socket. */
static void rename_file(struct fds *fds, struct file *file, const char *text)
{
	char *own = copy(fds, text);

	if (!own)
		return;
	budget__free(&fds->budget, file->text);
	file->text = own;
}

static uint64_t key_of(uint32_t pid, int32_t fd)
{
	return (uint64_t)pid << 32 | (uint32_t)fd;
}

static struct hash_node *find_node(const struct hash *hash, uint64_t key)
{
	struct hash_node *node = hash__first(hash, key);

	while (node && node->key != key)
		node = node->next;
	return node;
}

static struct entry *find_entry(struct fds *fds, uint32_t pid, int32_t fd)
{
	return (struct entry *)find_node(&fds->entries, key_of(pid, fd));
}

static void drop(struct fds *fds, struct entry *entry)
{
	hash__remove(&fds->entries, &entry->node);
	list__del(&entry->of_proc);
	put_file(fds, entry->file);
	budget__free(&fds->budget, entry);
}

static void drop_fd(struct fds *fds, uint32_t pid, int32_t fd)
{
	struct entry *entry = find_entry(fds, pid, fd);

	if (entry)
		drop(fds, entry);
}

/* ---- processes -------------------------------------------------------------------------------- */

static struct proc *proc_of(struct list_node *order)
{
	return list__entry(order, struct proc, order);
}

static struct entry *entry_of(struct list_node *of_proc)
{
	return list__entry(of_proc, struct entry, of_proc);
}

static void forget(struct fds *fds, struct proc *proc)
{
	while (!list__empty(&proc->entries))
		drop(fds, entry_of(proc->entries.next));
	hash__remove(&fds->procs, &proc->node);
	list__del(&proc->order);
	budget__free(&fds->budget, proc);
}

static void forget_all(struct fds *fds)
{
	while (!list__empty(&fds->order))
		forget(fds, proc_of(fds->order.next));
}

struct fds *fds__new(size_t cap_bytes, fds_resolver resolve, void *ctx)
{
	struct fds *fds = calloc(1, sizeof(*fds));

	if (!fds)
		return NULL;
	fds->budget.cap = cap_bytes ? cap_bytes : CAP_DEFAULT;
	fds->resolve = resolve;
	fds->ctx = ctx;
	list__init(&fds->order);
	if (hash__init(&fds->procs, &fds->budget, FIRST_BITS) ||
	    hash__init(&fds->entries, &fds->budget, FIRST_BITS)) {
		fds__free(fds);
		errno = ENOMEM;
		return NULL;
	}
	return fds;
}

void fds__free(struct fds *fds)
{
	if (!fds)
		return;
	forget_all(fds);
	hash__free(&fds->procs);
	hash__free(&fds->entries);
	free(fds);
}

static struct proc *find_proc(struct fds *fds, uint32_t pid)
{
	struct proc *proc = (struct proc *)find_node(&fds->procs, pid);

	if (!proc)
		return NULL;
	list__del(&proc->order);
	list__add_tail(&fds->order, &proc->order);
	return proc;
}

/* Push out the process longest not heard of, but never `keep`; false: there is no other. */
static bool evict(struct fds *fds, const struct proc *keep)
{
	struct list_node *oldest = fds->order.next;

	if (oldest == &fds->order || proc_of(oldest) == keep)
		return false;
	forget(fds, proc_of(oldest));
	return true;
}

static struct proc *add_proc(struct fds *fds, uint32_t pid)
{
	struct proc *proc;

	do
		proc = budget__alloc(&fds->budget, sizeof(*proc));
	while (!proc && evict(fds, NULL));
	if (!proc)
		return NULL;
	list__init(&proc->entries);
	hash__insert(&fds->procs, &proc->node, pid);
	hash__grow(&fds->procs);
	list__add_tail(&fds->order, &proc->order);
	return proc;
}

static struct proc *meet(struct fds *fds, uint32_t pid)
{
	struct proc *proc = find_proc(fds, pid);

	if (proc)
		return proc;
	proc = add_proc(fds, pid);
	if (proc && fds->resolve)
		fds->resolve(fds->ctx, fds, pid);
	return proc;
}

void fds__meet(struct fds *fds, uint32_t pid)
{
	meet(fds, pid);
}

/* The number stands for this file from now on, whatever it stood for. No memory: for nothing known. */
static void set(struct fds *fds, struct proc *proc, int32_t fd, struct file *file, bool cloexec,
		uint64_t since_ns)
{
	uint32_t pid = (uint32_t)proc->node.key;
	struct entry *entry;

	file->refs++; /* also if what it replaces is the last that has it */
	drop_fd(fds, pid, fd);
	do
		entry = budget__alloc(&fds->budget, sizeof(*entry));
	while (!entry && evict(fds, proc));
	if (!entry) {
		put_file(fds, file);
		return;
	}
	entry->file = file;
	entry->fd = fd;
	entry->cloexec = cloexec;
	entry->since_ns = since_ns;
	hash__insert(&fds->entries, &entry->node, key_of(pid, fd));
	hash__grow(&fds->entries);
	list__add_tail(&proc->entries, &entry->of_proc);
}

static void set_text(struct fds *fds, struct proc *proc, int32_t fd, const char *text, bool cloexec,
		     uint64_t since_ns)
{
	struct file *file;

	do
		file = new_file(fds, text);
	while (!file && evict(fds, proc));
	if (!file) {
		drop_fd(fds, (uint32_t)proc->node.key, fd);
		return;
	}
	file->refs = 1;
	set(fds, proc, fd, file, cloexec, since_ns);
	put_file(fds, file);
}

void fds__seed(struct fds *fds, uint32_t pid, int32_t fd, const char *text, bool cloexec)
{
	struct proc *proc = find_proc(fds, pid);

	if (!proc)
		return;
	if (!fds->only)
		set_text(fds, proc, fd, text, cloexec, 0);
	else if (!strncmp(text, fds->only, strlen(fds->only)) && !find_entry(fds, pid, fd))
		set_text(fds, proc, fd, text, cloexec, fds->only_since_ns);
}

const char *fds__find(struct fds *fds, uint32_t pid, int32_t fd)
{
	struct entry *entry = meet(fds, pid) ? find_entry(fds, pid, fd) : NULL;

	return entry ? entry->file->text : NULL;
}

size_t fds__bytes(const struct fds *fds)
{
	return fds->budget.bytes;
}

/* ---- what happens to a whole table ------------------------------------------------------------ */

static void on_fork(struct fds *fds, const struct weir_fork *fork, uint64_t stamp_ns)
{
	struct proc *parent, *child;

	if (fork->child.pid == fork->parent.pid)
		return;
	child = find_proc(fds, fork->child.pid);
	if (child)
		forget(fds, child); /* its exit was lost */
	parent = meet(fds, fork->parent.pid);
	child = parent ? add_proc(fds, fork->child.pid) : NULL;
	/* Making room for the child may have cost the parent. */
	if (!child || !find_proc(fds, fork->parent.pid))
		return;
	for (struct list_node *node = parent->entries.next; node != &parent->entries;
	     node = node->next) {
		struct entry *entry = entry_of(node);
		struct entry *own = budget__alloc(&fds->budget, sizeof(*own));

		if (!own)
			return;
		*own = (struct entry){.file = entry->file,
				      .fd = entry->fd,
				      .cloexec = entry->cloexec,
				      .since_ns = stamp_ns};
		own->file->refs++;
		hash__insert(&fds->entries, &own->node, key_of(fork->child.pid, own->fd));
		list__add_tail(&child->entries, &own->of_proc);
	}
	hash__grow(&fds->entries);
}

static void on_exec(struct fds *fds, uint32_t pid)
{
	struct proc *proc = find_proc(fds, pid);
	struct list_node *node = proc ? proc->entries.next : NULL;

	while (node && node != &proc->entries) {
		struct entry *entry = entry_of(node);

		node = node->next;
		if (entry->cloexec)
			drop(fds, entry);
	}
}

static void on_process_end(struct fds *fds, const struct weir_exit *exit)
{
	struct proc *proc = find_proc(fds, exit->id.pid);

	if (proc && (exit->flags & WEIR_EXIT_PROCESS))
		forget(fds, proc);
}

void fds__apply(struct fds *fds, const struct weir_event *event)
{
	const struct weir_exec *exec = event->data;
	const struct weir_gap *gap = event->data;

	if (event->kind == WEIR_KIND_GAP && (gap->lost || gap->bound != WEIR_BOUND_EXACT))
		forget_all(fds);
	if (event->kind != WEIR_KIND_RECORD)
		return;
	if (event->type == WEIR_T_FORK && event->len >= sizeof(struct weir_fork))
		on_fork(fds, event->data, event->stamp_ns);
	if (event->type == WEIR_T_EXEC && event->len >= sizeof(*exec))
		on_exec(fds, exec->id.pid);
	if (event->type == WEIR_T_EXIT && event->len >= sizeof(struct weir_exit))
		on_process_end(fds, event->data);
}

/* ---- what calls do ---------------------------------------------------------------------------- */

struct call {
	struct fds *fds;
	struct proc *proc;
	const struct weir_decoded *d;
	uint64_t enter_ns, stamp_ns;
	int32_t ret;
};

static uint64_t arg(const struct call *call, uint32_t i)
{
	return i < call->d->nargs ? call->d->args[i].u : 0;
}

/* A string or address that was read; NULL: it was not. */
static const struct weir_arg *bytes(const struct call *call, uint32_t i)
{
	const struct weir_arg *a = i < call->d->nargs ? &call->d->args[i] : NULL;

	if (!a || a->kind < WEIR_ARG_STR || (a->flags & WEIR_ARG_UNREAD))
		return NULL;
	return a;
}

static struct entry *entry(const struct call *call, uint32_t i)
{
	return find_entry(call->fds, (uint32_t)call->proc->node.key, (int32_t)arg(call, i));
}

static void returns(const struct call *call, const char *text, bool cloexec)
{
	set_text(call->fds, call->proc, call->ret, text, cloexec, call->stamp_ns);
}

/* Something is open there now, and nobody knows what. */
static void returns_unknown(const struct call *call)
{
	drop_fd(call->fds, (uint32_t)call->proc->node.key, call->ret);
}

/* A path as seen from a directory, which may not be known. false: nor is the path. */
static bool full_path(const struct call *call, int32_t dirfd, uint32_t i, char text[TEXT_MAX])
{
	const struct weir_arg *path = bytes(call, i);
	const char *cut = path && (path->flags & WEIR_ARG_CUT) ? "..." : "";
	struct entry *dir;

	if (!path)
		return false;
	dir = find_entry(call->fds, (uint32_t)call->proc->node.key, dirfd);
	if ((path->len && path->bytes[0] == '/') || !dir)
		snprintf(text, TEXT_MAX, "%.*s%s", (int)path->len, path->bytes, cut);
	else
		snprintf(text, TEXT_MAX, "%s%s%.*s%s", dir->file->text,
			 strcmp(dir->file->text, "/") ? "/" : "", (int)path->len, path->bytes, cut);
	return true;
}

static void opens(const struct call *call, int32_t dirfd, uint32_t path_arg, uint64_t flags)
{
	char text[TEXT_MAX];

	if (full_path(call, dirfd, path_arg, text))
		returns(call, text, flags & O_CLOEXEC);
	else
		returns_unknown(call);
}

static void on_open(const struct call *call)
{
	opens(call, FDS_CWD, 0, arg(call, 1));
}

static void on_creat(const struct call *call)
{
	opens(call, FDS_CWD, 0, 0);
}

static void on_openat(const struct call *call)
{
	opens(call, (int32_t)arg(call, 0), 1, arg(call, 2));
}

/* Its flags lie in memory that nobody read: whether it goes at exec is not known, so it does. */
static void on_openat2(const struct call *call)
{
	opens(call, (int32_t)arg(call, 0), 1, O_CLOEXEC);
}

static void on_socket(const struct call *call)
{
	returns(call, sockname__kind((uint32_t)arg(call, 0), (uint32_t)arg(call, 1)),
		arg(call, 1) & SOCK_CLOEXEC);
}

/* tcp:127.0.0.1:5000->127.0.0.1:80 */
static void names_socket(const struct call *call, const char *between)
{
	const struct weir_arg *address = bytes(call, 1);
	struct entry *socket = entry(call, 0);
	char name[SOCKNAME_MAX], text[TEXT_MAX];
	const char *end;
	size_t len;

	if (!socket || !address)
		return;
	sockname__address(address->bytes, address->len, name);
	/* Another place than before: it takes that one's place. */
	end = strstr(socket->file->text, between);
	len = end ? (size_t)(end - socket->file->text) : strlen(socket->file->text);
	snprintf(text, sizeof(text), "%.*s%s%s", (int)len, socket->file->text,
		 name[0] ? between : "", name);
	rename_file(call->fds, socket->file, text);
}

static void on_bind(const struct call *call)
{
	names_socket(call, ":");
}

static void on_connect(const struct call *call)
{
	names_socket(call, "->");
}

/* The peer's address lies in memory that nobody read. */
static void accepts(const struct call *call, uint64_t flags)
{
	struct entry *listener = entry(call, 0);
	char text[TEXT_MAX];

	if (!listener) {
		returns_unknown(call);
		return;
	}
	snprintf(text, sizeof(text), "%s<-?", listener->file->text);
	returns(call, text, flags & SOCK_CLOEXEC);
}

static void on_accept(const struct call *call)
{
	accepts(call, 0);
}

static void on_accept4(const struct call *call)
{
	accepts(call, arg(call, 3));
}

static void duplicates(const struct call *call, bool cloexec)
{
	struct entry *old = entry(call, 0);

	if (old && old->fd == call->ret)
		return;
	if (old)
		set(call->fds, call->proc, call->ret, old->file, cloexec, call->stamp_ns);
	else
		returns_unknown(call);
}

static void on_dup(const struct call *call)
{
	duplicates(call, false);
}

static void on_dup3(const struct call *call)
{
	duplicates(call, arg(call, 2) & O_CLOEXEC);
}

static void on_fcntl(const struct call *call)
{
	struct entry *old = entry(call, 0);

	switch ((uint32_t)arg(call, 1)) {
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
		duplicates(call, (uint32_t)arg(call, 1) == F_DUPFD_CLOEXEC);
		break;
	case F_SETFD:
		if (old)
			old->cloexec = arg(call, 2) & FD_CLOEXEC;
		break;
	}
}

static void on_ioctl(const struct call *call)
{
	struct entry *of = entry(call, 0);
	uint32_t command = (uint32_t)arg(call, 1);

	if (of && (command == FIOCLEX || command == FIONCLEX))
		of->cloexec = command == FIOCLEX;
}

/* The number is free before the call returns, and another thread may have it by then. */
static void closes(const struct call *call, struct entry *gone)
{
	if (gone && gone->since_ns <= call->enter_ns)
		drop(call->fds, gone);
}

static void on_close(const struct call *call)
{
	closes(call, entry(call, 0));
}

static void on_close_range(const struct call *call)
{
	uint32_t first = (uint32_t)arg(call, 0), last = (uint32_t)arg(call, 1);
	struct list_node *node = call->proc->entries.next;

	while (node != &call->proc->entries) {
		struct entry *e = entry_of(node);

		node = node->next;
		if (e->fd < 0 || (uint32_t)e->fd < first || (uint32_t)e->fd > last)
			continue;
		if (arg(call, 2) & CLOSE_RANGE_CLOEXEC)
			e->cloexec = true;
		else
			closes(call, e);
	}
}

static void on_chdir(const struct call *call)
{
	char text[TEXT_MAX];

	if (full_path(call, FDS_CWD, 0, text))
		set_text(call->fds, call->proc, FDS_CWD, text, false, call->stamp_ns);
	else
		drop_fd(call->fds, (uint32_t)call->proc->node.key, FDS_CWD);
}

static void on_fchdir(const struct call *call)
{
	struct entry *dir = entry(call, 0);

	if (dir)
		set(call->fds, call->proc, FDS_CWD, dir->file, false, call->stamp_ns);
	else
		drop_fd(call->fds, (uint32_t)call->proc->node.key, FDS_CWD);
}

static void on_memfd(const struct call *call)
{
	const struct weir_arg *name = bytes(call, 0);
	char text[TEXT_MAX];

	snprintf(text, sizeof(text), "memfd:%.*s", name ? (int)name->len : 0,
		 name ? name->bytes : "");
	returns(call, text, arg(call, 1) & 1 /* MFD_CLOEXEC */);
}

/*
 * What it opened lies in memory that nobody read. But what is open now, of this kind and by nobody that
 * was seen, is what it opened; or what a later one did, under the same number.
 */
static void looks_for(const struct call *call, const char *kind)
{
	struct fds *fds = call->fds;

	if (!fds->resolve)
		return;
	fds->only = kind;
	fds->only_since_ns = call->stamp_ns;
	fds->resolve(fds->ctx, fds, (uint32_t)call->proc->node.key);
	fds->only = NULL;
}

static void on_pipe(const struct call *call)
{
	looks_for(call, "pipe:");
}

static void on_socketpair(const struct call *call)
{
	looks_for(call, "socket:");
}

static void on_pidfd(const struct call *call)
{
	char text[64];

	snprintf(text, sizeof(text), "pidfd:%d", (int32_t)arg(call, 0));
	returns(call, text, true);
}

/* Their cloexec flags all have the value of O_CLOEXEC. */
static void on_epoll(const struct call *call)
{
	returns(call, "epoll", arg(call, 0) & O_CLOEXEC);
}

static void on_eventfd(const struct call *call)
{
	returns(call, "eventfd", arg(call, 1) & O_CLOEXEC);
}

static void on_timerfd(const struct call *call)
{
	returns(call, "timerfd", arg(call, 1) & O_CLOEXEC);
}

static void on_inotify(const struct call *call)
{
	returns(call, "inotify", arg(call, 0) & O_CLOEXEC);
}

/* By name, sorted. create: what it returns is a new descriptor. */
static const struct {
	const char *name;
	void (*apply)(const struct call *call);
	bool create;
} calls[] = {
	{"accept", on_accept, true},
	{"accept4", on_accept4, true},
	{"bind", on_bind, false},
	{"chdir", on_chdir, false},
	{"close", on_close, false},
	{"close_range", on_close_range, false},
	{"connect", on_connect, false},
	{"creat", on_creat, true},
	{"dup", on_dup, true},
	{"dup2", on_dup, true},
	{"dup3", on_dup3, true},
	{"epoll_create", on_epoll, true},
	{"epoll_create1", on_epoll, true},
	{"eventfd", on_eventfd, true},
	{"eventfd2", on_eventfd, true},
	{"fanotify_init", returns_unknown, true},
	{"fchdir", on_fchdir, false},
	{"fcntl", on_fcntl, false},
	{"fcntl64", on_fcntl, false},
	{"inotify_init", on_inotify, true},
	{"inotify_init1", on_inotify, true},
	{"io_uring_setup", returns_unknown, true},
	{"ioctl", on_ioctl, false},
	{"memfd_create", on_memfd, true},
	{"memfd_secret", returns_unknown, true},
	{"open", on_open, true},
	{"open_by_handle_at", returns_unknown, true},
	{"open_tree", returns_unknown, true},
	{"openat", on_openat, true},
	{"openat2", on_openat2, true},
	{"perf_event_open", returns_unknown, true},
	{"pidfd_getfd", returns_unknown, true},
	{"pidfd_open", on_pidfd, true},
	{"pipe", on_pipe, false},
	{"pipe2", on_pipe, false},
	{"signalfd", returns_unknown, true},
	{"signalfd4", returns_unknown, true},
	{"socket", on_socket, true},
	{"socketpair", on_socketpair, false},
	{"timerfd_create", on_timerfd, true},
	{"userfaultfd", returns_unknown, true},
};

#define NR_CALLS ((int)(sizeof(calls) / sizeof(calls[0])))

static int find_call(const char *name)
{
	int low = 0, high = NR_CALLS - 1;

	while (name && low <= high) {
		int mid = (low + high) / 2, order = strcmp(name, calls[mid].name);

		if (!order)
			return mid;
		if (order < 0)
			high = mid - 1;
		else
			low = mid + 1;
	}
	return -1;
}

/* A connect that is only begun has its address already. */
static bool has_effect(const struct weir_decoded *d)
{
	return d->ret >= 0 || (d->ret == -EINPROGRESS && !strcmp(d->syscall, "connect"));
}

void fds__call(struct fds *fds, const struct weir_call *call, const struct weir_decoded *decoded)
{
	int i = find_call(decoded->syscall);
	struct call c = {
		.fds = fds,
		.d = decoded,
		.stamp_ns = call->stamp_ns,
		.ret = (int32_t)decoded->ret,
	};

	if (i < 0 || call->end != WEIR_CALL_RETURNED || !has_effect(decoded))
		return;
	c.proc = meet(fds, decoded->pid);
	c.enter_ns = call->enter->stamp_ns;
	if (c.proc)
		calls[i].apply(&c);
}

bool fds__returns_fd(const char *syscall)
{
	int i = find_call(syscall);

	return i >= 0 && calls[i].create;
}

const char *fds__needs(unsigned int index)
{
	return index < (unsigned int)NR_CALLS ? calls[index].name : NULL;
}
