/* SPDX-License-Identifier: BSD-2-Clause */
/* parsed.h - a line as a JSON library reads it, and its strings as bytes again. */
#ifndef WEIR_TESTS_PARSED_H
#define WEIR_TESTS_PARSED_H

#include "capture.h"

#include <json-c/json.h>

/* One JSON value and a newline, nothing else, in valid UTF-8. */
static inline struct json_object *parse_line(const char *text, size_t len)
{
	struct json_tokener *tokener = json_tokener_new();
	struct json_object *value;

	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	assert_true(len > 0 && text[len - 1] == '\n');
	assert_null(memchr(text, '\n', len - 1));
	value = json_tokener_parse_ex(tokener, text, (int)len - 1);
	if (!value || json_tokener_get_parse_end(tokener) != len - 1)
		fail_msg("not JSON at byte %zu: %s", json_tokener_get_parse_end(tokener), text);
	json_tokener_free(tokener);
	return value;
}

static inline struct json_object *member(struct json_object *object, const char *key)
{
	struct json_object *value;

	if (!json_object_object_get_ex(object, key, &value))
		fail_msg("there is no \"%s\"", key);
	return value;
}

static inline const char *text_of(struct json_object *object, const char *key)
{
	struct json_object *value = member(object, key);

	assert_true(json_object_is_type(value, json_type_string));
	return json_object_get_string(value);
}

static inline uint64_t number_of(struct json_object *object, const char *key)
{
	struct json_object *value = member(object, key);

	assert_true(json_object_is_type(value, json_type_int));
	return json_object_get_uint64(value);
}

static inline unsigned nibble(char c)
{
	return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* Undo the sink's own escapes: \\ and \xNN. Returns the length; `bytes` has room for all. */
static inline size_t unescape(struct json_object *value, uint8_t *bytes)
{
	const char *s = json_object_get_string(value);
	const char *end = s + json_object_get_string_len(value);
	uint8_t *at = bytes;

	while (s < end) {
		if (*s != '\\') {
			*at++ = (uint8_t)*s++;
		} else if (s[1] == '\\') {
			*at++ = '\\';
			s += 2;
		} else {
			assert_int_equal(s[1], 'x');
			*at++ = (uint8_t)(nibble(s[2]) << 4 | nibble(s[3]));
			s += 4;
		}
	}
	assert_ptr_equal(s, end);
	return (size_t)(at - bytes);
}

static inline void assert_bytes(struct json_object *value, const void *bytes, size_t len)
{
	size_t room = (size_t)json_object_get_string_len(value), got;
	uint8_t *back = malloc(room + 1);

	assert_true(json_object_is_type(value, json_type_string));
	got = unescape(value, back);
	assert_int_equal(got, len);
	if (len)
		assert_memory_equal(back, bytes, len);
	free(back);
}

#endif /* WEIR_TESTS_PARSED_H */
