/* SPDX-License-Identifier: BSD-2-Clause */
/* capture_verify.h - weir verify of a folder: does this capture keep what weir promises? */
#ifndef WEIR_CLI_CAPTURE_VERIFY_H
#define WEIR_CLI_CAPTURE_VERIFY_H

#include "cli/options.h"

struct capture_verify_options {
	bool complete; /* every number of every source has to be there */
	bool repair;   /* cut torn tails first */
	bool quiet;
};

/*
 * 0: all promises are kept, 1: one is broken, and each that was seen was said, 2: no verdict, and that
 * was said.
 */
int capture_verify(const struct command_def *command, const char *path,
		   const struct capture_verify_options *opts);

#endif /* WEIR_CLI_CAPTURE_VERIFY_H */
