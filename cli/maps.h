/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * maps.h - --map: pinned maps into which other people's BPF programs write.
 *
 * Nothing is known of their records but, where the user says so, the place of a stamp: they are shown
 * as bytes.
 */
#ifndef WEIR_CLI_MAPS_H
#define WEIR_CLI_MAPS_H

#include "cli/options.h"

#include <weir/decode.h>
#include <weir/stream.h>

#include <limits.h>
#include <linux/bpf.h>

#define MAPS_MAX 16

struct map {
	const char *word;
	char path[PATH_MAX];
	int fd;
	bool is_array; /* of perf events; else a ring buffer */
	int64_t stamp; /* where its records have theirs; -1: nobody has said */
	uint32_t len;  /* of each record; 0: nobody has said */
	enum weir_clock_id clock;
	char name[sizeof("map:") + BPF_OBJ_NAME_LEN]; /* of the event */
};

struct maps {
	struct map at[MAPS_MAX];
	unsigned count;
};

/*
 * PIN[:stamp=OFFSET][:clock=NAME][:len=BYTES], each. false: one means nothing or is no such map,
 * and that was said.
 */
bool maps__open(const struct command_def *command, const struct option_list *words,
		struct maps *maps);
void maps__close(struct maps *maps);

/* As sources of the stream, called "map" and the index, and behind a point the CPU. false: it was said. */
bool maps__connect(const struct command_def *command, const struct maps *maps,
		   struct weir_stream *stream, size_t ring_bytes);

/* Which of them a source with that name is; -1: none. */
int maps__find(const struct maps *maps, const char *source);

void maps__decode(const struct maps *maps, int map, const struct weir_event *event,
		  struct weir_decoded *out);

#endif /* WEIR_CLI_MAPS_H */
