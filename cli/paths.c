/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/paths.h"

#include <string.h>

static size_t parent(const char *full, size_t len)
{
	while (len && full[len - 1] != '/')
		len--;
	return len ? len - 1 : 0;
}

/* Append the parts of a path; `len` of `full` is there, without a slash at its end. */
static bool append(char full[PATHS_MAX], size_t *len, const char *path, size_t path_len)
{
	const char *end = path + path_len;

	while (path < end) {
		const char *slash = memchr(path, '/', (size_t)(end - path));
		size_t part = (size_t)((slash ? slash : end) - path);

		if (part == 2 && !memcmp(path, "..", 2)) {
			*len = parent(full, *len);
		} else if (part && !(part == 1 && *path == '.')) {
			if (*len + part + 2 > PATHS_MAX)
				return false;
			full[(*len)++] = '/';
			memcpy(full + *len, path, part);
			*len += part;
		}
		path += part + 1;
	}
	return true;
}

bool paths__resolve(const char *dir, const char *path, size_t len, char full[PATHS_MAX])
{
	bool absolute = len && path[0] == '/';
	size_t used = 0;

	if (!absolute && (!dir || dir[0] != '/' || !append(full, &used, dir, strlen(dir))))
		return false;
	if (!append(full, &used, path, len))
		return false;
	if (!used)
		full[used++] = '/';
	full[used] = '\0';
	return true;
}
