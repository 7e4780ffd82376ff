/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * paths.h - paths as -P compares them: absolute, without ".", ".." and empty parts.
 *
 * ".." is taken by its name, as nobody can ask the file system of that time; where a symbolic link is
 * on the way it may lead elsewhere.
 */
#ifndef WEIR_CLI_PATHS_H
#define WEIR_CLI_PATHS_H

#include <stdbool.h>
#include <stddef.h>

#define PATHS_MAX 8192

/*
 * The path as seen from a directory, which may be NULL: not known. false: then a relative one is not
 * known either, or it is too long.
 */
bool paths__resolve(const char *dir, const char *path, size_t len, char full[PATHS_MAX]);

#endif /* WEIR_CLI_PATHS_H */
