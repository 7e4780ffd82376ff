/* SPDX-License-Identifier: BSD-2-Clause */
#include "measure/hook.h"

#include <bpf/libbpf.h>
#include <err.h>

static void load(struct hook *hook, uint32_t cpus)
{
	struct probe *skel = probe__open();

	if (!skel)
		err(1, "the BPF object");
	skel->rodata->weir_nr_cpus = cpus;
	bpf_program__set_autoload(skel->progs.flood, hook->floods);
	bpf_program__set_autoload(skel->progs.flood_bare, hook->floods);
	if (bpf_map__set_max_entries(skel->maps.weir_rings, cpus) ||
	    bpf_map__set_max_entries(skel->maps.weir_counters, cpus + 1) || probe__load(skel))
		errx(1, "the BPF object cannot be loaded; it needs root");
	hook->skel = skel;
}

static uint32_t possible_cpus(void)
{
	int cpus = libbpf_num_possible_cpus();

	if (cpus < 0)
		errx(1, "how many CPUs there are is not known");
	return (uint32_t)cpus;
}

void hook__open(struct hook *hook, int load_tid, size_t ring_bytes, weir_event_fn on_event,
		void *ctx)
{
	const struct weir_ring_class class = {.name = "cpu", .ring_bytes = ring_bytes};
	struct weir_stream_opts opts = {.sz = sizeof(opts), .on_event = on_event, .ctx = ctx};
	struct weir_rings_opts rings = {.sz = sizeof(rings), .classes = &class, .nr_classes = 1};
	uint32_t cpus = possible_cpus();

	load(hook, cpus);
	hook__set_load(hook, load_tid);
	rings.rings_fd = bpf_map__fd(hook->skel->maps.weir_rings);
	rings.counters_fd = bpf_map__fd(hook->skel->maps.weir_counters);
	rings.nr_cpus = cpus;
	hook->stream = weir_stream__new(&opts);
	if (!hook->stream || weir_stream__add_rings(hook->stream, &rings))
		errx(1, "the stream cannot be made");
}

void hook__open_outside(struct hook *hook, enum weir_fence_kind fence, uint64_t grace_ns,
			weir_event_fn on_event, void *ctx)
{
	struct weir_stream_opts opts = {.sz = sizeof(opts), .on_event = on_event, .ctx = ctx};
	char why[256] = "";
	struct weir_ringbuf_opts ring = {
		.sz = sizeof(ring),
		.name = "bare",
		.fence = fence,
		.grace_ns = grace_ns,
		.lost_fd = -1,
		.err = why,
		.err_len = sizeof(why),
	};

	load(hook, possible_cpus());
	ring.map_fd = bpf_map__fd(hook->skel->maps.bare);
	hook->stream = weir_stream__new(&opts);
	if (!hook->stream || weir_stream__add_ringbuf(hook->stream, &ring) < 0)
		errx(1, "the stream cannot be made: %s", why);
}

void hook__close(struct hook *hook)
{
	weir_stream__free(hook->stream);
	probe__destroy(hook->skel);
}

void hook__set_load(struct hook *hook, int load_tid)
{
	__atomic_store_n(&hook->skel->bss->load_tid, (uint32_t)load_tid, __ATOMIC_RELAXED);
}
