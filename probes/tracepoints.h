/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tracepoints.h - any tracepoint of the kernel: found in tracefs by name, decoded by its format there.
 *
 * A set of tracepoints is chosen first and loaded then; the index of one is its place in the set. Knows
 * nothing of perf but what a sample is, and nothing of order, sinks or options.
 */
#ifndef WEIR_TRACEPOINTS_H
#define WEIR_TRACEPOINTS_H

#include <weir/decode.h>
#include <weir/perf.h>

struct tracepoints;

#define TRACEPOINTS_PREFIX "tp:"

/* tracefs: where it is mounted; NULL: where the kernel's places for it are. NULL: ENOMEM. */
struct tracepoints *tracepoints__new(const char *tracefs);
void tracepoints__free(struct tracepoints *tps);

/*
 * Add those that a GROUP:NAME means, in both of which * and ? stand for anything; not `wanted`: take
 * them out again. Errors, with a sentence in err: EINVAL, it is no such word; ENOENT, there is none, or
 * no tracefs; EACCES; ENOMEM.
 */
int tracepoints__choose(struct tracepoints *tps, const char *pattern, bool wanted, char *err,
			size_t err_len);

/* Read the formats of all that were chosen. Nothing can be chosen after it. Errors as above. */
int tracepoints__load(struct tracepoints *tps, char *err, size_t err_len);

uint32_t tracepoints__count(const struct tracepoints *tps);
const char *tracepoints__name(const struct tracepoints *tps, uint32_t index); /* tp:GROUP:NAME */

uint32_t tracepoints__id(const struct tracepoints *tps, uint32_t index); /* of one that is loaded */

/* Names of the fields of one that is loaded, as many as there are; NULL behind the last. */
const char *tracepoints__field(const struct tracepoints *tps, uint32_t index, uint32_t field);

/*
 * Its name, its thread as the tracepoint recorded it, and its fields. Of an array of numbers or bytes
 * the text is kept in the set until the next call. Returns 0, or -EBADMSG when the bytes are not what
 * the format says (G8).
 */
int tracepoints__decode(struct tracepoints *tps, uint32_t index,
			const struct weir_perf_sample *sample, struct weir_decoded *out);

#endif /* WEIR_TRACEPOINTS_H */
