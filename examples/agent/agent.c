// SPDX-License-Identifier: BSD-2-Clause
/*
 * agent.c - an agent on weir.bpf.h: every signal on this machine, in true time order, with an account
 * that adds up. Ends after SECONDS, or on Ctrl-C.
 *
 *	agent [SECONDS]
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

#include "agent.h"
#include "agent.skel.h"

static volatile sig_atomic_t stop;

static void on_stop(int sig)
{
	(void)sig;
	stop = 1;
}

static int on_event(void *ctx, const struct weir_event *event)
{
	const struct signal *s = event->data;
	const struct weir_gap *gap = event->data;

	(void)ctx;
	if (event->kind == WEIR_KIND_GAP)
		printf("%" PRIu64 " lost %" PRIu64 " since %" PRIu64 ": %s\n", event->stamp_ns,
		       gap->lost, gap->from_ns, weir_cause__name(gap->cause));
	else if (event->kind == WEIR_KIND_RECORD && event->len >= sizeof(*s))
		printf("%" PRIu64 " %.16s[%u] %s %.16s[%u]\n", event->stamp_ns, s->sender_comm,
		       s->sender, strsignal(s->sig), s->target_comm, s->target);
	return ferror(stdout) ? -EIO : 0;
}

/* One ring a CPU; what weir.bpf.h's maps need before they are made. */
static struct agent *load(void)
{
	struct agent *agent;
	uint32_t cpus = (uint32_t)libbpf_num_possible_cpus();

	libbpf_set_print(NULL);
	agent = agent__open();
	if (!agent)
		return NULL;
	agent->rodata->weir_nr_cpus = cpus;
	if (!bpf_map__set_max_entries(agent->maps.weir_rings, cpus) &&
	    !bpf_map__set_max_entries(agent->maps.weir_counters, cpus + 1) && !agent__load(agent))
		return agent;
	agent__destroy(agent);
	return NULL;
}

static struct weir_stream *make_stream(const struct agent *agent)
{
	const struct weir_ring_class class = {.name = "cpu", .ring_bytes = 1 << 20};
	const struct weir_stream_opts opts = {.sz = sizeof(opts), .on_event = on_event};
	const struct weir_rings_opts rings = {
		.sz = sizeof(rings),
		.rings_fd = bpf_map__fd(agent->maps.weir_rings),
		.counters_fd = bpf_map__fd(agent->maps.weir_counters),
		.nr_cpus = agent->rodata->weir_nr_cpus,
		.classes = &class,
		.nr_classes = 1,
	};
	struct weir_stream *stream = weir_stream__new(&opts);

	if (stream && !weir_stream__add_rings(stream, &rings))
		return stream;
	weir_stream__free(stream);
	return NULL;
}

int main(int argc, char **argv)
{
	time_t end = argc > 1 ? time(NULL) + atoi(argv[1]) : 0;
	struct weir_ledger ledger = {.sz = sizeof(ledger)};
	struct agent *agent = load();
	struct weir_stream *stream = agent ? make_stream(agent) : NULL;
	int err = stream && !agent__attach(agent) ? 0 : -1;

	if (err)
		fprintf(stderr, "cannot trace: %s (root, or CAP_BPF and CAP_PERFMON?)\n",
			strerror(errno));
	signal(SIGINT, on_stop);
	signal(SIGTERM, on_stop);
	if (!err)
		fprintf(stderr, "tracing\n");
	while (err >= 0 && !stop && !(end && time(NULL) >= end)) {
		err = weir_stream__poll(stream, 200);
		fflush(stdout);
		if (err == -EINTR)
			err = 0;
	}
	agent__destroy(agent); /* detached: nothing new comes, and close() delivers what there is */
	if (stream && !weir_stream__close(stream) && !weir_stream__ledger(stream, &ledger))
		fprintf(stderr,
			"produced %" PRIu64 ", delivered %" PRIu64 ", difference %" PRId64 "\n",
			ledger.total.produced, ledger.total.delivered,
			weir_account__difference(&ledger.total));
	weir_stream__free(stream);
	return err < 0;
}
