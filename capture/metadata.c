// SPDX-License-Identifier: BSD-2-Clause
/*
 * metadata.c - the tables of classes.h in CTF's own language (TSDL, CTF 1.8).
 *
 * Owns which type stands for which field. Promises text that babeltrace2 and babeltrace 1.5 take
 * without a message, whatever bytes the strings have. Must not know a record by its name.
 *
 * A sequence of bytes is text where it is one string. Strings with a NUL behind each are numbers, for
 * as text a reader would show the first of them alone.
 */
#include "capture/metadata.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "capture/classes.h"

#define NSEC_PER_SEC 1000000000

/* ---- strings ---------------------------------------------------------------------------------- */

/* Bytes of the UTF-8 character that begins there; 0: none does. */
static size_t utf8_len(const unsigned char *s)
{
	static const struct {
		unsigned char mask, lead;
		uint32_t least;
	} forms[] = {{0x80, 0, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};

	for (size_t n = 0; n < sizeof(forms) / sizeof(forms[0]); n++) {
		uint32_t code = (uint32_t)(s[0] & (unsigned char)~forms[n].mask);

		if ((s[0] & forms[n].mask) != forms[n].lead)
			continue;
		for (size_t i = 1; i <= n; i++) {
			if ((s[i] & 0xc0) != 0x80)
				return 0;
			code = code << 6 | (s[i] & 0x3f);
		}
		return code < forms[n].least || code > 0x10ffff || (code & ~0x7ffu) == 0xd800
			       ? 0
			       : n + 1;
	}
	return 0;
}

/*
 * In quotes. What is no UTF-8, and every control character, is \xNN and a backslash is doubled; then
 * TSDL's own escapes.
 */
static void put_string(FILE *file, const char *string)
{
	const unsigned char *s = (const unsigned char *)string;

	fputc('"', file);
	while (*s) {
		size_t len = utf8_len(s);

		if (!len || *s < ' ' || *s == 0x7f) {
			fprintf(file, "\\\\x%02x", *s++);
			continue;
		}
		if (*s == '\\')
			fputs("\\\\\\", file);
		else if (*s == '"')
			fputc('\\', file);
		fwrite(s, 1, len, file);
		s += len;
	}
	fputc('"', file);
}

static void put_env(FILE *file, const char *name, const char *value)
{
	fprintf(file, "\t%s = ", name);
	put_string(file, value);
	fputs(";\n", file);
}

static void put_uuid(FILE *file, const uint8_t uuid[16])
{
	for (int i = 0; i < 16; i++)
		fprintf(file, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}

/* ---- fields ----------------------------------------------------------------------------------- */

static bool is_stored(const struct field *field)
{
	return field->size && !(field->use & FIELD_VIEW);
}

static void put_number(FILE *file, const struct field *field)
{
	char sort = field->kind == WEIR_ARG_INT ? 's' : field->kind == WEIR_ARG_HEX ? 'x' : 'u';
	bool many = field->size > sizeof(uint64_t);

	fprintf(file, "%c%zu %s", sort, 8 * (many ? sizeof(uint64_t) : field->size), field->name);
	if (field->use & FIELD_TAIL)
		fputs("_len", file);
	if (many)
		fprintf(file, "[%zu]", field->size / sizeof(uint64_t));
	fputs("; ", file);
}

static void put_fixed(FILE *file, const struct field *field)
{
	struct field length = *field;

	if (field->use & FIELD_TAIL) {
		length.kind = WEIR_ARG_UINT;
		put_number(file, &length);
	} else if (field->kind == WEIR_ARG_STR) {
		fprintf(file, "text8 %s[%u]; ", field->name, field->size);
	} else if (field->kind == WEIR_ARG_STRV) {
		fprintf(file, "u8 %s[%u]; ", field->name, field->size);
	} else {
		put_number(file, field);
	}
}

static void put_tail(FILE *file, const struct field *field)
{
	if (field->use & FIELD_BLOBS)
		fprintf(file, "struct blob blob[%s]; ", field->name);
	else if (field->use & FIELD_TAIL)
		fprintf(file, "%s %s[%s_len]; ", field->kind == WEIR_ARG_STR ? "text8" : "u8",
			field->name, field->name);
}

/* The field at that offset of the fixed part: fields.h promises that there is one. */
static const struct field *field_at(const struct record_desc *desc, unsigned int offset)
{
	for (unsigned int i = 0; i < desc->nr_fields; i++)
		if (is_stored(&desc->fields[i]) && desc->fields[i].offset == offset)
			return &desc->fields[i];
	return NULL;
}

static void put_fields(FILE *file, const struct record_desc *desc)
{
	const struct field *field;

	for (unsigned int at = 0; (field = field_at(desc, at)); at += field->size)
		put_fixed(file, field);
	for (unsigned int i = 0; i < desc->nr_fields; i++)
		put_tail(file, &desc->fields[i]);
}

static void put_event(FILE *file, unsigned int id, unsigned int stream,
		      const struct record_desc *desc)
{
	bool late = id & CAPTURE_LATE;

	fprintf(file, "event {\n\tid = %u; name = \"%s%s\"; stream_id = %u;\n\tfields := struct { ",
		id, late ? "late:" : "", desc->event, stream);
	if (late)
		fputs("u64 true_stamp; u32 late_mark; u32 late_pad; ", file);
	put_fields(file, desc);
	fputs("};\n};\n", file);
}

static void put_class(void *ctx, unsigned int id, const struct record_desc *desc)
{
	for (unsigned int stream = 0; stream < CAPTURE_STREAMS; stream++)
		if (capture_class__in_stream(id, stream))
			put_event(ctx, id, stream, desc);
	if (capture_class__in_stream(id | CAPTURE_LATE, CAPTURE_CPU))
		put_event(ctx, id | CAPTURE_LATE, CAPTURE_CPU, desc);
}

/* ---- the whole -------------------------------------------------------------------------------- */

static void put_types(FILE *file)
{
	for (unsigned int bits = 8; bits <= 64; bits *= 2) {
		const char *head = "typealias integer { size = %u; align = 8; ";

		fprintf(file, head, bits);
		fprintf(file, "signed = false; } := u%u;\n", bits);
		fprintf(file, head, bits);
		fprintf(file, "signed = true; } := s%u;\n", bits);
		fprintf(file, head, bits);
		fprintf(file, "signed = false; base = 16; } := x%u;\n", bits);
	}
	fputs("typealias integer { size = 8; align = 8; signed = false; encoding = UTF8; base = 10; } "
	      ":= text8;\n",
	      file);
}

static void put_trace(FILE *file, const struct metadata *m)
{
	fputs("trace {\n\tmajor = 1; minor = 8; uuid = \"", file);
	put_uuid(file, m->uuid);
	fprintf(file, "\"; byte_order = %s;\n",
		__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? "le" : "be");
	fputs("\tpacket.header := struct { u32 magic; u8 uuid[16]; u32 stream_id; "
	      "u64 stream_instance_id; };\n};\n",
	      file);
}

static void put_number_env(FILE *file, const char *name, unsigned long value)
{
	fprintf(file, "\t%s = %lu;\n", name, value);
}

static void put_environment(FILE *file, const struct metadata *m)
{
	char *end;
	unsigned long major = strtoul(m->version, &end, 10);

	fputs("env {\n", file);
	put_env(file, "hostname", m->hostname);
	put_env(file, "domain", "kernel");
	put_env(file, "sysname", m->sysname);
	put_env(file, "kernel_release", m->release);
	put_env(file, "tracer_name", "weir");
	put_number_env(file, "tracer_major", major);
	put_number_env(file, "tracer_minor", *end ? strtoul(end + 1, NULL, 10) : 0);
	put_number_env(file, "layout", CAPTURE_LAYOUT);
	put_env(file, "weir_version", m->version);
	put_env(file, "command", m->command);
	put_number_env(file, "command_pid", m->command_pid);
	put_number_env(file, "nr_cpus", m->nr_cpus);
	put_number_env(file, "selected_types", m->selected_types);
	fputs("};\n", file);
}

static void put_clock(FILE *file, const struct metadata *m)
{
	int64_t sec = m->wall_offset_ns / NSEC_PER_SEC, ns = m->wall_offset_ns % NSEC_PER_SEC;

	if (ns < 0) {
		sec--;
		ns += NSEC_PER_SEC;
	}
	fprintf(file,
		"clock {\n\tname = \"monotonic\"; uuid = \"%s\"; description = \"CLOCK_MONOTONIC\";\n"
		"\tfreq = %d; offset_s = %" PRId64 "; offset = %" PRId64
		"; precision = 1; absolute = false;\n};\n"
		"typealias integer { size = 64; align = 8; signed = false; map = "
		"clock.monotonic.value; } := stamp_t;\n",
		m->boot_id, NSEC_PER_SEC, sec, ns);
}

static void put_streams(FILE *file)
{
	fputs("struct blob { u8 arg; u8 kind; u8 flags; u8 pad; u32 len; text8 bytes[len]; } "
	      "align(64);\n",
	      file);
	for (unsigned int stream = 0; stream < CAPTURE_STREAMS; stream++)
		fprintf(file,
			"stream {\n\tid = %u;\n"
			"\tpacket.context := struct { stamp_t timestamp_begin; stamp_t timestamp_end; "
			"u64 content_size; u64 packet_size; u64 events_discarded; u64 packet_seq_num; "
			"u32 cpu_id; u32 part; u64 life_seq; u64 cpu_seq; u32 records; x32 checksum; };\n"
			"\tevent.header := struct { stamp_t timestamp; u16 id; } align(64);\n"
			"\tevent.context := struct { u16 flags; u32 seq; };\n};\n",
			stream);
}

void metadata__write(FILE *file, const struct metadata *m)
{
	fputs("/* CTF 1.8 */\n", file);
	put_types(file);
	put_trace(file, m);
	put_environment(file, m);
	put_clock(file, m);
	put_streams(file);
	capture_class__each(put_class, file);
}
