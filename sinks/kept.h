/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kept.h - texts that stand on most lines, made once: who a line is of, and all that is the same
 * wherever a call is printed. Each sink keeps its own, a thread its own of each.
 *
 * A table has one place for each of many; what comes to a place that is taken takes it over.
 */
#ifndef WEIR_SINKS_KEPT_H
#define WEIR_SINKS_KEPT_H

#include "sinks/put.h"
#include "sinks/sink.h"

#include <weir/probes.h>

#include <string.h>

#define KEPT_TASKS 64 /* the same few threads make most events */

/* A thread by name and numbers: one that has changed its name gets a new text. */
struct kept_task {
	uint64_t numbers;
	char comm[WEIR_COMM_LEN];
	uint32_t len; /* 0: the place is free */
	char text[PUT_STEPS(160)];
};

static inline bool kept_task__is(const struct kept_task *kept, const char comm[WEIR_COMM_LEN],
				 uint64_t numbers)
{
	return kept->len && kept->numbers == numbers && !memcmp(kept->comm, comm, WEIR_COMM_LEN);
}

static inline void kept_task__set(struct kept_task *kept, const char comm[WEIR_COMM_LEN],
				  uint64_t numbers, const char *end)
{
	memcpy(kept->comm, comm, WEIR_COMM_LEN);
	kept->numbers = numbers;
	kept->len = (uint32_t)(end - kept->text);
}

static inline char *kept_task__put(char *p, const struct kept_task *kept)
{
	return put_steps(p, kept->text, kept->len);
}

#define KEPT_SOURCES 64

/* A source by its name. */
struct kept_source {
	char name[16]; /* with its NUL; "": the place is free */
	uint32_t len;
	char text[PUT_STEPS(128)];
};

#define KEPT_SHAPES_BITS 8
#define KEPT_SHAPES	 (1u << KEPT_SHAPES_BITS)
#define KEPT_ARGS	 6

/* What weir_decoded.shape stands for, as a sink has it. */
struct kept_shape {
	uint32_t shape; /* 0: the place is free */
	uint8_t name_len, key_len[KEPT_ARGS];
	char name[PUT_STEPS(96)];	    /* in front of the arguments */
	char key[KEPT_ARGS][PUT_STEPS(48)]; /* in front of each of them */
};

/* Into `text`, without its NUL. false: there is no room. */
bool kept__print(char *text, size_t room, uint8_t *len, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

typedef bool (*kept_shape_make)(struct kept_shape *kept, const struct weir_decoded *d);

/* Takes the place over. NULL: it has more than there is room for. */
const struct kept_shape *kept_shape__make(struct kept_shape *kept, const struct weir_decoded *d,
					  kept_shape_make make) __attribute__((cold));

static inline const struct kept_shape *kept_shape__find(struct kept_shape shapes[KEPT_SHAPES],
							const struct weir_decoded *d,
							kept_shape_make make)
{
	struct kept_shape *kept = &shapes[d->shape * 0x9e3779b1u >> (32 - KEPT_SHAPES_BITS)];

	return kept->shape == d->shape ? kept : kept_shape__make(kept, d, make);
}

static inline char *kept_shape__put_name(char *p, const struct kept_shape *kept)
{
	return put_steps(p, kept->name, kept->name_len);
}

static inline char *kept_shape__put_key(char *p, const struct kept_shape *kept, uint32_t i)
{
	return put_steps(p, kept->key[i], kept->key_len[i]);
}

#endif /* WEIR_SINKS_KEPT_H */
