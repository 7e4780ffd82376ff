// SPDX-License-Identifier: BSD-2-Clause
/*
 * names - threads that change their names, and call getpid() under each of them.
 *
 *	names THREADS COUNT
 *
 * The n-th name of thread i is "tI-N". Prints for each thread "thread I TID".
 */
#include "load.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>

#define THREADS_MAX 64

static int count;
static int tids[THREADS_MAX];

static void *change_names(void *arg)
{
	int i = (int)(intptr_t)arg;
	char name[16];

	tids[i] = gettid();
	for (int n = 0; n < count; n++) {
		snprintf(name, sizeof(name), "t%d-%d", i, n);
		prctl(PR_SET_NAME, name);
		syscall(SYS_getpid);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS_MAX];
	int nr_threads;

	if (argc != 3)
		errx(1, "see the source");
	nr_threads = atoi(argv[1]);
	count = atoi(argv[2]);
	if (nr_threads < 1 || nr_threads > THREADS_MAX)
		errx(1, "too many threads");
	load__wait_for_go();
	for (intptr_t i = 0; i < nr_threads; i++)
		if (pthread_create(&threads[i], NULL, change_names, (void *)i))
			errx(1, "no thread");
	for (int i = 0; i < nr_threads; i++) {
		pthread_join(threads[i], NULL);
		printf("thread %d %d\n", i, tids[i]);
	}
	return 0;
}
