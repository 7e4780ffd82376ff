// SPDX-License-Identifier: BSD-2-Clause
/*
 * tasks.c - owns what lifecycle events mean: which identity an event is about, and which facts it
 * changes. Promises that a fact is never replaced by an older one, that a broken record changes
 * nothing, and that a lookup allocates nothing. Knows nothing of rings, sinks or the live system.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "state/table.h"
#include "state/tasks.h"

#define CAP_DEFAULT (64u << 20)
#define CAP_MIN	    (64u << 10)

/*
 * What one event can add at most, strings of its own apart: two identities (fork makes a parent that
 * is not known), each with a leader, their sets of cgroups, and what a resolver's path takes. Made
 * free before the event is looked at, so that nothing is evicted while pointers into the table are
 * held.
 */
#define ROOM_EVENT	 (24u << 10)
/* A path is kept as itself, and gives a container and a unit. */
#define ROOM_STRING(len) (4 * (size_t)(len))

#define LINES_MAX (32u << 10) /* of one thread's cgroups */

/*
 * An answer that was given. It holds until the table changes, from its stamp on: the thread had not
 * ended, so it is the newest of its tid.
 */
struct answer {
	uint32_t tid;
	uint64_t changes, stamp_ns;
	struct task_view view;
};

#define ANSWERS 16 /* the same few threads make most events */

struct tasks {
	struct table table;
	struct answer answers[ANSWERS];
	uint64_t changes; /* of the table, and one */
	uint64_t now_ns;  /* how far the stream has come, stamps that lie beyond the clock apart */
	uint64_t watermark_ns;
};

struct tasks *tasks__new(size_t cap_bytes)
{
	struct tasks *tasks;

	if (!cap_bytes)
		cap_bytes = CAP_DEFAULT;
	if (cap_bytes < CAP_MIN) {
		errno = EINVAL;
		return NULL;
	}
	tasks = calloc(1, sizeof(*tasks));
	if (!tasks)
		return NULL;
	tasks->changes = 1;
	if (table__init(&tasks->table, cap_bytes, budget__cost(tasks))) {
		free(tasks);
		errno = ENOMEM;
		return NULL;
	}
	return tasks;
}

void tasks__free(struct tasks *tasks)
{
	if (!tasks)
		return;
	table__free(&tasks->table);
	free(tasks);
}

void tasks__set_cgroup_resolver(struct tasks *tasks, tasks_cgroup_resolver fn, void *ctx)
{
	tasks->table.cgroups.resolve = fn;
	tasks->table.cgroups.resolve_ctx = ctx;
}

static bool is_leader(const struct weir_task_id *id)
{
	return id->pid == id->tid;
}

/*
 * The process of a thread that is not known. One that has ended is still meant if the thread began
 * before that end and the event is not long after it: the last threads exit side by side.
 */
static struct proc *proc_of(struct tasks *tasks, uint32_t pid, uint64_t start_ns, uint64_t stamp_ns)
{
	struct thread *leader = table__begun(&tasks->table, pid, stamp_ns);

	if (leader && thread__leads(leader)) {
		uint64_t end_ns = leader->proc->end_ns;

		if (stamp_ns < end_ns ||
		    (start_ns && start_ns <= end_ns && stamp_ns <= thread__gone_ns(leader)))
			return leader->proc;
	}
	leader = table__add(&tasks->table, NULL, pid, 0,
			    start_ns && start_ns < stamp_ns ? start_ns : stamp_ns);
	return leader ? leader->proc : NULL;
}

/*
 * The identity that runs at this stamp, where the event does not tell its start. What has exited
 * runs no more; but a leader whose process goes on has become another thread, by an exec that was
 * lost. NULL: nobody known.
 */
static struct thread *running(struct tasks *tasks, const struct weir_task_id *id, uint64_t stamp_ns)
{
	struct thread *thread = table__begun(&tasks->table, id->tid, stamp_ns);

	if (!thread || thread->proc->pid != id->pid)
		return NULL;
	if (stamp_ns <= thread->exit_ns)
		return thread;
	if (!thread__leads(thread) || thread->proc->end_ns < stamp_ns)
		return NULL;
	table__revive_leader(&tasks->table, thread->proc);
	return thread;
}

static struct thread *add(struct tasks *tasks, struct proc *proc, const struct weir_task_id *id,
			  uint64_t start_ns, uint64_t stamp_ns)
{
	if (is_leader(id))
		return table__add(&tasks->table, NULL, id->tid, start_ns, stamp_ns);
	if (!proc || proc->pid != id->pid)
		proc = proc_of(tasks, id->pid, start_ns, stamp_ns);
	return proc ? table__add(&tasks->table, proc, id->tid, start_ns, stamp_ns) : NULL;
}

/*
 * The identity that an event is about, made if nobody knew it. start_ns 0: unknown. `proc`: that of
 * the thread, where the event tells it, or NULL. NULL: no memory.
 */
static struct thread *who(struct tasks *tasks, struct proc *proc, const struct weir_task_id *id,
			  uint64_t start_ns, uint64_t stamp_ns)
{
	struct thread *thread = start_ns ? table__started(&tasks->table, id, start_ns)
					 : running(tasks, id, stamp_ns);

	if (!thread)
		return add(tasks, proc, id, start_ns, stamp_ns);
	thread->flags |= THREAD_USED;
	return thread;
}

static void set_comm(struct thread *thread, const char comm[WEIR_COMM_LEN], uint64_t stamp_ns)
{
	if (stamp_ns < thread->comm_ns)
		return;
	memcpy(thread->comm, comm, WEIR_COMM_LEN);
	thread->comm[WEIR_COMM_LEN - 1] = '\0';
	thread->comm_ns = stamp_ns;
	thread->flags |= THREAD_HAS_COMM;
}

/* What exec sets and fork hands down. */
struct image {
	struct name *exe; /* borrowed */
	uint32_t ppid, uid;
	uint64_t stamp_ns;
};

static void set_image(struct tasks *tasks, struct proc *proc, const struct image *image)
{
	struct name *old = proc->exe;

	if (image->stamp_ns < proc->image_ns)
		return;
	proc->exe = name__ref(image->exe);
	names__put(&tasks->table.names, old);
	proc->ppid = image->ppid;
	proc->uid = image->uid;
	proc->image_ns = image->stamp_ns;
}

/* Takes over the reference to `set`. */
static void set_cgroups(struct tasks *tasks, struct thread *thread, struct cgroup_set *set,
			uint64_t stamp_ns)
{
	struct cgroup_set *old = thread->cgroups;

	if (stamp_ns < thread->cgroups_ns) {
		cgroups__put_set(&tasks->table.cgroups, set);
		return;
	}
	thread->cgroups = set;
	thread->cgroups_ns = stamp_ns;
	cgroups__put_set(&tasks->table.cgroups, old);
}

static bool is_in_v2(const struct cgroup_set *set, uint64_t id)
{
	return set && set->members[0]->hierarchy == CGROUP_V2 && set->members[0]->id == id;
}

/* In v2 it is in `id` (0: the event does not know), in the other hierarchies where `set` says. */
static int join_v2(struct tasks *tasks, struct thread *thread, struct cgroup_set *set, uint64_t id,
		   uint64_t stamp_ns)
{
	struct cgroups *cgroups = &tasks->table.cgroups;
	struct cgroup *cgroup;

	if (!id || is_in_v2(set, id)) {
		if (set)
			set_cgroups(tasks, thread, cgroup_set__ref(set), stamp_ns);
		return 0;
	}
	cgroup = cgroups__get(cgroups, CGROUP_V2, id);
	set = cgroup ? cgroups__set_with(cgroups, set, cgroup) : NULL;
	if (!set)
		return -ENOMEM;
	set_cgroups(tasks, thread, set, stamp_ns);
	return 0;
}

static int join(struct tasks *tasks, struct thread *thread, struct cgroup *cgroup,
		uint64_t stamp_ns)
{
	struct cgroup_set *set = cgroups__set_with(&tasks->table.cgroups, thread->cgroups, cgroup);

	if (!set)
		return -ENOMEM;
	set_cgroups(tasks, thread, set, stamp_ns);
	return 0;
}

/*
 * A new process has its parent's image, as it was at the fork: not what the parent has become since,
 * where the fork comes late. What the parent's entry does not know, a seed may have known better.
 */
static void inherit_image(struct tasks *tasks, struct proc *child, const struct proc *parent,
			  uint64_t stamp_ns)
{
	bool known = parent->image_ns <= stamp_ns;
	struct image image = {child->exe, parent->pid, child->uid, stamp_ns};

	if (known && parent->exe)
		image.exe = parent->exe;
	if (known && parent->uid != TASKS_UID_UNKNOWN)
		image.uid = parent->uid;
	set_image(tasks, child, &image);
}

static int on_fork(struct tasks *tasks, const struct weir_event *event, uint64_t stamp_ns)
{
	const struct weir_fork *fork = event->data;
	struct thread *parent, *child;
	struct cgroup_set *set;

	parent = who(tasks, NULL, &fork->parent, 0, stamp_ns);
	if (!parent)
		return -ENOMEM;
	set_comm(parent, fork->comm, stamp_ns);
	child = who(tasks, parent->proc, &fork->child, fork->child_start_ns, stamp_ns);
	if (!child)
		return -ENOMEM;
	set_comm(child, fork->comm, stamp_ns);
	if (is_leader(&fork->child))
		inherit_image(tasks, child->proc, parent->proc, stamp_ns);
	set = parent->cgroups && parent->cgroups_ns <= stamp_ns ? parent->cgroups : child->cgroups;
	return join_v2(tasks, child, set, fork->child_cgroup, stamp_ns);
}

/*
 * The thread that execs is the process from here on. One that was not the leader takes the leader's
 * tid and start time, and its old tid is nobody's; the others were killed before, seen or not.
 */
static void leave_alone(struct tasks *tasks, struct thread *leader, uint64_t stamp_ns)
{
	struct proc *proc = leader->proc;
	struct list_node *node;

	/* First, so that the process does not end with its other threads. */
	if (leader->exit_ns <= stamp_ns && thread__leads(leader))
		table__revive_leader(&tasks->table, proc);
	for (node = proc->threads.next; node != &proc->threads; node = node->next) {
		struct thread *thread = list__entry(node, struct thread, sibling);

		if (thread != leader && thread->from_ns <= stamp_ns)
			table__end_thread(&tasks->table, thread, stamp_ns);
	}
}

/* Of all that the leader was, the thread that takes its place keeps its own cgroups. */
static struct cgroup_set *cgroups_of_caller(const struct tasks *tasks, const struct thread *leader,
					    uint32_t old_tid, uint64_t stamp_ns)
{
	const struct thread *caller = table__begun(&tasks->table, old_tid, stamp_ns);

	if (caller && caller->proc == leader->proc && caller->cgroups)
		return caller->cgroups;
	return leader->cgroups;
}

static int set_exec_image(struct tasks *tasks, struct proc *proc, const struct weir_exec *exec,
			  uint64_t stamp_ns)
{
	const char *path = (const char *)(exec + 1);
	struct image image = {NULL, exec->ppid, exec->uid, stamp_ns};

	if (exec->path_len) {
		image.exe = names__get(&tasks->table.names, path, strnlen(path, exec->path_len));
		if (!image.exe)
			return -ENOMEM;
	}
	set_image(tasks, proc, &image);
	names__put(&tasks->table.names, image.exe);
	return 0;
}

static int on_exec(struct tasks *tasks, const struct weir_event *event, uint64_t stamp_ns)
{
	const struct weir_exec *exec = event->data;
	struct cgroup_set *set;
	struct thread *thread;
	int err;

	if ((size_t)exec->path_len + exec->argv_len > event->len - sizeof(*exec))
		return -EBADMSG;
	thread = who(tasks, NULL, &exec->id, exec->start_ns, stamp_ns);
	if (!thread)
		return -ENOMEM;
	set = cgroups_of_caller(tasks, thread, exec->old_tid, stamp_ns);
	leave_alone(tasks, thread, stamp_ns);
	set_comm(thread, exec->comm, stamp_ns);
	err = set_exec_image(tasks, thread->proc, exec, stamp_ns);
	if (err)
		return err;
	return join_v2(tasks, thread, set, exec->cgroup, stamp_ns);
}

/*
 * A leader that exited before another thread took its identity by exec: told late, its exit is not
 * the end of what runs under that identity now.
 */
static bool is_before_exec(const struct thread *thread, const struct weir_exit *exited,
			   uint64_t stamp_ns)
{
	return !(exited->flags & WEIR_EXIT_PROCESS) && thread__leads(thread) &&
	       stamp_ns < thread->proc->image_ns;
}

/* An exit that nobody needs to be told: the entry was retired, or would be at once. */
static bool is_over(const struct tasks *tasks, const struct weir_task_id *id, uint64_t start_ns,
		    uint64_t stamp_ns)
{
	return stamp_ns < tasks->watermark_ns &&
	       tasks->watermark_ns - stamp_ns >= TABLE_LINGER_NS &&
	       !table__started(&tasks->table, id, start_ns);
}

static int on_exit_event(struct tasks *tasks, const struct weir_event *event, uint64_t stamp_ns)
{
	const struct weir_exit *exited = event->data;
	struct thread *thread;

	if (is_over(tasks, &exited->id, exited->start_ns, stamp_ns))
		return 0;
	thread = who(tasks, NULL, &exited->id, exited->start_ns, stamp_ns);
	if (!thread)
		return -ENOMEM;
	if (thread->exit_ns == TABLE_NEVER_NS && !is_before_exec(thread, exited, stamp_ns)) {
		set_comm(thread, exited->comm, stamp_ns);
		table__end_thread(&tasks->table, thread, stamp_ns);
	}
	if (!thread->proc->ppid)
		thread->proc->ppid = exited->ppid;
	if (exited->flags & WEIR_EXIT_PROCESS)
		table__end_proc(&tasks->table, thread->proc, stamp_ns);
	return 0;
}

static int on_rename(struct tasks *tasks, const struct weir_event *event, uint64_t stamp_ns)
{
	const struct weir_rename *rename = event->data;
	struct thread *thread = who(tasks, NULL, &rename->id, rename->start_ns, stamp_ns);

	if (!thread)
		return -ENOMEM;
	set_comm(thread, rename->comm, stamp_ns);
	return 0;
}

/* v2's number differs between kernels, and a v1 hierarchy never has it. */
static uint32_t hierarchy_of(uint32_t number, uint16_t is_v2)
{
	if (is_v2)
		return CGROUP_V2;
	return number == CGROUP_V2 ? UINT32_MAX : number;
}

static struct cgroup *learn(struct tasks *tasks, uint32_t hierarchy, uint64_t id, const char *path,
			    size_t len)
{
	len = strnlen(path, len);
	return len ? cgroups__learn(&tasks->table.cgroups, hierarchy, id, path, len)
		   : cgroups__get(&tasks->table.cgroups, hierarchy, id);
}

static int on_cgroup_mkdir(struct tasks *tasks, const struct weir_event *event, uint64_t stamp_ns)
{
	const struct weir_cgroup_mkdir *mkdir = event->data;

	if (mkdir->path_len > event->len - sizeof(*mkdir) || !mkdir->cgroup)
		return -EBADMSG;
	return learn(tasks, hierarchy_of(mkdir->hierarchy, mkdir->is_v2), mkdir->cgroup,
		     (const char *)(mkdir + 1), mkdir->path_len)
		       ? 0
		       : -ENOMEM;
}

static int join_all(struct tasks *tasks, struct proc *proc, struct cgroup *cgroup,
		    uint64_t stamp_ns)
{
	struct list_node *node;
	int err = 0;

	for (node = proc->threads.next; !err && node != &proc->threads; node = node->next) {
		struct thread *thread = list__entry(node, struct thread, sibling);

		if (thread->from_ns <= stamp_ns && stamp_ns <= thread__end_ns(thread))
			err = join(tasks, thread, cgroup, stamp_ns);
	}
	return err;
}

static int on_cgroup_attach(struct tasks *tasks, const struct weir_event *event, uint64_t stamp_ns)
{
	const struct weir_cgroup_attach *attach = event->data;
	struct thread *thread;
	struct cgroup *cgroup;

	if (attach->path_len > event->len - sizeof(*attach) || !attach->cgroup)
		return -EBADMSG;
	thread = who(tasks, NULL, &attach->id, attach->start_ns, stamp_ns);
	cgroup = learn(tasks, hierarchy_of(attach->hierarchy, attach->is_v2), attach->cgroup,
		       (const char *)(attach + 1), attach->path_len);
	if (!thread || !cgroup)
		return -ENOMEM;
	return attach->process ? join_all(tasks, thread->proc, cgroup, stamp_ns)
			       : join(tasks, thread, cgroup, stamp_ns);
}

static const struct {
	size_t size;
	int (*apply)(struct tasks *tasks, const struct weir_event *event, uint64_t stamp_ns);
} handlers[WEIR_T_LIFE_MAX + 1] = {
	[WEIR_T_FORK] = {sizeof(struct weir_fork), on_fork},
	[WEIR_T_EXEC] = {sizeof(struct weir_exec), on_exec},
	[WEIR_T_EXIT] = {sizeof(struct weir_exit), on_exit_event},
	[WEIR_T_RENAME] = {sizeof(struct weir_rename), on_rename},
	[WEIR_T_CGROUP_MKDIR] = {sizeof(struct weir_cgroup_mkdir), on_cgroup_mkdir},
	[WEIR_T_CGROUP_ATTACH] = {sizeof(struct weir_cgroup_attach), on_cgroup_attach},
};

/*
 * When it happened. A stamp beyond the clock says nothing: such a fact would resist every true one
 * until the clock got there.
 */
static uint64_t stamp_of(struct tasks *tasks, const struct weir_event *event)
{
	if (event->mark & WEIR_MARK_AHEAD)
		return tasks->now_ns;
	if (event->stamp_ns > tasks->now_ns)
		tasks->now_ns = event->stamp_ns;
	return event->stamp_ns;
}

int tasks__apply(struct tasks *tasks, const struct weir_event *event)
{
	uint64_t stamp_ns;
	int err;

	if (event->kind != WEIR_KIND_RECORD)
		return 0;
	stamp_ns = stamp_of(tasks, event);
	if (event->type > WEIR_T_LIFE_MAX || !handlers[event->type].apply)
		return 0;
	if (event->len < handlers[event->type].size)
		return -EBADMSG;
	tasks->changes++;
	err = table__make_room(&tasks->table, ROOM_EVENT + ROOM_STRING(event->len));
	return err ? err : handlers[event->type].apply(tasks, event, stamp_ns);
}

/*
 * Ids come from one moment and paths from a later one, between which a task may have moved: a
 * resolver knows better, and so does what events have told.
 */
static struct cgroup *seed_v2(struct tasks *tasks, uint64_t id, const char *path, size_t len)
{
	struct cgroup *cgroup;

	if (id) {
		cgroup = cgroups__get(&tasks->table.cgroups, CGROUP_V2, id);
		if (!cgroup || cgroup->path)
			return cgroup;
	}
	return cgroups__learn(&tasks->table.cgroups, CGROUP_V2, id, path, len);
}

static int seed_cgroup(struct tasks *tasks, struct thread *thread, uint32_t hierarchy, uint64_t id,
		       const char *path, size_t len)
{
	struct cgroup *cgroup;

	if (hierarchy == CGROUP_V2)
		cgroup = seed_v2(tasks, id, path, len);
	else
		cgroup = cgroups__learn(&tasks->table.cgroups, hierarchy, 0, path, len);
	return cgroup ? join(tasks, thread, cgroup, 0) : -ENOMEM;
}

/* What /proc adds to the path of a cgroup that was removed under a dying task. */
static size_t without_deleted(const char *path, size_t len)
{
	static const char mark[] = " (deleted)";
	const size_t mark_len = sizeof(mark) - 1;

	if (len > mark_len && !memcmp(path + len - mark_len, mark, mark_len))
		return len - mark_len;
	return len;
}

/* One line of /proc/PID/cgroup, "4:memory:/a/b". What is none is passed over. */
static int seed_cgroup_line(struct tasks *tasks, struct thread *thread, uint64_t id,
			    const char *line, size_t len)
{
	const char *end = line + len;
	unsigned long hierarchy;
	const char *path;

	if (!isdigit((unsigned char)line[0]))
		return 0;
	hierarchy = strtoul(line, NULL, 10);
	path = memchr(line, ':', len);
	path = path ? memchr(path + 1, ':', (size_t)(end - path - 1)) : NULL;
	if (!path || end - path < 2 || path[1] != '/' || hierarchy >= UINT32_MAX)
		return 0;
	path++;
	return seed_cgroup(tasks, thread, (uint32_t)hierarchy, id, path,
			   without_deleted(path, (size_t)(end - path)));
}

static int seed_cgroups(struct tasks *tasks, struct thread *thread, uint64_t id,
			const char *cgroups)
{
	int err = 0;

	if (cgroups[0] == '/')
		return seed_cgroup(tasks, thread, CGROUP_V2, id, cgroups, strlen(cgroups));
	while (*cgroups && !err) {
		size_t len = strcspn(cgroups, "\n");

		err = seed_cgroup_line(tasks, thread, id, cgroups, len);
		cgroups += len + (cgroups[len] == '\n');
	}
	return err;
}

static int seed_image(struct tasks *tasks, struct proc *proc, const struct weir_seed *seed,
		      const char *exe)
{
	struct image image = {proc->exe, seed->ppid, seed->uid, 0};

	if (exe) {
		image.exe = names__get(&tasks->table.names, exe, strlen(exe));
		if (!image.exe)
			return -ENOMEM;
	}
	set_image(tasks, proc, &image);
	if (exe)
		names__put(&tasks->table.names, image.exe);
	return 0;
}

int tasks__seed(struct tasks *tasks, const struct weir_seed *seed, const char *exe,
		const char *cgroups)
{
	size_t strings = (exe ? strlen(exe) : 0) + (cgroups ? strlen(cgroups) : 0);
	struct thread *thread;
	int err;

	tasks->changes++;
	err = table__make_room(&tasks->table, ROOM_EVENT + ROOM_STRING(strings));
	if (err)
		return err;
	thread = who(tasks, NULL, &seed->id, seed->start_ns, seed->start_ns);
	if (!thread)
		return -ENOMEM;
	set_comm(thread, seed->comm, 0);
	err = seed_image(tasks, thread->proc, seed, exe);
	if (!err && cgroups)
		err = seed_cgroups(tasks, thread, seed->cgroup, cgroups);
	return err ? err : join_v2(tasks, thread, thread->cgroups, seed->cgroup, 0);
}

void tasks__retire(struct tasks *tasks, uint64_t watermark_ns)
{
	uint64_t retired = tasks->table.retired;

	if (watermark_ns > tasks->watermark_ns)
		tasks->watermark_ns = watermark_ns;
	if (watermark_ns > tasks->now_ns)
		tasks->now_ns = watermark_ns;
	table__retire(&tasks->table, tasks->watermark_ns);
	tasks->changes += tasks->table.retired - retired;
}

static const char *text_of(const struct name *name)
{
	return name ? name->text : NULL;
}

static const char *comm_of(const struct thread *thread)
{
	return thread->flags & THREAD_HAS_COMM ? thread->comm : NULL;
}

static void view_of(struct tasks *tasks, struct thread *thread, uint64_t stamp_ns,
		    struct task_view *out)
{
	struct cgroup_set *set = thread->cgroups;
	const struct proc *proc = thread->proc;

	thread->flags |= THREAD_USED;
	*out = (struct task_view){
		.pid = proc->pid,
		.tid = thread->tid,
		.start_ns = thread->start_ns,
		.comm = comm_of(thread),
		.name = comm_of(proc->leader),
		.exe = text_of(proc->exe),
		.ppid = proc->ppid,
		.uid = proc->uid,
		.exited = thread->exit_ns <= stamp_ns,
	};
	if (set) {
		cgroup_set__refresh(&tasks->table.cgroups, set);
		out->cgroup = text_of(set->path);
		out->container = text_of(set->container);
		out->unit = text_of(set->unit);
	}
}

static bool look_up(struct tasks *tasks, uint32_t tid, uint64_t stamp_ns, struct task_view *out)
{
	struct thread *thread = table__at(&tasks->table, tid, stamp_ns);

	if (!thread)
		return false;
	view_of(tasks, thread, stamp_ns, out);
	if (thread->exit_ns == TABLE_NEVER_NS)
		tasks->answers[tid % ANSWERS] = (struct answer){
			.tid = tid,
			.changes = tasks->changes,
			.stamp_ns = stamp_ns,
			.view = *out,
		};
	return true;
}

bool tasks__find(struct tasks *tasks, uint32_t tid, uint64_t stamp_ns, struct task_view *out)
{
	const struct answer *known = &tasks->answers[tid % ANSWERS];

	if (known->tid != tid || known->changes != tasks->changes || known->stamp_ns > stamp_ns)
		return look_up(tasks, tid, stamp_ns, out);
	*out = known->view;
	return true;
}

/* As lines of /proc/PID/cgroup. Longer ones than there is room for are cut behind a line. */
static const char *cgroup_lines(const struct cgroup_set *set, char *lines, size_t room)
{
	size_t at = 0;

	for (uint32_t i = 0; i < set->nr; i++) {
		const struct cgroup *cgroup = set->members[i];
		int len;

		if (!cgroup->path)
			continue;
		len = snprintf(lines + at, room - at, "%u::%s\n", cgroup->hierarchy,
			       cgroup->path->text);
		if (len < 0 || (size_t)len >= room - at)
			break;
		at += (size_t)len;
	}
	lines[at] = 0;
	return at ? lines : NULL;
}

static uint64_t v2_id(const struct cgroup_set *set)
{
	return set && set->nr && set->members[0]->hierarchy == CGROUP_V2 ? set->members[0]->id : 0;
}

void tasks__each(struct tasks *tasks, tasks_each_fn fn, void *ctx)
{
	const struct list_node *head = &tasks->table.running;
	char lines[LINES_MAX];

	for (const struct list_node *node = head->next; node != head; node = node->next) {
		const struct thread *thread = list__entry(node, struct thread, life);
		const struct proc *proc = thread->proc;
		struct weir_seed seed = {
			.id = {proc->pid, thread->tid},
			.start_ns = thread->start_ns,
			.cgroup = v2_id(thread->cgroups),
			.ppid = proc->ppid,
			.uid = proc->uid,
		};

		memcpy(seed.comm, thread->comm, sizeof(seed.comm));
		fn(ctx, &seed, text_of(proc->exe),
		   thread->cgroups ? cgroup_lines(thread->cgroups, lines, sizeof(lines)) : NULL);
	}
}

void tasks__stats(const struct tasks *tasks, struct tasks_stats *out)
{
	*out = (struct tasks_stats){
		.entries = tasks->table.by_tid.count,
		.bytes = tasks->table.budget.bytes,
		.evicted = tasks->table.evicted,
		.retired = tasks->table.retired,
	};
}
