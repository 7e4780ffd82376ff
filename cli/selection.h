/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * selection.h - what the user wants to see, from the words of -e and -p.
 *
 * Each returns false when a word can't be meant, and has said so.
 */
#ifndef WEIR_CLI_SELECTION_H
#define WEIR_CLI_SELECTION_H

#include "cli/options.h"
#include "probes/probes.h"

#define SELECTION_PIDS_MAX 4096

/*
 * -e GROUP[,GROUP] or GROUP:NAME[,NAME], again and again; `otherwise` when there is no -e. %CLASS can
 * stand for a group or a NAME, and '!' in front takes away.
 */
bool selection__events(const struct command_def *command, const struct option_list *words,
		       const char *otherwise, struct probes_selection *selection);

/* Print all that can be selected, a line each, with its arguments. */
void selection__list(void);

/* -p PID[,PID]: processes that run. `pids` has room for SELECTION_PIDS_MAX. */
bool selection__pids(const struct command_def *command, const struct option_list *words,
		     uint32_t *pids, struct probes_selection *selection);

/*
 * Leave out the processes that we descend from (shell, terminal, sshd; not init): on a terminal, what
 * they do to show a line would be the next line. `pids` has room for SELECTION_PIDS_MAX.
 */
void selection__leave_ancestors_out(uint32_t *pids, struct probes_selection *selection);

/* Do we descend from one of these processes, so that it may wait for our end? */
bool selection__has_ancestor(const struct probes_selection *selection);

#endif /* WEIR_CLI_SELECTION_H */
