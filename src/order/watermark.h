/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watermark.h - how far one ring is known to be complete.
 *
 * Owns the short FIFO of snapshots (T, S, P) that a ring has not reached yet. Time is an argument.
 * Each ring has its own, so that a ring that is behind answers with an older T and not with
 * nothing: were all rings to be done at once before W moved, stolen vCPUs would starve it.
 */
#ifndef WEIR_ORDER_WATERMARK_H
#define WEIR_ORDER_WATERMARK_H

#include <stdbool.h>
#include <stdint.h>

#define WM_FIFO_LEN 16u

struct wm_snapshot {
	uint64_t t_ns;	   /* T: what is not in P was stamped at T or later */
	uint64_t bound_ns; /* clock after S was read: what S counts happened before */
	uint64_t attempts; /* S */
	uint64_t pos;	   /* P */
};

struct wm_fifo {
	unsigned first, count; /* nearly always 0: then nothing else of it is touched */
	struct wm_snapshot entry[WM_FIFO_LEN];
};

/*
 * Add a snapshot. When the FIFO is full it takes the place of the newest entry: those before it are
 * reached all the same, and so is it.
 */
void wm_fifo__push(struct wm_fifo *fifo, const struct wm_snapshot *snapshot);

/*
 * The ring is drained up to `pos`: drop what it has reached and give the newest of that. false when
 * nothing was reached.
 */
bool wm_fifo__reach(struct wm_fifo *fifo, uint64_t pos, struct wm_snapshot *out);

/* Both: a snapshot was taken, and the ring drained. What was reached at once never goes in. */
static inline bool wm_fifo__pass(struct wm_fifo *fifo, const struct wm_snapshot *snapshot,
				 uint64_t pos, struct wm_snapshot *out)
{
	if (!fifo->count && (int64_t)(pos - snapshot->pos) >= 0) {
		*out = *snapshot;
		return true;
	}
	wm_fifo__push(fifo, snapshot);
	return wm_fifo__reach(fifo, pos, out);
}

#endif /* WEIR_ORDER_WATERMARK_H */
