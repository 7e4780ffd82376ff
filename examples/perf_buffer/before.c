// SPDX-License-Identifier: BSD-2-Clause
/*
 * before.c - opens.bpf.c read through libbpf's perf_buffer: CPU by CPU, so that time steps back.
 *
 *	before [SECONDS]
 */
#include <bpf/libbpf.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "opens.h"
#include "opens.skel.h"

static volatile sig_atomic_t stop;
static uint64_t lost;

static void on_stop(int sig)
{
	(void)sig;
	stop = 1;
}

static void on_open(void *ctx, int cpu, void *data, __u32 size)
{
	const struct open *open = data;

	(void)ctx, (void)cpu, (void)size;
	printf("%llu %.16s[%u]\n", open->ns, open->comm, open->pid);
}

static void on_lost(void *ctx, int cpu, __u64 count)
{
	(void)ctx, (void)cpu;
	lost += count;
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 10);
	struct opens *opens = opens__open_and_load();
	struct perf_buffer *buffer;
	int err = 0;

	if (!opens)
		return 1;
	buffer = perf_buffer__new(bpf_map__fd(opens->maps.events), 64, on_open, on_lost, NULL,
				  NULL);
	if (!buffer || opens__attach(opens))
		return 1;
	signal(SIGINT, on_stop);
	fprintf(stderr, "tracing\n");
	while (err >= 0 && !stop && time(NULL) < end)
		err = perf_buffer__poll(buffer, 200);
	perf_buffer__consume(buffer);
	fprintf(stderr, "lost at least %llu\n", (unsigned long long)lost);
	perf_buffer__free(buffer);
	opens__destroy(opens);
	return err < 0 && err != -EINTR;
}
