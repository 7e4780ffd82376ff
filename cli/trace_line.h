/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace_line.h - a line of a trace in JSON, as numbers.
 *
 * Promises: any bytes at all are either a line with everything that its event has to have, or refused in
 * words. Must not know what a trace may say (judge.h).
 */
#ifndef WEIR_CLI_TRACE_LINE_H
#define WEIR_CLI_TRACE_LINE_H

#include "cli/judge.h"

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NULL has no type. */
bool json__has_type(struct json_object *value, enum json_type type);
/* A number that is none of 64 bits without a sign: false. */
bool json__get_u64(struct json_object *value, uint64_t *out);
bool json__is_string(struct json_object *value);
bool json__is_array(struct json_object *value);
/* Says in `why` what is the matter with a key; false. */
bool json__wrong(char *why, size_t len, const char *key, const char *what);
/* The value of a key; NULL: there is none. */
struct json_object *json__get(struct json_object *object, const char *key);
/* The line as the judge takes it; false: `why` says which key is wrong. */
bool trace_line__read(struct json_object *object, struct judge_line *line, char *why, size_t len);
/* One value and nothing behind it; NULL: `why` says what there is instead. */
struct json_object *json__parse(struct json_tokener *tokener, const char *text, size_t text_len,
				char *why, size_t len);
/* Strict, UTF-8 checked, values nested at most `depth` deep; NULL: no memory. */
struct json_tokener *json__new_tokener(int depth);

#endif /* WEIR_CLI_TRACE_LINE_H */
