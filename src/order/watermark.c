/* SPDX-License-Identifier: BSD-2-Clause */
#include "order/watermark.h"

static struct wm_snapshot *at(struct wm_fifo *fifo, unsigned i)
{
	return &fifo->entry[(fifo->first + i) % WM_FIFO_LEN];
}

void wm_fifo__push(struct wm_fifo *fifo, const struct wm_snapshot *snapshot)
{
	unsigned place = fifo->count < WM_FIFO_LEN ? fifo->count++ : WM_FIFO_LEN - 1;

	*at(fifo, place) = *snapshot;
}

bool wm_fifo__reach(struct wm_fifo *fifo, uint64_t pos, struct wm_snapshot *out)
{
	bool reached = false;

	/* Positions run freely and may wrap: compare by difference. */
	while (fifo->count && (int64_t)(pos - at(fifo, 0)->pos) >= 0) {
		*out = *at(fifo, 0);
		fifo->first = (fifo->first + 1) % WM_FIFO_LEN;
		fifo->count--;
		reached = true;
	}
	return reached;
}
