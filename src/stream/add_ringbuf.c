/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * add_ringbuf.c - a BPF ring buffer that other people's programs write to becomes a source.
 */
#include "stream/internal.h"

#include "source/foreign.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const enum proof proofs[] = {
	[WEIR_FENCE_RCU] = PROOF_RCU,
	[WEIR_FENCE_GRACE] = PROOF_GRACE,
};

struct ringbuf {
	struct source_foreign foreign;
	uint64_t lost_start; /* the counter may be older than we are */
};

static uint64_t count_lost(void *ctx)
{
	const struct ringbuf *rb = ctx;
	uint64_t lost;

	if (source_foreign__lost(&rb->foreign, &lost))
		return RING_LOST_UNKNOWN;
	return lost - rb->lost_start;
}

static void free_ringbuf(struct ringbuf *rb)
{
	source_foreign__close(&rb->foreign);
	free(rb);
}

static int add_source(struct weir_stream *s, struct ringbuf *rb,
		      const struct weir_ringbuf_opts *opts)
{
	struct ring_spec spec = {
		.kind = &ring_kind__ringbuf,
		.name = opts->name,
		.cpu = -1,
		.proof = proofs[opts->fence],
		.grace_ns = opts->grace_ns,
		.outside =
			{
				.stamp_offset = opts->stamp_offset,
				.lost = opts->lost_fd >= 0 ? count_lost : NULL,
				.lost_ctx = rb,
			},
		.data = rb->foreign.data,
		.size = rb->foreign.size,
		.producer = rb->foreign.producer_page,
		.consumer = rb->foreign.consumer_page,
	};
	int source = stream__add_outside(s, &spec), err;

	if (source < 0)
		return source;
	err = wake__add(&s->wake, rb->foreign.fd);
	if (err)
		stream__forget_from(s, (uint32_t)source);
	return err;
}

static int add(struct weir_stream *s, struct ringbuf *rb, const struct weir_ringbuf_opts *opts,
	       const struct reason *reason)
{
	int err = source_foreign__open(&rb->foreign, opts->map_fd, opts->lost_fd, opts->lost_key,
				       opts->lost_offset, reason);

	if (err)
		return err;
	if (opts->lost_fd >= 0)
		err = source_foreign__lost(&rb->foreign, &rb->lost_start);
	if (!err)
		err = stream__start_hotplug(s);
	if (!err)
		err = stream__grow(&s->ringbufs, s->nr_ringbufs + 1, sizeof(*s->ringbufs));
	if (!err)
		err = add_source(s, rb, opts);
	if (err && s->memory_only)
		hotplug__close(&s->hotplug);
	if (err)
		return reason__say(reason, err, "cannot add %s to the stream: %s", opts->name,
				   strerror(-err));
	return 0;
}

WEIR_API int weir_stream__add_ringbuf(struct weir_stream *s, const struct weir_ringbuf_opts *opts)
{
	struct reason reason;
	struct ringbuf *rb;
	int err;

	if (!opts || opts->sz < sizeof(*opts))
		return -EINVAL;
	reason = (struct reason){opts->err, opts->err_len};
	if (!opts->name || strlen(opts->name) > 31)
		return reason__say(&reason, -EINVAL, "a name of at most 31 bytes is needed");
	if (opts->fence > WEIR_FENCE_GRACE)
		return reason__say(&reason, -EINVAL, "%d is no kind of fence", (int)opts->fence);
	err = stream__judge_clock(s, opts->clock, &reason);
	if (!err)
		err = stream__need_proof(s, proofs[opts->fence], &reason);
	if (err)
		return err;
	rb = calloc(1, sizeof(*rb));
	if (!rb)
		return reason__say(&reason, -ENOMEM, "no memory for %s", opts->name);
	rb->foreign.fd = rb->foreign.lost.fd = -1;
	err = add(s, rb, opts, &reason);
	if (err) {
		free_ringbuf(rb);
		return err;
	}
	s->ringbufs[s->nr_ringbufs++] = rb;
	s->memory_only = false;
	return 0;
}

void stream__free_ringbufs(struct weir_stream *s)
{
	for (size_t i = 0; i < s->nr_ringbufs; i++)
		free_ringbuf(s->ringbufs[i]);
	free(s->ringbufs);
}
