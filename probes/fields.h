/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fields.h - the one description of the records of <weir/probes.h>: which bytes mean what.
 *
 * Whatever takes a record apart, names what can be selected, or writes down the layout for others
 * reads it here. Constant data: no set-up, any thread.
 */
#ifndef WEIR_FIELDS_H
#define WEIR_FIELDS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <weir/decode.h>
#include <weir/probes.h>

/* struct field.use. No bit: the bytes are only stored. */
#define FIELD_ARG	(1u << 0) /* an argument of the event */
#define FIELD_PID	(1u << 1) /* whose event it is */
#define FIELD_TID	(1u << 2)
#define FIELD_COMM	(1u << 3)  /* the name of that task */
#define FIELD_VIEW	(1u << 4)  /* the bytes belong to another field, which is shown here anew */
#define FIELD_NONZERO	(1u << 5)  /* an argument only when it is not 0 */
#define FIELD_TAIL	(1u << 6)  /* a length: so many bytes stand behind the fixed part */
#define FIELD_NR	(1u << 7)  /* number of the system call */
#define FIELD_ABI	(1u << 8)  /* its enum weir_abi */
#define FIELD_CALL_ARGS (1u << 9)  /* its raw arguments, 8 bytes each */
#define FIELD_BLOBS	(1u << 10) /* how many struct weir_blob stand behind the fixed part */
#define FIELD_TASK	(FIELD_PID | FIELD_TID | FIELD_COMM)

/*
 * A part of the fixed part of a record. Numbers are 1, 2, 4 or 8 bytes in the machine's order,
 * signed if they are INT (4 or 8). A STR that is no TAIL is its bytes up to a NUL or the end.
 */
struct field {
	const char *name;
	enum weir_arg_kind kind;
	uint16_t use;
	uint16_t offset;
	uint16_t size;	      /* 0: nothing is stored, the value is 0 or computed */
	uint32_t mask;	      /* BOOL: these bits of it; 0: all */
	uint32_t cut, unread; /* TAIL: bits of the record's flags that say so of these bytes */
	uint64_t (*value)(const void *payload); /* computes it; NULL: the bytes as they are */
	const char *const *words;		/* WORD: by value; holes are NULL */
	uint16_t nr_words;
};

/*
 * One type of record. Fields stand in the order of the event's arguments, and those that are TAIL
 * in the order of their bytes.
 */
struct record_desc {
	uint16_t len; /* of the fixed part */
	enum weir_group group;
	const char *event;     /* "sched_switch" */
	const char *names[2];  /* in its group, as a user may say it: "switch"; the first is ours */
	uint16_t flags_offset; /* of the 32-bit flags that `cut` and `unread` look at */
	uint16_t nr_fields;
	const struct field *fields;
	/* Which of the fields tell of bytes behind the fixed part: they stand together. */
	uint8_t first_behind, nr_behind;
};

#define FIELDS_TYPES 23 /* enum weir_type stays below */

/* NULL: no such type; any value is allowed. */
const struct record_desc *fields__find(unsigned int type);

static inline uint64_t fields__load(const void *from, unsigned int size)
{
	uint64_t u64 = 0;
	uint32_t u32;
	uint16_t u16;
	uint8_t u8;

	switch (size) {
	case 1:
		memcpy(&u8, from, sizeof(u8));
		return u8;
	case 2:
		memcpy(&u16, from, sizeof(u16));
		return u16;
	case 4:
		memcpy(&u32, from, sizeof(u32));
		return u32;
	case 8:
		memcpy(&u64, from, sizeof(u64));
	}
	return u64;
}

/*
 * The number that a field is, out of a payload that is at least as long as the record's fixed part;
 * 0 where it is none. Inline: it runs for each field of each event.
 */
static inline uint64_t fields__value(const struct field *field, const void *payload)
{
	uint64_t value;

	if (field->value)
		return field->value(payload);
	value = fields__load((const char *)payload + field->offset, field->size);
	if (field->kind == WEIR_ARG_INT && field->size == sizeof(int32_t))
		return (uint64_t)(int64_t)(int32_t)value;
	if (field->kind == WEIR_ARG_BOOL)
		return field->mask ? !!(value & field->mask) : !!value;
	return value;
}

/* Its word; "unknown" where there is none. */
const char *fields__word(const struct field *field, uint64_t value);

/* "process", ...; NULL for WEIR_GROUP_NONE. */
const char *fields__group_name(enum weir_group group);

#endif /* WEIR_FIELDS_H */
