/* SPDX-License-Identifier: BSD-2-Clause */
/* flaws.h - what a capture that has been read lacks, told to who reads what came of it. */
#ifndef WEIR_CLI_FLAWS_H
#define WEIR_CLI_FLAWS_H

#include "capture/feed.h"
#include "cli/options.h"

#include <stddef.h>

/* How many there are, missing files among them. */
size_t flaws__count(const struct reader *reader);

/* Metadata that is missing, and damage. */
void flaws__say(const struct command_def *def, const struct reader *reader, const char *path);

/* Whether the end is missing; asked when all was read. */
void flaws__say_end(const struct command_def *def, const struct reader *reader,
		    const struct feed *feed, const char *path);

#endif /* WEIR_CLI_FLAWS_H */
