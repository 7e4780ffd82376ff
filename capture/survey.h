/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * survey.h - a capture as a whole: what is in it, and whether it keeps the rules of docs/capture.md.
 *
 * Reads each packet once, stream by stream, in memory that does not grow with them.
 */
#ifndef WEIR_CAPTURE_SURVEY_H
#define WEIR_CAPTURE_SURVEY_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/ledger.h>

#include "capture/reader.h"
#include "probes/fields.h"

/* What one ring of a CPU has in the files, and what its recorder said of it at the end. */
struct survey_ring {
	uint64_t records, selected;
	uint64_t lost[WEIR_LOST_CAUSES]; /* by gaps */
	bool has_account;
	struct capture_account account;
};

struct survey_cpu {
	uint32_t cpu;
	struct survey_ring ring[2]; /* by enum capture_ring */
	uint64_t bytes;
};

struct survey {
	struct survey_cpu *cpus;
	size_t nr_cpus;
	uint64_t types[FIELDS_TYPES]; /* records of each */
	uint64_t late, gaps, steps, tasks, packets, bytes;
	uint64_t lost[WEIR_LOST_CAUSES];
	uint8_t bound[WEIR_LOST_CAUSES];
	/* Beside these: records that damage took, as far as that is known from what is left. */
	uint64_t damaged;
	bool damaged_unknown;	   /* and more of them, nobody knows how many */
	uint64_t begin_ns, end_ns; /* of all packets */
	int64_t wall_offset_ns;
	bool has_wall;
	uint32_t first_part, last_part;
	bool closed;
	uint64_t complete_ns; /* by the last mark */
	enum weir_order order;
};

/* file NULL: it is of the capture as a whole. The text is a clause: "is not ...". */
typedef void (*survey_fn)(void *ctx, const char *file, uint64_t offset, const char *text);

/*
 * Fills *survey, calls fn for each rule that is broken (and for each of the reader's flaws). fn may be
 * NULL. 0 or -ENOMEM. To be freed by survey__free().
 */
int survey__take(struct reader *reader, struct survey *survey, survey_fn fn, void *ctx);
void survey__free(struct survey *survey);

/*
 * Cut off the tails of plain files that a kill or a full disk has torn: what reaches to a file's end and
 * is no packet that could be read. A file that holds nothing else goes. Nothing but that is touched. cut()
 * is called for each; error 0: it was done; ELOOP, EMLINK: the file is a link, or has other names, and what
 * is behind it may not be the capture's; EBUSY: it has changed since it was read. Returns how many could not
 * be cut; -EBUSY: the capture is being recorded.
 */
struct survey_cut {
	const char *file;
	uint64_t offset, bytes;
	uint64_t records; /* that were in it, by what is left of its head; READER_UNKNOWN */
	int error;
};
typedef void (*survey_cut_fn)(void *ctx, const struct survey_cut *cut);
int survey__repair(struct reader *reader, survey_cut_fn cut, void *ctx);

#endif /* WEIR_CAPTURE_SURVEY_H */
