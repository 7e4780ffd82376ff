/* SPDX-License-Identifier: BSD-2-Clause */
#include "measure/delay.h"
#include "measure/steady.h"

#include <bpf/libbpf.h>
#include <err.h>
#include <string.h>

#define RING_BYTES (4u << 20)
#define FLUSH_MS   10000

static int on_event(void *ctx, const struct weir_event *event)
{
	struct delay *delay = ctx;

	if (event->kind != WEIR_KIND_RECORD)
		return 0;
	delay->events++;
	if (delay->timing)
		sample__add(&delay->lag_us, (double)(sample__now_ns() - event->stamp_ns) / 1000);
	return 0;
}

static struct weir_ledger ledger_of(const struct weir_stream *stream)
{
	struct weir_ledger ledger = {.sz = sizeof(ledger)};

	weir_stream__ledger(stream, &ledger);
	return ledger;
}

static uint64_t lost(const struct weir_ledger *ledger)
{
	uint64_t sum = 0;

	for (int cause = 0; cause < WEIR_LOST_CAUSES; cause++)
		sum += ledger->total.lost[cause];
	return sum;
}

const char *delay__name(enum delay_fence fence)
{
	static const char *const names[DELAY_FENCES] = {"reserve", "rcu", "grace"};

	return names[fence];
}

void delay__open(struct delay *delay, enum delay_fence fence, int load_cpu)
{
	struct bpf_program *program;

	memset(delay, 0, sizeof(*delay));
	delay->load_cpu = load_cpu;
	if (fence == DELAY_RESERVE)
		hook__open(&delay->hook, 0, RING_BYTES, on_event, delay);
	else
		hook__open_outside(&delay->hook,
				   fence == DELAY_RCU ? WEIR_FENCE_RCU : WEIR_FENCE_GRACE,
				   DELAY_GRACE_NS, on_event, delay);
	program = fence == DELAY_RESERVE ? delay->hook.skel->progs.record
					 : delay->hook.skel->progs.ring_asks;
	delay->link = bpf_program__attach(program);
	if (!delay->link)
		err(1, "the program cannot be attached");
}

void delay__close(struct delay *delay)
{
	bpf_link__destroy(delay->link);
	hook__close(&delay->hook);
	sample__free(&delay->lag_us);
}

static void poll_for(struct weir_stream *stream, double seconds)
{
	uint64_t end_ns = sample__now_ns() + (uint64_t)(seconds * 1e9), now_ns;

	while ((now_ns = sample__now_ns()) < end_ns)
		if (weir_stream__poll(stream, (int)((end_ns - now_ns + 999999) / 1000000)) < 0)
			errx(1, "the stream fails");
}

struct delay_result delay__run(struct delay *delay, unsigned rate, double seconds, bool timing)
{
	struct weir_stream *stream = delay->hook.stream;
	struct weir_ledger before, after;
	uint64_t begin_ns, cpu_ns, events;
	double took;
	struct steady load;
	struct delay_result result;

	steady__start(&load, rate, delay->load_cpu);
	hook__set_load(&delay->hook, load.tid);
	poll_for(stream, 0.2);
	delay->timing = timing;
	events = delay->events;
	before = ledger_of(stream);
	begin_ns = sample__now_ns();
	cpu_ns = sample__cpu_ns();
	poll_for(stream, seconds);
	/* A proof may take longer than that on a busy machine: what waits for it is the latest of all. */
	if (timing && weir_stream__flush(stream, FLUSH_MS) < 0 && !delay->lag_us.count)
		errx(1, "nothing is delivered");
	cpu_ns = sample__cpu_ns() - cpu_ns;
	took = (double)(sample__now_ns() - begin_ns) / 1e9;
	after = ledger_of(stream);
	result = (struct delay_result){
		.rate = (double)(delay->events - events) / took,
		.polls = (double)(after.polls - before.polls) / took,
		.cpu_percent = (double)cpu_ns / 1e7 / took,
		.lost = lost(&after) - lost(&before),
	};
	delay->timing = false;
	steady__stop(&load);
	hook__set_load(&delay->hook, 0);
	return result;
}
