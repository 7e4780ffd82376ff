/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * classes.c - which system calls are about files, descriptors, memory, ...
 *
 * A call that takes a path is about files, one that takes a descriptor about descriptors: that stands
 * in the table of calls. The other classes are lists, as strace has them.
 */
#include "probes/classes.h"

#include <string.h>

static const char *const network[] = {
	"accept",     "accept4", "bind",       "connect",    "getpeername", "getsockname",
	"getsockopt", "listen",	 "recv",       "recvfrom",   "recvmmsg",    "recvmmsg_time64",
	"recvmsg",    "send",	 "sendmmsg",   "sendmsg",    "sendto",	    "setsockopt",
	"shutdown",   "socket",	 "socketcall", "socketpair", NULL,
};

static const char *const process[] = {
	"arch_prctl",
	"clone",
	"clone3",
	"execve",
	"execveat",
	"exit",
	"exit_group",
	"fork",
	"kill",
	"pidfd_open",
	"pidfd_send_signal",
	"rt_sigqueueinfo",
	"rt_tgsigqueueinfo",
	"tgkill",
	"tkill",
	"unshare",
	"vfork",
	"wait4",
	"waitid",
	"waitpid",
	NULL,
};

static const char *const memory[] = {
	"brk",
	"get_mempolicy",
	"madvise",
	"map_shadow_stack",
	"mbind",
	"migrate_pages",
	"mincore",
	"mlock",
	"mlock2",
	"mlockall",
	"mmap",
	"mmap2",
	"move_pages",
	"mprotect",
	"mremap",
	"mseal",
	"msync",
	"munlock",
	"munlockall",
	"munmap",
	"pkey_mprotect",
	"process_madvise",
	"remap_file_pages",
	"set_mempolicy",
	"set_mempolicy_home_node",
	"shmat",
	"shmdt",
	NULL,
};

static const char *const signal_calls[] = {
	"kill",
	"pause",
	"pidfd_send_signal",
	"rt_sigaction",
	"rt_sigpending",
	"rt_sigprocmask",
	"rt_sigqueueinfo",
	"rt_sigreturn",
	"rt_sigsuspend",
	"rt_sigtimedwait",
	"rt_sigtimedwait_time64",
	"rt_tgsigqueueinfo",
	"sgetmask",
	"sigaction",
	"sigaltstack",
	"signal",
	"signalfd",
	"signalfd4",
	"sigpending",
	"sigprocmask",
	"sigreturn",
	"sigsuspend",
	"ssetmask",
	"tgkill",
	"tkill",
	NULL,
};

static const struct {
	const char *name;
	uint64_t tags;		  /* a call with such an argument is a member */
	const char *const *calls; /* and so are these */
} classes[] = {
	{"file", 1ull << WEIR_TAG_PATH, NULL},
	{"desc", 1ull << WEIR_TAG_FD | 1ull << WEIR_TAG_DIRFD, NULL},
	{"network", 0, network},
	{"process", 0, process},
	{"memory", 0, memory},
	{"signal", 0, signal_calls},
};

#define N_CLASSES (sizeof(classes) / sizeof(classes[0]))

const char *classes__name(unsigned int index)
{
	return index < N_CLASSES ? classes[index].name : NULL;
}

int classes__find(const char *name)
{
	for (unsigned int i = 0; i < N_CLASSES; i++)
		if (!strcmp(classes[i].name, name))
			return (int)i;
	return -1;
}

static bool is_listed(const char *const *calls, const char *name)
{
	for (; calls && *calls; calls++)
		if (!strcmp(*calls, name))
			return true;
	return false;
}

bool classes__has(int class, const struct syscall_desc *call)
{
	for (unsigned int i = 0; i < call->nargs; i++)
		if (classes[class].tags >> call->args[i].tag & 1)
			return true;
	return is_listed(classes[class].calls, call->name);
}
