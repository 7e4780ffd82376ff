/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tracepoints.c - tracefs -> which tracepoints there are and how their records lie; a record -> name
 * and fields.
 *
 * libtraceevent reads the formats, once; what it makes of them is turned into a table, and records are
 * read by that. Its own reading and printing trusts the lengths in a record, and looks at the format
 * again for each. Here every offset is held against the record before it is used (G8).
 *
 * Fields are shown as they lie in the record, by name and value, as perf script -F and trace-cmd -R do,
 * and not by the kernel's print format: that is a sentence, other than the JSON has it, in which a
 * thread's name could pass for a field.
 */
#include "probes/tracepoints.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <traceevent/event-parse.h>
#include <unistd.h>

#define PAIR_MAX    192	       /* "GROUP/NAME" */
#define FORMAT_MAX  (1u << 20) /* bytes of one format */
#define SCRATCH_MAX 8192       /* of the text of arrays of one record: perf's are as long at most */
#define COMMON_PID  "common_pid"

enum field_kind {
	FIELD_NUMBER,
	FIELD_TEXT,   /* char[] */
	FIELD_BYTES,  /* as hex */
	FIELD_NUMBERS /* an array of them */
};

/* Where an array of any length stands: a word in the record has offset and length. */
enum field_place {
	PLACE_FIXED,
	PLACE_LOC,    /* from the record's begin */
	PLACE_REL_LOC /* from the word's end */
};

struct field {
	char *name;
	enum field_kind kind;
	enum field_place place;
	enum weir_arg_kind arg;
	uint32_t offset, size, element;
	bool is_signed;
};

struct tracepoint {
	char name[PAIR_MAX + sizeof(TRACEPOINTS_PREFIX)];
	struct field *fields;
	uint32_t nr_fields;
	uint32_t pid_offset; /* of common_pid */
	uint32_t id;
};

struct tracepoints {
	const char *tracefs;
	struct tracepoint *at;
	uint32_t count, room;
	char scratch[SCRATCH_MAX];
	size_t used;
};

static const char *const tracefs_places[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};

__attribute__((format(printf, 4, 5))) static int explain(char *err, size_t err_len, int code,
							 const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(err, err_len, format, args);
	va_end(args);
	return code;
}

struct tracepoints *tracepoints__new(const char *tracefs)
{
	struct tracepoints *tps = calloc(1, sizeof(*tps));

	if (tps)
		tps->tracefs = tracefs;
	return tps;
}

static void free_fields(struct tracepoint *tp)
{
	for (uint32_t i = 0; i < tp->nr_fields; i++)
		free(tp->fields[i].name);
	free(tp->fields);
}

void tracepoints__free(struct tracepoints *tps)
{
	if (!tps)
		return;
	for (uint32_t i = 0; i < tps->count; i++)
		free_fields(&tps->at[i]);
	free(tps->at);
	free(tps);
}

uint32_t tracepoints__count(const struct tracepoints *tps)
{
	return tps->count;
}

const char *tracepoints__name(const struct tracepoints *tps, uint32_t index)
{
	return tps->at[index].name;
}

uint32_t tracepoints__id(const struct tracepoints *tps, uint32_t index)
{
	return tps->at[index].id;
}

const char *tracepoints__field(const struct tracepoints *tps, uint32_t index, uint32_t field)
{
	return field < tps->at[index].nr_fields ? tps->at[index].fields[field].name : NULL;
}

/* ---- choosing --------------------------------------------------------------------------------- */

static int find_tracefs(struct tracepoints *tps, char *err, size_t err_len)
{
	char events[64];
	int code = -ENOENT;

	if (tps->tracefs)
		return 0;
	for (size_t i = 0; i < sizeof(tracefs_places) / sizeof(tracefs_places[0]); i++) {
		snprintf(events, sizeof(events), "%s/events", tracefs_places[i]);
		if (!access(events, R_OK | X_OK)) {
			tps->tracefs = tracefs_places[i];
			return 0;
		}
		if (errno == EACCES)
			code = -EACCES;
	}
	if (code == -EACCES)
		return explain(err, err_len, code,
			       "tracepoints are looked up in %s, which this user may not read; run "
			       "as root",
			       tracefs_places[0]);
	return explain(err, err_len, code, "tracefs is not mounted; mount -t tracefs tracefs %s",
		       tracefs_places[0]);
}

/* The one of that name, or NULL. */
static struct tracepoint *find(struct tracepoints *tps, const char *name)
{
	for (uint32_t i = 0; i < tps->count; i++)
		if (!strcmp(tps->at[i].name, name))
			return &tps->at[i];
	return NULL;
}

static int add(struct tracepoints *tps, const char *name)
{
	if (find(tps, name))
		return 0;
	if (tps->count == tps->room) {
		uint32_t room = tps->room ? 2 * tps->room : 16;
		struct tracepoint *grown = reallocarray(tps->at, room, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		tps->at = grown;
		tps->room = room;
	}
	tps->at[tps->count] = (struct tracepoint){0};
	snprintf(tps->at[tps->count++].name, sizeof(tps->at[0].name), "%s", name);
	return 0;
}

static void take_out(struct tracepoints *tps, const char *name)
{
	struct tracepoint *tp = find(tps, name);

	if (!tp)
		return;
	tps->count--;
	memmove(tp, tp + 1, (size_t)(&tps->at[tps->count] - tp) * sizeof(*tp));
}

/* The kernel's own marks in ftrace's buffer have formats, but cannot be switched on. */
static bool can_be_enabled(const struct tracepoints *tps, const char *group, const char *event)
{
	char path[512];

	return snprintf(path, sizeof(path), "%s/events/%s/%s/enable", tps->tracefs, group, event) <
		       (int)sizeof(path) &&
	       !access(path, F_OK);
}

/*
 * What the kernel lets nobody sample, since to write a sample makes the next: by this name alone, so
 * that it says so, and not by a pattern that means others.
 */
static bool is_never_sampled(const char *name)
{
	return !strcmp(name, TRACEPOINTS_PREFIX "irq_vectors:irq_work_exit");
}

static bool is_listed(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN);
}

/* Names in a folder of tracefs that match, in their order. Negative: there is no such folder. */
static int matching(const char *folder, const char *pattern, struct dirent ***names)
{
	int all = scandir(folder, names, NULL, alphasort), count = 0;

	for (int i = 0; i < all; i++) {
		struct dirent *entry = (*names)[i];

		if (is_listed(entry) && !fnmatch(pattern, entry->d_name, 0))
			(*names)[count++] = entry;
		else
			free(entry);
	}
	return all < 0 ? all : count;
}

struct choice {
	char group[PAIR_MAX], event[PAIR_MAX]; /* patterns */
	bool wanted, is_pattern;
	uint32_t found;
};

static int choose_in(struct tracepoints *tps, struct choice *choice, const char *group)
{
	char folder[512], name[sizeof(tps->at[0].name)];
	struct dirent **events;
	int count, err = 0;

	snprintf(folder, sizeof(folder), "%s/events/%s", tps->tracefs, group);
	count = matching(folder, choice->event, &events);
	if (count < 0)
		return 0;
	for (int i = 0; i < count; i++) {
		const char *event = events[i]->d_name;
		bool fits = snprintf(name, sizeof(name), TRACEPOINTS_PREFIX "%s:%s", group, event) <
			    (int)sizeof(name);

		if (!err && fits && can_be_enabled(tps, group, event) &&
		    (!is_never_sampled(name) || !choice->is_pattern)) {
			choice->found++;
			if (choice->wanted)
				err = add(tps, name);
			else
				take_out(tps, name);
		}
		free(events[i]);
	}
	free(events);
	return err;
}

static int choose(struct tracepoints *tps, struct choice *choice)
{
	struct dirent **groups;
	char folder[512];
	int count, err = 0;

	snprintf(folder, sizeof(folder), "%s/events", tps->tracefs);
	count = matching(folder, choice->group, &groups);
	if (count < 0)
		return -errno;
	for (int i = 0; i < count; i++) {
		if (!err)
			err = choose_in(tps, choice, groups[i]->d_name);
		free(groups[i]);
	}
	free(groups);
	return err;
}

/* Both are parts of a path, and so stay in their folder. */
static bool split(const char *pattern, struct choice *choice)
{
	const char *colon = strchr(pattern, ':');
	size_t len = colon ? (size_t)(colon - pattern) : 0;

	if (!len || len >= sizeof(choice->group) || !colon[1] ||
	    strlen(colon + 1) >= sizeof(choice->event) || strpbrk(colon + 1, ":/") ||
	    memchr(pattern, '/', len))
		return false;
	memcpy(choice->group, pattern, len);
	choice->group[len] = '\0';
	strcpy(choice->event, colon + 1);
	choice->is_pattern = strpbrk(pattern, "*?[");
	return true;
}

int tracepoints__choose(struct tracepoints *tps, const char *pattern, bool wanted, char *err,
			size_t err_len)
{
	struct choice choice = {.wanted = wanted};
	int code;

	if (!split(pattern, &choice))
		return explain(
			err, err_len, -EINVAL,
			"'%s' is no tracepoint: tp:GROUP:NAME, as in tp:sched:sched_switch or "
			"tp:sched:*",
			pattern);
	code = find_tracefs(tps, err, err_len);
	if (code)
		return code;
	code = choose(tps, &choice);
	if (code)
		return explain(err, err_len, code, "cannot look for tracepoints in %s: %s",
			       tps->tracefs, strerror(-code));
	if (choice.found)
		return 0;
	return explain(err, err_len, -ENOENT,
		       "this kernel has no tracepoint %s; weir trace --list 'tp:*:*' shows all",
		       pattern);
}

/* ---- formats ---------------------------------------------------------------------------------- */

static char *read_whole(const char *path, size_t *len)
{
	char *text = malloc(FORMAT_MAX);
	int fd = text ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	ssize_t got = 1;

	*len = 0;
	while (fd >= 0 && got > 0 && *len < FORMAT_MAX - 1) {
		got = read(fd, text + *len, FORMAT_MAX - 1 - *len);
		*len += got > 0 ? (size_t)got : 0;
	}
	if (fd >= 0 && got >= 0) {
		close(fd);
		text[*len] = '\0';
		return text;
	}
	if (fd >= 0)
		close(fd);
	free(text);
	return NULL;
}

static bool is_text(const struct tep_format_field *f)
{
	return f->flags & TEP_FIELD_IS_ARRAY && strstr(f->type, "char") &&
	       !strstr(f->type, "unsigned") && !strstr(f->type, "signed");
}

static bool is_number_size(uint32_t size)
{
	return size == 1 || size == 2 || size == 4 || size == 8;
}

/* libtraceevent does not tell the size of elements of what has any length: it stands in the type. */
static uint32_t element_of(const struct tep_format_field *f)
{
	static const struct {
		const char *type;
		uint32_t size;
	} sizes[] = {
		{"u64", 8},
		{"s64", 8},
		{"u32", 4},
		{"s32", 4},
		{"u16", 2},
		{"s16", 2},
		{"long", sizeof(long)},
		{"short", 2},
		{"int", 4},
	};

	if (!(f->flags & TEP_FIELD_IS_DYNAMIC))
		return f->arraylen ? (uint32_t)f->size / f->arraylen : 1;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		if (strstr(f->type, sizes[i].type))
			return sizes[i].size;
	return 1;
}

static enum weir_arg_kind number_kind(const struct tep_format_field *f)
{
	if (f->flags & TEP_FIELD_IS_POINTER)
		return WEIR_ARG_HEX;
	if (!strcmp(f->type, "bool"))
		return WEIR_ARG_BOOL;
	return f->flags & TEP_FIELD_IS_SIGNED ? WEIR_ARG_INT : WEIR_ARG_UINT;
}

static enum field_kind kind_of(const struct tep_format_field *f, const struct field *field)
{
	if (is_text(f))
		return FIELD_TEXT;
	if (f->flags & TEP_FIELD_IS_ARRAY)
		return field->element > 1 && is_number_size(field->element) ? FIELD_NUMBERS
									    : FIELD_BYTES;
	return is_number_size(field->size) ? FIELD_NUMBER : FIELD_BYTES;
}

static int take_field(struct field *field, const struct tep_format_field *f)
{
	*field = (struct field){
		.name = strdup(f->name),
		.offset = (uint32_t)f->offset,
		.size = (uint32_t)f->size,
		.element = element_of(f),
		.arg = number_kind(f),
		.is_signed = f->flags & TEP_FIELD_IS_SIGNED,
	};
	if (f->flags & TEP_FIELD_IS_DYNAMIC)
		field->place = f->flags & TEP_FIELD_IS_RELATIVE ? PLACE_REL_LOC : PLACE_LOC;
	field->kind = kind_of(f, field);
	return field->name ? 0 : -ENOMEM;
}

static int take_fields(struct tracepoint *tp, const struct tep_event *event)
{
	uint32_t count = 0;
	int err = 0;

	for (const struct tep_format_field *f = event->format.fields; f; f = f->next)
		count++;
	tp->fields = calloc(count + 1, sizeof(*tp->fields));
	if (!tp->fields)
		return -ENOMEM;
	for (const struct tep_format_field *f = event->format.fields; f && !err; f = f->next) {
		/* One of a dynamic kind is a word of 4 bytes; that a format says otherwise is not known. */
		if (f->offset < 0 || f->size < 0 ||
		    (f->flags & TEP_FIELD_IS_DYNAMIC && f->size != sizeof(uint32_t)))
			return -EBADMSG;
		err = take_field(&tp->fields[tp->nr_fields++], f);
	}
	return err;
}

static int take_common(struct tracepoint *tp, const struct tep_event *event)
{
	tp->id = (uint32_t)event->id;
	for (const struct tep_format_field *f = event->format.common_fields; f; f = f->next) {
		if (strcmp(f->name, COMMON_PID) || f->size != sizeof(uint32_t) || f->offset < 0)
			continue;
		tp->pid_offset = (uint32_t)f->offset;
		return 0;
	}
	return -EBADMSG;
}

static int parse(struct tracepoint *tp, const char *text, size_t len)
{
	struct tep_handle *tep = tep_alloc();
	struct tep_event *event = NULL;
	char group[PAIR_MAX];
	int err;

	if (!tep)
		return -ENOMEM;
	tep_set_long_size(tep, sizeof(long));
	tep_set_file_bigendian(tep, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? TEP_BIG_ENDIAN
									   : TEP_LITTLE_ENDIAN);
	tep_set_local_bigendian(tep, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? TEP_BIG_ENDIAN
									    : TEP_LITTLE_ENDIAN);
	snprintf(group, sizeof(group), "%.*s",
		 (int)strcspn(tp->name + strlen(TRACEPOINTS_PREFIX), ":"),
		 tp->name + strlen(TRACEPOINTS_PREFIX));
	/* It may fail at the print format alone, which is not needed: then there is an event. */
	tep_parse_format(tep, &event, text, len, group);
	err = event ? take_common(tp, event) : -EBADMSG;
	if (!err)
		err = take_fields(tp, event);
	tep_free(tep);
	return err;
}

static int load(struct tracepoints *tps, struct tracepoint *tp, char *err, size_t err_len)
{
	char path[512], *text;
	size_t len;
	int code;

	snprintf(path, sizeof(path), "%s/events/%s/format", tps->tracefs,
		 tp->name + strlen(TRACEPOINTS_PREFIX));
	*strrchr(path, ':') = '/';
	text = read_whole(path, &len);
	if (!text)
		return explain(err, err_len, -errno, "cannot read %s: %s", path, strerror(errno));
	code = parse(tp, text, len);
	free(text);
	if (code)
		return explain(err, err_len, code, "%s is not understood: %s", path,
			       strerror(-code));
	return 0;
}

int tracepoints__load(struct tracepoints *tps, char *err, size_t err_len)
{
	int code = 0;

	/* It would print what it does not understand of print formats, which are not used. */
	tep_set_loglevel(TEP_LOG_NONE);
	for (uint32_t i = 0; i < tps->count && !code; i++)
		code = load(tps, &tps->at[i], err, err_len);
	return code;
}

/* ---- records ---------------------------------------------------------------------------------- */

struct record {
	const uint8_t *bytes;
	uint32_t len;
};

static bool holds(const struct record *rec, uint64_t offset, uint64_t len)
{
	return offset <= rec->len && len <= rec->len - offset;
}

static uint32_t word_at(const struct record *rec, uint32_t offset)
{
	uint32_t word;

	memcpy(&word, rec->bytes + offset, sizeof(word));
	return word;
}

static uint64_t number_at(const uint8_t *at, uint32_t size, bool is_signed)
{
	union {
		uint8_t u8;
		uint16_t u16;
		uint32_t u32;
		uint64_t u64;
	} n = {0};

	memcpy(&n, at, size);
	switch (size) {
	case 1:
		return is_signed ? (uint64_t)(int8_t)n.u8 : n.u8;
	case 2:
		return is_signed ? (uint64_t)(int16_t)n.u16 : n.u16;
	case 4:
		return is_signed ? (uint64_t)(int32_t)n.u32 : n.u32;
	default:
		return n.u64;
	}
}

/* Where its bytes are. false: not in the record. */
static bool locate(const struct record *rec, const struct field *field, uint32_t *offset,
		   uint32_t *len)
{
	uint32_t word;

	*offset = field->offset;
	*len = field->size;
	if (!holds(rec, *offset, *len))
		return false;
	if (field->place == PLACE_FIXED)
		return true;
	word = word_at(rec, field->offset);
	*offset = word & 0xffff;
	*len = word >> 16;
	if (field->place == PLACE_REL_LOC)
		*offset += field->offset + (uint32_t)sizeof(word);
	return holds(rec, *offset, *len);
}

/* What an array becomes: as much text as there is room for, and whether that was all. */
static void put_array(struct tracepoints *tps, const struct field *field, const uint8_t *at,
		      uint32_t len, struct weir_arg *arg)
{
	bool hex = field->kind == FIELD_BYTES;
	uint32_t step = hex ? 1 : field->element;
	char *begin = tps->scratch + tps->used;
	size_t room = sizeof(tps->scratch) - tps->used, used = 0;

	arg->kind = WEIR_ARG_STR;
	arg->bytes = begin;
	for (uint32_t i = 0; i + step <= len; i += step) {
		unsigned long long n = number_at(at + i, step, !hex && field->is_signed);

		if (room - used < 24) {
			arg->flags |= WEIR_ARG_CUT;
			break;
		}
		if (hex)
			used += (size_t)snprintf(begin + used, room - used, "%02llx", n);
		else
			used += (size_t)snprintf(begin + used, room - used,
						 field->is_signed ? "%s%lld" : "%s%llu",
						 i ? " " : "", n);
	}
	arg->len = (uint32_t)used;
	tps->used += used;
}

static bool take_arg(struct tracepoints *tps, const struct record *rec, const struct field *field,
		     struct weir_arg *arg)
{
	uint32_t offset, len;

	*arg = (struct weir_arg){.name = field->name, .kind = field->arg};
	if (!locate(rec, field, &offset, &len))
		return false;
	switch (field->kind) {
	case FIELD_NUMBER:
		arg->u = number_at(rec->bytes + offset, len, field->is_signed);
		arg->i = (int64_t)arg->u;
		break;
	case FIELD_TEXT:
		arg->kind = WEIR_ARG_STR;
		arg->bytes = (const char *)rec->bytes + offset;
		arg->len = (uint32_t)strnlen(arg->bytes, len);
		break;
	case FIELD_BYTES:
	case FIELD_NUMBERS:
		put_array(tps, field, rec->bytes + offset, len, arg);
		break;
	}
	return true;
}

/* More fields than an event can have arguments: the last place says how many are not there. */
static void say_more(uint32_t left, struct weir_arg *arg)
{
	*arg = (struct weir_arg){
		.name = "fields_left_out",
		.kind = WEIR_ARG_UINT,
		.u = left,
	};
}

int tracepoints__decode(struct tracepoints *tps, uint32_t index,
			const struct weir_perf_sample *sample, struct weir_decoded *out)
{
	const struct record rec = {sample->raw, sample->raw_len};
	const struct tracepoint *tp;

	if (index >= tps->count)
		return -EBADMSG;
	tp = &tps->at[index];
	if (!rec.bytes || !holds(&rec, tp->pid_offset, sizeof(uint32_t)))
		return -EBADMSG;
	*out = (struct weir_decoded){
		.name = tp->name,
		.tid = word_at(&rec, tp->pid_offset),
		.nr = -1,
		.has_args = true,
	};
	tps->used = 0;
	for (uint32_t i = 0; i < tp->nr_fields; i++) {
		struct weir_arg *arg = &out->args[out->nargs++];

		if (out->nargs == WEIR_ARGS_MAX && i + 1 < tp->nr_fields) {
			say_more(tp->nr_fields - i, arg);
			break;
		}
		if (!take_arg(tps, &rec, &tp->fields[i], arg))
			return -EBADMSG;
	}
	return 0;
}
