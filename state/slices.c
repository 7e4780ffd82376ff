// SPDX-License-Identifier: BSD-2-Clause
/*
 * slices.c - owns which account each nanosecond of a CPU goes to. Knows no records and no tasks: a
 * caller has judged stamps, and says where the open slice ends.
 */
#include "state/slices.h"

void slices__begin(struct slices *slices, uint32_t cpu, uint64_t begin_ns)
{
	*slices = (struct slices){
		.cpu = cpu,
		.begin_ns = begin_ns,
		.billed_ns = begin_ns,
	};
}

void slices__bill(struct slices *slices, uint64_t to_ns)
{
	int64_t ns;

	/* A slice that began before the accounts did. */
	if (to_ns < slices->begin_ns)
		to_ns = slices->begin_ns;
	ns = (int64_t)(to_ns - slices->billed_ns);
	slices->billed_ns = to_ns;
	switch (slices->of) {
	case SLICE_TASK:
		slices->owner->total.time_ns += ns;
		slices->tasks.total.time_ns += ns;
		break;
	case SLICE_IDLE:
		slices->idle.total.time_ns += ns;
		break;
	case SLICE_GAP:
		slices->gap.total.time_ns += ns;
		break;
	}
}

void slices__switch(struct slices *slices, uint64_t stamp_ns, enum slice_of of,
		    struct account *owner)
{
	slices__bill(slices, stamp_ns);
	slices->since_ns = stamp_ns;
	slices->of = of;
	slices->owner = owner;
}

void slices__lose(struct slices *slices, uint64_t from_ns)
{
	if (from_ns < slices->since_ns)
		from_ns = slices->since_ns;
	slices__switch(slices, from_ns, SLICE_GAP, NULL);
}

void slices__hand_over(struct slices *slices, struct account *owner)
{
	if (slices->of == SLICE_TASK)
		slices->owner = owner;
}

int64_t slices__difference_ns(const struct slices *slices)
{
	return slices->tasks.total.time_ns + slices->idle.total.time_ns +
	       slices->gap.total.time_ns - (int64_t)(slices->billed_ns - slices->begin_ns);
}
