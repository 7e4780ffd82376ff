/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * build.h - captures made by hand, byte by byte as docs/capture.md has them.
 *
 * Shares no code with the writer: what both agree on is the format, and not one's mistakes.
 */
#ifndef TEST_CAPTURE_BUILD_H
#define TEST_CAPTURE_BUILD_H

#include <stddef.h>
#include <stdint.h>

#include "capture/layout.h"

#define BUILD_WALL_OFFSET_NS 1700000000000000000ll

struct build {
	char path[64];
	uint32_t part;
	struct {
		uint64_t number, end_ns, discarded, life_seq, cpu_seq;
	} stream[CAPTURE_STREAMS][4];
};

/* A packet that is being filled. */
struct build_packet {
	uint8_t bytes[1 << 16];
	size_t len;
	struct capture_packet head;
};

/* An empty folder with metadata for two CPUs; part 1. */
void build__init(struct build *build);
void build__remove(struct build *build);

/* It begins where the one before ended. */
void build__begin(struct build *build, struct build_packet *packet, enum capture_stream stream,
		  uint32_t instance);
void build__record(struct build_packet *packet, uint64_t stamp_ns, uint16_t type, uint32_t seq,
		   const void *payload, size_t len);
/* Append it to its file. discarded: of this packet. */
void build__end(struct build *build, struct build_packet *packet, uint64_t end_ns,
		uint64_t discarded);

/* The empty one that a file begins with, at this time. */
void build__empty(struct build *build, enum capture_stream stream, uint32_t instance,
		  uint64_t at_ns);

/* A sys_exit of pid, or a fork: the records that these tests are made of. */
void build__call(struct build_packet *packet, uint64_t stamp_ns, uint32_t seq, uint32_t pid);
void build__fork(struct build_packet *packet, uint64_t stamp_ns, uint32_t seq, uint32_t child);
void build__gap(struct build_packet *packet, uint64_t stamp_ns, const struct capture_gap *gap);
/* Of a file that has the packets [number, end). */
void build__told_file(struct build_packet *packet, uint64_t stamp_ns, enum capture_stream stream,
		      uint32_t instance, uint64_t number, uint64_t end);

/* DIR/name. */
const char *build__file(const struct build *build, const char *name, char path[128]);
size_t build__read(const char *path, uint8_t **bytes);
void build__write(const char *path, const uint8_t *bytes, size_t len);

/*
 * Two CPUs, fork and calls, a gap of 3, a late call, marks, accounts, files, a closed end: BUILD_RECORDS
 * records in the times from 1,000 to 9,000.
 */
void build__small(struct build *build);
#define BUILD_RECORDS  26u
#define BUILD_LOST     3u
#define BUILD_FILTERED 5u /* in the kernel, by the accounts */

#endif /* TEST_CAPTURE_BUILD_H */
