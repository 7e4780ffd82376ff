/* SPDX-License-Identifier: BSD-2-Clause */
/* classes.h - system calls by what they are about: %file, %network, ... */
#ifndef WEIR_CLASSES_H
#define WEIR_CLASSES_H

#include "probes/syscalls.h"

/* "file", without its '%'. NULL: there are not so many. */
const char *classes__name(unsigned int index);

/* -1: no such class. */
int classes__find(const char *name);

bool classes__has(int class, const struct syscall_desc *call);

#endif /* WEIR_CLASSES_H */
