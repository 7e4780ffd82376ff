// SPDX-License-Identifier: BSD-2-Clause
/*
 * top_procs.c - owns what only /proc tells of processes that are shown: memory and command lines. What a
 * process has it changes by running, as a rule: so it is asked for when it has run, and is still there when
 * it has ended. Memory is asked for once in a while too, since others can take it away. Knows nothing of
 * rows that were never shown.
 */
#include "cli/top.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N_SLOTS	     4096 /* a power of two */
#define ENTRIES_MAX  16384
#define RSS_STALE_NS 10000000000u

/* When something was read; the process's CPU time as of then. */
struct reading {
	uint64_t at_ns; /* 0: never */
	int64_t time_ns;
};

struct entry {
	struct entry *next;
	uint32_t pid;
	uint64_t start_ns;
	uint64_t seen_ns; /* end of an interval */
	struct reading rss, cmdline;
	struct top_proc proc;
};

struct top_procs {
	struct entry *slots[N_SLOTS];
	size_t count;
};

struct top_procs *top_procs__new(void)
{
	return calloc(1, sizeof(struct top_procs));
}

/* All that were not asked for in the interval that ends there. */
static void drop_others(struct top_procs *procs, uint64_t seen_ns)
{
	for (unsigned i = 0; i < N_SLOTS; i++) {
		struct entry **at = &procs->slots[i], *entry;

		while ((entry = *at)) {
			if (entry->seen_ns == seen_ns) {
				at = &entry->next;
				continue;
			}
			*at = entry->next;
			free(entry->proc.cmdline);
			free(entry);
			procs->count--;
		}
	}
}

void top_procs__free(struct top_procs *procs)
{
	if (!procs)
		return;
	/* No interval ends there. */
	drop_others(procs, UINT64_MAX);
	free(procs);
}

static struct entry **slot_of(struct top_procs *procs, const struct usage_row *row)
{
	uint64_t h = (row->pid ^ row->process_start_ns) * UINT64_C(0x9e3779b97f4a7c15);

	return &procs->slots[h >> 32 & (N_SLOTS - 1)];
}

static struct entry *find(struct top_procs *procs, const struct usage_row *row)
{
	struct entry *entry = *slot_of(procs, row);

	while (entry && (entry->pid != row->pid || entry->start_ns != row->process_start_ns))
		entry = entry->next;
	return entry;
}

/* NULL: there is no room. Those that lines point to were seen at `to_ns`: they stay. */
static struct entry *add(struct top_procs *procs, const struct usage_row *row, uint64_t to_ns)
{
	struct entry **slot = slot_of(procs, row), *entry;

	if (procs->count >= ENTRIES_MAX)
		drop_others(procs, to_ns);
	if (procs->count >= ENTRIES_MAX)
		return NULL;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return NULL;
	entry->pid = row->pid;
	entry->start_ns = row->process_start_ns;
	entry->next = *slot;
	*slot = entry;
	procs->count++;
	return entry;
}

size_t top_procs__read(uint32_t pid, const char *name, char *out, size_t size)
{
	char path[40];
	ssize_t len = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		len = read(fd, out, size - 1);
		close(fd);
	}
	len = len > 0 ? len : 0;
	out[len] = '\0';
	return (size_t)len;
}

static bool is_due(const struct reading *reading, const struct reading *now)
{
	return !reading->at_ns || reading->time_ns != now->time_ns;
}

static void read_rss(struct entry *entry)
{
	unsigned long size, resident = 0;
	char text[128];

	top_procs__read(entry->pid, "statm", text, sizeof(text));
	if (sscanf(text, "%lu %lu", &size, &resident) != 2)
		resident = 0;
	entry->proc.rss_bytes = resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* One that is about to end has none any more: what was there stays. */
static void read_cmdline(struct entry *entry)
{
	char bytes[TOP_CMDLINE_MAX + 1];
	size_t len = top_procs__read(entry->pid, "cmdline", bytes, sizeof(bytes));
	struct top_cmdline *line;

	while (len && !bytes[len - 1])
		len--;
	line = len ? realloc(entry->proc.cmdline, sizeof(*line) + len) : NULL;
	if (!line)
		return;
	line->len = len;
	memcpy(line->bytes, bytes, len);
	entry->proc.cmdline = line;
}

const struct top_proc *top_procs__ask(struct top_procs *procs, const struct usage_row *row,
				      int64_t time_ns, bool cmdline, uint64_t to_ns)
{
	const struct reading now = {to_ns, time_ns};
	bool ended = row->state == USAGE_EXITED;
	struct entry *entry = find(procs, row);

	if (!entry && !ended)
		entry = add(procs, row, to_ns);
	if (!entry)
		return NULL;
	entry->seen_ns = to_ns;
	if (ended) {
		entry->proc.rss_bytes = 0;
		return &entry->proc;
	}
	if (is_due(&entry->rss, &now) || to_ns - entry->rss.at_ns >= RSS_STALE_NS) {
		read_rss(entry);
		entry->rss = now;
	}
	if (cmdline && is_due(&entry->cmdline, &now)) {
		read_cmdline(entry);
		entry->cmdline = now;
	}
	return &entry->proc;
}
