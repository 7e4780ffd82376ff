/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fds.h - what the descriptors of processes stand for: paths, sockets and the like.
 *
 * Fed in stream order with whole calls, forks, execs, exits and gaps, so that a look-up tells what was
 * open at that point of the stream. Threads share their process's table, forks copy it; a description
 * belongs to the open file, so all that share one see its socket being connected.
 *
 * Unknown, and so without a description: descriptors that calls hand out through memory (pipe,
 * socketpair, SCM_RIGHTS), and tables that processes share or threads give up (CLONE_FILES, unshare).
 * After a gap nothing is known but what the resolver tells. Must not know: /proc, sinks, records.
 */
#ifndef WEIR_STATE_FDS_H
#define WEIR_STATE_FDS_H

#include <weir/decode.h>
#include <weir/event.h>

struct fds;

#define FDS_CWD (-100) /* the working directory, AT_FDCWD: kept like a descriptor */

/*
 * A process is met for the first time, or has opened something that its call does not tell: tell what
 * it has open, by fds__seed().
 */
typedef void (*fds_resolver)(void *ctx, struct fds *fds, uint32_t pid);

/* cap_bytes: 0 is 16 MiB; what does not fit pushes out the process longest not heard of. NULL: ENOMEM. */
struct fds *fds__new(size_t cap_bytes, fds_resolver resolve, void *ctx);
void fds__free(struct fds *fds);

/* From within the resolver, for that process. No memory: not known. */
void fds__seed(struct fds *fds, uint32_t pid, int32_t fd, const char *text, bool cloexec);

/* Meet it now, if it was not yet. */
void fds__meet(struct fds *fds, uint32_t pid);

/* A fork, an exec, an exit or a gap; all else means nothing. */
void fds__apply(struct fds *fds, const struct weir_event *event);

/* A call: what it opens, duplicates, connects or closes. After the look-ups for its arguments. */
void fds__call(struct fds *fds, const struct weir_call *call, const struct weir_decoded *decoded);

/* NULL: not known. NUL-terminated, any bytes; lives until the next change. */
const char *fds__find(struct fds *fds, uint32_t pid, int32_t fd);

/* Does a call with that name return a new descriptor? */
bool fds__returns_fd(const char *syscall);

/* The calls that fds__call() has a use for, by name; NULL: there are not so many. */
const char *fds__needs(unsigned int index);

size_t fds__bytes(const struct fds *fds);

#endif /* WEIR_STATE_FDS_H */
