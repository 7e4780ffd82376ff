/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reader - a tracer as most are written: libbpf's ring_buffer or perf_buffer, a line an event.
 *
 *	reader ring|perf sys|uname|switch FILE COMM COMMAND...
 *
 * Traces threads of the name COMM ("" is all) until COMMAND has ended and the buffers are empty. The last
 * line says how many were lost. Buffers of 8 MiB a CPU, as weir's.
 */
#include "bench/peers/reader.bpf.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peer_reader.skel.h"

#define BYTES_A_CPU (8u << 20)

struct reader {
	struct peer_reader *skel;
	struct ring_buffer *ring;
	struct perf_buffer *perf;
	FILE *out;
	uint64_t lost;
};

static int print_event(void *ctx, void *data, size_t size)
{
	static const char *const names[] = {"enter", "exit", "switch"};
	const struct peer_event *event = data;

	fprintf(((struct reader *)ctx)->out, "%llu %u %.16s[%u] %s %llu %llx\n", event->stamp,
		event->cpu, event->comm, (uint32_t)event->pid_tgid, names[event->what], event->a,
		event->b);
	return 0;
}

static void print_sample(void *ctx, int cpu, void *data, __u32 size)
{
	print_event(ctx, data, size);
}

static void count_lost(void *ctx, int cpu, __u64 lost)
{
	((struct reader *)ctx)->lost += lost;
}

static size_t power_of_two(size_t least)
{
	size_t size = 4096;

	while (size < least)
		size *= 2;
	return size;
}

static void open_programs(struct reader *reader, bool perf, const char *what, const char *comm)
{
	struct peer_reader *skel = peer_reader__open();
	bool switches = !strcmp(what, "switch");

	if (!skel)
		err(1, "the BPF object");
	skel->rodata->use_perf = perf;
	skel->rodata->only_nr = strcmp(what, "uname") ? -1 : SYS_uname;
	strncpy((char *)skel->rodata->comm, comm, sizeof(skel->rodata->comm) - 1);
	bpf_program__set_autoload(skel->progs.enter, !switches);
	bpf_program__set_autoload(skel->progs.leave, !strcmp(what, "sys"));
	bpf_program__set_autoload(skel->progs.switched, switches);
	bpf_map__set_max_entries(
		skel->maps.ring,
		(uint32_t)power_of_two((size_t)libbpf_num_possible_cpus() * BYTES_A_CPU));
	if (peer_reader__load(skel))
		errx(1, "the BPF object cannot be loaded; it needs root");
	reader->skel = skel;
}

static void open_buffers(struct reader *reader, bool perf)
{
	if (perf)
		reader->perf = perf_buffer__new(bpf_map__fd(reader->skel->maps.perf),
						BYTES_A_CPU / (size_t)sysconf(_SC_PAGESIZE),
						print_sample, count_lost, reader, NULL);
	else
		reader->ring = ring_buffer__new(bpf_map__fd(reader->skel->maps.ring), print_event,
						reader, NULL);
	if (!reader->ring && !reader->perf)
		err(1, "the buffers");
}

static void poll_once(struct reader *reader, int timeout_ms)
{
	int n = reader->perf ? perf_buffer__poll(reader->perf, timeout_ms)
			     : ring_buffer__poll(reader->ring, timeout_ms);

	if (n < 0 && n != -EINTR)
		errx(1, "poll: %s", strerror(-n));
}

static pid_t start(char **argv)
{
	pid_t pid = fork();

	if (pid < 0)
		err(1, "fork");
	if (!pid) {
		execvp(argv[0], argv);
		err(127, "%s", argv[0]);
	}
	return pid;
}

int main(int argc, char **argv)
{
	struct reader reader = {0};
	bool perf;
	int status;
	pid_t pid;

	if (argc < 6)
		errx(2, "usage: reader ring|perf sys|uname|switch FILE COMM COMMAND...");
	perf = !strcmp(argv[1], "perf");
	open_programs(&reader, perf, argv[2], argv[4]);
	open_buffers(&reader, perf);
	reader.out = fopen(argv[3], "we");
	if (!reader.out || peer_reader__attach(reader.skel))
		err(1, "%s", reader.out ? "attach" : argv[3]);
	pid = start(argv + 5);
	while (!waitpid(pid, &status, WNOHANG))
		poll_once(&reader, 10);
	peer_reader__detach(reader.skel);
	poll_once(&reader, 0);
	if (!perf)
		reader.lost = reader.skel->bss->ring_lost;
	fprintf(reader.out, "lost %" PRIu64 "\n", reader.lost);
	if (fclose(reader.out))
		err(1, "%s", argv[3]);
	return status ? 1 : 0;
}
