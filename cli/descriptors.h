/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * descriptors.h - RLIMIT_NOFILE: each CPU's rings are files, and there are programs and maps beside.
 */
#ifndef WEIR_CLI_DESCRIPTORS_H
#define WEIR_CLI_DESCRIPTORS_H

#include <stdint.h>

/* How many a trace may take on this machine, once every CPU that can come has come. */
uint64_t descriptors__needed(void);

/* Have that many, as far as the rights go. Of this process: a program to be run was forked before. */
void descriptors__raise_limit(void);

/* How many this process may have. */
uint64_t descriptors__limit(void);

#endif /* WEIR_CLI_DESCRIPTORS_H */
