/* SPDX-License-Identifier: BSD-2-Clause */
/* sockname.h - what a socket is called: by its kind, and by where it is bound or connected. */
#ifndef WEIR_STATE_SOCKNAME_H
#define WEIR_STATE_SOCKNAME_H

#include <stddef.h>
#include <stdint.h>

/* "tcp", "udp", "unix", "netlink", ...; "socket" where there is no shorter word. */
const char *sockname__kind(uint32_t family, uint32_t type);

/*
 * "127.0.0.1:80", "[::1]:80", "/run/x", "@abstract"; "" for what has no such name. Any bytes are good.
 * NUL-terminated, cut to fit: name[SOCKNAME_MAX] holds all there are.
 */
#define SOCKNAME_MAX 128
void sockname__address(const char *bytes, size_t len, char name[SOCKNAME_MAX]);

#endif /* WEIR_STATE_SOCKNAME_H */
