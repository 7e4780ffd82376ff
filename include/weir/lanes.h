/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lanes.h - rings with a single writer, read CPU by CPU, each in its own order.
 *
 * For what needs no order between CPUs, such as accounting: no merge, no copy, records are handed out
 * where they lie. Each CPU is a lane. What was lost is told at its place, and how far the lane is
 * complete.
 */
#ifndef WEIR_LANES_H
#define WEIR_LANES_H

#include <weir/event.h>
#include <weir/record.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What is told of one lane in one poll: records and gaps in the order of time, then the watermark.
 * Borrowed: valid during the call only.
 */
struct weir_lanes_reader {
	/* `count` records whose numbers follow each other, `stride` bytes from one to the next. */
	void (*records)(void *ctx, int cpu, const struct weir_record *first, size_t stride,
			size_t count);
	/*
	 * `lost` records between two others, or after the last: what happened in (from_ns, to_ns] is
	 * not known. from_ns is at or behind the last record and the last watermark. A gap at the end
	 * of a poll reaches up to the watermark that follows, and is continued in the next one, until a
	 * record comes: then `lost` may be 0, and the time counts all the same.
	 */
	void (*gap)(void *ctx, int cpu, uint64_t from_ns, uint64_t to_ns, uint64_t lost);
	/*
	 * All that is stamped at or before watermark_ns has been told. away: the CPU has been offline
	 * since its last record. Only called when the watermark has moved.
	 */
	void (*watermark)(void *ctx, int cpu, uint64_t watermark_ns, bool away);
};

struct weir_lanes;

/* Lanes that are written through weir_lane.bpf.h. */
struct weir_lanes_opts {
	size_t sz;	       /* sizeof(struct weir_lanes_opts) */
	int rings_fd;	       /* the map `weir_lane_rings`: ARRAY_OF_MAPS by CPU */
	int lanes_fd;	       /* the map `weir_lanes`: mmapable ARRAY by CPU */
	uint32_t nr_cpus;      /* 1 + the highest possible CPU id */
	uint32_t records;      /* as in the program's weir_lane_records: a power of two */
	uint32_t record_bytes; /* of each, a multiple of 8; the size of the inner map's value */
	uint64_t guard_ns;     /* least distance kept from the clock; 0: 1,000 */
};

/* No CPU has a lane yet. The descriptors are duplicated. Errors: EINVAL, ENOMEM, bpf(2)'s. */
struct weir_lanes *weir_lanes__new(const struct weir_lanes_opts *opts);
void weir_lanes__free(struct weir_lanes *lanes);

/*
 * Make a lane for each CPU that is online and has none, and hand it to the program. Returns how many
 * were made; or a negative errno, and then those that were made stay. A lane outlives its CPU's going
 * offline.
 */
int weir_lanes__grow(struct weir_lanes *lanes);

/*
 * One round over all lanes: tell the reader what each held when it was looked at. Returns the number
 * of records. Never sleeps.
 */
int weir_lanes__poll(struct weir_lanes *lanes, const struct weir_lanes_reader *reader, void *ctx);

/*
 * The last round, after the programs are detached: waits for those that still run (one RCU grace
 * period). The account is final after it. Returns as poll does, or bpf(2)'s error.
 */
int weir_lanes__close(struct weir_lanes *lanes, const struct weir_lanes_reader *reader, void *ctx);

/* produced = delivered + lost + pending. */
struct weir_lane_account {
	uint64_t produced;  /* attempts, as the program has counted them */
	uint64_t delivered; /* records told */
	uint64_t lost;	    /* told in gaps: the lane was full, or their bytes make no sense */
	uint64_t pending;   /* neither told nor given up yet */
	uint64_t broken;    /* of lost, those whose bytes make no sense */
	uint64_t failed;    /* reserves that failed, by the program's count: a check on lost */
	uint64_t watermark_ns;
	uint64_t max_fill; /* records at most, when it was looked at */
};

/* Taken at the last poll. Error: ENOENT, this CPU has no lane. */
int weir_lanes__account(const struct weir_lanes *lanes, int cpu, struct weir_lane_account *out);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_LANES_H */
