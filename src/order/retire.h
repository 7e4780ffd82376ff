/* SPDX-License-Identifier: BSD-2-Clause */
/* retire.h - things to do once the watermark has passed a time. A heap by (stamp, order of asking). */
#ifndef WEIR_ORDER_RETIRE_H
#define WEIR_ORDER_RETIRE_H

#include <stddef.h>
#include <stdint.h>

struct retire_item {
	uint64_t stamp_ns;
	uint64_t order; /* equal stamps run in the order in which they were asked for */
	void (*fn)(void *arg, uint64_t stamp_ns);
	void *arg;
};

struct retire {
	struct retire_item *heap;
	size_t count, cap;
	uint64_t asked;
};

/* O(log n). -ENOMEM: nothing changed. */
int retire__add(struct retire *retire, uint64_t stamp_ns, void (*fn)(void *arg, uint64_t stamp_ns),
		void *arg);

/* Run what is due, oldest first. A callback may add more; what is due at once runs in this call. */
void retire__run(struct retire *retire, uint64_t watermark_ns);

void retire__free(struct retire *retire);

#endif /* WEIR_ORDER_RETIRE_H */
