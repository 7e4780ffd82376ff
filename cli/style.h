/* SPDX-License-Identifier: BSD-2-Clause */
/* style.h - the looks of text lines, from the words of --time and --color and from where they go. */
#ifndef WEIR_CLI_STYLE_H
#define WEIR_CLI_STYLE_H

#include "cli/options.h"
#include "sinks/style.h"

/* false when a word can't be meant, and has said so. NULL: not given. */
bool style__words(const struct command_def *command, const char *time, const char *color);

/* For lines that go to fd. The words are good. */
void style__fill(struct style *style, const char *time, const char *color, int fd);

#endif /* WEIR_CLI_STYLE_H */
