// SPDX-License-Identifier: BSD-2-Clause
/*
 * three.c - three kinds of sources in one stream: another program's ring buffer (forks), a tracepoint
 * through perf (execs), and rings of weir.bpf.h (exits). What is remembered of a process is let go by
 * weir_stream__retire(), when everything up to its exit has been seen.
 *
 *	three [SECONDS]
 */
#include <weir/weir.h>

#include <bpf/libbpf.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "three.h"
#include "three.skel.h"

static volatile sig_atomic_t stop;

static void on_stop(int sig)
{
	(void)sig;
	stop = 1;
}

/* A process that was born in front of our eyes. */
struct child {
	struct child *next;
	uint32_t pid;
	uint64_t born_ns;
};

struct three {
	struct weir_stream *stream;
	struct child *children;
	uint64_t born, retired;
};

static void say(const struct weir_event *event, const char *what, uint32_t a, uint32_t b)
{
	printf("%" PRIu64 " %s %u %u%s\n", event->stamp_ns, what, a, b,
	       event->mark & WEIR_MARK_LATE ? " late" : "");
}

static int on_fork(struct three *t, const struct weir_event *event, const struct fork *fork)
{
	struct child *child = calloc(1, sizeof(*child));

	if (!child)
		return -ENOMEM;
	*child = (struct child){.next = t->children, .pid = fork->child, .born_ns = fork->ns};
	t->children = child;
	t->born++;
	say(event, "fork", fork->parent, fork->child);
	return 0;
}

/* Nothing stamped up to its exit can come any more: now its name, its maps, its state may go. */
static void forget(void *arg, uint64_t stamp_ns)
{
	struct three *t = arg;

	(void)stamp_ns;
	t->retired++;
}

static int on_exit_(struct three *t, const struct weir_event *event, const struct exit *exit)
{
	say(event, "exit", exit->pid, exit->tid);
	for (struct child **at = &t->children; *at; at = &(*at)->next) {
		struct child *child = *at;

		if (child->pid != exit->tid)
			continue;
		*at = child->next;
		free(child);
		return weir_stream__retire(t->stream, event->stamp_ns, forget, t);
	}
	return 0;
}

static int on_event(void *ctx, const struct weir_event *event)
{
	struct weir_source_info from;
	struct weir_perf_sample sample;
	struct three *t = ctx;

	if (event->kind != WEIR_KIND_RECORD || weir_stream__source(t->stream, event->source, &from))
		return 0;
	if (!strcmp(from.name, "forks") && event->len >= sizeof(struct fork))
		return on_fork(t, event, event->data);
	if (!strncmp(from.name, "exit", 4) && event->len >= sizeof(struct exit))
		return on_exit_(t, event, event->data);
	if (!weir_stream__parse_perf(t->stream, event, &sample))
		say(event, "exec", sample.pid, sample.tid);
	return 0;
}

static struct three_bpf *load(void)
{
	struct three_bpf *bpf = three_bpf__open();
	uint32_t cpus = (uint32_t)libbpf_num_possible_cpus();

	if (!bpf)
		return NULL;
	bpf->rodata->weir_nr_cpus = cpus;
	if (!bpf_map__set_max_entries(bpf->maps.weir_rings, cpus) &&
	    !bpf_map__set_max_entries(bpf->maps.weir_counters, cpus + 1) && !three_bpf__load(bpf))
		return bpf;
	three_bpf__destroy(bpf);
	return NULL;
}

static int add_exits(struct weir_stream *stream, const struct three_bpf *bpf)
{
	const struct weir_ring_class class = {.name = "exit", .ring_bytes = 1 << 18};
	const struct weir_rings_opts opts = {
		.sz = sizeof(opts),
		.rings_fd = bpf_map__fd(bpf->maps.weir_rings),
		.counters_fd = bpf_map__fd(bpf->maps.weir_counters),
		.nr_cpus = bpf->rodata->weir_nr_cpus,
		.classes = &class,
		.nr_classes = 1,
	};

	return weir_stream__add_rings(stream, &opts);
}

static int add_forks(struct weir_stream *stream, const struct three_bpf *bpf, char *why, size_t len)
{
	const struct weir_ringbuf_opts opts = {
		.sz = sizeof(opts),
		.map_fd = bpf_map__fd(bpf->maps.forks),
		.name = "forks",
		.stamp_offset = offsetof(struct fork, ns),
		.lost_fd = -1, /* nobody counts what finds no room: the account says `unknown` */
		.err = why,
		.err_len = len,
	};

	return weir_stream__add_ringbuf(stream, &opts);
}

static int add_execs(struct weir_stream *stream, char *why, size_t len)
{
	const struct weir_perf_event exec = {.tracepoint = "sched:sched_process_exec"};
	const struct weir_perf_opts opts = {
		.sz = sizeof(opts),
		.name = "exec",
		.events = &exec,
		.nr_events = 1,
		.ring_bytes = 1 << 18,
		.err = why,
		.err_len = len,
	};

	return weir_stream__add_perf(stream, &opts);
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 10);
	struct three t = {0};
	const struct weir_stream_opts opts = {.sz = sizeof(opts), .on_event = on_event, .ctx = &t};
	struct three_bpf *bpf = load();
	char why[256] = "cannot load";
	int err = -1;

	t.stream = weir_stream__new(&opts);
	if (bpf && t.stream && !add_exits(t.stream, bpf) &&
	    !add_forks(t.stream, bpf, why, sizeof(why)) && !add_execs(t.stream, why, sizeof(why)))
		err = three_bpf__attach(bpf);
	if (err)
		fprintf(stderr, "%s\n", why);
	else
		fprintf(stderr, "tracing\n");
	signal(SIGINT, on_stop);
	while (err >= 0 && !stop && time(NULL) < end)
		err = weir_stream__poll(t.stream, 200);
	three_bpf__destroy(bpf);
	if (t.stream)
		weir_stream__close(t.stream);
	fprintf(stderr, "born %" PRIu64 ", retired %" PRIu64 "\n", t.born, t.retired);
	weir_stream__free(t.stream);
	while (t.children) {
		struct child *child = t.children;

		t.children = child->next;
		free(child);
	}
	return err < 0 && err != -EINTR;
}
