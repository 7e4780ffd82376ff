// SPDX-License-Identifier: BSD-2-Clause
/*
 * top_cmdlines.c - owns command lines of processes that are shown, as the kernel had them when they last
 * ran: a process that does not run can't change its own. So each is read once, as long as it sleeps, and
 * is still there when the process has ended. Knows nothing of rows that were never shown.
 */
#include "cli/top.h"

#include <stdlib.h>
#include <string.h>

#define N_SLOTS	    4096 /* a power of two */
#define ENTRIES_MAX 16384

struct entry {
	struct entry *next;
	uint32_t pid;
	uint64_t start_ns;
	uint64_t read_ns, seen_ns; /* ends of intervals */
	struct top_cmdline line;
};

struct top_cmdlines {
	struct entry *slots[N_SLOTS];
	size_t count;
};

struct top_cmdlines *top_cmdlines__new(void)
{
	return calloc(1, sizeof(struct top_cmdlines));
}

/* All that were not asked for in the interval that ends there. */
static void drop_others(struct top_cmdlines *cmdlines, uint64_t seen_ns)
{
	for (unsigned i = 0; i < N_SLOTS; i++) {
		struct entry **at = &cmdlines->slots[i], *entry;

		while ((entry = *at)) {
			if (entry->seen_ns == seen_ns) {
				at = &entry->next;
				continue;
			}
			*at = entry->next;
			free(entry);
			cmdlines->count--;
		}
	}
}

void top_cmdlines__free(struct top_cmdlines *cmdlines)
{
	if (!cmdlines)
		return;
	/* No interval ends there. */
	drop_others(cmdlines, UINT64_MAX);
	free(cmdlines);
}

static struct entry **slot_of(struct top_cmdlines *cmdlines, const struct usage_row *row)
{
	uint64_t h = (row->pid ^ row->process_start_ns) * UINT64_C(0x9e3779b97f4a7c15);

	return &cmdlines->slots[h >> 32 & (N_SLOTS - 1)];
}

static struct entry *find(struct top_cmdlines *cmdlines, const struct usage_row *row)
{
	struct entry *entry = *slot_of(cmdlines, row);

	while (entry && (entry->pid != row->pid || entry->start_ns != row->process_start_ns))
		entry = entry->next;
	return entry;
}

/* NULL: there is no room. Those that lines point to were seen at `to_ns`: they stay. */
static struct entry *add(struct top_cmdlines *cmdlines, const struct usage_row *row, uint64_t to_ns)
{
	struct entry **slot = slot_of(cmdlines, row), *entry;

	if (cmdlines->count >= ENTRIES_MAX)
		drop_others(cmdlines, to_ns);
	if (cmdlines->count >= ENTRIES_MAX)
		return NULL;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return NULL;
	entry->pid = row->pid;
	entry->start_ns = row->process_start_ns;
	entry->next = *slot;
	*slot = entry;
	cmdlines->count++;
	return entry;
}

/* One that is about to end has none any more: what was there stays. */
static void read_again(struct entry *entry, uint64_t to_ns)
{
	char bytes[TOP_CMDLINE_MAX + 1];
	size_t len = top_table__read_proc(entry->pid, "cmdline", bytes, sizeof(bytes));

	entry->read_ns = to_ns;
	while (len && !bytes[len - 1])
		len--;
	if (!len)
		return;
	memcpy(entry->line.bytes, bytes, len);
	entry->line.len = len;
}

const struct top_cmdline *top_cmdlines__ask(struct top_cmdlines *cmdlines,
					    const struct usage_row *row, uint64_t to_ns)
{
	bool ended = row->state == USAGE_EXITED;
	bool ran = row->now.time_ns || row->now.voluntary || row->now.involuntary;
	struct entry *entry = find(cmdlines, row);
	bool known = entry;

	if (!entry && !ended)
		entry = add(cmdlines, row, to_ns);
	if (!entry)
		return NULL;
	entry->seen_ns = to_ns;
	if (!ended && (!known || (ran && entry->read_ns != to_ns)))
		read_again(entry, to_ns);
	return entry->line.len ? &entry->line : NULL;
}
