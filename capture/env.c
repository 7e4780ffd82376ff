/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/env.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NSEC_PER_SEC 1000000000

/* `name = value`, the value without quotes, but with its escapes. */
struct line {
	const char *name, *value;
	size_t name_len, value_len;
};

/* Where a statement ends: what begins, ends or parts one, outside of a string. */
static const char *statement_end(const char *at, const char *end)
{
	bool quoted = false;

	for (; at < end; at++) {
		if (quoted && *at == '\\' && at + 1 < end)
			at++;
		else if (*at == '"')
			quoted = !quoted;
		else if (!quoted && (*at == ';' || *at == '{' || *at == '}'))
			break;
	}
	return at;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool split(const char *at, const char *end, struct line *line)
{
	const char *equals, *value;

	while (at < end && is_space(*at))
		at++;
	while (end > at && is_space(end[-1]))
		end--;
	equals = memchr(at, '=', (size_t)(end - at));
	if (!equals)
		return false;
	value = equals + 1;
	while (value < end && is_space(*value))
		value++;
	while (equals > at && is_space(equals[-1]))
		equals--;
	if (end - value >= 2 && *value == '"' && end[-1] == '"') {
		value++;
		end--;
	}
	*line = (struct line){at, value, (size_t)(equals - at), (size_t)(end - value)};
	return true;
}

static bool is_named(const struct line *line, const char *name)
{
	return strlen(name) == line->name_len && !memcmp(line->name, name, line->name_len);
}

static bool number(const struct line *line, int64_t *out)
{
	char text[32], *end;

	if (!line->value_len || line->value_len >= sizeof(text))
		return false;
	memcpy(text, line->value, line->value_len);
	text[line->value_len] = '\0';
	errno = 0;
	*out = strtoll(text, &end, 10);
	return !*end && !errno;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* \xNN is a byte that is no UTF-8, and a backslash is doubled: what the strings were before. */
static void decode(char *text)
{
	char *to = text;

	while (*text) {
		if (text[0] == '\\' && text[1] == 'x' && hex_digit(text[2]) >= 0 &&
		    hex_digit(text[3]) >= 0) {
			*to = (char)(hex_digit(text[2]) << 4 | hex_digit(text[3]));
			to += *to != '\0';
			text += 4;
			continue;
		}
		if (text[0] == '\\' && text[1] == '\\')
			text++;
		*to++ = *text++;
	}
	*to = '\0';
}

/* Without C's escapes. A lone backslash at the end is one. */
static void unescape(const struct line *line, char *to, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < line->value_len && n + 1 < size; i++) {
		char c = line->value[i];

		if (c == '\\' && i + 1 < line->value_len) {
			c = line->value[++i];
			c = c == 'n' ? '\n' : c == 't' ? '\t' : c;
		}
		to[n++] = c;
	}
	to[n] = '\0';
	decode(to);
}

static bool parse_uuid(const struct line *line, uint8_t uuid[16])
{
	unsigned int digits = 0;
	uint8_t out[16] = {0};

	for (size_t i = 0; i < line->value_len; i++) {
		int digit = hex_digit(line->value[i]);

		if (line->value[i] == '-')
			continue;
		if (digit < 0 || digits == 32)
			return false;
		out[digits / 2] = (uint8_t)(out[digits / 2] << 4 | digit);
		digits++;
	}
	if (digits != 32)
		return false;
	memcpy(uuid, out, sizeof(out));
	return true;
}

static void take_u32(const struct line *line, uint32_t *out)
{
	int64_t value;

	if (number(line, &value) && value >= 0 && value <= UINT32_MAX)
		*out = (uint32_t)value;
}

struct parsing {
	struct reader_env *env;
	char **command;
	bool has_uuid; /* the trace's is the first, the clock's another */
	int64_t offset_s, offset_ns;
};

static int take_command(struct parsing *p, const struct line *line)
{
	free(*p->command);
	*p->command = malloc(line->value_len + 1);
	if (!*p->command)
		return -ENOMEM;
	unescape(line, *p->command, line->value_len + 1);
	return 0;
}

static void take_uuid(struct parsing *p, const struct line *line)
{
	if (p->has_uuid)
		unescape(line, p->env->boot_id, sizeof(p->env->boot_id));
	else
		p->has_uuid = parse_uuid(line, p->env->uuid);
}

static int take_line(struct parsing *p, const struct line *line)
{
	struct reader_env *env = p->env;
	const struct {
		const char *name;
		char *to;
		size_t size;
	} strings[] = {
		{"hostname", env->hostname, sizeof(env->hostname)},
		{"sysname", env->sysname, sizeof(env->sysname)},
		{"kernel_release", env->release, sizeof(env->release)},
		{"weir_version", env->version, sizeof(env->version)},
	};

	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
		if (is_named(line, strings[i].name))
			unescape(line, strings[i].to, strings[i].size);
	if (is_named(line, "uuid"))
		take_uuid(p, line);
	else if (is_named(line, "layout"))
		take_u32(line, &env->layout);
	else if (is_named(line, "nr_cpus"))
		take_u32(line, &env->nr_cpus);
	else if (is_named(line, "selected_types"))
		take_u32(line, &env->selected_types);
	else if (is_named(line, "command_pid"))
		take_u32(line, &env->command_pid);
	else if (is_named(line, "offset_s"))
		number(line, &p->offset_s);
	else if (is_named(line, "offset"))
		number(line, &p->offset_ns);
	else if (is_named(line, "command"))
		return take_command(p, line);
	return 0;
}

int env__parse(const char *text, size_t len, struct reader_env *env, char **command)
{
	const char *end = text + len;
	struct parsing p = {.env = env, .command = command};
	struct line line;
	int err = 0;

	while (text < end && !err) {
		const char *stop = statement_end(text, end);

		if (split(text, stop, &line))
			err = take_line(&p, &line);
		text = stop + 1;
	}
	if (!__builtin_mul_overflow(p.offset_s, NSEC_PER_SEC, &p.offset_s) &&
	    !__builtin_add_overflow(p.offset_s, p.offset_ns, &p.offset_s))
		env->wall_offset_ns = p.offset_s;
	return err;
}
