/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hook.h - the programs of probe.bpf.c, loaded, and a stream over their rings.
 */
#ifndef WEIR_MEASURE_HOOK_H
#define WEIR_MEASURE_HOOK_H

#include <weir/perf.h>

#include <stdbool.h>

#include "probe.skel.h"

struct hook {
	struct probe *skel;
	struct weir_stream *stream;
	/* Set before it is opened: its loops of records are wanted, which not every kernel may take. */
	bool floods;
};

/*
 * Load, and make rings of `ring_bytes`; the calls of thread `load_tid` will be sent, 0: none. Exits
 * with a message on failure, as all of these do.
 */
void hook__open(struct hook *hook, int load_tid, size_t ring_bytes, weir_event_fn on_event,
		void *ctx);
/*
 * The same, and a stream over the one ring of `ring_asks` instead: a program that somebody else wrote, whose
 * records are proved by `fence`. grace_ns is for WEIR_FENCE_GRACE.
 */
void hook__open_outside(struct hook *hook, enum weir_fence_kind fence, uint64_t grace_ns,
			weir_event_fn on_event, void *ctx);
void hook__close(struct hook *hook);

/* Its calls are sent from now on. */
void hook__set_load(struct hook *hook, int load_tid);

#endif /* WEIR_MEASURE_HOOK_H */
