// SPDX-License-Identifier: BSD-2-Clause
/*
 * after.c - opens.bpf.c read through weir: one stream in true time order, and an account of it.
 *
 *	after [SECONDS]
 */
#include <bpf/libbpf.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <weir/weir.h>

#include "opens.h"
#include "opens.skel.h"

static volatile sig_atomic_t stop;
static uint64_t lost;

static void on_stop(int sig)
{
	(void)sig;
	stop = 1;
}

static int on_event(void *ctx, const struct weir_event *event)
{
	const struct open *open = event->data;
	const struct weir_gap *gap = event->data;

	(void)ctx;
	if (event->kind == WEIR_KIND_GAP)
		lost += gap->lost;
	else if (event->kind == WEIR_KIND_RECORD && event->len >= sizeof(*open))
		printf("%llu %.16s[%u]\n", open->ns, open->comm, open->pid);
	return 0;
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 10);
	struct opens *opens = opens__open_and_load();
	char why[256] = "";
	struct weir_stream_opts opts = {.sz = sizeof(opts), .on_event = on_event};
	struct weir_perf_array_opts array = {
		.sz = sizeof(array),
		.name = "opens",
		.ring_bytes = 64 * 4096,
		.payload_len = sizeof(struct open),
		.stamp_offset = offsetof(struct open, ns),
		.err = why,
		.err_len = sizeof(why),
	};
	struct weir_stream *stream;
	int err = 0;

	if (!opens)
		return 1;
	array.map_fd = bpf_map__fd(opens->maps.events);
	stream = weir_stream__new(&opts);
	if (!stream || weir_stream__add_perf_array(stream, &array) || opens__attach(opens)) {
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	signal(SIGINT, on_stop);
	fprintf(stderr, "tracing\n");
	while (err >= 0 && !stop && time(NULL) < end)
		err = weir_stream__poll(stream, 200);
	opens__destroy(opens);
	weir_stream__close(stream);
	fprintf(stderr, "lost %llu\n", (unsigned long long)lost);
	weir_stream__free(stream);
	return err < 0 && err != -EINTR;
}
