/* SPDX-License-Identifier: BSD-2-Clause */
#include "source/cpus.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int parse_id(const char **at)
{
	char *end;
	unsigned long id;

	if (!isdigit((unsigned char)**at))
		return -EINVAL;
	errno = 0;
	id = strtoul(*at, &end, 10);
	if (errno || id >= CPUS_MAX)
		return -EINVAL;
	*at = end;
	return (int)id;
}

static bool ends(const char *list)
{
	return !*list || *list == '\n';
}

int cpus__parse(struct cpus *cpus, const char *list)
{
	memset(cpus, 0, sizeof(*cpus));
	if (ends(list))
		return 0;
	for (;;) {
		int first = parse_id(&list), last = first;

		if (first < 0)
			return first;
		if (*list == '-') {
			list++;
			last = parse_id(&list);
			if (last < first)
				return -EINVAL;
		}
		for (int cpu = first; cpu <= last; cpu++)
			cpus->bits[cpu / 64] |= 1ull << (cpu % 64);
		if (ends(list))
			return 0;
		/* Behind a comma stands another id: what ends there was cut off. */
		if (*list++ != ',')
			return -EINVAL;
	}
}

static int read_list(struct cpus *cpus, const char *sysfs, const char *file)
{
	char path[4096], text[5 * CPUS_MAX]; /* no list is longer than all ids and their commas */
	ssize_t len;
	int fd, err;

	if (snprintf(path, sizeof(path), "%s/devices/system/cpu/%s", sysfs ? sysfs : "/sys",
		     file) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	len = read(fd, text, sizeof(text) - 1);
	err = len < 0 ? -errno : 0;
	close(fd);
	if (err)
		return err;
	if (len == sizeof(text) - 1)
		return -EINVAL;
	text[len] = '\0';
	return cpus__parse(cpus, text);
}

int cpus__online(struct cpus *cpus, const char *sysfs)
{
	return read_list(cpus, sysfs, "online");
}

int cpus__possible_slots(const char *sysfs)
{
	struct cpus possible;
	int err = read_list(&possible, sysfs, "possible");

	if (err)
		return err;
	for (int cpu = CPUS_MAX - 1; cpu >= 0; cpu--)
		if (cpus__has(&possible, (unsigned)cpu))
			return cpu + 1;
	return -EINVAL;
}

unsigned cpus__count(const struct cpus *cpus)
{
	unsigned count = 0;

	for (unsigned i = 0; i < CPUS_MAX / 64; i++)
		count += (unsigned)__builtin_popcountll(cpus->bits[i]);
	return count;
}
