/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/selection.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The next word of a comma-separated list, cut to fit; NULL at its end. */
static const char *next_word(const char *list, char *word, size_t size)
{
	size_t len = strcspn(list, ",");

	snprintf(word, size, "%.*s", (int)len, list);
	return list[len] ? list + len + 1 : NULL;
}

/* A word less its '!', which takes away what the rest means. */
static const char *without_bang(const char *word, bool *wanted)
{
	*wanted = word[0] != '!';
	return word + !*wanted;
}

/* A class of calls, less its '%'. */
static bool is_class(const char *word)
{
	struct probes_selection scratch = {0};
	char class[40], err[256];

	snprintf(class, sizeof(class), "%%%s", word);
	return !probes__choose(&scratch, class, NULL, true, err, sizeof(err));
}

static bool select_one(const struct command_def *command, struct probes_selection *selection,
		       const char *group, const char *name, bool wanted)
{
	char err[256];

	if (!probes__choose(selection, group, name, wanted, err, sizeof(err)))
		return true;
	if (!name && is_class(group))
		say(command, "%s; did you mean %%%s?", err, group);
	else
		say(command, "%s", err);
	return false;
}

static bool select_names(const struct command_def *command, struct probes_selection *selection,
			 const char *word, const char *colon)
{
	char group[32], name[64];
	const char *names = colon + 1;

	if (memchr(word, ',', (size_t)(colon - word))) {
		say(command, "a colon belongs to one group: split '%s' into one -e for each", word);
		return false;
	}
	snprintf(group, sizeof(group), "%.*s", (int)(colon - word), word);
	/* All but what follows. */
	if (names[0] == '!' && !select_one(command, selection, group, NULL, true))
		return false;
	while (names) {
		const char *event;
		bool wanted;

		names = next_word(names, name, sizeof(name));
		event = without_bang(name, &wanted);
		if (!select_one(command, selection, group, event, wanted))
			return false;
	}
	return true;
}

static bool select_groups(const struct command_def *command, struct probes_selection *selection,
			  const char *groups)
{
	char group[32];

	while (groups) {
		const char *one;
		bool wanted;

		groups = next_word(groups, group, sizeof(group));
		one = without_bang(group, &wanted);
		if (!select_one(command, selection, one, NULL, wanted))
			return false;
	}
	return true;
}

bool selection__events(const struct command_def *command, const struct option_list *words,
		       const char *otherwise, struct probes_selection *selection)
{
	/* Taking away begins with what there would be without a word. */
	if (!words->count || words->at[0][0] == '!')
		if (!select_groups(command, selection, otherwise))
			return false;
	for (unsigned i = 0; i < words->count; i++) {
		const char *word = words->at[i], *colon = strchr(word, ':');

		if (colon ? !select_names(command, selection, word, colon)
			  : !select_groups(command, selection, word))
			return false;
	}
	return true;
}

static int print_item(void *ctx, const struct probes_item *item)
{
	printf("%s:%s", item->group, item->event);
	for (uint32_t i = 0; i < item->nargs; i++)
		printf("%s%s", i ? ", " : "\t", item->args[i]);
	printf("%s%s%s\n", item->abi ? " (" : "", item->abi ? item->abi : "", item->abi ? ")" : "");
	return 0;
}

void selection__list(void)
{
	probes__list(print_item, NULL);
}

/* A number from /proc/TID/status; 0: there is no such task. */
static uint32_t status_number(unsigned long tid, const char *format)
{
	char path[64], line[256];
	unsigned number = 0;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%lu/status", tid);
	status = fopen(path, "re");
	if (!status)
		return 0;
	while (!number && fgets(line, sizeof(line), status))
		if (sscanf(line, format, &number) != 1)
			number = 0;
	fclose(status);
	return number;
}

/* The process that a tid belongs to; 0: there is none. */
static uint32_t process_of(unsigned long tid)
{
	return status_number(tid, "Tgid: %u");
}

void selection__leave_ancestors_out(uint32_t *pids, struct probes_selection *selection)
{
	uint32_t pid = (uint32_t)getppid(), count = 0;

	for (; pid > 1 && count < SELECTION_PIDS_MAX; pid = status_number(pid, "PPid: %u"))
		pids[count++] = pid;
	selection->left_out = count ? pids : NULL;
	selection->nr_left_out = count;
}

static bool has_pid(const struct probes_selection *selection, uint32_t pid)
{
	for (uint32_t i = 0; i < selection->nr_pids; i++)
		if (selection->pids[i] == pid)
			return true;
	return false;
}

bool selection__has_ancestor(const struct probes_selection *selection)
{
	uint32_t pid = (uint32_t)getppid();

	while (pid > 1 && !has_pid(selection, pid))
		pid = status_number(pid, "PPid: %u");
	return has_pid(selection, pid);
}

/* The process id that a word names; 0 when it names none, and that was said. */
static uint32_t parse_pid(const struct command_def *command, const char *word)
{
	char *end;
	unsigned long pid = strtoul(word, &end, 10);
	uint32_t tgid;

	if (!pid || *end || pid > INT32_MAX || *word == '-' || *word == '+') {
		say(command, "-p takes process ids, not '%s'", word);
		return 0;
	}
	tgid = process_of(pid);
	if (!tgid) {
		say(command, "there is no process %lu", pid);
		return 0;
	}
	if (tgid != pid) {
		say(command, "%lu is a thread of process %u: use -p %u", pid, tgid, tgid);
		return 0;
	}
	return tgid;
}

bool selection__pids(const struct command_def *command, const struct option_list *words,
		     uint32_t *pids, struct probes_selection *selection)
{
	uint32_t count = 0;
	char word[32];

	for (unsigned i = 0; i < words->count; i++) {
		const char *list = words->at[i];

		while (list) {
			list = next_word(list, word, sizeof(word));
			if (count == SELECTION_PIDS_MAX) {
				say(command, "-p takes at most %d processes", SELECTION_PIDS_MAX);
				return false;
			}
			pids[count] = parse_pid(command, word);
			if (!pids[count++])
				return false;
		}
	}
	selection->pids = count ? pids : NULL;
	selection->nr_pids = count;
	return true;
}
