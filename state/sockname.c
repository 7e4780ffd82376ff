// SPDX-License-Identifier: BSD-2-Clause
/* sockname.c - owns nothing; struct sockaddr as a program gave it, so each length is checked. */
#include "state/sockname.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define TYPE_MASK 0xf /* above it: SOCK_CLOEXEC, SOCK_NONBLOCK */

const char *sockname__kind(uint32_t family, uint32_t type)
{
	switch (family) {
	case AF_UNIX:
		return "unix";
	case AF_NETLINK:
		return "netlink";
	case AF_PACKET:
		return "packet";
	case AF_VSOCK:
		return "vsock";
	case AF_INET:
	case AF_INET6:
		break;
	default:
		return "socket";
	}
	switch (type & TYPE_MASK) {
	case SOCK_STREAM:
		return "tcp";
	case SOCK_DGRAM:
		return "udp";
	default:
		return "raw";
	}
}

static void inet(const char *bytes, char name[SOCKNAME_MAX])
{
	char text[INET_ADDRSTRLEN];
	struct sockaddr_in sin;

	memcpy(&sin, bytes, sizeof(sin));
	inet_ntop(AF_INET, &sin.sin_addr, text, sizeof(text));
	snprintf(name, SOCKNAME_MAX, "%s:%u", text, ntohs(sin.sin_port));
}

static void inet6(const char *bytes, char name[SOCKNAME_MAX])
{
	char text[INET6_ADDRSTRLEN];
	struct sockaddr_in6 sin6;

	memcpy(&sin6, bytes, sizeof(sin6));
	inet_ntop(AF_INET6, &sin6.sin6_addr, text, sizeof(text));
	snprintf(name, SOCKNAME_MAX, "[%s]:%u", text, ntohs(sin6.sin6_port));
}

/* An abstract name begins with a NUL, and may hold more of them: they read as '@', as in /proc. */
static void local(const char *bytes, size_t len, char name[SOCKNAME_MAX])
{
	bool abstract = len && !bytes[0];

	if (len >= SOCKNAME_MAX)
		len = SOCKNAME_MAX - 1;
	if (!abstract)
		len = strnlen(bytes, len);
	for (size_t i = 0; i < len; i++)
		name[i] = bytes[i] ? bytes[i] : '@';
	name[len] = '\0';
}

void sockname__address(const char *bytes, size_t len, char name[SOCKNAME_MAX])
{
	const size_t path_at = offsetof(struct sockaddr_un, sun_path);
	sa_family_t family = AF_UNSPEC;

	name[0] = '\0';
	if (len >= sizeof(family))
		memcpy(&family, bytes, sizeof(family));
	if (family == AF_INET && len >= sizeof(struct sockaddr_in))
		inet(bytes, name);
	else if (family == AF_INET6 && len >= sizeof(struct sockaddr_in6))
		inet6(bytes, name);
	else if (family == AF_UNIX && len > path_at)
		local(bytes + path_at, len - path_at, name);
}
