/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * replay.c - what reading a capture costs, an event from file to callback.
 *
 * Makes a capture of two CPUs as a busy machine would write it (switches, wake-ups and whole system
 * calls, by turns), then counts its events through the reader. Time is this thread's, and what the
 * kernel spends on its behalf is in it.
 */
#include "measure/sample.h"

#include "capture/feed.h"
#include "capture/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define CPUS	     2 /* unless said otherwise */
#define CPUS_MAX     4096
#define STEP_NS	     200
#define FLUSH_EVENTS 4000000 /* 0.8 s of such events */

#define TARGET_EVENTS_PER_S 10e6
#define TARGET_MIB	    256

static void die(const char *what, int err)
{
	fprintf(stderr, "replay: %s: %s\n", what, strerror(err));
	exit(1);
}

/* ---- making one ------------------------------------------------------------------------------- */

static const uint16_t types[] = {WEIR_T_SYS_ENTER, WEIR_T_SYS_EXIT, WEIR_T_WAKEUP, WEIR_T_SWITCH};

union payload {
	struct weir_sys_enter enter;
	struct weir_sys_exit exit;
	struct weir_wakeup wakeup;
	struct weir_switch switched;
};

static uint32_t fill(union payload *payload, uint16_t type, uint64_t i)
{
	const struct weir_task_id id = {1000 + (uint32_t)(i >> 8 & 63),
					1000 + (uint32_t)(i >> 8 & 63)};

	memset(payload, 0, sizeof(*payload));
	payload->enter.id = id;
	switch (type) {
	case WEIR_T_SYS_ENTER:
		payload->enter.nr = 1; /* write */
		return sizeof(payload->enter);
	case WEIR_T_SYS_EXIT:
		payload->exit.nr = 1;
		payload->exit.ret = (int64_t)(i & 4095);
		return sizeof(payload->exit);
	case WEIR_T_WAKEUP:
		memcpy(payload->wakeup.target_comm, "sleeper", 8);
		return sizeof(payload->wakeup);
	default:
		memcpy(payload->switched.prev_comm, "worker", 7);
		memcpy(payload->switched.next_comm, "sleeper", 8);
		return sizeof(payload->switched);
	}
}

static void on_lost(void *ctx, uint32_t source, uint64_t records)
{
	die("a record could not be written", ENOSPC);
}

static struct writer *new_writer(const char *dir, uint64_t start_ns, uint32_t cpus)
{
	const struct metadata metadata = {
		.boot_id = "00000000-0000-0000-0000-000000000000",
		.hostname = "bench",
		.sysname = "Linux",
		.release = "0",
		.version = "0",
		.command = "bench/replay",
		.nr_cpus = cpus,
		.selected_types = UINT32_MAX,
	};
	struct writer_opts opts = {.metadata = &metadata, .start_ns = start_ns, .lost = on_lost};

	if (mkdir(dir, 0700) && errno != EEXIST)
		die(dir, errno);
	opts.dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (opts.dir_fd < 0)
		die(dir, errno);
	return writer__new(&opts);
}

static void make(const char *dir, uint64_t events, uint32_t cpus)
{
	uint64_t stamp_ns = 1000000000, *seq = calloc(cpus, sizeof(*seq));
	struct writer *writer = new_writer(dir, stamp_ns, cpus);
	union payload payload;

	if (!writer || !seq)
		die(dir, errno);
	writer__begin_part(writer, 0);
	for (uint64_t i = 0; i < events; i++) {
		/* A few of one CPU, then of another, as a machine has it. */
		uint32_t cpu = (i / 7 + i / 31) % cpus;
		struct weir_event event = {
			.stamp_ns = stamp_ns += STEP_NS,
			.seq = seq[cpu]++,
			.data = &payload,
			.source = cpus + cpu,
			.cpu = (int32_t)cpu,
			.type = types[i % 4],
		};

		event.len = fill(&payload, event.type, i);
		if (writer__record(writer, &event))
			die("a record was refused", EINVAL);
		if (i % FLUSH_EVENTS == FLUSH_EVENTS - 1)
			writer__flush(writer, stamp_ns, WEIR_ORDER_EXACT);
	}
	writer__end_part(writer, stamp_ns, WEIR_ORDER_EXACT, true);
	writer__free(writer);
	free(seq);
}

/* ---- reading it ------------------------------------------------------------------------------- */

static int on_event(void *ctx, const struct weir_event *event)
{
	++*(uint64_t *)ctx;
	return 0;
}

static uint64_t count(const char *dir)
{
	uint64_t events = 0;
	const struct weir_stream_opts opts = {
		.sz = sizeof(opts), .on_event = on_event, .ctx = &events};
	const struct feed_opts all = {0, UINT64_MAX};
	struct weir_stream *stream = weir_stream__new(&opts);
	char err[256];
	struct reader *reader = reader__open(dir, err, sizeof(err));
	struct feed *feed = reader && stream ? feed__new(reader, stream, &all) : NULL;
	int more;

	if (!feed)
		die(reader ? "no stream" : err, ENOMEM);
	while ((more = feed__step(feed)) > 0)
		;
	if (more)
		die("reading", -more);
	feed__free(feed);
	weir_stream__free(stream);
	reader__close(reader);
	return events;
}

static void measure(const char *dir, uint64_t expected)
{
	uint64_t begin_ns = sample__cpu_ns(), events = count(dir), ns = sample__cpu_ns() - begin_ns;
	double rate = (double)events * 1e9 / (double)ns;
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	if (expected && events != expected)
		die("not all events came", EIO);
	printf("  %" PRIu64 " events to a counter: %.1f ns each, %.1f M/s, %ld MiB of memory%s\n",
	       events, (double)ns / (double)events, rate / 1e6, usage.ru_maxrss / 1024,
	       rate < TARGET_EVENTS_PER_S || usage.ru_maxrss / 1024 > TARGET_MIB ? "  MISSED" : "");
}

int main(int argc, char **argv)
{
	if ((argc == 4 || argc == 5) && !strcmp(argv[1], "make")) {
		uint32_t cpus = argc == 5 ? (uint32_t)strtoul(argv[4], NULL, 10) : CPUS;

		if (!cpus || cpus > CPUS_MAX)
			die(argv[4], ERANGE);
		make(argv[2], strtoull(argv[3], NULL, 10), cpus);
		return 0;
	}
	if ((argc == 3 || argc == 4) && !strcmp(argv[1], "count")) {
		measure(argv[2], argc == 4 ? strtoull(argv[3], NULL, 10) : 0);
		return 0;
	}
	fprintf(stderr, "usage: replay make DIR EVENTS [CPUS] | replay count DIR [EVENTS]\n");
	return 2;
}
