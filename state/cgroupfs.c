// SPDX-License-Identifier: BSD-2-Clause
/*
 * cgroupfs.c - owns a descriptor of the v2 mount. Promises paths as the kernel's own records have
 * them: from the root of the hierarchy, not of the mount. The only file of this room that asks the
 * running system; the tables don't know it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "state/cgroupfs.h"

/* Deeper than any path that the kernel would print. */
#define DEPTH_MAX 256

struct cgroupfs {
	int mount_fd;
	bool handles; /* the kernel opens cgroups by id for us */
	char *root;   /* what of the hierarchy is mounted, "" for all */
	char *mount;  /* and where */
};

/* mountinfo writes blanks, line ends and backslashes as \ooo. */
static void unescape(char *text)
{
	char *to = text;

	while (*text) {
		if (text[0] == '\\' && strspn(text + 1, "01234567") >= 3) {
			*to++ = (char)((text[1] - '0') << 6 | (text[2] - '0') << 3 |
				       (text[3] - '0'));
			text += 4;
		} else {
			*to++ = *text++;
		}
	}
	*to = '\0';
}

/*
 * "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw": fields 4 and 5, and the type behind
 * a lone dash that follows any number of optional ones.
 */
static bool parse_mount(char *line, char **root, char **mount)
{
	char *save, *field = strtok_r(line, " \n", &save);

	*root = *mount = NULL;
	for (int i = 1; field && strcmp(field, "-"); i++) {
		if (i == 4)
			*root = field;
		else if (i == 5)
			*mount = field;
		field = strtok_r(NULL, " \n", &save);
	}
	field = field ? strtok_r(NULL, " \n", &save) : NULL;
	return *mount && field && !strcmp(field, "cgroup2");
}

/* The first mount of the whole hierarchy; else the first of a part of it. */
static int find_mount(struct cgroupfs *cgroupfs, FILE *file)
{
	char *line = NULL, *root, *mount;
	size_t size = 0;
	int err = 0;

	while (!err && getline(&line, &size, file) > 0) {
		if (!parse_mount(line, &root, &mount))
			continue;
		unescape(root);
		unescape(mount);
		if (cgroupfs->mount && strcmp(root, "/"))
			continue;
		free(cgroupfs->root);
		free(cgroupfs->mount);
		cgroupfs->root = strdup(strcmp(root, "/") ? root : "");
		cgroupfs->mount = strdup(mount);
		if (!cgroupfs->root || !cgroupfs->mount)
			err = -ENOMEM;
		else if (!cgroupfs->root[0])
			break;
	}
	free(line);
	return err || cgroupfs->mount ? err : -ENOENT;
}

static int open_mount(struct cgroupfs *cgroupfs, const char *mountinfo)
{
	FILE *file = fopen(mountinfo ? mountinfo : "/proc/self/mountinfo", "re");
	struct statfs fs;
	int err;

	if (!file)
		return -errno;
	err = find_mount(cgroupfs, file);
	fclose(file);
	if (err)
		return err;
	cgroupfs->mount_fd = open(cgroupfs->mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (cgroupfs->mount_fd < 0 || fstatfs(cgroupfs->mount_fd, &fs))
		return -errno;
	cgroupfs->handles = fs.f_type == CGROUP2_SUPER_MAGIC;
	return 0;
}

struct cgroupfs *cgroupfs__open(const char *mountinfo)
{
	struct cgroupfs *cgroupfs = calloc(1, sizeof(*cgroupfs));
	int err;

	if (!cgroupfs)
		return NULL;
	cgroupfs->mount_fd = -1;
	err = open_mount(cgroupfs, mountinfo);
	if (err) {
		cgroupfs__close(cgroupfs);
		errno = -err;
		return NULL;
	}
	return cgroupfs;
}

void cgroupfs__close(struct cgroupfs *cgroupfs)
{
	if (!cgroupfs)
		return;
	if (cgroupfs->mount_fd >= 0)
		close(cgroupfs->mount_fd);
	free(cgroupfs->root);
	free(cgroupfs->mount);
	free(cgroupfs);
}

/* root + path; the hierarchy's root is "/". */
static int join_path(const struct cgroupfs *cgroupfs, const char *path, char *buf, size_t len)
{
	int n = snprintf(buf, len, "%s%s", cgroupfs->root, path);

	if (n == 0)
		n = snprintf(buf, len, "/");
	return n < 0 || (size_t)n >= len ? -ENAMETOOLONG : n;
}

/* What an open directory is called below the mount. */
static int path_of(const struct cgroupfs *cgroupfs, int fd, char *buf, size_t len)
{
	size_t mount_len = strlen(cgroupfs->mount);
	char link[64], path[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0)
		return -errno;
	path[n] = '\0';
	if (strncmp(path, cgroupfs->mount, mount_len) ||
	    (path[mount_len] != '/' && path[mount_len]))
		return -ENOENT;
	return join_path(cgroupfs, path + mount_len, buf, len);
}

#define FILEID_KERNFS 0xfe /* the handle of a kernfs node is its id */

/* Needs CAP_DAC_READ_SEARCH. */
static int resolve_by_handle(const struct cgroupfs *cgroupfs, uint64_t id, char *buf, size_t len)
{
	union {
		struct file_handle handle;
		char space[sizeof(struct file_handle) + sizeof(uint64_t)];
	} h = {.handle = {.handle_bytes = sizeof(id), .handle_type = FILEID_KERNFS}};
	int fd, n;

	memcpy(h.handle.f_handle, &id, sizeof(id));
	fd = open_by_handle_at(cgroupfs->mount_fd, &h.handle, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = path_of(cgroupfs, fd, buf, len);
	close(fd);
	return n;
}

/* A walk down the tree: the directory numbers of kernfs are its ids. */
struct walk {
	uint64_t id;
	size_t len; /* of path */
	char path[PATH_MAX];
};

static bool walk_dir(struct walk *walk, int parent_fd, const char *name, int depth);

/* Leaves the entry's path behind if it is the one, or has it below itself. */
static bool walk_entry(struct walk *walk, int dir_fd, const struct dirent *entry, int depth)
{
	size_t len = walk->len;
	int n;

	if (entry->d_type != DT_DIR || !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
		return false;
	n = snprintf(walk->path + len, sizeof(walk->path) - len, "/%s", entry->d_name);
	if (n > 0 && (size_t)n < sizeof(walk->path) - len) {
		walk->len += (size_t)n;
		if (entry->d_ino == walk->id || walk_dir(walk, dir_fd, entry->d_name, depth + 1))
			return true;
	}
	walk->len = len;
	walk->path[len] = '\0';
	return false;
}

/* Directories that cannot be opened, or went away, are passed over. */
static bool walk_dir(struct walk *walk, int parent_fd, const char *name, int depth)
{
	int fd = depth < DEPTH_MAX
			 ? openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
			 : -1;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	bool found = false;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	while (!found && (entry = readdir(dir)))
		found = walk_entry(walk, dirfd(dir), entry, depth);
	closedir(dir);
	return found;
}

static bool is_mount(const struct cgroupfs *cgroupfs, uint64_t id)
{
	struct stat st;

	return !fstat(cgroupfs->mount_fd, &st) && st.st_ino == id;
}

static int resolve_by_walk(const struct cgroupfs *cgroupfs, uint64_t id, char *buf, size_t len)
{
	struct walk walk = {.id = id};

	if (!is_mount(cgroupfs, id) && !walk_dir(&walk, cgroupfs->mount_fd, ".", 0))
		return -ENOENT;
	return join_path(cgroupfs, walk.path, buf, len);
}

int cgroupfs__resolve(void *ctx, uint64_t cgroup_id, uint32_t hierarchy, char *buf, size_t len)
{
	struct cgroupfs *cgroupfs = ctx;
	int n;

	if (hierarchy)
		return -ENOENT;
	if (!cgroupfs->handles)
		return resolve_by_walk(cgroupfs, cgroup_id, buf, len);
	n = resolve_by_handle(cgroupfs, cgroup_id, buf, len);
	if (n >= 0 || n == -ENAMETOOLONG)
		return n;
	if (n == -ESTALE || n == -ENOENT)
		return -ENOENT;
	/* Handles are not for us (no capability, no /proc): from here on, walk. */
	cgroupfs->handles = false;
	return resolve_by_walk(cgroupfs, cgroup_id, buf, len);
}

int cgroupfs__open_dir(const struct cgroupfs *cgroupfs, const char *path)
{
	size_t root = strlen(cgroupfs->root);
	int fd;

	/* Only what lies below the mounted part can be seen. */
	if (strncmp(path, cgroupfs->root, root) != 0 || (root && path[root] && path[root] != '/'))
		return -ENOENT;
	path += root;
	while (*path == '/')
		path++;
	fd = openat(cgroupfs->mount_fd, *path ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

const char *cgroupfs__from_root(const struct cgroupfs *cgroupfs, const char *path)
{
	size_t mount = strlen(cgroupfs->mount);

	if (cgroupfs->root[0] || strncmp(path, cgroupfs->mount, mount) != 0 ||
	    (path[mount] && path[mount] != '/'))
		return path;
	for (path += mount; path[0] == '/' && path[1] == '/'; path++)
		;
	return *path ? path : "/";
}
