/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lane.h - one lane: what is told of it in a poll, and up to which time it is complete.
 *
 * No system call; time is an argument. Works on whatever memory it is given.
 */
#ifndef WEIR_SOURCE_LANE_H
#define WEIR_SOURCE_LANE_H

#include <weir/lanes.h>

#include "ring/single_writer.h"

struct lane {
	int cpu;
	struct weir_lane *shared; /* NULL: this CPU has no lane */
	struct single_writer ring;
	/*
	 * Up to here it is complete: the last stamp, or T of the last snapshot that was settled,
	 * whichever is later.
	 */
	uint64_t known_ns;
	bool open;	  /* something was lost behind the last record: who knows what it was */
	uint64_t missing; /* numbers lost there that no gap has told yet */
	struct weir_lane_account account;
};

/* A lane as one poll finds it. */
struct lane_snapshot {
	uint64_t attempts; /* S */
	uint64_t finished; /* of these at least so many; all that are have their place below P */
	uint64_t head;	   /* P */
	uint64_t limit;	   /* no record below P has this number or a higher one */
	bool was_away;	   /* before P was read */
	bool is_away;	   /* and after it */
};

/* `shared` and `data` are new: nobody has written into them, or read. */
void lane__init(struct lane *lane, int cpu, struct weir_lane *shared, const void *data,
		uint64_t records, size_t stride);

/* To be done between two readings of the clock, with clock__fence() behind the first one. */
struct lane_snapshot lane__look(const struct lane *lane);

/*
 * Tell what is below the snapshot's head. t_ns: the clock before the snapshot, less the guard; now_ns:
 * after it, and the guard more. Returns the number of records.
 */
uint64_t lane__tell(struct lane *lane, const struct lane_snapshot *snapshot, uint64_t t_ns,
		    uint64_t now_ns, const struct weir_lanes_reader *reader, void *ctx);

#endif /* WEIR_SOURCE_LANE_H */
