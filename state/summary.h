/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * summary.h - what all calls come to: how many, how many failed, how long they took; by call and by
 * process.
 *
 * A call counts once, however it ended. Its time counts where both its halves were seen. Processes go
 * by pid; beyond the cap they are counted together, as one.
 */
#ifndef WEIR_STATE_SUMMARY_H
#define WEIR_STATE_SUMMARY_H

#include "state/histogram.h"

#include <weir/decode.h>

struct summary;

#define SUMMARY_NAME_MAX 40

struct summary_call {
	char name[SUMMARY_NAME_MAX]; /* "openat", "openat/i386", "sys_999" */
	uint64_t calls, errors;
	struct histogram times;
};

struct summary_process {
	uint32_t pid;  /* 0: of others: those that had no room */
	char comm[17]; /* as it was last; "" unknown */
	uint64_t calls, errors, timed, total_ns;
};

/* max_processes 0: 4,096. NULL: ENOMEM. */
struct summary *summary__new(size_t max_processes);
void summary__free(struct summary *summary);

/* comm: of the process, NUL-padded to 16 or NUL-terminated; NULL: unknown. -ENOMEM: not counted. */
int summary__add(struct summary *summary, const struct weir_call *call,
		 const struct weir_decoded *decoded, const char *comm);

/*
 * Rows, those with most time first; valid until the next call into the summary. NULL: there is none,
 * *count is 0.
 */
const struct summary_call *const *summary__calls(struct summary *summary, size_t *count);
const struct summary_process *const *summary__processes(struct summary *summary, size_t *count);

/* What processes beyond the cap come to; calls is 0 when there were none. */
const struct summary_process *summary__others(const struct summary *summary);

#endif /* WEIR_STATE_SUMMARY_H */
