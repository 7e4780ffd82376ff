// SPDX-License-Identifier: BSD-2-Clause
/*
 * flaws.c - what a capture lacks, in the same words wherever one is read. Where each flaw is, weir verify
 * tells.
 */
#include "cli/flaws.h"

size_t flaws__count(const struct reader *reader)
{
	size_t count;

	reader__flaws(reader, &count);
	return count;
}

void flaws__say(const struct command_def *def, const struct reader *reader, const char *path)
{
	size_t flaws = flaws__count(reader);

	if (!reader__env(reader)->has_metadata)
		say(def, "%s: metadata is missing: what was selected, and the boot, are not known",
		    path);
	if (flaws)
		say(def, "%s: damaged in %zu place%s: 'weir verify %s' tells where", path, flaws,
		    flaws > 1 ? "s" : "", path);
}

void flaws__say_end(const struct command_def *def, const struct reader *reader,
		    const struct feed *feed, const char *path)
{
	if (feed__end(feed).closed)
		return;
	if (reader__is_recording(reader))
		say(def, "%s: it is being recorded: what was not written yet is missing", path);
	else
		say(def,
		    "%s: the recording was cut off: what was not written yet, of its last second, is "
		    "missing; nobody knows how much that is",
		    path);
}
