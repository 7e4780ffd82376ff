/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * classes.h - the event classes of a capture: the records of probes/fields.h, and weir's own.
 *
 * One description serves for all: the metadata is written from it, the writer checks each record
 * against it, and the reader finds with it where a record ends. Constant data: no set-up, any thread.
 */
#ifndef WEIR_CAPTURE_CLASSES_H
#define WEIR_CAPTURE_CLASSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/layout.h"
#include "probes/fields.h"

/* NULL: no such class. `id` without CAPTURE_LATE; any value is allowed. */
const struct record_desc *capture_class__find(unsigned int id);

/* May an event of this class, late ones included, stand in such a stream? */
bool capture_class__in_stream(unsigned int id, enum capture_stream stream);

/*
 * Bytes of the payload that begins at `payload`, of which no more than `room` may be looked at. With
 * CAPTURE_LATE in id, struct capture_late stands in front and is counted. -EBADMSG: no such class, or
 * it does not end within `room`, or its lengths make no sense.
 */
int64_t capture_class__size(unsigned int id, const void *payload, size_t room);

/* Call fn for every class but the late ones, in the order of their ids. */
void capture_class__each(void (*fn)(void *ctx, unsigned int id, const struct record_desc *desc),
			 void *ctx);

#endif /* WEIR_CAPTURE_CLASSES_H */
