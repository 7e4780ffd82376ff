/* SPDX-License-Identifier: BSD-2-Clause */
/* ledger.c - names and sums of the account. */
#include <weir/ledger.h>

#include "symbols.h"

static const char *const cause_names[WEIR_LOST_CAUSES] = {
	[WEIR_LOST_RESERVE_FAILED] = "reserve_failed",
	[WEIR_LOST_SKIPPED] = "skipped",
	[WEIR_LOST_UNSEEN] = "unseen",
	[WEIR_LOST_THROTTLED] = "throttled",
	[WEIR_LOST_DEAD_EVENT] = "dead_event",
	[WEIR_LOST_LATE] = "late",
	[WEIR_LOST_HELD] = "held",
	[WEIR_LOST_BROKEN] = "broken",
	[WEIR_LOST_OFFLINE] = "offline",
	[WEIR_LOST_OUTPUT] = "output",
	[WEIR_LOST_PAUSED] = "paused",
	[WEIR_LOST_OVERWRITTEN] = "overwritten",
};

WEIR_API const char *weir_cause__name(enum weir_cause cause)
{
	if ((unsigned)cause >= WEIR_LOST_CAUSES)
		return "unknown_cause";
	return cause_names[cause];
}

WEIR_API int64_t weir_account__difference(const struct weir_account *account)
{
	uint64_t right = account->delivered + account->filtered + account->pending;

	for (int cause = 0; cause < WEIR_LOST_CAUSES; cause++)
		if (account->bound[cause] != WEIR_BOUND_UNKNOWN)
			right += account->lost[cause];
	return (int64_t)(right - account->produced);
}
