// SPDX-License-Identifier: BSD-2-Clause
/*
 * sockaddr.c - a struct sockaddr as a program gave it -> its parts.
 *
 * Promises: reads no byte outside [bytes, bytes + len), whatever family they claim; what is too short
 * for its family comes out raw, never padded with zeros that nobody sent.
 * Must not know: how a sink prints the parts.
 */
#include "sinks/sockaddr.h"

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define UN_PATH	  offsetof(struct sockaddr_un, sun_path)
#define IN_LEAST  offsetof(struct sockaddr_in, sin_zero)
/* The kernel takes an IPv6 address without its scope (RFC 2133's form), so programs send it. */
#define IN6_LEAST offsetof(struct sockaddr_in6, sin6_scope_id)

/* Names of families, without their AF_, in small letters. */
static const struct {
	uint16_t family;
	const char *name;
} families[] = {
	{AF_UNSPEC, "unspec"}, {AF_UNIX, "unix"},	{AF_INET, "inet"},
	{AF_INET6, "inet6"},   {AF_NETLINK, "netlink"}, {AF_PACKET, "packet"},
	{AF_ALG, "alg"},       {AF_VSOCK, "vsock"},	{AF_BLUETOOTH, "bluetooth"},
	{AF_CAN, "can"},       {AF_TIPC, "tipc"},	{AF_QIPCRTR, "qipcrtr"},
	{AF_XDP, "xdp"},
};

static void name_family(uint16_t family, char *name, size_t len)
{
	size_t i;

	for (i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		if (families[i].family == family) {
			snprintf(name, len, "%s", families[i].name);
			return;
		}
	}
	snprintf(name, len, "af_%u", family);
}

static void inet_parts(const char *bytes, struct sockaddr_parts *out)
{
	struct sockaddr_in in;

	memcpy(&in, bytes, IN_LEAST);
	inet_ntop(AF_INET, &in.sin_addr, out->addr, sizeof(out->addr));
	out->port = ntohs(in.sin_port);
	out->form = SOCKADDR_IP;
}

static void inet6_parts(const char *bytes, size_t len, struct sockaddr_parts *out)
{
	struct sockaddr_in6 in6 = {0};

	memcpy(&in6, bytes, len < sizeof(in6) ? IN6_LEAST : sizeof(in6));
	inet_ntop(AF_INET6, &in6.sin6_addr, out->addr, sizeof(out->addr));
	out->port = ntohs(in6.sin6_port);
	out->scope = in6.sin6_scope_id;
	out->form = SOCKADDR_IP;
}

/* A name in the file system ends at its first NUL; an abstract one is as long as it says. */
static void unix_parts(const char *bytes, size_t len, struct sockaddr_parts *out)
{
	out->bytes = bytes + UN_PATH;
	out->len = len - UN_PATH;
	if (!out->len) {
		out->form = SOCKADDR_UNNAMED;
	} else if (out->bytes[0]) {
		out->form = SOCKADDR_PATH;
		out->len = strnlen(out->bytes, out->len);
	} else {
		out->form = SOCKADDR_ABSTRACT;
		out->bytes++;
		out->len--;
	}
}

static void netlink_parts(const char *bytes, struct sockaddr_parts *out)
{
	struct sockaddr_nl nl;

	memcpy(&nl, bytes, sizeof(nl));
	out->port = nl.nl_pid;
	out->groups = nl.nl_groups;
	out->form = SOCKADDR_NETLINK;
}

void sockaddr__parts(const char *bytes, size_t len, struct sockaddr_parts *out)
{
	sa_family_t family;

	*out = (struct sockaddr_parts){.form = SOCKADDR_RAW, .bytes = bytes, .len = len};
	if (len < sizeof(family))
		return;
	memcpy(&family, bytes, sizeof(family));
	name_family(family, out->family, sizeof(out->family));
	if (family == AF_INET && len >= IN_LEAST)
		inet_parts(bytes, out);
	else if (family == AF_INET6 && len >= IN6_LEAST)
		inet6_parts(bytes, len, out);
	else if (family == AF_UNIX)
		unix_parts(bytes, len, out);
	else if (family == AF_NETLINK && len >= sizeof(struct sockaddr_nl))
		netlink_parts(bytes, out);
}
