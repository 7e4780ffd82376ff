/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * deeds.c - `deeds WHAT`: a few dozen calls of one kind, always the same ones, for two tracers.
 *
 * What depends on timing is left out: nobody waits for what another may have done by then, unless
 * the call is made in either case.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS 3

static void check(long result, const char *what)
{
	if (result < 0)
		err(1, "%s", what);
}

static void on_signal(int sig)
{
}

static void handle(int sig, int flags)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};

	check(sigaction(sig, &action, NULL), "sigaction");
}

static int crash(void)
{
	return *(volatile int *)(uintptr_t)syscall(SYS_getpid) ? 2 : 3;
}

static int aborts(void)
{
	struct rlimit none = {0};

	setrlimit(RLIMIT_CORE, &none);
	abort();
}

static int kills_itself(void)
{
	kill(getpid(), SIGKILL);
	return 2;
}

/* The child is stopped, which its parent sees, before it is killed. */
static int killed(void)
{
	pid_t child = fork();
	int status;

	check(child, "fork");
	if (!child) {
		raise(SIGSTOP);
		_exit(2);
	}
	check(waitpid(child, &status, WUNTRACED), "waitpid");
	kill(child, SIGKILL);
	check(waitpid(child, &status, 0), "waitpid");
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? 0 : 2;
}

static int begun_pipe[2];

static void *execs(void *path)
{
	char c;

	check(read(begun_pipe[0], &c, 1), "read");
	execl(path, path, "nothing", NULL);
	return NULL;
}

static char program[4096];

static int exec_thread(void)
{
	pthread_t thread;

	check(pipe(begun_pipe), "pipe");
	check(readlink("/proc/self/exe", program, sizeof(program) - 1), "readlink");
	check(-pthread_create(&thread, NULL, execs, program), "pthread_create");
	check(write(begun_pipe[1], "x", 1), "write");
	pause();
	return 2;
}

static int nothing(void)
{
	return 7;
}

static int served_pipe[2], over_pipe[2];

static void *serve(void *at)
{
	int conn = (int)(intptr_t)at;
	char buf[64];
	ssize_t n = recv(conn, buf, sizeof(buf), MSG_WAITALL);

	check(n, "recv");
	check(send(conn, buf, (size_t)n, MSG_NOSIGNAL), "send");
	check(write(served_pipe[1], "s", 1), "write");
	pause();
	return NULL;
}

/* It ends after the server, which so gets no SIGCHLD in the middle of whatever a thread does. */
static void client(const struct sockaddr_in *to)
{
	int fds[CONNECTIONS];
	char buf[64] = "0123456789";

	for (int i = 0; i < CONNECTIONS; i++) {
		fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		check(connect(fds[i], (const struct sockaddr *)to, sizeof(*to)), "connect");
	}
	for (int i = 0; i < CONNECTIONS; i++) {
		check(send(fds[i], buf, sizeof(buf), 0), "send");
		check(recv(fds[i], buf, sizeof(buf), MSG_WAITALL), "recv");
	}
	close(over_pipe[1]);
	_exit((int)read(over_pipe[0], buf, 1));
}

/* A thread for each connection, all alive to the end; the client is another process. */
static int server(void)
{
	/* An address of its own: its port is free, and the same in each run. */
	struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_port = htons(4711),
		.sin_addr = {htonl(0x7f2a1703)},
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP), one = 1;
	socklen_t len = sizeof(at);
	pthread_t thread;
	char done;

	check(pipe(served_pipe), "pipe");
	check(pipe(over_pipe), "pipe");
	check(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), "setsockopt");
	check(bind(fd, (struct sockaddr *)&at, sizeof(at)), "bind");
	check(listen(fd, 8), "listen");
	check(getsockname(fd, (struct sockaddr *)&at, &len), "getsockname");
	if (!fork())
		client(&at);
	for (int i = 0; i < CONNECTIONS; i++) {
		intptr_t conn = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

		check(conn, "accept4");
		check(-pthread_create(&thread, NULL, serve, (void *)conn), "pthread_create");
	}
	for (int i = 0; i < CONNECTIONS; i++)
		check(read(served_pipe[0], &done, 1), "read");
	return 0;
}

static int signals(void)
{
	struct itimerval soon = {.it_value = {.tv_usec = 50000}};
	struct timespec long_time = {.tv_sec = 100};
	union sigval value = {.sival_int = 42};
	sigset_t set, old;
	int fds[2];
	char c;

	handle(SIGUSR1, 0);
	handle(SIGUSR2, SA_RESTART | SA_NODEFER | SA_ONSTACK);
	handle(SIGALRM, 0);
	signal(SIGHUP, SIG_IGN);
	raise(SIGUSR1);
	kill(getpid(), SIGUSR2);
	raise(SIGHUP);
	sigqueue(getpid(), SIGUSR1, value);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, &old);
	raise(SIGUSR1);
	sigpending(&set);
	sigprocmask(SIG_SETMASK, &old, NULL);
	setitimer(ITIMER_REAL, &soon, NULL);
	pause();
	setitimer(ITIMER_REAL, &soon, NULL);
	nanosleep(&long_time, &long_time);
	setitimer(ITIMER_REAL, &soon, NULL);
	check(pipe(fds), "pipe");
	check(read(fds[0], &c, 1) == -1 && errno == EINTR ? 0 : -1, "read");
	raise(SIGRTMIN + 3);
	return 2;
}

static int sockets(void)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX, .sun_path = "a socket"};
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(9)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(9)};
	int pair[2], dgram = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	int stream = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int udp = socket(AF_INET, SOCK_DGRAM, IPPROTO_UDP), udp6 = socket(AF_INET6, SOCK_DGRAM, 0);
	char buf[16] = "bytes";
	struct iovec iov = {buf, 5};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	in6.sin6_addr = in6addr_loopback;
	check(bind(dgram, (struct sockaddr *)&un, sizeof(un)), "bind");
	check(sendto(dgram, "hello", 5, MSG_DONTWAIT, (struct sockaddr *)&un, sizeof(un)),
	      "sendto");
	check(recvfrom(dgram, buf, sizeof(buf), MSG_DONTWAIT, NULL, NULL), "recvfrom");
	recv(dgram, buf, sizeof(buf), MSG_PEEK);
	memcpy(un.sun_path, "\0hidden", 7);
	check(bind(stream, (struct sockaddr *)&un, offsetof(struct sockaddr_un, sun_path) + 7),
	      "bind");
	check(listen(stream, 1), "listen");
	connect(stream, (struct sockaddr *)&un, offsetof(struct sockaddr_un, sun_path) + 3);
	sendto(udp, "x", 1, MSG_NOSIGNAL, (struct sockaddr *)&in, sizeof(in));
	sendto(udp6, "x", 1, 0, (struct sockaddr *)&in6, sizeof(in6));
	connect(udp, (struct sockaddr *)&in, 3);
	check(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), "socketpair");
	check(sendmsg(pair[0], &msg, MSG_EOR), "sendmsg");
	check(recvmsg(pair[1], &msg, 0), "recvmsg");
	shutdown(pair[0], SHUT_RDWR);
	check(unlink("a socket"), "unlink");
	return 0;
}

static int files(void)
{
	int fd = open("new", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640), dir;
	struct stat st;
	char buf[64];

	check(fd, "open");
	check(write(fd, "text\n", 5), "write");
	check(pwrite(fd, "T", 1, 3), "pwrite");
	check(pread(fd, buf, sizeof(buf), 1), "pread");
	check(ftruncate(fd, 1 << 20), "ftruncate");
	check(lseek(fd, -1, SEEK_END), "lseek");
	check(posix_fallocate(fd, 0, 4096), "fallocate");
	check(mkdir("folder", 0755), "mkdir");
	dir = open("folder", O_PATH | O_DIRECTORY);
	check(linkat(AT_FDCWD, "new", dir, "link", 0), "linkat");
	check(symlinkat("../new", dir, "symbolic"), "symlinkat");
	check(renameat2(dir, "link", dir, "symbolic", 1 << 1 /* RENAME_EXCHANGE */), "renameat2");
	check(faccessat(dir, "link", R_OK | W_OK, 0), "faccessat");
	check(fstatat(dir, "symbolic", &st, AT_SYMLINK_NOFOLLOW), "fstatat");
	check(fchmodat(dir, "symbolic", 04711, 0), "fchmodat");
	check(fchownat(dir, "link", 1, (gid_t)-1, AT_SYMLINK_NOFOLLOW), "fchownat");
	check(utimensat(dir, "symbolic", NULL, 0), "utimensat");
	check(readlinkat(dir, "link", buf, sizeof(buf)), "readlinkat");
	setxattr("new", "user.weir", "value", 5, XATTR_CREATE);
	getxattr("new", "user.none", buf, sizeof(buf));
	check(unlinkat(dir, "link", 0), "unlinkat");
	check(unlinkat(dir, "symbolic", 0), "unlinkat");
	check(unlinkat(AT_FDCWD, "folder", AT_REMOVEDIR), "unlinkat");
	check(truncate("new", 0), "truncate");
	check(mkfifo("fifo", 0600), "mkfifo");
	check(fdatasync(fd), "fdatasync");
	check(umask(077), "umask");
	return 0;
}

static int memory(void)
{
	size_t page = 4096;
	char *at = mmap(NULL, 8 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			0);
	int fd = memfd_create("a name", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	check(at == MAP_FAILED ? -1 : 0, "mmap");
	check(mprotect(at, page, PROT_READ | PROT_WRITE), "mprotect");
	check(madvise(at, page, MADV_DONTNEED), "madvise");
	check(ftruncate(fd, 4096), "ftruncate");
	if (mmap(at + page, page, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
		err(1, "mmap");
	at = mremap(at, page, 16 * page, MREMAP_MAYMOVE);
	check(msync(at, page, MS_ASYNC), "msync");
	mlock(at, page);
	munlock(at, page);
	check(munmap(at, 16 * page), "munmap");
	munmap((void *)1, page);
	mmap(NULL, 0, PROT_READ, MAP_PRIVATE, fd, -4096);
	check(sbrk(1 << 16) == (void *)-1 ? -1 : 0, "sbrk");
	return 0;
}

/* The fifth argument is not used: it is as the sixth, whose place it takes in what strace tells. */
static long futex(const uint32_t *word, int op, uint32_t value, const void *time)
{
	return syscall(SYS_futex, word, op, value, time, (long)FUTEX_BITSET_MATCH_ANY,
		       (long)FUTEX_BITSET_MATCH_ANY);
}

/* Each ends by its time, or is told at once that it cannot be. */
static int times(void)
{
	const struct timespec brief = {0, 1000}, past = {1, 999999999}, wrong = {-1, -5};
	struct timespec left;
	uint32_t word = 7;
	sigset_t none;
	fd_set set;

	FD_ZERO(&set);
	sigemptyset(&none);
	check(syscall(SYS_nanosleep, &brief, &left), "nanosleep");
	syscall(SYS_nanosleep, &wrong, NULL);
	syscall(SYS_nanosleep, NULL, NULL);
	check(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &past, NULL), "clock_nanosleep");
	check(syscall(SYS_ppoll, NULL, 0, &brief, &none, 8), "ppoll");
	syscall(SYS_ppoll, NULL, 0, &wrong, NULL, 8);
	check(pselect(1, NULL, NULL, &set, &brief, NULL), "pselect");
	syscall(SYS_rt_sigtimedwait, &none, NULL, &brief, 8);
	futex(&word, FUTEX_WAIT_PRIVATE, 7, &brief);
	futex(&word, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 7, &past);
	futex(&word, FUTEX_WAIT, 8, NULL);
	futex(&word, FUTEX_WAIT, 7, (void *)8);
	/* Neither time nor address. */
	futex(&word, FUTEX_WAKE, 1, (void *)0xdead0);
	futex(&word, FUTEX_REQUEUE, 0, (void *)3);
	return 0;
}

static int descriptors(void)
{
	int fds[2], event = eventfd(3, EFD_SEMAPHORE | EFD_NONBLOCK), epoll = epoll_create1(0),
		    timer;
	struct epoll_event want = {.events = EPOLLIN | EPOLLET};
	struct pollfd pollfd = {.fd = event, .events = POLLIN};
	struct timeval now = {0};
	fd_set set;
	uint64_t n;

	check(pipe2(fds, O_NONBLOCK | O_CLOEXEC), "pipe2");
	check(dup2(fds[0], 100), "dup2");
	check(dup3(fds[1], 101, O_CLOEXEC), "dup3");
	check(fcntl(fds[0], F_DUPFD_CLOEXEC, 50), "fcntl");
	check(fcntl(fds[0], F_SETFL, O_NONBLOCK), "fcntl");
	check(fcntl(fds[0], F_GETFL), "fcntl");
	read(fds[0], &n, sizeof(n));
	check(epoll_ctl(epoll, EPOLL_CTL_ADD, event, &want), "epoll_ctl");
	check(epoll_wait(epoll, &want, 1, 0), "epoll_wait");
	check(poll(&pollfd, 1, -1), "poll");
	FD_ZERO(&set);
	FD_SET(fds[0], &set);
	check(select(fds[0] + 1, &set, NULL, NULL, &now), "select");
	check(read(event, &n, sizeof(n)), "read");
	timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	close_range(50, 101, 0);
	close(timer);
	close(-1);
	return 0;
}

static int forks(void)
{
	siginfo_t info;
	pid_t child;

	for (int i = 0; i < 3; i++) {
		child = fork();
		check(child, "fork");
		if (!child)
			_exit(i);
		check(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), "waitid");
		check(waitpid(child, NULL, 0), "waitpid");
	}
	child = fork();
	if (!child) {
		execl("/nowhere/at/all", "nothing", NULL);
		execl("/bin/echo", "echo", "from a child", NULL);
		_exit(127);
	}
	check(waitpid(child, NULL, 0), "waitpid");
	waitpid(-1, NULL, WNOHANG);
	child = vfork();
	if (!child)
		_exit(4);
	check(waitpid(child, NULL, 0), "waitpid");
	prctl(PR_SET_NAME, "renamed");
	return 0;
}

static int errors(void)
{
	void *bad = (void *)0xdead0000;

	syscall(SYS_open, bad, O_RDONLY, 0);
	syscall(SYS_open, NULL, O_RDONLY, 0);
	syscall(SYS_open, "", O_WRONLY, 0);
	syscall(SYS_openat, 12345, "relative", -1, 07777);
	syscall(SYS_execve, bad, bad, bad);
	syscall(SYS_execve, "/nowhere", NULL, NULL);
	syscall(SYS_connect, 0, bad, 16);
	syscall(SYS_bind, 99, bad, 28);
	syscall(SYS_mount, "from", bad, "type", 0, NULL);
	syscall(SYS_rename, "a\nb\033[31m\xff\xfe\\x41\"", "\xc3\xa9\xe2\x82\xac\x80");
	syscall(SYS_unlink, "/etc/passwd/nothing");
	syscall(1000, 1, 2, 3, 4, 5, 6);
	syscall(SYS_kill, getpid(), 200);
	syscall(SYS_fcntl, 0, 9999, 0);
	syscall(SYS_ioctl, 0, 0x5401, bad);
	syscall(SYS_lseek, 1000, -1l, 77);
	syscall(SYS_prctl, -1, 1, 2, 3, 4);
	return 0;
}

static const struct {
	const char *name;
	int (*act)(void);
} deeds[] = {
	{"crash", crash},   {"abort", aborts},	  {"kills-itself", kills_itself},
	{"killed", killed}, {"nothing", nothing}, {"exec-thread", exec_thread},
	{"server", server}, {"signals", signals}, {"sockets", sockets},
	{"files", files},   {"memory", memory},	  {"descriptors", descriptors},
	{"times", times},   {"forks", forks},	  {"errors", errors},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 2 && i < sizeof(deeds) / sizeof(deeds[0]); i++)
		if (!strcmp(deeds[i].name, argv[1]))
			return deeds[i].act();
	errx(2, "usage: deeds WHAT");
}
