/* SPDX-License-Identifier: BSD-2-Clause */
#include "measure/flood.h"
#include "measure/most.h"
#include "measure/ordinary.h"
#include "measure/sample.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <err.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CATCH_UP_NS 1000000

struct caller {
	pthread_t thread;
	int cpu;
	double calls_per_ns;
	bool *stop;
	uint64_t calls;
};

static int on_event(void *ctx, const struct weir_event *event)
{
	struct flood *flood = ctx;

	if (event->kind != WEIR_KIND_RECORD)
		return 0;
	flood->events++;
	flood->sum += *(const uint64_t *)event->data;
	return 0;
}

static int on_sample(void *ctx, void *data, size_t size)
{
	struct flood *flood = ctx;

	flood->events++;
	flood->sum += *(const uint64_t *)data;
	return 0;
}

void flood__open(struct flood *flood, enum flood_reader reader)
{
	struct bpf_program *program;

	*flood = (struct flood){.reader = reader, .hook.floods = true};
	hook__open(&flood->hook, 0, FLOOD_RING_BYTES, on_event, flood);
	flood->hook.skel->bss->flood_nr = SYS_getppid;
	flood->hook.skel->bss->flood_tgid = (uint32_t)getpid();
	if (reader == FLOOD_LIBBPF) {
		flood->libbpf = ring_buffer__new(bpf_map__fd(flood->hook.skel->maps.bare),
						 on_sample, flood, NULL);
		if (!flood->libbpf)
			err(1, "the ring buffer cannot be read");
	}
	program = reader == FLOOD_WEIR ? flood->hook.skel->progs.flood
				       : flood->hook.skel->progs.flood_bare;
	flood->link = bpf_program__attach(program);
	if (!flood->link)
		err(1, "the program cannot be attached");
}

void flood__close(struct flood *flood)
{
	bpf_link__destroy(flood->link);
	ring_buffer__free(flood->libbpf);
	hook__close(&flood->hook);
}

/* When it was kept from its CPU it catches up for a millisecond's calls, and no more. */
static void *make_calls(void *ctx)
{
	struct caller *caller = ctx;
	double ns_per_call = 1 / caller->calls_per_ns;
	double next_ns;

	ordinary__be();
	sample__pin(caller->cpu);
	next_ns = (double)sample__now_ns();
	while (!__atomic_load_n(caller->stop, __ATOMIC_RELAXED)) {
		double now_ns = (double)sample__now_ns();

		if (now_ns - next_ns > CATCH_UP_NS)
			next_ns = now_ns - CATCH_UP_NS;
		for (; next_ns <= now_ns; next_ns += ns_per_call) {
			syscall(SYS_getppid);
			caller->calls++;
		}
	}
	return NULL;
}

static void start_callers(struct caller *caller, const struct flood_shape *shape, bool *stop)
{
	int last = (int)sysconf(_SC_NPROCESSORS_ONLN) - 1;

	for (unsigned i = 0; i < shape->cpus; i++) {
		caller[i] = (struct caller){
			.cpu = last - (int)i > 0 ? last - (int)i : 0,
			.calls_per_ns = (double)shape->rate / shape->times / shape->cpus / 1e9,
			.stop = stop,
		};
		errno = pthread_create(&caller[i].thread, NULL, make_calls, &caller[i]);
		if (errno)
			err(1, "a thread");
	}
}

static void poll_once(struct flood *flood, int timeout_ms)
{
	int n = flood->reader == FLOOD_WEIR ? weir_stream__poll(flood->hook.stream, timeout_ms)
					    : ring_buffer__poll(flood->libbpf, timeout_ms);

	if (n < 0 && n != -EINTR)
		errx(1, "the reader fails");
}

static void poll_until(struct flood *flood, uint64_t end_ns)
{
	uint64_t now_ns;

	while ((now_ns = sample__now_ns()) < end_ns)
		poll_once(flood, (int)((end_ns - now_ns + 999999) / 1000000));
}

static uint64_t lost(const struct flood *flood)
{
	struct weir_ledger ledger = {.sz = sizeof(ledger)};
	uint64_t sum = 0;

	if (flood->reader == FLOOD_LIBBPF)
		return __atomic_load_n(&flood->hook.skel->bss->flood_lost, __ATOMIC_RELAXED);
	weir_stream__ledger(flood->hook.stream, &ledger);
	for (int cause = 0; cause < WEIR_LOST_CAUSES; cause++)
		sum += ledger.total.lost[cause];
	return sum;
}

struct flood_result flood__run(struct flood *flood, const struct flood_shape *shape, double seconds)
{
	struct caller *caller = calloc(shape->cpus, sizeof(*caller));
	uint64_t events = flood->events, lost_before = lost(flood), calls = 0;
	uint64_t begin_ns, cpu_ns;
	bool stop = false;
	double took;

	if (!caller)
		err(1, "threads");
	flood->hook.skel->bss->flood_bytes = shape->bytes;
	flood->hook.skel->bss->flood_times = shape->times;
	begin_ns = sample__now_ns();
	cpu_ns = sample__cpu_ns();
	start_callers(caller, shape, &stop);
	poll_until(flood, begin_ns + (uint64_t)(seconds * 1e9));
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < shape->cpus; i++) {
		pthread_join(caller[i].thread, NULL);
		calls += caller[i].calls;
	}
	took = (double)(sample__now_ns() - begin_ns) / 1e9;
	/* What is on its way still: the watermark has to pass the last of it. */
	poll_until(flood, sample__now_ns() + 5000000);
	cpu_ns = sample__cpu_ns() - cpu_ns;
	events = flood->events - events;
	free(caller);
	return (struct flood_result){
		.produced = (double)(calls * shape->times) / took,
		.delivered = (double)events / took,
		.cpu_ns = events ? (double)cpu_ns / (double)events : 0,
		.cpu_percent = (double)cpu_ns / 1e7 / took,
		.calls = calls,
		.lost = lost(flood) - lost_before,
	};
}

struct step {
	struct flood *flood;
	struct flood_shape shape;
	double seconds;
	struct flood_result best;
};

static struct most_run run_step(void *ctx, uint64_t rate)
{
	struct step *step = ctx;
	struct flood_result result;

	step->shape.rate = rate;
	result = flood__run(step->flood, &step->shape, step->seconds);
	if (!result.lost && result.delivered > step->best.delivered)
		step->best = result;
	return (struct most_run){.delivered = result.delivered, .lost = result.lost};
}

struct flood_result flood__search(struct flood *flood, const struct flood_shape *shape,
				  double seconds, bool *limit)
{
	struct step step = {.flood = flood, .shape = *shape, .seconds = seconds};

	most__find(run_step, &step, limit);
	return step.best;
}
