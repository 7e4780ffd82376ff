/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * style.h - how people want to see a text line: times, colours, columns.
 *
 * It belongs to the reader of one output, so struct out carries it to the sink (out__set_style).
 */
#ifndef WEIR_SINKS_STYLE_H
#define WEIR_SINKS_STYLE_H

#include <stdbool.h>
#include <stdint.h>

enum style_time {
	STYLE_WALL = 0, /* 10:05:45.123456789, of the local zone */
	STYLE_MONO,	/* as the kernel stamped it, seconds since boot */
	STYLE_DELTA,	/* since the line before */
	STYLE_NO_TIME,
};

struct style {
	enum style_time time;
	bool color;
	/* Columns of the CPU and of comm[tid], so that lines align; wider ones push the rest. */
	unsigned int cpu_width, task_width;
	/* STYLE_DELTA, kept by the sink: of the line before; 0: there is none */
	uint64_t last_ns;
	/* Kept by the sink: the CPU that was told to be offline last, and until when. */
	uint16_t away_cpu;
	uint64_t away_to_ns;
};

#define STYLE_TASK_WIDTH      15 /* leaves half of an 80 column screen */
#define STYLE_TASK_WIDTH_WIDE 24 /* the longest there is */

#endif /* WEIR_SINKS_STYLE_H */
