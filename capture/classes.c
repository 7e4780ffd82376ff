// SPDX-License-Identifier: BSD-2-Clause
/*
 * classes.c - which event classes there are, and where one ends.
 *
 * Owns the description of weir's own classes; those of the probes are fields.c's. Promises that no
 * bytes, however broken, make it look outside `room` (G8). Must not know of files.
 */
#include "capture/classes.h"

#include <errno.h>
#include <string.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define ALIGN8(offset)	  (((offset) + 7) & ~(size_t)7)

#define AT(record, member) \
	offsetof(struct record, member), sizeof(((const struct record *)NULL)->member)

/* clang-format off */
static const struct field gap_fields[] = {
	{ "from_ns", WEIR_ARG_UINT, 0, AT(capture_gap, from_ns) },
	{ "to_ns", WEIR_ARG_UINT, 0, AT(capture_gap, to_ns) },
	{ "lost", WEIR_ARG_UINT, 0, AT(capture_gap, lost) },
	{ "first_seq", WEIR_ARG_UINT, 0, AT(capture_gap, seq) },
	{ "end_seq", WEIR_ARG_UINT, 0, AT(capture_gap, seq_end) },
	{ "cause", WEIR_ARG_UINT, 0, AT(capture_gap, cause) },
	{ "bound", WEIR_ARG_UINT, 0, AT(capture_gap, bound) },
	{ "ring", WEIR_ARG_UINT, 0, AT(capture_gap, ring) },
	{ "mark", WEIR_ARG_UINT, 0, AT(capture_gap, mark) },
};

static const struct field clock_step_fields[] = {
	{ "old_offset_ns", WEIR_ARG_INT, 0, AT(capture_clock_step, old_offset_ns) },
	{ "new_offset_ns", WEIR_ARG_INT, 0, AT(capture_clock_step, new_offset_ns) },
	{ "suspended_ns", WEIR_ARG_UINT, 0, AT(capture_clock_step, suspended_ns) },
};

static const struct field mark_fields[] = {
	{ "watermark_ns", WEIR_ARG_UINT, 0, AT(capture_mark, watermark_ns) },
	{ "order", WEIR_ARG_UINT, 0, AT(capture_mark, order) },
	{ "closed", WEIR_ARG_UINT, 0, AT(capture_mark, closed) },
};

static const struct field part_fields[] = {
	{ "start_ns", WEIR_ARG_UINT, 0, AT(capture_part, start_ns) },
	{ "wall_offset_ns", WEIR_ARG_INT, 0, AT(capture_part, wall_offset_ns) },
	{ "part", WEIR_ARG_UINT, 0, AT(capture_part, part) },
	{ "nr_cpus", WEIR_ARG_UINT, 0, AT(capture_part, nr_cpus) },
};

static const struct field file_fields[] = {
	{ "first_packet", WEIR_ARG_UINT, 0, AT(capture_file, number) },
	{ "end_packet", WEIR_ARG_UINT, 0, AT(capture_file, end) },
	{ "kind", WEIR_ARG_UINT, 0, AT(capture_file, stream) },
	{ "instance", WEIR_ARG_UINT, 0, AT(capture_file, instance) },
};

static const struct field account_fields[] = {
	{ "name", WEIR_ARG_STR, 0, AT(capture_account, name) },
	{ "cpu", WEIR_ARG_INT, 0, AT(capture_account, cpu) },
	{ "ring", WEIR_ARG_UINT, 0, AT(capture_account, ring) },
	{ "produced", WEIR_ARG_UINT, 0, AT(capture_account, produced) },
	{ "delivered", WEIR_ARG_UINT, 0, AT(capture_account, delivered) },
	{ "filtered", WEIR_ARG_UINT, 0, AT(capture_account, filtered) },
	{ "pending", WEIR_ARG_UINT, 0, AT(capture_account, pending) },
	{ "late", WEIR_ARG_UINT, 0, AT(capture_account, late) },
	{ "ahead", WEIR_ARG_UINT, 0, AT(capture_account, ahead) },
	{ "self", WEIR_ARG_UINT, 0, AT(capture_account, self) },
	{ "unread", WEIR_ARG_UINT, 0, AT(capture_account, unread) },
	{ "failed", WEIR_ARG_UINT, 0, AT(capture_account, failed) },
	{ "stray", WEIR_ARG_UINT, 0, AT(capture_account, stray) },
	{ "lost", WEIR_ARG_UINT, 0, AT(capture_account, lost) },
	{ "bound", WEIR_ARG_STRV, 0, AT(capture_account, bound) },
};

static const struct field task_fields[] = {
	{ "pid", WEIR_ARG_UINT, FIELD_PID, AT(capture_task, seed.id.pid) },
	{ "tid", WEIR_ARG_UINT, FIELD_TID, AT(capture_task, seed.id.tid) },
	{ "start_ns", WEIR_ARG_UINT, 0, AT(capture_task, seed.start_ns) },
	{ "cgroup", WEIR_ARG_HEX, 0, AT(capture_task, seed.cgroup) },
	{ "ppid", WEIR_ARG_UINT, 0, AT(capture_task, seed.ppid) },
	{ "uid", WEIR_ARG_UINT, 0, AT(capture_task, seed.uid) },
	{ "kthread", WEIR_ARG_BOOL, 0, AT(capture_task, seed.kthread) },
	{ "seed_pad", WEIR_ARG_UINT, 0, AT(capture_task, seed.pad) },
	{ "comm", WEIR_ARG_STR, FIELD_COMM, AT(capture_task, seed.comm) },
	{ "exe", WEIR_ARG_STR, FIELD_TAIL, AT(capture_task, exe_len) },
	{ "cgroups", WEIR_ARG_STR, FIELD_TAIL, AT(capture_task, cgroups_len) },
	{ "pad", WEIR_ARG_UINT, 0, AT(capture_task, pad) },
};
/* clang-format on */

#define OWN(record, name, array)                                                             \
	{                                                                                    \
		.len = sizeof(struct record), .event = name, .nr_fields = ARRAY_SIZE(array), \
		.fields = array                                                              \
	}

#define OWN_FIRST CAPTURE_T_GAP

static const struct record_desc own[] = {
	[CAPTURE_T_GAP - OWN_FIRST] = OWN(capture_gap, "gap", gap_fields),
	[CAPTURE_T_CLOCK_STEP -
		OWN_FIRST] = OWN(capture_clock_step, "clock_step", clock_step_fields),
	[CAPTURE_T_MARK - OWN_FIRST] = OWN(capture_mark, "mark", mark_fields),
	[CAPTURE_T_PART - OWN_FIRST] = OWN(capture_part, "part", part_fields),
	[CAPTURE_T_ACCOUNT - OWN_FIRST] = OWN(capture_account, "account", account_fields),
	[CAPTURE_T_TASK - OWN_FIRST] =
		{
			.len = sizeof(struct capture_task),
			.event = "task",
			.nr_fields = ARRAY_SIZE(task_fields),
			.fields = task_fields,
			.first_behind = 9,
			.nr_behind = 2,
		},
	[CAPTURE_T_FILE - OWN_FIRST] = OWN(capture_file, "file", file_fields),
};

const struct record_desc *capture_class__find(unsigned int id)
{
	if (id >= OWN_FIRST && id - OWN_FIRST < ARRAY_SIZE(own))
		return &own[id - OWN_FIRST];
	return fields__find(id);
}

bool capture_class__in_stream(unsigned int id, enum capture_stream stream)
{
	switch (id) {
	case CAPTURE_T_GAP:
		return stream == CAPTURE_CPU || stream == CAPTURE_NOTES;
	case CAPTURE_T_TASK:
		return stream == CAPTURE_TASKS;
	case CAPTURE_T_CLOCK_STEP:
	case CAPTURE_T_MARK:
	case CAPTURE_T_PART:
	case CAPTURE_T_ACCOUNT:
	case CAPTURE_T_FILE:
		return stream == CAPTURE_NOTES;
	default:
		return stream == CAPTURE_CPU && fields__find(id & ~CAPTURE_LATE);
	}
}

/* Where `count` blobs end that begin at `end`; -EBADMSG: not within room. */
static int64_t blobs_end(const char *payload, size_t end, size_t room, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		struct weir_blob blob;

		end = ALIGN8(end);
		if (end > room || sizeof(blob) > room - end)
			return -EBADMSG;
		memcpy(&blob, payload + end, sizeof(blob));
		end += sizeof(blob);
		if (blob.len > room - end)
			return -EBADMSG;
		end += blob.len;
	}
	return (int64_t)end;
}

static int64_t payload_size(const struct record_desc *desc, const char *payload, size_t room)
{
	int64_t end = desc->len;

	if (room < desc->len)
		return -EBADMSG;
	for (unsigned int i = 0; i < desc->nr_behind && end >= 0; i++) {
		const struct field *field = &desc->fields[desc->first_behind + i];

		if (field->use & FIELD_BLOBS)
			end = blobs_end(payload, (size_t)end, room, fields__value(field, payload));
		else
			end += (int64_t)fields__value(field, payload);
	}
	/* A tail's length has 16 bits, and blobs follow no tail: nothing wraps, nothing was looked at. */
	return end > (int64_t)room ? -EBADMSG : end;
}

int64_t capture_class__size(unsigned int id, const void *payload, size_t room)
{
	const struct record_desc *desc = capture_class__find(id & ~CAPTURE_LATE);
	size_t late = id & CAPTURE_LATE ? sizeof(struct capture_late) : 0;
	int64_t size;

	if (!desc || room < late)
		return -EBADMSG;
	size = payload_size(desc, (const char *)payload + late, room - late);
	return size < 0 ? size : size + (int64_t)late;
}

void capture_class__each(void (*fn)(void *ctx, unsigned int id, const struct record_desc *desc),
			 void *ctx)
{
	for (unsigned int id = 0; id < FIELDS_TYPES; id++)
		if (fields__find(id))
			fn(ctx, id, fields__find(id));
	for (unsigned int i = 0; i < ARRAY_SIZE(own); i++)
		fn(ctx, OWN_FIRST + i, &own[i]);
}
