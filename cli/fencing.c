/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/fencing.h"

#include "cli/priority.h"
#include "cli/privileges.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

static void wait_for(sem_t *sem)
{
	while (sem_wait(sem) && errno == EINTR)
		;
}

/* Rights and priority are a thread's, so it sees to its own. */
static void *serve(void *arg)
{
	struct fencing *f = arg;

	f->tid = (uint32_t)gettid();
	sem_post(&f->known);
	wait_for(&f->go);
	if (!f->fence)
		return NULL;
	priority__raise();
	/* It fails where the reader's does, who says so; and then the stream waits by itself. */
	if (!privileges__drop())
		weir_fence__run(f->fence);
	return NULL;
}

int fencing__start(struct fencing *f)
{
	sigset_t all, before;
	int err;

	if (sem_init(&f->known, 0, 0) || sem_init(&f->go, 0, 0))
		return -errno;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = -pthread_create(&f->thread, NULL, serve, f);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err)
		return err;
	f->is_there = true;
	wait_for(&f->known);
	return 0;
}

void fencing__serve(struct fencing *f, struct weir_fence *fence)
{
	f->fence = fence;
	sem_post(&f->go);
}

void fencing__stop(struct fencing *f)
{
	if (!f->is_there)
		return;
	if (f->fence)
		weir_fence__stop(f->fence);
	else
		sem_post(&f->go);
	pthread_join(f->thread, NULL);
	f->is_there = false;
}
