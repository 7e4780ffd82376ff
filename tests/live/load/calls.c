// SPDX-License-Identifier: BSD-2-Clause
/*
 * calls - threads that make one system call, each a known number of times.
 *
 *	calls [-c CPU,...] [-t THREADS] [-r PER_SECOND] -n COUNT | -m MS  NAME
 *
 * Thread i runs on the i-th of the CPUs (round again), as fast as it can or PER_SECOND times in
 * bursts of a millisecond. Prints for each thread "calls TID CPU COUNT".
 */
#include "load.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#define CPUS_MAX    64
#define THREADS_MAX 256
#define BURST_NS    1000000

struct thread {
	pthread_t id;
	int tid;
	int cpu; /* -1: any */
	uint64_t calls;
};

static struct {
	void (*call)(void);
	int cpus[CPUS_MAX], nr_cpus;
	int nr_threads;
	uint64_t count, ns, per_burst;
	struct thread threads[THREADS_MAX];
} load;

static void call_uname(void)
{
	struct utsname name;

	syscall(SYS_uname, &name);
}

static void call_getpid(void)
{
	syscall(SYS_getpid);
}

static void *make_calls(void *arg)
{
	struct thread *t = arg;
	uint64_t start_ns = load__now_ns(), burst = load.per_burst ? load.per_burst : 64, n = 0;

	t->tid = gettid();
	if (t->cpu >= 0)
		load__pin(t->cpu);
	while (load.ns ? load__now_ns() - start_ns < load.ns : t->calls < load.count) {
		for (uint64_t i = 0; i < burst && (load.ns || t->calls < load.count); i++) {
			load.call();
			t->calls++;
		}
		if (load.per_burst)
			load__sleep_until(start_ns + ++n * BURST_NS);
	}
	return NULL;
}

static void set_cpus(char *list)
{
	char *word;

	for (word = strtok(list, ","); word && load.nr_cpus < CPUS_MAX; word = strtok(NULL, ","))
		load.cpus[load.nr_cpus++] = atoi(word);
}

static void set_options(int argc, char **argv)
{
	int option;

	load.nr_threads = 1;
	while ((option = getopt(argc, argv, "c:t:r:n:m:")) != -1) {
		if (option == 'c')
			set_cpus(optarg);
		else if (option == 't')
			load.nr_threads = atoi(optarg);
		else if (option == 'r')
			load.per_burst = strtoull(optarg, NULL, 10) / 1000;
		else if (option == 'n')
			load.count = strtoull(optarg, NULL, 10);
		else if (option == 'm')
			load.ns = strtoull(optarg, NULL, 10) * 1000000;
		else
			exit(1);
	}
	if (load.nr_threads < 1 || load.nr_threads > THREADS_MAX || optind + 1 != argc)
		errx(1, "see the source");
	if (!strcmp(argv[optind], "uname"))
		load.call = call_uname;
	else if (!strcmp(argv[optind], "getpid"))
		load.call = call_getpid;
	else
		errx(1, "no call is named %s", argv[optind]);
}

int main(int argc, char **argv)
{
	set_options(argc, argv);
	load__wait_for_go();
	for (int i = 0; i < load.nr_threads; i++) {
		struct thread *t = &load.threads[i];

		t->cpu = load.nr_cpus ? load.cpus[i % load.nr_cpus] : -1;
		if (pthread_create(&t->id, NULL, make_calls, t))
			errx(1, "no thread");
	}
	for (int i = 0; i < load.nr_threads; i++) {
		struct thread *t = &load.threads[i];

		pthread_join(t->id, NULL);
		printf("calls %d %d %llu\n", t->tid, t->cpu, (unsigned long long)t->calls);
	}
	return 0;
}
