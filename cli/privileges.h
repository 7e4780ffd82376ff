/* SPDX-License-Identifier: BSD-2-Clause */
/* privileges.h - give up what is not needed any more. */
#ifndef WEIR_CLI_PRIVILEGES_H
#define WEIR_CLI_PRIVILEGES_H

/*
 * Once everything is attached: keep the capabilities that a CPU which comes online needs (CAP_BPF,
 * CAP_PERFMON, and CAP_IPC_LOCK for its perf rings) and those by which processes and cgroups are named (CAP_SYS_PTRACE,
 * CAP_DAC_READ_SEARCH), as far as they are there; all others are gone for good. 0 or -errno.
 */
int privileges__drop(void);

#endif /* WEIR_CLI_PRIVILEGES_H */
