/* SPDX-License-Identifier: BSD-2-Clause */
#include "source/hotplug.h"

#include <errno.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int open_uevents(void)
{
	struct sockaddr_nl addr = {.nl_family = AF_NETLINK, .nl_groups = 1};
	int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
			NETLINK_KOBJECT_UEVENT);

	if (fd < 0)
		return -1;
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		close(fd);
		return -1;
	}
	return fd;
}

int hotplug__open(struct hotplug *hotplug)
{
	/* The socket first: what changes after the list was read is then told. */
	hotplug->fd = open_uevents();
	return cpus__online(&hotplug->online, NULL);
}

void hotplug__close(struct hotplug *hotplug)
{
	if (hotplug->fd >= 0)
		close(hotplug->fd);
	hotplug->fd = -1;
}

static void set(struct hotplug *hotplug, unsigned cpu, bool online, hotplug_fn fn, void *ctx)
{
	uint64_t bit = 1ull << (cpu % 64);

	if (cpus__has(&hotplug->online, cpu) == online)
		return;
	hotplug->online.bits[cpu / 64] ^= bit;
	fn(ctx, (int)cpu, online);
}

/* "online@/devices/system/cpu/cpu1", then NUL-separated pairs that say the same again. */
static bool parse(const char *message, unsigned *cpu, bool *online)
{
	char action[8], id[6], rest;

	if (sscanf(message, "%7[a-z]@/devices/system/cpu/cpu%5[0-9]%c", action, id, &rest) != 2)
		return false;
	*cpu = (unsigned)strtoul(id, NULL, 10);
	if (*cpu >= CPUS_MAX)
		return false;
	*online = !strcmp(action, "online");
	return *online || !strcmp(action, "offline");
}

void hotplug__events(struct hotplug *hotplug, hotplug_fn fn, void *ctx)
{
	char message[4096];

	while (hotplug->fd >= 0) {
		struct sockaddr_nl from = {0};
		socklen_t from_len = sizeof(from);
		ssize_t len = recvfrom(hotplug->fd, message, sizeof(message) - 1, 0,
				       (struct sockaddr *)&from, &from_len);
		unsigned cpu;
		bool online;

		if (len < 0 && errno == EINTR)
			continue;
		if (len < 0 && errno == ENOBUFS) {
			/* Messages were lost: only the list still knows. */
			hotplug__look(hotplug, fn, ctx);
			continue;
		}
		if (len < 0)
			return;
		message[len] = '\0';
		/* Anybody privileged may send here; only port 0 is the kernel. */
		if (from.nl_pid == 0 && parse(message, &cpu, &online))
			set(hotplug, cpu, online, fn, ctx);
	}
}

void hotplug__look(struct hotplug *hotplug, hotplug_fn fn, void *ctx)
{
	struct cpus now;

	if (cpus__online(&now, NULL))
		return;
	for (unsigned word = 0; word < CPUS_MAX / 64; word++) {
		uint64_t changed = now.bits[word] ^ hotplug->online.bits[word];

		while (changed) {
			unsigned cpu = word * 64 + (unsigned)__builtin_ctzll(changed);

			changed &= changed - 1;
			set(hotplug, cpu, cpus__has(&now, cpu), fn, ctx);
		}
	}
}
