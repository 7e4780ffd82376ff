/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * flags.c - the names of flags and of enumerated values, by set.
 *
 * The numbers are the headers' own, so they are right on each architecture that weir is built for.
 * A new name is a word in a table, a new set a table and a line in `sets`.
 */
#include "sinks/flags.h"

#include "sinks/out.h"

#include <asm/ioctls.h>
#include <asm/prctl.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/close_range.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <linux/futex.h>
#include <linux/keyctl.h>
#include <linux/membarrier.h>
#include <linux/mempolicy.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <linux/stat.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/swap.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

/* Older headers lack what the kernel has long had: the kernel's ABI does not change. */
#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif
#define UMOUNT_NOFOLLOW_BIT 8  /* an enumerator in glibc */
#define SIG_NAMES	    32 /* numbers below this have names */
#define SIG_LAST	    64

struct name {
	uint64_t value;
	const char *name;
};

struct set {
	const char *set;
	const char *zero; /* of flags: what no bit at all is called; NULL: values, not bits */
	const struct name *names;
	size_t count;
};

#define N(constant)                             \
	{                                       \
		(uint32_t)(constant), #constant \
	}
#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
#define FLAGS(set, zero)                                    \
	{                                                   \
#set, zero, set##_names, COUNT(set##_names) \
	}
#define ENUM(set)                                           \
	{                                                   \
#set, NULL, set##_names, COUNT(set##_names) \
	}

static const struct name access_names[] = {
	N(R_OK),
	N(W_OK),
	N(X_OK),
};

static const struct name af_names[] = {
	N(AF_UNSPEC),	 N(AF_UNIX),  N(AF_INET), N(AF_AX25),	 N(AF_IPX),    N(AF_APPLETALK),
	N(AF_X25),	 N(AF_INET6), N(AF_KEY),  N(AF_NETLINK), N(AF_PACKET), N(AF_RDS),
	N(AF_PPPOX),	 N(AF_LLC),   N(AF_IB),	  N(AF_MPLS),	 N(AF_CAN),    N(AF_TIPC),
	N(AF_BLUETOOTH), N(AF_ALG),   N(AF_NFC),  N(AF_VSOCK),	 N(AF_KCM),    N(AF_QIPCRTR),
	N(AF_SMC),	 N(AF_XDP),
};

static const struct name arch_prctl_names[] = {
	N(ARCH_SET_GS), N(ARCH_SET_FS),	   N(ARCH_GET_FS),
	N(ARCH_GET_GS), N(ARCH_GET_CPUID), N(ARCH_SET_CPUID),
};

static const struct name at_names[] = {
	N(AT_SYMLINK_NOFOLLOW), N(AT_REMOVEDIR),	N(AT_SYMLINK_FOLLOW),  N(AT_NO_AUTOMOUNT),
	N(AT_EMPTY_PATH),	N(AT_STATX_FORCE_SYNC), N(AT_STATX_DONT_SYNC), N(AT_RECURSIVE),
};

static const struct name bpf_names[] = {
	N(BPF_MAP_CREATE),	  N(BPF_MAP_LOOKUP_ELEM),
	N(BPF_MAP_UPDATE_ELEM),	  N(BPF_MAP_DELETE_ELEM),
	N(BPF_MAP_GET_NEXT_KEY),  N(BPF_PROG_LOAD),
	N(BPF_OBJ_PIN),		  N(BPF_OBJ_GET),
	N(BPF_PROG_ATTACH),	  N(BPF_PROG_DETACH),
	N(BPF_PROG_TEST_RUN),	  N(BPF_PROG_GET_NEXT_ID),
	N(BPF_MAP_GET_NEXT_ID),	  N(BPF_PROG_GET_FD_BY_ID),
	N(BPF_MAP_GET_FD_BY_ID),  N(BPF_OBJ_GET_INFO_BY_FD),
	N(BPF_PROG_QUERY),	  N(BPF_RAW_TRACEPOINT_OPEN),
	N(BPF_BTF_LOAD),	  N(BPF_BTF_GET_FD_BY_ID),
	N(BPF_TASK_FD_QUERY),	  N(BPF_MAP_LOOKUP_AND_DELETE_ELEM),
	N(BPF_MAP_FREEZE),	  N(BPF_BTF_GET_NEXT_ID),
	N(BPF_MAP_LOOKUP_BATCH),  N(BPF_MAP_LOOKUP_AND_DELETE_BATCH),
	N(BPF_MAP_UPDATE_BATCH),  N(BPF_MAP_DELETE_BATCH),
	N(BPF_LINK_CREATE),	  N(BPF_LINK_UPDATE),
	N(BPF_LINK_GET_FD_BY_ID), N(BPF_LINK_GET_NEXT_ID),
	N(BPF_ENABLE_STATS),	  N(BPF_ITER_CREATE),
	N(BPF_LINK_DETACH),	  N(BPF_PROG_BIND_MAP),
};

static const struct name clock_names[] = {
	N(CLOCK_REALTIME),	    N(CLOCK_MONOTONIC),	    N(CLOCK_PROCESS_CPUTIME_ID),
	N(CLOCK_THREAD_CPUTIME_ID), N(CLOCK_MONOTONIC_RAW), N(CLOCK_REALTIME_COARSE),
	N(CLOCK_MONOTONIC_COARSE),  N(CLOCK_BOOTTIME),	    N(CLOCK_REALTIME_ALARM),
	N(CLOCK_BOOTTIME_ALARM),    N(CLOCK_TAI),
};

static const struct name clone_names[] = {
	N(CLONE_VM),
	N(CLONE_FS),
	N(CLONE_FILES),
	N(CLONE_SIGHAND),
	N(CLONE_PIDFD),
	N(CLONE_PTRACE),
	N(CLONE_VFORK),
	N(CLONE_PARENT),
	N(CLONE_THREAD),
	N(CLONE_NEWNS),
	N(CLONE_SYSVSEM),
	N(CLONE_SETTLS),
	N(CLONE_PARENT_SETTID),
	N(CLONE_CHILD_CLEARTID),
	N(CLONE_DETACHED),
	N(CLONE_UNTRACED),
	N(CLONE_CHILD_SETTID),
	N(CLONE_NEWCGROUP),
	N(CLONE_NEWUTS),
	N(CLONE_NEWIPC),
	N(CLONE_NEWUSER),
	N(CLONE_NEWPID),
	N(CLONE_NEWNET),
	N(CLONE_IO),
};

static const struct name close_range_names[] = {
	N(CLOSE_RANGE_UNSHARE),
	N(CLOSE_RANGE_CLOEXEC),
};

static const struct name delete_module_names[] = {
	N(O_NONBLOCK),
	N(O_TRUNC),
};

static const struct name epoll_names[] = {
	N(EPOLL_CLOEXEC),
};

static const struct name epoll_ctl_names[] = {
	N(EPOLL_CTL_ADD),
	N(EPOLL_CTL_DEL),
	N(EPOLL_CTL_MOD),
};

static const struct name eventfd_names[] = {
	N(EFD_SEMAPHORE),
	N(EFD_CLOEXEC),
	N(EFD_NONBLOCK),
};

static const struct name fadvise_names[] = {
	N(POSIX_FADV_NORMAL),	N(POSIX_FADV_RANDOM),	N(POSIX_FADV_SEQUENTIAL),
	N(POSIX_FADV_WILLNEED), N(POSIX_FADV_DONTNEED), N(POSIX_FADV_NOREUSE),
};

static const struct name falloc_names[] = {
	N(FALLOC_FL_KEEP_SIZE),	 N(FALLOC_FL_PUNCH_HOLE),   N(FALLOC_FL_COLLAPSE_RANGE),
	N(FALLOC_FL_ZERO_RANGE), N(FALLOC_FL_INSERT_RANGE), N(FALLOC_FL_UNSHARE_RANGE),
};

static const struct name fcntl_names[] = {
	N(F_DUPFD),	    N(F_GETFD),	     N(F_SETFD),      N(F_GETFL),     N(F_SETFL),
	N(F_GETLK),	    N(F_SETLK),	     N(F_SETLKW),     N(F_SETOWN),    N(F_GETOWN),
	N(F_SETSIG),	    N(F_GETSIG),     N(F_SETOWN_EX),  N(F_GETOWN_EX), N(F_OFD_GETLK),
	N(F_OFD_SETLK),	    N(F_OFD_SETLKW), N(F_SETLEASE),   N(F_GETLEASE),  N(F_NOTIFY),
	N(F_DUPFD_CLOEXEC), N(F_SETPIPE_SZ), N(F_GETPIPE_SZ), N(F_ADD_SEALS), N(F_GET_SEALS),
};

static const struct name flock_names[] = {
	N(LOCK_SH),
	N(LOCK_EX),
	N(LOCK_NB),
	N(LOCK_UN),
};

/* Each operation with the bits that come with it: a program has them as one word. */
static const struct name futex_names[] = {
	N(FUTEX_WAIT),
	N(FUTEX_WAIT_PRIVATE),
	N(FUTEX_WAKE),
	N(FUTEX_WAKE_PRIVATE),
	N(FUTEX_REQUEUE),
	N(FUTEX_REQUEUE_PRIVATE),
	N(FUTEX_CMP_REQUEUE),
	N(FUTEX_CMP_REQUEUE_PRIVATE),
	N(FUTEX_WAKE_OP),
	N(FUTEX_WAKE_OP_PRIVATE),
	N(FUTEX_LOCK_PI),
	N(FUTEX_LOCK_PI_PRIVATE),
	N(FUTEX_UNLOCK_PI),
	N(FUTEX_UNLOCK_PI_PRIVATE),
	N(FUTEX_TRYLOCK_PI),
	N(FUTEX_TRYLOCK_PI_PRIVATE),
	N(FUTEX_WAIT_BITSET),
	N(FUTEX_WAIT_BITSET_PRIVATE),
	N(FUTEX_WAKE_BITSET),
	N(FUTEX_WAKE_BITSET_PRIVATE),
	N(FUTEX_WAIT_REQUEUE_PI),
	N(FUTEX_WAIT_REQUEUE_PI_PRIVATE),
	N(FUTEX_CMP_REQUEUE_PI),
	N(FUTEX_CMP_REQUEUE_PI_PRIVATE),
	N(FUTEX_LOCK_PI2),
	N(FUTEX_LOCK_PI2_PRIVATE),
	{FUTEX_WAIT | FUTEX_CLOCK_REALTIME, "FUTEX_WAIT|FUTEX_CLOCK_REALTIME"},
	{FUTEX_WAIT_PRIVATE | FUTEX_CLOCK_REALTIME, "FUTEX_WAIT_PRIVATE|FUTEX_CLOCK_REALTIME"},
	{FUTEX_WAIT_REQUEUE_PI | FUTEX_CLOCK_REALTIME,
	 "FUTEX_WAIT_REQUEUE_PI|FUTEX_CLOCK_REALTIME"},
	{FUTEX_WAIT_REQUEUE_PI_PRIVATE | FUTEX_CLOCK_REALTIME,
	 "FUTEX_WAIT_REQUEUE_PI_PRIVATE|FUTEX_CLOCK_REALTIME"},
	{FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, "FUTEX_WAIT_BITSET|FUTEX_CLOCK_REALTIME"},
	{FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME,
	 "FUTEX_WAIT_BITSET_PRIVATE|FUTEX_CLOCK_REALTIME"},
};

static const struct name getrandom_names[] = {
	N(GRND_NONBLOCK),
	N(GRND_RANDOM),
	N(GRND_INSECURE),
};

static const struct name inotify_names[] = {
	N(IN_ACCESS),	   N(IN_MODIFY),     N(IN_ATTRIB),   N(IN_CLOSE_WRITE), N(IN_CLOSE_NOWRITE),
	N(IN_OPEN),	   N(IN_MOVED_FROM), N(IN_MOVED_TO), N(IN_CREATE),	N(IN_DELETE),
	N(IN_DELETE_SELF), N(IN_MOVE_SELF),  N(IN_ONLYDIR),  N(IN_DONT_FOLLOW), N(IN_EXCL_UNLINK),
	N(IN_MASK_CREATE), N(IN_MASK_ADD),   N(IN_ISDIR),    N(IN_ONESHOT),
};

static const struct name inotify_init_names[] = {
	N(IN_CLOEXEC),
	N(IN_NONBLOCK),
};

static const struct name ioctl_names[] = {
	N(TCGETS),    N(TCSETS),    N(TCSETSW),	  N(TCSETSF),	N(TIOCGWINSZ), N(TIOCSWINSZ),
	N(TIOCGPGRP), N(TIOCSPGRP), N(TIOCSCTTY), N(TIOCNOTTY), N(TIOCGPTN),   N(TIOCSPTLCK),
	N(FIONREAD),  N(FIONBIO),   N(FIOCLEX),	  N(FIONCLEX),	N(FICLONE),    N(FICLONERANGE),
};

static const struct name ipc_cmd_names[] = {
	N(IPC_RMID),
	N(IPC_SET),
	N(IPC_STAT),
	N(IPC_INFO),
};

static const struct name ipc_get_names[] = {
	N(IPC_CREAT),
	N(IPC_EXCL),
	N(IPC_NOWAIT),
};

static const struct name itimer_names[] = {
	N(ITIMER_REAL),
	N(ITIMER_VIRTUAL),
	N(ITIMER_PROF),
};

static const struct name keyctl_names[] = {
	N(KEYCTL_GET_KEYRING_ID), N(KEYCTL_JOIN_SESSION_KEYRING),
	N(KEYCTL_UPDATE),	  N(KEYCTL_REVOKE),
	N(KEYCTL_CHOWN),	  N(KEYCTL_SETPERM),
	N(KEYCTL_DESCRIBE),	  N(KEYCTL_CLEAR),
	N(KEYCTL_LINK),		  N(KEYCTL_UNLINK),
	N(KEYCTL_SEARCH),	  N(KEYCTL_READ),
};

static const struct name madvise_names[] = {
	N(MADV_NORMAL),	       N(MADV_RANDOM),	       N(MADV_SEQUENTIAL), N(MADV_WILLNEED),
	N(MADV_DONTNEED),      N(MADV_FREE),	       N(MADV_REMOVE),	   N(MADV_DONTFORK),
	N(MADV_DOFORK),	       N(MADV_HWPOISON),       N(MADV_MERGEABLE),  N(MADV_UNMERGEABLE),
	N(MADV_HUGEPAGE),      N(MADV_NOHUGEPAGE),     N(MADV_DONTDUMP),   N(MADV_DODUMP),
	N(MADV_WIPEONFORK),    N(MADV_KEEPONFORK),     N(MADV_COLD),	   N(MADV_PAGEOUT),
	N(MADV_POPULATE_READ), N(MADV_POPULATE_WRITE),
};

static const struct name map_names[] = {
	N(MAP_SHARED),	  N(MAP_PRIVATE),   N(MAP_FIXED),	    N(MAP_ANONYMOUS),
	N(MAP_GROWSDOWN), N(MAP_DENYWRITE), N(MAP_EXECUTABLE),	    N(MAP_LOCKED),
	N(MAP_NORESERVE), N(MAP_POPULATE),  N(MAP_NONBLOCK),	    N(MAP_STACK),
	N(MAP_HUGETLB),	  N(MAP_SYNC),	    N(MAP_FIXED_NOREPLACE),
};

static const struct name membarrier_names[] = {
	N(MEMBARRIER_CMD_QUERY),
	N(MEMBARRIER_CMD_GLOBAL),
	N(MEMBARRIER_CMD_GLOBAL_EXPEDITED),
	N(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED),
	N(MEMBARRIER_CMD_PRIVATE_EXPEDITED),
	N(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED),
	N(MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE),
	N(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE),
	N(MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ),
	N(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ),
};

static const struct name memfd_names[] = {
	N(MFD_CLOEXEC),
	N(MFD_ALLOW_SEALING),
	N(MFD_HUGETLB),
};

static const struct name mempolicy_names[] = {
	N(MPOL_DEFAULT), N(MPOL_PREFERRED), N(MPOL_BIND), N(MPOL_INTERLEAVE), N(MPOL_LOCAL),
};

static const struct name mlockall_names[] = {
	N(MCL_CURRENT),
	N(MCL_FUTURE),
	N(MCL_ONFAULT),
};

static const struct name mount_names[] = {
	N(MS_RDONLY),	  N(MS_NOSUID),	   N(MS_NODEV),	      N(MS_NOEXEC),   N(MS_SYNCHRONOUS),
	N(MS_REMOUNT),	  N(MS_MANDLOCK),  N(MS_DIRSYNC),     N(MS_NOATIME),  N(MS_NODIRATIME),
	N(MS_BIND),	  N(MS_MOVE),	   N(MS_REC),	      N(MS_SILENT),   N(MS_POSIXACL),
	N(MS_UNBINDABLE), N(MS_PRIVATE),   N(MS_SLAVE),	      N(MS_SHARED),   N(MS_RELATIME),
	N(MS_KERNMOUNT),  N(MS_I_VERSION), N(MS_STRICTATIME), N(MS_LAZYTIME),
};

static const struct name mremap_names[] = {
	N(MREMAP_MAYMOVE),
	N(MREMAP_FIXED),
	N(MREMAP_DONTUNMAP),
};

static const struct name msg_flags_names[] = {
	N(MSG_OOB),	 N(MSG_PEEK), N(MSG_DONTROUTE),	 N(MSG_CTRUNC),	  N(MSG_TRUNC),
	N(MSG_DONTWAIT), N(MSG_EOR),  N(MSG_WAITALL),	 N(MSG_CONFIRM),  N(MSG_ERRQUEUE),
	N(MSG_NOSIGNAL), N(MSG_MORE), N(MSG_WAITFORONE), N(MSG_FASTOPEN), N(MSG_CMSG_CLOEXEC),
};

static const struct name msync_names[] = {
	N(MS_ASYNC),
	N(MS_INVALIDATE),
	N(MS_SYNC),
};

/* O_SYNC holds the bit of O_DSYNC, and O_TMPFILE that of O_DIRECTORY: the larger stands first. */
static const struct name open_names[] = {
	N(O_WRONLY),   N(O_RDWR),    N(O_CREAT),     N(O_EXCL),	   N(O_NOCTTY),
	N(O_TRUNC),    N(O_APPEND),  N(O_NONBLOCK),  N(O_SYNC),	   N(O_DSYNC),
	N(O_ASYNC),    N(O_DIRECT),  N(O_LARGEFILE), N(O_TMPFILE), N(O_DIRECTORY),
	N(O_NOFOLLOW), N(O_NOATIME), N(O_CLOEXEC),   N(O_PATH),
};

static const struct name pidfd_open_names[] = {
	N(O_NONBLOCK),
};

static const struct name prctl_names[] = {
	N(PR_SET_PDEATHSIG),
	N(PR_GET_PDEATHSIG),
	N(PR_GET_DUMPABLE),
	N(PR_SET_DUMPABLE),
	N(PR_GET_KEEPCAPS),
	N(PR_SET_KEEPCAPS),
	N(PR_SET_NAME),
	N(PR_GET_NAME),
	N(PR_GET_SECCOMP),
	N(PR_SET_SECCOMP),
	N(PR_CAPBSET_READ),
	N(PR_CAPBSET_DROP),
	N(PR_SET_TIMERSLACK),
	N(PR_GET_TIMERSLACK),
	N(PR_SET_MM),
	N(PR_SET_CHILD_SUBREAPER),
	N(PR_GET_CHILD_SUBREAPER),
	N(PR_SET_NO_NEW_PRIVS),
	N(PR_GET_NO_NEW_PRIVS),
	N(PR_SET_THP_DISABLE),
	N(PR_GET_THP_DISABLE),
	N(PR_CAP_AMBIENT),
	N(PR_SET_PTRACER),
	N(PR_SET_VMA),
};

static const struct name priority_names[] = {
	N(PRIO_PROCESS),
	N(PRIO_PGRP),
	N(PRIO_USER),
};

static const struct name prot_names[] = {
	N(PROT_READ), N(PROT_WRITE), N(PROT_EXEC), N(PROT_GROWSDOWN), N(PROT_GROWSUP),
};

static const struct name ptrace_names[] = {
	N(PTRACE_TRACEME),     N(PTRACE_PEEKTEXT),   N(PTRACE_PEEKDATA),  N(PTRACE_PEEKUSER),
	N(PTRACE_POKETEXT),    N(PTRACE_POKEDATA),   N(PTRACE_POKEUSER),  N(PTRACE_CONT),
	N(PTRACE_KILL),	       N(PTRACE_SINGLESTEP), N(PTRACE_GETREGS),	  N(PTRACE_SETREGS),
	N(PTRACE_ATTACH),      N(PTRACE_DETACH),     N(PTRACE_SYSCALL),	  N(PTRACE_SETOPTIONS),
	N(PTRACE_GETEVENTMSG), N(PTRACE_GETSIGINFO), N(PTRACE_GETREGSET), N(PTRACE_SETREGSET),
	N(PTRACE_SEIZE),       N(PTRACE_INTERRUPT),  N(PTRACE_LISTEN),
};

static const struct name rename_names[] = {
	N(RENAME_NOREPLACE),
	N(RENAME_EXCHANGE),
	N(RENAME_WHITEOUT),
};

static const struct name rlimit_names[] = {
	N(RLIMIT_CPU),	    N(RLIMIT_FSIZE), N(RLIMIT_DATA),   N(RLIMIT_STACK),
	N(RLIMIT_CORE),	    N(RLIMIT_RSS),   N(RLIMIT_NPROC),  N(RLIMIT_NOFILE),
	N(RLIMIT_MEMLOCK),  N(RLIMIT_AS),    N(RLIMIT_LOCKS),  N(RLIMIT_SIGPENDING),
	N(RLIMIT_MSGQUEUE), N(RLIMIT_NICE),  N(RLIMIT_RTPRIO), N(RLIMIT_RTTIME),
};

static const struct name rusage_names[] = {
	N(RUSAGE_SELF),
	N(RUSAGE_CHILDREN),
	N(RUSAGE_THREAD),
};

static const struct name rwf_names[] = {
	N(RWF_HIPRI), N(RWF_DSYNC), N(RWF_SYNC), N(RWF_NOWAIT), N(RWF_APPEND),
};

static const struct name sched_policy_names[] = {
	N(SCHED_OTHER), N(SCHED_FIFO), N(SCHED_RR),
	N(SCHED_BATCH), N(SCHED_IDLE), N(SCHED_DEADLINE),
};

static const struct name seccomp_names[] = {
	N(SECCOMP_SET_MODE_STRICT),
	N(SECCOMP_SET_MODE_FILTER),
	N(SECCOMP_GET_ACTION_AVAIL),
	N(SECCOMP_GET_NOTIF_SIZES),
};

static const struct name seek_names[] = {
	N(SEEK_SET), N(SEEK_CUR), N(SEEK_END), N(SEEK_DATA), N(SEEK_HOLE),
};

static const struct name shm_names[] = {
	N(SHM_RDONLY),
	N(SHM_RND),
	N(SHM_REMAP),
	N(SHM_EXEC),
};

static const struct name shutdown_names[] = {
	N(SHUT_RD),
	N(SHUT_WR),
	N(SHUT_RDWR),
};

static const struct name signalfd_names[] = {
	N(SFD_CLOEXEC),
	N(SFD_NONBLOCK),
};

static const struct name sigprocmask_names[] = {
	N(SIG_BLOCK),
	N(SIG_UNBLOCK),
	N(SIG_SETMASK),
};

static const struct name sock_names[] = {
	N(SOCK_NONBLOCK),
	N(SOCK_CLOEXEC),
};

/* Kinds are numbers, flags stand above them: those kinds that contain another's bits come first. */
static const struct name sock_type_names[] = {
	N(SOCK_PACKET), N(SOCK_DCCP),	N(SOCK_SEQPACKET), N(SOCK_RDM),	    N(SOCK_RAW),
	N(SOCK_DGRAM),	N(SOCK_STREAM), N(SOCK_NONBLOCK),  N(SOCK_CLOEXEC),
};

static const struct name sockopt_names[] = {
	N(SO_DEBUG),	 N(SO_REUSEADDR),    N(SO_TYPE),	  N(SO_ERROR),
	N(SO_DONTROUTE), N(SO_BROADCAST),    N(SO_SNDBUF),	  N(SO_RCVBUF),
	N(SO_KEEPALIVE), N(SO_OOBINLINE),    N(SO_PRIORITY),	  N(SO_LINGER),
	N(SO_REUSEPORT), N(SO_PASSCRED),     N(SO_PEERCRED),	  N(SO_RCVLOWAT),
	N(SO_SNDLOWAT),	 N(SO_BINDTODEVICE), N(SO_ATTACH_FILTER), N(SO_ACCEPTCONN),
	N(SO_PEERSEC),	 N(SO_SNDBUFFORCE),  N(SO_RCVBUFFORCE),	  N(SO_PASSSEC),
	N(SO_MARK),	 N(SO_PROTOCOL),     N(SO_DOMAIN),	  N(SO_INCOMING_CPU),
	N(SO_ZEROCOPY),
};

static const struct name sol_names[] = {
	N(SOL_IP),   N(SOL_SOCKET), N(SOL_TCP),	    N(SOL_UDP),
	N(SOL_IPV6), N(SOL_RAW),    N(SOL_NETLINK), N(SOL_PACKET),
};

static const struct name splice_names[] = {
	N(SPLICE_F_MOVE),
	N(SPLICE_F_NONBLOCK),
	N(SPLICE_F_MORE),
	N(SPLICE_F_GIFT),
};

static const struct name statx_names[] = {
	N(STATX_TYPE),	 N(STATX_MODE),	 N(STATX_NLINK),  N(STATX_UID), N(STATX_GID),
	N(STATX_ATIME),	 N(STATX_MTIME), N(STATX_CTIME),  N(STATX_INO), N(STATX_SIZE),
	N(STATX_BLOCKS), N(STATX_BTIME), N(STATX_MNT_ID),
};

static const struct name swap_names[] = {
	N(SWAP_FLAG_PREFER),
	N(SWAP_FLAG_DISCARD),
};

static const struct name sync_file_range_names[] = {
	N(SYNC_FILE_RANGE_WAIT_BEFORE),
	N(SYNC_FILE_RANGE_WRITE),
	N(SYNC_FILE_RANGE_WAIT_AFTER),
};

static const struct name timer_names[] = {
	N(TIMER_ABSTIME),
};

static const struct name timerfd_names[] = {
	N(TFD_CLOEXEC),
	N(TFD_NONBLOCK),
};

static const struct name timerfd_settime_names[] = {
	N(TFD_TIMER_ABSTIME),
	N(TFD_TIMER_CANCEL_ON_SET),
};

static const struct name umount_names[] = {
	N(MNT_FORCE),
	N(MNT_DETACH),
	N(MNT_EXPIRE),
	{UMOUNT_NOFOLLOW_BIT, "UMOUNT_NOFOLLOW"},
};

static const struct name wait_names[] = {
	N(WNOHANG), N(WUNTRACED),   N(WEXITED), N(WCONTINUED),
	N(WNOWAIT), N(__WNOTHREAD), N(__WALL),	N(__WCLONE),
};

static const struct name waitid_names[] = {
	N(P_ALL),
	N(P_PID),
	N(P_PGID),
	N(P_PIDFD),
};

static const struct name xattr_names[] = {
	N(XATTR_CREATE),
	N(XATTR_REPLACE),
};

static const struct set sets[] = {
	FLAGS(access, "F_OK"),
	ENUM(af),
	ENUM(arch_prctl),
	FLAGS(at, "0"),
	ENUM(bpf),
	ENUM(clock),
	FLAGS(clone, "0"),
	FLAGS(close_range, "0"),
	FLAGS(delete_module, "0"),
	FLAGS(epoll, "0"),
	ENUM(epoll_ctl),
	FLAGS(eventfd, "0"),
	ENUM(fadvise),
	FLAGS(falloc, "0"),
	ENUM(fcntl),
	FLAGS(flock, "0"),
	ENUM(futex),
	FLAGS(getrandom, "0"),
	FLAGS(inotify, "0"),
	FLAGS(inotify_init, "0"),
	ENUM(ioctl),
	ENUM(ipc_cmd),
	FLAGS(ipc_get, "0"),
	ENUM(itimer),
	ENUM(keyctl),
	ENUM(madvise),
	FLAGS(map, "0"),
	ENUM(membarrier),
	FLAGS(memfd, "0"),
	ENUM(mempolicy),
	FLAGS(mlockall, "0"),
	FLAGS(mount, "0"),
	FLAGS(mremap, "0"),
	FLAGS(msg_flags, "0"),
	FLAGS(msync, "0"),
	FLAGS(open, "O_RDONLY"),
	FLAGS(pidfd_open, "0"),
	ENUM(prctl),
	ENUM(priority),
	FLAGS(prot, "PROT_NONE"),
	ENUM(ptrace),
	FLAGS(rename, "0"),
	ENUM(rlimit),
	ENUM(rusage),
	FLAGS(rwf, "0"),
	ENUM(sched_policy),
	ENUM(seccomp),
	ENUM(seek),
	FLAGS(shm, "0"),
	ENUM(shutdown),
	FLAGS(signalfd, "0"),
	ENUM(sigprocmask),
	FLAGS(sock, "0"),
	FLAGS(sock_type, "0"),
	ENUM(sockopt),
	ENUM(sol),
	FLAGS(splice, "0"),
	FLAGS(statx, "0"),
	FLAGS(swap, "0"),
	FLAGS(sync_file_range, "0"),
	FLAGS(timer, "0"),
	FLAGS(timerfd, "0"),
	FLAGS(timerfd_settime, "0"),
	FLAGS(umount, "0"),
	FLAGS(wait, "0"),
	ENUM(waitid),
	FLAGS(xattr, "0"),
};

static const struct set *find(const char *set)
{
	size_t low = 0, high = COUNT(sets);

	while (set && low < high) {
		size_t mid = low + (high - low) / 2;
		int order = strcmp(set, sets[mid].set);

		if (!order)
			return &sets[mid];
		if (order < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return NULL;
}

/* Names of several bits (MCL, LOCK_...) stand in the tables like any other: all of theirs or none. */
void flags__put(struct out *out, const char *set, uint64_t value)
{
	const struct set *known = find(set);
	uint64_t left = value;
	bool any = false;

	if (!known || !known->zero) {
		if (value)
			out__hex(out, value);
		else
			out__char(out, '0');
		return;
	}
	/* O_RDONLY is no bit, but the access mode that the other two are not. */
	if (!(value & O_ACCMODE) && !strcmp(known->zero, "O_RDONLY")) {
		out__str(out, known->zero);
		any = true;
	}
	for (size_t i = 0; i < known->count; i++) {
		const struct name *name = &known->names[i];

		if (!name->value || (left & name->value) != name->value)
			continue;
		if (any)
			out__char(out, '|');
		out__str(out, name->name);
		left &= ~name->value;
		any = true;
	}
	if (left) {
		if (any)
			out__char(out, '|');
		out__hex(out, left);
	} else if (!any) {
		out__str(out, known->zero);
	}
}

void flags__put_enum(struct out *out, const char *set, uint64_t value)
{
	const struct set *known = find(set);

	for (size_t i = 0; known && i < known->count; i++) {
		if (known->names[i].value != value)
			continue;
		out__str(out, known->names[i].name);
		return;
	}
	if (value < 4096)
		out__u64(out, value);
	else
		out__hex(out, value);
}

const char *flags__errno_name(int err)
{
	/* What the kernel hands out between a call and its restart; no program ever sees it. */
	switch (err) {
	case 512:
		return "ERESTARTSYS";
	case 513:
		return "ERESTARTNOINTR";
	case 514:
		return "ERESTARTNOHAND";
	case 516:
		return "ERESTART_RESTARTBLOCK";
	}
	return strerrorname_np(err);
}

void flags__put_signal(struct out *out, uint64_t sig)
{
	const char *name = sig < SIG_NAMES ? sigabbrev_np((int)sig) : NULL;

	if (name) {
		out__str(out, "SIG");
		out__str(out, name);
	} else if (sig >= SIG_NAMES && sig <= SIG_LAST) {
		/* Real-time ones count from the kernel's first, not from the C library's. */
		out__str(out, "SIGRT_");
		out__u64(out, sig - SIG_NAMES);
	} else {
		out__u64(out, sig);
	}
}

const char *flags__set_name(unsigned index)
{
	return index < COUNT(sets) ? sets[index].set : NULL;
}
