/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * container.h - what a cgroup path says of who runs there. Pure: bytes in, bytes out.
 *
 * Runtimes leave a container's id or name in the name of its cgroup. The innermost one counts: for
 * a container within a container, the one that the process is in. A systemd unit is no container;
 * it has a question of its own.
 */
#ifndef WEIR_CONTAINER_H
#define WEIR_CONTAINER_H

#include <stddef.h>

/* The longest name of a cgroup directory, and the NUL. */
#define CONTAINER_NAME_MAX 256

/*
 * The container's id (64 hex digits, in full) or name (lxc, nspawn: as their tools print it) of a
 * cgroup path of any hierarchy, v1 or v2. `path` needs no NUL. Returns the length, 0: none.
 */
size_t container__id(const char *path, size_t len, char out[CONTAINER_NAME_MAX]);

/* The innermost systemd unit, slices apart ("sshd.service"). Returns the length, 0: none. */
size_t container__unit(const char *path, size_t len, char out[CONTAINER_NAME_MAX]);

#endif /* WEIR_CONTAINER_H */
