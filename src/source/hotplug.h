/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hotplug.h - CPUs that come and go.
 *
 * The kernel's uevents tell at once and tell of short absences; where they can't be had (another
 * network namespace), looking at the online list tells within a second.
 */
#ifndef WEIR_SOURCE_HOTPLUG_H
#define WEIR_SOURCE_HOTPLUG_H

#include "source/cpus.h"

struct hotplug {
	int fd; /* readable when something may have changed; -1: only looking helps */
	struct cpus online;
};

int hotplug__open(struct hotplug *hotplug);
void hotplug__close(struct hotplug *hotplug);

/* Drain what the kernel told, in order, then compare with the online list. */
typedef void (*hotplug_fn)(void *ctx, int cpu, bool online);
void hotplug__events(struct hotplug *hotplug, hotplug_fn fn, void *ctx);
void hotplug__look(struct hotplug *hotplug, hotplug_fn fn, void *ctx);

#endif /* WEIR_SOURCE_HOTPLUG_H */
