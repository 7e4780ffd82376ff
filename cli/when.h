/* SPDX-License-Identifier: BSD-2-Clause */
/* when.h - a moment of a recording, as people say it. */
#ifndef WEIR_CLI_WHEN_H
#define WEIR_CLI_WHEN_H

#include <stdbool.h>
#include <stdint.h>

/* What it is told from. */
struct when_base {
	uint64_t start_ns, end_ns; /* of the recording, CLOCK_MONOTONIC */
	int64_t wall_offset_ns;	   /* CLOCK_REALTIME - CLOCK_MONOTONIC */
};

#define WHEN_FORMS \
	"10:05:45.5 (local), 2026-11-29T10:05:45Z, +1.5 (seconds into it), or 8123.25 (since boot)"

/* A stamp. false: it is none of WHEN_FORMS. */
bool when__parse(const char *text, const struct when_base *base, uint64_t *stamp_ns);

#endif /* WEIR_CLI_WHEN_H */
