/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sockaddr.h - a struct sockaddr as a program gave it -> its parts, for every sink.
 */
#ifndef WEIR_SINKS_SOCKADDR_H
#define WEIR_SINKS_SOCKADDR_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

enum sockaddr_form {
	SOCKADDR_RAW = 0,  /* a family that is not taken apart, or too few bytes for it */
	SOCKADDR_IP,	   /* addr, port, scope */
	SOCKADDR_PATH,	   /* bytes: a socket in the file system */
	SOCKADDR_ABSTRACT, /* bytes: its name without the leading NUL, NULs and all */
	SOCKADDR_UNNAMED,  /* unix, no name at all */
	SOCKADDR_NETLINK,  /* port: the port id; groups */
};

struct sockaddr_parts {
	enum sockaddr_form form;
	char family[16]; /* "inet", ..., "af_99"; "" when not even the family is there */
	char addr[INET6_ADDRSTRLEN];
	uint32_t port, scope, groups;
	const char *bytes; /* RAW: all of them */
	size_t len;
};

/* Borrows `bytes`. Any length and any bytes are good. */
void sockaddr__parts(const char *bytes, size_t len, struct sockaddr_parts *out);

#endif /* WEIR_SINKS_SOCKADDR_H */
