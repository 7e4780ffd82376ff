/* SPDX-License-Identifier: BSD-2-Clause */
#include "order/retire.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool before(const struct retire_item *a, const struct retire_item *b)
{
	return a->stamp_ns != b->stamp_ns ? a->stamp_ns < b->stamp_ns : a->order < b->order;
}

static void swap(struct retire *retire, size_t a, size_t b)
{
	struct retire_item item = retire->heap[a];

	retire->heap[a] = retire->heap[b];
	retire->heap[b] = item;
}

static void sift_up(struct retire *retire, size_t i)
{
	while (i && before(&retire->heap[i], &retire->heap[(i - 1) / 2])) {
		swap(retire, i, (i - 1) / 2);
		i = (i - 1) / 2;
	}
}

static void sift_down(struct retire *retire, size_t i)
{
	for (;;) {
		size_t least = i, child = 2 * i + 1;

		for (size_t c = child; c < child + 2 && c < retire->count; c++)
			if (before(&retire->heap[c], &retire->heap[least]))
				least = c;
		if (least == i)
			return;
		swap(retire, i, least);
		i = least;
	}
}

int retire__add(struct retire *retire, uint64_t stamp_ns, void (*fn)(void *arg, uint64_t stamp_ns),
		void *arg)
{
	if (retire->count == retire->cap) {
		size_t cap = retire->cap ? retire->cap * 2 : 64;
		struct retire_item *heap = realloc(retire->heap, cap * sizeof(*heap));

		if (!heap)
			return -ENOMEM;
		retire->heap = heap;
		retire->cap = cap;
	}
	retire->heap[retire->count] = (struct retire_item){
		.stamp_ns = stamp_ns,
		.order = retire->asked++,
		.fn = fn,
		.arg = arg,
	};
	sift_up(retire, retire->count++);
	return 0;
}

void retire__run(struct retire *retire, uint64_t watermark_ns)
{
	while (retire->count && retire->heap[0].stamp_ns <= watermark_ns) {
		struct retire_item due = retire->heap[0];

		/* Out of the heap before it runs: the callback may add, and move the heap. */
		retire->heap[0] = retire->heap[--retire->count];
		sift_down(retire, 0);
		due.fn(due.arg, due.stamp_ns);
	}
}

void retire__free(struct retire *retire)
{
	free(retire->heap);
	memset(retire, 0, sizeof(*retire));
}
