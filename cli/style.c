/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/style.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WIDE_SCREEN 120 /* columns from which on the longest names get room */

static const char *const times[] = {
	[STYLE_WALL] = "wall",
	[STYLE_MONO] = "mono",
	[STYLE_DELTA] = "delta",
	[STYLE_NO_TIME] = "none",
};

static const char *const colors[] = {"auto", "always", "never"};

/* Its index; -1: there is no such word. The first is what is meant when none is given. */
static int find(const char *const *words, int count, const char *word)
{
	for (int i = 0; i < count; i++)
		if (!word || !strcmp(words[i], word))
			return i;
	return -1;
}

static int find_time(const char *word)
{
	return find(times, sizeof(times) / sizeof(times[0]), word);
}

static int find_color(const char *word)
{
	return find(colors, sizeof(colors) / sizeof(colors[0]), word);
}

bool style__words(const struct command_def *command, const char *time, const char *color)
{
	if (find_time(time) < 0)
		say(command, "there is no --time '%s': wall, mono, delta or none", time);
	else if (find_color(color) < 0)
		say(command, "there is no --color '%s': auto, always or never", color);
	else
		return true;
	return false;
}

/* NO_COLOR (set, and not empty) and terminals that can't do it have their way unless told. */
static bool wants_color(const char *word, int fd)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	if (find_color(word))
		return !strcmp(word, "always");
	return isatty(fd) && !(no_color && *no_color) && !(term && !strcmp(term, "dumb"));
}

static unsigned int digits(unsigned long n)
{
	unsigned int count = 1;

	while (n /= 10)
		count++;
	return count;
}

void style__fill(struct style *style, const char *time, const char *color, int fd)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	struct winsize size;

	style->time = (enum style_time)find_time(time);
	style->color = wants_color(color, fd);
	style->cpu_width = cpus > 1 ? digits((unsigned long)cpus - 1) : 1;
	style->task_width = STYLE_TASK_WIDTH;
	if (!ioctl(fd, TIOCGWINSZ, &size) && size.ws_col >= WIDE_SCREEN)
		style->task_width = STYLE_TASK_WIDTH_WIDE;
}
