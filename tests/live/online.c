// SPDX-License-Identifier: BSD-2-Clause
#include "online.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

bool set_online(unsigned cpu, bool on)
{
	char path[64];
	int fd;
	bool done;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/online", cpu);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	done = fd >= 0 && write(fd, on ? "1" : "0", 1) == 1;
	if (fd >= 0)
		close(fd);
	return done;
}
