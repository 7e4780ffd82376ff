// SPDX-License-Identifier: BSD-2-Clause
#include "acts.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define LIFE_BYTES  (1u << 18)
#define RECORDS_MAX 65536

struct test t;

static int keep(void *ctx, const struct weir_event *event)
{
	struct record *r = &t.records[t.n];

	if (event->kind != WEIR_KIND_RECORD || t.n == RECORDS_MAX)
		return 0;
	*r = (struct record){event->stamp_ns, event->type, event->len, malloc(event->len)};
	memcpy(r->payload, event->data, event->len);
	t.n++;
	return 0;
}

static void seed(void *ctx, const struct weir_seed *s, const char *exe, const char *cgroups)
{
	t.seeds++;
	if (s->id.tid != (uint32_t)getpid())
		return;
	t.own_seed = *s;
	snprintf(t.own_exe, sizeof(t.own_exe), "%s", exe ? exe : "");
	assert_non_null(cgroups);
	assert_non_null(strchr(cgroups, '/'));
}

void open_all(const char *const *what, const uint32_t *pid, size_t event_bytes)
{
	struct probes_selection sel = {
		.string_limit = 64,
		.pids = pid,
		.nr_pids = pid ? 1 : 0,
		.children = true,
	};
	struct weir_stream_opts opts = {.sz = sizeof(opts), .on_event = keep};

	for (; *what; what += 2)
		assert_int_equal(probes__select(&sel, what[0], what[1], t.err, sizeof(t.err)), 0);
	t.stream = weir_stream__new(&opts);
	assert_non_null(t.stream);
	t.probes = probes__open(&sel, t.err, sizeof(t.err));
	if (!t.probes)
		fail_msg("%s", t.err);
	if (probes__connect(t.probes, t.stream, LIFE_BYTES, event_bytes, t.err, sizeof(t.err)) ||
	    probes__attach(t.probes, seed, NULL, t.err, sizeof(t.err)))
		fail_msg("%s", t.err);
}

void close_all(void)
{
	struct weir_ledger ledger = {.sz = sizeof(ledger)};

	probes__detach(t.probes);
	assert_int_equal(weir_stream__close(t.stream), 0);
	assert_int_equal(weir_stream__ledger(t.stream, &ledger), 0);
	assert_int_equal(ledger.total.pending, 0);
	assert_int_equal(weir_account__difference(&ledger.total), 0);
	assert_int_equal(ledger.total.late, 0);
	assert_int_equal(ledger.total.failed, ledger.total.lost[WEIR_LOST_RESERVE_FAILED]);
}

struct weir_account account(void)
{
	struct weir_ledger ledger = {.sz = sizeof(ledger)};

	assert_int_equal(weir_stream__ledger(t.stream, &ledger), 0);
	return ledger.total;
}

uint64_t own_events(const char *class)
{
	struct weir_source_info info;
	uint64_t own = 0;

	for (uint32_t i = 0; weir_stream__source(t.stream, i, &info) == 0; i++) {
		if (!strncmp(info.name, class, strlen(class)))
			own += info.account.self;
	}
	return own;
}

int set_up(void **state)
{
	memset(&t, 0, sizeof(t));
	t.records = calloc(RECORDS_MAX, sizeof(*t.records));
	t.told = mmap(NULL, sizeof(*t.told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	return !t.records || t.told == MAP_FAILED;
}

int tear_down(void **state)
{
	if (t.probes)
		probes__free(t.probes);
	weir_stream__free(t.stream);
	while (t.n)
		free(t.records[--t.n].payload);
	free(t.records);
	munmap(t.told, sizeof(*t.told));
	return 0;
}

pid_t start(void (*act)(void))
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid) {
		t.told->actor = pid;
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	act();
	_exit(0);
}

void finish(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(weir_stream__flush(t.stream, CALL_LIMIT_MS), 0);
}

void run(void (*act)(void))
{
	finish(start(act));
}

void must(bool good)
{
	if (!good)
		_exit(111);
}

pid_t fork_child(void (*act)(void))
{
	pid_t pid = fork();

	must(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	act();
	_exit(0);
}

pid_t run_child(void (*act)(void))
{
	pid_t pid = fork_child(act);

	must(waitpid(pid, NULL, 0) == pid);
	return pid;
}

void wait_for(volatile int *flag)
{
	while (!*flag)
		usleep(1000);
}

/* Payloads begin with who it is about, but for FORK, where that is the second. */
const struct weir_task_id *who(const struct record *r)
{
	return (const struct weir_task_id *)r->payload + (r->type == WEIR_T_FORK);
}

const struct record *find_from(size_t from, enum weir_type type, pid_t tid)
{
	for (size_t i = from; i < t.n; i++) {
		if (t.records[i].type == type && who(&t.records[i])->tid == (uint32_t)tid)
			return &t.records[i];
	}
	fail_msg("no record of type %d about %d", type, tid);
	return NULL;
}

const void *find(enum weir_type type, pid_t tid)
{
	return find_from(0, type, tid)->payload;
}

size_t count(enum weir_type type, pid_t tid)
{
	size_t n = 0;

	for (size_t i = 0; i < t.n; i++)
		n += t.records[i].type == type && who(&t.records[i])->tid == (uint32_t)tid;
	return n;
}

void start_to_end(void (*act)(void))
{
	pid_t pid = start(act);

	assert_int_equal(waitpid(pid, NULL, 0), pid);
}
