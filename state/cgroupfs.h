/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cgroupfs.h - paths of cgroups on the running machine, by their ids: the resolver for
 * tasks__set_cgroup_resolver().
 */
#ifndef WEIR_CGROUPFS_H
#define WEIR_CGROUPFS_H

#include <stddef.h>
#include <stdint.h>

struct cgroupfs;

/*
 * Find where v2 is mounted, on hybrid hosts too. mountinfo: NULL for this process's own, or a file
 * like it. NULL and errno: ENOENT, v2 is mounted nowhere; or open(2)'s, ENOMEM.
 */
struct cgroupfs *cgroupfs__open(const char *mountinfo);
void cgroupfs__close(struct cgroupfs *cgroupfs);

/*
 * Write the path of a v2 cgroup (hierarchy 0), from the hierarchy's root, and return its length. ctx
 * is the struct cgroupfs. Errors: ENOENT, there is none with this id, or not that this mount shows;
 * ENAMETOOLONG.
 */
int cgroupfs__resolve(void *ctx, uint64_t cgroup_id, uint32_t hierarchy, char *buf, size_t len);

/* Open the directory of a path from the hierarchy's root. A descriptor of the caller's, or -errno. */
int cgroupfs__open_dir(const struct cgroupfs *cgroupfs, const char *path);

/*
 * A path as it was copied from a shell, from the root of the hierarchy: less the mount point, where
 * that shows the whole hierarchy. Any other stays as it is. Borrowed from `path`.
 */
const char *cgroupfs__from_root(const struct cgroupfs *cgroupfs, const char *path);

#endif /* WEIR_CGROUPFS_H */
