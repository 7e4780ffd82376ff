/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stop.h - signals that end or question a running command.
 */
#ifndef WEIR_CLI_STOP_H
#define WEIR_CLI_STOP_H

#include <stdint.h>

/* Non-zero once SIGINT, SIGTERM or SIGHUP came; a SIGHUP that the caller ignores does not come. */
extern volatile int stop__requested;
/* Which of them it was. */
extern volatile int stop__signal;

/*
 * Catch those, and SIGUSR1; ignore SIGPIPE. After the first of them a timer keeps interrupting system
 * calls: the signal may have come just before a write(2) that then blocks for ever on a slow reader.
 * spare_first_interrupt: the first SIGINT is meant for a command that runs on the same terminal.
 */
int stop__install(int spare_first_interrupt);

/* That command has ended: a SIGINT is meant for us from now on. */
void stop__spare_no_more(void);

/* Signals are again what they were before that: in a child, for the program that it becomes. */
void stop__restore(void);

/*
 * At end_ns (CLOCK_MONOTONIC) a stop is requested without a signal, as OUT_STOP_PATIENTLY: a write to
 * somebody who takes nothing would not notice that the time is over.
 */
void stop__at(uint64_t end_ns);

/* Did SIGUSR1 come since the last call? */
int stop__ledger_wanted(void);

/* Before stop__install(): SIGHUP is to ask for something else than the end, whoever ignores it. */
void stop__hangup_asks(void);

/* Did it come since the last call? */
int stop__hangup_came(void);

#endif /* WEIR_CLI_STOP_H */
