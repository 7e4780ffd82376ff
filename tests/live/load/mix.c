// SPDX-License-Identifier: BSD-2-Clause
/*
 * mix - a machine at work: calls, switches, packets, files, processes and threads that come and go, each at
 * a steady rate, until its input is closed.
 *
 *	mix PROGRAM
 *
 * PROGRAM is what its processes execute. Prints "acts COUNT" of all.
 */
#include "load.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define WORKERS_MAX 64
#define MS	    1000000

static const char *program;

/* ---- what a worker does, once ------------------------------------------------------------------- */

static int to_other[2], from_other[2], udp;

static void make_call(void)
{
	syscall(SYS_getppid);
}

/* A process on the same CPU, so that each byte is a switch. */
static void begin_pipe(void)
{
	pid_t pid;
	char byte;

	if (pipe(to_other) || pipe(from_other))
		err(1, "pipe");
	pid = fork();
	if (pid < 0)
		err(1, "fork");
	if (pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(to_other[1]);
	while (read(to_other[0], &byte, 1) == 1)
		if (write(from_other[1], &byte, 1) != 1)
			break;
	_exit(0);
}

static void pass_byte(void)
{
	char byte = 0;

	if (write(to_other[1], &byte, 1) != 1 || read(from_other[0], &byte, 1) != 1)
		err(1, "pipe");
}

/* To itself. */
static void begin_udp(void)
{
	struct sockaddr_in here = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(here);

	udp = socket(AF_INET, SOCK_DGRAM, 0);
	if (udp < 0 || bind(udp, (struct sockaddr *)&here, sizeof(here)) ||
	    getsockname(udp, (struct sockaddr *)&here, &len) ||
	    connect(udp, (struct sockaddr *)&here, len))
		err(1, "udp");
}

static void send_packet(void)
{
	char bytes[64] = {0};

	/* One that the kernel drops does not come back. */
	send(udp, bytes, sizeof(bytes), 0);
	recv(udp, bytes, sizeof(bytes), MSG_DONTWAIT);
}

static void open_file(void)
{
	char bytes[64];
	int fd = open("/proc/self/comm", O_RDONLY);

	if (fd < 0 || read(fd, bytes, sizeof(bytes)) < 0)
		err(1, "/proc/self/comm");
	close(fd);
}

static void run_program(void)
{
	pid_t pid = fork();

	if (!pid) {
		execl(program, program, "0", NULL);
		_exit(255);
	}
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		err(1, "fork");
}

static void *end_at_once(void *arg)
{
	return arg;
}

static void run_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, end_at_once, NULL) || pthread_join(thread, NULL))
		errx(1, "no thread");
}

static const struct deed {
	void (*begin)(void);
	void (*act)(void);
	unsigned each, at_once; /* so many, one after another, each so many ms */
} deeds[] = {
	{NULL, make_call, 1, 5}, {begin_pipe, pass_byte, 1, 2}, {begin_udp, send_packet, 1, 2},
	{NULL, open_file, 2, 1}, {NULL, run_program, 20, 1},	{NULL, run_thread, 10, 1},
};
#define DEEDS (sizeof(deeds) / sizeof(deeds[0]))

/* ---- workers: one on each CPU for each deed ----------------------------------------------------- */

static void work(const struct deed *deed, int cpu, uint64_t *done)
{
	uint64_t at_ns = load__now_ns();

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	load__pin(cpu);
	if (deed->begin)
		deed->begin();
	for (;;) {
		for (unsigned i = 0; i < deed->at_once; i++) {
			deed->act();
			++*done;
		}
		at_ns += (uint64_t)deed->each * MS;
		load__sleep_until(at_ns);
	}
}

/* How many CPUs this process may use, and which these are. */
static int usable_cpus(int *cpus, int max)
{
	cpu_set_t set;
	int n = 0;

	if (sched_getaffinity(0, sizeof(set), &set))
		err(1, "CPUs");
	for (int cpu = 0; cpu < CPU_SETSIZE && n < max; cpu++)
		if (CPU_ISSET(cpu, &set))
			cpus[n++] = cpu;
	return n;
}

int main(int argc, char **argv)
{
	int cpus[WORKERS_MAX / DEEDS], nr = usable_cpus(cpus, sizeof(cpus) / sizeof(cpus[0]));
	uint64_t *done = mmap(NULL, WORKERS_MAX * sizeof(*done), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t workers[WORKERS_MAX];
	uint64_t acts = 0;
	int n = 0;
	char byte;

	if (argc != 2 || done == MAP_FAILED)
		errx(1, "see the source");
	program = argv[1];
	load__wait_for_go();
	for (int c = 0; c < nr; c++)
		for (size_t d = 0; d < DEEDS; d++, n++) {
			workers[n] = fork();
			if (workers[n] < 0)
				err(1, "fork");
			if (!workers[n])
				work(&deeds[d], cpus[c], &done[n]);
		}
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	for (int w = 0; w < n; w++) {
		/* One that ended before has failed, and has said why. */
		if (waitpid(workers[w], NULL, WNOHANG))
			return 1;
		kill(workers[w], SIGKILL);
		waitpid(workers[w], NULL, 0);
		acts += done[w];
	}
	printf("acts %llu\n", (unsigned long long)acts);
	return 0;
}
