/* SPDX-License-Identifier: BSD-2-Clause */
/* priority.h - a reader that has to wait for a CPU behind what it watches loses records. */
#ifndef WEIR_CLI_PRIORITY_H
#define WEIR_CLI_PRIORITY_H

/*
 * Ask for the CPU first and for short turns: nice -20, and from Linux 6.12 on a slice of 0.1 ms, which
 * lets a waking reader go before a task that is in the middle of its own. Without the right to it,
 * nothing changes. It stays an ordinary task, which can't starve the others.
 */
void priority__raise(void);

#endif /* WEIR_CLI_PRIORITY_H */
