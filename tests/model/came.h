/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * came.h - events as they came out of a stream: their order (G1), and the scenarios' notation of what
 * goes in and comes out.
 */
#ifndef MODEL_CAME_H
#define MODEL_CAME_H

#include <stddef.h>
#include <stdint.h>

#include <weir/stream.h>

struct came {
	uint64_t stamp_ns, seq;
	uint64_t number; /* of the record, in its log */
	uint32_t source;
	uint32_t len;
	uint8_t kind, mark;
	struct weir_gap gap;
};

/* By (stamp, source, seq), for qsort(): of two struct came. */
int came__compare(const void *left, const void *right);

/* "2#0 3#0 1#1": stamp 2 and 3 on source 0, stamp 1 on source 1, in this order. */
void came__feed(const char *records, void (*put)(void *ctx, uint32_t source, uint64_t stamp_ns),
		void *ctx);

/*
 * Those from *rendered on are these: "10#1!" is late, "99#0^" ahead, "(10,20]#1*17" a gap of source 1 with
 * 17 lost, "*<=17" with at most so many, "*?0" with nobody knows how many.
 */
void came__expect(const struct came *came, uint64_t count, uint64_t *rendered, const char *events);

/* The array with room for one more, which may have moved. No memory ends the test. */
void *grow(void *array, uint64_t have, uint64_t *cap, size_t size);

#endif /* MODEL_CAME_H */
