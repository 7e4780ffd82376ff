/* SPDX-License-Identifier: BSD-2-Clause */
/* env.h - the statements of a capture's metadata that its reader needs; of CTF's grammar it knows nothing. */
#ifndef WEIR_CAPTURE_ENV_H
#define WEIR_CAPTURE_ENV_H

#include "capture/reader.h"

/*
 * Takes what is there, whatever the bytes are; what is missing stays as it was. *command is to be freed.
 * -ENOMEM.
 */
int env__parse(const char *text, size_t len, struct reader_env *env, char **command);

#endif /* WEIR_CAPTURE_ENV_H */
